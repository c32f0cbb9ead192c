/* dgrad_update.cu: see dgrad_update.h.
 *
 * A block has 128 inputs of the layer and a share of its outputs, a slab of 32 at a time: that tile
 * of the weights, the gradient of those outputs, and the same transposed, are fetched some slabs
 * ahead by one thread (the tensor memory accelerator fills with zeros what lies outside). Two
 * warpgroups, 64 inputs each, multiply the tile with the gradient, which adds to their piece of
 * the gradient of the input, and the inputs, which they keep in registers, with the transposed
 * gradient: the gradient of the tile. So weights are read before they are changed, by those who
 * change them.
 *
 * Bound: each weight is read and written once; the gradients are read once for every 128 inputs. */
#include "backend/cuda/product/dgrad_update.h"

#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/device/warpgroup.h"

enum {
    GROUPS = 2, /* warpgroups that multiply, and another one, of which a thread fetches */
    DGRAD_UPDATE_THREADS = (GROUPS + 1) * 128,
    DGRAD_UPDATE_BYTES = 216 << 10,
    STAGES_MOST = 6,
    INPUTS = 64 * GROUPS
};

/* Samples are taken in PARTS of PART, as many as one instruction takes. DOWN: the gradient of the
 * input is made, too. */
template <bool DOWN, int PARTS, int PART> struct layout {
    static constexpr int SAMPLES = PARTS * PART;
    static constexpr int PANELS = SAMPLES / SLAB; /* of the transposed gradient */
    static constexpr int DY_AT = INPUTS * SLAB_BYTES;
    static constexpr int TRANSPOSED_AT = DY_AT + (DOWN ? SAMPLES * SLAB_BYTES : 0);
    static constexpr int PANEL = SLAB * SLAB_BYTES;
    static constexpr int STAGE = TRANSPOSED_AT + PANELS * PANEL;
    static constexpr int STAGES =
        DGRAD_UPDATE_BYTES / STAGE < STAGES_MOST ? DGRAD_UPDATE_BYTES / STAGE : (int)STAGES_MOST;
    static constexpr int ALL = STAGES * STAGE + 1024; /* to begin at a multiple of 1,024 */
};

struct dgrad_update_call {
    int64_t n, inputs, outputs;
    int slabs;
    const float *x, *rate;
    float *w, *pieces;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Registers of a thread: what the fetching warpgroup does not need the others take. */
static __device__ void registers_give(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
}

static __device__ void registers_take(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

/* The inputs of a warpgroup, as factors: those of 8 samples in each. */
template <int STEPS>
static __device__ void read_inputs(const struct dgrad_update_call &call, uint32_t (&x)[STEPS][4])
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t first = (int64_t)blockIdx.x * INPUTS + warp * 16 + lane / 4;
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t input = first + i % 2 * 8, n = step * STEP + i / 2 * 4 + lane % 4;
            x[step][i] = input < call.inputs && n < call.n
                             ? __float_as_uint(call.x[n * call.inputs + input])
                             : 0;
        }
}

/* w += rate · its gradient's negative, of the slab whose first output is `first` */
static __device__ void write_weights(const struct dgrad_update_call &call, uint32_t weights,
                                     int first, float rate, const float (&gradient)[16])
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
        const int row = warp * 16 + i / 2 % 2 * 8 + lane / 4, column = i / 4 * 8 + lane % 4 * 2;
        const uint32_t from =
            weights +
            (uint32_t)(row * SLAB_BYTES + ((column / 4) ^ (row % 8)) * 16 + column % 4 * 4);
        const int64_t input = (int64_t)blockIdx.x * INPUTS + row;
        float2 w;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                     : "=f"(w.x), "=f"(w.y)
                     : "r"(from)
                     : "memory");
        w.x = update_sgd(w.x, -gradient[i], rate);
        w.y = update_sgd(w.y, -gradient[i + 1], rate);
        if (input < call.inputs && first + column < call.outputs)
            *(float2 *)(call.w + input * call.outputs + first + column) = w;
    }
}

