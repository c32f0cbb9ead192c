/* onnx.h: networks from and to ONNX files (opset 9 to 17), with their weights.
 *
 * A file becomes the text of a network, a layer or a few for each node, and the numbers its
 * parameters start from: all that takes a network takes it. docs/onnx.md says which operators there
 * are and what becomes of them. Where prony was built without protobuf-c, both refuse and say what
 * to install. */
#ifndef PRONY_NN_FORMATS_ONNX_H
#define PRONY_NN_FORMATS_ONNX_H

#include "core/params.h"
#include "nn/network.h"

/* `name` is the file's path, beside which its weights may lie, and the network's name; `shapes` is
 * NULL or what its symbolic dimensions are: "height=224,width=224". `batch` may be NULL. */
enum status onnx_parse(const char *name, const void *bytes, size_t length, const char *shapes,
                       struct network **out, struct onnx_batch *batch);
/* The same from a file; `spec` is its path, or PATH:SHAPES. */
enum status onnx_read(const char *spec, struct network **out);

/* What is done before the first layer, (x - mean) · scale, unless they are NULL, element by element
 * of a sample, and what is then below 0 or above 1 becomes that where `unit` says so; behind the
 * last, by the loss: softmax for cross-entropy, sigmoid for the binary one; and then, unless they
 * are NULL, y ÷ scale + mean: what it gives is in the place of data. */
struct onnx_ends {
    enum loss_kind loss;
    const float *mean, *scale;
    bool unit;
    const float *returns_mean, *returns_scale;
    const struct onnx_levels *levels; /* of a network in 8 bits; NULL: it is in reals */
};

/* Where a network of 8 bits rounds: behind a layer, "" being the input, on that scale … */
struct onnx_level {
    const char *layer;
    float scale;
    int32_t zero, most; /* what stands for 0; the highest level: 255, or 127 */
};
/* … and the scales of a layer that multiplies: of what it reads, and of what its sums become; that
 * is 0 where they become reals. */
struct onnx_product {
    const char *layer;
    float x_scale, y_scale;
    int32_t x_zero, y_zero;
};
struct onnx_levels {
    const struct onnx_level *levels;
    const struct onnx_product *products;
    int32_t level_count, product_count;
};

/* Writes what the network, with these parameters, gives when it predicts. */
enum status onnx_write(const char *path, const struct network *network, const struct params *params,
                       const struct onnx_ends *ends);

#endif
