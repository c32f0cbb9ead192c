/* blocked.h: how the simd backend keeps a dense layer's weight [in][out].
 *
 * Chunks of BLOCKED_CHUNK inputs; in a chunk, groups of 8 outputs; in a group, vectors of 16
 * inputs, for each the 8 outputs' vectors side by side:
 *
 *     chunk, group, input / 16, output % 8, input % 16
 *
 * So a pass over the weights is one contiguous stream for any batch, a chunk of the activations
 * stays in L1 meanwhile, a group is a tile of 8 rows for dot products, and every vector is aligned.
 * Inputs are padded to 16 and outputs to 8; padding holds zeros and updates keep it zero. */
#ifndef PRONY_BACKEND_CPU_SIMD_BLOCKED_H
#define PRONY_BACKEND_CPU_SIMD_BLOCKED_H

#include "core/tensor.h"

enum { BLOCKED_CHUNK = 256, BLOCKED_ROWS = 8, BLOCKED_LANES = 16 };
enum { BLOCKED_LEAST = 512 }; /* elements: a smaller matrix is not worth packing its inputs for */

static inline int64_t blocked_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* Inputs of the chunk that begins at `from`, padded. */
static inline int64_t blocked_width(int64_t in, int64_t from)
{
    return in - from < BLOCKED_CHUNK ? blocked_up(in - from, BLOCKED_LANES) : BLOCKED_CHUNK;
}

/* Is a tensor kept in blocks by a device that has kernels for them? `matrix` as in params.h. */
static inline bool blocked_wanted(bool matrix, enum dtype dtype, const struct shape *shape)
{
    return matrix && dtype == DTYPE_F32 && shape_count(shape) >= BLOCKED_LEAST;
}

uint64_t blocked_bytes(const struct shape *shape);
void blocked_pack(const struct shape *shape, const float *canonical, float *blocked);
void blocked_unpack(const struct shape *shape, const float *blocked, float *canonical);

#endif
