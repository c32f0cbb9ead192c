/* skinny_update.cu: the update of a layer from at most 32 samples (skinny.h), in one pass:
 * each weight is read and written once, and in 16 bits its copy written once, which is the bound.
 *
 * A thread has four neighbouring outputs of every fourth of the block's inputs, whose weights are
 * all on their way at once. Gradients are summed over samples in order. */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/product/skinny.h"

enum { QUADS = 64, LINES = 4, EACH = 4, ROWS = LINES * EACH, AT_ONCE = 8 };

/* Four neighbours of 32 or of 16 bits, as they lie. */
template <bool BITS16> struct quad_bits;
template <> struct quad_bits<false> {
    float4 bits;
    __device__ float4 value(enum precision) const
    {
        return bits;
    }
};
template <> struct quad_bits<true> {
    uint2 bits;
    __device__ float4 value(enum precision type) const
    {
        return make_float4(
            value_of_16bit((uint16_t)bits.x, type), value_of_16bit((uint16_t)(bits.x >> 16), type),
            value_of_16bit((uint16_t)bits.y, type), value_of_16bit((uint16_t)(bits.y >> 16), type));
    }
};

static __device__ uint32_t pair_bits(float low, float high, enum precision type)
{
    return (uint32_t)bits_of_16bit(low, type) | (uint32_t)bits_of_16bit(high, type) << 16;
}

/* Four neighbours less their gradient, there and in the copy. */
template <bool BITS16>
static __device__ void quad_update(float *w, struct cells copy, int64_t index, float4 was,
                                   float4 sum, float rate)
{
    const float4 is = make_float4(update_sgd(was.x, sum.x, rate), update_sgd(was.y, sum.y, rate),
                                  update_sgd(was.z, sum.z, rate), update_sgd(was.w, sum.w, rate));
    if (BITS16)
        __stcs((float4 *)(w + index), is);
    else
        *(float4 *)(w + index) = is;
    if (copy.data)
        *(uint2 *)((uint16_t *)copy.data + index) =
            make_uint2(pair_bits(is.x, is.y, copy.type), pair_bits(is.z, is.w, copy.type));
}

static __device__ void quad_add(float4 &sum, float factor, float4 by)
{
    sum.x = fmaf(factor, by.x, sum.x);
    sum.y = fmaf(factor, by.y, sum.y);
    sum.z = fmaf(factor, by.z, sum.z);
    sum.w = fmaf(factor, by.w, sum.w);
}

/* NARROW: dy is in 16 bits; then products read the copies, and the weights themselves make room for
 * them in L2. */
template <bool BITS16>
static __global__ void __launch_bounds__(QUADS *LINES, 3)
    skinny_sgd(const __grid_constant__ struct skinny_update call)
{
    __shared__ float x[ROWS][SKINNY_SAMPLES];
    const int thread = (int)(threadIdx.y * QUADS + threadIdx.x);
    const int64_t row0 = (int64_t)blockIdx.y * ROWS + threadIdx.y;
    const int64_t column = ((int64_t)blockIdx.x * QUADS + threadIdx.x) * 4;
    const bool there = column < call.o;
    const float rate = *call.rate;
    float4 was[EACH], sum[EACH] = {}, bias = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const float4 *from = (const float4 *)&call.w[(row0 + i * LINES) * call.o + column];
        if (there && row0 + i * LINES < call.i)
            was[i] = BITS16 ? __ldcs(from) : *from;
    }
    for (int e = thread; e < ROWS * SKINNY_SAMPLES; e += QUADS * LINES) {
        const int64_t row = (int64_t)blockIdx.y * ROWS + e % ROWS, n = e / ROWS;
        x[e % ROWS][n] = row < call.i && n < call.n ? cells_get(call.x, n * call.i + row) : 0.0f;
    }
    __syncthreads();
    for (int n0 = 0; n0 < (int)call.n; n0 += AT_ONCE) {
        struct quad_bits<BITS16> dy[AT_ONCE] = {
        };
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (there && n0 + k < call.n)
                dy[k] = ((const struct quad_bits<BITS16> *)
                             call.dy.data)[((n0 + k) * call.o + column) / 4];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const float4 gradient = dy[k].value(call.dy.type);
#pragma unroll
            for (int i = 0; i < EACH; i++)
                quad_add(sum[i], x[threadIdx.y + i * LINES][n0 + k], gradient);
            quad_add(bias, 1.0f, gradient);
        }
    }
    if (!there)
        return;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (row0 + i * LINES < call.i)
            quad_update<BITS16>(call.w, call.w_copy, (row0 + i * LINES) * call.o + column, was[i],
                                sum[i], rate);
    if (call.b && row0 == 0)
        quad_update<BITS16>(call.b, call.b_copy, column, *(const float4 *)&call.b[column], bias,
                            rate);
}

void skinny_apply(struct queue *queue, const struct skinny_update *update)
{
    const dim3 grid(blocks_for(update->o, QUADS * 4), blocks_for(update->i, ROWS));
    enqueue(queue, precision_is_16bit(update->dy.type) ? skinny_sgd<true> : skinny_sgd<false>, grid,
            dim3(QUADS, LINES), *update);
}
