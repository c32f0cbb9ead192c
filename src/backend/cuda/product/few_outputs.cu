/* few_outputs.cu: see few_outputs.h. Up: a thread has the weights of every 256th input in
 * registers, which are on their way before the kernel in front is done; a block goes through some
 * of the samples. Down: a thread has the weights of one input in registers. The update: a thread
 * has an input and every 32nd sample. Bound: the bytes of x, or of dx. */
#include "backend/cuda/product/few_outputs.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/optimiser_rules.h"

enum { FEW_OUTPUTS_ROWS = 8, FEW_OUTPUTS_WARPS = THREADS / 32, FEW_OUTPUTS_GROUPS = 8 };

/* NARROW: something is kept in 16 bits. */
template <bool BITS16> static __device__ float value_at(const struct cells &cells, int64_t index)
{
    return BITS16 ? cells_get(cells, index) : ((const float *)cells.data)[index];
}

template <bool BITS16>
static __device__ void value_put(const struct cells &cells, int64_t index, float value)
{
    if (BITS16)
        cells_put(cells, index, value);
    else
        ((float *)cells.data)[index] = value;
}

/* Half of a lane's sums go to the other half of the lanes, and so on: each lane ends with one. */
template <int HALF> static __device__ float exchange_sums(const float (&sums)[2 * HALF])
{
    const bool upper = threadIdx.x & HALF;
    float left[HALF];
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        const float given = upper ? sums[i] : sums[i + HALF];
        const float kept = upper ? sums[i + HALF] : sums[i];
        left[i] = kept + __shfl_xor_sync(UINT32_MAX, given, HALF);
    }
    if constexpr (HALF == 1)
        return left[0];
    else
        return exchange_sums<HALF / 2>(left);
}

/* All of a thread's are on their way at once: nothing is asked in between. */
template <bool BITS16> static __device__ float input_at(const struct cells &x, int64_t index)
{
    return BITS16 ? value_of_16bit(((const uint16_t *)x.data)[index], x.type)
                  : ((const float *)x.data)[index];
}

/* NARROW: x is in 16 bits. OUTPUTS: at least o; so many samples at a time that a lane has 32 sums.
 * EACH: inputs of a thread whose weights it has at a time. */
template <int OUTPUTS, int EACH, bool BITS16>
static __global__ void __launch_bounds__(THREADS)
    few_outputs_up(int64_t n, int64_t i, int o, int64_t samples, struct cells x, const float *w,
                   const float *bias, enum activation function, struct cells y)
{
    enum { AT_ONCE = 32 / OUTPUTS };
    __shared__ float share[FEW_OUTPUTS_GROUPS][FEW_OUTPUTS_WARPS][32];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int64_t first = (int64_t)blockIdx.x * samples;
    const int64_t last = first + samples < n ? first + samples : n;
    allow_next();
    for (int64_t input0 = thread; input0 < i + thread; input0 += EACH * THREADS) {
        float weights[EACH][OUTPUTS];
#pragma unroll
        for (int e = 0; e < EACH; e++)
#pragma unroll
            for (int k = 0; k < OUTPUTS; k++) {
                const int64_t input = input0 + e * THREADS;
                weights[e][k] = k < o && input < i ? w[input * o + k] : 0.0f;
            }
        if (input0 == thread)
            await_last();
        for (int64_t n0 = first; n0 < last; n0 += AT_ONCE) {
            float *own = &share[(n0 - first) / AT_ONCE][thread / 32][lane];
            float sums[32] = {};
#pragma unroll
            for (int s = 0; s < AT_ONCE; s++)
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    const int64_t input = input0 + e * THREADS;
                    const float value = n0 + s < last && input < i
                                            ? input_at<BITS16>(x, (n0 + s) * i + input)
                                            : 0.0f;
#pragma unroll
                    for (int k = 0; k < OUTPUTS; k++)
                        sums[s * OUTPUTS + k] = fmaf(value, weights[e][k], sums[s * OUTPUTS + k]);
                }
            const float sum = exchange_sums<16>(sums);
            *own = input0 == thread ? sum : *own + sum;
        }
    }
    __syncthreads();
    /* now a warp has some of the samples, a lane one output of one sample */
    for (int64_t group = thread / 32; first + group * AT_ONCE < last; group += FEW_OUTPUTS_WARPS) {
        const int64_t sample = first + group * AT_ONCE + lane / OUTPUTS;
        const int output = lane % OUTPUTS;
        float sum = 0.0f;
        for (int warp = 0; warp < FEW_OUTPUTS_WARPS; warp++)
            sum += share[group][warp][lane];
        if (sample < last && output < o)
            cells_put(y, sample * o + output,
                      activation_value(function, bias ? sum + bias[output] : sum));
    }
}

