/* small_gemm.h: small matrix products, which are over before a tile of gemm.h has its second slab:
 * result(row, col) = Σ left(row, depth) · right(col, depth), operands and epilogues as in gemm.h.
 *
 * What counts is how long the longest chain of waiting is, so the depth is cut among many threads
 * whose sums are added in a fixed order. Where neighbours of `right` in memory are columns, a warp
 * has 32 of them and a block eight pieces of the depth; where they are depths, the lanes of a warp
 * have one each, and exchange their sums. */
#ifndef PRONY_BACKEND_CUDA_SMALL_GEMM_H
#define PRONY_BACKEND_CUDA_SMALL_GEMM_H

#include "backend/cuda/device/reduce.h"
#include "backend/cuda/product/gemm.h"

enum { SMALL_ROWS = 4, SMALL_COLS = 32, SMALL_PIECES = 8, SMALL_EACH = 8 };

static inline bool small_gemm_fits(int64_t rows, int64_t cols, int64_t depths)
{
    return rows * cols * depths <= 4 << 20;
}

template <typename Left, typename Right, typename Finish>
static __global__ void __launch_bounds__(SMALL_COLS *SMALL_PIECES)
    small_gemm_columns(int64_t rows, int64_t cols, int64_t depths, Left left, Right right,
                       Finish finish)
{
    __shared__ float partial[SMALL_PIECES][SMALL_ROWS][SMALL_COLS];
    const int lane = (int)threadIdx.x, piece = (int)threadIdx.y;
    const int64_t across = (cols + SMALL_COLS - 1) / SMALL_COLS;
    const int64_t row0 = blockIdx.x / across * SMALL_ROWS, col0 = blockIdx.x % across * SMALL_COLS;
    const int64_t each = (depths + SMALL_PIECES - 1) / SMALL_PIECES, col = col0 + lane;
    const int64_t to = min(each * (piece + 1), depths);
    float sum[SMALL_ROWS] = {};
    if (col < cols)
#pragma unroll 8
        for (int64_t depth = each * piece; depth < to; depth++) {
            const float factor = right.at(col, depth);
#pragma unroll
            for (int i = 0; i < SMALL_ROWS; i++)
                sum[i] = fmaf(left.at(min(row0 + i, rows - 1), depth), factor, sum[i]);
        }
#pragma unroll
    for (int i = 0; i < SMALL_ROWS; i++)
        partial[piece][i][lane] = sum[i];
    __syncthreads();
    if (piece >= SMALL_ROWS || row0 + piece >= rows || col >= cols)
        return;
    float all = 0.0f; /* now a piece is a row */
#pragma unroll
    for (int other = 0; other < SMALL_PIECES; other++)
        all += partial[other][piece][lane];
    finish.put(row0 + piece, col, all);
}

/* A warp has SMALL_ROWS × SMALL_EACH sums, as many as it has lanes: over the depths from … to. */
template <typename Left, typename Right, typename Finish>
static __device__ void small_gemm_tile(int64_t rows, int64_t cols, int64_t from, int64_t to,
                                       Left left, Right right, Finish finish)
{
    const int lane = (int)threadIdx.x;
    const int64_t across = (cols + SMALL_COLS - 1) / SMALL_COLS;
    const int64_t row0 = blockIdx.x / across * SMALL_ROWS;
    const int64_t col0 = blockIdx.x % across * SMALL_COLS + threadIdx.y * SMALL_EACH;
    float sum[SMALL_ROWS * SMALL_EACH] = {};
#pragma unroll 2
    for (int64_t depth = from + lane; depth < to; depth += 32) {
        float a[SMALL_ROWS], b[SMALL_EACH];
#pragma unroll
        for (int i = 0; i < SMALL_ROWS; i++)
            a[i] = left.at(min(row0 + i, rows - 1), depth);
#pragma unroll
        for (int k = 0; k < SMALL_EACH; k++)
            b[k] = right.at(min(col0 + k, cols - 1), depth);
#pragma unroll
        for (int i = 0; i < SMALL_ROWS; i++)
#pragma unroll
            for (int k = 0; k < SMALL_EACH; k++)
                sum[i * SMALL_EACH + k] = fmaf(a[i], b[k], sum[i * SMALL_EACH + k]);
    }
    /* Half of the sums go to the other half of the lanes, and so on: each lane ends with one. */
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++) {
            const bool upper = lane & half;
            const float given = upper ? sum[i] : sum[i + half];
            const float kept = upper ? sum[i + half] : sum[i];
            sum[i] = kept + __shfl_xor_sync(~0u, given, half);
        }
    const int64_t row = row0 + lane / SMALL_EACH, col = col0 + lane % SMALL_EACH;
    if (row < rows && col < cols)
        finish.put(row, col, sum[0]);
}

