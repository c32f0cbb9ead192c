/* vec_lanes.h: samples into lanes and back, compiled once per ISA. A tile of `lanes` (VEC_LANES)
 * samples of a tensor [n, …] becomes [element][lane]: then whatever is the same for all samples, a
 * convolution with 6 channels of 5 columns too, fills whole vectors. Blocks of lanes × lanes are
 * transposed in registers: about 5 cycles a vector, which a few multiply-adds per element pay for.
 */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_LANES_H
#define PRONY_BACKEND_CPU_SIMD_VEC_LANES_H

#include "backend/cpu/simd/vec.h"

/* out[element][lane] = x[lane · stride + element]; lanes without a sample are 0. */
static inline void lanes_from_samples(const float *x, int64_t stride, int64_t samples,
                                      int64_t count, float *out)
{
    for (int64_t j = 0; j < count; j += VEC_LANES) {
        int64_t width = count - j < VEC_LANES ? count - j : VEC_LANES;
        vec row[VEC_LANES];
#pragma GCC unroll 16
        for (int n = 0; n < VEC_LANES; n++)
            row[n] = n < samples ? vec_load_part(x + n * stride + j, width) : vec_zero();
        vec_transpose(row);
        if (width == VEC_LANES)
#pragma GCC unroll 16
            for (int k = 0; k < VEC_LANES; k++)
                vec_store(out + (j + k) * VEC_LANES, row[k]);
        else
            for (int k = 0; k < width; k++)
                vec_store(out + (j + k) * VEC_LANES, row[k]);
    }
}

/* y[lane · stride + element] = in[element][lane] */
static inline void lanes_to_samples(const float *in, int64_t count, float *y, int64_t stride,
                                    int64_t samples)
{
    for (int64_t j = 0; j < count; j += VEC_LANES) {
        int64_t width = count - j < VEC_LANES ? count - j : VEC_LANES;
        vec row[VEC_LANES];
#pragma GCC unroll 16
        for (int k = 0; k < VEC_LANES; k++)
            row[k] = k < width ? vec_load(in + (j + k) * VEC_LANES) : vec_zero();
        vec_transpose(row);
        if (samples == VEC_LANES && width == VEC_LANES)
#pragma GCC unroll 16
            for (int n = 0; n < VEC_LANES; n++)
                vec_store_any(y + n * stride + j, row[n]);
        else
            for (int n = 0; n < samples; n++)
                vec_store_part(y + n * stride + j, row[n], width);
    }
}

#endif
