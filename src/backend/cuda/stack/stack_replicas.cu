/* stack_replicas.cu: batches of any size of a network of narrow layers, trained or asked by a
 * grid of blocks, each of which has the whole network and a share of the samples.
 *
 * A sample is a thread, or of layers more than 8 wide several. Weights lie in shared memory in
 * tiles of four inputs by four outputs, which all threads of a warp read at once, forward and
 * backward; what a sample's layers take and what comes down to them goes to the sample's line.
 * After a barrier a tile's gradient is the work of a warp: its lanes have samples, and exchange
 * their sums. A block's share is done in chunks of as many samples as it has threads. Then each
 * block sends its sums to all others, as packets, and adds up what it gets in the order of the
 * blocks: all of them update the same weights to the same bits, and none waits for more than one
 * exchange a step. One block alone sends nothing.
 *
 * A step of few samples is a chain of dependent operations, as in stack_block.cu; of many it is
 * bound by shared memory: 8 of its cycles for a tile of 32 samples, where 4 would be multiplying.
 * The next chunk's samples are copied to shared memory while this one is computed, and the rows of
 * those after are fetched. */
#include "backend/cuda/device/packet.h"
#include "backend/cuda/stack/stack_replicas_layers.h"

/* One number that is learnt: where it lies among those of the block, and in the instance. */
struct replicas_number {
    int layer, in, out; /* in: the layer's inputs: it is a bias */
    int place;
};

static __device__ struct replicas_number number_of(const struct replicas_net *net, int k)
{
    int l = 0;
    for (;; l++) {
        const int count = (net->layer[l].in + (net->layer[l].b ? 1 : 0)) * net->layer[l].out;
        if (k < count)
            break;
        k -= count;
    }
    const int in = net->layer[l].in, out = net->layer[l].out, i = k / out, o = k % out;
    const auto &at = net->layout.layer[l];
    const int place =
        i == in ? at.bias + o : at.weights + 16 * (o / 4 * at.down + i / 4) + i % 4 * 4 + o % 4;
    return {l, i, o, place};
}

/* Calls visit(in the instance, in shared memory) for each number, and each that is kept of it. */
template <typename Visit>
static __device__ void each_number(const struct replicas_net *net, float *shared, Visit visit)
{
    const struct replicas_layout &at = net->layout;
    for (int k = (int)threadIdx.x; k < at.weights; k += REPLICAS_THREADS) {
        const struct replicas_number of = number_of(net, k);
        const auto &layer = net->layer[of.layer];
        const bool bias = of.in == layer.in;
        const int index = bias ? of.out : of.in * layer.out + of.out;
        visit(bias ? &layer.b[index] : &layer.w[index], &shared[of.place]);
        for (int s = 0; s < at.states; s++)
            visit(bias ? &layer.states_b[s][index] : &layer.states_w[s][index],
                  &shared[at.kept + s * at.numbers + of.place]);
    }
}

/* What a tile's gradient is made of: places in a line, or, of the first layer, in an intake. */
struct replicas_tile {
    uint16_t x, d, weights, bias; /* bias: 0: another has it, or there is none */
};
static_assert(sizeof(struct replicas_tile) == REPLICAS_TILE_FLOATS * sizeof(float), "");

static __device__ void replicas_begin(const struct replicas_net *net, float *shared)
{
    const struct replicas_layout &at = net->layout;
    uint16_t *places = (uint16_t *)&shared[at.places];
    struct replicas_tile *tile = (struct replicas_tile *)&shared[at.tiles];
    for (int k = (int)threadIdx.x; k < at.floats; k += REPLICAS_THREADS)
        shared[k] = 0.0f;
    __syncthreads();
    each_number(net, shared, [](const float *of, float *kept) { *kept = *of; });
    for (int k = (int)threadIdx.x; k < at.learnt; k += REPLICAS_THREADS)
        places[k] = (uint16_t)number_of(net, k).place;
    for (int l = 0; l < net->step.layers; l++) {
        const int down = quads_of(net->layer[l].in), across = quads_of(net->layer[l].out);
        for (int k = (int)threadIdx.x; k < down * across; k += REPLICAS_THREADS) {
            const int i = k % down, o = k / down;
            tile[k] = {(uint16_t)(at.layer[l].x + 4 * i), (uint16_t)(at.layer[l].d + 4 * o),
                       (uint16_t)(at.layer[l].weights + 16 * (o * at.layer[l].down + i)),
                       (uint16_t)(i == 0 && net->layer[l].b ? at.layer[l].bias + 4 * o : 0)};
        }
        tile += down * across;
    }
    __syncthreads();
}

