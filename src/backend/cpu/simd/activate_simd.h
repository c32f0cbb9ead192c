/* activate_simd.h: activations on vectors, in place; part of each ISA's dense kernels (their
 * epilogue). exp is a polynomial of degree 6 after taking out powers of two. Over floats of every
 * size within ±80 (tests/test_simd.c) the sigmoid is within 3.1 ulp, tanh within 1.4. */
#ifndef PRONY_BACKEND_CPU_SIMD_ACTIVATE_SIMD_H
#define PRONY_BACKEND_CPU_SIMD_ACTIVATE_SIMD_H

#include "backend/cpu/simd/vec.h"
#include "core/program.h"

#include <math.h>
#include <string.h>

static inline vec vec_exp(vec x)
{
    x = vec_min(vec_max(x, vec_set(-87.0f)), vec_set(88.0f));
    vec k = vec_round(vec_mul(x, vec_set(1.44269504f)));
    vec r = vec_fnma(k, vec_set(0.693359375f), x);
    r = vec_fnma(k, vec_set(-2.12194440e-4f), r);
    vec p = vec_set(1.9875691500e-4f);
    p = vec_fma(p, r, vec_set(1.3981999507e-3f));
    p = vec_fma(p, r, vec_set(8.3334519073e-3f));
    p = vec_fma(p, r, vec_set(4.1665795894e-2f));
    p = vec_fma(p, r, vec_set(1.6666665459e-1f));
    p = vec_fma(p, r, vec_set(5.0000001201e-1f));
    p = vec_fma(p, vec_mul(r, r), vec_add(r, vec_set(1.0f)));
    return vec_scale(p, k);
}

static inline vec vec_sigmoid(vec x)
{
    vec one = vec_set(1.0f);
    return vec_div(one, vec_add(one, vec_exp(vec_mul(x, vec_set(-1.0f)))));
}

/* Near 0 a polynomial of its own; elsewhere 1 - 2 / (e^2|x| + 1). */
static inline vec vec_tanh(vec x)
{
    vec z = vec_mul(x, x), size = vec_abs(x), one = vec_set(1.0f);
    vec p = vec_set(-5.70498872745e-3f);
    p = vec_fma(p, z, vec_set(2.06390887954e-2f));
    p = vec_fma(p, z, vec_set(-5.37397155531e-2f));
    p = vec_fma(p, z, vec_set(1.33314422036e-1f));
    p = vec_fma(p, z, vec_set(-3.33332819422e-1f));
    vec small = vec_fma(vec_mul(p, z), x, x);
    vec e = vec_exp(vec_add(size, size));
    vec large = vec_fnma(vec_set(2.0f), vec_div(one, vec_add(e, one)), one);
    return vec_where_small(x, 0.625f, small, vec_sign_of(x, large));
}

static inline vec vec_activate(int32_t function, vec x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return vec_sigmoid(x);
    case ACTIVATION_TANH: return vec_tanh(x);
    case ACTIVATION_RELU: return vec_max(x, vec_zero());
    default: return x;
    }
}

/* y = f(x); x may be y. Neither need be aligned; the last few go through a buffer. */
static void activate_span(int32_t function, const float *x, float *y, int64_t count)
{
    _Alignas(64) float buffer[VEC_LANES];
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        int64_t width = count - i < VEC_LANES ? count - i : VEC_LANES;
        memset(buffer, 0, sizeof buffer);
        memcpy(buffer, x + i, (size_t)width * sizeof *buffer);
        vec_store(buffer, vec_activate(function, vec_load(buffer)));
        memcpy(y + i, buffer, (size_t)width * sizeof *buffer);
    }
}

#endif
