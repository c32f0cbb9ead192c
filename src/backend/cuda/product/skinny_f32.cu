/* skinny_f32.cu: products of weights with few samples (at most 32) in fp32 (skinny.h).
 *
 * A cluster of blocks makes 64 results of up to 16 samples. Its warps share the depth, 16 at a
 * time, which each copies to shared memory for itself, weights and samples, ahead of what it
 * multiplies. A lane has eight results of every fourth sample: of four depths, twelve vectors are
 * read for 128 multiply-adds. What warps have found is added up in order, first in each block, then
 * in the cluster.
 *
 * The first weights are on their way before the kernel in front is done, as in skinny.cu. Bound:
 * the multiply-adds, from about ten samples on. */
#include "backend/cuda/product/skinny.h"

#include "backend/cuda/device/activation.h"

enum {
    STRIP = 64,       /* results of a cluster */
    SLAB = 16,        /* depths that a warp takes at a time */
    PITCH = SLAB + 4, /* floats from a row of depths to the next: no two lanes meet in a bank */
    STAGES = 2,       /* slabs on their way */
    WARPS = 8,        /* of a block */
    GROUPS = 8,       /* of results, each a lane's */
    LINES = 4,        /* of samples */
    EACH = STRIP / GROUPS,
    CLUSTER_MOST = 8,
    SAMPLES = 16,                                    /* of a cluster */
    WEIGHTS_FLOATS = STRIP * PITCH,                  /* room for a slab of weights … */
    STAGE_FLOATS = WEIGHTS_FLOATS + SAMPLES * PITCH, /* … and of samples */
    ROOM_FLOATS = STAGES * STAGE_FLOATS,             /* of a warp */
    BLOCK_FLOATS = WARPS * ROOM_FLOATS + SAMPLES * STRIP
};

struct reals_call {
    int n, m, k;
    const float *w, *x, *bias;
    enum activation function;
    float *y;
};

#if __CUDA_ARCH__ >= 900

/* Four neighbours, or zeros if they are not there. */
static __device__ void copy_four(float *to, const float *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ void copies_are_asked(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT> static __device__ void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    __syncwarp();
}

static __device__ void cluster_meet(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ float cluster_read(const float *shared, int block)
{
    float value;
    asm volatile("{ .reg .b32 there;\n\tmapa.shared::cluster.u32 there, %1, %2;\n\t"
                 "ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(value)
                 : "r"((uint32_t)__cvta_generic_to_shared(shared)), "r"(block)
                 : "memory");
    return value;
}

/* One warp at work. */
template <bool TRANSPOSED> struct reals_warp {
    static constexpr int OWN = SAMPLES / LINES; /* of a lane */
    const struct reals_call &call;
    int lane, group, line, first; /* first: of the strip's results */
    float sums[OWN][EACH];

    __device__ reals_warp(const struct reals_call &call_)
        : call(call_), lane((int)threadIdx.x % 32), group(lane % GROUPS), line(lane / GROUPS),
          first((int)blockIdx.y * STRIP), sums{}
    {
    }
    /* Turned: [result][depth], else [depth][result]. */
    __device__ void load(float *stage, int slab) const
    {
        constexpr int WIDE = (TRANSPOSED ? SLAB : STRIP) / 4, AT_ONCE = 32 / WIDE; /* lanes; rows */
        const int depth = slab * SLAB, part = lane % WIDE * 4;
        const int column = (TRANSPOSED ? depth : first) + part;
        const int rows = TRANSPOSED ? call.m : call.k, wide = TRANSPOSED ? call.k : call.m;
#pragma unroll
        for (int i = 0; i < (TRANSPOSED ? STRIP : SLAB) / AT_ONCE; i++) {
            const int at = lane / WIDE + i * AT_ONCE, row = (TRANSPOSED ? first : depth) + at;
            const bool there = row < rows && column < wide;
            copy_four(&stage[at * (TRANSPOSED ? PITCH : STRIP) + part],
                      call.w + (there ? (int64_t)row * wide + column : 0), there);
        }
    }
    __device__ void take(float *stage, int slab) const
    {
        const int part = lane % 4 * 4, depth = slab * SLAB + part;
#pragma unroll
        for (int i = 0; i < SAMPLES / 8; i++) {
            const int sample = lane / 4 + i * 8;
            const bool there = sample < call.n && depth < call.k;
            copy_four(&stage[WEIGHTS_FLOATS + sample * PITCH + part],
                      call.x + (there ? (int64_t)sample * call.k + depth : 0), there);
        }
    }
    __device__ void multiply(const float *stage)
    {
#pragma unroll
        for (int depth = 0; depth < SLAB; depth += 4) {
            float x[OWN][4], w[EACH][4]; /* [][depth] */
#pragma unroll
            for (int s = 0; s < OWN; s++)
                *(float4 *)x[s] =
                    *(const float4 *)&stage[WEIGHTS_FLOATS + (line + s * LINES) * PITCH + depth];
#pragma unroll
            for (int i = 0; i < (TRANSPOSED ? (int)EACH : 0); i++)
                *(float4 *)w[i] = *(const float4 *)&stage[(group + i * GROUPS) * PITCH + depth];
#pragma unroll
            for (int i = 0; i < (TRANSPOSED ? 0 : 8);
                 i++) { /* of each depth, two times four results */
                const float4 four = *(const float4 *)&stage[(depth + i / 2) * STRIP +
                                                            i % 2 * (STRIP / 2) + 4 * group];
                w[i % 2 * 4][i / 2] = four.x, w[i % 2 * 4 + 1][i / 2] = four.y;
                w[i % 2 * 4 + 2][i / 2] = four.z, w[i % 2 * 4 + 3][i / 2] = four.w;
            }
#pragma unroll
            for (int d = 0; d < 4; d++)
#pragma unroll
                for (int s = 0; s < OWN; s++)
#pragma unroll
                    for (int i = 0; i < EACH; i++)
                        sums[s][i] = fmaf(x[s][d], w[i][d], sums[s][i]);
        }
        __syncwarp();
    }
    /* Its sums, in its own room: [sample][result]. */
    __device__ void leave(float *room) const
    {
#pragma unroll
        for (int s = 0; s < OWN; s++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int result =
                    TRANSPOSED ? group + i * GROUPS : i / 4 * (STRIP / 2) + 4 * group + i % 4;
                room[(line + s * LINES) * STRIP + result] = sums[s][i];
            }
    }
};

/* What the block's warps have found, added up, then what the blocks have: some results each. */
static __device__ void add_up(const struct reals_call &call, float bias, float *shared)
{
    float *parts = shared + WARPS * ROOM_FLOATS; /* [sample][result] */
    __syncthreads();
    for (int e = (int)threadIdx.x; e < call.n * STRIP; e += WARPS * 32) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++)
            sum += shared[warp * ROOM_FLOATS + e];
        parts[e] = sum;
    }
    cluster_meet();
    for (int e = (int)(blockIdx.x * WARPS * 32 + threadIdx.x); e < call.n * STRIP;
         e += (int)gridDim.x * WARPS * 32) {
        const int result = (int)blockIdx.y * STRIP + e % STRIP;
        float sum = 0.0f;
        for (int block = 0; block < (int)gridDim.x; block++)
            sum += cluster_read(&parts[e], block);
        if (result < call.m)
            call.y[(int64_t)(e / STRIP) * call.m + result] =
                activation_value(call.function, sum + bias);
    }
    cluster_meet(); /* nobody leaves while others read what it has found */
}

