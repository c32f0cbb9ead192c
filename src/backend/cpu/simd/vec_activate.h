/* vec_activate.h: activations on vectors and their derivatives, part of each ISA's kernels. exp is
 * a polynomial of degree 3 after taking out eighths of powers of two. Over floats of every size
 * within ±80 (tests/backend/test_simd.c) exp is within 1.2 ulp, the sigmoid 2.8, tanh 1.7, softplus
 * 3, gelu 4, erf 2.5, the layers exp and log 3; the square root and 1 / x are the CPU's own,
 * rightly rounded. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_ACTIVATE_H
#define PRONY_BACKEND_CPU_SIMD_VEC_ACTIVATE_H

#include "backend/cpu/simd/vec.h"
#include "core/program.h"

#include <math.h>
#include <string.h>

/* e^x = power + power·rest: power is 2^(k/8), rest e^r - 1 for the rest r of x beyond k eighths of
 * ln 2. What is missing in ln 2 / 8 as a float is made good while r is squared: a short chain is
 * what a small network waits for. The polynomial's error is 3e-8. NaN stays NaN. `negate`: e^-x. */
static inline __attribute__((always_inline)) vec vec_exp_parts(vec x, const bool negate, vec *power)
{
    vec magic = vec_set(0x1.8p23f); /* added, it leaves the nearest whole number in the low bits */
    vec eighth = vec_set(0.0866433978f), k, r;
    x = negate ? vec_min(vec_set(87.0f), vec_max(vec_set(-88.0f), x))
               : vec_min(vec_set(88.0f), vec_max(vec_set(-87.0f), x));
    vec shifted = vec_fma(x, vec_set(negate ? -11.5415603f : 11.5415603f), magic);
    k = vec_sub(shifted, magic);
    r = negate ? vec_fnms(k, eighth, x) : vec_fnma(k, eighth, x);
    vec curve = vec_fma(r, vec_set(0.166678f), vec_set(0.50006f));
    *power = vec_eighth_power(shifted);
    return vec_fma(vec_mul(r, r), curve, vec_fma(k, vec_set(2.38082e-10f), r));
}

static inline vec vec_exp(vec x)
{
    vec power, rest = vec_exp_parts(x, false, &power);
    return vec_fma(power, rest, power);
}

static inline vec vec_sigmoid(vec x)
{
    vec one = vec_set(1.0f), power, rest = vec_exp_parts(x, true, &power);
    return vec_div(one, vec_fma(power, rest, vec_add(power, one)));
}

/* tanh near 0. */
static inline vec vec_tanh_small(vec x)
{
    vec z = vec_mul(x, x), p = vec_set(-5.70498872745e-3f);
    p = vec_fma(p, z, vec_set(2.06390887954e-2f));
    p = vec_fma(p, z, vec_set(-5.37397155531e-2f));
    p = vec_fma(p, z, vec_set(1.33314422036e-1f));
    p = vec_fma(p, z, vec_set(-3.33332819422e-1f));
    return vec_fma(vec_mul(p, z), x, x);
}

/* Near 0 a polynomial of its own; elsewhere 1 - 2 / (e^2|x| + 1). */
static inline __attribute__((always_inline)) vec vec_tanh(vec x)
{
    vec size = vec_abs(x), one = vec_set(1.0f);
    vec power, rest = vec_exp_parts(vec_add(size, size), false, &power);
    vec large = vec_div(vec_set(-2.0f), vec_fma(power, rest, vec_add(power, one)));
    large = vec_add(large, one);
    return vec_where_small(x, 0.625f, vec_tanh_small(x), vec_sign_of(x, large));
}

/* sigmoid(gate)·tanh(x) by one division; tanh is (e^2|x| - 1) / (e^2|x| + 1) but near 0. Beyond 10
 * it is 1, and what is below the line stays a float. */
static inline vec vec_gated_tanh(vec gate, vec x)
{
    vec size = vec_min(vec_set(10.0f), vec_abs(x)), one = vec_set(1.0f), power, gate_power;
    vec rest = vec_exp_parts(vec_add(size, size), false, &power);
    vec above = vec_fma(power, rest, vec_sub(power, one));
    vec below = vec_fma(power, rest, vec_add(power, one));
    above = vec_where_small(x, 0.625f, vec_tanh_small(x), vec_sign_of(x, above));
    below = vec_where_small(x, 0.625f, one, below);
    rest = vec_exp_parts(gate, true, &gate_power);
    return vec_div(above, vec_mul(below, vec_fma(gate_power, rest, vec_add(gate_power, one))));
}

