/* reduce.h: sums in a fixed order.
 *
 * Within a block each thread adds its share in order, then partial sums meet in a tree over shared
 * memory. Over a whole array the share of each block depends on the count only. */
#ifndef PRONY_BACKEND_CUDA_REDUCE_H
#define PRONY_BACKEND_CUDA_REDUCE_H

#include "backend/cuda/launch.h"

enum { REDUCE_BLOCKS = 256, REDUCE_SHARE = 4096 }; /* at most; elements that are worth a block */

/* The sum of `value` over a block of THREADS threads, given to every thread. */
static inline __device__ float block_sum(float value)
{
    __shared__ float partial[THREADS];
    const int thread = (int)threadIdx.x;
    __syncthreads(); /* a sum before this one may still be read */
    partial[thread] = value;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            partial[thread] += partial[thread + half];
    }
    __syncthreads();
    return partial[0];
}

static inline __device__ float block_max(float value)
{
    __shared__ float partial[THREADS];
    const int thread = (int)threadIdx.x;
    __syncthreads();
    partial[thread] = value;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            partial[thread] = fmaxf(partial[thread], partial[thread + half]);
    }
    __syncthreads();
    return partial[0];
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
static __global__ void __launch_bounds__(SUM_COLS *SUM_LINES)
    sum_rows_tile(int64_t rows, int64_t cols, Term term, Finish finish)
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
static void sum_rows(struct queue *queue, int64_t rows, int64_t cols, Term term, Finish finish)
{
    enqueue(queue, sum_rows_tile<Term, Finish>, dim3(blocks_for(cols, SUM_COLS)),
            dim3(SUM_COLS, SUM_LINES), rows, cols, term, finish);
}

#endif
