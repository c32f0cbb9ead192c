/* update.h: the step of plain gradient descent, one element: the same bits whether an op of its own
 * does it or the ending of a fused product. */
#ifndef PRONY_BACKEND_CUDA_UPDATE_H
#define PRONY_BACKEND_CUDA_UPDATE_H

static inline __device__ float update_sgd(float w, float g, float rate)
{
    return w - rate * g;
}

#endif
