/* dense_shared.h: the seam between the loops of the dense family (dense_loops.h: chunks, tiles,
 * threads, written once) and its kernels (dense_isa.c: compiled once per ISA).
 *
 * Weights are in groups (blocked.h). Activations are packed by the loops:
 *   xs, dx   [vector of 16 inputs][sample][16]; for a gradient, xs times its scale
 *   xt       [input][sample]: samples in lanes, a tile of 1 to DENSE_LANES vectors wide
 *   dy       [group of 8 outputs][sample][8] */
#ifndef PRONY_BACKEND_CPU_SIMD_DENSE_DENSE_SHARED_H
#define PRONY_BACKEND_CPU_SIMD_DENSE_DENSE_SHARED_H

#include "backend/cpu/kernel.h"

#include <stdint.h>

enum {
    DENSE_TILE = 12,   /* samples whose sums are kept in registers */
    DENSE_STREAM = 3,  /* so few that a backward pass reads the weights in their order */
    DENSE_LANES = 3,   /* vectors of samples, or of inputs, of a tile of larger batches … */
    DENSE_SAMPLES = 8, /* … and samples beside vectors of inputs */
    DENSE_FEW = 2,     /* so few that a forward pass reads the weights as several streams */
    DENSE_CHUNKS = 8,  /* that their dot products run along at once … */
    DENSE_PARTS = 2,   /* … in so many parts of the outputs, where there are registers for it */
};

/* A piece of the weights, down `groups` groups that lie group_floats apart, and what meets it: the
 * packed activations of `batch` samples, of which a kernel may be given a tile. */
struct dense_piece {
    float *w;
    int64_t group_floats, groups;
    const float *dy, *x;
    float *dx;
    int64_t batch; /* as packed: a group of dy is batch × 8, a vector of x batch × 16 */
    float shrink;  /* stream: so much of the weight goes, too */
};

/* Some chunks of the weights that a few samples' inputs meet at once, from the first group of one
 * part of the outputs, or of each of two, which are equally long. */
struct dense_strip {
    const float *xs;
    int64_t chunks, vectors, last; /* vectors of a chunk, and of the last */
    const float *w[DENSE_PARTS][DENSE_CHUNKS];
};

/* Up to three vectors of one group, over the whole batch: w = dy·x, or w += dy·x. What lies `below`
 * floats before comes into L2. */
typedef void dense_outer(float *w, int64_t below, const float *dy, const float *x, int64_t batch);

/* The call of an optimiser's op, for `count` weights (elementwise_isa.c). */
typedef void dense_span(const struct call *call, int64_t count);

/* Arrays are indexed by the number of samples (lanes, outer: of vectors of samples or inputs). */
struct dense_kernels {
    int64_t lanes_width; /* samples in a vector */
    /* sums[row][sample] = w · x over the chunk's vectors, 8 rows */
    void (*dot[DENSE_TILE + 1])(const float *w, const float *xs, int64_t vectors, float *sums);
    /* up to DENSE_FEW samples: sums[group][row][sample] += w · x over the strip's chunks, down
     * `groups` groups. NULL: there are not enough registers */
    void (*dot_few[DENSE_FEW + 1])(const struct dense_strip *strip, int64_t groups, float *sums);
    /* one sample, two parts of the outputs: sums[part][group][row]. Or NULL */
    void (*dot_pair)(const struct dense_strip *strip, int64_t groups, float *sums);
    /* ys[row][sample] = start[row] + w · x; without start ys is added to */
    void (*lanes[DENSE_LANES + 1])(const float *w, const float *xt, int64_t vectors,
                                   const float *start, float *ys);
    /* one group over all vectors of the chunk: dx += dy·w, and w += dy·x - shrink·w */
    void (*stream[DENSE_STREAM + 1])(const struct dense_piece *piece, int64_t vectors);
    /* one vector of inputs down the groups: the same; piece->x, dx: that vector's */
    void (*step[DENSE_TILE + 1])(const struct dense_piece *piece);
    /* up to three vectors (and samples) down the groups: dx += dy·w; meanwhile as many lines as
     * there are outputs come from `fetch` into L2 */
    void (*back[DENSE_LANES + 1][DENSE_SAMPLES + 1])(const float *w, int64_t group_floats,
                                                     int64_t groups, const float *dy, float *dx,
                                                     int64_t batch, const float *fetch);
    dense_outer *outer_set[DENSE_LANES + 1], *outer_add[DENSE_LANES + 1];
    /* to[column][row] = from[row][column] */
    void (*transpose)(const float *from, int64_t from_stride, int64_t rows, int64_t columns,
                      float *to, int64_t to_stride);
    /* y = f(x) for functions without an alpha; x may be y */
    void (*activate)(int32_t function, const float *x, float *y, int64_t count);
    dense_span *update;
};

#endif