void few_outputs_layer(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells x,
                       const float *w, const float *bias, enum activation function, struct cells y)
{
    enum { BLOCKS = TARGET_MULTIPROCESSORS, FEW = 4 };
    const int64_t samples = (n + BLOCKS - 1) / BLOCKS;
    const bool is_16bit = precision_is_16bit(x.type);
    const auto few = is_16bit ? few_outputs_up<FEW, 12, true> : few_outputs_up<FEW, 12, false>;
    const auto more = is_16bit ? few_outputs_up<FEW_OUTPUTS_MOST, 8, true>
                               : few_outputs_up<FEW_OUTPUTS_MOST, 8, false>;
    enqueue_early(queue, o <= FEW ? few : more, dim3(blocks_for(n, samples)), dim3(THREADS), 0, n,
                  i, (int)o, samples, x, w, bias, function, y);
}

template <bool BITS16>
static __global__ void __launch_bounds__(THREADS)
    few_outputs_rows(int64_t n, int64_t i, int o, struct cells dy, const float *w, struct cells dx)
{
    const int64_t input = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    float weights[FEW_OUTPUTS_MOST];
    allow_next();
    if (input < i)
#pragma unroll
        for (int k = 0; k < FEW_OUTPUTS_MOST; k++)
            weights[k] = k < o ? w[input * o + k] : 0.0f;
    await_last();
    if (input >= i)
        return;
    for (int r = 0; r < FEW_OUTPUTS_ROWS; r++) {
        const int64_t row = (int64_t)blockIdx.y * FEW_OUTPUTS_ROWS + r;
        float sum = 0.0f;
        if (row >= n)
            return;
#pragma unroll
        for (int k = 0; k < FEW_OUTPUTS_MOST; k++)
            if (k < o)
                sum = fmaf(value_at<BITS16>(dy, row * o + k), weights[k], sum);
        value_put<BITS16>(dx, row * i + input, sum);
    }
}

void few_outputs_down(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells dy,
                      const float *w, struct cells dx)
{
    const bool is_16bit = precision_is_16bit(dy.type) || precision_is_16bit(dx.type);
    enqueue_early(queue, is_16bit ? few_outputs_rows<true> : few_outputs_rows<false>,
                  dim3(blocks_for(i, THREADS), blocks_for(n, FEW_OUTPUTS_ROWS)), dim3(THREADS), 0,
                  n, i, (int)o, dy, w, dx);
}

enum { LINES = 32, LINE = 32, SUMS_AT_ONCE = 9 };

/* The first block has the bias, too: the output behind the last. */
template <int OUTPUTS, bool BITS16>
static __global__ void __launch_bounds__(LINE *LINES)
    few_outputs_sgd(int64_t n, int64_t i, int o, struct cells x, struct cells dy, const float *rate,
                    float *w, float *b)
{
    __shared__ float lines[SUMS_AT_ONCE][LINES][LINE + 1];
    const int column = (int)threadIdx.x, line = (int)threadIdx.y;
    const int64_t input = (int64_t)blockIdx.x * LINE + column;
    const bool first = b && blockIdx.x == 0 && column < o;
    float sums[OUTPUTS + 1] = {};
#pragma unroll 4
    for (int64_t row = line; row < n; row += LINES) {
        const float value = input < i ? value_at<BITS16>(x, row * i + input) : 0.0f;
#pragma unroll
        for (int k = 0; k < OUTPUTS; k++)
            if (k < o)
                sums[k] = fmaf(value, value_at<BITS16>(dy, row * o + k), sums[k]);
        if (first)
            sums[OUTPUTS] += value_at<BITS16>(dy, row * o + column);
    }
#pragma unroll
    for (int k0 = 0; k0 < OUTPUTS + 1; k0 += SUMS_AT_ONCE) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SUMS_AT_ONCE && k0 + k < OUTPUTS + 1; k++)
            lines[k][line][column] = sums[k0 + k];
        __syncthreads();
        const int k = k0 + line; /* now a line is a sum */
        const bool is_bias = k == OUTPUTS;
        if (line >= SUMS_AT_ONCE || k > OUTPUTS || (is_bias ? !first : k >= o || input >= i))
            continue;
        float all = 0.0f;
#pragma unroll
        for (int other = 0; other < LINES; other++)
            all += lines[line][other][column];
        float *to = is_bias ? b + column : w + input * o + k;
        *to = update_sgd(*to, all, *rate);
    }
}

void few_outputs_update(struct queue *queue, int64_t n, int64_t i, int64_t o, struct cells x,
                        struct cells dy, const float *rate, float *w, float *b)
{
    const bool is_16bit = precision_is_16bit(x.type) || precision_is_16bit(dy.type);
    const auto one = is_16bit ? few_outputs_sgd<1, true> : few_outputs_sgd<1, false>;
    const auto more = is_16bit ? few_outputs_sgd<FEW_OUTPUTS_MOST, true>
                               : few_outputs_sgd<FEW_OUTPUTS_MOST, false>;
    enqueue(queue, o == 1 ? one : more, dim3(blocks_for(i, LINE)), dim3(LINE, LINES), n, i, (int)o,
            x, dy, rate, w, b);
}
