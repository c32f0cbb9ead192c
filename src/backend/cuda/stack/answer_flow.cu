/* answer_flow.cu: calls of a stack of wide layers at a small batch, one kernel a call on all
 * multiprocessors: weights flow through shared memory whatever the layers wait for.
 *
 * A block has a tile of every wide layer, a slice of its inputs and one of its outputs. A thread
 * has four neighbouring outputs of all samples and every few rows of the tile. It copies its own
 * weights to shared memory, some stages ahead of what it multiplies, from layer to layer: while
 * blocks wait for each other, the next layer's first weights come. What the blocks find is
 * exchanged in packets of 16 bytes, three floats and the number of the launch (stack_grid_tile.h):
 * each block adds up the parts of a few outputs, and hands them out as inputs of the next layer.
 *
 * The first layer has few inputs: each block computes what it needs of it. The last one has few
 * outputs: each block makes its part of them from the inputs that it has added up, and the first
 * block adds these and answers.
 *
 * Blocks wait for each other, so all of them must run at once: there is one for each
 * multiprocessor, and the launch is cooperative.
 *
 * Sums have a fixed order. Bound: each weight is read once, from device memory; between two layers
 * there are two exchanges. */
#include "backend/cuda/stack/answer_calls.h"
#include "backend/cuda/stack/stack_grid_tile.h"

enum {
    FLOW_THREADS = 512,
    FLOW_WARPS = FLOW_THREADS / 32,
    FLOW_ROWS = 4,                          /* of a stage that a thread has, at most */
    STAGE_QUADS = FLOW_ROWS * FLOW_THREADS, /* of weights, at most */
    FLOW_STAGES = 4,
    FIRST_IN_MOST = 8,    /* inputs of the first layer */
    PACKETS_AT_ONCE = 2,  /* of each output whose sums over threads are in shared memory */
    FLOW_BATCH_LEAST = 5, /* fewer are answered sooner layer by layer */
};
static_assert(PARAMS_ALIGN % 16 == 0, "weights are copied 16 bytes at a time");

/* Part number `index` of `of`, of `all`. */
struct stretch {
    int begin, count;
    __host__ __device__ stretch(int all, int index, int of)
        : begin((int)((int64_t)all * index / of)),
          count((int)((int64_t)all * (index + 1) / of) - begin)
    {
    }
};

/* A block's part of a layer that streams. */
struct flow_tile {
    struct stretch rows, quads;
    int groups, at_once; /* threads that share the rows; rows of a stage */
    __host__ __device__ flow_tile(const struct answer_layer &layer, int rows_, int columns,
                                  int block)
        : rows(layer.in, block / columns, rows_), quads(layer.out / 4, block % columns, columns),
          groups(quads.count ? FLOW_THREADS / quads.count : 0), at_once(1)
    {
        if (!quads.count)
            rows.count = 0;
        if (!rows.count)
            return;
        const int most = FLOW_ROWS * groups, stages = (rows.count + most - 1) / most;
        at_once = (rows.count + stages - 1) / stages; /* no stage is nearly empty */
    }
    __host__ __device__ int rows_from(int row) const
    {
        return rows.count - row < at_once ? rows.count - row : at_once;
    }
};

/* Floats of a row of inputs: whole quadruples. */
static constexpr __host__ __device__ int flow_pitch(int samples)
{
    return (samples + 3) / 4 * 4;
}

