/* blocked.h: how the simd backend keeps weights.
 *
 * A dense layer's, [in][out].
 * Chunks of equally many inputs, at most BLOCKED_MOST vectors; in a chunk, groups of 8 outputs; in
 * a group, vectors of 16 inputs, for each the 8 outputs' vectors side by side:
 *
 *     chunk, group, input / 16, output % 8, input % 16
 *
 * So a pass over the weights is one contiguous stream for any batch, a chunk of the activations
 * stays in L1 meanwhile, a group is a tile of 8 rows for dot products, and every vector is aligned.
 * Inputs are padded to 16 and outputs to 8; padding holds zeros and updates keep it zero.
 *
 * A convolution's, [out][in][h][w], where there are whole panels of 32 outputs:
 *
 *     output / 32, tap (in, h, w), output % 32
 *
 * which is what its product reads (conv_gemm.c), so that a step packs nothing. */
#ifndef PRONY_BACKEND_CPU_BLOCKED_H
#define PRONY_BACKEND_CPU_BLOCKED_H

#include "core/tensor.h"

enum { BLOCKED_ROWS = 8, BLOCKED_LANES = 16 };
enum { BLOCKED_PANEL = 32 }; /* outputs of a convolution */
/* Vectors in a chunk. Long chunks, because each costs the sums of its dot products; but 12 samples'
 * inputs must leave room in L1. An odd number: groups that lie 14 or 16 KB apart would share their
 * sets of L1. */
enum { BLOCKED_MOST = 31 };
enum { BLOCKED_LEAST = 512 }; /* elements: a smaller matrix is not worth packing its inputs for */

static inline int64_t blocked_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* Inputs of every chunk but the last, which may have fewer. */
static inline int64_t blocked_chunk(int64_t in)
{
    int64_t vectors = (in + BLOCKED_LANES - 1) / BLOCKED_LANES;
    int64_t chunks = (vectors + BLOCKED_MOST - 1) / BLOCKED_MOST;
    return ((vectors + chunks - 1) / chunks | 1) * BLOCKED_LANES;
}

/* Inputs of the chunk that begins at `from`, padded. */
static inline int64_t blocked_width(int64_t in, int64_t from)
{
    int64_t chunk = blocked_chunk(in);
    return in - from < chunk ? blocked_up(in - from, BLOCKED_LANES) : chunk;
}

/* Is a tensor kept in blocks by a device that has kernels for them? `matrix` as in params.h. */
static inline bool blocked_wanted(bool matrix, enum dtype dtype, const struct shape *shape)
{
    return matrix && dtype == DTYPE_F32 && shape_count(shape) >= BLOCKED_LEAST &&
           (shape->rank == 2 || shape->dim[0] % BLOCKED_PANEL == 0);
}

uint64_t blocked_bytes(const struct shape *shape);
int64_t blocked_groups(const struct shape *shape);
/* Where group `g` of a dense layer has the 16 inputs from `i` on. */
int64_t blocked_place(const struct shape *shape, int64_t i, int64_t g);
/* A range of groups, or panels; all of them are the whole weight, padding included. */
void blocked_pack(const struct shape *shape, const float *canonical, float *blocked, int64_t first,
                  int64_t last);
void blocked_unpack(const struct shape *shape, const float *blocked, float *canonical,
                    int64_t first, int64_t last);

#endif
