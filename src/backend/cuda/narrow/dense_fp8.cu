/* dense_fp8.cu: see fp8.h. Products are cuBLASLt's, which wants both factors in the order of the
 * depth. */
#include "backend/cuda/narrow/fp8.h"

#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/dense_blas.h"

#include <cuda_fp8.h>

static const float FP8_MOST = 448.0f;

/* Each block leaves the largest magnitude of its share. */
static __global__ void __launch_bounds__(THREADS)
    find_largest(int64_t count, struct cells x, float *parts)
{
    __shared__ float most[THREADS / 32];
    float own = 0.0f;
    for_eights(count, [&](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(x, first, some, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            own = fmaxf(own, fabsf(values[i]));
    });
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        own = fmaxf(own, __shfl_xor_sync(~0u, own, apart));
    if (threadIdx.x % 32 == 0)
        most[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < THREADS / 32; i++)
        own = fmaxf(own, most[i]);
    parts[blockIdx.x] = own;
}

/* What a step of the numbers stands for, by all threads; the first block keeps it. */
static __device__ float scale_of(int count, const float *parts, float *scale)
{
    __shared__ float most[THREADS / 32];
    float own = 0.0f;
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        own = fmaxf(own, parts[i]);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        own = fmaxf(own, __shfl_xor_sync(~0u, own, apart));
    if (threadIdx.x % 32 == 0)
        most[threadIdx.x / 32] = own;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        own = fmaxf(own, most[i]);
    const float step = own > 0.0f ? own / FP8_MOST : 1.0f;
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
        *scale = step;
    return step;
}

static __device__ uint8_t fp8_of(float value)
{
    return (uint8_t)__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

/* Rows of `in` become rows of `pitch`, filled up with 0. Eight at a time where rows are as long. */
template <bool WHOLE>
static __global__ void __launch_bounds__(THREADS)
    round_rows(int64_t count, uint32_t in, uint32_t pitch, struct cells x, int parts_count,
               const float *parts, float *scale, uint8_t *y)
{
    const float step = scale_of(parts_count, parts, scale);
    if constexpr (WHOLE) {
        for_eights(count, [=](int64_t first, int some) {
            float values[CELLS];
            uint32_t words[2] = {};
            cells_read_some(x, first, some, values);
#pragma unroll
            for (int i = 0; i < CELLS; i++)
                words[i / 4] |= (uint32_t)fp8_of(values[i] / step) << i % 4 * 8;
            *(uint2 *)(y + first) = make_uint2(words[0], words[1]);
        });
    } else {
        FOR_EACH(index, count)
        {
            uint32_t column;
            const int64_t row = split_number(index, pitch, &column);
            y[index] = column < in ? fp8_of(cells_get(x, row * in + column) / step) : (uint8_t)0;
        }
    }
}

/* w[in][out] becomes [out][pitch], by tiles in shared memory. */
enum { FP8_TILE = 32 };
static __global__ void __launch_bounds__(THREADS)
    round_transposed(int32_t in, int32_t out, int32_t pitch, const float *w, int parts_count,
                     const float *parts, float *scale, uint8_t *y)
{
    __shared__ float tile[FP8_TILE][FP8_TILE + 1];
    const float step = scale_of(parts_count, parts, scale);
    const int32_t column = (int32_t)threadIdx.x % FP8_TILE, line = (int32_t)threadIdx.x / FP8_TILE;
    const int32_t row0 = (int32_t)blockIdx.y * FP8_TILE, column0 = (int32_t)blockIdx.x * FP8_TILE;
    for (int32_t r = line; r < FP8_TILE; r += THREADS / FP8_TILE) {
        const bool there = row0 + r < in && column0 + column < out;
        tile[r][column] = there ? w[(int64_t)(row0 + r) * out + column0 + column] : 0.0f;
    }
    __syncthreads();
    for (int32_t r = line; r < FP8_TILE; r += THREADS / FP8_TILE)
        if (column0 + r < out && row0 + column < pitch)
            y[(int64_t)(column0 + r) * pitch + row0 + column] = fp8_of(tile[column][r] / step);
}

static unsigned parts_of(int64_t count)
{
    const unsigned blocks = blocks_for(count, THREADS * CELLS);
    return blocks < FP8_PARTS ? blocks : (unsigned)FP8_PARTS;
}

void fp8_round_weights(struct queue *queue, int64_t in, int64_t out, const float *w,
                       const struct fp8_copy *copy, void *room)
{
    const unsigned parts = parts_of(in * out);
    const int32_t pitch = (int32_t)fp8_pitch(in);
    enqueue(queue, find_largest, dim3(parts), dim3(THREADS), in * out,
            cells{(void *)w, PRECISION_FP32}, (float *)room);
    enqueue(queue, round_transposed, dim3(blocks_for(out, FP8_TILE), blocks_for(pitch, FP8_TILE)),
            dim3(THREADS), (int32_t)in, (int32_t)out, pitch, w, (int)parts, (const float *)room,
            copy->scale, copy->w);
}

/* --- The op. The workspace: what the product takes, parts and scale, the rounded inputs. */

uint64_t workspace_dense_fp8(const struct program *program, const struct op *op)
{
    const int64_t *x = tensor_of(program, op, AT_dense_x)->shape.dim;
    return PRODUCT_BYTES + FP8_ROOM + (uint64_t)x[0] * (uint64_t)fp8_pitch(x[1]);
}

void launch_dense_fp8(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_dense_x, 0), in = call_dim(call, AT_dense_w, 0);
    const int64_t pitch = fp8_pitch(in), count = n * pitch;
    const struct cells x = call_cells(call, AT_dense_x), y = call_cells(call, 3);
    const struct tensor *w = call_tensor(call, AT_dense_w);
    const struct fp8_copy *copies = call->mixed ? call->mixed->fp8 : NULL;
    const struct fp8_copy copy = copies ? copies[w->entry] : (struct fp8_copy){};
    const enum activation function = (enum activation)call->op->attr.dense.activation;
    float *parts = (float *)((char *)call->workspace + PRODUCT_BYTES), *scale = parts + FP8_PARTS;
    uint8_t *rounded = (uint8_t *)parts + FP8_ROOM;
    const unsigned blocks = parts_of(n * in);
    enqueue(queue, find_largest, dim3(blocks), dim3(THREADS), n * in, x, parts);
    if (in == pitch)
        enqueue(queue, round_rows<true>, dim3(blocks_of_eights(count)), dim3(THREADS), count,
                (uint32_t)in, (uint32_t)pitch, x, (int)blocks, (const float *)parts, scale,
                rounded);
    else
        enqueue(queue, round_rows<false>, dim3(blocks_striding(count)), dim3(THREADS), count,
                (uint32_t)in, (uint32_t)pitch, x, (int)blocks, (const float *)parts, scale,
                rounded);
    struct product product = {};
    product.m = call_dim(call, AT_dense_w, 1);
    product.n = n;
    product.k = pitch;
    product.a_transposed = true;
    product.a = copy.w;
    product.b = rounded;
    product.in = PRECISION_FP8;
    product.scale_a = copy.scale;
    product.scale_b = scale;
    set_result(&product, y);
    if (call_has(call, AT_dense_b))
        product.bias = mixed_copy(call->mixed, call_tensor(call, AT_dense_b)).data;
    product.relu = function == ACTIVATION_RELU;
    blas_multiply(queue, &product, call->workspace);
    if (function != ACTIVATION_NONE && function != ACTIVATION_RELU)
        mixed_activate(queue, call_count(call, AT_dense_y), function, 0.0f, y, y);
}

bool takes_dense_fp8(const struct choice *choice)
{
    const struct program *program = choice->program;
    const struct tensor *w = tensor_of(program, choice->op, AT_dense_w);
    const int32_t bias = op_input(program, choice->op, AT_dense_b);
    return choice->device->fp8 && w->role == ROLE_PARAM && w->view_of < 0 &&
           (bias < 0 || program->tensors[bias].role == ROLE_PARAM) &&
           fp8_fits(w->shape.dim[0], w->shape.dim[1]) &&
           tensor_of(program, choice->op, AT_dense_x)->shape.dim[0] >= FP8_SAMPLES_LEAST;
}
