/* gemm_packed.h: products of plain matrices, for ops whose weights are not in blocks: layers over
 * time, batched products, convolutions of many channels. The loops are here (gemm_packed.c, written
 * once), the kernels in gemm_isa.c, compiled once per ISA.
 *
 * Both operands are packed: b into panels [inner][columns], zero-padded, a into panels
 * [inner][rows] of even size; a kernel multiplies one panel of each, rows × columns sums in
 * registers. The bound is FMA. */
#ifndef PRONY_BACKEND_CPU_SIMD_GEMM_GEMM_PACKED_H
#define PRONY_BACKEND_CPU_SIMD_GEMM_GEMM_PACKED_H

#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>

enum { GEMM_ROWS = 14, GEMM_COLUMNS = 32 }; /* of a tile: the most that any ISA has */

/* A tile of c = scale·a·b + what it starts from: c itself, or a row of numbers, or 0. */
struct gemm_tile {
    int64_t inner;
    const float *a, *b;     /* one panel of each */
    int64_t lead;           /* from a row of a's panel to the next; 0: as many as it has … */
    const int64_t *offsets; /* … or where each row of it is, or NULL */
    const int64_t *places;  /* where each row of b is; NULL: one behind the other */
    const float *fetch;     /* what is needed next comes into L2 meanwhile, or NULL … */
    int64_t fetch_step;     /* … so many floats a row */
    float *c;
    int64_t stride;  /* from a row of c to the next */
    int64_t columns; /* of c: at most the kernels' */
    float scale;
    bool add;
    const float *start; /* as many as the kernels' columns, or NULL */
};

/* A matrix where it lies: element [row, column] is at row·down + column·right; one of them is 1. */
struct gemm_side {
    const float *data;
    int64_t down, right;
};

/* c[rows, columns] = scale·a·b, or += with `add`; rows of c are `stride` apart. */
struct gemm {
    int64_t rows, inner, columns;
    struct gemm_side a, b;
    float *c;
    int64_t stride;
    float scale;
    bool add;
    const struct gemm *next; /* another product with the same b, which is packed once; or NULL */
};

struct gemm_kernels {
    int64_t rows, columns; /* the most a tile has */
    int64_t lanes;
    /* out[k·lead + i] = x[i·across + k·along] for i < width ≤ lanes and k < count, where one of the
     * strides is 1; zeros up to lanes, or lead if that is less. Where across is 1 the width may
     * also be all columns: rows that lie far apart are then visited once. */
    void (*pack)(const float *x, int64_t across, int64_t along, int64_t width, int64_t count,
                 float *out, int64_t lead);
    void (*tile[GEMM_ROWS + 1])(const struct gemm_tile *tile); /* by rows */
    /* A whole product without packing, for where that would take longer than the product; it does
     * not add, and where b lies along inner so does a. */
    void (*small)(const struct gemm *gemm);
};

/* b[inner, columns] as panels, one behind the other. */
int64_t gemm_b_floats(const struct gemm_kernels *kernels, int64_t inner, int64_t columns);
void gemm_pack_b(const struct gemm_kernels *kernels, struct gemm_side b, int64_t inner,
                 int64_t columns, float *panels);

/* a[rows, inner] as panels of `whole` inner elements, rows × whole floats; it goes to those from
 * `first` on, so that matrices side by side can be packed as one. */
void gemm_pack_a(const struct gemm_kernels *kernels, struct gemm_side a, int64_t rows,
                 int64_t inner, float *panels, int64_t whole, int64_t first);

/* All panels of a, from `first` on, times the one panel of b in `tile`, which has everything but
 * its a; its `fetch` is the panel of b that is needed next, or NULL. */
void gemm_times_panel(const struct gemm_kernels *kernels, const float *a, int64_t rows,
                      int64_t whole, int64_t first, struct gemm_tile tile);

/* By the calling thread; the workspace holds gemm_floats. */
int64_t gemm_floats(void);
void gemm_multiply(const struct gemm_kernels *kernels, const struct gemm *gemm, float *workspace);

/* By as many threads as it is worth, each with a workspace of its own, one behind the other. Every
 * sum is one thread's, so the bits do not depend on their number. */
void gemm_run(const struct gemm_kernels *kernels, const struct gemm *gemm, struct pool *pool,
              float *workspace);

#endif
