/* tile_loops.h: tiles of sums, whatever the narrow numbers are; for tile_bf16_isa.c and
 * tile_int8_isa.c, which first define
 *
 *   TILE_SUMS   sums of 16 lanes that stay in registers
 *   WIDE        which width, 0 to 3, a tile of many rows has
 *   X_BYTES     of a row's word as it is packed
 *   part        a vector of sums; PARTS of them are 16 lanes; part_zero, part_load, part_store
 *   word        a row's word in all lanes; word_set
 *   word_dot    adds the products of a word and a line of weights to PARTS sums
 *
 * A tile is R rows × V panels of 16 lanes in registers: each word of a row is broadcast and meets V
 * lines of weights. 14 rows × 2 panels load 16 words or lines for 28 multiplications: bound by
 * these. One row × 8 panels is bound by the weights' bytes: it reads eight streams, 512 bytes of
 * one at a time. */
#ifndef PRONY_BACKEND_CPU_SIMD_NARROW_TILE_LOOPS_H
#define PRONY_BACKEND_CPU_SIMD_NARROW_TILE_LOOPS_H

#include <string.h>

enum { AHEAD = 1024 /* bytes that a prefetch runs ahead */, SUM_BYTES = NARROW_LINE / PARTS };

INLINE void sums_begin(part *sum, const char *start, const int R, const int V)
{
#pragma GCC unroll 14
    for (int r = 0; r < R; r++)
#pragma GCC unroll 16
        for (int v = 0; v < V * PARTS; v++)
            sum[r * V * PARTS + v] = start ? part_load(start + v * SUM_BYTES) : part_zero();
}

INLINE void sums_end(const part *sum, char *sums, const int R, const int V)
{
#pragma GCC unroll 28
    for (int k = 0; k < R * V * PARTS; k++)
        part_store(sums + k * SUM_BYTES, sum[k]);
}

/* One row: 8 words of a panel at a time, so that each stream is read 512 bytes at once. */
INLINE void tile_one(const char *x, const char *panels, int64_t stride, int64_t words,
                     const char *start, char *sums, const int V)
{
    part sum[TILE_SUMS * PARTS];
    sums_begin(sum, start, 1, V);
    for (int64_t k = 0; k < words;
         k += NARROW_VISIT, x += NARROW_VISIT * X_BYTES, panels += NARROW_VISIT * NARROW_LINE) {
        word x_word[NARROW_VISIT];
#pragma GCC unroll 8
        for (int u = 0; u < NARROW_VISIT; u++)
            x_word[u] = word_set(x + u * X_BYTES);
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
#pragma GCC unroll 8
            for (int u = 0; u < NARROW_VISIT; u++) {
                const char *line = panels + v * stride + u * NARROW_LINE;
                vec_prefetch(line + AHEAD);
                word_dot(&sum[v * PARTS], x_word[u], line);
            }
    }
    sums_end(sum, sums, 1, V);
}

INLINE void tile_rows(const char *x, const char *panels, int64_t stride, int64_t words,
                      const char *start, char *sums, const int R, const int V)
{
    part sum[TILE_SUMS * PARTS];
    sums_begin(sum, start, R, V);
    for (int64_t k = 0; k < words; k++, x += R * X_BYTES, panels += NARROW_LINE) {
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
            vec_prefetch(panels + v * stride + AHEAD);
#pragma GCC unroll 14
        for (int r = 0; r < R; r++) {
            word x_word = word_set(x + r * X_BYTES);
#pragma GCC unroll 8
            for (int v = 0; v < V; v++)
                word_dot(&sum[(r * V + v) * PARTS], x_word, panels + v * stride);
        }
    }
    sums_end(sum, sums, R, V);
}

/* Words as they are into a packed tile: 16 at a time where they are neighbours. */
static inline void tile_place(const uint32_t *from, int64_t step, int64_t count, char *to)
{
    if (!from)
        memset(to, 0, (size_t)count * sizeof *from);
    else if (step == 1)
        memcpy(to, from, NARROW_ROWS * sizeof *from);
    else
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i, &from[i * step], sizeof *from);
}

#define TILE(R, width, V)                                                                          \
    static void tile_##R##_##V(const void *x, const void *panels, int64_t stride, int64_t words,   \
                               const void *start, void *sums)                                      \
    {                                                                                              \
        if (R == 1)                                                                                \
            tile_one(x, panels, stride, words, start, sums, V);                                    \
        else                                                                                       \
            tile_rows(x, panels, stride, words, start, sums, R, V);                                \
    }
#include "backend/cpu/simd/narrow/tiles.def"
#undef TILE

static narrow_tile *const tiles[NARROW_WIDTHS][NARROW_ROWS + 1] = {
#define TILE(R, width, V) [width][R] = tile_##R##_##V,
#include "backend/cpu/simd/narrow/tiles.def"
#undef TILE
};

#endif