#endif

template <bool TRANSPOSED>
static __global__ void __launch_bounds__(WARPS * 32)
    skinny_reals(const __grid_constant__ struct reals_call all)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ float4 reals_shared[];
    const int before = (int)blockIdx.z * SAMPLES; /* samples of others */
    struct reals_call call = all;
    call.n = all.n - before < SAMPLES ? all.n - before : SAMPLES;
    call.x += (int64_t)before * all.k;
    call.y += (int64_t)before * all.m;
    float *shared = (float *)reals_shared;
    const int warp = (int)threadIdx.x / 32, slabs = (call.k + SLAB - 1) / SLAB;
    const int begin = (int)blockIdx.x * WARPS + warp, sharers = (int)gridDim.x * WARPS;
    float *room = shared + warp * ROOM_FLOATS;
    const int result = (int)(blockIdx.y * STRIP + threadIdx.x % STRIP); /* in the end */
    struct reals_warp<TRANSPOSED> own(call);

    allow_next();
    const float bias = call.bias && result < call.m ? __ldg(&call.bias[result]) : 0.0f;
#pragma unroll
    for (int s = 0; s < STAGES; s++) {
        own.load(room + s * STAGE_FLOATS, begin + s * sharers);
        copies_are_asked();
    }
    await_last();
#pragma unroll
    for (int s = 0; s < STAGES; s++) {
        own.take(room + s * STAGE_FLOATS, begin + s * sharers);
        copies_are_asked();
    }
    for (int slab = begin, s = 0; slab < slabs; slab += sharers, s = (s + 1) % STAGES) {
        float *stage = room + s * STAGE_FLOATS;
        copies_wait<STAGES - 1>();
        own.multiply(stage);
        own.load(stage, slab + STAGES * sharers);
        own.take(stage, slab + STAGES * sharers);
        copies_are_asked();
    }
    copies_wait<0>();
    own.leave(room);
    add_up(call, bias, shared);
#endif
}

/* Blocks of a cluster: as many as there are multiprocessors for, wherever it runs. */
static unsigned cluster_of(int64_t strips)
{
    enum { BLOCKS = TARGET_MULTIPROCESSORS };
    const int64_t blocks = BLOCKS / strips;
    return blocks < 1 ? 1 : blocks < CLUSTER_MOST ? (unsigned)blocks : (unsigned)CLUSTER_MOST;
}

/* As enqueue_early, in clusters of so many blocks along x. */
template <typename Kernel, typename Call>
static void enqueue_cluster(struct queue *queue, Kernel kernel, dim3 grid, dim3 block,
                            unsigned cluster, size_t bytes, const Call &call)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t launch = {};
    const bool chained = queue->chained > 0 && queue->chained == queue->launches;
    queue->launches++;
    if (queue->counting || queue->error != cudaSuccess)
        return;
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = cluster;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = bytes;
    launch.stream = queue->stream;
    launch.attrs = attributes;
    launch.numAttrs = queue->early && chained ? 2 : 1;
    queue->error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (queue->error == cudaSuccess)
        queue->error = cudaLaunchKernelEx(&launch, kernel, call);
    queue->chained = queue->launches;
}

void skinny_multiply_reals(struct queue *queue, const struct skinny *skinny, const float *w,
                           const float *x, const float *bias, enum activation function, float *y)
{
    const struct reals_call call = {
        (int)skinny->n, (int)skinny->m, (int)skinny->k, w, x, bias, function, y};
    const unsigned strips = blocks_for(call.m, STRIP), cluster = cluster_of(strips);
    enqueue_cluster(queue, skinny->transposed ? skinny_reals<true> : skinny_reals<false>,
                    dim3(cluster, strips, blocks_for(call.n, SAMPLES)), dim3(WARPS * 32), cluster,
                    sizeof(float) * BLOCK_FLOATS, call);
}
