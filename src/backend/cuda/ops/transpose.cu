/* transpose.cu: see transpose.h. A block has a tile of 32 × 32, which it passes through shared
 * memory. Bound: the bytes, each read and written once. */
#include "backend/cuda/ops/transpose.h"

enum { TRANSPOSE_TILE = 32, TRANSPOSE_LINES = 8 };

static __global__ void __launch_bounds__(TRANSPOSE_TILE *TRANSPOSE_LINES)
    transpose_tiles(int64_t samples, int64_t widest, int64_t step, struct transposed first,
                    struct transposed second)
{
    __shared__ float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
    const struct transposed it = blockIdx.y ? second : first;
    const uint32_t across = (uint32_t)((widest + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE);
    const int64_t column0 = (int64_t)(blockIdx.x % across) * TRANSPOSE_TILE;
    const int64_t sample0 = (int64_t)(blockIdx.x / across) * TRANSPOSE_TILE;
    const int x = (int)threadIdx.x;
    if (column0 >= it.width)
        return;
    for (int line = (int)threadIdx.y; line < TRANSPOSE_TILE; line += TRANSPOSE_LINES)
        if (sample0 + line < samples && column0 + x < it.width)
            tile[line][x] = it.matrix[(sample0 + line) * it.width + column0 + x];
    __syncthreads();
    for (int line = (int)threadIdx.y; line < TRANSPOSE_TILE; line += TRANSPOSE_LINES)
        if (column0 + line < it.width && sample0 + x < samples)
            it.transposed[(column0 + line) * step + sample0 + x] = tile[x][line];
}

void transpose_matrices(struct queue *queue, int64_t samples, int64_t step,
                        const struct transposed *first, const struct transposed *second)
{
    const int64_t widest = second && second->width > first->width ? second->width : first->width;
    const struct transposed none = {};
    enqueue(queue, transpose_tiles,
            dim3(blocks_for(widest, TRANSPOSE_TILE) * blocks_for(samples, TRANSPOSE_TILE),
                 second ? 2 : 1),
            dim3(TRANSPOSE_TILE, TRANSPOSE_LINES), samples, widest, step, *first,
            second ? *second : none);
}