static inline __attribute__((always_inline)) vec vec_activate(int32_t function, vec x)
{
    switch (function) {
    case ACTIVATION_SIGMOID: return vec_sigmoid(x);
    case ACTIVATION_TANH: return vec_tanh(x);
    case ACTIVATION_RELU: return vec_max(vec_zero(), x); /* NaN stays NaN */
    default: return x;
    }
}

/* e^x - 1 for x ≤ 0: near 0 by its series. */
static inline vec vec_expm1(vec x)
{
    vec p = vec_set(2.48015873e-5f);
    p = vec_fma(p, x, vec_set(1.98412698e-4f));
    p = vec_fma(p, x, vec_set(1.38888889e-3f));
    p = vec_fma(p, x, vec_set(8.33333333e-3f));
    p = vec_fma(p, x, vec_set(4.16666667e-2f));
    p = vec_fma(p, x, vec_set(1.66666667e-1f));
    p = vec_fma(p, x, vec_set(0.5f));
    vec small = vec_fma(vec_mul(p, x), x, x);
    return vec_where_small(x, 0.5f, small, vec_sub(vec_exp(x), vec_set(1.0f)));
}

/* ln(1 + u) for u from 0 to 1: 2·artanh(s) with s = u / (2 + u). */
static inline vec vec_log1p(vec u)
{
    vec s = vec_div(u, vec_add(u, vec_set(2.0f))), z = vec_mul(s, s);
    vec p = vec_set(2.0f / 15);
    p = vec_fma(p, z, vec_set(2.0f / 13));
    p = vec_fma(p, z, vec_set(2.0f / 11));
    p = vec_fma(p, z, vec_set(2.0f / 9));
    p = vec_fma(p, z, vec_set(2.0f / 7));
    p = vec_fma(p, z, vec_set(2.0f / 5));
    p = vec_fma(p, z, vec_set(2.0f / 3));
    return vec_fma(vec_mul(p, z), s, vec_add(s, s));
}

static inline vec vec_softplus(vec x)
{
    vec tail = vec_log1p(vec_exp(vec_negative(vec_abs(x))));
    return vec_add(vec_max(x, vec_zero()), tail);
}

/* The share of a standard normal below x, and its bell e^(-x²/2). Beyond |x| there is
 * bell·t·P(t)/2, with t = 3.75 / (3.75 + |x|), and P of degree 8, fitted to 2e-8 up to 13.5. What
 * roundings took from x², from the bell, from t (t·P(t) grows about as t^(1 + 2t²)) and from the
 * products is gathered in `less` and made good at the end. */
static inline vec vec_normal_share(vec x, vec *bell)
{
    x = vec_max(vec_set(-20.0f), vec_min(vec_set(20.0f), x)); /* or x² would be infinite */
    vec half = vec_mul(x, vec_set(-0.5f)), square = vec_mul(half, x), power;
    vec missing = vec_fnma(half, x, square), rest = vec_exp_parts(square, false, &power);
    vec e = vec_fma(power, rest, power), lost = vec_fma(power, rest, vec_sub(power, e));
    vec size = vec_abs(x), c = vec_set(3.75f), d = vec_add(size, c), t = vec_div(c, d);
    vec added = vec_sub(d, size),
        tail = vec_add(vec_sub(c, added), vec_sub(size, vec_sub(d, added)));
    vec off = vec_fnma(t, tail, vec_fnma(t, d, c)); /* t is too small by off / 3.75 of itself */
    vec growth = vec_fma(vec_mul(t, t), vec_set(2 / 3.75f), vec_set(1 / 3.75f));
    vec p = vec_set(0.0613830766f);
    p = vec_fma(p, t, vec_set(-0.281137568f));
    p = vec_fma(p, t, vec_set(0.412086108f));
    p = vec_fma(p, t, vec_set(-0.210342352f));
    p = vec_fma(p, t, vec_set(0.261873859f));
    p = vec_fma(p, t, vec_set(0.125945751f));
    p = vec_fma(p, t, vec_set(0.205447814f));
    p = vec_fma(p, t, vec_set(0.211935636f));
    p = vec_fma(p, t, vec_set(0.212807692f));
    vec tp = vec_mul(p, t), product = vec_mul(tp, e);
    vec less = vec_fma(vec_fnma(p, t, tp), e, vec_fnma(tp, e, product));
    less = vec_fnma(product, vec_fma(off, growth, vec_negative(missing)), vec_fnma(tp, lost, less));
    vec beyond = vec_mul(vec_sub(product, less), vec_set(0.5f));
    *bell = vec_fnma(e, missing, e);
    return vec_choose_positive(x, vec_sub(vec_set(1.0f), beyond), beyond);
}

