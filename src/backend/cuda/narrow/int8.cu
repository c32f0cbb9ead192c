/* int8.cu: ops on numbers of 8 bits that are no products and no windows (docs/quantisation.md), to
 * the bit what cpu/ref/ref_int8.c computes. A thread has four neighbours where their number is a
 * multiple of that. */
#include "backend/cuda/narrow/integer.h"
#include "backend/cuda/ops/nhwc.h"
#include "backend/cuda/plan/kernel_families.h"

/* The elements of an operand, whatever its type is. */
static int64_t elements(const struct call *call, int32_t operand)
{
    return shape_count(&call_tensor(call, operand)->shape);
}

template <typename Value, int WIDE> struct alignas(sizeof(Value) * WIDE) pack {
    Value at[WIDE];
};

template <int WIDE>
static __global__ void quantise_each(int64_t count, float scale, int32_t zero, float low,
                                     float high, const float *x, uint8_t *y)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        const auto from = ((const pack<float, WIDE> *)x)[index];
        pack<uint8_t, WIDE> to;
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            to.at[i] = quantised(from.at[i], scale, zero, low, high);
        ((pack<uint8_t, WIDE> *)y)[index] = to;
    }
}

void launch_quantise(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.quantise;
    const int64_t count = elements(call, AT_quantise_y);
    const int wide = count % 4 == 0 ? 4 : 1;
    enqueue_early(queue, wide == 4 ? quantise_each<4> : quantise_each<1>,
                  dim3(blocks_striding(count / wide)), dim3(THREADS), 0, count / wide, attr.scale,
                  attr.zero, (float)(attr.low - attr.zero), (float)(attr.high - attr.zero),
                  call_reals(call, AT_quantise_x), (uint8_t *)call->operands[AT_quantise_y]);
}

/* `inner` elements of a channel lie side by side. */
template <typename Value>
static __global__ void dequantise_each(int64_t count, uint32_t channels, uint32_t inner,
                                       float scale, int32_t zero, const Value *x,
                                       const float *scales, float *y)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        uint32_t rest, channel;
        split_number(split_number(index, inner, &rest), channels, &channel);
        y[index] = (float)((int32_t)x[index] - zero) * (scales ? scales[channel] : scale);
    }
}

void launch_dequantise(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.dequantise;
    const int64_t count = elements(call, AT_dequantise_y);
    const uint32_t channels = (uint32_t)call_dim(call, AT_dequantise_x, 1);
    const int64_t samples = call_dim(call, AT_dequantise_x, 0);
    const uint32_t inner =
        call_is_nhwc(call, AT_dequantise_x) ? 1 : (uint32_t)(count / (samples * channels));
    const void *x = call->operands[AT_dequantise_x];
    const float *scales = call_reals(call, AT_dequantise_scale);
    float *y = call_reals(call, AT_dequantise_y);
    const dim3 blocks(blocks_striding(count)), threads(THREADS);
    if (call_tensor(call, AT_dequantise_x)->dtype == DTYPE_I32)
        enqueue_early(queue, dequantise_each<int32_t>, blocks, threads, 0, count, channels, inner,
                      attr.scale, attr.zero, (const int32_t *)x, scales, y);
    else
        enqueue_early(queue, dequantise_each<uint8_t>, blocks, threads, 0, count, channels, inner,
                      attr.scale, attr.zero, (const uint8_t *)x, scales, y);
}

struct int8_sum {
    int32_t zero_a, zero_b, times_a, times_b, shift, zero, low, high;
};

template <int WIDE>
static __global__ void add_each(int64_t count, struct int8_sum sum, const uint8_t *a,
                                const uint8_t *b, uint8_t *y)
{
    allow_next();
    await_last();
    const int32_t half = 1 << (sum.shift - 1);
    FOR_EACH(index, count)
    {
        const auto of_a = ((const pack<uint8_t, WIDE> *)a)[index];
        const auto of_b = ((const pack<uint8_t, WIDE> *)b)[index];
        pack<uint8_t, WIDE> to;
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            const int32_t all = (of_a.at[i] - sum.zero_a) * sum.times_a +
                                (of_b.at[i] - sum.zero_b) * sum.times_b + half;
            to.at[i] = (uint8_t)clamp_int((all >> sum.shift) + sum.zero, sum.low, sum.high);
        }
        ((pack<uint8_t, WIDE> *)y)[index] = to;
    }
}

void launch_add_int8(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.add_int8;
    const struct int8_sum sum = {attr.zero_a, attr.zero_b, attr.multiplier_a, attr.multiplier_b,
                                 attr.shift,  attr.zero,   attr.low,          attr.high};
    const int64_t count = elements(call, AT_add_int8_y);
    const int wide = count % 16 == 0 ? 16 : 1;
    enqueue_early(
        queue, wide == 16 ? add_each<16> : add_each<1>, dim3(blocks_striding(count / wide)),
        dim3(THREADS), 0, count / wide, sum, (const uint8_t *)call->operands[AT_add_int8_a],
        (const uint8_t *)call->operands[AT_add_int8_b], (uint8_t *)call->operands[AT_add_int8_y]);
}

