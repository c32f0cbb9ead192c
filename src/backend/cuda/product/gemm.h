/* gemm.h: the one matrix product: result(row, col) = Σ left(row, depth) · right(col, depth), once
 * or several times side by side: then blockIdx.z says which, and operands and epilogue go by it.
 *
 * A block of 16 × 16 threads makes a tile of ROWS × COLS; each thread keeps (ROWS / 16) × (COLS /
 * 16) sums in registers and takes both operands from shared memory, TILE_DEPTH at a time. Each sum
 * is a chain of fmaf in the order of depth, whatever the tile, so the tile may be chosen by shape.
 *
 * What differs between the ops is given as small structs: where an operand lies (`along_depth`
 * says in which direction neighbours in memory lie, so that loads are coalesced) and what becomes
 * of a finished sum. Bound: this is fp32 FFMA from shared memory without double buffering, for
 * correctness and middle sizes; tensor cores are not its business. */
#ifndef PRONY_BACKEND_CUDA_GEMM_H
#define PRONY_BACKEND_CUDA_GEMM_H

#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/launch.h"

enum { TILE_DEPTH = 16, TILE_SIDE = 16 };

/* position · stride + depth: a row-major matrix whose rows are multiplied. */
struct by_row {
    const float *data;
    int64_t stride;
    static constexpr bool along_depth = true;
    __device__ float at(int64_t position, int64_t depth) const
    {
        return data[position * stride + depth];
    }
};

/* depth · stride + position: a row-major matrix whose columns are multiplied. */
struct by_column {
    const float *data;
    int64_t stride;
    static constexpr bool along_depth = false;
    __device__ float at(int64_t position, int64_t depth) const
    {
        return data[depth * stride + position];
    }
};

/* The operand of one of several products, each `size` elements behind the one before. */
template <typename Operand> struct one_of {
    Operand first;
    int64_t size;
    static constexpr bool along_depth = Operand::along_depth;
    __device__ float at(int64_t position, int64_t depth) const
    {
        Operand operand = first;
        operand.data += blockIdx.z * size;
        return operand.at(position, depth);
    }
};

/* y = f(sum + b) */
struct to_layer {
    float *y;
    int64_t stride;
    const float *bias; /* [cols], or NULL */
    enum activation activation;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float x = bias ? sum + bias[col] : sum;
        if (activation == ACTIVATION_RELU)
            x = relu(x);
        else if (activation != ACTIVATION_NONE)
            x = rare_activation(activation, x);
        y[row * stride + col] = x;
    }
};

/* dw = scale · sum, or added to what is there */
struct to_gradient {
    float *dw;
    int64_t stride;
    float scale;
    bool accumulate;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        float *gradient = &dw[row * stride + col];
        *gradient = accumulate ? *gradient + scale * sum : scale * sum;
    }
};

/* Brings positions [first, first + SIZE) × depths [depth0, depth0 + TILE_DEPTH) into shared memory;
 * what lies outside is 0. */
template <int SIZE, typename Operand>
static __device__ void gemm_load(float (*tile)[SIZE + 1], Operand operand, int64_t first,
                                 int64_t positions, int64_t depth0, int64_t depths)
{
    for (int e = (int)threadIdx.x; e < SIZE * TILE_DEPTH; e += THREADS) {
        int position = Operand::along_depth ? e / TILE_DEPTH : e % SIZE;
        int depth = Operand::along_depth ? e % TILE_DEPTH : e / SIZE;
        bool inside = first + position < positions && depth0 + depth < depths;
        tile[depth][position] = inside ? operand.at(first + position, depth0 + depth) : 0.0f;
    }
}

