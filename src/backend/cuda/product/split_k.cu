/* split_k.cu: see split_k.h.
 *
 * A block makes 128 results of 64 or 160 samples, from its share of the depth. One warp fetches
 * slabs of both factors, 128 bytes deep, several ahead, by the tensor memory accelerator, which
 * fills with zeros what lies outside; two warpgroups multiply them (wgmma). The multipliers take
 * factors of 32 bits along the depth only: of weights whose results lie side by side each lane
 * reads its own into registers. The lower 13 bits of a factor are cut off, as in cuBLASLt.
 *
 * Weights do not change between the beginning of a step and their update, which waits for the
 * products that read them: so the first slabs of weights are on their way before the kernel in
 * front is done. Bound: each weight is read once, from L2 or memory, the samples once for each tile
 * of results. */
#include "backend/cuda/product/split_k.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/warpgroup.h"

enum {
    GROUPS = 2,                              /* warpgroups that multiply */
    SPLIT_K_THREADS = GROUPS * 128 + 32,     /* … and a warp that fetches */
    SPLIT_K_BLOCKS = TARGET_MULTIPROCESSORS, /* that are wanted */
    SPLIT_K_BYTES = 216 << 10,
    STAGES_MOST = 8,
    RESULTS = 64 * GROUPS
};

/* Samples are taken in PARTS of PART, as many as one instruction takes. */
template <int PARTS, int PART> struct layout {
    static constexpr int SAMPLES = PARTS * PART;
    static constexpr int SAMPLES_AT = RESULTS * SLAB_BYTES;
    static constexpr int STAGE = SAMPLES_AT + SAMPLES * SLAB_BYTES;
    static constexpr int STAGES =
        SPLIT_K_BYTES / STAGE < STAGES_MOST ? SPLIT_K_BYTES / STAGE : (int)STAGES_MOST;
    static constexpr int ALL = STAGES * STAGE + 1024; /* to begin at a multiple of 1,024 */
};

struct split_k_call {
    int64_t n, m;
    int slabs;
    float *pieces;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* The weights of 16 results and one step of depth, where results lie side by side: in panels of 128
 * bytes of them, whose rows the copy has swizzled. */
static __device__ void read_weights(uint32_t (&a)[4], uint32_t weights, int result, int step)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int depth = step * STEP + i / 2 * 4 + lane % 4;
        const int column = result + i % 2 * 8 + lane / 4;
        const uint32_t from = weights + column / SLAB * (SLAB * SLAB_BYTES) + depth * SLAB_BYTES +
                              ((column % SLAB / 4) ^ (depth % 8)) * 16 + column % 4 * 4;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(a[i]) : "r"(from) : "memory");
    }
}

/* One slab, by a warpgroup: 64 of the results. */
template <bool TRANSPOSED, int PARTS, int SUMS>
static __device__ void multiply_slab(uint32_t stage, float (&sums)[PARTS][SUMS])
{
    const int group = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32 % 4;
    uint32_t a[SLAB / STEP][4];
    if (!TRANSPOSED)
#pragma unroll
        for (int step = 0; step < SLAB / STEP; step++)
            read_weights(a[step], stage, group * 64 + warp * 16, step);
    products_begin();
#pragma unroll
    for (int step = 0; step < SLAB / STEP; step++)
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const uint32_t at = stage + (uint32_t)(step * STEP * 4);
            const uint64_t b = tile_factor(at + RESULTS * SLAB_BYTES + p * 2 * SUMS * SLAB_BYTES);
            if (TRANSPOSED)
                product_add(sums[p], tile_factor(at + group * 64 * SLAB_BYTES), b);
            else
                product_add(sums[p], a[step], b);
        }
    products_end();
}

