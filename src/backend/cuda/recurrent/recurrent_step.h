/* recurrent_step.h: the product of one step of a wide recurrent layer: a few samples with a matrix
 * of weights that all steps share. What counts is how long it takes from one step to the next.
 *
 * A block has 64 columns and a piece of the depth, so that there is one for each multiprocessor; it
 * asks for its weights, which no step writes, while the kernel before it ends. A thread makes 4
 * columns of EACH samples over a quarter of the piece. The quarters are added in order here, the
 * pieces by whoever reads them.
 *
 * Bound: 20 samples of 650 units are 278,000 multiply-adds a block, 1.2 µs, and about as long from
 * kernel to kernel. */
#ifndef PRONY_BACKEND_CUDA_RECURRENT_STEP_H
#define PRONY_BACKEND_CUDA_RECURRENT_STEP_H

#include "backend/cuda/product/gemm.h"

enum {
    STEP_COLS = 64,
    STEP_LANES = 16, /* threads that share a row of the result, 4 columns each */
    STEP_GROUPS = 4, /* of samples, EACH of them */
    STEP_QUARTERS = 4,
    STEP_DEPTH = 224,                    /* of a piece, at most */
    STEP_BLOCKS = TARGET_MULTIPROCESSORS /* wanted */
};

/* How a product of [rows, depths] and [depths, cols] is cut, by shape only. */
struct step_cut {
    int32_t each;   /* samples of a thread */
    int32_t pieces; /* of the depth … */
    int32_t depth;  /* … so deep, a multiple of 4 */
};

static inline struct step_cut step_cut_of(int64_t rows, int64_t cols, int64_t depths)
{
    enum { LEAST = 32 };
    const int32_t each = rows <= 4 ? 1 : rows <= 8 ? 2 : rows <= 16 ? 4 : rows <= 20 ? 5 : 8;
    const int64_t tiles =
        (int64_t)blocks_for(rows, each * STEP_GROUPS) * blocks_for(cols, STEP_COLS);
    const int64_t wanted = min(STEP_BLOCKS / tiles, depths / LEAST);
    const int64_t pieces = max(wanted, (int64_t)blocks_for(depths, STEP_DEPTH));
    return {each, (int32_t)pieces, (int32_t)(blocks_for(depths, 4 * pieces) * 4)};
}

/* Of the pieces of one product, [pieces, rows, cols]. */
static inline uint64_t step_bytes(int64_t rows, int64_t cols, int64_t depths)
{
    return (uint64_t)step_cut_of(rows, cols, depths).pieces * (uint64_t)(rows * cols) *
           sizeof(float);
}

/* The sum of pieces for one element of the result. */
struct pieces {
    const float *data;
    int32_t count;
    int64_t size; /* of one */
    __device__ float at(int64_t index) const
    {
        float sum = 0.0f;
#pragma unroll 4
        for (int32_t piece = 0; piece < count; piece++)
            sum += data[piece * size + index];
        return sum;
    }
};

/* Copies WIDE floats to shared memory, or as many zeros, without waiting for them. */
template <int WIDE> static __device__ void ask_floats(float *to, const float *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "n"(WIDE * sizeof(float)), "r"(there ? WIDE * (int)sizeof(float) : 0)
                 : "memory");
}

