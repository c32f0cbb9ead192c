/* slim.h: layers with few outputs (the last one, mostly), in fp32: cuBLASLt's tiles would be empty
 * nearly everywhere. y[n, o] = f(x[n, i]·W[i, o] + b), the gradient of its input,
 * and its update. */
#ifndef PRONY_BACKEND_CUDA_SLIM_H
#define PRONY_BACKEND_CUDA_SLIM_H

#include "backend/cuda/launch.h"

enum { SLIM_OUTPUTS = 16, SLIM_SAMPLES = 2048 }; /* at most */

void slim_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                const float *w, const float *bias, enum activation function, float *y);
/* dx[n, i] = dy[n, o]·Wᵀ */
void slim_down(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *dy,
               const float *w, float *dx);
/* w -= rate · xᵀ·dy, b -= rate · Σ dy; b NULL: there is none. */
void slim_update(struct queue *queue, int64_t n, int64_t i, int64_t o, const float *x,
                 const float *dy, const float *rate, float *w, float *b);

#endif