/* What the fetching thread does; `full` and `empty` are barriers, one of each for a stage. Weights
 * are what they were since the step began: the first are on their way before the kernel in front
 * is done. */
template <bool DOWN, typename Layout>
static __device__ void fetch_slabs(const CUtensorMap *weights, const CUtensorMap *dy,
                                   const CUtensorMap *transposed, uint32_t stages, uint32_t full,
                                   uint32_t empty, int from, int count)
{
    const auto stage_of = [=](int i) {
        return stages + (uint32_t)(i % Layout::STAGES * Layout::STAGE);
    };
    const auto fetch_weights = [=](int i) {
        const uint32_t barrier = full + 8 * (i % Layout::STAGES);
        barrier_expect(barrier, Layout::STAGE);
        tile_fetch(stage_of(i), weights, (from + i) * SLAB, (int)blockIdx.x * INPUTS, barrier);
    };
    const auto fetch_gradients = [=](int i) {
        const uint32_t barrier = full + 8 * (i % Layout::STAGES);
        if (DOWN)
            tile_fetch(stage_of(i) + Layout::DY_AT, dy, (from + i) * SLAB, 0, barrier);
        for (int p = 0; p < Layout::PANELS; p++)
            tile_fetch(stage_of(i) + Layout::TRANSPOSED_AT + (uint32_t)(p * Layout::PANEL),
                       transposed, p * SLAB, (from + i) * SLAB, barrier);
    };
    for (int i = 0; i < Layout::STAGES && i < count; i++)
        fetch_weights(i);
    await_last();
    for (int i = 0; i < Layout::STAGES && i < count; i++)
        fetch_gradients(i);
    for (int i = Layout::STAGES; i < count; i++) {
        barrier_wait(empty + 8 * (i % Layout::STAGES), (uint32_t)(i / Layout::STAGES - 1) % 2);
        fetch_weights(i);
        fetch_gradients(i);
    }
}

/* What a warpgroup that multiplies does. */
template <bool DOWN, int PARTS, int PART>
static __device__ void multiply_slabs(const struct dgrad_update_call &call, uint32_t stages,
                                      uint32_t full, uint32_t empty, int from, int count)
{
    using lay = layout<DOWN, PARTS, PART>;
    const int group = (int)threadIdx.x / 128, lane = (int)threadIdx.x % 32;
    const int warp = (int)threadIdx.x / 32;
    uint32_t x[lay::SAMPLES / STEP][4];
    float sums[PARTS][PART / 2] = {};
    await_last();
    read_inputs(call, x);
    const float rate = *call.rate;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const int s = i % lay::STAGES;
        const uint32_t stage = stages + (uint32_t)(s * lay::STAGE);
        float gradient[16] = {};
        barrier_wait(full + 8 * s, (uint32_t)(i / lay::STAGES) % 2);
        products_begin();
#pragma unroll
        for (int step = 0; DOWN && step < SLAB / STEP; step++)
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
                const uint32_t at = stage + (uint32_t)(step * STEP * 4);
                product_add(sums[p], tile_factor(at + (uint32_t)(group * 64 * SLAB_BYTES)),
                            tile_factor(at + lay::DY_AT + p * PART * SLAB_BYTES));
            }
#pragma unroll
        for (int step = 0; step < lay::SAMPLES / STEP; step++)
            product_add(gradient, x[step],
                        tile_factor(stage + lay::TRANSPOSED_AT + step * STEP / SLAB * lay::PANEL +
                                    step * STEP % SLAB * 4));
        products_end();
        write_weights(call, stage, (from + i) * SLAB, rate, gradient);
        __syncwarp();
        if (lane == 0)
            barrier_arrive(empty + 8 * s);
    }
    if (!DOWN)
        return;
    float *pieces = call.pieces + blockIdx.y * call.n * call.inputs;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < PART / 2; i++) {
            const int64_t input =
                (int64_t)blockIdx.x * INPUTS + warp * 16 + i / 2 % 2 * 8 + lane / 4;
            const int64_t n = p * PART + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (input < call.inputs && n < call.n)
                pieces[n * call.inputs + input] = sums[p][i];
        }
}

