/* layer_image.h: what the layers over images share: reading their sizes, and sliding a window. A
 * mistake fails the draft and gives false; messages name what was found and what was expected. */
#ifndef PRONY_NN_LAYERS_LAYER_IMAGE_H
#define PRONY_NN_LAYERS_LAYER_IMAGE_H

#include "nn/layer.h"

struct pair {
    int64_t h, w;
};

/* How a window moves over an image. */
struct slide {
    struct pair window, stride, pad, dilation;
    bool ceil; /* the last window may reach beyond the padded image, but not begin there */
};

/* The shape [batch, channels, height, width] of the layer's first input. */
bool image_input(struct layer_emit *emit, struct shape *out);

/* The argument of this number, HxW or one number for both, each at least `least`. */
bool image_pair(struct layer_emit *emit, int argument, const char *name, int64_t least,
                struct pair *out);

/* How many places the window has in an image of this shape; false when it has none. */
bool image_places(struct layer_emit *emit, const struct shape *image, const struct slide *slide,
                  struct pair *out);

/* What the window covers, dilation included. */
struct pair image_extent(const struct slide *slide);

#endif
