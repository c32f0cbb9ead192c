/* vec.h: one vector type for the kernels that are compiled once per ISA. VEC_LANES floats; VEC_MOST
 * is how many accumulators a kernel may keep in registers. */
#ifndef PRONY_BACKEND_CPU_SIMD_VEC_H
#define PRONY_BACKEND_CPU_SIMD_VEC_H

#include <immintrin.h>
#include <stdint.h>

/* The floats 2^(j/8), j from 0 to 7, each less j << 20: shifting k by 20 puts its whole eights into
 * the exponent, and its rest j there too. */
static const _Alignas(32) int32_t vec_eighths[8] = {0x3F800000, 0x3F7B95C2, 0x3F7837F0, 0x3F75FED7,
                                                    0x3F7504F3, 0x3F75672A, 0x3F7744FD, 0x3F7AC0C7};

#if defined(__AVX512F__)
enum { VEC_LANES = 16, VEC_MOST = 24 };
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
static inline __m128 vec_fold(vec v)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v),
                                _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
/* c[4r + k] -= rate · (the sum over the quarters of v[r] of their lane k); turned[4k + r], unless
 * it is NULL, becomes the same. */
static inline __attribute__((always_inline)) void vec_fold_step(const vec *v, vec rate, float *c,
                                                                float *turned)
{
    const __m512i columns = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    vec low =
        vec_add(_mm512_shuffle_f32x4(v[0], v[1], 0x88), _mm512_shuffle_f32x4(v[0], v[1], 0xDD));
    vec high =
        vec_add(_mm512_shuffle_f32x4(v[2], v[3], 0x88), _mm512_shuffle_f32x4(v[2], v[3], 0xDD));
    vec all = vec_add(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD));
    all = vec_fnma(all, rate, vec_load(c));
    vec_store(c, all);
    if (turned)
        vec_store(turned, _mm512_permutexvar_ps(columns, all));
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
#elif defined(__AVX2__)
enum { VEC_LANES = 8, VEC_MOST = 12 };
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
static inline __m128 vec_fold(vec v)
{
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
static inline __attribute__((always_inline)) void vec_fold_step(const vec *v, vec rate, float *c,
                                                                float *turned)
{
    const __m256i columns = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    vec rows[2];
    for (int half = 0; half < 2; half++, v += 2, c += VEC_LANES) {
        vec sum = vec_add(_mm256_permute2f128_ps(v[0], v[1], 0x20),
                          _mm256_permute2f128_ps(v[0], v[1], 0x31));
        vec_store(c, rows[half] = vec_fnma(sum, rate, vec_load(c)));
    }
    if (!turned)
        return;
    vec_store(turned, _mm256_permutevar8x32_ps(_mm256_unpacklo_ps(rows[0], rows[1]), columns));
    vec_store(turned + VEC_LANES,
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
#endif

/* Into L2: what streams once must not push the activations out of L1. A macro: gcc 12 takes a
 * function that only prefetches for one without effect and drops its calls. */
#define vec_prefetch(address) _mm_prefetch((const char *)(address), _MM_HINT_T1)

/* sum += value · the vector at an address, which the instruction itself reads: gcc would load it
 * into a register once for all that use it. Where the next line is on its way from memory, reading
 * the nearest lines at once and then again from L1 is faster than loads that wait one by one. */
#define vec_fma_at(sum, value, address)                                                            \
    __asm__("vfmadd231ps %2, %1, %0"                                                               \
            : "+v"(sum)                                                                            \
            : "v"(value), "m"(*(const vec *)(const void *)(address)))

/* Keeps a loaded value in its register: gcc would rather load it again in every instruction that
 * uses it, and loads are what these loops are short of. */
#define vec_pin(value) __asm__("" : "+v"(value))

#endif
