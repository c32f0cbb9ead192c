/* vec_span.h: what kernels over plain spans of floats share. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_SPAN_H
#define PRONY_BACKEND_CPU_SIMD_VEC_SPAN_H

#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/vec.h"

static inline float *floats(const struct call *call, int operand)
{
    return call->data[operand];
}

static inline float sum_span(const float *x, int64_t count)
{
    vec a = vec_zero(), b = vec_zero();
    int64_t i = 0;
    for (; i + 2 * VEC_LANES <= count; i += 2 * VEC_LANES) {
        a = vec_add(a, vec_load_any(x + i));
        b = vec_add(b, vec_load_any(x + i + VEC_LANES));
    }
    for (; i < count; i += VEC_LANES)
        a = vec_add(a, vec_load_part(x + i, count - i));
    return vec_sum(vec_add(a, b));
}

/* NaN is passed over; without elements the largest is -∞. */
static inline float largest_span(const float *x, int64_t count)
{
    float most = -__builtin_inff(), lanes[VEC_LANES];
    int64_t i = 0;
    if (count >= VEC_LANES) {
        vec best = vec_set(most);
        for (; i + VEC_LANES <= count; i += VEC_LANES)
            best = vec_max(vec_load_any(x + i), best); /* the second where one is NaN */
        vec_store_any(lanes, best);
        for (int k = 0; k < VEC_LANES; k++)
            most = lanes[k] > most ? lanes[k] : most;
    }
    for (; i < count; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* The sum of `rows` rows, `stride` apart, in their first `count` columns, at most a vector. */
static inline vec sum_rows_at(const float *x, int64_t rows, int64_t stride, int64_t count)
{
    vec a = vec_zero(), b = vec_zero();
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
        a = vec_add(a, vec_load_part(x + r * stride, count));
        b = vec_add(b, vec_load_part(x + (r + 1) * stride, count));
    }
    return r < rows ? vec_add(vec_add(a, b), vec_load_part(x + r * stride, count)) : vec_add(a, b);
}

#endif