static inline __device__ void await_asked(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Part of a row-major matrix. */
struct step_tile {
    const float *data;
    int64_t stride;        /* from row to row */
    int64_t rows, columns; /* that are there; none where it is not positive */
};

template <int WIDE>
static __device__ void ask_rows(float *to, int32_t stride, int32_t height, int32_t width,
                                const struct step_tile &from)
{
    for (int32_t row = (int32_t)threadIdx.x / STEP_LANES; row < height; row += THREADS / STEP_LANES)
        for (int32_t column = (int32_t)threadIdx.x % STEP_LANES * WIDE; column < width;
             column += STEP_LANES * WIDE) {
            const bool there = row < from.rows && column < from.columns;
            ask_floats<WIDE>(to + row * stride + column,
                             there ? from.data + row * from.stride + column : from.data, there);
        }
}

/* `height` rows of `width` floats to rows `stride` apart, 0 where there are none; in fours where
 * they lie so. */
static inline __device__ void ask_tile(float *to, int32_t stride, int32_t height, int32_t width,
                                       const struct step_tile &from)
{
    if ((from.stride | from.columns) % 4 == 0 && (uintptr_t)from.data % 16 == 0)
        ask_rows<4>(to, stride, height, width, from);
    else
        ask_rows<1>(to, stride, height, width, from);
}

/* Words of a row in shared memory that is read along the depth, so that those that are read at once
 * lie in different banks. */
enum { STEP_STRIDE = STEP_DEPTH + 4 };

template <int EACH, bool TRANSPOSED> static constexpr int step_shared_floats(void)
{
    constexpr int ROWS = EACH * STEP_GROUPS;
    constexpr int WEIGHTS = TRANSPOSED ? STEP_COLS * STEP_STRIDE : STEP_DEPTH * STEP_COLS;
    constexpr int FACTORS = ROWS * STEP_STRIDE + WEIGHTS;
    constexpr int PARTS = STEP_QUARTERS * ROWS * STEP_COLS;
    return FACTORS > PARTS ? FACTORS : PARTS;
}

/* Weights lie [depth, col], or where TURNED [col, depth]: in shared memory likewise. */
template <int EACH, bool TRANSPOSED>
static __global__ void __launch_bounds__(THREADS)
    step_multiply(int64_t rows, int64_t cols, int64_t depths, int32_t depth, const float *left,
                  int64_t left_stride, const float *weights, float *pieces)
{
    extern __shared__ float4 step_shared[];
    constexpr int ROWS = EACH * STEP_GROUPS;
    const int32_t lane = (int32_t)threadIdx.x % STEP_LANES;
    const int32_t group = (int32_t)threadIdx.x / STEP_LANES % STEP_GROUPS;
    const int32_t quarter = (int32_t)threadIdx.x / (STEP_LANES * STEP_GROUPS);
    const int32_t tiles = (int32_t)((cols + STEP_COLS - 1) / STEP_COLS);
    const int64_t row0 = (int64_t)(blockIdx.x / tiles) * ROWS;
    const int64_t col0 = (int64_t)(blockIdx.x % tiles) * STEP_COLS;
    const int64_t depth0 = (int64_t)blockIdx.y * depth;
    const int64_t here = min((int64_t)depth, depths - depth0);
    float *h = (float *)step_shared, *w = h + ROWS * STEP_STRIDE;

    allow_next();
    if (TRANSPOSED)
        ask_tile(w, STEP_STRIDE, STEP_COLS, depth,
                 step_tile{weights + col0 * depths + depth0, depths, cols - col0, here});
    else
        ask_tile(w, STEP_COLS, depth, STEP_COLS,
                 step_tile{weights + depth0 * cols + col0, cols, here, cols - col0});
    await_last();
    ask_tile(h, STEP_STRIDE, ROWS, depth,
             step_tile{left + row0 * left_stride + depth0, left_stride, rows - row0, here});
    await_asked();
    __syncthreads();
    float sum[EACH][4] = {};
    for (int32_t k = 4 * quarter; k < depth; k += 4 * STEP_QUARTERS) {
        vector<4> b[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            b[i] = *(const vector<4> *)(TRANSPOSED ? w + (lane + i * STEP_LANES) * STEP_STRIDE + k
                                                   : w + (k + i) * STEP_COLS + 4 * lane);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const vector<4> a = *(const vector<4> *)(h + (group * EACH + e) * STEP_STRIDE + k);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    sum[e][c] = fmaf(a.at[i], TRANSPOSED ? b[c].at[i] : b[i].at[c], sum[e][c]);
        }
    }
    __syncthreads();
    float *part = h; /* [quarter][row][column] */
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            part[(quarter * ROWS + group * EACH + e) * STEP_COLS +
                 (TRANSPOSED ? lane + c * STEP_LANES : 4 * lane + c)] = sum[e][c];
    __syncthreads();
    for (int32_t i = (int32_t)threadIdx.x; i < ROWS * STEP_COLS; i += THREADS) {
        const int64_t row = row0 + i / STEP_COLS, col = col0 + i % STEP_COLS;
        float all = 0.0f;
#pragma unroll
        for (int other = 0; other < STEP_QUARTERS; other++)
            all += part[other * ROWS * STEP_COLS + i];
        if (row < rows && col < cols)
            pieces[(blockIdx.y * rows + row) * cols + col] = all;
    }
}

template <int EACH, bool TRANSPOSED>
static void step_enqueue(struct queue *queue, int64_t rows, int64_t cols, int64_t depths,
                         const struct step_cut &cut, const float *left, int64_t left_stride,
                         const float *weights, float *pieces)
{
    const unsigned tiles = blocks_for(rows, EACH * STEP_GROUPS) * blocks_for(cols, STEP_COLS);
    if (!queue->counting && queue->error == cudaSuccess) /* room for the next step's weights */
        queue->error = cudaFuncSetAttribute(step_multiply<EACH, TRANSPOSED>,
                                            cudaFuncAttributePreferredSharedMemoryCarveout,
                                            cudaSharedmemCarveoutMaxShared);
    enqueue_early(queue, step_multiply<EACH, TRANSPOSED>, dim3(tiles, (unsigned)cut.pieces),
                  dim3(THREADS), step_shared_floats<EACH, TRANSPOSED>() * sizeof(float), rows, cols,
                  depths, cut.depth, left, left_stride, weights, pieces);
}

/* left[rows, depths] · weights, left's rows `left_stride` apart; the result lies in pieces, for
 * which `room` holds step_bytes. */
template <bool TRANSPOSED>
static struct pieces step_product(struct queue *queue, int64_t rows, int64_t cols, int64_t depths,
                                  const float *left, int64_t left_stride, const float *weights,
                                  float *room)
{
    const struct step_cut cut = step_cut_of(rows, cols, depths);
    const auto launch = cut.each == 1   ? step_enqueue<1, TRANSPOSED>
                        : cut.each == 2 ? step_enqueue<2, TRANSPOSED>
                        : cut.each == 4 ? step_enqueue<4, TRANSPOSED>
                        : cut.each == 5 ? step_enqueue<5, TRANSPOSED>
                                        : step_enqueue<8, TRANSPOSED>;
    launch(queue, rows, cols, depths, cut, left, left_stride, weights, room);
    return {room, cut.pieces, rows * cols};
}

template <typename Finish>
static __global__ void step_finish(int64_t cols, struct pieces pieces, Finish finish)
{
    allow_next();
    await_last();
    FOR_EACH(index, pieces.size)
    {
        uint32_t col;
        const int64_t row = split_number(index, (uint32_t)cols, &col);
        finish.put(row, col, pieces.at(index));
    }
}

/* finish.put(row, col, sum), as gemm.h has it */
template <typename Finish>
static void step_finish_product(struct queue *queue, int64_t cols, struct pieces pieces,
                                Finish finish)
{
    enqueue_early(queue, step_finish<Finish>, dim3(blocks_striding(pieces.size)), dim3(THREADS), 0,
                  cols, pieces, finish);
}

#endif