static inline __device__ void copy_quad(float4 *to, const float *from)
{
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

static inline __device__ void copy_float(float *to, const float *from)
{
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}

static inline __device__ void copies_are_asked(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until this thread's copies have come, but for those of the last `LEFT` times. */
template <int LEFT> static inline __device__ void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* A thread's own weights on their way through shared memory, stage after stage, layer after layer:
 * nobody else reads them. */
struct flow_ring {
    const struct flow_net &net;
    float4 *quads; /* [stage][row][thread]: this thread's */
    int now, layer;
    int row, rows, at_once; /* of the layer's tile: the next stage's first, all, those of a stage */
    int group, groups; /* this thread's rows of a stage: the first, and from each to the next */
    const float *from; /* the first one's weights */

    __device__ flow_ring(const struct flow_net &net_, float *shared)
        : net(net_), quads((float4 *)shared + threadIdx.x), now(0), layer(0), row(0), rows(0)
    {
    }
    __device__ void fill(void)
    {
        for (int stage = 0; stage < FLOW_STAGES; stage++)
            ask();
    }
    __device__ void begin_layer(void)
    {
        const struct answer_layer &dense = net.layer[++layer].dense;
        const struct flow_tile tile(dense, net.rows, net.columns, (int)blockIdx.x);
        row = 0;
        rows = tile.rows.count;
        at_once = tile.at_once;
        groups = tile.groups;
        group = rows ? (int)threadIdx.x / tile.quads.count : 0;
        from = dense.w + (int64_t)(tile.rows.begin + group) * dense.out +
               4 * (tile.quads.begin + (int)threadIdx.x - group * tile.quads.count);
        if (group >= groups)
            group = at_once; /* more threads than weights: none */
    }
    /* The next stage's weights, into the place of the oldest. */
    __device__ void ask(void)
    {
        while (row >= rows && layer < net.layers - 2)
            begin_layer();
        const int some = rows - row < at_once ? rows - row : at_once;
        const int64_t out = net.layer[layer].dense.out;
        float4 *to = quads + now * STAGE_QUADS;
#pragma unroll
        for (int r = 0; r < FLOW_ROWS; r++)
            if (group + r * groups < some)
                copy_quad(to + r * FLOW_THREADS, from + r * groups * out);
        copies_are_asked();
        row += at_once;
        from += at_once * out;
        now = now + 1 == FLOW_STAGES ? 0 : now + 1;
    }
    /* The oldest stage, once it has come. */
    __device__ const float4 *take(void) const
    {
        copies_wait<FLOW_STAGES - 1>();
        return quads + now * STAGE_QUADS;
    }
};

/* One block at work. */
template <int N> struct flow_block {
    static constexpr int PITCH = flow_pitch(N), PACKETS_OF = PACKETS<N>;
    const struct flow_net &net;
    float *shared;
    struct flow_ring ring;
    int thread, block, blocks;
    uint32_t number; /* of the launch, which packets carry */

    __device__ flow_block(const struct flow_net &net_, float *shared_)
        : net(net_), shared(shared_), ring(net_, shared_), thread((int)threadIdx.x),
          block((int)blockIdx.x), blocks((int)gridDim.x), number(0)
    {
    }
    __device__ struct flow_tile tile_of(int l) const
    {
        return flow_tile(net.layer[l].dense, net.rows, net.columns, block);
    }
    __device__ void fetch(void);
    __device__ void hear(uint32_t slot);
    __device__ void begin(void);
    __device__ void add_up(const struct flow_tile &tile, float (&sum)[4][N]);
    __device__ void give_parts(const struct flow_tile &tile, int l, const float (&sum)[4][N]);
    __device__ void hand_out(int l);
    __device__ void take_inputs(int l);
    __device__ void end(uint32_t slot);
};

/* What is needed of the first and of the last layer is asked for. */
template <int N> __device__ void flow_block<N>::fetch(void)
{
    const struct answer_layer &first = net.layer[0].dense;
    const struct answer_layer &last = net.layer[net.layers - 1].dense;
    const struct stretch units = tile_of(1).rows, own(last.in, block, blocks);
    for (int e = thread; e < units.count * (first.in + 1); e += FLOW_THREADS) {
        const int i = e / units.count, u = units.begin + e % units.count;
        float *to = &shared[net.at.first + e];
        if (i < first.in)
            copy_float(to, &first.w[(int64_t)i * first.out + u]);
        else if (first.b)
            copy_float(to, &first.b[u]);
        else
            *to = 0.0f;
    }
    for (int e = thread; e < own.count * last.out; e += FLOW_THREADS)
        copy_float(&shared[net.at.last + e], &last.w[(int64_t)own.begin * last.out + e]);
    copies_are_asked();
}

/* The question, which the first block reads and passes on: the bus answers one multiprocessor after
 * the other, a microsecond each. Meanwhile weights begin to flow. */
template <int N> __device__ void flow_block<N>::hear(uint32_t slot)
{
    const int in = net.layer[0].dense.in, items = in * PACKETS_OF;
    float *question = &shared[net.at.question]; /* [input][3 × packets], the call's number */
    const bool reads = block == 0 && thread < net.mail.inputs;
    const uint64_t note = reads ? note_look(net.mail.question(slot) + thread) : 0;
    number = __ldcg(net.turn) + 1;
    fetch();
    ring.fill();
    if (block == 0) {
        for (int e = thread; e < 3 * items; e += FLOW_THREADS)
            question[e] = 0.0f;
        __syncthreads();
        if (reads)
            question[thread % in * 3 * PACKETS_OF + thread / in] = __uint_as_float((uint32_t)note);
        if (thread == 0)
            *(uint32_t *)&question[3 * PACKETS_OF * FIRST_IN_MOST] = note_number(note);
        __syncthreads();
        if (thread < items) {
            const float *three = &question[3 * thread];
            packet_put(&net.relay[thread], three[0], three[1], three[2], number);
        }
    } else if (thread < items) {
        const float3 three = packet_wait(&net.relay[thread], number);
        question[3 * thread] = three.x;
        question[3 * thread + 1] = three.y;
        question[3 * thread + 2] = three.z;
    }
    copies_wait<FLOW_STAGES>();
    __syncthreads();
}

/* Of the first layer's outputs, those that this block needs. */
template <int N> __device__ void flow_block<N>::begin(void)
{
    const struct answer_layer &first = net.layer[0].dense;
    const int units = tile_of(1).rows.count;
    const float *w = &shared[net.at.first], *question = &shared[net.at.question];
    for (int e = thread; e < units * PITCH; e += FLOW_THREADS) {
        const int u = e / PITCH, n = e % PITCH;
        float sum = w[first.in * units + u];
        for (int i = 0; n < N && i < first.in; i++)
            sum = fmaf(question[i * 3 * PACKETS_OF + n], w[i * units + u], sum);
        shared[net.at.x + e] = n < N ? stack_activation(first.function, sum) : 0.0f;
    }
    __syncthreads();
}

/* x·W of the tile, as far as this thread's rows make it. */
template <int N>
__device__ void flow_block<N>::add_up(const struct flow_tile &tile, float (&sum)[4][N])
{
    const int group = tile.quads.count ? thread / tile.quads.count : 0;
    const float *x = &shared[net.at.x + group * PITCH];
    for (int row = 0; row < tile.rows.count; row += tile.at_once) {
        const float4 *w = ring.take();
        const int rows = tile.rows_from(row);
#pragma unroll
        for (int r = 0; r < FLOW_ROWS; r++) {
            if (group >= tile.groups || group + r * tile.groups >= rows)
                break;
            const float4 four = w[r * FLOW_THREADS];
            float in[PITCH];
#pragma unroll
            for (int n = 0; n < PITCH; n += 4)
                *(float4 *)&in[n] = *(const float4 *)&x[(row + r * tile.groups) * PITCH + n];
#pragma unroll
            for (int n = 0; n < N; n++) {
                sum[0][n] = fmaf(in[n], four.x, sum[0][n]);
                sum[1][n] = fmaf(in[n], four.y, sum[1][n]);
                sum[2][n] = fmaf(in[n], four.z, sum[2][n]);
                sum[3][n] = fmaf(in[n], four.w, sum[3][n]);
            }
        }
        ring.ask();
    }
}

/* The tile's sums over threads, a few samples at a time, to who adds up the blocks'. */
template <int N>
__device__ void flow_block<N>::give_parts(const struct flow_tile &tile, int l,
                                          const float (&sum)[4][N])
{
    constexpr int SOME = PACKETS_OF < PACKETS_AT_ONCE ? PACKETS_OF : PACKETS_AT_ONCE;
    const int out = net.layer[l].dense.out, columns = 4 * tile.quads.count;
    float *sums = &shared[net.at.parts]; /* [sample][thread][4] */
    uint4 *to = net.layer[l].parts + (int64_t)(block / net.columns) * PACKETS_OF * out +
                4 * tile.quads.begin;
#pragma unroll
    for (int p0 = 0; p0 < PACKETS_OF; p0 += SOME) {
        if (p0 > 0)
            __syncthreads();
#pragma unroll
        for (int k = 0; k < 3 * SOME; k++) {
            const int n = 3 * p0 + k < N ? 3 * p0 + k : N - 1;
            *(float4 *)&sums[4 * (k * FLOW_THREADS + thread)] =
                make_float4(sum[0][n], sum[1][n], sum[2][n], sum[3][n]);
        }
        __syncthreads();
        for (int item = thread; item < SOME * columns; item += FLOW_THREADS) {
            const int p = item / columns, c = item % columns;
            float three[3] = {};
            for (int group = 0; group < tile.groups; group++)
#pragma unroll
                for (int k = 0; k < 3; k++)
                    three[k] += sums[4 * (3 * p + k) * FLOW_THREADS + group * columns + c];
            packet_put(&to[(p0 + p) * out + c], three[0], three[1], three[2], number);
        }
    }
}

/* This block's few outputs of the layer, whole: to all, or kept for its part of the last layer. */
template <int N> __device__ void flow_block<N>::hand_out(int l)
{
    const struct answer_layer &layer = net.layer[l].dense;
    const struct stretch own(layer.out, block, blocks);
    const bool kept = l == net.layers - 2;
    for (int item = thread; item < PACKETS_OF * own.count; item += FLOW_THREADS) {
        const int p = item / own.count, o = own.begin + item % own.count;
        const float b = layer.b ? __ldg(&layer.b[o]) : 0.0f;
        const float3 sum = packets_sum(net.layer[l].parts + p * layer.out + o, net.rows,
                                       PACKETS_OF * layer.out, number);
        const float y[3] = {stack_activation(layer.function, sum.x + b),
                            stack_activation(layer.function, sum.y + b),
                            stack_activation(layer.function, sum.z + b)};
        if (!kept) {
            packet_put(&net.layer[l].y[p * layer.out + o], y[0], y[1], y[2], number);
            continue;
        }
#pragma unroll
        for (int k = 0; k < 3; k++)
            shared[net.at.own + (o - own.begin) * 3 * PACKETS_OF + 3 * p + k] = y[k];
    }
}

/* x of the tile of layer l. Several packets are on their way at once. */
template <int N> __device__ void flow_block<N>::take_inputs(int l)
{
    enum { AHEAD = 2 };
    const struct stretch rows = tile_of(l).rows;
    const int in = net.layer[l].dense.in, items = PACKETS_OF * rows.count;
    const uint4 *from = net.layer[l - 1].y + rows.begin;
    for (int item0 = thread; item0 < items; item0 += AHEAD * FLOW_THREADS) {
        const uint4 *at[AHEAD];
        float3 three[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int item = item0 + k * FLOW_THREADS;
            at[k] = item < items ? &from[item / rows.count * in + item % rows.count] : NULL;
        }
        packets_wait(at, number, three);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const int item = item0 + k * FLOW_THREADS;
            if (item >= items)
                break;
            float *x = &shared[net.at.x + item % rows.count * PITCH + item / rows.count * 3];
            x[0] = three[k].x, x[1] = three[k].y, x[2] = three[k].z;
        }
    }
    __syncthreads();
}

/* The last layer: this block's part of it; the first block adds them up, a warp for each packet. */
template <int N> __device__ void flow_block<N>::end(uint32_t slot)
{
    const struct answer_layer &last = net.layer[net.layers - 1].dense;
    const struct stretch own(last.in, block, blocks);
    const int items = last.out * PACKETS_OF, lane = thread % 32;
    uint4 *ends = net.layer[net.layers - 1].y;
    __syncthreads();
    for (int item = thread; item < items; item += FLOW_THREADS) {
        const int o = item / PACKETS_OF, p = item % PACKETS_OF;
        float three[3] = {};
        for (int i = 0; i < own.count; i++)
#pragma unroll
            for (int k = 0; k < 3; k++)
                three[k] = fmaf(shared[net.at.own + i * 3 * PACKETS_OF + 3 * p + k],
                                shared[net.at.last + i * last.out + o], three[k]);
        packet_put(&ends[item * blocks + block], three[0], three[1], three[2], number);
    }
    if (block > 0)
        return;
    const uint32_t call =
        *(const uint32_t *)&shared[net.at.question + 3 * PACKETS_OF * FIRST_IN_MOST];
    for (int item = thread / 32; item < items; item += FLOW_WARPS) {
        const int o = item / PACKETS_OF, n = item % PACKETS_OF * 3 + lane;
        const int share = (blocks + 31) / 32, left = blocks - lane * share;
        float3 sum = {};
        if (left > 0)
            sum = packets_sum(&ends[item * blocks + lane * share], left < share ? left : share, 1,
                              number);
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            sum.x += __shfl_xor_sync(~0u, sum.x, apart);
            sum.y += __shfl_xor_sync(~0u, sum.y, apart);
            sum.z += __shfl_xor_sync(~0u, sum.z, apart);
        }
        const float y = (lane == 0   ? sum.x
                         : lane == 1 ? sum.y
                                     : sum.z) +
                        (last.b ? __ldg(&last.b[o]) : 0.0f);
        if (lane < 3 && n < net.batch)
            note_put(net.mail.answer(slot) + n * last.out + o, stack_activation(last.function, y),
                     call);
    }
    if (thread == 0) /* all have read it: there are packets of all */
        *net.turn = number;
}

