/* conv_tile.h: the products of a convolution, one tile of a result: what conv_implicit_gemm.cu and
 * conv_wgrad.cu share.
 *
 * Four warps make a tile of TALL × TILE_WIDE, each a quarter of it; a thread keeps the sums of
 * TALL / 16 rows and 8 pairs of columns in registers, in the places that the tensor cores' results
 * have (mma.m16n8k8), so that both precisions end alike. Operands come into shared memory in slabs
 * of SLAB depths: vectors of four by cp.async, STAGES - 1 slabs ahead; what lies apart by way of
 * registers, two slabs ahead, since cp.async of single elements takes 32 cycles a warp. What lies
 * outside is written as 0. Rows are padded so that no two lanes meet in a bank.
 *
 * fp32 is a chain of fmaf in the order of depth; also where tf32 is allowed but few rows would
 * leave most of a tensor core's tile empty. tf32 rounds both factors to 11 bits, to nearest, and
 * adds in fp32. Bound: shared memory, which must hand a warp 128 values for 32 products of 16 × 8 ×
 * 8; about half of what wgmma reaches. */
#ifndef PRONY_BACKEND_CUDA_CONV_TILE_H
#define PRONY_BACKEND_CUDA_CONV_TILE_H

#include "backend/cuda/device/launch.h"

enum {
    SLAB = 16,
    STAGES = 4,
    TILE_WIDE = 128,
    TILE_THREADS = 128,
    DEPTH_STRIDE = SLAB + 4,     /* of a row [depth] */
    WIDE_STRIDE = TILE_WIDE + 8, /* of a row [column] */
    PAIRS = TILE_WIDE / 2 / 8    /* of columns, of a thread */
};

/* Where an element of a source image lies, seen from a pixel: how much further in memory, and how
 * many rows and columns away. `row` is NOWHERE for what counts as 0 wherever it is. */
struct alignas(16) step_to {
    int32_t offset, row, column, unused;
};
enum { NOWHERE = -(1 << 30) };

static __device__ uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* Copies four floats; or writes 0 and does not read. */
static __device__ void copy_vector(float *to, const float *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(inside ? 16 : 0));
}

static __device__ void copy_commit(void)
{
    asm volatile("cp.async.commit_group;");
}

/* Waits until at most STAGES - 2 of the groups are on their way. */
static __device__ void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
}

/* The sums of one thread. Row i is row 8·i + lane / 4 of its warp's part, pair p its columns 8·p +
 * 2·(lane mod 4) and the next. */
template <int TALL> struct sums {
    static constexpr int ROWS = TALL / 16;
    float at[ROWS][PAIRS][2];
};

template <int TALL> static __device__ int first_row(void)
{
    return (int)threadIdx.x / 64 * (TALL / 2) + (int)threadIdx.x % 32 / 4;
}

static __device__ int first_column(void)
{
    return (int)threadIdx.x / 32 % 2 * (TILE_WIDE / 2) + (int)threadIdx.x % 4 * 2;
}

static __device__ void multiply_16_8_8(float (*sum)[2], float (*sum_8_below)[2],
                                       const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"((*sum)[0]), "+f"((*sum)[1]), "+f"((*sum_8_below)[0]), "+f"((*sum_8_below)[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8 × 4 matrices, from rows of 16 bytes; lane l names row l mod 8 of matrix l / 8. */
static __device__ void take_matrices(uint32_t (&to)[4], const float *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row)));
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = half_up(to[i]);
}

/* The right operand of a tile, either way round in shared memory. */
struct by_depth { /* [SLAB][WIDE_STRIDE] */
    static __device__ float at(const float *b, int column, int depth)
    {
        return b[depth * WIDE_STRIDE + column];
    }
    /* Of columns [column, column + 8) and the 8 behind them. */
    static __device__ void take(uint32_t (&to)[2][2], const float *b, int column, int depth)
    {
        const int lane = (int)threadIdx.x % 32;
        const float *from = b + (depth + lane % 4) * WIDE_STRIDE + column + lane / 4;
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i / 2][i % 2] = half_up(__float_as_uint(from[i % 2 * 4 * WIDE_STRIDE + i / 2 * 8]));
    }
};