/* What the fetching thread does; `full` and `empty` are barriers, one of each for a stage. */
template <bool TRANSPOSED, typename Layout>
static __device__ void fetch_slabs(const CUtensorMap *weights, const CUtensorMap *samples,
                                   uint32_t stages, uint32_t full, uint32_t empty, int from,
                                   int count)
{
    const int m0 = (int)blockIdx.x * RESULTS, n0 = (int)blockIdx.y * Layout::SAMPLES;
    const auto stage_of = [=](int i) {
        return stages + (uint32_t)(i % Layout::STAGES * Layout::STAGE);
    };
    const auto fetch_weights = [=](int i) {
        const uint32_t barrier = full + 8 * (i % Layout::STAGES);
        barrier_expect(barrier, Layout::STAGE);
        for (int p = 0; !TRANSPOSED && p < RESULTS / SLAB; p++)
            tile_fetch(stage_of(i) + (uint32_t)(p * SLAB * SLAB_BYTES), weights, m0 + p * SLAB,
                       (from + i) * SLAB, barrier);
        if (TRANSPOSED)
            tile_fetch(stage_of(i), weights, (from + i) * SLAB, m0, barrier);
    };
    const auto fetch_samples = [=](int i) {
        tile_fetch(stage_of(i) + Layout::SAMPLES_AT, samples, (from + i) * SLAB, n0,
                   full + 8 * (i % Layout::STAGES));
    };
    for (int i = 0; i < Layout::STAGES && i < count; i++)
        fetch_weights(i);
    await_last();
    for (int i = 0; i < Layout::STAGES && i < count; i++)
        fetch_samples(i);
    for (int i = Layout::STAGES; i < count; i++) {
        barrier_wait(empty + 8 * (i % Layout::STAGES), (uint32_t)(i / Layout::STAGES - 1) % 2);
        fetch_weights(i);
        fetch_samples(i);
    }
}

#endif

template <bool TRANSPOSED, int PARTS, int PART>
static __global__ void __launch_bounds__(SPLIT_K_THREADS, 1)
    split_k_product(const __grid_constant__ CUtensorMap weights,
                    const __grid_constant__ CUtensorMap samples, struct split_k_call call)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    using lay = layout<PARTS, PART>;
    extern __shared__ char shared[];
    __shared__ uint64_t barriers[2][lay::STAGES]; /* full, and empty again */
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers[0]);
    const uint32_t empty = (uint32_t)__cvta_generic_to_shared(barriers[1]);
    const uint32_t stages = ((uint32_t)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const int from = (int)((int64_t)call.slabs * blockIdx.z / gridDim.z);
    const int count = (int)((int64_t)call.slabs * (blockIdx.z + 1) / gridDim.z) - from;

    allow_next();
    if (threadIdx.x == 0) {
        for (int s = 0; s < lay::STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * 4);
        }
        barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x == GROUPS * 128)
        fetch_slabs<TRANSPOSED, lay>(&weights, &samples, stages, full, empty, from, count);
    if (threadIdx.x >= GROUPS * 128)
        return;

    float sums[PARTS][PART / 2] = {};
    for (int i = 0; i < count; i++) {
        const int stage = i % lay::STAGES;
        barrier_wait(full + 8 * stage, (uint32_t)(i / lay::STAGES) % 2);
        multiply_slab<TRANSPOSED>(stages + (uint32_t)(stage * lay::STAGE), sums);
        if (threadIdx.x % 32 == 0)
            barrier_arrive(empty + 8 * stage);
    }
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    float *pieces = call.pieces + blockIdx.z * call.n * call.m;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < PART / 2; i++) {
            const int64_t m = (int64_t)blockIdx.x * RESULTS + warp * 16 + i / 2 % 2 * 8 + lane / 4;
            const int64_t n =
                (int64_t)blockIdx.y * lay::SAMPLES + p * PART + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (m < call.m && n < call.n)
                pieces[n * call.m + m] = sums[p][i];
        }
#else
    __trap(); /* chosen for a GPU without warpgroups */
#endif
}

