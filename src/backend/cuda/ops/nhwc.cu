/* nhwc.cu: see nhwc.h. */
#include "backend/cuda/ops/nhwc.h"

/* A block has a tile, which is as long as can be along a short side. */
enum { TRANSPOSE_SIDE = 64 };

struct transpose_tile {
    int32_t rows, columns; /* of a tile */
    int32_t down, across;  /* tiles of a matrix */
};

static __global__ void __launch_bounds__(THREADS)
    nhwc_transpose_tiles(struct transposition transposition, struct transpose_tile tile,
                         const float *from, void *to)
{
    __shared__ float values[TRANSPOSE_SIDE * (TRANSPOSE_SIDE + 1)];
    uint32_t across, down;
    const int64_t above = split_number(blockIdx.x, (uint32_t)tile.across, &across);
    const int64_t matrix = split_number(above, (uint32_t)tile.down, &down);
    const uint32_t row0 = down * (uint32_t)tile.rows, column0 = across * (uint32_t)tile.columns;
    const uint32_t step = (uint32_t)tile.columns | 1; /* odd: no two rows in one bank */
    from += matrix * transposition.rows * transposition.from_pitch;
    const int64_t first = matrix * transposition.columns * transposition.pitch;
    for (uint32_t i = threadIdx.x; i < (uint32_t)(tile.rows * tile.columns); i += THREADS) {
        const uint32_t r = i / (uint32_t)tile.columns, c = i % (uint32_t)tile.columns;
        const bool inside = row0 + r < (uint32_t)transposition.rows &&
                            column0 + c < (uint32_t)transposition.columns;
        const float value =
            inside ? from[(int64_t)(row0 + r) * transposition.from_pitch + column0 + c] : 0.0f;
        values[r * step + c] = transposition.as == PRECISION_TF32
                                   ? __uint_as_float(half_up(__float_as_uint(value)) & ~0x1fffu)
                                   : value;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < (uint32_t)(tile.rows * tile.columns); i += THREADS) {
        const uint32_t c = i / (uint32_t)tile.rows, r = i % (uint32_t)tile.rows;
        if (row0 + r >= (uint32_t)transposition.pitch ||
            column0 + c >= (uint32_t)transposition.columns)
            continue;
        const int64_t at = first + (int64_t)(column0 + c) * transposition.pitch + row0 + r;
        const float value = values[r * step + c];
        cells_put(cells{to, transposition.as}, at,
                  transposition.accumulate ? ((const float *)to)[at] + value : value);
    }
}

void nhwc_transpose(struct queue *queue, const struct transposition &transposition,
                    const float *from, void *to)
{
    const auto side = [](int32_t length) {
        return length < TRANSPOSE_SIDE ? length : TRANSPOSE_SIDE;
    };
    struct transpose_tile tile = {side(transposition.pitch), side(transposition.columns), 0, 0};
    tile.down = (int32_t)blocks_for(transposition.pitch, tile.rows);
    tile.across = (int32_t)blocks_for(transposition.columns, tile.columns);
    enqueue(queue, nhwc_transpose_tiles,
            dim3((unsigned)(transposition.count * tile.down * tile.across)), dim3(THREADS),
            transposition, tile, from, to);
}

void nhwc_from_nchw(struct queue *queue, int64_t samples, const struct image &image,
                    int32_t channels, const float *from, float *to)
{
    const int32_t plane = image.rows * image.columns;
    nhwc_transpose(
        queue,
        transposition{samples, image.channels, plane, plane, channels, false, PRECISION_FP32}, from,
        to);
}

void nhwc_to_nchw(struct queue *queue, int64_t samples, const struct image &image, int32_t channels,
                  const float *from, float *to)
{
    const int32_t plane = image.rows * image.columns;
    nhwc_transpose(
        queue,
        transposition{samples, plane, image.channels, channels, plane, false, PRECISION_FP32}, from,
        to);
}