static inline vec vec_gelu(vec x)
{
    vec bell;
    return vec_mul(x, vec_normal_share(x, &bell));
}

/* Near 0 its series; elsewhere 1 less what lies beyond √2·|x| on both sides. From 4 on it is 1. */
static inline vec vec_erf(vec x)
{
    vec z = vec_mul(x, x), bell;
    vec p = vec_set(1.205533e-4f);
    p = vec_fma(p, z, vec_set(-8.548327e-4f));
    p = vec_fma(p, z, vec_set(5.2239776e-3f));
    p = vec_fma(p, z, vec_set(-2.6866170e-2f));
    p = vec_fma(p, z, vec_set(1.1283792e-1f));
    p = vec_fma(p, z, vec_set(-3.7612639e-1f));
    vec small = vec_fma(vec_mul(p, z), x, vec_mul(x, vec_set(1.1283792f)));
    vec size = vec_min(vec_set(4.0f), vec_abs(x));
    vec beyond = vec_normal_share(vec_mul(size, vec_set(-1.41421356f)), &bell);
    vec large = vec_fnma(vec_set(2.0f), beyond, vec_set(1.0f));
    return vec_where_small(x, 0.5f, small, vec_sign_of(x, large));
}

/* The square of e^(x/2), so that what is too large becomes infinite, and what is too small 0. */
static inline vec vec_exp_layer(vec x)
{
    vec root = vec_exp(vec_mul(x, vec_set(0.5f)));
    return vec_mul(root, root);
}

/* x = m·2^k with m around 1: k·ln 2 + 2·artanh(s) with s = (m - 1) / (m + 1). ln 2 is in two parts,
 * the first so short that its product with k is exact. */
static inline vec vec_log(vec x)
{
    vec m, k = vec_split(x, &m), one = vec_set(1.0f), over = vec_sub(m, vec_set(1.41421356f));
    k = vec_choose_positive(over, vec_add(k, one), k);
    m = vec_choose_positive(over, vec_mul(m, vec_set(0.5f)), m);
    vec s = vec_div(vec_sub(m, one), vec_add(m, one)), z = vec_mul(s, s);
    vec p = vec_set(2.0f / 11);
    p = vec_fma(p, z, vec_set(2.0f / 9));
    p = vec_fma(p, z, vec_set(2.0f / 7));
    p = vec_fma(p, z, vec_set(2.0f / 5));
    p = vec_fma(p, z, vec_set(2.0f / 3));
    vec rest = vec_fma(vec_mul(p, z), s, vec_add(s, s));
    return vec_fma(k, vec_set(0x1.62ep-1f), vec_fma(k, vec_set(3.19461850e-5f), rest));
}

/* Every function; alpha is leaky_relu's slope and elu's limit. */
static inline vec vec_function(int32_t function, vec x, float alpha)
{
    switch (function) {
    case ACTIVATION_GELU: return vec_gelu(x);
    case ACTIVATION_SOFTPLUS: return vec_softplus(x);
    case ACTIVATION_LEAKY_RELU: return vec_choose_positive(x, x, vec_mul(x, vec_set(alpha)));
    case ACTIVATION_ELU: return vec_choose_positive(x, x, vec_mul(vec_expm1(x), vec_set(alpha)));
    case ACTIVATION_ERF: return vec_erf(x);
    case ACTIVATION_SQRT: return vec_sqrt(x);
    case ACTIVATION_RECIPROCAL: return vec_div(vec_set(1.0f), x);
    case ACTIVATION_EXP: return vec_exp_layer(x);
    case ACTIVATION_LOG: return vec_log(x);
    default: return vec_activate(function, x);
    }
}

/* The derivative at a point, from the function's value there; gelu's, erf's and log's from the
 * point.
 */
