/* activate_simd.h: activations on vectors, in place; part of each ISA's dense kernels (their
 * epilogue). exp is a polynomial of degree 6 after taking out powers of two. Over floats of every
 * size within ±80 (tests/test_simd.c) the sigmoid is within 3.1 ulp, tanh within 1.4. */
#ifndef PRONY_BACKEND_CPU_SIMD_ACTIVATE_SIMD_H
#define PRONY_BACKEND_CPU_SIMD_ACTIVATE_SIMD_H

#include "backend/cpu/simd/vec.h"
#include "core/program.h"

#include <math.h>
#include <string.h>

/* e^x = p · power, p being e^r for the rest r of x beyond k times ln 2, power 2^k. What is missing
 * in ln 2 as a float is made good in power, meanwhile, and the polynomial (its error is 4e-9) is
 * summed in pairs: a short chain is what a small network waits for. NaN stays NaN. */
static inline vec vec_exp_parts(vec x, vec *power)
{
    vec magic = vec_set(0x1.8p23f); /* added, it leaves the nearest whole number in the low bits */
    x = vec_min(vec_set(88.0f), vec_max(vec_set(-87.0f), x));
    vec shifted = vec_fma(x, vec_set(1.44269504f), magic);
    vec k = vec_sub(shifted, magic);
    vec r = vec_fnma(k, vec_set(0.693147182f), x);
    vec square = vec_mul(r, r);
    vec low = vec_fma(r, vec_set(0.166665196f), vec_set(0.49999994f));
    vec high = vec_fma(r, vec_set(8.36885069e-3f), vec_set(4.16684002e-2f));
    high = vec_fma(square, vec_set(1.38143206e-3f), high);
    low = vec_fma(square, high, low);
    vec whole = vec_power(shifted);
    *power = vec_fma(whole, vec_mul(k, vec_set(1.90465421e-9f)), whole);
    return vec_fma(square, low, vec_add(r, vec_set(1.0f)));
}

static inline vec vec_exp(vec x)
{
    vec power, p = vec_exp_parts(x, &power);
    return vec_mul(p, power);
}

static inline vec vec_sigmoid(vec x)
{
    vec one = vec_set(1.0f), power, p = vec_exp_parts(vec_negative(x), &power);
    return vec_div(one, vec_fma(p, power, one));
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
static inline void activate_span(int32_t function, const float *x, float *y, int64_t count)
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
