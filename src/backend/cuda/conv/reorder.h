/* reorder.h: a convolution on images that lie one way, for operands that may lie the other: what is
 * read is turned in the workspace before, what is written after it. */
#ifndef PRONY_BACKEND_CUDA_REORDER_H
#define PRONY_BACKEND_CUDA_REORDER_H

#include "backend/cuda/conv/conv.h"
#include "backend/cuda/plan/nhwc.h"

/* y from x, x from y, w from both. */
enum carry_task { CARRY_AHEAD, CARRY_BACK, CARRY_WEIGH };

struct carry_form {
    enum carry_task task;
    int32_t last;     /* images and weights channels last? Then the channels of x … */
    struct conv conv; /* … are filled up to a multiple of four. */
};

struct carry_form carry_form_of(const struct program *program, const struct op *op, bool last);

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

/* All that may have to be turned. */
uint64_t carry_bytes(const struct program *program, const struct op *op);

/* A call as it is carried out: where x, w and y are found, and what is behind them. */
struct carried {
    const struct call *call;
    struct carry_form form;
    struct conv conv;               /* its channels not filled up */
    float *x, *w, *y;               /* the op's operands */
    bool x_apart, w_apart, y_apart; /* those that are used are others, in the workspace */
    float *at_x, *at_w, *at_y;
    struct image image_x, image_y; /* the operands */
    void *room;                    /* what is left of the workspace */
};

/* `sums_apart`: what is written does not lie where the result does; `turns`: weights are turned in
 * any case. */
struct carried carry(const struct call *call, const struct carry_form &form, bool sums_apart,
                     bool turns);
void carry_in(const struct carried &made, struct queue *queue);
void carry_images_in(const struct carried &made, struct queue *queue); /* not the weights */
void carry_out(const struct carried &made, struct queue *queue, const struct conv_ending &ending,
               bool ends);

#endif