static inline vec vec_derivative(int32_t function, vec saved, float alpha)
{
    vec one = vec_set(1.0f);
    switch (function) {
    case ACTIVATION_SIGMOID: return vec_fnma(saved, saved, saved);
    case ACTIVATION_TANH: return vec_fnma(saved, saved, one);
    case ACTIVATION_RELU: return vec_choose_positive(saved, one, vec_zero());
    case ACTIVATION_GELU: {
        vec bell, share = vec_normal_share(saved, &bell);
        return vec_fma(saved, vec_mul(bell, vec_set(0.3989422804f)), share);
    }
    case ACTIVATION_SOFTPLUS: return vec_negative(vec_expm1(vec_negative(saved)));
    case ACTIVATION_LEAKY_RELU: return vec_choose_positive(saved, one, vec_set(alpha));
    case ACTIVATION_ELU: return vec_choose_positive(saved, one, vec_add(saved, vec_set(alpha)));
    case ACTIVATION_ERF:
        return vec_mul(vec_exp(vec_negative(vec_mul(saved, saved))), vec_set(1.1283792f));
    case ACTIVATION_SQRT: return vec_div(vec_set(0.5f), saved);
    case ACTIVATION_RECIPROCAL: return vec_negative(vec_mul(saved, saved));
    case ACTIVATION_EXP: return saved;
    case ACTIVATION_LOG: return vec_div(one, saved);
    default: return one;
    }
}

/* x between two numbers. Where one is NaN the instruction gives its second operand: NaN stays. */
static inline vec vec_bound(vec x, vec low, vec high)
{
    return vec_min(high, vec_max(low, x));
}

/* y = f(x); x may be y. */
static inline __attribute__((always_inline)) void
activate_loop(const int32_t function, float alpha, const float *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_LANES)
        vec_store_part(y + i, vec_function(function, vec_load_part(x + i, count - i), alpha),
                       count - i);
}

/* dx = dy · the derivative; dx may be dy. */
static inline __attribute__((always_inline)) void
activate_grad_loop(const int32_t function, float alpha, const float *saved, const float *dy,
                   float *dx, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        vec derivative = vec_derivative(function, vec_load_part(saved + i, count - i), alpha);
        vec_store_part(dx + i, vec_mul(vec_load_part(dy + i, count - i), derivative), count - i);
    }
}

/* The function is known in each loop, so that its code is in it and nothing else. */
#define BY_FUSED_FUNCTION(CASE_OF)                                                                 \
    CASE_OF(NONE)                                                                                  \
    CASE_OF(SIGMOID)                                                                               \
    CASE_OF(TANH)                                                                                  \
    CASE_OF(RELU)                                                                                  \
    CASE_OF(GELU)                                                                                  \
    CASE_OF(SOFTPLUS)
#define BY_FUNCTION(CASE_OF)                                                                       \
    BY_FUSED_FUNCTION(CASE_OF)                                                                     \
    CASE_OF(LEAKY_RELU)                                                                            \
    CASE_OF(ELU)                                                                                   \
    CASE_OF(ERF)                                                                                   \
    CASE_OF(SQRT)                                                                                  \
    CASE_OF(RECIPROCAL)                                                                            \
    CASE_OF(EXP)                                                                                   \
    CASE_OF(LOG)

static inline void activate_alpha_span(int32_t function, float alpha, const float *x, float *y,
                                       int64_t count)
{
#define ACTIVATE(name)                                                                             \
    case ACTIVATION_##name: activate_loop(ACTIVATION_##name, alpha, x, y, count); break;
    switch (function) {
        BY_FUNCTION(ACTIVATE)
    }
#undef ACTIVATE
}

/* The functions without an alpha, which fused ops have too. */
static inline void activate_span(int32_t function, const float *x, float *y, int64_t count)
{
    activate_alpha_span(function, 0, x, y, count);
}

static inline void activate_grad_span(int32_t function, float alpha, const float *saved,
                                      const float *dy, float *dx, int64_t count)
{
#define SLOPE(name)                                                                                \
    case ACTIVATION_##name:                                                                        \
        activate_grad_loop(ACTIVATION_##name, alpha, saved, dy, dx, count);                        \
        break;
    switch (function) {
        BY_FUNCTION(SLOPE)
    }
#undef SLOPE
}

#endif
