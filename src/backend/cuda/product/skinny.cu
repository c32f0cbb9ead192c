/* skinny.cu: see skinny.h.
 *
 * A block makes 32 results of all samples. Its warps share the depth, 32 at a time: a thread loads
 * 64 bytes of weights, straight into registers, and some ahead of what it multiplies. Tensor cores
 * (mma.sync, 16 results by 8 samples, 16 deep) take depths and results in any order if all factors
 * have the same: so a thread's four pairs of depths are the eight neighbours that it loads of a
 * sample, and its four results those that it loads of a row of weights. What the warps have found
 * is added up in order, out of shared memory.
 *
 * Weights do not change between the beginning of a step and their update, which waits for the
 * products that read them: so the first of them are on their way before the kernel in front is
 * done. Bound: each weight is read once, from L2 or memory. */
#include "backend/cuda/product/skinny.h"

#include "backend/cuda/device/activation.h"

enum {
    STRIP = 32, /* results of a block */
    EACH = 4,   /* … of a thread */
    SLAB = 32,  /* depths that a warp takes at a time */
    DEPTHS = 8, /* … a thread */
    WORDS = EACH * DEPTHS / 2,
    TILE = 8, /* samples of one instruction */
    WARPS = 16,
    PITCH = STRIP + 4 /* floats from a sample's sums to the next one's */
};

struct skinny_call {
    int n, m, k;
    enum precision type;
    const uint16_t *w, *x;
    const float *bias;
    enum activation function;
    struct cells y;
};

/* Slabs on their way: more samples need the registers. */
static constexpr __host__ __device__ int stages_of(int tiles)
{
    return tiles == 1 ? 4 : tiles == 2 ? 3 : 2;
}

#if __CUDA_ARCH__ >= 800

/* What loads read: weights, which no kernel of the step has written, or samples. */
enum source { WEIGHTS, SAMPLES };

template <enum source SOURCE, typename Piece> static __device__ Piece read(const void *from)
{
    return SOURCE == WEIGHTS ? __ldg((const Piece *)from) : __ldcg((const Piece *)from);
}

/* Four neighbours, or eight whose rows begin at multiples of EVEN; `left` of them are there. */
template <enum source SOURCE>
static __device__ void load_four(uint32_t *to, const uint16_t *from, int left)
{
    const uint2 two = left > 0 ? read<SOURCE, uint2>(from) : uint2{};
    to[0] = two.x, to[1] = two.y;
}

template <enum source SOURCE, int EVEN>
static __device__ void load_eight(uint32_t *to, const uint16_t *from, int left)
{
    if constexpr (EVEN == 8) {
        const uint4 four = left > 0 ? read<SOURCE, uint4>(from) : uint4{};
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
        load_four<SOURCE>(to, from, left);
        load_four<SOURCE>(to + 2, from + 4, left - 4);
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

/* One warp at work. A lane is one of eight groups (of results; of samples) and has one of four
 * places in the depth. Results and samples that there are not are computed from others, and left
 * out in the end. */
template <bool TRANSPOSED, int TILES, int EVEN> struct skinny_warp {
    const struct skinny_call &call;
    int group, place;
    const uint16_t *w, *x[TILES]; /* the lane's first weight, and samples */
    float sums[TILES][EACH / 2][4];

    __device__ skinny_warp(const struct skinny_call &call_)
        : call(call_), group((int)threadIdx.x % 32 / 4), place((int)threadIdx.x % 4), sums{}
    {
        const int result = (int)blockIdx.x * STRIP + EACH * group;
        const int64_t first = result < call.m ? result : 0;
        w = call.w + (TRANSPOSED ? first * call.k : first);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const int sample = tile * TILE + group;
            x[tile] = call.x + (sample < call.n ? sample : 0) * call.k;
        }
    }
    /* Turned: eight depths of each result, else four results at each depth. */
    __device__ void load(uint32_t (&to)[WORDS], int slab) const
    {
        const int depth = slab * SLAB + DEPTHS * place, left = call.k - depth;
        if constexpr (TRANSPOSED) {
#pragma unroll
            for (int i = 0; i < EACH; i++)
                load_eight<WEIGHTS, EVEN>(&to[DEPTHS / 2 * i], w + (i * call.k + depth), left);
        } else {
            const uint16_t *from = w + (int64_t)depth * call.m;
#pragma unroll
            for (int i = 0; i < DEPTHS; i++)
                load_four<WEIGHTS>(&to[EACH / 2 * i], from + i * call.m, left - i / EVEN * EVEN);
        }
    }
    __device__ void take(uint32_t (&to)[TILES][DEPTHS / 2], int slab) const
    {
        const int depth = slab * SLAB + DEPTHS * place;
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
            load_eight<SAMPLES, EVEN>(to[tile], x[tile] + depth, call.k - depth);
    }
    __device__ void multiply(const uint32_t (&a_words)[WORDS],
                             const uint32_t (&b_words)[TILES][DEPTHS / 2], bool is_bf16)
    {
#pragma unroll
        for (int half = 0; half < 2; half++) /* of the depths */
#pragma unroll
            for (int pair = 0; pair < EACH / 2; pair++) { /* of results */
                uint32_t a[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int result = 2 * pair + i % 2, depth = 4 * half + i / 2 * 2;
                    a[i] = TRANSPOSED ? a_words[DEPTHS / 2 * result + depth / 2]
                                      : __byte_perm(a_words[EACH / 2 * depth + pair],
                                                    a_words[EACH / 2 * (depth + 1) + pair],
                                                    i % 2 ? 0x7632 : 0x5410);
                }
#pragma unroll
                for (int tile = 0; tile < TILES; tile++)
                    multiply_add(sums[tile][pair], a, b_words[tile][2 * half],
                                 b_words[tile][2 * half + 1], is_bf16);
            }
    }
    /* Its sums, to where the block finds them: [sample][result]. */
    __device__ void leave(float *shared) const
    {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int sample = tile * TILE + 2 * place + i;
                const float(&own)[EACH / 2][4] = sums[tile];
                if (sample < call.n)
                    *(float4 *)&shared[sample * PITCH + EACH * group] =
                        make_float4(own[0][i], own[0][i + 2], own[1][i], own[1][i + 2]);
            }
    }
};

