/* activation.h: the activation functions and their slopes, for every kernel that ends with one. */
#ifndef PRONY_BACKEND_CUDA_ACTIVATION_H
#define PRONY_BACKEND_CUDA_ACTIVATION_H

extern "C" {
#include "core/program.h"
}

static inline __device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static inline __device__ float activation_value(enum activation function, float x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return sigmoid(x);
    case ACTIVATION_TANH: return tanhf(x);
    case ACTIVATION_RELU: return x > 0.0f ? x : 0.0f;
    default: return x;
    }
}

/* d(value)/dx, from the value. */
static inline __device__ float activation_slope(enum activation function, float y)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return y * (1.0f - y);
    case ACTIVATION_TANH: return 1.0f - y * y;
    case ACTIVATION_RELU: return y > 0.0f ? 1.0f : 0.0f;
    default: return 1.0f;
    }
}

#endif
