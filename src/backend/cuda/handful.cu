/* handful.cu: see handful.h.
 *
 * A cluster of blocks makes 64 results of all samples. Its warps share the depth, 32 at a time: a
 * thread loads eight pieces of 16 bytes of weights, straight into registers, and some ahead of what
 * it multiplies. Tensor cores (mma.sync, 16 results by 8 samples, 16 deep) take the depth in any
 * order if both factors have the same: so a thread's four pairs of depths are the eight neighbours
 * that it loads of a sample, and its results the eight neighbours that it loads of a row of
 * weights. What the warps of all blocks have found is added up in order, out of shared memory.
 *
 * Weights do not change between the beginning of a step and their update, which waits for the
 * products that read them: so the first of them are on their way before the kernel in front is
 * done. Bound: each weight is read once, from L2 or memory. */
#include "backend/cuda/handful.h"

#include "backend/cuda/activation.h"

enum {
    STRIP = 64,   /* results of a cluster */
    SLAB = 32,    /* depths that a warp takes at a time */
    PIECES = 8,   /* of a thread's weights in a slab, eight neighbours each */
    WORDS = 4,    /* of a piece */
    STAGES = 2,   /* slabs on their way */
    TILE = 8,     /* samples of one instruction */
    CLUSTER = 4,  /* blocks */
    WARPS = 8,    /* of a block */
    SHARERS = CLUSTER * WARPS,
    PITCH = STRIP + 4, /* floats from a sample's sums to the next one's */
    TILES_MOST = 4
};

struct handful_call {
    int n, m, k;
    enum precision type;
    const uint16_t *w, *x;
    const float *bias;
    enum activation function;
    struct cells y;
};

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

#if __CUDA_ARCH__ >= 900

/* What loads read: weights, which no kernel of the step has written, or samples. */
enum source { WEIGHTS, SAMPLES };

template <enum source SOURCE, typename Piece> static __device__ Piece read(const void *from)
{
    return SOURCE == WEIGHTS ? __ldg((const Piece *)from) : __ldcg((const Piece *)from);
}

/* Eight neighbours, of which `left` are there; all rows begin at multiples of EVEN. */
template <enum source SOURCE, int EVEN>
static __device__ void piece_load(uint32_t (&piece)[WORDS], const uint16_t *from, int left)
{
    if constexpr (EVEN == 8) {
        const uint4 four = left > 0 ? read<SOURCE, uint4>(from) : uint4{};
        piece[0] = four.x, piece[1] = four.y, piece[2] = four.z, piece[3] = four.w;
    } else if constexpr (EVEN == 4) {
        const uint2 low = left > 0 ? read<SOURCE, uint2>(from) : uint2{};
        const uint2 high = left > 4 ? read<SOURCE, uint2>(from + 4) : uint2{};
        piece[0] = low.x, piece[1] = low.y, piece[2] = high.x, piece[3] = high.y;
    } else {
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            const uint32_t low = left > 2 * i ? read<SOURCE, uint16_t>(from + 2 * i) : 0;
            const uint32_t high = left > 2 * i + 1 ? read<SOURCE, uint16_t>(from + 2 * i + 1) : 0;
            piece[i] = low | high << 16;
        }
    }
}

/* sums[16 results, 8 samples] += a[16 results, 16 depths] · b[16 depths, 8 samples] */
static __device__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1, bool is_bf16)
{
    if (is_bf16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* One block at work. A lane is one of eight groups (of results, or a sample) and one of four places
 * in the depth. */
template <bool TURNED, int TILES, int EVEN> struct handful_block {
    const struct handful_call &call;
    int group, place, first; /* first: of the lane's eight results */
    float sums[TILES][4][4];

    __device__ handful_block(const struct handful_call &call_)
        : call(call_), group((int)threadIdx.x % 32 / 4), place((int)threadIdx.x % 4),
          first((int)blockIdx.y * STRIP + 8 * group), sums{}
    {
    }
    /* Turned: a piece is eight depths of a result, else eight results at a depth. */
    __device__ void load(uint32_t (&w)[PIECES][WORDS], int slab) const
    {
        const int depth = slab * SLAB + 8 * place;
        const int row = TURNED ? first : depth, column = TURNED ? depth : first;
        const int wide = TURNED ? call.k : call.m, rows = TURNED ? call.m : call.k;
        const uint16_t *from = call.w + ((int64_t)row * wide + column);
#pragma unroll
        for (int i = 0; i < PIECES; i++, from += wide)
            piece_load<WEIGHTS, EVEN>(w[i], from, row + i < rows ? wide - column : 0);
    }
    __device__ void take(uint32_t (&x)[TILES][WORDS], int slab) const
    {
        const int depth = slab * SLAB + 8 * place;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const int sample = tile * TILE + group;
            piece_load<SAMPLES, EVEN>(x[tile], call.x + (sample * call.k + depth),
                             sample < call.n ? call.k - depth : 0);
        }
    }
    __device__ void multiply(const uint32_t (&w)[PIECES][WORDS], const uint32_t (&x)[TILES][WORDS],
                             bool is_bf16)
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int pair = 0; pair < 4; pair++) { /* of results */
                uint32_t a[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t *two = w[4 * half + i / 2 * 2];
                    a[i] = TURNED ? w[2 * pair + i % 2][2 * half + i / 2]
                                  : __byte_perm(two[pair], two[WORDS + pair],
                                                i % 2 ? 0x7632 : 0x5410);
                }
#pragma unroll
                for (int tile = 0; tile < TILES; tile++)
                    multiply_add(sums[tile][pair], a, x[tile][2 * half], x[tile][2 * half + 1],
                                 is_bf16);
            }
    }
    /* The warp's sums, to where all of the cluster find them: [sample][result]. */
    __device__ void leave(float *shared) const
    {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int sample = tile * TILE + 2 * place + i;
                float4 *to = (float4 *)&shared[sample * PITCH + 8 * group];
                const float(&own)[4][4] = sums[tile];
                if (sample >= call.n)
                    continue;
                to[0] = make_float4(own[0][i], own[0][i + 2], own[1][i], own[1][i + 2]);
                to[1] = make_float4(own[2][i], own[2][i + 2], own[3][i], own[3][i + 2]);
            }
    }
};

