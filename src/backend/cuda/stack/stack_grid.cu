/* stack_grid.cu: a stack of dense layers at a small batch, on all multiprocessors at once, for as
 * many steps as are asked for.
 *
 * Blocks form a grid of rows × columns. Each owns a tile of every layer's weights for the whole
 * launch: the inputs of its row, the outputs of its column; as much of it as fits in shared memory,
 * the rest in device memory that stays in L2. Forward, a block makes its part of the sums of its
 * outputs; those in its column exchange them, and each adds them all up. In the next layer rows and
 * columns change places, so these outputs are the block's own inputs. Backward it is the same the
 * other way: a block makes its part of the gradients of its inputs, those in its row exchange them.
 * The weights are updated in the same pass, with the gradient summed over the batch first. The last
 * layer is narrow: each block has all columns of its rows, and computes the loss as all others do.
 * A narrow first layer each block has all rows of, and nothing of it is exchanged. Of more than
 * four samples a block adds up the parts of some outputs only and hands the sums on to its column.
 *
 * Blocks never meet at a barrier. What they exchange travels in packets of 16 bytes: three floats
 * and the number of the step, written and read as one. Who needs a packet reads it until the number
 * is right. There are two sets, for even and odd steps. A packet is overwritten two steps later, by
 * a block that has had, in between, a packet from each block that reads it; so it has been read.
 *
 * Sums have a fixed order: lanes of a warp by halving, warps and blocks by number.
 *
 * Bound: each weight is read once up, read and written once down, from shared memory (128 bytes a
 * cycle) or L2; an exchange costs about 0.7 µs, and a step of L layers has 2·L - 2 of them. */
#include "backend/cuda/stack/stack_grid_step.h"

/* One block at work, for steps or for calls. */
template <int N> struct grid_block : grid_base<N> {
    static constexpr int SETS = GRID_SETS_AT_ONCE(N);
    typedef struct first_weights<SETS> weights;
    using base = grid_base<N>;
    using base::base, base::net, base::shared, base::tiles, base::rate, base::inputs, base::narrow;

    __device__ bool hear(uint32_t number, uint32_t call, uint64_t *ahead) const;
    __device__ uint32_t look() const;
    __device__ void await_all(uint32_t number, uint32_t heard) const;
    __device__ void begin(weights &held) const
    {
        ask_first(held);
    }
    /* the first weights of the first layer that is exchanged */
    __device__ void ask_first(weights &held) const
    {
        held.ask_up(tiles[net->layout.layer[0].whole], (int)threadIdx.x / 32);
    }
    template <typename Meanwhile>
    __device__ void forward(uint32_t number, weights &held, Meanwhile meanwhile) const;
    __device__ void backward(uint32_t number, weights &held) const;
    __device__ void end(const weights &) const
    {
        grid_end(net, shared, tiles);
    }
    __device__ void answer(uint32_t call) const;
};

/* The inputs of a call, in place of data: the first block waits for the question and passes it on,
 * in one of two sets of packets. Each block leaves the number of a call that it has taken, since
 * the answer does not show that all have: who has no part in later layers is not waited for. Who
 * passes questions on looks at these numbers (await_all). It has looked for the next question by
 * then, too: of several that are queued, `ahead` is this thread's note. False: nobody asks any
 * more. */
template <int N>
__device__ bool grid_block<N>::hear(uint32_t number, uint32_t call, uint64_t *ahead) const
{
    const int thread = (int)threadIdx.x, in = net->layer[0].in;
    const struct weight_tile<SETS> &tile = tiles[0];
    float *heard = &shared[net->layout.scratch]; /* [batch][in] */
    int *goes_on = (int *)&shared[net->layout.shares];
    uint4 *relay = net->relay + (number % 2 ? 1 + in * PACKETS<N> : 0);
    if (blockIdx.x == 0) {
        const bool here = thread < net->mail.inputs;
        const bool asked = __syncthreads_and(!here || note_number(*ahead) == call) ||
                           mail_wait(net->mail, call, ahead);
        if (here) {
            heard[thread] = __uint_as_float((uint32_t)*ahead);
            *ahead = note_look(net->mail.question(call + 1) + thread);
        }
        __syncthreads();
#pragma unroll 1
        for (int item = thread; item < in * PACKETS<N>; item += GRID_THREADS) {
            const int n0 = item % PACKETS<N> * 3;
            float x[3];
#pragma unroll
            for (int k = 0; k < 3; k++)
                x[k] = asked && n0 + k < net->step.batch ? heard[(n0 + k) * in + item / PACKETS<N>]
                                                         : 0.0f;
            packet_put(&relay[1 + item], x[0], x[1], x[2], number);
        }
        if (thread == 0)
            packet_put(relay, asked ? 1.0f : 0.0f, 0.0f, 0.0f, number);
    }
    if (thread == GRID_THREADS - 1) {
        const float3 word = packet_wait(relay, number);
        *goes_on = word.x + word.y + word.z > 0.0f;
    }
#pragma unroll 1
    for (int item = thread; item < 4 * tile.quads * PACKETS<N>; item += GRID_THREADS) {
        const int i = item / PACKETS<N>, p = item % PACKETS<N>;
        if (i >= tile.inputs)
            continue;
        const float3 three = packet_wait(&relay[1 + (4 * tile.quad0 + i) * PACKETS<N> + p], number);
        const float x[3] = {three.x, three.y, three.z};
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (3 * p + k < N)
                inputs(0, number)[input_place<N>(i, 3 * p + k)] = x[k];
    }
    __syncthreads();
    if (thread == 0)
        number_put(&net->heard[blockIdx.x], number);
    return *goes_on;
}

