/* lanes_simd.h: samples into lanes and back, compiled once per ISA. A tile of `lanes` (VEC_LANES)
 * samples of a tensor [n, …] becomes [element][lane]: then whatever is the same for all samples, a
 * convolution with 6 channels of 5 columns too, fills whole vectors. Blocks of lanes × lanes are
 * turned in registers: about 5 cycles a vector, which a few multiply-adds per element pay for. */
#ifndef PRONY_BACKEND_CPU_SIMD_LANES_SIMD_H
#define PRONY_BACKEND_CPU_SIMD_LANES_SIMD_H

#include "backend/cpu/simd/vec.h"

#if defined(__AVX512F__)
/* v[i] lane j ⇄ v[j] lane i */
static inline void vec_transpose(vec *v)
{
    vec a[16], b[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    /* pairs of pairs: lane 4k of b[i + m] now has column 4k + m of rows i … i + 3 */
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
        b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int m = 0; m < 4; m++) {
        vec low01 = _mm512_shuffle_f32x4(b[m], b[4 + m], 0x88);
        vec high01 = _mm512_shuffle_f32x4(b[m], b[4 + m], 0xDD);
        vec low23 = _mm512_shuffle_f32x4(b[8 + m], b[12 + m], 0x88);
        vec high23 = _mm512_shuffle_f32x4(b[8 + m], b[12 + m], 0xDD);
        v[m] = _mm512_shuffle_f32x4(low01, low23, 0x88);
        v[8 + m] = _mm512_shuffle_f32x4(low01, low23, 0xDD);
        v[4 + m] = _mm512_shuffle_f32x4(high01, high23, 0x88);
        v[12 + m] = _mm512_shuffle_f32x4(high01, high23, 0xDD);
    }
}
#else
static inline void vec_transpose(vec *v)
{
    vec a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int m = 0; m < 4; m++) {
        v[m] = _mm256_permute2f128_ps(b[m], b[4 + m], 0x20);
        v[4 + m] = _mm256_permute2f128_ps(b[m], b[4 + m], 0x31);
    }
}
#endif

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
