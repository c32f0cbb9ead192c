/* vec_avx512.h: vec.h for AVX-512: 16 floats in one of 32 registers. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_AVX512_H
#define PRONY_BACKEND_CPU_SIMD_VEC_AVX512_H

#include "backend/cpu/simd/vec_x86.h"

#define VEC_LANES 16
#define VEC_MOST 24
typedef __m512 vec;
#define vec_load _mm512_load_ps
#define vec_store _mm512_store_ps
#define vec_set _mm512_set1_ps
#define vec_zero _mm512_setzero_ps
#define vec_fma _mm512_fmadd_ps   /* a·b + c */
#define vec_fnma _mm512_fnmadd_ps /* c - a·b */
#define vec_fnms _mm512_fnmsub_ps /* -c - a·b */
#define vec_mul _mm512_mul_ps
#define vec_add _mm512_add_ps
#define vec_sub _mm512_sub_ps
#define vec_div _mm512_div_ps
#define vec_sqrt _mm512_sqrt_ps
#define vec_max _mm512_max_ps
#define vec_min _mm512_min_ps
#define vec_sum _mm512_reduce_add_ps
/* 2^(k/8), k being the whole number in the low bits. */
static inline vec vec_eighth_power(vec k)
{
    __m512i bits = _mm512_castps_si512(k);
    __m512i eighths = _mm512_broadcast_i64x4(_mm256_load_si256((const __m256i *)vec_eighths));
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_permutexvar_epi32(bits, eighths), _mm512_slli_epi32(bits, 20)));
}
/* A lane holds two bf16 (narrow.h): as floats the low ones … */
static inline vec vec_low_bf16(vec words)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
}
/* … and the high ones. */
static inline vec vec_high_bf16(vec words)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32((int32_t)0xFFFF0000)));
}
static inline vec vec_negative(vec v)
{
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN)));
}
/* where |v| < limit: a, else b */
static inline vec vec_where_small(vec v, float limit, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(v), vec_set(limit), _CMP_LT_OQ), b,
                                a);
}
static inline vec vec_abs(vec v)
{
    return _mm512_abs_ps(v);
}
/* v = mantissa·2^k, mantissa from 1 to below 2; gives k. Of 0 it is -∞, of ∞ ∞, and below 0 nothing
 * is a number. */
static inline vec vec_split(vec v, vec *mantissa)
{
    *mantissa = _mm512_getmant_ps(v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    return _mm512_getexp_ps(v);
}
/* Lane i everywhere. */
static inline vec vec_lane(vec v, int32_t i)
{
    return _mm512_permutexvar_ps(_mm512_set1_epi32(i), v);
}
static inline float vec_low(vec v)
{
    return _mm512_cvtss_f32(v);
}
/* The first n lanes; the others are 0. */
static inline vec vec_first(vec v, int64_t n)
{
    return _mm512_maskz_mov_ps((__mmask16)((1u << n) - 1), v);
}
/* Each quarter of 4 lanes: its lane j everywhere. j is a constant. */
#define vec_quarter_lane(v, j) _mm512_permute_ps(v, (j)*0x55)
/* Lane 0 of each quarter of v becomes lane j of that of `into`. j is a constant. */
#define vec_quarter_put(into, v, j) _mm512_mask_permute_ps(into, (__mmask16)(0x1111 << (j)), v, 0)
/* Four floats in every quarter. */
static inline vec vec_repeat(const float *four)
{
    return _mm512_broadcast_f32x4(_mm_load_ps(four));
}
/* The sum of the quarters. */
static inline quad vec_fold(vec v)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v),
                                _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
/* c[4r + k] -= rate · (the sum over the quarters of v[r] of their lane k); transposed[4k + r],
 * unless it is NULL, becomes the same. */
static inline __attribute__((always_inline)) void vec_fold_step(const vec *v, vec rate, float *c,
                                                                float *transposed)
{
    const __m512i columns = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    vec low =
        vec_add(_mm512_shuffle_f32x4(v[0], v[1], 0x88), _mm512_shuffle_f32x4(v[0], v[1], 0xDD));
    vec high =
        vec_add(_mm512_shuffle_f32x4(v[2], v[3], 0x88), _mm512_shuffle_f32x4(v[2], v[3], 0xDD));
    vec all = vec_add(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD));
    all = vec_fnma(all, rate, vec_load(c));
    vec_store(c, all);
    if (transposed)
        vec_store(transposed, _mm512_permutexvar_ps(columns, all));
}
/* out[0 … 3]: the sums of four vectors, with a third of the work of four vec_sum */
static inline void vec_sum4(vec a, vec b, vec c, vec d, float *out)
{
    vec ab = vec_add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    vec cd = vec_add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    vec all = vec_add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
    all = vec_add(all, _mm512_shuffle_f32x4(all, all, 0x4E));
    all = vec_add(all, _mm512_shuffle_f32x4(all, all, 0xB1));
    _mm_storeu_ps(out, _mm512_castps512_ps128(all));
}
static inline vec vec_sign_of(vec v, vec magnitude)
{
    const __m512i bit = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude),
                                               _mm512_and_si512(_mm512_castps_si512(v), bit)));
}
#define vec_load_any _mm512_loadu_ps /* from any address */
#define vec_store_any _mm512_storeu_ps
/* The first `count` lanes, at most all; the others are 0, and are not touched in memory. */
static inline vec vec_load_part(const float *from, int64_t count)
{
    if (count >= VEC_LANES)
        return vec_load_any(from);
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}
static inline void vec_store_part(float *to, vec v, int64_t count)
{
    if (count >= VEC_LANES)
        vec_store_any(to, v);
    else
        _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), v);
}
/* The lanes whose bit is set; the others are 0, and are not touched in memory. */
static inline vec vec_load_mask(const float *from, uint32_t mask)
{
    return _mm512_maskz_loadu_ps((__mmask16)mask, from);
}
/* where v > 0: a, else b */
static inline vec vec_choose_positive(vec v, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, vec_zero(), _CMP_GT_OQ), b, a);
}

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

typedef __m512i pick_index;
/* Every second element of two vectors. */
static inline vec pick_even(vec a, vec b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b);
}
/* And those between them. */
static inline vec pick_odd(vec a, vec b)
{
    return _mm512_permutex2var_ps(
        a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b);
}
/* The larger of each lane; a NaN is larger than anything. */
static inline vec pick_largest(vec a, vec b)
{
    return _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}
/* 0, step, 2·step, … */
static inline pick_index pick_series(int32_t step)
{
    return _mm512_mullo_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        _mm512_set1_epi32(step));
}
static inline pick_index pick_moved(pick_index index, int32_t by)
{
    return _mm512_add_epi32(index, _mm512_set1_epi32(by));
}
/* Takes value where it is larger than what is there; a NaN is larger than anything. */
static inline void pick_larger(vec value, pick_index index, vec *best, pick_index *best_index)
{
    __mmask16 larger = (__mmask16)(_mm512_cmp_ps_mask(value, *best, _CMP_GT_OQ) |
                                   _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q));
    *best = _mm512_mask_mov_ps(*best, larger, value);
    *best_index = _mm512_mask_mov_epi32(*best_index, larger, index);
}
/* x[0], x[step], …: the lanes whose bit is set; the others are 0. */
static inline vec pick_masked(const float *x, int32_t step, uint32_t mask)
{
    return _mm512_mask_i32gather_ps(vec_zero(), (__mmask16)mask, pick_series(step), x, 4);
}
static inline void pick_store(int32_t *to, pick_index index, int64_t count)
{
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << count) - 1), index);
}

#endif