/* A thread's samples, of each chunk one, and its part of them: every so manieth feature. */
struct replicas_source {
    const uint32_t *x, *target, *order;
    uint32_t in, wide;            /* from a row to the next */
    uint32_t samples, jump, leap; /* from a chunk to the next, from the last to the next step's */
    uint32_t place;
    int chunk; /* whose row is asked for next */
    int n, part, parts;

    __device__ replicas_source(const struct replicas_net *net);
    /* The row of the next chunk's sample, and on. */
    __device__ uint32_t row(const struct replicas_layout &at)
    {
        const uint32_t row = order ? __ldg(&order[place]) : place;
        const bool last = ++chunk == at.chunks;
        chunk = last ? 0 : chunk;
        place += last ? leap : jump;
        place = place >= samples ? place - samples : place;
        return row;
    }
    /* Begins to copy a row to an intake. Whole quadruples lie at multiples of 16 bytes. */
    __device__ void fetch(uint32_t row, float *intake, int target_at) const
    {
        const uint32_t to = (uint32_t)__cvta_generic_to_shared(intake);
        const uint32_t *from = x + (uint64_t)row * in;
        if (in % 4 == 0)
            for (uint32_t i = 4 * (uint32_t)part; i < in; i += 4 * (uint32_t)parts)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 4 * i),
                             "l"(from + i)
                             : "memory");
        else
            for (uint32_t i = (uint32_t)part; i < in; i += (uint32_t)parts)
                copy(to + 4 * i, from + i);
        if (target)
            for (uint32_t o = (uint32_t)part; o < wide; o += (uint32_t)parts)
                copy(to + 4 * ((uint32_t)target_at + o), target + (uint64_t)row * wide + o);
    }
    static __device__ void copy(uint32_t to, const uint32_t *from)
    {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
    }
    static __device__ void wait()
    {
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
};

inline __device__ replicas_source::replicas_source(const struct replicas_net *net)
    : x(net->step.x->data), target(net->step.target ? net->step.target->data : NULL),
      order(net->step.feed->order), in((uint32_t)net->layer[0].in),
      wide(net->step.loss_kind == OP_cross_entropy
               ? 1u
               : (uint32_t)net->layer[net->step.layers - 1].out),
      samples((uint32_t)net->step.feed->samples), chunk(0),
      n((int)threadIdx.x % net->layout.samples), part((int)threadIdx.x / net->layout.samples),
      parts(net->layout.parts)
{
    const struct replicas_layout &at = net->layout;
    const int64_t behind = net->step.batch - (int64_t)(at.chunks - 1) * at.samples;
    jump = (uint32_t)at.samples % samples;
    leap = (uint32_t)(behind % (int64_t)samples);
    place =
        (uint32_t)((net->step.feed->place + (uint64_t)((int)blockIdx.x * at.share + n)) % samples);
}

/* What a thread does for the gradients, always the same: a warp has tiles, of all samples or of a
 * share; a thread adds up packets, of all blocks or of a piece. */
struct replicas_work {
    int tile, share;   /* tile: the first */
    int packet, piece; /* likewise */
    __device__ replicas_work(const struct replicas_layout &at)
        : tile((int)threadIdx.x / 32 % at.tile_count), share((int)threadIdx.x / 32 / at.tile_count),
          packet((int)threadIdx.x % at.packets), piece((int)threadIdx.x / at.packets)
    {
        tile = share < at.shares ? tile : at.tile_count;
        packet = piece < at.pieces ? packet : at.packets;
    }
};