template <bool TRANSPOSED, int PARTS, int PART>
static void launch(struct queue *queue, const struct split_k *split_k, const float *weights,
                   const float *samples, float *pieces)
{
    using lay = layout<PARTS, PART>;
    const struct split_k_call call = {split_k->n, split_k->m, (int)blocks_for(split_k->k, SLAB),
                                      pieces};
    const dim3 grid(blocks_for(split_k->m, RESULTS), blocks_for(split_k->n, lay::SAMPLES),
                    (unsigned)split_k_pieces(split_k, NULL).count);
    CUtensorMap of_weights = {}, of_samples = {};
    const bool mapped =
        queue->counting ||
        (tile_map(&of_samples, samples, split_k->k, split_k->n, split_k->k, lay::SAMPLES) &&
         (TRANSPOSED ? tile_map(&of_weights, weights, split_k->k, split_k->m, split_k->k, RESULTS)
                     : tile_map(&of_weights, weights, split_k->m, split_k->k, split_k->m, SLAB)));
    if (!mapped && queue->error == cudaSuccess)
        queue->error = cudaErrorNotSupported;
    enqueue_early(queue, split_k_product<TRANSPOSED, PARTS, PART>, grid, dim3(SPLIT_K_THREADS),
                  (size_t)lay::ALL, of_weights, of_samples, call);
}

/* Samples of a tile: what leaves the fewest of the last one empty. */
enum { FEW = 64, MORE = 160 };

static int64_t samples_of(const struct split_k *split_k)
{
    const int64_t few = (split_k->n + FEW - 1) / FEW * FEW,
                  more = (split_k->n + MORE - 1) / MORE * MORE;
    return more < few ? MORE : FEW;
}

bool split_k_takes(const struct split_k *split_k)
{
    enum { SAMPLES_LEAST = 33, SAMPLES_MOST = 256, EVEN = 4 };
    return split_k->n >= SAMPLES_LEAST && split_k->n <= SAMPLES_MOST && split_k->k % EVEN == 0 &&
           split_k->m % EVEN == 0 && split_k->m >= RESULTS && split_k->k >= RESULTS;
}

struct pieces split_k_pieces(const struct split_k *split_k, const float *data)
{
    enum { SLABS_LEAST = 2 };
    const int64_t tiles =
        (int64_t)blocks_for(split_k->m, RESULTS) * blocks_for(split_k->n, samples_of(split_k));
    const int64_t most = (blocks_for(split_k->k, SLAB) + SLABS_LEAST - 1) / SLABS_LEAST;
    const int64_t wanted = SPLIT_K_BLOCKS / tiles, count = wanted < most ? wanted : most;
    return pieces{data, split_k->n * split_k->m, count < 1 ? 1 : (int32_t)count};
}

void split_k_multiply(struct queue *queue, const struct split_k *split_k, const float *weights,
                      const float *samples, float *data)
{
    const bool few = samples_of(split_k) == FEW;
    if (split_k->transposed)
        (few ? launch<true, 1, FEW> : launch<true, 2, MORE / 2>)(queue, split_k, weights, samples,
                                                                 data);
    else
        (few ? launch<false, 1, FEW> : launch<false, 2, MORE / 2>)(queue, split_k, weights, samples,
                                                                   data);
}

/* Neighbours of a thread: few, so that there are many threads, which all wait for memory once. */
enum { FINISH_WIDE = 2 };

static __global__ void __launch_bounds__(THREADS)
    finish_each(int64_t m, struct pieces pieces, const float *bias, enum activation function,
                float *y)
{
    const int64_t index = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * FINISH_WIDE;
    struct vector<FINISH_WIDE> constant = {
    };
    uint32_t column;
    allow_next();
    split_number(index, (uint32_t)m, &column);
    if (bias)
        constant = *(const struct vector<FINISH_WIDE> *)(bias + column);
    await_last();
    if (index >= pieces.each)
        return;
    struct vector<FINISH_WIDE> sum = pieces_sum<FINISH_WIDE>(pieces, index);
#pragma unroll
    for (int i = 0; i < FINISH_WIDE; i++)
        sum.at[i] = activation_value(function, sum.at[i] + constant.at[i]);
    *(struct vector<FINISH_WIDE> *)(y + index) = sum;
}

void split_k_finish(struct queue *queue, const struct split_k *split_k, const float *data,
                    const float *bias, enum activation function, float *y)
{
    const struct pieces pieces = split_k_pieces(split_k, data);
    enqueue_early(queue, finish_each, dim3(blocks_for(pieces.each, (int64_t)THREADS * FINISH_WIDE)),
                  dim3(THREADS), 0, split_k->m, pieces, bias, function, y);
}