static __device__ void cluster_meet(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

static __device__ float cluster_read(uint32_t at, int block)
{
    float value;
    asm volatile("{ .reg .b32 there;\n\tmapa.shared::cluster.u32 there, %1, %2;\n\t"
                 "ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(value)
                 : "r"(at), "r"(block)
                 : "memory");
    return value;
}

/* Each block has some of the results: what all warps of all blocks have found of them. */
template <int TILES>
static __device__ void add_up(const struct handful_call &call, const float *shared)
{
    const int all = call.n * STRIP;
    for (int e = (int)blockIdx.x * WARPS * 32 + (int)threadIdx.x; e < all;
         e += SHARERS * 32) {
        const int sample = e / STRIP, result = (int)blockIdx.y * STRIP + e % STRIP;
        const uint32_t at =
            (uint32_t)__cvta_generic_to_shared(&shared[sample * PITCH + e % STRIP]);
        float part[SHARERS], sum = 0.0f;
#pragma unroll
        for (int i = 0; i < SHARERS; i++)
            part[i] = cluster_read(at + (uint32_t)(i % WARPS * TILES * TILE * PITCH * 4), i / WARPS);
#pragma unroll
        for (int i = 0; i < SHARERS; i++)
            sum += part[i];
        if (result >= call.m)
            continue;
        if (call.bias)
            sum += __ldg(&call.bias[result]);
        cells_put(call.y, (int64_t)sample * call.m + result,
                  activation_value(call.function, sum));
    }
}

#endif

template <bool TURNED, int TILES, int EVEN>
static __global__ void IN_CLUSTERS __launch_bounds__(WARPS * 32, TILES <= 2 ? 2 : 1)
    handful_product(const __grid_constant__ struct handful_call call)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ float4 handful_shared[]; /* [warp][sample][PITCH] */
    float *shared = (float *)handful_shared;
    struct handful_block<TURNED, TILES, EVEN> block(call);
    const int warp = (int)threadIdx.x / 32, slabs = (call.k + SLAB - 1) / SLAB;
    const int begin = (int)blockIdx.x * WARPS + warp;
    const bool is_bf16 = call.type == PRECISION_BF16;
    uint32_t w[STAGES][PIECES][WORDS], x[STAGES][TILES][WORDS];

    allow_next();
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        block.load(w[s], begin + s * SHARERS);
    await_last();
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        block.take(x[s], begin + s * SHARERS);
    for (int slab = begin; slab < slabs; slab += STAGES * SHARERS)
#pragma unroll
        for (int s = 0; s < STAGES; s++) {
            block.multiply(w[s], x[s], is_bf16);
            block.load(w[s], slab + (s + STAGES) * SHARERS);
            block.take(x[s], slab + (s + STAGES) * SHARERS);
        }
    block.leave(shared + warp * TILES * TILE * PITCH);
    cluster_meet();
    add_up<TILES>(call, shared);
    cluster_meet(); /* nobody leaves while others read what it has found */
#endif
}

bool handful_takes(const struct handful *handful, const cudaDeviceProp *properties)
{
    enum { SAMPLES_MOST = TILES_MOST * TILE };
    return properties->major >= 9 && handful->n <= SAMPLES_MOST && handful->m <= INT32_MAX &&
           handful->k <= INT32_MAX / SAMPLES_MOST;
}

template <bool TURNED, int TILES>
static void launch(struct queue *queue, const struct handful_call &call)
{
    const int odd = call.m | call.k;
    enqueue_early(queue,
                  odd % 8 == 0   ? handful_product<TURNED, TILES, 8>
                  : odd % 4 == 0 ? handful_product<TURNED, TILES, 4>
                                 : handful_product<TURNED, TILES, 1>,
                  dim3(CLUSTER, blocks_for(call.m, STRIP)), dim3(WARPS * 32),
                  sizeof(float) * WARPS * TILES * TILE * PITCH, call);
}

void handful_multiply(struct queue *queue, const struct handful *handful, struct cells weights,
                      const void *x, const float *bias, enum activation function, struct cells y)
{
    const struct handful_call call = {(int)handful->n, (int)handful->m,
                                      (int)handful->k, weights.type,
                                      (const uint16_t *)weights.data, (const uint16_t *)x,
                                      bias,            function,
                                      y};
    const int64_t tiles = (handful->n + TILE - 1) / TILE;
    const auto turned = tiles <= 1 ? launch<true, 1> : tiles <= 2 ? launch<true, 2> : launch<true, 4>;
    const auto plain = tiles <= 1 ? launch<false, 1> : tiles <= 2 ? launch<false, 2> : launch<false, 4>;
    (handful->turned ? turned : plain)(queue, call);
}
