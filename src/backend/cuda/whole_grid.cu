/* whole_grid.cu: a stack of dense layers at a small batch, on all multiprocessors at once, for as
 * many steps as are asked for.
 *
 * Blocks form a grid of rows × columns. Each owns a tile of every layer's weights for the whole
 * launch: the inputs of its row, the outputs of its column; as much of it as fits in shared memory,
 * the rest in device memory that stays in L2. Going up, a block makes its part of the sums of its
 * outputs; those in its column exchange them, and each adds them all up. In the next layer rows and
 * columns change places, so these outputs are the block's own inputs. Going down it is the same the
 * other way: a block makes its part of the gradients of its inputs, those in its row exchange them.
 * The weights are updated with the gradient summed over the batch first: of up to four samples
 * after the block's part has been sent, of more in the same pass. The last layer is narrow: each
 * block has all columns of its rows, and computes the loss as all others do.
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
#include "backend/cuda/whole_down.h"

#include <type_traits>

static __device__ float warp_sum(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value += __shfl_xor_sync(~0u, value, apart);
    return value;
}

static __device__ float warp_max(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, apart));
    return value;
}

/* The loss of sample n, a warp's work, a lane an output: delta of the last layer, and to lane 0 the
 * sample's share of the step's loss and of the right answers. y is [out][N]; targets are [N][out],
 * or labels. */
template <int N>
static __device__ float2 grid_judge(const struct whole_step *step, int out, int n, float y,
                                    const float *target, enum activation function, float *delta)
{
    const int lane = (int)threadIdx.x % 32;
    const bool counts = lane < out, labels = step->loss_kind == OP_cross_entropy;
    const int label = labels ? __float_as_int(target[n]) : -1;
    const float wanted = !labels && counts ? target[n * out + lane] : 0.0f, error = y - wanted;
    float gradient = 0.0f, loss = 0.0f, right = 0.0f;
    if (step->loss_kind == OP_mse) {
        gradient = error;
        loss = error * error * step->share;
    } else if (step->loss_kind == OP_binary_cross_entropy) {
        gradient = sigmoid(y) - wanted;
        loss = (fmaxf(y, 0.0f) - y * wanted + log1pf(expf(-fabsf(y)))) * step->share;
    } else {
        const float most = warp_max(counts ? y : -INFINITY);
        const float e = counts ? expf(y - most) : 0.0f, sum = warp_sum(e);
        gradient = e / sum - (lane == label ? 1.0f : 0.0f);
        loss = lane == label ? (logf(sum) - (y - most)) * step->share : 0.0f;
    }
    if (step->right_kind == OP_right_level) {
        right = fabsf(error) < step->half ? 1.0f : 0.0f;
    } else if (step->right_kind == OP_right_class) {
        const float most = warp_max(counts ? y : -INFINITY);
        const unsigned best = __ballot_sync(~0u, counts && y == most);
        right = lane == label && __ffs((int)best) - 1 == label ? 1.0f : 0.0f;
    }
    if (lane < 4 * round_up(quads_of(out), GRID_SETS_AT_ONCE(N)))
        delta[lane * DELTA<N> + n] =
            counts ? step->gradient * gradient * whole_slope(function, y) : 0.0f;
    return make_float2(warp_sum(counts ? loss : 0.0f), warp_sum(counts ? right : 0.0f));
}

/* What one block reads of a step's data: its slice of the inputs, then all targets, each a numbered
 * element. Where the data lie is read once a launch: a step should wait for no address. */
