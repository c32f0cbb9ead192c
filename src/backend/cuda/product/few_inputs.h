/* few_inputs.h: layers with few inputs (the first one, mostly), in fp32: there is next to nothing
 * to multiply, only outputs to be written, or their gradients to be read. */
#ifndef PRONY_BACKEND_CUDA_FEW_INPUTS_H
#define PRONY_BACKEND_CUDA_FEW_INPUTS_H

#include "backend/cuda/device/launch.h"

enum { FEW_INPUTS_MOST = 8 }; /* at most */

/* y[n, o] = f(x[n, i]·W[i, o] + b); bias NULL: there is none. */
void few_inputs_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                      const float *w, const float *bias, enum activation function, float *y);
/* w -= rate · xᵀ·dy, b -= rate · Σ dy; b NULL: there is none. */
void few_inputs_update(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                       const float *dy, const float *rate, float *w, float *b);

#endif
