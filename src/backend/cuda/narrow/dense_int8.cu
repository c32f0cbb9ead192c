/* dense_int8.cu: dense layers of 8 bits (docs/quantisation.md): few samples, many (gemm_int8.h),
 * and any; large products are in dense_int8_blas.cu.
 *
 * Few samples: a block makes 32 results of all samples, at most 32. Its warps share the depth, 32
 * at a time: a thread loads four neighbouring columns of eight depths straight into registers, some
 * slabs ahead of what it multiplies, and transposes them for the tensor cores, whose rows are
 * samples. Warps' sums are added up out of shared memory. Weights do not change at inference: the
 * first are on their way before the kernel in front is done. Bound: each weight is read once, from
 * L2 or memory. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/narrow/gemm_int8.h"
#include "backend/cuda/narrow/integer.h"
#include "backend/cuda/plan/kernel_families.h"

enum {
    INT8_STRIP = 32,   /* columns of a block */
    INT8_SLAB = 32,    /* depths that a warp takes at a time */
    INT8_DEPTHS = 8,   /* … a thread */
    INT8_AHEAD = 4,    /* slabs on their way */
    INT8_SAMPLES = 16, /* of one tensor core tile */
    INT8_WARPS = 16,
    INT8_PITCH = INT8_STRIP + 4,
    INT8_FEW = 2 * INT8_SAMPLES,
};

struct dense_int8 {
    int32_t samples, in, out;
    const uint8_t *x;
    const int8_t *w; /* [in][out] */
    void *y;
    struct int8_ending ending;
};

static __device__ void store_int8(const struct dense_int8 &dense,
                                  const struct int8_channel &channel, int64_t at, int32_t sum)
{
    sum += channel.bias;
    if (dense.ending.multiplier)
        ((uint8_t *)dense.y)[at] = int8_end(dense.ending, channel, sum);
    else
        ((int32_t *)dense.y)[at] = sum;
}

#if __CUDA_ARCH__ >= 800

/* Eight neighbouring inputs of a sample, which begin at multiples of EVEN; `left` are there. */
template <int EVEN> static __device__ uint2 load_inputs(const uint8_t *from, int left)
{
    uint2 eight = {};
    if constexpr (EVEN == 8) {
        if (left > 0)
            eight = __ldcg((const uint2 *)from);
    } else if constexpr (EVEN == 4) {
        if (left > 0)
            eight.x = __ldcg((const uint32_t *)from);
        if (left > 4)
            eight.y = __ldcg((const uint32_t *)from + 1);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < left)
                (i < 4 ? eight.x : eight.y) |= (uint32_t)__ldcg(from + i) << i % 4 * 8;
    }
    return eight;
}

/* One warp at work; a lane is one of eight groups (of columns; of samples) and has one of four
 * places in the depth. What is beyond the depth is 0 in w. */