struct by_column_depth { /* [TILE_WIDE][DEPTH_STRIDE] */
    static __device__ float at(const float *b, int column, int depth)
    {
        return b[column * DEPTH_STRIDE + depth];
    }
    static __device__ void take(uint32_t (&to)[2][2], const float *b, int column, int depth)
    {
        const int lane = (int)threadIdx.x % 32;
        uint32_t four[4];
        take_matrices(four, b + (column + lane / 16 * 8 + lane % 8) * DEPTH_STRIDE + depth +
                                lane / 8 % 2 * 4);
        to[0][0] = four[0], to[0][1] = four[1], to[1][0] = four[2], to[1][1] = four[3];
    }
};

/* The left operand of 16 rows and 8 depths, either way round. */
struct by_row_depth { /* [TALL][DEPTH_STRIDE] */
    static __device__ void take(uint32_t (&to)[4], const float *a, int row, int depth)
    {
        const int lane = (int)threadIdx.x % 32;
        take_matrices(to, a + (row + lane % 16) * DEPTH_STRIDE + depth + lane / 16 * 4);
    }
};

template <int STRIDE> struct by_depth_row { /* [SLAB][STRIDE] */
    static __device__ void take(uint32_t (&to)[4], const float *a, int row, int depth)
    {
        const int lane = (int)threadIdx.x % 32;
        const float *from = a + (depth + lane % 4) * STRIDE + row + lane / 4;
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i] = half_up(__float_as_uint(from[i / 2 * 4 * STRIDE + i % 2 * 8]));
    }
};

/* sums += a·b over one slab. */
template <int TALL, typename Right, typename Left = by_row_depth>
static __device__ void add_slab_tf32(struct sums<TALL> &sums, const float *a, const float *b)
{
    const int row = (int)threadIdx.x / 64 * (TALL / 2), column = (int)threadIdx.x / 32 % 2 * 64;
#pragma unroll
    for (int depth = 0; depth < SLAB; depth += 8) {
        uint32_t left[TALL / 32][4], right[PAIRS][2];
#pragma unroll
        for (int i = 0; i < TALL / 32; i++)
            Left::take(left[i], a, row + i * 16, depth);
#pragma unroll
        for (int p = 0; p < PAIRS; p += 2) {
            uint32_t two[2][2];
            Right::take(two, b, column + p * 8, depth);
#pragma unroll
            for (int i = 0; i < 4; i++)
                right[p + i / 2][i % 2] = two[i / 2][i % 2];
        }
#pragma unroll
        for (int i = 0; i < TALL / 32; i++)
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                multiply_16_8_8(&sums.at[2 * i][p], &sums.at[2 * i + 1][p], left[i], right[p]);
    }
}

template <int TALL, typename Right>
static __device__ void add_slab_f32(struct sums<TALL> &sums, const float *a, const float *b)
{
    const int row = first_row<TALL>(), column = first_column();
#pragma unroll 4
    for (int depth = 0; depth < SLAB; depth++) {
        float left[TALL / 16], right[PAIRS][2];
#pragma unroll
        for (int i = 0; i < TALL / 16; i++)
            left[i] = a[(row + i * 8) * DEPTH_STRIDE + depth];
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                right[p][i] = Right::at(b, column + p * 8 + i, depth);
#pragma unroll
        for (int i = 0; i < TALL / 16; i++)
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    sums.at[i][p][k] = fmaf(left[i], right[p][k], sums.at[i][p][k]);
    }
}

template <bool TF32, int TALL, typename Right>
static __device__ void add_slab(struct sums<TALL> &sums, const float *a, const float *b)
{
    if constexpr (TF32)
        add_slab_tf32<TALL, Right>(sums, a, b);
    else
        add_slab_f32<TALL, Right>(sums, a, b);
}

#endif