template <int N> struct data_intake {
    const uint32_t *inputs_at, *targets_at, *order; /* order: or NULL */
    int batch;
    int in, first, slice, wide, inputs, all; /* features, elements */
    int x, x_apart, target;                  /* where they go: inputs of even and of odd steps */
    /* 0 where the batch has no such sample, or the sample no such feature */
    __device__ float read(const uint32_t *rows, int e) const
    {
        const bool input = e < inputs;
        const int width = input ? slice : wide, k = input ? e : e - inputs, n = k / width;
        const int feature = k % width + (input ? first : 0);
        if (n >= batch || (input && feature >= in))
            return 0.0f;
        const uint32_t *data = input ? inputs_at : targets_at;
        return __uint_as_float(
            __ldg(&data[(uint64_t)rows[n] * (unsigned)(input ? in : wide) + (unsigned)feature]));
    }
    __device__ uint32_t row(uint64_t sample) const
    {
        return order ? __ldg(&order[sample]) : (uint32_t)sample;
    }
    __device__ void put(float *shared, int e, float value, uint32_t number) const
    {
        if (e < inputs)
            shared[x + (number % 2 ? x_apart : 0) + input_place<N>(e % slice, e / slice)] = value;
        else
            shared[target + e - inputs] = value;
    }
};

template <int N, int SETS>
static __device__ struct data_intake<N> intake_of(const struct grid_net *net,
                                                  const struct weight_tile<SETS> &tile) {
    const struct whole_step &step = net->step;
    struct data_intake<N> intake;
    intake.inputs_at = step.x->data;
    intake.targets_at = step.target ? step.target->data : NULL;
    intake.order = step.feed->order;
    intake.batch = step.batch;
    intake.in = net->layer[0].in;
    intake.first = 4 * tile.quad0;
    intake.slice = 4 * tile.quads;
    intake.wide = !step.target                         ? 0
                  : step.loss_kind == OP_cross_entropy ? 1
                                                       : net->layer[step.layers - 1].out;
    intake.inputs = intake.slice * N;
    intake.all = intake.inputs + intake.wide * N;
    intake.x = net->layout.layer[0].x;
    intake.x_apart = net->layout.x_apart;
    intake.target = net->layout.target;
    return intake;
}

/* One block at work, for steps or for calls. */
template <int N, bool STEPS>
struct grid_block {
    static constexpr int SETS = GRID_SETS_AT_ONCE(N);
    static constexpr bool HOLDS = STEPS && N <= 4; /* what is in L2 is asked for far ahead */
    typedef typename std::conditional<HOLDS, held_weights<N>, first_weights<SETS>>::type weights;
    const struct grid_net *net;
    float *shared;
    struct weight_tile<SETS> *tiles; /* in shared memory */
    float rate;

    __device__ grid_block(const struct grid_net *net_, float *shared_)
        : net(net_), shared(shared_),
          tiles((struct weight_tile<SETS> *)&shared_[net_->layout.tiles]), rate(0.0f)
    {
    }
    __device__ void settle() const;
    __device__ bool hear(uint32_t number, uint32_t call, uint64_t *ahead) const;
    __device__ uint32_t look() const;
    __device__ void await_all(uint32_t number, uint32_t heard) const;
    __device__ void ask_first(weights &held) const;
    template <typename Meanwhile>
    __device__ void forward(uint32_t number, weights &held, bool trains, Meanwhile meanwhile) const;
    __device__ void backward(uint32_t number, weights &held) const;
    __device__ void first_layer(uint32_t number, bool learns) const;
    __device__ bool narrow(int l) const
    {
        return l > 0 && net->layout.layer[l].copied && tiles[l].sets == 1;
    }
    /* the inputs of a layer; those of the network lie in two places in turn */
    __device__ float *inputs(int l, uint32_t number) const
    {
        return &shared[net->layout.layer[l].x + (l == 0 && number % 2 ? net->layout.x_apart : 0)];
    }
    __device__ void judge(struct ring *loss, struct ring *right) const;
    __device__ void store_outputs(const uint32_t *rows) const;
    __device__ void answer(uint32_t call) const;
};

/* Works out the tiles, and fetches what is kept of them. */
template <int N, bool STEPS> __device__ void grid_block<N, STEPS>::settle() const
{
    const int thread = (int)threadIdx.x;
#pragma unroll 1
    for (int64_t k = thread; k < net->layout.shared_bytes / 4; k += GRID_THREADS)
        shared[k] = 0.0f;
    __syncthreads();
    if (thread < net->step.layers)
        tiles[thread] = tile_of<N, SETS>(net, shared, thread);
    __syncthreads();
    grid_begin<SETS>(net, shared, tiles);
}

