/* precision.h: what products are computed in, and numbers of 16 bits in memory.
 *
 * Kernels that meet both widths see tensors as `cells`: eight neighbours at a time are read into
 * floats and written back, one access of 16 bytes for numbers of 16 bits and two for floats. */
#ifndef PRONY_BACKEND_CUDA_PRECISION_H
#define PRONY_BACKEND_CUDA_PRECISION_H

#include <cstdint>
#define CUDA_NO_HALF /* no type `half`: the word is ours */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum precision {
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_COUNT,
    PRECISION_FP8 = PRECISION_COUNT, /* factors of a product alone: e4m3 … */
    PRECISION_INT8                   /* … or integers, whose sums are of 32 bits */
};

/* Are the factors of products kept in 16 bits? */
static inline __host__ __device__ bool precision_is_16bit(enum precision precision)
{
    return precision == PRECISION_BF16 || precision == PRECISION_FP16;
}

/* A tensor on the device; `type` is fp32, or of 16 bits. */
struct cells {
    void *data;
    enum precision type;
};

enum { CELLS = 8 }; /* that are moved at a time */

static inline __device__ float value_of_16bit(uint16_t bits, enum precision type)
{
    return type == PRECISION_BF16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                  : __half2float(__ushort_as_half(bits));
}

static inline __device__ uint16_t bits_of_16bit(float value, enum precision type)
{
    return type == PRECISION_BF16 ? __bfloat16_as_ushort(__float2bfloat16_rn(value))
                                  : __half_as_ushort(__float2half_rn(value));
}

/* A float half up to tf32, of which what lies below is to be dropped. The arithmetic's own NaN, all
 * ones but the sign, would become −0 by the addition: then the sum is the smaller one. */
static inline __device__ uint32_t half_up(uint32_t bits)
{
    return (uint32_t)__viaddmax_s32((int)bits, 0x1000, (int)bits);
}

static inline __device__ float cells_get(struct cells cells, int64_t index)
{
    return precision_is_16bit(cells.type)
               ? value_of_16bit(((const uint16_t *)cells.data)[index], cells.type)
               : ((const float *)cells.data)[index];
}

static inline __device__ void cells_put(struct cells cells, int64_t index, float value)
{
    if (precision_is_16bit(cells.type))
        ((uint16_t *)cells.data)[index] = bits_of_16bit(value, cells.type);
    else
        ((float *)cells.data)[index] = value;
}

/* Eight of them; `first` is a multiple of CELLS. */
static inline __device__ void cells_read(struct cells cells, int64_t first, float *values)
{
    if (precision_is_16bit(cells.type)) {
        const uint4 word = *(const uint4 *)((const uint16_t *)cells.data + first);
        const uint32_t pairs[4] = {word.x, word.y, word.z, word.w};
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] = value_of_16bit((uint16_t)(pairs[i / 2] >> (i % 2 * 16)), cells.type);
    } else {
        const float4 *from = (const float4 *)((const float *)cells.data + first);
        const float4 low = from[0], high = from[1];
        values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
        values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
    }
}

static inline __device__ void cells_write(struct cells cells, int64_t first, const float *values)
{
    if (precision_is_16bit(cells.type)) {
        uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < CELLS / 2; i++)
            pairs[i] = (uint32_t)bits_of_16bit(values[2 * i], cells.type) |
                       (uint32_t)bits_of_16bit(values[2 * i + 1], cells.type) << 16;
        *(uint4 *)((uint16_t *)cells.data + first) =
            make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    } else {
        float4 *to = (float4 *)((float *)cells.data + first);
        to[0] = make_float4(values[0], values[1], values[2], values[3]);
        to[1] = make_float4(values[4], values[5], values[6], values[7]);
    }
}

/* Calls each(first, count) for groups of eight elements; the last may be smaller. */
template <typename Each> static inline __device__ void for_eights(int64_t count, Each each)
{
    for (int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * CELLS; first < count;
         first += (int64_t)gridDim.x * blockDim.x * CELLS)
        each(first, count - first < CELLS ? (int)(count - first) : (int)CELLS);
}

static inline __device__ void cells_read_some(struct cells cells, int64_t first, int count,
                                              float *values)
{
    if (count == CELLS)
        cells_read(cells, first, values);
    else
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] = i < count ? cells_get(cells, first + i) : 0.0f;
}

static inline __device__ void cells_write_some(struct cells cells, int64_t first, int count,
                                               const float *values)
{
    if (count == CELLS)
        cells_write(cells, first, values);
    else
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            if (i < count)
                cells_put(cells, first + i, values[i]);
}

#endif
