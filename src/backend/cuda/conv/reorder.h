/* reorder.h: a convolution on images that lie one way, for operands that may lie the other: what is
 * read is transposed in the workspace before, what is written after it. */
#ifndef PRONY_BACKEND_CUDA_REORDER_H
#define PRONY_BACKEND_CUDA_REORDER_H

#include "backend/cuda/conv/conv.h"
#include "backend/cuda/ops/nhwc.h"

/* y from x, x from y, w from both. */
enum conv_task { CONV_FORWARD, CONV_DGRAD, CONV_WGRAD };

struct conv_form {
    enum conv_task task;
    int32_t nhwc;     /* images and weights NHWC? Then the channels of x … */
    struct conv conv; /* … are filled up to a multiple of four. */
};

struct conv_form conv_form_of(const struct program *program, const struct op *op, bool nhwc);

static inline int64_t count_x(const struct conv &conv)
{
    return (int64_t)conv.samples * conv.in * conv.down.x * conv.across.x;
}

static inline int64_t count_w(const struct conv &conv)
{
    return (int64_t)conv.out * conv.inner * conv.taps;
}

static inline int64_t count_y(const struct conv &conv)
{
    return (int64_t)conv.samples * conv.out * conv.down.y * conv.across.y;
}

/* All that may have to be transposed. */
uint64_t reorder_bytes(const struct program *program, const struct op *op);

/* A call as it is carried out: where x, w and y are found, and what is behind them. */
struct reordered {
    const struct call *call;
    struct conv_form form;
    struct conv conv;               /* its channels not filled up */
    float *x, *w, *y;               /* the op's operands */
    bool x_apart, w_apart, y_apart; /* those that are used are others, in the workspace */
    float *at_x, *at_w, *at_y;
    struct image image_x, image_y; /* the operands */
    void *room;                    /* what is left of the workspace */
};

/* `sums_apart`: what is written does not lie where the result does; `transposes`: weights are
 * transposed in any case. */
struct reordered reorder_begin(const struct call *call, const struct conv_form &form,
                               bool sums_apart, bool transposes);
void reorder_in(const struct reordered &made, struct queue *queue);
void reorder_images_in(const struct reordered &made, struct queue *queue); /* not the weights */
void reorder_out(const struct reordered &made, struct queue *queue,
                 const struct conv_ending &ending, bool ends);

#endif
