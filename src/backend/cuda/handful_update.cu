/* handful_update.cu: the update of a layer in 16 bits from a handful of samples (handful.h), in one
 * pass: each weight is read and written once, and its copy written once, which is the bound.
 *
 * A thread has four neighbouring outputs of every fourth of the block's inputs, whose weights are
 * all on their way at once. Gradients are summed over samples in order. */
#include "backend/cuda/handful.h"
#include "backend/cuda/update.h"

enum { QUADS = 64, LINES = 4, EACH = 8, ROWS = LINES * EACH, AT_ONCE = 8 };

/* Four neighbours, of which `left` are there; EVEN: all rows begin at multiples of four. */
template <bool EVEN>
static __device__ float4 quad_read(struct cells cells, int64_t index, int64_t left)
{
    if (!EVEN)
        return make_float4(cells_get(cells, index), left > 1 ? cells_get(cells, index + 1) : 0.0f,
                           left > 2 ? cells_get(cells, index + 2) : 0.0f,
                           left > 3 ? cells_get(cells, index + 3) : 0.0f);
    if (!precision_is_narrow(cells.type))
        return *(const float4 *)((const float *)cells.data + index);
    const uint2 bits = *(const uint2 *)((const uint16_t *)cells.data + index);
    return make_float4(narrow_value((uint16_t)bits.x, cells.type),
                       narrow_value((uint16_t)(bits.x >> 16), cells.type),
                       narrow_value((uint16_t)bits.y, cells.type),
                       narrow_value((uint16_t)(bits.y >> 16), cells.type));
}

template <bool EVEN>
static __device__ void quad_write(struct cells cells, int64_t index, int64_t left, float4 quad)
{
    const float values[4] = {quad.x, quad.y, quad.z, quad.w};
    if (!EVEN) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left)
                cells_put(cells, index + i, values[i]);
    } else if (!precision_is_narrow(cells.type))
        *(float4 *)((float *)cells.data + index) = quad;
    else
        *(uint2 *)((uint16_t *)cells.data + index) =
            make_uint2((uint32_t)narrow_bits(quad.x, cells.type) |
                           (uint32_t)narrow_bits(quad.y, cells.type) << 16,
                       (uint32_t)narrow_bits(quad.z, cells.type) |
                           (uint32_t)narrow_bits(quad.w, cells.type) << 16);
}

/* Four neighbours less their gradient, there and in the copy. */
template <bool EVEN>
static __device__ void quad_update(float *w, struct cells copy, int64_t index, int64_t left,
                                   float4 was, float4 sum, float rate)
{
    const float4 is = make_float4(update_sgd(was.x, sum.x, rate), update_sgd(was.y, sum.y, rate),
                                  update_sgd(was.z, sum.z, rate), update_sgd(was.w, sum.w, rate));
    quad_write<EVEN>(cells{w, PRECISION_FP32}, index, left, is);
    quad_write<EVEN>(copy, index, left, is);
}

static __device__ void quad_add(float4 &sum, float factor, float4 by)
{
    sum.x = fmaf(factor, by.x, sum.x);
    sum.y = fmaf(factor, by.y, sum.y);
    sum.z = fmaf(factor, by.z, sum.z);
    sum.w = fmaf(factor, by.w, sum.w);
}

template <bool EVEN>
static __global__ void __launch_bounds__(QUADS *LINES, 2)
    handful_descend(const __grid_constant__ struct handful_update call)
{
    __shared__ float x[ROWS][AT_ONCE];
    const int thread = (int)(threadIdx.y * QUADS + threadIdx.x);
    const int64_t row0 = (int64_t)blockIdx.y * ROWS + threadIdx.y;
    const int64_t column = ((int64_t)blockIdx.x * QUADS + threadIdx.x) * 4, left = call.o - column;
    float4 was[EACH], sum[EACH] = {}, bias = {};
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (left > 0 && row0 + i * LINES < call.i)
            was[i] = quad_read<EVEN>(cells{call.w, PRECISION_FP32},
                                     (row0 + i * LINES) * call.o + column, left);
    for (int64_t n0 = 0; n0 < call.n; n0 += AT_ONCE) {
        const int64_t row = (int64_t)blockIdx.y * ROWS + thread / AT_ONCE;
        const int64_t n = n0 + thread % AT_ONCE;
        float4 dy[AT_ONCE] = {};
        __syncthreads();
        x[thread / AT_ONCE][thread % AT_ONCE] =
            row < call.i && n < call.n ? cells_get(call.x, n * call.i + row) : 0.0f;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (left > 0 && n0 + k < call.n)
                dy[k] = quad_read<EVEN>(call.dy, (n0 + k) * call.o + column, left);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                quad_add(sum[i], x[threadIdx.y + i * LINES][k], dy[k]);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            quad_add(bias, 1.0f, dy[k]);
    }
    if (left <= 0)
        return;
    const float rate = *call.rate;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (row0 + i * LINES < call.i)
            quad_update<EVEN>(call.w, call.w_copy, (row0 + i * LINES) * call.o + column, left,
                              was[i], sum[i], rate);
    if (call.b && row0 == 0)
        quad_update<EVEN>(call.b, call.b_copy, column, left,
                          quad_read<EVEN>(cells{call.b, PRECISION_FP32}, column, left), bias, rate);
}

void handful_apply(struct queue *queue, const struct handful_update *update)
{
    static_assert(QUADS * LINES == ROWS * AT_ONCE, "a thread has one of the inputs of samples");
    const dim3 grid(blocks_for(update->o, QUADS * 4), blocks_for(update->i, ROWS));
    enqueue(queue, update->o % 4 == 0 ? handful_descend<true> : handful_descend<false>, grid,
            dim3(QUADS, LINES), *update);
}
