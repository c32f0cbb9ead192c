/* update.h: the step of plain gradient descent, one element: the same bits whether an op of its own
 * does it or the ending of a fused product. */
#ifndef PRONY_BACKEND_CUDA_UPDATE_H
#define PRONY_BACKEND_CUDA_UPDATE_H

extern "C" {
#include "core/control.h"
}

/* How far along the gradient: `rate` is the op's own factor. */
static inline __device__ float update_rate(const struct control *control, float rate)
{
    return (float)(control->rate * (double)rate);
}

static inline __device__ float update_sgd(float w, float g, const struct control *control,
                                          float rate)
{
    return w - update_rate(control, rate) * g;
}

#endif
