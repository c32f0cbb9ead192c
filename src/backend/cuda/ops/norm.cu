/* norm.cu: layer-norm, a warp or a block a row; local response normalisation, one thread an
 * element. */
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/gemm.h"

/* The rows of a layer-norm are WIDE threads' work each, a warp's or a block's. */
enum { ROW_WARP = 32, ROW_LONG = 1024 }; /* from here on elements are worth a block */

template <int WIDE> static __device__ float row_sum(float value)
{
    if constexpr (WIDE == THREADS) {
        return block_sum(value);
    } else {
        for (int half = WIDE / 2; half > 0; half /= 2)
            value += __shfl_xor_sync(UINT32_MAX, value, half);
        return value;
    }
}

static unsigned row_blocks(int64_t n, int64_t k)
{
    return k < ROW_LONG ? blocks_for(n, THREADS / ROW_WARP) : (unsigned)n;
}

template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    layer_norm_row(int64_t n, int64_t k, const float *x, const float *gamma, const float *beta,
                   float epsilon, float *y, float *saved_mean, float *saved_scale)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDE;
    const int64_t from = threadIdx.x % WIDE;
    if (row >= n)
        return;
    x += row * k;
    y += row * k;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE)
        sum += x[j];
    const float mean = row_sum<WIDE>(sum) / (float)k;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float difference = x[j] - mean;
        squares += difference * difference;
    }
    const float scale = 1.0f / sqrtf(row_sum<WIDE>(squares) / (float)k + epsilon);
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE)
        y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
    if (from > 0)
        return;
    saved_mean[row] = mean;
    saved_scale[row] = scale;
}

void launch_layer_norm(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_layer_norm_x, 0), k = call_dim(call, AT_layer_norm_x, 1);
    enqueue(queue, k < ROW_LONG ? layer_norm_row<ROW_WARP> : layer_norm_row<THREADS>,
            dim3(row_blocks(n, k)), dim3(THREADS), n, k,
            (const float *)call_reals(call, AT_layer_norm_x),
            (const float *)call_reals(call, AT_layer_norm_gamma),
            (const float *)call_reals(call, AT_layer_norm_beta), call->op->attr.layer_norm.epsilon,
            call_reals(call, AT_layer_norm_y), call_reals(call, AT_layer_norm_saved_mean),
            call_reals(call, AT_layer_norm_saved_scale));
}

/* What a layer-norm was given and kept; its rows have k elements. */
struct layer_saved {
    const float *x, *gamma, *mean, *scale, *dy;
    int64_t n, k;
    __device__ float centred(int64_t row, int64_t j) const
    {
        return (x[row * k + j] - mean[row]) * scale[row];
    }
};

/* With g = dy·gamma: dx = scale·(g - Σg/k - x̂·Σ(g·x̂)/k). */
template <int WIDE>
static __global__ void __launch_bounds__(THREADS)
    layer_norm_grad_row(struct layer_saved saved, float *dx)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WIDE;
    const int64_t from = threadIdx.x % WIDE, k = saved.k;
    if (row >= saved.n)
        return;
    const float *dy = saved.dy + row * k;
    float sum = 0.0f, sum_centred = 0.0f;
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float g = dy[j] * saved.gamma[j];
        sum += g;
        sum_centred += g * saved.centred(row, j);
    }
    sum = row_sum<WIDE>(sum);
    sum_centred = row_sum<WIDE>(sum_centred);
#pragma unroll 4
    for (int64_t j = from; j < k; j += WIDE) {
        float g = dy[j] * saved.gamma[j];
        float common = (sum + saved.centred(row, j) * sum_centred) / (float)k;
        dx[row * k + j] = saved.scale[row] * (g - common);
    }
}

/* Sums over a chunk of rows for dgamma, dy·x̂, and for dbeta, dy: [chunk][2][k]. Threads have
 * columns and lines as in sum_rows. */
static __global__ void __launch_bounds__(SUM_COLS *SUM_LINES)
    layer_norm_chunk(struct layer_saved saved, int64_t chunk_rows, float *sums)
{
    __shared__ float partial[2][SUM_LINES][SUM_COLS];
    const int line = (int)threadIdx.y, lane = (int)threadIdx.x;
    const int64_t col = (int64_t)blockIdx.x * SUM_COLS + lane, k = saved.k;
    const int64_t from = blockIdx.y * chunk_rows, to = min(from + chunk_rows, saved.n);
    float gamma = 0.0f, beta = 0.0f;
    if (col < k)
#pragma unroll 4
        for (int64_t row = from + line; row < to; row += SUM_LINES) {
            const float dy = saved.dy[row * k + col];
            gamma += dy * saved.centred(row, col);
            beta += dy;
        }
    partial[0][line][lane] = gamma;
    partial[1][line][lane] = beta;
    __syncthreads();
    if (line > 1 || col >= k)
        return;
    float sum = 0.0f; /* now a line is one of both */
    for (int other = 0; other < SUM_LINES; other++)
        sum += partial[line][other][lane];
    sums[(blockIdx.y * 2 + line) * k + col] = sum;
}

struct to_gamma_and_beta {
    struct to_gradient dgamma, dbeta;
    int64_t k;
    __device__ void put(int64_t, int64_t col, float sum) const
    {
        if (col < k)
            dgamma.put(0, col, sum);
        else
            dbeta.put(0, col - k, sum);
    }
};