/* A chunk's part of all gradients. */
static __device__ void replicas_gradients(const struct replicas_net *net, float *shared,
                                          const struct replicas_work &work, const float *intakes,
                                          int count, bool adds)
{
    const struct replicas_layout &at = net->layout;
    const struct replicas_tile *tiles = (const struct replicas_tile *)&shared[at.tiles];
    const int lane = (int)threadIdx.x % 32;
    for (int t = work.tile; t < at.tile_count; t += REPLICAS_WARPS) {
        const struct replicas_tile tile = tiles[t];
        const bool first = t < at.first_tiles;
        const float *xs = first ? intakes : &shared[at.lines];
        const int apart = first ? at.intake : at.line;
        float sum[16] = {}, bias[4] = {};
#pragma unroll 2
        for (int n0 = 32 * work.share; n0 < count; n0 += 32 * at.shares) {
            const int n = n0 + lane;
            float4 x = {}, d = {};
            if (n < count) {
                x = *quad_at(&xs[n * apart + tile.x]);
                d = *quad_at(&shared[at.lines + n * at.line + tile.d]);
            }
            const float inputs[4] = {x.x, x.y, x.z, x.w}, outputs[4] = {d.x, d.y, d.z, d.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                bias[k] += outputs[k];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum[4 * i + k] = fmaf(inputs[i], outputs[k], sum[4 * i + k]);
            }
        }
        lanes_halve<8>(sum, 16);
        lanes_halve<2>(bias, 16);
        lanes_halve<4>(sum, 8);
        lanes_halve<1>(bias, 8);
        lanes_halve<2>(sum, 4);
        bias[0] += __shfl_xor_sync(~0u, bias[0], 4);
        lanes_halve<1>(sum, 2);
        bias[0] += __shfl_xor_sync(~0u, bias[0], 2);
        sum[0] += __shfl_xor_sync(~0u, sum[0], 1);
        bias[0] += __shfl_xor_sync(~0u, bias[0], 1);
        float *to = &shared[at.sums + work.share * at.numbers];
        if (lane % 2 == 0)
            to[tile.weights + lane / 2] = sum[0] + (adds ? to[tile.weights + lane / 2] : 0.0f);
        if (lane % 8 == 0 && tile.bias)
            to[tile.bias + lane / 8] = bias[0] + (adds ? to[tile.bias + lane / 8] : 0.0f);
    }
}

/* What the block has found: gradient number `k` of all that is learnt, then the loss, then the
 * right answers. */
static __device__ float replicas_found(const struct replicas_net *net, const float *shared, int k)
{
    const struct replicas_layout &at = net->layout;
    float sum = 0.0f;
    if (k < at.learnt) {
        const float *sums = &shared[at.sums + ((const uint16_t *)&shared[at.places])[k]];
        for (int share = 0; share < at.shares; share++)
            sum += sums[share * at.numbers];
    } else if (k < at.learnt + 2) {
        for (int warp = 0; warp < at.samples / 32; warp++)
            sum += shared[at.losses + 2 * warp + k - at.learnt];
    }
    return sum;
}

/* Sends what this block has found to all, and adds up what all have: in pieces, each some blocks'
 * in their order, which replicas_total adds up. They lie where lines did. */
static __device__ void replicas_exchange(const struct replicas_net *net, float *shared,
                                         const struct replicas_work &work, uint32_t number)
{
    const struct replicas_layout &at = net->layout;
    uint4 *all = net->packets + (int64_t)(number % 2) * at.blocks * at.packets;
    float *pieces = &shared[at.lines];
    for (int p = (int)threadIdx.x; p < at.packets; p += REPLICAS_THREADS)
        packet_put(&all[(int)blockIdx.x * at.packets + p], replicas_found(net, shared, 3 * p),
                   replicas_found(net, shared, 3 * p + 1), replicas_found(net, shared, 3 * p + 2),
                   number);
    const int each = (at.blocks + at.pieces - 1) / at.pieces;
    for (int p = work.packet; p < at.packets; p += REPLICAS_THREADS) {
        const int from = work.piece * each, count = min(each, at.blocks - from);
        const float3 sum = packets_sum(&all[from * at.packets + p], count, at.packets, number);
        float *to = &pieces[3 * (work.piece * at.packets + p)];
        to[0] = sum.x, to[1] = sum.y, to[2] = sum.z;
    }
    __syncthreads();
}

/* Number `k` of what all blocks have found. */
static __device__ float replicas_total(const struct replicas_net *net, const float *shared, int k)
{
    const struct replicas_layout &at = net->layout;
    if (at.blocks == 1)
        return replicas_found(net, shared, k);
    float sum = 0.0f;
    for (int piece = 0; piece < at.pieces; piece++)
        sum += shared[at.lines + 3 * piece * at.packets + k];
    return sum;
}

