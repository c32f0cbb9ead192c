/* pick_simd.h: vectors of elements a stride apart, and the larger of two with its index. */
#ifndef PRONY_BACKEND_CPU_SIMD_PICK_SIMD_H
#define PRONY_BACKEND_CPU_SIMD_PICK_SIMD_H

#include "backend/cpu/simd/vec.h"

#if defined(__AVX512F__)
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
#else
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

/* x[0], x[2], …; bit 2·i of the mask says whether there is a lane i, else it is 0. */
static inline vec pick_second(const float *x, uint32_t mask)
{
    return pick_even(vec_load_mask(x, mask), vec_load_mask(x + VEC_LANES, mask >> VEC_LANES));
}

/* x[0], x[stride], … for `count` lanes; reads nothing behind the last of them. */
static inline vec pick_strided(const float *x, int64_t stride, int64_t count)
{
    if (stride == 1)
        return vec_load_part(x, count);
    if (stride == 2) {
        int64_t span = 2 * count - 1;
        vec behind = span > VEC_LANES ? vec_load_part(x + VEC_LANES, span - VEC_LANES) : vec_zero();
        return pick_even(vec_load_part(x, span), behind);
    }
    _Alignas(64) float lanes[VEC_LANES] = {0};
    for (int64_t i = 0; i < count; i++)
        lanes[i] = x[i * stride];
    return vec_load(lanes);
}

#endif