template <int N>
static __global__ void __launch_bounds__(FLOW_THREADS)
    answer_flow(const __grid_constant__ struct flow_net net, uint32_t slot)
{
    extern __shared__ float4 flow_shared[];
    struct flow_block<N> block(net, (float *)flow_shared);
    block.hear(slot);
    block.begin();
    for (int l = 1; l < net.layers - 1; l++) {
        const struct flow_tile tile = block.tile_of(l);
        float sum[4][N] = {};
        if (l > 1)
            block.take_inputs(l);
        block.add_up(tile, sum);
        block.give_parts(tile, l, sum);
        block.hand_out(l);
    }
    block.end(slot);
}

/* Samples that the kernel is compiled for. */
static int32_t flow_samples(int32_t batch)
{
    return batch <= 10 ? 10 : GRID_BATCH_MOST;
}

static void *flow_kernel(int32_t batch)
{
    return flow_samples(batch) == 10 ? (void *)answer_flow<10>
                                     : (void *)answer_flow<GRID_BATCH_MOST>;
}

/* As square as can be: a grid of blocks, one for each multiprocessor. */
static void flow_shape(const cudaDeviceProp *gpu, struct flow_net *to)
{
    int32_t rows = 1;
    while ((rows + 1) * (rows + 1) <= gpu->multiProcessorCount)
        rows++;
    to->rows = rows;
    to->columns = gpu->multiProcessorCount / rows;
}

