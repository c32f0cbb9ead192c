/* sums.h: sums over many elements by threads, whose bits do not depend on their number: the
 * elements are cut into the same pieces whoever sums them, and the caller adds the pieces up in
 * their order. */
#ifndef PRONY_BACKEND_CPU_SIMD_SUMS_H
#define PRONY_BACKEND_CPU_SIMD_SUMS_H

#include "base/pool.h"

#include <stdint.h>

/* The sum over the elements, or rows, [from, to). */
typedef float sum_piece(const void *context, int64_t from, int64_t to);

/* Over [0, count) in pieces of a multiple of `grain`; `bytes` of memory are visited in all. */
float sum_pieces(struct pool *pool, sum_piece *piece, const void *context, int64_t count,
                 int64_t grain, int64_t bytes);

#endif
