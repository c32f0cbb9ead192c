/* tile_int8_isa.c: sums of products of u8 and i8 in 32 bits, compiled once per ISA and for VNNI:
 * exact, so they are the same in any order (docs/quantisation.md).
 *
 * VPDPBUSD multiplies and adds four pairs a lane in one instruction. AVX2's VPMADDUBSW would
 * saturate at 16 bits: 2 · 255 · 127 does not fit. So even and odd bytes are widened to 16 bits,
 * and VPMADDWD adds two products in 32. Rows are packed so, weights are widened as they are read.
 * AVX-512 without VNNI takes that in half as long vectors. Elsewhere it is plain C. */
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/narrow/narrow_shared.h"
#include "backend/cpu/simd/vec.h"

#include "core/requantise.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512VNNI__
#define TILE_SUMS 28
enum { PARTS = 1, WIDE = 1, X_BYTES = 4 };
typedef __m512i part, word;
#define part_zero _mm512_setzero_si512
INLINE part part_load(const char *from)
{
    return _mm512_load_si512(from);
}
INLINE void part_store(char *to, part sum)
{
    _mm512_store_si512(to, sum);
}
INLINE word word_set(const char *x)
{
    word words = _mm512_set1_epi32(*(const int32_t *)(const void *)x);
    vec_pin(words);
    return words;
}
INLINE void word_dot(part *sum, word x, const char *line)
{
    *sum = _mm512_dpbusd_epi32(*sum, x, _mm512_load_si512(line));
}
#elif defined(__AVX2__)
#define TILE_SUMS 4
typedef __m256i part;
#define part_zero _mm256_setzero_si256
INLINE part part_load(const char *from)
{
    return _mm256_load_si256((const __m256i *)(const void *)from);
}
INLINE void part_store(char *to, part sum)
{
    _mm256_store_si256((__m256i *)(void *)to, sum);
}
#ifdef __AVXVNNI__
enum { PARTS = 2, WIDE = 0, X_BYTES = 4 };
typedef __m256i word;
INLINE word word_set(const char *x)
{
    return _mm256_set1_epi32(*(const int32_t *)(const void *)x);
}
INLINE void word_dot(part *sum, word x, const char *line)
{
#pragma GCC unroll 2
    for (int h = 0; h < PARTS; h++)
        sum[h] = _mm256_dpbusd_avx_epi32(sum[h], x, part_load(line + h * 32));
}
#else
enum { PARTS = 2, WIDE = 0, X_BYTES = 8 };
typedef struct {
    __m256i even, odd; /* bytes, in 16 bits each */
} word;
INLINE word word_set(const char *x)
{
    const int32_t *two = (const int32_t *)(const void *)x;
    return (word){_mm256_set1_epi32(two[0]), _mm256_set1_epi32(two[1])};
}
INLINE void word_dot(part *sum, word x, const char *line)
{
#pragma GCC unroll 2
    for (int h = 0; h < PARTS; h++) {
        __m256i w = part_load(line + h * 32);
        __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
        __m256i odd = _mm256_srai_epi16(w, 8);
        sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(even, x.even));
        sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(odd, x.odd));
    }
}
#endif
#else
#define TILE_SUMS 4
enum { PARTS = 1, WIDE = 0, X_BYTES = 4 };
typedef struct {
    int32_t lane[NARROW_LANES];
} part;
typedef struct {
    uint8_t of[4];
} word;
INLINE part part_zero(void)
{
    return (part){{0}};
}
INLINE part part_load(const char *from)
{
    part sum;
    memcpy(&sum, from, sizeof sum);
    return sum;
}
INLINE void part_store(char *to, part sum)
{
    memcpy(to, &sum, sizeof sum);
}
INLINE word word_set(const char *x)
{
    word words;
    memcpy(&words, x, sizeof words);
    return words;
}
INLINE void word_dot(part *sum, word x, const char *line)
{
    const int8_t *w = (const int8_t *)line;
    for (int lane = 0; lane < NARROW_LANES; lane++)
        for (int k = 0; k < 4; k++)
            sum->lane[lane] += x.of[k] * w[4 * lane + k];
}
#endif

#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define X_WORDS 2
#else
#define X_WORDS 1
#endif

#include "backend/cpu/simd/narrow/tile_loops.h"

/* A row's word, zeros beyond its end. */
INLINE uint32_t word_at(const uint8_t *x, int64_t k, int64_t depth)
{
    uint32_t bytes = 0;
    if (4 * k + 4 <= depth)
        memcpy(&bytes, x + 4 * k, 4);
    else if (4 * k < depth)
        memcpy(&bytes, x + 4 * k, (size_t)(depth - 4 * k));
    return bytes;
}

static void pack(const void *from, int64_t stride, int64_t rows, int64_t depth, int64_t words,
                 char *to)
{
    const uint8_t *x = from;
    uint32_t *out = (uint32_t *)(void *)to;
    int64_t k = 0;
#ifdef __AVX512VNNI__
    for (; rows > 1 && 4 * (k + VEC_LANES) <= depth; k += VEC_LANES) {
        vec word_of_row[VEC_LANES];
        for (int64_t r = 0; r < VEC_LANES; r++)
            word_of_row[r] =
                r < rows ? vec_load_any((const float *)(const void *)(x + r * stride + 4 * k))
                         : vec_zero();
        vec_transpose(word_of_row);
        for (int64_t u = 0; u < VEC_LANES; u++)
            vec_store_any((float *)(void *)(out + (k + u) * rows), word_of_row[u]);
    }
#endif
    if (rows == 1 && X_BYTES == 4) {
        memcpy(to, x, (size_t)depth);
        memset(to + depth, 0, (size_t)(4 * words - depth));
        return;
    }
    for (; k < words; k++)
        for (int64_t r = 0; r < rows; r++) {
            uint32_t bytes = word_at(x + r * stride, k, depth);
            if (X_BYTES == 4) {
                out[k * rows + r] = bytes;
            } else {
                out[2 * (k * rows + r)] = bytes & 0x00FF00FF;
                out[2 * (k * rows + r) + 1] = bytes >> 8 & 0x00FF00FF;
            }
        }
}

static void words_of_rows(const void *const *rows, int64_t count, uint32_t *to)
{
    const uint8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    if (d)
        for (int64_t i = 0; i < count; i++)
            to[i] =
                (uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (uint32_t)a[i] | (b ? (uint32_t)b[i] << 8 : 0) | (c ? (uint32_t)c[i] << 16 : 0);
}

static void place(const uint32_t *from, int64_t step, int64_t count, char *to)
{
#if X_WORDS == 1
    tile_place(from, step, count, to);
#else
    uint32_t *two = (uint32_t *)(void *)to;
    for (int64_t i = 0; i < count; i++, two += 2) {
        uint32_t bytes = from ? from[i * step] : 0;
        two[0] = bytes & 0x00FF00FF;
        two[1] = bytes >> 8 & 0x00FF00FF;
    }
#endif
}

const struct narrow_kernels ISA(int8_kernels) = {
    .most = TILE_SUMS,
    .wide = WIDE,
    .x_bytes = X_BYTES,
    .tile = tiles,
    .pack = pack,
    .words = words_of_rows,
    .place = place,
};