static void flow_lay_out(const struct answer_net *net, struct flow_net *to)
{
    const int32_t samples = flow_samples(net->batch), blocks = to->rows * to->columns;
    const int32_t packets = grid_packets(samples);
    const int32_t some = packets < PACKETS_AT_ONCE ? packets : PACKETS_AT_ONCE;
    const struct answer_layer *last = &net->layer[net->layers - 1];
    int32_t rows = 0, at = 0;
    for (int32_t l = 1; l < net->layers - 1; l++) {
        const int32_t most = (net->layer[l].in + to->rows - 1) / to->rows;
        rows = most > rows ? most : rows;
    }
    const int32_t own = (last->in + blocks - 1) / blocks;
    const int32_t units = (net->layer[0].out + to->rows - 1) / to->rows;
    const int32_t sizes[] = {rows * flow_pitch(samples),
                             3 * some * 4 * FLOW_THREADS,
                             units * (net->layer[0].in + 1),
                             own * last->out,
                             own * 3 * packets,
                             3 * packets * FIRST_IN_MOST + 1};
    int32_t *const places[] = {&to->at.x,    &to->at.parts, &to->at.first,
                               &to->at.last, &to->at.own,   &to->at.question};
    at = FLOW_STAGES * 4 * STAGE_QUADS;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *places[i] = at;
        at += round_up(sizes[i], 4);
    }
    to->at.bytes = 4 * at;
}

