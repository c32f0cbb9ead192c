/* reduce.h: sums in a fixed order.
 *
 * Within a block each thread adds its share in order, then those of a warp meet in a tree, and the
 * warps' are added in order. Over a whole array the share of each block depends on the count only.
 */
#ifndef PRONY_BACKEND_CUDA_REDUCE_H
#define PRONY_BACKEND_CUDA_REDUCE_H

#include "backend/cuda/device/launch.h"

enum { REDUCE_BLOCKS = 256, REDUCE_SHARE = 4096 }; /* at most; elements that are worth a block */

/* The sum of `value` over a block of THREADS threads, given to every thread. */
static inline __device__ float block_sum(float value)
{
    __shared__ float partial[THREADS / 32];
    for (int half = 16; half > 0; half /= 2)
        value += __shfl_xor_sync(UINT32_MAX, value, half);
    __syncthreads(); /* a sum before this one may still be read */
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = partial[0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; warp++)
        sum += partial[warp];
    return sum;
}

static inline __device__ float block_max(float value)
{
    __shared__ float partial[THREADS / 32];
    for (int half = 16; half > 0; half /= 2)
        value = fmaxf(value, __shfl_xor_sync(UINT32_MAX, value, half));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    float most = partial[0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; warp++)
        most = fmaxf(most, partial[warp]);
    return most;
}

/* One sum a block: scale · Σ term.at(index) over the block's share of [0, count). */
template <typename Term>
static __global__ void __launch_bounds__(THREADS)
    reduce_share(int64_t count, Term term, float scale, float *out)
{
    const int64_t share = (count + gridDim.x - 1) / gridDim.x;
    const int64_t from = share * blockIdx.x, to = from + share < count ? from + share : count;
    float sum = 0.0f;
    for (int64_t index = from + threadIdx.x; index < to; index += THREADS)
        sum += term.at(index);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = scale * sum;
}

struct reduce_value {
    const float *data;
    __device__ float at(int64_t index) const
    {
        return data[index];
    }
};

struct cells_value {
    struct cells cells;
    __device__ float at(int64_t index) const
    {
        return cells_get(cells, index);
    }
};

static inline unsigned reduce_blocks(int64_t count)
{
    int64_t blocks = (count + REDUCE_SHARE - 1) / REDUCE_SHARE;
    return blocks < REDUCE_BLOCKS ? (unsigned)blocks : (unsigned)REDUCE_BLOCKS;
}

/* *out = scale · Σ term.at(index), index in [0, count). `partial` holds REDUCE_BLOCKS floats. */
template <typename Term>
static void reduce(struct queue *queue, int64_t count, Term term, float scale, float *partial,
                   float *out)
{
    const unsigned blocks = reduce_blocks(count);
    if (blocks == 1) {
        enqueue(queue, reduce_share<Term>, dim3(1), dim3(THREADS), count, term, scale, out);
        return;
    }
    enqueue(queue, reduce_share<Term>, dim3(blocks), dim3(THREADS), count, term, 1.0f, partial);
    enqueue(queue, reduce_share<reduce_value>, dim3(1), dim3(THREADS), (int64_t)blocks,
            reduce_value{partial}, scale, out);
}

/* finish.put(0, col, Σ over rows of term.at(row · cols + col)). A block sums 32 columns; its 8
 * lines of threads take every 8th row, and their sums are added in order. */
enum { SUM_COLS = 32, SUM_LINES = 8 };

template <typename Term, typename Finish>
static __device__ void sum_rows_block(int64_t rows, int64_t cols, Term term, Finish finish)
{
    __shared__ float partial[SUM_LINES][SUM_COLS];
    const int line = (int)threadIdx.y;
    const int64_t col = (int64_t)blockIdx.x * SUM_COLS + threadIdx.x;
    float sum = 0.0f;
    if (col < cols)
        for (int64_t row = line; row < rows; row += SUM_LINES)
            sum += term.at(row * cols + col);
    partial[line][threadIdx.x] = sum;
    __syncthreads();
    if (line > 0 || col >= cols)
        return;
    for (int other = 1; other < SUM_LINES; other++)
        sum += partial[other][threadIdx.x];
    finish.put(0, col, sum);
}

template <typename Term, typename Finish>
static __global__ void __launch_bounds__(SUM_COLS *SUM_LINES)
    sum_rows_tile(int64_t rows, int64_t cols, Term term, Finish finish)
{
    sum_rows_block(rows, cols, term, finish);
}

template <typename Term, typename Finish>
static void sum_rows(struct queue *queue, int64_t rows, int64_t cols, Term term, Finish finish)
{
    enqueue(queue, sum_rows_tile<Term, Finish>, dim3(blocks_for(cols, SUM_COLS)),
            dim3(SUM_COLS, SUM_LINES), rows, cols, term, finish);
}

/* Many rows are summed in chunks that run at once, whose sums are then added in order. `partial`
 * holds sum_rows_bytes. */
enum { SUM_CHUNKS = 64, SUM_CHUNK_ROWS = 32 }; /* at most; at least */

static inline uint64_t sum_rows_bytes(int64_t cols)
{
    return (uint64_t)cols * SUM_CHUNKS * sizeof(float);
}

/* The elements of one chunk of rows, and where their sums go. */
template <typename Term> struct chunk_of {
    Term term;
    int64_t first; /* elements before the chunk */
    __device__ float at(int64_t index) const
    {
        return term.at(first + index);
    }
};

struct to_partial {
    float *sums;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        sums[col] = sum;
    }
};

template <typename Term>
static __global__ void __launch_bounds__(SUM_COLS *SUM_LINES)
    sum_rows_chunk(int64_t rows, int64_t cols, int64_t chunk_rows, Term term, float *partial)
{
    const int64_t from = blockIdx.y * chunk_rows, left = rows - from;
    sum_rows_block(left < chunk_rows ? left : chunk_rows, cols, chunk_of<Term>{term, from * cols},
                   to_partial{partial + blockIdx.y * cols});
}

template <typename Term, typename Finish>
static void sum_rows_split(struct queue *queue, int64_t rows, int64_t cols, Term term,
                           Finish finish, float *partial)
{
    if (rows < 4 * SUM_CHUNK_ROWS) {
        sum_rows(queue, rows, cols, term, finish);
        return;
    }
    const int64_t least = (rows + SUM_CHUNKS - 1) / SUM_CHUNKS;
    const int64_t chunk_rows = least < SUM_CHUNK_ROWS ? (int64_t)SUM_CHUNK_ROWS : least;
    const unsigned chunks = blocks_for(rows, chunk_rows);
    enqueue(queue, sum_rows_chunk<Term>, dim3(blocks_for(cols, SUM_COLS), chunks),
            dim3(SUM_COLS, SUM_LINES), rows, cols, chunk_rows, term, partial);
    sum_rows(queue, (int64_t)chunks, cols, reduce_value{partial}, finish);
}

#endif