template <int TILES, int EVEN> struct int8_warp {
    const struct dense_int8 &dense;
    int group, place, column;
    int32_t sums[TILES][4][4];

    __device__ int8_warp(const struct dense_int8 &dense_)
        : dense(dense_), group((int)threadIdx.x % 32 / 4), place((int)threadIdx.x % 4), sums{}
    {
        column = (int)blockIdx.x * INT8_STRIP + 4 * group;
        if (column >= dense.out)
            column = 0; /* computed from others, and left out in the end */
    }
    __device__ void load(uint32_t (&w)[INT8_DEPTHS], int slab) const
    {
        const int depth = slab * INT8_SLAB + INT8_DEPTHS * place;
        const int8_t *from = dense.w + (int64_t)depth * dense.out + column;
#pragma unroll
        for (int i = 0; i < INT8_DEPTHS; i++)
            w[i] =
                depth + i < dense.in ? __ldg((const uint32_t *)(from + (int64_t)i * dense.out)) : 0;
    }
    __device__ void take(uint2 (&x)[TILES][2], int slab) const
    {
        const int depth = slab * INT8_SLAB + INT8_DEPTHS * place;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const int sample = tile * INT8_SAMPLES + upper * 8 + group;
                x[tile][upper] = load_inputs<EVEN>(dense.x + (int64_t)sample * dense.in + depth,
                                                   sample < dense.samples ? dense.in - depth : 0);
            }
    }
    __device__ void multiply(const uint32_t (&w)[INT8_DEPTHS], const uint2 (&x)[TILES][2])
    {
        uint32_t low[4] = {w[0], w[1], w[2], w[3]}, high[4] = {w[4], w[5], w[6], w[7]};
        int8_transpose(low);
        int8_transpose(high);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const uint32_t a[4] = {x[tile][0].x, x[tile][1].x, x[tile][0].y, x[tile][1].y};
#pragma unroll
            for (int j = 0; j < 4; j++)
                int8_multiply_add(sums[tile][j], a, low[j], high[j]);
        }
    }
    /* Its sums, to where the block finds them: [sample][column]. */
    __device__ void leave(int32_t *shared) const
    {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                const int sample = tile * INT8_SAMPLES + upper * 8 + group;
                int4 *to = (int4 *)&shared[sample * INT8_PITCH + 8 * place];
                if (sample >= dense.samples)
                    continue;
                const int i = 2 * upper;
                to[0] = make_int4(sums[tile][0][i], sums[tile][1][i], sums[tile][2][i],
                                  sums[tile][3][i]);
                to[1] = make_int4(sums[tile][0][i + 1], sums[tile][1][i + 1], sums[tile][2][i + 1],
                                  sums[tile][3][i + 1]);
            }
    }
};

#endif

template <int TILES, int EVEN>
static __global__ void __launch_bounds__(INT8_WARPS * 32, 1)
    dense_int8_few(const __grid_constant__ struct dense_int8 dense)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ int4 int8_shared[]; /* [warp][sample][INT8_PITCH] */
    int32_t *shared = (int32_t *)int8_shared;
    constexpr int APART = TILES * INT8_SAMPLES * INT8_PITCH;
    struct int8_warp<TILES, EVEN> own(dense);
    const int warp = (int)threadIdx.x / 32, slabs = (dense.in + INT8_SLAB - 1) / INT8_SLAB;
    const int column = (int)blockIdx.x * INT8_STRIP + (int)threadIdx.x % INT8_STRIP;
    struct int8_channel channel;
    uint32_t w[INT8_AHEAD][INT8_DEPTHS];
    uint2 x[INT8_AHEAD][TILES][2];

    allow_next();
    channel.take(dense.ending, column < dense.out ? column : 0);
#pragma unroll
    for (int s = 0; s < INT8_AHEAD; s++)
        own.load(w[s], warp + s * INT8_WARPS);
    await_last();
#pragma unroll
    for (int s = 0; s < INT8_AHEAD; s++)
        own.take(x[s], warp + s * INT8_WARPS);
    for (int slab = warp; slab < slabs; slab += INT8_AHEAD * INT8_WARPS)
#pragma unroll
        for (int s = 0; s < INT8_AHEAD; s++) {
            own.multiply(w[s], x[s]);
            own.load(w[s], slab + (s + INT8_AHEAD) * INT8_WARPS);
            own.take(x[s], slab + (s + INT8_AHEAD) * INT8_WARPS);
        }
    own.leave(shared + warp * APART);
    __syncthreads();
    for (int sample = (int)threadIdx.x / INT8_STRIP; column < dense.out && sample < dense.samples;
         sample += INT8_WARPS) {
        int32_t sum = 0;
#pragma unroll
        for (int i = 0; i < INT8_WARPS; i++)
            sum += shared[i * APART + sample * INT8_PITCH + column % INT8_STRIP];
        store_int8(dense, channel, (int64_t)sample * dense.out + column, sum);
    }
#endif
}

