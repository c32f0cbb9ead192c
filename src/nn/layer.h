/* layer.h: what a layer kind is, and what its emitter is given. */
#ifndef PRONY_NN_LAYER_H
#define PRONY_NN_LAYER_H

#include "nn/network.h"

/* Being emitted: one layer of a network into a draft. */
struct layer_emit {
    struct draft *draft;
    const struct layer *layer;
    const char *prefix;
    enum phase phase;
    int32_t rows;              /* the batch's rows of the data */
    int32_t lengths;           /* or -1 */
    enum start start;          /* what the network's text says of it */
    int32_t tokens;            /* of the network's input; 0: it is real */
    const struct given *given; /* what parameters start from, given_count of them */
    int32_t given_count;
    const int32_t *inputs; /* tensors, layer->input_count of them */
    int32_t weight_bits;   /* products get used to so many bits of weights; 0: none */
};

/* Writes the layer's ops and returns its output tensor. */
typedef int32_t layer_emitter(struct layer_emit *emit);

/* A bound of the layer clip that is as large is none: no float exceeds it by much. */
#define BOUND_NONE 3.4e38

enum { SEVERAL = -1 }; /* inputs of a layer that takes two or more */

struct layer_kind {
    const char *name;
    int32_t inputs;
    const char *arguments; /* as in layers.def */
    const char *help;
    layer_emitter *emit;
};

const struct layer_kind *layer_find(const char *name); /* NULL: none */
const struct layer_kind *layer_kinds(int32_t *count);

/* Declares the parameter "PREFIX LAYER.name" and gives its tensor. */
int32_t layer_param(struct layer_emit *emit, const char *name, struct shape shape,
                    struct init init);
/* The same for a weight that only products or convolutions touch (params.h: matrix). */
int32_t layer_matrix(struct layer_emit *emit, const char *name, struct shape shape,
                     struct init init);
/* What a product reads while the network gets used to few bits: x in 8 bits, and a weight in
 * weight_bits, whose element i belongs to channel i / inner % channels. Else both as they are. */
int32_t layer_rounded_input(struct layer_emit *emit, int32_t x);
int32_t layer_rounded_weight(struct layer_emit *emit, int32_t w, int64_t inner, int64_t channels);
int32_t layer_statistic(struct layer_emit *emit, const char *name, struct shape shape,
                        struct init init);

/* The value of an argument of the layer's row; 0 when it has none of that name. */
double layer_value(const struct layer_emit *emit, const char *argument);

/* How a weight starts: as the layer's argument `init` says, or the network's text, or else as is
 * `usual` for this layer. Each unit of it sums fan_in numbers, and fan_out sums use each number. */
struct init layer_init(const struct layer_emit *emit, struct init usual, int64_t fan_in,
                       int64_t fan_out);
bool start_parse(const char *word, enum start *out);

/* A new activation of this shape, named after the layer. */
int32_t layer_output(struct layer_emit *emit, struct shape shape);

/* The tensor itself when it has this shape, else a view of it. */
int32_t layer_view(struct layer_emit *emit, int32_t tensor, struct shape shape);
/* [everything before the last dimension, the last dimension] */
struct shape layer_rows(const struct shape *shape);
/* [what is before it, the dimension `axis`, what is behind it] */
struct shape layer_along(const struct shape *shape, int32_t axis);
/* An axis as a network file gives it: 1 is the first behind the batch, -1 the last. Fails the draft
 * and gives 1 when the shape has no such dimension. */
int32_t layer_axis(struct layer_emit *emit, const struct shape *shape, double given);

#endif