/* The inputs of a call, in place of data: the first block waits for the question and passes it on,
 * in one of two sets of packets. Each block leaves the number of a call that it has taken, since
 * the answer does not show that all have: who has no part in later layers is not waited for. Who
 * passes questions on looks at these numbers (await_all). It has looked for the next question by
 * then, too: of several that are queued, `ahead` is this thread's note. False: nobody asks any
 * more. */
template <int N, bool STEPS>
__device__ bool grid_block<N, STEPS>::hear(uint32_t number, uint32_t call, uint64_t *ahead) const
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
template <int N, bool STEPS> __device__ uint32_t grid_block<N, STEPS>::look() const
{
    return blockIdx.x == 0 && threadIdx.x < gridDim.x ? number_look(&net->heard[threadIdx.x]) : 0;
}

/* The first block waits until all have taken the call `number`; `heard` is what a look has found.
 */
template <int N, bool STEPS>
__device__ void grid_block<N, STEPS>::await_all(uint32_t number, uint32_t heard) const
{
    while (blockIdx.x == 0 && threadIdx.x < gridDim.x && (int32_t)(heard - number) < 0)
        heard = look();
}

/* The first weights of the first layer that is exchanged. */
template <int N, bool STEPS> __device__ void grid_block<N, STEPS>::ask_first(weights &held) const
{
    held.ask_up(tiles[net->layout.layer[0].whole], (int)threadIdx.x / 32);
}

/* A first layer that every block has all inputs of, where there is one: its way up in step
 * `number`, after its way down in the step before, when it learns. */
template <int N, bool STEPS>
__device__ void grid_block<N, STEPS>::first_layer(uint32_t number, bool learns) const
{
    if (!net->layout.layer[0].whole)
        return;
    if (learns)
        grid_down_alone<N>(tiles[0], inputs(0, number - 1), &shared[net->layout.delta], rate,
                           &shared[net->layout.layer[0].bias]);
    grid_up_alone<N>(tiles[0], inputs(0, number), &shared[net->layout.layer[0].bias],
                     net->layer[0].function, inputs(1, number));
    __syncthreads();
}

/* Begins with the step's inputs in place, its first layer done and its first weights asked for;
 * ends with its outputs in y. `meanwhile` is done while the first parts are on their way. */
template <int N, bool STEPS>
template <typename Meanwhile>
__device__ void grid_block<N, STEPS>::forward(uint32_t number, weights &held, bool trains,
                                              Meanwhile meanwhile) const
{
    const int last = net->step.layers - 1, warp = (int)threadIdx.x / 32;
    const int alone = net->layout.layer[0].whole;
#pragma unroll 1
    for (int l = alone; l <= last; l++) {
        const auto &at = net->layout.layer[l];
        if (narrow(l)) {
            if constexpr (HOLDS)
                if (trains)
                    held.ask_down(tiles[l - 1], down_share(tiles[l - 1], warp));
            grid_up_narrow<N>(tiles[l], inputs(l, number), &shared[net->layout.scratch], number);
        } else {
            grid_up<N>(tiles[l], inputs(l, number), held, number);
        }
        if (l == alone)
            meanwhile();
        const bool asks = l < last && !narrow(l + 1);
        if (asks && !HOLDS)
            held.ask_up(tiles[l + 1], warp);
        grid_take_up<N>(tiles[l], &shared[at.bias], net->layer[l].function, number,
                        &shared[l < last ? net->layout.layer[l + 1].x : net->layout.y],
                        l < last ? grid_quad_floats(N) : 4 * N);
        if (asks && HOLDS) /* packets would wait behind so many */
            held.ask_up(tiles[l + 1], warp);
        __syncthreads();
    }
}