uint64_t workspace_layer_norm_grad(const struct program *program, const struct op *op)
{
    return sum_rows_bytes(2 * program->tensors[op_input(program, op, 0)].shape.dim[1]);
}

void launch_layer_norm_grad(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_layer_norm_grad_x, 0),
                  k = call_dim(call, AT_layer_norm_grad_x, 1);
    const bool accumulate = call->op->attr.layer_norm_grad.accumulate != 0;
    const struct layer_saved saved = {call_reals(call, AT_layer_norm_grad_x),
                                      call_reals(call, AT_layer_norm_grad_gamma),
                                      call_reals(call, AT_layer_norm_grad_saved_mean),
                                      call_reals(call, AT_layer_norm_grad_saved_scale),
                                      call_reals(call, AT_layer_norm_grad_dy),
                                      n,
                                      k};
    const int64_t chunk_rows = max((n + SUM_CHUNKS - 1) / SUM_CHUNKS, (int64_t)SUM_CHUNK_ROWS);
    const unsigned chunks = blocks_for(n, chunk_rows);
    float *sums = (float *)call->workspace;
    if (call_has(call, AT_layer_norm_grad_dx))
        enqueue(queue, k < ROW_LONG ? layer_norm_grad_row<ROW_WARP> : layer_norm_grad_row<THREADS>,
                dim3(row_blocks(n, k)), dim3(THREADS), saved,
                call_reals(call, AT_layer_norm_grad_dx));
    enqueue(queue, layer_norm_chunk, dim3(blocks_for(k, SUM_COLS), chunks),
            dim3(SUM_COLS, SUM_LINES), saved, chunk_rows, sums);
    sum_rows(queue, (int64_t)chunks, 2 * k, reduce_value{sums},
             to_gamma_and_beta{{call_reals(call, AT_layer_norm_grad_dgamma), 0, 1.0f, accumulate},
                               {call_reals(call, AT_layer_norm_grad_dbeta), 0, 1.0f, accumulate},
                               k});
}

/* An lrn over x[n, channels, inner]: channel c takes `before` channels before it and `after` behind
 * it into account; in the gradient it is the other way round. */
struct response {
    int64_t channels, inner, before, after;
    float alpha_share, beta, k; /* alpha_share: alpha / size */
    __device__ int64_t channel(int64_t index) const
    {
        return index / inner % channels;
    }
    /* Elements from first to last, both included, `inner` apart. */
    __device__ int64_t first(int64_t index) const
    {
        const int64_t c = channel(index);
        return index - (c < before ? c : before) * inner;
    }
    __device__ int64_t last(int64_t index) const
    {
        const int64_t behind = channels - 1 - channel(index);
        return index + (behind < after ? behind : after) * inner;
    }
};

/* The attributes of both ops are alike. */
static struct response response_of(const struct call *call, bool back)
{
    const auto &attr = call->op->attr.lrn;
    const int64_t n = call_dim(call, AT_lrn_x, 0), channels = call_dim(call, AT_lrn_x, 1);
    const int64_t more = attr.size / 2, less = (attr.size - 1) / 2;
    return {channels,
            call_count(call, AT_lrn_x) / (n * channels),
            back ? less : more,
            back ? more : less,
            attr.alpha / (float)attr.size,
            attr.beta,
            attr.k};
}

/* base = k + alpha/size · Σx², y = x · base^-beta */
static __global__ void lrn_each(int64_t count, struct response response, const float *x, float *y,
                                float *base)
{
    FOR_EACH(index, count)
    {
        const int64_t last = response.last(index);
        float sum = 0.0f;
        for (int64_t m = response.first(index); m <= last; m += response.inner)
            sum += x[m] * x[m];
        const float b = response.k + response.alpha_share * sum;
        y[index] = x[index] * powf(b, -response.beta);
        if (base)
            base[index] = b;
    }
}

void launch_lrn(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_lrn_x);
    enqueue(queue, lrn_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            response_of(call, false), (const float *)call_reals(call, AT_lrn_x),
            call_reals(call, AT_lrn_y), call_reals(call, AT_lrn_base));
}

/* dx = dy·base^-beta - 2·alpha·beta/size · x · Σ dy·x·base^(-beta-1), over the channels that took
 * this one into account */
static __global__ void lrn_grad_each(int64_t count, struct response response, const float *x,
                                     const float *base, const float *dy, float *dx)
{
    FOR_EACH(index, count)
    {
        const int64_t last = response.last(index);
        float sum = 0.0f;
        for (int64_t m = response.first(index); m <= last; m += response.inner)
            sum += dy[m] * x[m] * powf(base[m], -response.beta - 1.0f);
        dx[index] = dy[index] * powf(base[index], -response.beta) -
                    2.0f * response.alpha_share * response.beta * x[index] * sum;
    }
}

void launch_lrn_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_lrn_grad_x);
    enqueue(queue, lrn_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            response_of(call, true), (const float *)call_reals(call, AT_lrn_grad_x),
            (const float *)call_reals(call, AT_lrn_grad_base),
            (const float *)call_reals(call, AT_lrn_grad_dy), call_reals(call, AT_lrn_grad_dx));
}
