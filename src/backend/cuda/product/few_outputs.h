/* few_outputs.h: layers with few outputs (the last one, mostly), in fp32, whatever their samples
 * are kept in: cuBLASLt's tiles would be empty nearly everywhere. y[n, o] = f(x[n, i]·W[i, o] + b),
 * the gradient of its input, and its update. */
#ifndef PRONY_BACKEND_CUDA_FEW_OUTPUTS_H
#define PRONY_BACKEND_CUDA_FEW_OUTPUTS_H

#include "backend/cuda/device/launch.h"

enum { FEW_OUTPUTS_MOST = 16, FEW_OUTPUTS_SAMPLES = 2048 }; /* at most */

void few_outputs_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells x,
                       const float *w, const float *bias, enum activation function, struct cells y);
/* dx[n, i] = dy[n, o]·Wᵀ */
void few_outputs_down(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells dy,
                      const float *w, struct cells dx);
/* w -= rate · xᵀ·dy, b -= rate · Σ dy; b NULL: there is none. */
void few_outputs_update(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells x,
                        struct cells dy, const float *rate, float *w, float *b);

#endif