/* From delta of the last layer down to the first. When a layer begins, what its warps hold of its
 * weights has been asked for. */
template <int N, bool STEPS>
__device__ void grid_block<N, STEPS>::backward(uint32_t number, weights &held) const
{
    float *delta = &shared[net->layout.delta], *parts = &shared[net->layout.scratch];
    const int last = net->step.layers - 1, alone = net->layout.layer[0].whole;
    const int warp = (int)threadIdx.x / 32;
    if constexpr (HOLDS)
        if (!narrow(last))
            held.ask_down(tiles[last], down_share(tiles[last], warp));
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
        if constexpr (HOLDS) {
            struct down_share share(tile, warp);
            grid_down_first<N>(tile, share, held, x, delta, rate, parts);
            __syncthreads();
            if (l > 0)
                grid_send_down<N>(tile, parts, number);
            down_update<N>(tile, share, held, x, delta, rate);
        } else {
            grid_down<N>(tile, x, delta, rate, l > 0, parts);
        }
        grid_bias<N>(tile, delta, rate, &shared[net->layout.layer[l].bias]);
        __syncthreads();
        if (l == 0)
            break;
        if (!HOLDS)
            grid_send_down<N>(tile, parts, number);
        grid_take_down<N>(tile, parts, x, net->layer[l - 1].function, number, delta);
        if constexpr (HOLDS)
            if (l > alone)
                held.ask_down(tiles[l - 1], down_share(tiles[l - 1], warp));
        __syncthreads();
    }
    ask_first(held);
}

/* delta of the last layer; the last block reports the step. Warps take a sample each. */
template <int N, bool STEPS>
__device__ void grid_block<N, STEPS>::judge(struct ring *loss, struct ring *right) const
{
    const struct grid_layout &layout = net->layout;
    const int last = net->step.layers - 1, out = net->layer[last].out;
    const int lane = (int)threadIdx.x % 32, n = (int)threadIdx.x / 32;
    float2 *shares = (float2 *)&shared[layout.shares];
    static_assert(N <= GRID_WARPS, "a warp has one sample");
    if (n < net->step.batch) {
        const float y = lane < out ? shared[layout.y + lane * N + n] : 0.0f;
        const float2 share = grid_judge<N>(&net->step, out, n, y, &shared[layout.target],
                                           net->layer[last].function, &shared[layout.delta]);
        if (lane == 0)
            shares[n] = share;
    } else if (n < N && lane < 4 * round_up(quads_of(out), SETS)) {
        shared[layout.delta + lane * DELTA<N> + n] = 0.0f;
    }
    __syncthreads();
    if (blockIdx.x != gridDim.x - 1 || threadIdx.x != GRID_THREADS - 1)
        return;
    float2 sum = {};
#pragma unroll 1
    for (int k = 0; k < net->step.batch; k++) {
        sum.x += shares[k].x;
        sum.y += shares[k].y;
    }
    ring_put(loss, sum.x);
    ring_put(right, sum.y);
}

/* The first block hands the outputs out. */
template <int N, bool STEPS>
__device__ void grid_block<N, STEPS>::store_outputs(const uint32_t *rows) const
{
    const struct feed_view *view = net->step.y;
    const int out = net->layer[net->step.layers - 1].out;
    if (!view || !view->data || blockIdx.x > 0)
        return;
#pragma unroll 1
    for (int e = (int)threadIdx.x; e < net->step.batch * out; e += GRID_THREADS) {
        const int n = e / out, o = e % out;
        view->data[(uint64_t)rows[n] * (unsigned)out + (unsigned)o] =
            __float_as_uint(shared[net->layout.y + o * N + n]);
        view->written[rows[n]] = 1;
    }
}

