/* dgrad_update.h: the backward pass through a layer of few samples, in tf32: the gradient of its
 * input and the update of its weights in one pass, in which each weight is read and written once.
 */
#ifndef PRONY_BACKEND_CUDA_DGRAD_UPDATE_H
#define PRONY_BACKEND_CUDA_DGRAD_UPDATE_H

#include "backend/cuda/product/split_k.h"

struct dgrad_update {
    struct split_k split_k;  /* of the gradient of the input: [n, m], k outputs */
    bool down;               /* is that gradient needed at all? */
    const float *x;          /* [n, m] */
    const float *dy;         /* [n, k] */
    const float *transposed; /* the negative of dy: [k, step] */
    int64_t step;            /* from one row of it to the next: a multiple of 4 */
    const float *rate;       /* [1] */
    float *w;                /* [m, k] */
    float *pieces;           /* of the gradient, as split_k_pieces has them */
};

/* Is there a kernel for a product that split_k_takes? */
bool dgrad_update_takes(const struct split_k *split_k);

void dgrad_update_pass(struct queue *queue, const struct dgrad_update *dgrad_update);

#endif