template <int WIDE>
static __global__ void look_up_each(int64_t count, const uint8_t *x, const uint8_t *table,
                                    uint8_t *y)
{
    __shared__ uint8_t levels[256];
    allow_next();
    await_last();
    for (int i = (int)threadIdx.x; i < 256; i += (int)blockDim.x)
        levels[i] = table[i];
    __syncthreads();
    FOR_EACH(index, count)
    {
        const auto from = ((const pack<uint8_t, WIDE> *)x)[index];
        pack<uint8_t, WIDE> to;
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            to.at[i] = levels[from.at[i]];
        ((pack<uint8_t, WIDE> *)y)[index] = to;
    }
}

void launch_table_int8(const struct call *call, struct queue *queue)
{
    const int64_t count = elements(call, AT_table_int8_y);
    const int wide = count % 4 == 0 ? 4 : 1;
    enqueue_early(queue, wide == 4 ? look_up_each<4> : look_up_each<1>,
                  dim3(blocks_striding(count / wide)), dim3(THREADS), 0, count / wide,
                  (const uint8_t *)call->operands[AT_table_int8_x],
                  (const uint8_t *)call->operands[AT_table_int8_table],
                  (uint8_t *)call->operands[AT_table_int8_y]);
}

/* One input's rows into those of the result. */
static __global__ void concat_bytes(int64_t count, uint32_t part, int64_t whole, int64_t first,
                                    const uint8_t *x, uint8_t *y)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        uint32_t within;
        const int64_t row = split_number(index, part, &within);
        y[row * whole + first + within] = x[index];
    }
}

void launch_concat_int8(const struct call *call, struct queue *queue)
{
    const int32_t inputs = call->op->inputs;
    const int64_t rows = call_dim(call, inputs, 0), whole = elements(call, inputs) / rows;
    int64_t first = 0;
    for (int32_t i = 0; i < inputs; i++) {
        const int64_t count = elements(call, i), part = count / rows;
        enqueue_early(queue, concat_bytes, dim3(blocks_striding(count)), dim3(THREADS), 0, count,
                      (uint32_t)part, whole, first, (const uint8_t *)call->operands[i],
                      (uint8_t *)call->operands[inputs]);
        first += part;
    }
}

/* A warp a row; of equals the first is kept. */
template <typename Value>
static __global__ void __launch_bounds__(THREADS)
    argmax_row(int64_t rows, int32_t width, const Value *x, int32_t *index)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    int32_t most = INT32_MIN, at = INT32_MAX;
    allow_next();
    await_last();
    if (row >= rows)
        return;
    for (int32_t i = lane; i < width; i += 32)
        if (const int32_t value = (int32_t)x[row * width + i]; value > most || at == INT32_MAX) {
            most = value;
            at = i;
        }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        const int32_t other = __shfl_xor_sync(~0u, most, apart);
        const int32_t there = __shfl_xor_sync(~0u, at, apart);
        if (other > most || (other == most && there < at)) {
            most = other;
            at = there;
        }
    }
    if (lane == 0)
        index[row] = at;
}

void launch_argmax(const struct call *call, struct queue *queue)
{
    const int64_t rows = call_dim(call, AT_argmax_x, 0);
    const int32_t width = (int32_t)call_dim(call, AT_argmax_x, 1);
    const dim3 blocks(blocks_for(rows, THREADS / 32)), threads(THREADS);
    int32_t *index = (int32_t *)call->operands[AT_argmax_index];
    const void *x = call->operands[AT_argmax_x];
    if (call_tensor(call, AT_argmax_x)->dtype == DTYPE_I32)
        enqueue_early(queue, argmax_row<int32_t>, blocks, threads, 0, rows, width,
                      (const int32_t *)x, index);
    else
        enqueue_early(queue, argmax_row<uint8_t>, blocks, threads, 0, rows, width,
                      (const uint8_t *)x, index);
}

static __global__ void to_nchw_each(int64_t count, struct image from, struct image to,
                                    const uint8_t *x, uint8_t *y)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<1>(to, index);
        y[index] = x[from.at(at.sample, (int32_t)at.channel, (int32_t)at.row, (int32_t)at.column)];
    }
}

void nhwc_bytes_to_nchw(struct queue *queue, int64_t samples, const struct image &image,
                        const uint8_t *from, uint8_t *to)
{
    const struct image nchw = {image.channels, image.rows, image.columns, false};
    const int64_t count = samples * image.channels * image.rows * image.columns;
    enqueue(queue, to_nchw_each, dim3(blocks_striding(count)), dim3(THREADS), count, image, nchw,
            from, to);
}
