/* product_narrow.h: products of rows and packed weights, whatever the narrow numbers are. Loops,
 * blocks and threads are written once; an ISA's part is its struct narrow_kernels.
 *
 * Rows are packed into tiles, a block of them at a time, which stays in L2; then panels of weights
 * pass. Threads take ranges of panels, the same in every pass, so each finds its weights in its own
 * cache. Sums stay in registers from the first word to the last. */
#ifndef PRONY_BACKEND_CPU_SIMD_NARROW_PRODUCT_NARROW_H
#define PRONY_BACKEND_CPU_SIMD_NARROW_PRODUCT_NARROW_H

#include "backend/cpu/simd/narrow/narrow_shared.h"

struct narrow_product {
    const struct narrow_kernels *kernels;
    struct narrow narrow;
    const void *packed;
    const char *x;   /* [rows, depth] … */
    int64_t x_bytes; /* … of an element */
    /* A tile of rows, packed; NULL: by the kernels, from x. */
    void (*pack)(const struct narrow_product *product, int64_t row, int64_t rows, char *to);
    int64_t rows;
    const void *b; /* [lanes], as the sums are, or NULL */
    /* Sums that are complete, sums[row][lane], to their places: `rows` of them from `row` on,
     * `lanes` from `lane` on, of which the product may have fewer. `many`: there is more than one
     * tile of rows; else `finish` follows for all lanes of a thread at once. */
    void (*store)(const struct narrow_product *product, void *sums, int64_t row, int64_t rows,
                  int64_t lane, int64_t lanes, bool many);
    void (*finish)(const struct narrow_product *product, int64_t row, int64_t rows, int64_t lane,
                   int64_t end); /* or NULL */
    const void *context;         /* of these */
};

/* Bytes of workspace that a product of so many rows needs. */
uint64_t narrow_product_bytes(const struct narrow_kernels *kernels, const struct narrow *narrow,
                              int64_t rows, int threads);
void narrow_product_run(const struct call *call, const struct narrow_product *product);

#endif