template <typename Rule>
static __device__ void replicas_update(const struct replicas_net *net, float *shared,
                                       const struct pace &pace, const Rule &rule)
{
    const struct replicas_layout &at = net->layout;
    for (int k = (int)threadIdx.x; k < at.learnt; k += REPLICAS_THREADS) {
        const int place = ((const uint16_t *)&shared[at.places])[k];
        float kept[2] = {};
#pragma unroll
        for (int s = 0; s < Rule::KEPT; s++)
            kept[s] = shared[at.kept + s * at.numbers + place];
        shared[place] = rule.step(shared[place], replicas_total(net, shared, k), pace, kept);
#pragma unroll
        for (int s = 0; s < Rule::KEPT; s++)
            shared[at.kept + s * at.numbers + place] = kept[s];
    }
}

template <typename Kind, bool PLAIN>
static __global__ void __launch_bounds__(REPLICAS_THREADS, 1)
    stack_replicas(const __grid_constant__ struct replicas_net net, int64_t steps)
{
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct stack_step &step = net.step;
    const struct replicas_layout &at = net.layout;
    const int thread = (int)threadIdx.x, last = Kind::layers(&net) - 1, out = net.layer[last].out;
    const int share_end = min(((int)blockIdx.x + 1) * at.share, step.batch);
    const bool judges = step.loss_kind != OP_COUNT;
    const bool has_samples = thread < at.samples * at.parts;
    const bool meets = has_samples || (!Kind::ALONE && at.parts > 1);
    struct replicas_source source(&net);
    const struct replicas_work work(at);
    const uint32_t shape = Kind::shape(&net);
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *answers = step.y ? step.y->data : NULL;
    const int32_t updates = step.count ? *step.count : 0;
    struct pace *paces = (struct pace *)&shared[at.paces];
    float *line = &shared[at.lines + source.n * at.line];
    int turn = 0; /* of the two intakes */

    replicas_begin(&net, shared);
    /* The last of all blocks to have read where the data go on may move that. */
    const bool moves = thread == 0 && atomicAdd(net.came, 1u) == gridDim.x - 1;
    const auto intakes = [&](int which) { return &shared[at.intakes + which * at.intakes_apart]; };
    const int own = source.n * at.intake;
    uint32_t row = 0, next_row = 0;
    if (has_samples) {
        row = source.row(at);
        source.fetch(row, intakes(0) + own, at.target);
        next_row = source.row(at);
    }
    for (int32_t done = 0; done < (int32_t)steps; done++) {
        float2 found = {};
        if (step.count && done % PACES == 0 && thread / 32 == REPLICAS_WARPS - 1)
            paces_make<PLAIN>(&step, &net.rule, updates + done, paces);
        for (int chunk = 0; chunk < at.chunks; chunk++, turn ^= 1) {
            const int first = (int)blockIdx.x * at.share + chunk * at.samples;
            const int count = min(share_end - first, at.samples);
            if (meets) {
                const float *intake = intakes(turn) + own;
                const bool there = has_samples && source.n < count;
                source.wait();
                Kind::meet(at);
                if (has_samples)
                    source.fetch(next_row, intakes(turn ^ 1) + own, at.target);
                const uint32_t row_after = source.row(at);
                if (!Kind::ALONE || there)
                    replica_forward<Kind>(&net, shared, shape, intake, line, source.part, there);
                if (there && source.part == 0) {
                    const float *y = line + Kind::y(at, last);
                    if (answers) {
                        for (int o = 0; o < out; o++)
                            answers[(uint64_t)row * (unsigned)out + (unsigned)o] =
                                __float_as_uint(y[o]);
                        step.y->written[row] = 1;
                    }
                    if (judges) {
                        const float2 one = replicas_judge<Kind>(&net, shape, y, intake + at.target,
                                                                line + Kind::d(at, last));
                        found.x += one.x;
                        found.y += one.y;
                    }
                }
                if (step.count) {
                    Kind::meet(at);
                    if (!Kind::ALONE || there)
                        replica_backward<Kind>(&net, shared, shape, line, source.part, there);
                }
                row = next_row;
                next_row = row_after;
            }
            if (!step.count)
                continue;
            __syncthreads();
            replicas_gradients(&net, shared, work, intakes(turn), count, chunk > 0);
            if (chunk + 1 < at.chunks)
                __syncthreads();
        }
        if (!judges)
            continue;
        found.x = group_sum<32>(found.x);
        found.y = group_sum<32>(found.y);
        if (thread % 32 == 0)
            *(float2 *)&shared[at.losses + thread / 32 * 2] = found;
        __syncthreads();
        if (at.blocks > 1)
            replicas_exchange(&net, shared, work, net.first + (uint32_t)done);
        if (step.count) {
            const struct pace &pace = paces[done % PACES];
            if constexpr (PLAIN)
                replicas_update(&net, shared, pace, plain_rule{});
            else
                rule_visit(net.rule,
                           [&](const auto &rule) { replicas_update(&net, shared, pace, rule); });
        }
        if (blockIdx.x == 0 && thread == REPLICAS_THREADS - 1) {
            ring_put(&loss, replicas_total(&net, shared, at.learnt));
            ring_put(&right, replicas_total(&net, shared, at.learnt + 1));
        }
        __syncthreads();
    }
    replicas_source::wait();
    if (step.count && blockIdx.x == 0)
        each_number(&net, shared, [](float *of, const float *kept) { *of = *kept; });
    if (moves) {
        *net.came = 0;
        stack_end(&step, steps);
    }
}

