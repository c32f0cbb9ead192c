/* vec_avx2.h: vec.h for AVX2 and FMA: 8 floats in one of 16 registers. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_AVX2_H
#define PRONY_BACKEND_CPU_SIMD_VEC_AVX2_H

#include "backend/cpu/simd/vec_x86.h"

#define VEC_LANES 8
#define VEC_MOST 12
typedef __m256 vec;
#define vec_load _mm256_load_ps
#define vec_store _mm256_store_ps
#define vec_set _mm256_set1_ps
#define vec_zero _mm256_setzero_ps
#define vec_fma _mm256_fmadd_ps
#define vec_fnma _mm256_fnmadd_ps
#define vec_fnms _mm256_fnmsub_ps
#define vec_mul _mm256_mul_ps
#define vec_add _mm256_add_ps
#define vec_sub _mm256_sub_ps
#define vec_div _mm256_div_ps
#define vec_sqrt _mm256_sqrt_ps
#define vec_max _mm256_max_ps
#define vec_min _mm256_min_ps
static inline vec vec_eighth_power(vec k)
{
    __m256i bits = _mm256_castps_si256(k);
    __m256i eighths = _mm256_load_si256((const __m256i *)vec_eighths);
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_permutevar8x32_epi32(eighths, bits), _mm256_slli_epi32(bits, 20)));
}
static inline vec vec_low_bf16(vec words)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
}
static inline vec vec_high_bf16(vec words)
{
    return _mm256_and_ps(words, _mm256_castsi256_ps(_mm256_set1_epi32((int32_t)0xFFFF0000)));
}
static inline vec vec_negative(vec v)
{
    return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
}
static inline vec vec_abs(vec v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}
static inline vec vec_split(vec v, vec *mantissa)
{
    const vec infinite = vec_set(__builtin_inff());
    vec small = _mm256_cmp_ps(v, vec_set(0x1p-126f), _CMP_LT_OQ), k;
    vec normal = _mm256_blendv_ps(v, vec_mul(v, vec_set(0x1p25f)), small);
    __m256i bits = _mm256_castps_si256(normal);
    k = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127)));
    k = vec_sub(k, _mm256_and_ps(small, vec_set(25)));
    *mantissa = _mm256_castsi256_ps(_mm256_or_si256(
        _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFF)), _mm256_set1_epi32(0x3F800000)));
    k = _mm256_blendv_ps(k, v, _mm256_cmp_ps(v, infinite, _CMP_NLT_UQ)); /* ∞, and what is none */
    k = _mm256_blendv_ps(k, _mm256_sub_ps(vec_zero(), infinite),
                         _mm256_cmp_ps(v, vec_zero(), _CMP_EQ_OQ));
    return _mm256_blendv_ps(k, vec_set(__builtin_nanf("")),
                            _mm256_cmp_ps(v, vec_zero(), _CMP_LT_OQ));
}
static inline vec vec_lane(vec v, int32_t i)
{
    return _mm256_permutevar8x32_ps(v, _mm256_set1_epi32(i));
}
static inline float vec_low(vec v)
{
    return _mm256_cvtss_f32(v);
}
#define vec_quarter_lane(v, j) _mm256_permute_ps(v, (j)*0x55)
#define vec_quarter_put(into, v, j) _mm256_blend_ps(into, _mm256_permute_ps(v, 0), 0x11 << (j))
static inline vec vec_repeat(const float *four)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)four);
}
static inline quad vec_fold(vec v)
{
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
static inline __attribute__((always_inline)) void vec_fold_step(const vec *v, vec rate, float *c,
                                                                float *transposed)
{
    const __m256i columns = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vec rows[2];
    for (int half = 0; half < 2; half++, v += 2, c += VEC_LANES) {
        vec sum = vec_add(_mm256_permute2f128_ps(v[0], v[1], 0x20),
                          _mm256_permute2f128_ps(v[0], v[1], 0x31));
        vec_store(c, rows[half] = vec_fnma(sum, rate, vec_load(c)));
    }
    if (!transposed)
        return;
    vec_store(transposed, _mm256_permutevar8x32_ps(_mm256_unpacklo_ps(rows[0], rows[1]), columns));
    vec_store(transposed + VEC_LANES,
              _mm256_permutevar8x32_ps(_mm256_unpackhi_ps(rows[0], rows[1]), columns));
}
static inline vec vec_where_small(vec v, float limit, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(vec_abs(v), vec_set(limit), _CMP_LT_OQ));
}
static inline vec vec_sign_of(vec v, vec magnitude)
{
    return _mm256_or_ps(magnitude, _mm256_and_ps(v, _mm256_set1_ps(-0.0f)));
}
static inline void vec_sum4(vec a, vec b, vec c, vec d, float *out)
{
    vec ab = vec_add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    vec cd = vec_add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    vec all = vec_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
static inline float vec_sum(vec v)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
#define vec_load_any _mm256_loadu_ps
#define vec_store_any _mm256_storeu_ps
static inline __m256i vec_mask_of(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_first(vec v, int64_t n)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(vec_mask_of(n)));
}
static inline vec vec_load_part(const float *from, int64_t count)
{
    if (count >= VEC_LANES)
        return vec_load_any(from);
    return _mm256_maskload_ps(from, vec_mask_of(count));
}
static inline void vec_store_part(float *to, vec v, int64_t count)
{
    if (count >= VEC_LANES)
        vec_store_any(to, v);
    else
        _mm256_maskstore_ps(to, vec_mask_of(count), v);
}
static inline __m256i vec_mask_bits(uint32_t mask)
{
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bits), bits);
}
static inline vec vec_load_mask(const float *from, uint32_t mask)
{
    return _mm256_maskload_ps(from, vec_mask_bits(mask));
}
static inline vec vec_choose_positive(vec v, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(v, vec_zero(), _CMP_GT_OQ));
}

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

typedef __m256i pick_index;
static inline vec pick_even(vec a, vec b)
{
    vec mixed = _mm256_shuffle_ps(a, b, 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xD8));
}
static inline vec pick_odd(vec a, vec b)
{
    vec mixed = _mm256_shuffle_ps(a, b, 0xDD);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xD8));
}
static inline vec pick_largest(vec a, vec b)
{
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
static inline pick_index pick_series(int32_t step)
{
    return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(step));
}
static inline pick_index pick_moved(pick_index index, int32_t by)
{
    return _mm256_add_epi32(index, _mm256_set1_epi32(by));
}
static inline void pick_larger(vec value, pick_index index, vec *best, pick_index *best_index)
{
    vec larger = _mm256_or_ps(_mm256_cmp_ps(value, *best, _CMP_GT_OQ),
                              _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    *best = _mm256_blendv_ps(*best, value, larger);
    *best_index = _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(*best_index), _mm256_castsi256_ps(index), larger));
}
static inline vec pick_masked(const float *x, int32_t step, uint32_t mask)
{
    return _mm256_mask_i32gather_ps(vec_zero(), x, pick_series(step),
                                    _mm256_castsi256_ps(vec_mask_bits(mask)), 4);
}
static inline void pick_store(int32_t *to, pick_index index, int64_t count)
{
    _mm256_maskstore_epi32(to, vec_mask_of(count), index);
}

#endif
