/* vec_requantise.h: core/requantise.h for 16 lanes at a time, to the bit; compiled once per ISA.
 * Products have 64 bits, so even and odd lanes are taken apart. */
#ifndef PRONY_BACKEND_CPU_SIMD_NARROW_VEC_REQUANTISE_H
#define PRONY_BACKEND_CPU_SIMD_NARROW_VEC_REQUANTISE_H

#include "backend/cpu/simd/vec.h"
#include "core/requantise.h"

enum { REQUANTISE_LANES = 16 };

/* What 16 channels have. Bounds have the zero point taken off: adding it first might leave 32 bits.
 */
struct requantise_lanes {
    int32_t multiplier[REQUANTISE_LANES], shift[REQUANTISE_LANES];
    int32_t zero, low, high;
};

/* The channels from `lane` on, of which there are `have`. */
static inline struct requantise_lanes requantise_lanes_of(const int32_t *multiplier,
                                                          const int32_t *shift, int64_t lane,
                                                          int64_t have, int32_t zero, int32_t low,
                                                          int32_t high)
{
    struct requantise_lanes lanes = {.zero = zero, .low = low, .high = high};
    for (int64_t k = 0; k < REQUANTISE_LANES; k++) {
        lanes.multiplier[k] = k < have ? multiplier[lane + k] : 0;
        lanes.shift[k] = k < have ? shift[lane + k] : REQUANTISE_SHIFT_LEAST;
    }
    return lanes;
}

/* One channel in all lanes: pixels. */
static inline struct requantise_lanes requantise_lanes_all(int32_t multiplier, int32_t shift,
                                                           int32_t zero, int32_t low, int32_t high)
{
    struct requantise_lanes lanes = {.zero = zero, .low = low, .high = high};
    for (int64_t k = 0; k < REQUANTISE_LANES; k++) {
        lanes.multiplier[k] = multiplier;
        lanes.shift[k] = shift;
    }
    return lanes;
}

/* to[column][row] = from[row][column], 16 × 16 bytes. */
static inline void transpose_bytes(const uint8_t from[16][16], uint8_t to[16][16])
{
#ifdef __AVX2__
    __m128i row[16], next[16];
    for (int r = 0; r < 16; r++)
        row[r] = _mm_loadu_si128((const __m128i *)(const void *)from[r]);
    for (int stage = 0; stage < 4; stage++) { /* each interleaves row r and row r + 8 */
        for (int r = 0; r < 8; r++) {
            next[2 * r] = _mm_unpacklo_epi8(row[r], row[r + 8]);
            next[2 * r + 1] = _mm_unpackhi_epi8(row[r], row[r + 8]);
        }
        for (int r = 0; r < 16; r++)
            row[r] = next[r];
    }
    for (int r = 0; r < 16; r++)
        _mm_storeu_si128((__m128i *)(void *)to[r], row[r]);
#else
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++)
            to[c][r] = from[r][c];
#endif
}

#if defined(__AVX512F__)
static inline __m512i requantise_half(__m512i sum, __m512i multiplier, __m512i shift)
{
    const __m512i half =
        _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_sub_epi64(shift, _mm512_set1_epi64(1)));
    return _mm512_srav_epi64(_mm512_add_epi64(_mm512_mul_epi32(sum, multiplier), half), shift);
}

static inline void requantise_16(const int32_t *sums, const struct requantise_lanes *lanes,
                                 uint8_t *y)
{
    const __m512i sum = _mm512_loadu_si512(sums), low32 = _mm512_set1_epi64(0xFFFFFFFF);
    const __m512i multiplier = _mm512_loadu_si512(lanes->multiplier);
    const __m512i shift = _mm512_loadu_si512(lanes->shift);
    __m512i even = requantise_half(sum, multiplier, _mm512_and_si512(shift, low32));
    __m512i odd = requantise_half(_mm512_srli_epi64(sum, 32), _mm512_srli_epi64(multiplier, 32),
                                  _mm512_srli_epi64(shift, 32));
    __m512i all = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
    all = _mm512_max_epi32(all, _mm512_set1_epi32(lanes->low - lanes->zero));
    all = _mm512_min_epi32(all, _mm512_set1_epi32(lanes->high - lanes->zero));
    all = _mm512_add_epi32(all, _mm512_set1_epi32(lanes->zero));
    _mm_storeu_si128((__m128i *)(void *)y, _mm512_cvtepi32_epi8(all));
}
#elif defined(__AVX2__)
/* There is no arithmetic shift of 64 bits: what is shifted is made positive by 2⁶² and that is
 * taken off again, which every shift divides. */
static inline __m256i requantise_half(__m256i sum, __m256i multiplier, __m256i shift)
{
    const __m256i one = _mm256_set1_epi64x(1), most = _mm256_set1_epi64x((int64_t)1 << 62);
    __m256i half = _mm256_sllv_epi64(one, _mm256_sub_epi64(shift, one));
    __m256i product = _mm256_add_epi64(_mm256_mul_epi32(sum, multiplier), half);
    return _mm256_sub_epi64(_mm256_srlv_epi64(_mm256_add_epi64(product, most), shift),
                            _mm256_srlv_epi64(most, shift));
}

static inline __m256i requantise_8(const int32_t *sums, const int32_t *multipliers,
                                   const int32_t *shifts, const struct requantise_lanes *lanes)
{
    const __m256i low32 = _mm256_set1_epi64x(0xFFFFFFFF);
    __m256i sum = _mm256_loadu_si256((const __m256i *)(const void *)sums);
    __m256i multiplier = _mm256_loadu_si256((const __m256i *)(const void *)multipliers);
    __m256i shift = _mm256_loadu_si256((const __m256i *)(const void *)shifts);
    __m256i even = requantise_half(sum, multiplier, _mm256_and_si256(shift, low32));
    __m256i odd = requantise_half(_mm256_srli_epi64(sum, 32), _mm256_srli_epi64(multiplier, 32),
                                  _mm256_srli_epi64(shift, 32));
    __m256i all = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    all = _mm256_max_epi32(all, _mm256_set1_epi32(lanes->low - lanes->zero));
    all = _mm256_min_epi32(all, _mm256_set1_epi32(lanes->high - lanes->zero));
    return _mm256_add_epi32(all, _mm256_set1_epi32(lanes->zero));
}

static inline void requantise_16(const int32_t *sums, const struct requantise_lanes *lanes,
                                 uint8_t *y)
{
    __m256i first = requantise_8(sums, lanes->multiplier, lanes->shift, lanes);
    __m256i second = requantise_8(sums + 8, lanes->multiplier + 8, lanes->shift + 8, lanes);
    __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xD8);
    __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(void *)y, bytes);
}
#else
static inline void requantise_16(const int32_t *sums, const struct requantise_lanes *lanes,
                                 uint8_t *y)
{
    for (int lane = 0; lane < REQUANTISE_LANES; lane++)
        y[lane] = requantise(sums[lane], lanes->multiplier[lane], lanes->shift[lane], lanes->zero,
                             lanes->low, lanes->high);
}
#endif

#endif