struct replicas_kernels {
    template <int LAYERS, int HIDDEN, int LAST> static void *kernel()
    {
        return (void *)stack_replicas<replicas_kind<2, LAYERS, HIDDEN, LAST>, true>;
    }
};

template <bool PLAIN> static void *replicas_kernel_of(int32_t quads)
{
    switch (quads) {
    case 1:
    case 2: return (void *)stack_replicas<replicas_kind<2, 0, AS_IT_COMES, AS_IT_COMES>, PLAIN>;
    case 3:
    case 4: return (void *)stack_replicas<replicas_kind<4, 0, AS_IT_COMES, AS_IT_COMES>, PLAIN>;
    default: return (void *)stack_replicas<replicas_kind<8, 0, AS_IT_COMES, AS_IT_COMES>, PLAIN>;
    }
}

/* The usual shapes of narrow networks, trained by sgd or asked, have kernels of their own. */
static void *replicas_kernel(const struct replicas_net *net)
{
    if (net->rule.kind != OP_COUNT)
        return replicas_kernel_of<false>(net->layout.quads);
    void *usual = net->layout.quads <= 2
                      ? usual_kernel<replicas_kernels>(net->layer, net->step.layers)
                      : NULL;
    return usual ? usual : replicas_kernel_of<true>(net->layout.quads);
}

static uint64_t bytes(const struct dense_stack *dense, int32_t batch,
                      const struct stack_limits *limits)
{
    struct replicas_layout layout;
    (void)replicas_lay_out(dense, batch, limits, &layout);
    return ((uint64_t)2 * (uint64_t)layout.blocks * (uint64_t)layout.packets + 1) * sizeof(uint4);
}

static void prepare(struct stack *stack, const struct dense_stack *dense,
                    const struct stack_step *step, const struct stack_limits *limits)
{
    struct replicas_net *net = (struct replicas_net *)stack->net;
    static_assert(sizeof *net <= STACK_NET_BYTES, "a kernel's parameters");
    net->step = *step;
    (void)replicas_lay_out(dense, step->batch, limits, &net->layout);
    net->rule = stack->rule;
    net->first = 1; /* no packet has come yet: all numbers are 0 */
    net->came = (uint32_t *)stack->memory;
    net->packets = (uint4 *)stack->memory + 1;
    memcpy(net->layer, stack->layer, sizeof net->layer);
}

static cudaError_t launch(struct stack *stack, int64_t steps, cudaStream_t stream)
{
    struct replicas_net *net = (struct replicas_net *)stack->net;
    void *arguments[] = {net, &steps};
    void *kernel = replicas_kernel(net);
    const int bytes = (int)net->layout.shared_bytes;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error == cudaSuccess)
        error =
            cudaLaunchCooperativeKernel(kernel, dim3((unsigned)net->layout.blocks),
                                        dim3(REPLICAS_THREADS), arguments, (size_t)bytes, stream);
    net->first += (uint32_t)steps;
    return error;
}

const struct stack_kernel steps_by_replicas = {bytes, prepare, launch};
