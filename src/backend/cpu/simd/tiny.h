/* tiny.h: a tiny stack of dense layers as one kernel: all ops of a step, for many steps, without
 * going through the list of calls.
 *
 * Two forms, by the batch:
 *   one sample    a layer's outputs are the lanes. The weights are kept twice, by input for the way
 *                 forward and by output for the way back; both get the same product when they are
 *                 updated, so that they stay equal bit for bit.
 *   a batch       samples are the lanes, and the weights are broadcast; they are kept in squares of
 *                 4 × 4, whose gradient is a product over four samples at a time.
 * What bounds them is the latency of the chain of layers (one sample) or the number of activations
 * (a batch): everything lies in L1. */
#ifndef PRONY_BACKEND_CPU_SIMD_TINY_H
#define PRONY_BACKEND_CPU_SIMD_TINY_H

#include "backend/cpu/kernel.h"
#include "core/pass/chain.h"

/* Beyond these, ops one by one are as fast: what each costs besides its work no longer shows. */
enum { TINY_WIDTH = 64, TINY_BATCH = 64, TINY_WEIGHTS = 4096 };

struct tiny_layer {
    int32_t in, out;
    enum activation activation;
    int64_t stride, stride_back; /* one sample: out and in, in whole vectors */
    float *w;      /* one sample: [in][stride]. A batch: [in + 1][out] in squares, the last row b */
    float *back;   /* one sample: [out][stride_back] */
    float *b;      /* one sample: [stride] */
    float *y;      /* one sample: [stride]. A batch: [tiles][out + 1][lanes], the last row ones */
    float *d;      /* the loss's gradient; as y, what is beyond its rows being 0 */
    float *turned; /* a batch: d, each square of 4 rows × 4 samples transposed */
    float *kept_w, *kept_b; /* the instance's; kept_b may be NULL */
    struct shape shape;     /* of kept_w … */
    bool blocked;           /* … which may be in blocks */
};

struct tiny;
typedef void tiny_steps(struct tiny *tiny, int64_t steps);

struct tiny {
    int32_t layers, batch;
    struct tiny_layer layer[CHAIN_MOST];
    tiny_steps *run;
    int32_t tiles;     /* a batch: as many samples as a vector has lanes are one */
    float *x, *next_x; /* one sample: [in]. A batch: [tiles][in + 1][lanes], the last row ones */
    float *target, *next_target; /* a batch: as the last layer's y */
    int32_t *rows, *next_rows;   /* [batch], and a few more */
    float *canonical;            /* room for one matrix */
    bool trains;
    enum op_kind loss, right; /* OP_COUNT: none */
    float loss_scale;         /* of its gradient */
    float half;               /* right_level: what is nearer than this is right */
    const struct op *schedule;
    int32_t *count; /* of updates */
    struct control *control;
    struct cursor *cursor;
    struct bound *bound_x, *bound_target, *bound_y, *bound_loss, *bound_right; /* NULL: none */
};

/* The steps of one sample whose layers fit into a vector, of one sample, and of a batch. */
struct tiny_kernels {
    int64_t lanes;
    tiny_steps *narrow, *wide, *batch;
};

extern const struct tiny_kernels tiny_avx2, tiny_avx512;

void tiny_fill(struct kernel_table *table, enum isa isa);

/* Cross-entropy of one sample's outputs y[o * stride]; d, as y, gets its gradient. */
float tiny_cross_entropy(const struct tiny *tiny, const float *y, int64_t stride, int32_t row,
                         float *d);
/* 1 when these outputs are the right answer, else 0. */
float tiny_right(const struct tiny *tiny, const float *y, int64_t stride, int32_t row);
/* The rate of the next update. */
float tiny_rate(const struct tiny *tiny);

enum { TINY_SQUARE = 4 };

/* Squares side by side in a batch's weights. */
static inline int64_t tiny_across(const struct tiny_layer *layer)
{
    return (layer->out + TINY_SQUARE - 1) / TINY_SQUARE;
}

/* Floats of a batch's tile of `rows` rows, one more for the ones, in whole squares. */
static inline int64_t tiny_tile(int64_t rows, int64_t lanes)
{
    return (rows + TINY_SQUARE) / TINY_SQUARE * TINY_SQUARE * lanes;
}

/* A sample's row of a bound view, [width]. */
static inline float *tiny_row(const struct bound *bound, int32_t row, int32_t width)
{
    return (float *)(void *)bound->data + (int64_t)row * width;
}

/* One value a step, to a ring. */
static inline void tiny_store(struct bound *bound, float value)
{
    if (!bound || !bound->data)
        return;
    uint64_t at = bound->stored++;
    if (at >= (uint64_t)bound->rows)
        at %= (uint64_t)bound->rows;
    ((float *)(void *)bound->data)[at] = value;
}

/* The plan's place in its data, for the time of one run. */
struct tiny_walk {
    uint64_t at, count;
    const uint32_t *order;
};

static inline struct tiny_walk tiny_begin(const struct tiny *tiny, int64_t steps)
{
    struct cursor *cursor = tiny->cursor;
    struct tiny_walk walk = {(cursor->start + cursor->place) % cursor->count, cursor->count,
                             cursor->order};
    cursor->place += (uint64_t)steps * (uint64_t)tiny->batch;
    return walk;
}

static inline int32_t tiny_next(struct tiny_walk *walk)
{
    uint64_t at = walk->at;
    walk->at = at + 1 == walk->count ? 0 : at + 1;
    return (int32_t)(walk->order ? walk->order[at] : at);
}

#endif