/* Room for all packets of a call; `to`: and where they are. */
static uint64_t flow_packets(const struct answer_net *net, uint4 *from, struct flow_net *to)
{
    const int32_t blocks = to->rows * to->columns;
    const uint64_t packets = (uint64_t)grid_packets(flow_samples(net->batch));
    uint64_t count = 1;
    to->turn = (uint32_t *)from;
    to->relay = from + count;
    count += packets * (uint64_t)net->layer[0].in;
    for (int32_t l = 1; l < net->layers; l++) {
        const uint64_t each = packets * (uint64_t)net->layer[l].out;
        to->layer[l].parts = from + count;
        count += l < net->layers - 1 ? each * (uint64_t)to->rows : 0;
        to->layer[l].y = from + count;
        count += l < net->layers - 1 ? each : each * (uint64_t)blocks;
    }
    return count * sizeof(uint4);
}

bool answer_flow_takes(const struct answer_net *net, const cudaDeviceProp *gpu)
{
    struct flow_net to = {};
    if (gpu->major < 9 || net->layers < 3 || net->batch < FLOW_BATCH_LEAST ||
        net->batch > GRID_BATCH_MOST || net->layer[0].in > FIRST_IN_MOST)
        return false;
    flow_shape(gpu, &to);
    for (int32_t l = 1; l < net->layers - 1; l++) {
        const struct answer_layer *layer = &net->layer[l];
        if (layer->out % 4 != 0 || layer->out / 4 > FLOW_THREADS * to.columns)
            return false;
    }
    flow_lay_out(net, &to);
    return (size_t)to.at.bytes <= gpu->sharedMemPerBlockOptin;
}