template <typename Left, typename Right, typename Finish>
static __global__ void __launch_bounds__(SMALL_COLS *SMALL_ROWS)
    small_gemm_depths(int64_t rows, int64_t cols, int64_t depths, Left left, Right right,
                      Finish finish)
{
    small_gemm_tile(rows, cols, 0, depths, left, right, finish);
}

/* The product by whichever is quicker for its size. */
template <typename Left, typename Right, typename Finish>
static void dense_product(struct queue *queue, int64_t rows, int64_t cols, int64_t depths,
                          Left left, Right right, Finish finish)
{
    const dim3 grid(blocks_for(rows, SMALL_ROWS) * blocks_for(cols, SMALL_COLS));
    if (!small_gemm_fits(rows, cols, depths))
        gemm(queue, rows, cols, depths, left, right, finish);
    else if constexpr (Right::along_depth)
        enqueue(queue, small_gemm_depths<Left, Right, Finish>, grid,
                dim3(32, SMALL_COLS / SMALL_EACH), rows, cols, depths, left, right, finish);
    else
        enqueue(queue, small_gemm_columns<Left, Right, Finish>, grid,
                dim3(SMALL_COLS, SMALL_PIECES), rows, cols, depths, left, right, finish);
}

/* --- Few results of very many depths, as the gradients of a narrow layer's weights are: the depths
 * are cut among blocks, whose sums are then added in order. Bound: the bytes of both factors. */
enum { SPLIT_FROM = 4096, SPLIT_RESULTS = 1024, SPLIT_CHUNKS = 1024, SPLIT_DEPTHS = 512 };

static inline bool split_fits(int64_t rows, int64_t cols, int64_t depths)
{
    return rows * cols <= SPLIT_RESULTS && depths >= SPLIT_FROM;
}

static inline int64_t split_chunks(int64_t depths)
{
    return depths < (int64_t)SPLIT_CHUNKS * SPLIT_DEPTHS ? depths / SPLIT_DEPTHS
                                                         : (int64_t)SPLIT_CHUNKS;
}

/* What product_split needs of workspace. */
static inline uint64_t split_bytes(int64_t rows, int64_t cols, int64_t depths)
{
    return split_fits(rows, cols, depths)
               ? (uint64_t)(rows * cols * split_chunks(depths)) * sizeof(float)
               : 0;
}

/* One chunk's sums, [rows][cols]. */
struct to_chunk {
    float *sums;
    int64_t stride;
    __device__ void put(int64_t row, int64_t col, float sum) const
    {
        sums[row * stride + col] = sum;
    }
};

template <typename Left, typename Right>
static __global__ void __launch_bounds__(SMALL_COLS *SMALL_ROWS)
    small_gemm_chunk(int64_t rows, int64_t cols, int64_t depths, Left left, Right right,
                     float *partial)
{
    const int64_t from = depths * blockIdx.y / gridDim.y;
    const int64_t to = depths * (blockIdx.y + 1) / gridDim.y;
    small_gemm_tile(rows, cols, from, to, left, right,
                    to_chunk{partial + (int64_t)blockIdx.y * rows * cols, cols});
}

/* A row of results is all of a product's. */
template <typename Finish> struct to_result {
    Finish finish;
    int64_t cols;
    __device__ void put(int64_t, int64_t index, float sum) const
    {
        finish.put(index / cols, index % cols, sum);
    }
};

/* dense_product; `partial` holds split_bytes. */
template <typename Left, typename Right, typename Finish>
static void product_split(struct queue *queue, int64_t rows, int64_t cols, int64_t depths,
                          Left left, Right right, Finish finish, float *partial)
{
    if (!split_fits(rows, cols, depths)) {
        dense_product(queue, rows, cols, depths, left, right, finish);
        return;
    }
    const unsigned chunks = (unsigned)split_chunks(depths);
    const unsigned warps =
        cols < SMALL_COLS ? blocks_for(cols, SMALL_EACH) : SMALL_COLS / SMALL_EACH;
    enqueue(queue, small_gemm_chunk<Left, Right>,
            dim3(blocks_for(rows, SMALL_ROWS) * blocks_for(cols, SMALL_COLS), chunks),
            dim3(32, warps), rows, cols, depths, left, right, partial);
    sum_rows(queue, (int64_t)chunks, rows * cols, reduce_value{partial},
             to_result<Finish>{finish, cols});
}

#endif
