/* unroll.h: what the two ways to write a recurrent node share. */
#ifndef PRONY_NN_FORMATS_ONNX_UNROLL_H
#define PRONY_NN_FORMATS_ONNX_UNROLL_H

#include "nn/formats/onnx/importer.h"

struct recurrent_kind {
    const char *op, *layer;
    int64_t gates;
    int order[4];             /* where ours are in ONNX's */
    const char *functions[3]; /* the usual ones, as ONNX names them */
};

/* A node, and which direction of it is being written. */
struct recurrent {
    const struct recurrent_kind *kind;
    const struct value *x;
    const struct constant *w, *r, *b; /* of all directions; b may be NULL */
    const char *functions[3];
    int64_t units, time;
    bool first;               /* samples are counted by the first dimension, else by the second */
    bool every, state, cells; /* who is read: all steps, the last one's state, its cells */
    int32_t direction;
};

/* The layers that give every step [time, units], the last state [units] or [1, units], and the last
 * cells likewise; NULL where nobody needs them. */
struct recurrent_layers {
    const char *every, *last, *cells;
};

/* unroll.c: a direction step by step, over a layer that gives [time, features]. */
enum status unroll(struct import *in, const struct recurrent *recurrent, const char *x,
                   struct recurrent_layers *out);

#endif