/* The number that this thread's block has left, for the first block; a look takes a while. */
template <int N> __device__ uint32_t grid_block<N>::look() const
{
    return blockIdx.x == 0 && threadIdx.x < gridDim.x ? number_look(&net->heard[threadIdx.x]) : 0;
}

/* The first block waits until all have taken the call `number`; `heard` is what a look has found.
 */
template <int N> __device__ void grid_block<N>::await_all(uint32_t number, uint32_t heard) const
{
    while (blockIdx.x == 0 && threadIdx.x < gridDim.x && (int32_t)(heard - number) < 0)
        heard = look();
}

/* Begins with the step's inputs in place, its first layer done and its first weights asked for;
 * ends with its outputs in y. `meanwhile` is done while the first parts are on their way. */
template <int N>
template <typename Meanwhile>
__device__ void grid_block<N>::forward(uint32_t number, weights &held, Meanwhile meanwhile) const
{
    const int last = net->step.layers - 1, warp = (int)threadIdx.x / 32;
    const int alone = net->layout.layer[0].whole;
#pragma unroll 1
    for (int l = alone; l <= last; l++) {
        const auto &at = net->layout.layer[l];
        if (narrow(l))
            grid_up_narrow<N>(tiles[l], inputs(l, number), &shared[net->layout.scratch], number);
        else
            grid_up<N>(tiles[l], inputs(l, number), held, number);
        if (l == alone)
            meanwhile();
        if (l < last && !narrow(l + 1))
            held.ask_up(tiles[l + 1], warp);
        grid_take_up<N>(tiles[l], &shared[at.bias], net->layer[l].function, number,
                        &shared[l < last ? net->layout.layer[l + 1].x : net->layout.y],
                        l < last ? grid_quad_floats(N) : 4 * N);
        __syncthreads();
    }
}

/* From delta of the last layer down to the first. */
template <int N> __device__ void grid_block<N>::backward(uint32_t number, weights &held) const
{
    float *delta = &shared[net->layout.delta], *parts = &shared[net->layout.scratch];
    const int last = net->step.layers - 1, alone = net->layout.layer[0].whole;
#pragma unroll 1
    for (int l = last; l >= alone; l--) {
        const struct weight_tile<SETS> &tile = tiles[l];
        const float *x = inputs(l, number);
        if (narrow(l)) {
            grid_bias<N>(tile, delta, rate, &shared[net->layout.layer[l].bias]);
            grid_down_narrow<N>(tile, x, delta, rate, net->layer[l - 1].function);
            __syncthreads();
            continue;
        }
        grid_down<N>(tile, x, delta, rate, l > 0, parts);
        grid_bias<N>(tile, delta, rate, &shared[net->layout.layer[l].bias]);
        __syncthreads();
        if (l == 0)
            break;
        grid_send_down<N>(tile, parts, number);
        grid_take_down<N>(tile, parts, x, net->layer[l - 1].function, number, delta);
        __syncthreads();
    }
    ask_first(held);
}

/* The first block answers the call. */
template <int N> __device__ void grid_block<N>::answer(uint32_t call) const
{
    const int out = net->layer[net->step.layers - 1].out;
    if (blockIdx.x > 0)
        return;
#pragma unroll 1
    for (int e = (int)threadIdx.x; e < net->mail.outputs; e += GRID_THREADS)
        note_put(net->mail.answer(call) + e, shared[net->layout.y + e % out * N + e / out], call);
}

template <int N>
static __global__ void __launch_bounds__(GRID_THREADS, 1)
    stack_grid(const __grid_constant__ struct grid_net net, int64_t steps)
{
    grid_steps<grid_block<N>>(net, steps);
}

/* Stays and answers calls. */
template <int N>
static __global__ void __launch_bounds__(GRID_THREADS, 1)
    grid_listener(const __grid_constant__ struct grid_net net)
{
    extern __shared__ float4 shared_quads[];
    struct grid_block<N> block(&net, (float *)shared_quads);
    block.settle();
    __syncthreads();
    uint64_t ahead = 0;
    typename grid_block<N>::weights held;
    block.ask_first(held);
    for (uint32_t done = 0; block.hear(net.first + done, net.call + done, &ahead); done++) {
        uint32_t heard = 0;
        block.first_layer(net.first + done, false);
        block.forward(net.first + done, held, [&] { heard = block.look(); });
        block.answer(net.call + done);
        block.ask_first(held);
        if (done > 0) /* the next call takes the last one's place */
            block.await_all(net.first + done - 1, heard);
        __syncthreads();
    }
}

