/* tile_bf16_isa.c: sums of products of bf16, compiled once per ISA and for AVX-512 BF16.
 *
 * VDPBF16PS multiplies and adds two bf16 a lane in one instruction. Elsewhere a word becomes two
 * floats by a shift and a mask, and rows are packed as rounded floats: two multiply-adds a word, so
 * only bytes are saved. */
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/narrow_shared.h"
#include "backend/cpu/simd/vec.h"

#define INLINE static inline __attribute__((always_inline))

enum { PARTS = NARROW_LANES / VEC_LANES };

typedef vec part;
#define part_zero vec_zero
INLINE part part_load(const char *from)
{
    return vec_load((const float *)(const void *)from);
}
INLINE void part_store(char *to, part sum)
{
    vec_store((float *)(void *)to, sum);
}

#ifdef __AVX512BF16__
#define TILE_SUMS 28
enum { WIDE = 1, X_BYTES = 4 };
typedef __m512i word;

INLINE word word_set(const char *x)
{
    word words = _mm512_set1_epi32(*(const int32_t *)(const void *)x);
    vec_pin(words);
    return words;
}

INLINE void word_dot(part *sum, word x, const char *line)
{
    *sum = _mm512_dpbf16_ps(*sum, (__m512bh)x, (__m512bh)_mm512_load_si512(line));
}
#else
#ifdef __AVX512F__
#define TILE_SUMS 24
enum { WIDE = 1, X_BYTES = 8 };
#else
#define TILE_SUMS 4
enum { WIDE = 0, X_BYTES = 8 };
#endif
typedef struct {
    vec low, high;
} word;

INLINE word word_set(const char *x)
{
    const float *two = (const float *)(const void *)x;
    return (word){vec_set(two[0]), vec_set(two[1])};
}

INLINE void word_dot(part *sum, word x, const char *line)
{
#pragma GCC unroll 2
    for (int h = 0; h < PARTS; h++) {
        vec words = vec_load((const float *)(const void *)line + h * VEC_LANES);
        sum[h] = vec_fma(vec_low_bf16(words), x.low, sum[h]);
        sum[h] = vec_fma(vec_high_bf16(words), x.high, sum[h]);
    }
}
#endif

#include "backend/cpu/simd/narrow/tile_loops.h"

#ifdef __AVX512BF16__
/* 16 words of a row, from 32 floats of which there are `have`. */
INLINE __m512i words_of(const float *x, int64_t have)
{
    vec low = vec_load_part(x, have < 0 ? 0 : have);
    vec high = have > VEC_LANES ? vec_load_part(x + VEC_LANES, have - VEC_LANES) : vec_zero();
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* One word after the other of all rows is one store of 16 lanes; the next one overwrites what it
 * has beyond the rows. */
static void pack(const void *from, int64_t stride, int64_t rows, int64_t depth, int64_t words,
                 char *to)
{
    const float *x = from;
    for (int64_t k = 0; rows == 1 && k < words; k += VEC_LANES)
        _mm512_mask_storeu_epi32(to + k * X_BYTES,
                                 (__mmask16)(words - k < VEC_LANES ? 0xFF : 0xFFFF),
                                 words_of(x + 2 * k, depth - 2 * k));
    for (int64_t k = 0; rows > 1 && k < words; k += VEC_LANES) {
        vec word_of_row[VEC_LANES];
        for (int64_t r = 0; r < VEC_LANES; r++)
            word_of_row[r] =
                r < rows ? _mm512_castsi512_ps(words_of(x + r * stride + 2 * k, depth - 2 * k))
                         : vec_zero();
        vec_transpose(word_of_row);
        for (int64_t u = 0; u < VEC_LANES && k + u < words; u++)
            vec_store_any((float *)(void *)(to + (k + u) * rows * X_BYTES), word_of_row[u]);
    }
}
#else
static void pack(const void *from, int64_t stride, int64_t rows, int64_t depth, int64_t words,
                 char *to)
{
    const float *x = from;
    float *two = (float *)(void *)to;
    for (int64_t k = 0; k < words; k++)
        for (int64_t r = 0; r < rows; r++, two += 2)
            for (int h = 0; h < 2; h++)
                two[h] = 2 * k + h < depth ? bf16_value(bf16_of(x[r * stride + 2 * k + h])) : 0;
}
#endif

static void words_of_rows(const void *const *rows, int64_t count, uint32_t *to)
{
    const float *low = rows[0], *high = rows[1];
    int64_t i = 0;
#ifdef __AVX512BF16__
    for (; high && i + VEC_LANES <= count; i += VEC_LANES) {
        __m512i a = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(vec_load_any(low + i)));
        __m512i b = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(vec_load_any(high + i)));
        _mm512_storeu_si512(to + i, _mm512_or_si512(a, _mm512_slli_epi32(b, 16)));
    }
#endif
    for (; i < count; i++)
        to[i] = (uint32_t)bf16_of(low[i]) | (high ? (uint32_t)bf16_of(high[i]) << 16 : 0);
}

static void place(const uint32_t *from, int64_t step, int64_t count, char *to)
{
#ifdef __AVX512BF16__
    tile_place(from, step, count, to);
#else
    float *two = (float *)(void *)to;
    for (int64_t i = 0; i < count; i++, two += 2) {
        uint32_t bits = from ? from[i * step] : 0;
        two[0] = bf16_value((uint16_t)bits);
        two[1] = bf16_value((uint16_t)(bits >> 16));
    }
#endif
}

const struct narrow_kernels ISA(bf16_kernels) = {
    .most = TILE_SUMS,
    .wide = WIDE,
    .x_bytes = X_BYTES,
    .tile = tiles,
    .pack = pack,
    .words = words_of_rows,
    .place = place,
};