static uint64_t bytes(const struct answer_net *net, const cudaDeviceProp *gpu)
{
    struct flow_net to = {};
    flow_shape(gpu, &to);
    return flow_packets(net, NULL, &to);
}

static cudaError_t prepare(struct answer *answer)
{
    const struct answer_net *net = &answer->net;
    struct flow_net *to = &answer->flow;
    to->mail = net->mail;
    to->batch = net->batch;
    to->layers = net->layers;
    for (int32_t l = 0; l < net->layers; l++)
        to->layer[l].dense = net->layer[l];
    flow_shape(answer->gpu, to);
    flow_lay_out(net, to);
    flow_packets(net, (uint4 *)answer->between, to);
    return cudaFuncSetAttribute(flow_kernel(net->batch),
                                cudaFuncAttributeMaxDynamicSharedMemorySize, to->at.bytes);
}

static cudaError_t launch(struct answer *answer, uint32_t slot, bool stays, cudaStream_t stream)
{
    struct flow_net *net = &answer->flow;
    void *arguments[] = {net, &slot};
    (void)stays; /* it cannot */
    return cudaLaunchCooperativeKernel(
        flow_kernel(net->batch), dim3((unsigned)(net->rows * net->columns)), dim3(FLOW_THREADS),
        arguments, (size_t)net->at.bytes, stream);
}

const struct answer_kernel calls_by_flow = {false, bytes, prepare, launch, NULL};