template <int N> static void *kernel_for(bool listens)
{
    return listens ? (void *)grid_listener<N> : (void *)stack_grid<N>;
}

static void *grid_kernel(int32_t samples, bool listens)
{
    switch (samples) {
    case 3: return kernel_for<3>(listens);
    case 4: return kernel_for<4>(listens);
    case 6: return kernel_for<6>(listens);
    case 8: return kernel_for<8>(listens);
    case 10: return kernel_for<10>(listens);
    case GRID_BATCH_MOST: return kernel_for<GRID_BATCH_MOST>(listens);
    default: return (void *)stack_grid<GRID_TRAINED_MOST>; /* no calls are so large */
    }
}

static uint64_t bytes(const struct dense_stack *dense, int32_t batch,
                      const struct stack_limits *limits)
{
    struct grid_layout layout;
    (void)grid_lay_out(dense, batch, limits, &layout);
    return (uint64_t)layout.far_bytes + (uint64_t)layout.packets * sizeof(uint4);
}

static void prepare(struct stack *stack, const struct dense_stack *dense,
                    const struct stack_step *step, const struct stack_limits *limits)
{
    struct grid_net *net = (struct grid_net *)stack->net;
    static_assert(sizeof *net <= STACK_NET_BYTES, "a kernel's parameters");
    const struct grid_layout *layout = &net->layout;
    (void)grid_lay_out(dense, step->batch, limits, &net->layout);
    const int64_t packets = 4 * grid_packets(layout->samples);
    float *far = (float *)stack->memory;
    uint4 *exchange = (uint4 *)(stack->memory + layout->far_bytes);
    net->relay = exchange;
    exchange += 2 * grid_relay_packets(dense, layout->samples);
    net->heard = (uint32_t *)exchange;
    net->came = net->heard + layout->rows * layout->columns;
    exchange += grid_number_packets(layout->rows * layout->columns);
    net->step = *step;
    net->first = 1; /* no packet has come yet: all numbers are 0 */
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *layer = &dense->layer[l];
        const int64_t rows = grid_sharers(layout, l), columns = grid_across(layout, l);
        const int64_t copies = layout->layer[l].copied ? columns : 1;
        net->layer[l].in = layer->in;
        net->layer[l].out = layer->out;
        net->layer[l].function = layer->activation;
        net->layer[l].w = stack->layer[l].w;
        net->layer[l].b = stack->layer[l].b;
        net->layer[l].far = far;
        net->layer[l].up = exchange;
        exchange += 2 * packets * rows * quads_of(layer->out) * copies;
        net->layer[l].down = exchange;
        exchange += 2 * packets * columns * quads_of(layer->in);
        if (grid_hands_on(layout->samples)) {
            net->layer[l].y = exchange;
            exchange += 2 * packets * quads_of(layer->out);
            net->layer[l].d = exchange;
            exchange += 2 * packets * quads_of(layer->in);
        }
        far += layout->layer[l].far * layout->rows * layout->columns;
    }
}

static cudaError_t launch_grid(const struct grid_net *net, void *kernel, void **arguments,
                               cudaStream_t stream)
{
    const int32_t blocks = net->layout.rows * net->layout.columns;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)net->layout.shared_bytes);
    if (error == cudaSuccess)
        error = cudaLaunchCooperativeKernel(kernel, dim3((unsigned)blocks), dim3(GRID_THREADS),
                                            arguments, (size_t)net->layout.shared_bytes, stream);
    return error;
}

static cudaError_t launch(struct stack *stack, int64_t steps, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)stack->net;
    void *arguments[] = {net, &steps};
    const cudaError_t error =
        launch_grid(net, grid_kernel(net->layout.samples, false), arguments, stream);
    net->first += (uint32_t)steps;
    return error;
}

bool grid_can_listen(const struct dense_stack *dense, int32_t batch)
{
    return batch * dense->layer[0].in <= GRID_THREADS;
}

void grid_listen(struct stack *stack, const struct mailbox *mail)
{
    ((struct grid_net *)stack->net)->mail = *mail;
}

/* The last launch has had the calls up to this one, and one number more to say that it leaves. */
cudaError_t grid_launch_from(struct stack *stack, uint32_t call, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)stack->net;
    void *arguments[] = {net};
    net->first += call - net->call + 1;
    net->call = call;
    return launch_grid(net, grid_kernel(net->layout.samples, true), arguments, stream);
}

const struct stack_kernel steps_by_grid = {bytes, prepare, launch};