#endif

template <bool TRANSPOSED, int TILES, int EVEN>
static __global__ void __launch_bounds__(WARPS * 32, 1)
    skinny_product(const __grid_constant__ struct skinny_call call)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ float4 skinny_shared[]; /* [warp][sample][PITCH] */
    float *shared = (float *)skinny_shared;
    constexpr int STAGES = stages_of(TILES);
    constexpr int APART = TILES * TILE * PITCH; /* the sums of warps */
    struct skinny_warp<TRANSPOSED, TILES, EVEN> own(call);
    const int warp = (int)threadIdx.x / 32, slabs = (call.k + SLAB - 1) / SLAB;
    const bool is_bf16 = call.type == PRECISION_BF16;
    const int result = (int)blockIdx.x * STRIP + (int)threadIdx.x % STRIP; /* in the end */
    uint32_t w[STAGES][WORDS], x[STAGES][TILES][DEPTHS / 2];

    allow_next();
    const float bias = call.bias && result < call.m ? __ldg(&call.bias[result]) : 0.0f;
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        own.load(w[s], warp + s * WARPS);
    await_last();
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        own.take(x[s], warp + s * WARPS);
    for (int slab = warp; slab < slabs; slab += STAGES * WARPS)
#pragma unroll
        for (int s = 0; s < STAGES; s++) {
            own.multiply(w[s], x[s], is_bf16);
            own.load(w[s], slab + (s + STAGES) * WARPS);
            own.take(x[s], slab + (s + STAGES) * WARPS);
        }
    own.leave(shared + warp * APART);
    __syncthreads();
    for (int e = (int)threadIdx.x; result < call.m && e < call.n * STRIP; e += WARPS * 32) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            sum += shared[i * APART + e / STRIP * PITCH + e % STRIP];
        cells_put(call.y, (int64_t)(e / STRIP) * call.m + result,
                  activation_value(call.function, sum + bias));
    }
#endif
}

template <bool TRANSPOSED, int TILES>
static void launch(struct queue *queue, const struct skinny_call &call)
{
    enqueue_early(queue,
                  call.k % 8 == 0 ? skinny_product<TRANSPOSED, TILES, 8>
                                  : skinny_product<TRANSPOSED, TILES, 4>,
                  dim3(blocks_for(call.m, STRIP)), dim3(WARPS * 32),
                  sizeof(float) * WARPS * TILES * TILE * PITCH, call);
}

void skinny_multiply(struct queue *queue, const struct skinny *skinny, struct cells weights,
                     const void *x, const float *bias, enum activation function, struct cells y)
{
    const struct skinny_call call = {(int)skinny->n,
                                     (int)skinny->m,
                                     (int)skinny->k,
                                     weights.type,
                                     (const uint16_t *)weights.data,
                                     (const uint16_t *)x,
                                     bias,
                                     function,
                                     y};
    const int64_t tiles = (skinny->n + TILE - 1) / TILE;
    const auto transposed = tiles <= 1   ? launch<true, 1>
                            : tiles <= 2 ? launch<true, 2>
                                         : launch<true, 4>;
    const auto plain = tiles <= 1   ? launch<false, 1>
                       : tiles <= 2 ? launch<false, 2>
                                    : launch<false, 4>;
    (skinny->transposed ? transposed : plain)(queue, call);
}
