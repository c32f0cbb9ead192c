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

/* What is no number stays so. */
static inline __device__ float relu(float x)
{
    float y;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
    return y;
}

/* ln(1 + e^x) without overflow */
static inline __device__ float softplus(float x)
{
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

/* Φ: the share of a standard normal below x */
static inline __device__ float normal_share(float x)
{
    return 0.5f * (1.0f + erff(x * 0.70710678118654752440f));
}

/* The functions without an alpha, which fused ops have too. */
static inline __device__ float activation_value(enum activation function, float x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return sigmoid(x);
    case ACTIVATION_TANH: return tanhf(x);
    case ACTIVATION_RELU: return relu(x);
    case ACTIVATION_GELU: return x * normal_share(x);
    case ACTIVATION_SOFTPLUS: return softplus(x);
    default: return x;
    }
}

/* All but relu and none; called, since its code would not fit into the cache once for every sum. */
template <typename Real>
static __device__ __noinline__ Real rare_activation(enum activation function, Real x)
{
    return activation_value(function, x);
}

static inline __device__ float activation_value_alpha(enum activation function, float alpha,
                                                      float x)
{
    switch (function) {
    case ACTIVATION_LEAKY_RELU: return x > 0.0f ? x : alpha * x;
    case ACTIVATION_ELU: return x > 0.0f ? x : alpha * expm1f(x);
    case ACTIVATION_ERF: return erff(x);
    case ACTIVATION_SQRT: return sqrtf(x);
    case ACTIVATION_RECIPROCAL: return 1.0f / x;
    case ACTIVATION_EXP: return expf(x);
    case ACTIVATION_LOG: return logf(x);
    default: return activation_value(function, x);
    }
}

/* What is no number is not below one, nor above it, and stays. */
static inline __device__ float bounded(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* d(value)/dx, from the value; gelu's, erf's and log's from x: Φ(x) + x·φ(x), 2/√π·e^-x². */
static inline __device__ float activation_derivative(enum activation function, float alpha,
                                                     float saved)
{
    const float density_at_0 = 0.39894228040143267794f; /* 1/√(2π) */
    switch (function) {
    case ACTIVATION_SIGMOID: return saved * (1.0f - saved);
    case ACTIVATION_TANH: return 1.0f - saved * saved;
    case ACTIVATION_RELU: return saved > 0.0f ? 1.0f : 0.0f;
    case ACTIVATION_GELU:
        return normal_share(saved) + saved * density_at_0 * expf(-saved * saved / 2.0f);
    case ACTIVATION_SOFTPLUS: return -expm1f(-saved);
    case ACTIVATION_LEAKY_RELU: return saved > 0.0f ? 1.0f : alpha;
    case ACTIVATION_ELU: return saved > 0.0f ? 1.0f : saved + alpha;
    case ACTIVATION_ERF: return 1.12837916709551257390f * expf(-saved * saved);
    case ACTIVATION_SQRT: return 0.5f / saved;
    case ACTIVATION_RECIPROCAL: return -saved * saved;
    case ACTIVATION_EXP: return saved;
    case ACTIVATION_LOG: return 1.0f / saved;
    default: return 1.0f;
    }
}

#endif
