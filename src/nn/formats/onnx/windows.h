/* windows.h: what convolution and pooling share: images, and windows that move over them.
 *
 * A volume has depth, height and width, an image the last two, a sequence the last one; where an
 * axis is missing its size is 1. Layers know images [channels, height, width]: the planes of a
 * volume lie one below the other. */
#ifndef PRONY_NN_FORMATS_ONNX_WINDOWS_H
#define PRONY_NN_FORMATS_ONNX_WINDOWS_H

#include "nn/formats/onnx/importer.h"

enum { AXES = 3, SIZE_MOST = 1 << 24 };

/* The attribute auto_pad. */
enum auto_pad { AUTO_PAD_NOTSET, AUTO_PAD_VALID, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER };

/* An input as a layer of images. */
struct image {
    const struct value *value;
    const char *layer;
    int64_t channels, size[AXES];
    int32_t axes; /* that it has: the last ones */
};

/* How a window moves along one axis. */
struct slide {
    int64_t window, stride, dilation, before, behind; /* pads */
    int64_t places;                                   /* as ONNX counts them */
    int64_t reach;     /* how far behind the image the last window ends; below 0: within it */
    int64_t pad, from; /* the layer's, and which of its places is the first of ONNX */
};

/* The node's first input, which has samples, channels and one to three axes. */
enum status window_open(struct import *in, struct image *out);
/* Refuses a volume, of which the operator knows nothing. */
enum status window_flat(struct import *in, const struct image *image);
/* Says what the output is: images of that many channels and that size, which the layer gives as
 * [channels, depth · height, width]. */
enum status window_give(struct import *in, const struct image *image, const char *layer,
                        int64_t channels, const int64_t size[AXES]);
/* An attribute of a number for each axis; `usual` where it is absent. */
enum status window_sizes(struct import *in, const char *name, int32_t axes, int64_t usual,
                         int64_t least, int64_t out[AXES]);
enum status window_auto_pad(struct import *in, enum auto_pad *out);
/* The window comes from the attribute, or where there are weights from these. */
enum status window_read(struct import *in, const struct image *image,
                        const struct constant *weights, struct slide slides[AXES]);
/* How many elements the window spans. */
int64_t window_extent(const struct slide *slide);
/* How many places it has along an axis of that size, and how a layer comes by them. */
enum status window_count(struct import *in, int64_t size, bool ceil, struct slide *slide);
/* Cuts off what the layer has before and behind the places of ONNX. */
enum status window_cut(struct import *in, const struct image *image,
                       const struct slide slides[AXES], const char **layer);

/* apart.c: what no layer does in one. */
/* Pooling whose windows are dilated, of three axes or padded as no layer pads. */
enum status apart_pool(struct import *in, const struct image *image,
                       const struct slide slides[AXES], bool max, bool count_pad);
/* Unpooling to places that are known. */
enum status apart_unpool(struct import *in, const struct image *image);
/* Convolution of a volume, and its transpose; `more`: output_padding. */
enum status apart_conv(struct import *in, const struct image *image, const struct constant *w,
                       const struct slide slides[AXES]);
enum status apart_conv_transpose(struct import *in, const struct image *image,
                                 const struct constant *w, const struct slide slides[AXES],
                                 const int64_t more[AXES]);

#endif