/* … or answers the call. */
template <int N, bool STEPS> __device__ void grid_block<N, STEPS>::answer(uint32_t call) const
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
    whole_grid(const __grid_constant__ struct grid_net net, int64_t steps)
{
    constexpr int AHEAD = 1; /* elements of the next step that a thread fetches early */
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct whole_step &step = net.step;
    const int thread = (int)threadIdx.x;
    const bool has_sample = thread < step.batch;
    const uint64_t samples = step.feed->samples, jump = (uint64_t)step.batch % samples;
    const int32_t updates = step.count ? *step.count : 0;
    uint64_t place = (step.feed->place + (uint64_t)thread) % samples;
    struct grid_block<N, true> block(&net, shared);
    __shared__ struct ring loss, right; /* seldom used: not in registers */
    __shared__ struct data_intake<N> intake;
    __shared__ bool is_last; /* of all blocks to read where the data go on: it may move that */
    static_assert(2 * sizeof loss + sizeof intake + 4 <= GRID_OWN_BYTES, "their room");
    uint32_t *rows = (uint32_t *)&shared[net.layout.taken]; /* of even and of odd steps */

    if (step.count)
        block.rate = whole_rate(&step, updates);
    block.settle();
    if (thread == 0) {
        loss = ring_of(step.loss);
        right = ring_of(step.right);
        intake = intake_of<N>(&net, block.tiles[0]);
    }
    if (has_sample) {
        rows[thread] = whole_row(step.feed, place);
        place = whole_move(place, jump, samples);
        rows[GRID_BATCH_MOST + thread] = whole_row(step.feed, place);
    }
    __syncthreads();
    const uint32_t before = thread == 0 ? atomicAdd(net.came, 1u) : 0; /* the feed has been read */
#pragma unroll 1
    for (int e = thread; e < intake.all; e += GRID_THREADS)
        intake.put(shared, e, intake.read(rows, e), net.first);
    if (thread == 0)
        is_last = before == gridDim.x - 1;
    __syncthreads();
    typename grid_block<N, true>::weights held;
    block.ask_first(held);
#pragma unroll 1
    for (int64_t done = 0; done < steps; done++) {
        const uint32_t number = net.first + (uint32_t)done;
        const uint32_t *next_rows = &rows[(done + 1) % 2 * GRID_BATCH_MOST];
        uint32_t *now_rows = &rows[done % 2 * GRID_BATCH_MOST];
        float ahead[AHEAD];
        uint32_t row_after = 0;
        block.first_layer(number, step.count && done > 0);
        block.forward(number, held, step.count, [&] {
            place = whole_move(place, jump, samples);
            if (has_sample)
                row_after = intake.row(place);
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (thread + k * GRID_THREADS < intake.all)
                    ahead[k] = intake.read(next_rows, thread + k * GRID_THREADS);
        });
        block.store_outputs(now_rows);
        if (step.loss_kind != OP_COUNT)
            block.judge(&loss, &right);
        else
            __syncthreads();
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (thread + k * GRID_THREADS < intake.all)
                intake.put(shared, thread + k * GRID_THREADS, ahead[k], number + 1);
#pragma unroll 1
        for (int e = thread + AHEAD * GRID_THREADS; e < intake.all; e += GRID_THREADS)
            intake.put(shared, e, intake.read(next_rows, e), number + 1);
        if (has_sample)
            now_rows[thread] = row_after;
        if (step.count) {
            if (!whole_rate_is_fixed(&step))
                block.rate = whole_rate(&step, updates + (int32_t)done);
            block.backward(number, held);
        } else {
            block.ask_first(held);
            __syncthreads();
        }
    }
    if (step.count && net.layout.layer[0].whole) {
        grid_down_alone<N>(block.tiles[0], block.inputs(0, net.first + (uint32_t)steps - 1),
                           &shared[net.layout.delta], block.rate,
                           &shared[net.layout.layer[0].bias]);
        __syncthreads();
    }
    if (step.count)
        grid_end<GRID_SETS_AT_ONCE(N)>(&net, shared, block.tiles);
    if (thread == 0 && is_last) {
        *net.came = 0;
        whole_end(&step, steps);
    }
}