#endif

template <bool DOWN, int PARTS, int PART>
static __global__ void __launch_bounds__(DGRAD_UPDATE_THREADS, 1)
    dgrad_update_tiles(const __grid_constant__ CUtensorMap weights,
                       const __grid_constant__ CUtensorMap dy,
                       const __grid_constant__ CUtensorMap transposed,
                       const __grid_constant__ struct dgrad_update_call call)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    using lay = layout<DOWN, PARTS, PART>;
    extern __shared__ char shared[];
    __shared__ uint64_t barriers[2][lay::STAGES]; /* full, and empty again */
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers[0]);
    const uint32_t empty = (uint32_t)__cvta_generic_to_shared(barriers[1]);
    const uint32_t stages = ((uint32_t)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const int from = (int)((int64_t)call.slabs * blockIdx.y / gridDim.y);
    const int count = (int)((int64_t)call.slabs * (blockIdx.y + 1) / gridDim.y) - from;

    allow_next();
    if (threadIdx.x == 0) {
        for (int s = 0; s < lay::STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * 4);
        }
        barrier_publish();
    }
    __syncthreads();
    if (threadIdx.x >= GROUPS * 128) {
        registers_give();
        if (threadIdx.x == GROUPS * 128)
            fetch_slabs<DOWN, lay>(&weights, &dy, &transposed, stages, full, empty, from, count);
    } else {
        registers_take();
        multiply_slabs<DOWN, PARTS, PART>(call, stages, full, empty, from, count);
    }
#else
    __trap(); /* chosen for a GPU without warpgroups */
#endif
}

/* Samples of a tile. */
enum { FEW = 64, MORE = 160 };

bool dgrad_update_takes(const struct split_k *split_k)
{
    return split_k->transposed &&
           (split_k->n <= FEW || (split_k->n > 2 * FEW && split_k->n <= MORE));
}

template <bool DOWN, int PARTS, int PART>
static void launch(struct queue *queue, const struct dgrad_update *dgrad_update)
{
    using lay = layout<DOWN, PARTS, PART>;
    const struct split_k *split_k = &dgrad_update->split_k;
    const struct dgrad_update_call call = {
        split_k->n,      split_k->m,         split_k->k,      (int)blocks_for(split_k->k, SLAB),
        dgrad_update->x, dgrad_update->rate, dgrad_update->w, dgrad_update->pieces};
    const dim3 grid(blocks_for(split_k->m, INPUTS), (unsigned)split_k_pieces(split_k, NULL).count);
    CUtensorMap weights = {}, dy = {}, transposed = {};
    const bool mapped =
        queue->counting ||
        (tile_map(&weights, dgrad_update->w, split_k->k, split_k->m, split_k->k, INPUTS) &&
         tile_map(&dy, dgrad_update->dy, split_k->k, split_k->n, split_k->k, lay::SAMPLES) &&
         tile_map(&transposed, dgrad_update->transposed, split_k->n, split_k->k, dgrad_update->step,
                  SLAB));
    if (!mapped && queue->error == cudaSuccess)
        queue->error = cudaErrorNotSupported;
    enqueue_early(queue, dgrad_update_tiles<DOWN, PARTS, PART>, grid, dim3(DGRAD_UPDATE_THREADS),
                  (size_t)lay::ALL, weights, dy, transposed, call);
}

void dgrad_update_pass(struct queue *queue, const struct dgrad_update *dgrad_update)
{
    const bool few = dgrad_update->split_k.n <= FEW;
    if (dgrad_update->down)
        (few ? launch<true, 1, FEW> : launch<true, 2, MORE / 2>)(queue, dgrad_update);
    else
        (few ? launch<false, 1, FEW> : launch<false, 2, MORE / 2>)(queue, dgrad_update);
}