/* A warp a result. */
static __global__ void __launch_bounds__(THREADS)
    dense_int8_each(const __grid_constant__ struct dense_int8 dense)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t result = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    allow_next();
    await_last();
    if (result >= (int64_t)dense.samples * dense.out)
        return;
    const int64_t sample = result / dense.out, column = result - sample * dense.out;
    const uint8_t *x = dense.x + sample * dense.in;
    const int8_t *w = dense.w + column;
    int32_t sum = 0;
#pragma unroll 8
    for (int32_t i = lane; i < dense.in; i += 32)
        sum += (int32_t)x[i] * w[(int64_t)i * dense.out];
    sum = __reduce_add_sync(~0u, sum);
    struct int8_channel channel;
    channel.take(dense.ending, column);
    if (lane == 0)
        store_int8(dense, channel, result, sum);
}

static struct dense_int8 dense_of(const struct call *call)
{
    const auto &attr = call->op->attr.dense_int8;
    const struct int8_ending ending = {call_integers(call, AT_dense_int8_b),
                                       call_integers(call, AT_dense_int8_multiplier),
                                       call_integers(call, AT_dense_int8_shift),
                                       (const uint8_t *)call->operands[AT_dense_int8_table],
                                       attr.zero,
                                       attr.low,
                                       attr.high};
    return {(int32_t)call_dim(call, AT_dense_int8_x, 0),
            (int32_t)call_dim(call, AT_dense_int8_w, 0),
            (int32_t)call_dim(call, AT_dense_int8_w, 1),
            (const uint8_t *)call->operands[AT_dense_int8_x],
            (const int8_t *)call->operands[AT_dense_int8_w],
            call->operands[AT_dense_int8_y],
            ending};
}

void launch_dense_int8(const struct call *call, struct queue *queue)
{
    const struct dense_int8 dense = dense_of(call);
    enqueue_early(queue, dense_int8_each,
                  dim3(blocks_for((int64_t)dense.samples * dense.out, THREADS / 32)), dim3(THREADS),
                  0, dense);
}

template <int TILES> static void launch_few(struct queue *queue, const struct dense_int8 &dense)
{
    enqueue_early(queue,
                  dense.in % 8 == 0   ? dense_int8_few<TILES, 8>
                  : dense.in % 4 == 0 ? dense_int8_few<TILES, 4>
                                      : dense_int8_few<TILES, 1>,
                  dim3(blocks_for(dense.out, INT8_STRIP)), dim3(INT8_WARPS * 32),
                  sizeof(int32_t) * INT8_WARPS * TILES * INT8_SAMPLES * INT8_PITCH, dense);
}

void launch_dense_int8_few(const struct call *call, struct queue *queue)
{
    const struct dense_int8 dense = dense_of(call);
    (dense.samples <= INT8_SAMPLES ? launch_few<1> : launch_few<2>)(queue, dense);
}

void launch_dense_int8_gemm(const struct call *call, struct queue *queue)
{
    const struct dense_int8 dense = dense_of(call);
    const struct gemm_int8_axis pixel = {1, 1, 1, 1, 0, 1};
    const struct gemm_int8 gemm = {dense.samples, dense.out, dense.in,    dense.in, dense.out,
                                   pixel,         pixel,     dense.x,     NULL,     dense.w,
                                   dense.y,       false,     dense.ending};
    gemm_int8_multiply(queue, &gemm);
}

static const int64_t *weights_of(const struct choice *choice)
{
    return choice->program->tensors[op_input(choice->program, choice->op, AT_dense_int8_w)]
        .shape.dim;
}

static int64_t samples_of(const struct choice *choice)
{
    return choice->program->tensors[op_input(choice->program, choice->op, AT_dense_int8_x)]
        .shape.dim[0];
}

bool takes_dense_int8_few(const struct choice *choice)
{
    return weights_of(choice)[1] % 4 == 0 && samples_of(choice) <= INT8_FEW;
}

bool takes_dense_int8_gemm(const struct choice *choice)
{
    const int64_t *w = weights_of(choice), rows_most = 64 * (int64_t)65535;
    return w[0] % 4 == 0 && w[1] % 4 == 0 && samples_of(choice) <= rows_most;
}