/* Stays and answers calls. */
template <int N>
static __global__ void __launch_bounds__(GRID_THREADS, 1)
    grid_listener(const __grid_constant__ struct grid_net net)
{
    extern __shared__ float4 shared_quads[];
    struct grid_block<N, false> block(&net, (float *)shared_quads);
    block.settle();
    __syncthreads();
    uint64_t ahead = 0;
    typename grid_block<N, false>::weights held;
    block.ask_first(held);
    for (uint32_t done = 0; block.hear(net.first + done, net.call + done, &ahead); done++) {
        uint32_t heard = 0;
        block.first_layer(net.first + done, false);
        block.forward(net.first + done, held, false, [&] { heard = block.look(); });
        block.answer(net.call + done);
        block.ask_first(held);
        if (done > 0) /* the next call takes the last one's place */
            block.await_all(net.first + done - 1, heard);
        __syncthreads();
    }
}

static void *grid_kernel(int32_t samples)
{
    switch (samples) {
    case 3: return (void *)whole_grid<3>;
    case 4: return (void *)whole_grid<4>;
    case 6: return (void *)whole_grid<6>;
    case 8: return (void *)whole_grid<8>;
    case 10: return (void *)whole_grid<10>;
    default: return (void *)whole_grid<GRID_BATCH_MOST>;
    }
}

static void *listener_kernel(int32_t samples)
{
    switch (samples) {
    case 3: return (void *)grid_listener<3>;
    case 4: return (void *)grid_listener<4>;
    case 6: return (void *)grid_listener<6>;
    case 8: return (void *)grid_listener<8>;
    case 10: return (void *)grid_listener<10>;
    default: return (void *)grid_listener<GRID_BATCH_MOST>;
    }
}

uint64_t grid_bytes(const struct grid_layout *layout)
{
    return (uint64_t)layout->far_bytes + (uint64_t)layout->packets * sizeof(uint4);
}

void grid_prepare(struct whole *whole, const struct chain *chain, const struct whole_step *step,
                  const struct grid_layout *layout)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    static_assert(sizeof *net <= WHOLE_NET_BYTES, "a kernel's parameters");
    const int64_t packets = 4 * grid_packets(layout->samples);
    float *far = (float *)whole->memory;
    uint4 *exchange = (uint4 *)(whole->memory + layout->far_bytes);
    net->relay = exchange;
    exchange += 2 * grid_relay_packets(chain, layout->samples);
    net->heard = (uint32_t *)exchange;
    net->came = net->heard + layout->rows * layout->columns;
    exchange += grid_number_packets(layout->rows * layout->columns);
    net->step = *step;
    net->layout = *layout;
    net->first = 1; /* no packet has come yet: all numbers are 0 */
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        const int64_t rows = grid_sharers(layout, l), columns = grid_across(layout, l);
        const int64_t copies = layout->layer[l].copied ? columns : 1;
        net->layer[l].in = layer->in;
        net->layer[l].out = layer->out;
        net->layer[l].function = layer->activation;
        net->layer[l].w = whole->weights[l];
        net->layer[l].b = whole->biases[l];
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

cudaError_t grid_launch(struct whole *whole, int64_t steps, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    void *arguments[] = {net, &steps};
    const cudaError_t error = launch_grid(net, grid_kernel(net->layout.samples), arguments, stream);
    net->first += (uint32_t)steps;
    return error;
}

bool grid_can_listen(const struct chain *chain, int32_t batch)
{
    return batch * chain->layer[0].in <= GRID_THREADS;
}

void grid_listen(struct whole *whole, const struct mailbox *mail)
{
    ((struct grid_net *)whole->net)->mail = *mail;
}

/* The last launch has had the calls up to this one, and one number more to say that it leaves. */
cudaError_t grid_launch_from(struct whole *whole, uint32_t call, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    void *arguments[] = {net};
    net->first += call - net->call + 1;
    net->call = call;
    return launch_grid(net, listener_kernel(net->layout.samples), arguments, stream);
}
