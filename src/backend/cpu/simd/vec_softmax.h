/* vec_softmax.h: the softmax of one row. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_SOFTMAX_H
#define PRONY_BACKEND_CPU_SIMD_VEC_SOFTMAX_H

#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_span.h"

/* p = e^(x - max) / Σ; exponentials are within 1.3 ulp. Returns ln Σ e^x. p may be x. */
static inline float softmax_row(const float *x, float *p, int64_t count)
{
    float most = largest_span(x, count), total = 0;
    vec shift = vec_set(most);
    for (int64_t k = 0; k < count; k += VEC_LANES)
        vec_store_part(p + k, vec_exp(vec_sub(vec_load_part(x + k, count - k), shift)), count - k);
    total = sum_span(p, count);
    vec divisor = vec_set(total);
    for (int64_t k = 0; k < count; k += VEC_LANES)
        vec_store_part(p + k, vec_div(vec_load_part(p + k, count - k), divisor), count - k);
    return most + logf(total);
}

#endif
