/* transpose.cu: see transpose.h. A block has a tile of 32 × 32, which it passes through shared
 * memory. Bound: the bytes, each read and written once. */
#include "backend/cuda/ops/transpose.h"

enum { TURN_TILE = 32, TURN_LINES = 8 };

static __global__ void __launch_bounds__(TURN_TILE *TURN_LINES)
    turn_tiles(int64_t samples, int64_t widest, int64_t step, struct turned first,
               struct turned second)
{
    __shared__ float tile[TURN_TILE][TURN_TILE + 1];
    const struct turned it = blockIdx.y ? second : first;
    const uint32_t across = (uint32_t)((widest + TURN_TILE - 1) / TURN_TILE);
    const int64_t column0 = (int64_t)(blockIdx.x % across) * TURN_TILE;
    const int64_t sample0 = (int64_t)(blockIdx.x / across) * TURN_TILE;
    const int x = (int)threadIdx.x;
    if (column0 >= it.width)
        return;
    for (int line = (int)threadIdx.y; line < TURN_TILE; line += TURN_LINES)
        if (sample0 + line < samples && column0 + x < it.width)
            tile[line][x] = it.matrix[(sample0 + line) * it.width + column0 + x];
    __syncthreads();
    for (int line = (int)threadIdx.y; line < TURN_TILE; line += TURN_LINES)
        if (column0 + line < it.width && sample0 + x < samples)
            it.turned[(column0 + line) * step + sample0 + x] = tile[x][line];
}

void turn_matrices(struct queue *queue, int64_t samples, int64_t step, const struct turned *first,
                   const struct turned *second)
{
    const int64_t widest = second && second->width > first->width ? second->width : first->width;
    const struct turned none = {};
    enqueue(queue, turn_tiles,
            dim3(blocks_for(widest, TURN_TILE) * blocks_for(samples, TURN_TILE), second ? 2 : 1),
            dim3(TURN_TILE, TURN_LINES), samples, widest, step, *first, second ? *second : none);
}
