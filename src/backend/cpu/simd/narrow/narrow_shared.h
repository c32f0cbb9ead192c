/* narrow_shared.h: the seam between the loops over narrow numbers (product_narrow.c, written once)
 * and their kernels (tile_bf16_isa.c, tile_int8_isa.c, compiled once per ISA and extension).
 *
 * Weights are in panels of 16 lanes (narrow.h). The rows that meet them, samples or pixels, are
 * packed in tiles: [word][row], so that a tile's words are one stream, too. */
#ifndef PRONY_BACKEND_CPU_SIMD_NARROW_NARROW_SHARED_H
#define PRONY_BACKEND_CPU_SIMD_NARROW_NARROW_SHARED_H

#include "backend/cpu/narrow.h"

enum {
    NARROW_ROWS = 14,  /* of a tile at most */
    NARROW_WIDTHS = 4, /* of a tile, in panels: 1, 2, 4, 8 */
    NARROW_SLACK = 64, /* bytes behind a packed tile that may be written */
};

/* sums[row][panel][lane] = start[panel][lane] + x · w, over all words, in f32 or i32. Without
 * start: from 0. `stride`: bytes from panel to panel. */
typedef void narrow_tile(const void *x, const void *panels, int64_t stride, int64_t words,
                         const void *start, void *sums);

struct narrow_kernels {
    int32_t most;    /* rows × panels of a tile: as many sums as there are registers for */
    int32_t wide;    /* which width, 0 to 3, a tile of many rows has */
    int32_t x_bytes; /* of a row's word: as it is (4), or widened (8) */
    narrow_tile *const (*tile)[NARROW_ROWS + 1]; /* [width][rows]; NULL: too many sums */
    /* A tile of rows: to[word][row], zeros beyond `depth`; elements lie `stride` apart. */
    void (*pack)(const void *x, int64_t stride, int64_t rows, int64_t depth, int64_t words,
                 char *to);
    /* Of a convolution: words of neighbouring pixels from the rows of their channels, NULL: 0 … */
    void (*words)(const void *const *rows, int64_t count, uint32_t *to);
    /* … and these into a packed tile, `step` apart; NULL: 0. It may write NARROW_SLACK behind. */
    void (*place)(const uint32_t *from, int64_t step, int64_t count, char *to);
};

/* Rows of a tile when there are many of them. */
static inline int64_t narrow_rows(const struct narrow_kernels *kernels)
{
    int64_t rows = kernels->most >> kernels->wide;
    return rows < NARROW_ROWS ? rows : NARROW_ROWS;
}

#endif