template <int ROWS, int COLS, typename Left, typename Right, typename Finish>
static __global__ void __launch_bounds__(THREADS)
    gemm_tile(int64_t rows, int64_t cols, int64_t depths, Left left, Right right, Finish finish)
{
    constexpr int TALL = ROWS / TILE_SIDE, WIDE = COLS / TILE_SIDE;
    __shared__ float a[TILE_DEPTH][ROWS + 1], b[TILE_DEPTH][COLS + 1];
    const int64_t across = (cols + COLS - 1) / COLS; /* tiles */
    const int64_t row0 = blockIdx.x / across * ROWS, col0 = blockIdx.x % across * COLS;
    const int y = (int)threadIdx.x / TILE_SIDE, x = (int)threadIdx.x % TILE_SIDE;
    float sum[TALL][WIDE] = {};

    allow_next();
    await_last();
    for (int64_t depth0 = 0; depth0 < depths; depth0 += TILE_DEPTH) {
        gemm_load<ROWS>(a, left, row0, rows, depth0, depths);
        gemm_load<COLS>(b, right, col0, cols, depth0, depths);
        __syncthreads();
        for (int depth = 0; depth < TILE_DEPTH; depth++) {
#pragma unroll
            for (int i = 0; i < TALL; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    sum[i][j] =
                        fmaf(a[depth][y + i * TILE_SIDE], b[depth][x + j * TILE_SIDE], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            int64_t row = row0 + y + i * TILE_SIDE, col = col0 + x + j * TILE_SIDE;
            if (row < rows && col < cols)
                finish.put(row, col, sum[i][j]);
        }
}

enum { GEMM_MOST = 65535 }; /* products of one launch: CUDA's limit for a grid's third dimension */

/* Few rows (a small batch) take a flat tile, else most of it would lie outside. */
template <typename Left, typename Right, typename Finish>
static void gemm(struct queue *queue, int64_t rows, int64_t cols, int64_t depths, Left left,
                 Right right, Finish finish, int64_t products = 1)
{
    constexpr int FLAT = 16, SQUARE = 64;
    const unsigned across = blocks_for(cols, SQUARE);
    if (rows <= FLAT)
        enqueue_early(queue, gemm_tile<FLAT, SQUARE, Left, Right, Finish>,
                      dim3(blocks_for(rows, FLAT) * across, 1, (unsigned)products), dim3(THREADS),
                      0, rows, cols, depths, left, right, finish);
    else
        enqueue_early(queue, gemm_tile<SQUARE, SQUARE, Left, Right, Finish>,
                      dim3(blocks_for(rows, SQUARE) * across, 1, (unsigned)products), dim3(THREADS),
                      0, rows, cols, depths, left, right, finish);
}

/* Of an operand, the depths of one of several products: each has `each` of all `depths`. */
template <typename Operand> struct piece_of {
    Operand whole;
    int64_t each, depths;
    static constexpr bool along_depth = Operand::along_depth;
    __device__ float at(int64_t position, int64_t depth) const
    {
        depth += blockIdx.z * each;
        return depth < depths ? whole.at(position, depth) : 0.0f;
    }
};

struct to_piece {
    float *data;
    int64_t stride, count;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        data[blockIdx.z * count + row * stride + col] = sum;
    }
};

template <typename Finish>
static __global__ void gemm_add_pieces(int64_t rows, int64_t cols, int32_t pieces,
                                       const float *data, Finish finish)
{
    FOR_EACH(index, rows * cols)
    {
        float sum = 0.0f;
#pragma unroll 8
        for (int32_t piece = 0; piece < pieces; piece++)
            sum += data[piece * rows * cols + index];
        finish.put(index / cols, index % cols, sum);
    }
}

/* Pieces that the depth is worth being cut into, by shape only. */
static inline int32_t gemm_pieces(int64_t rows, int64_t cols, int64_t depths)
{
    enum { TILE = 64, BLOCKS_WANTED = 528, LEAST = 8 * TILE_DEPTH };
    const int64_t tiles = (int64_t)blocks_for(rows, TILE) * blocks_for(cols, TILE);
    const int64_t wanted = (BLOCKS_WANTED + tiles - 1) / tiles, most = depths / LEAST;
    const int64_t pieces = wanted < most ? wanted : most;
    return pieces < 1 ? 1 : (int32_t)pieces;
}

/* A small result of a large depth: that is cut into pieces, which are added in order. `parts` holds
 * them: gemm_pieces · rows · cols floats. */
template <typename Left, typename Right, typename Finish>
static void gemm_deep(struct queue *queue, int64_t rows, int64_t cols, int64_t depths, Left left,
                      Right right, Finish finish, float *parts)
{
    const int32_t pieces = gemm_pieces(rows, cols, depths);
    const int64_t each = (depths + pieces - 1) / pieces;
    if (pieces == 1) {
        gemm(queue, rows, cols, depths, left, right, finish);
        return;
    }
    gemm(queue, rows, cols, each, piece_of<Left>{left, each, depths},
         piece_of<Right>{right, each, depths}, to_piece{parts, cols, rows * cols}, pieces);
    enqueue(queue, gemm_add_pieces<Finish>, dim3(blocks_striding(rows * cols)), dim3(THREADS), rows,
            cols, pieces, (const float *)parts, finish);
}

#endif
