/* stack_grid_step.h: what a block of the grid does in every step beside its layers: data, the first
 * layer, the loss, the results. */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_STEP_H
#define PRONY_BACKEND_CUDA_STACK_GRID_STEP_H

#include "backend/cuda/stack/stack_grid_backward.h"

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
static __device__ float2 grid_judge(const struct stack_step *step, int out, int n, float y,
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
            counts ? step->gradient * gradient * stack_derivative(function, y) : 0.0f;
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
    /* every GRID_THREADS-th element, from number e on */
    __device__ void take(float *shared, int e, const uint32_t *rows, uint32_t number) const
    {
#pragma unroll 1
        for (; e < all; e += GRID_THREADS)
            put(shared, e, read(rows, e), number);
    }
};

template <int N>
static __device__ struct data_intake<N> intake_of(const struct grid_net *net,
                                                  const struct tile_place &tile) {
    const struct stack_step &step = net->step;
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

/* One block at work. */
template <int N>
struct grid_base {
    static constexpr int SAMPLES = N;
    using Tile = struct weight_tile<GRID_SETS_AT_ONCE(N)>;
    const struct grid_net *net;
    float *shared;
    Tile *tiles; /* in shared memory */
    float rate;

    __device__ grid_base(const struct grid_net *net_, float *shared_)
        : net(net_), shared(shared_), tiles((Tile *)&shared_[net_->layout.tiles]), rate(0.0f)
    {
    }
    __device__ void settle() const;
    __device__ void first_layer(uint32_t number, bool learns) const;
    __device__ void first_learns(uint32_t number) const;
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
};

/* Works out the tiles, and fetches what is kept of them. */
template <int N> __device__ void grid_base<N>::settle() const
{
    const int thread = (int)threadIdx.x;
#pragma unroll 1
    for (int64_t k = thread; k < net->layout.shared_bytes / 4; k += GRID_THREADS)
        shared[k] = 0.0f;
    __syncthreads();
    if (thread < net->step.layers)
        tiles[thread].template settle<N>(net, shared, thread);
    __syncthreads();
    grid_begin(net, shared, tiles);
}

/* A first layer that every block has all inputs of: its way down in step `number` … */
template <int N> __device__ void grid_base<N>::first_learns(uint32_t number) const
{
    grid_down_alone<N>(tiles[0], inputs(0, number), &shared[net->layout.delta], rate,
                       &shared[net->layout.layer[0].bias]);
}

/* … and its way up, where there is one, after its way down in the step before, when it learns. */
template <int N> __device__ void grid_base<N>::first_layer(uint32_t number, bool learns) const
{
    if (!net->layout.layer[0].whole)
        return;
    if (learns)
        first_learns(number - 1);
    grid_up_alone<N>(tiles[0], inputs(0, number), &shared[net->layout.layer[0].bias],
                     net->layer[0].function, inputs(1, number));
    __syncthreads();
}

/* delta of the last layer; the last block reports the step. Warps take a sample each. */
template <int N> __device__ void grid_base<N>::judge(struct ring *loss, struct ring *right) const
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
    } else if (n < N && lane < 4 * round_up(quads_of(out), GRID_SETS_AT_ONCE(N))) {
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
template <int N> __device__ void grid_base<N>::store_outputs(const uint32_t *rows) const
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

/* The kernel: so many steps of a Block, which has `forward` and `backward` on top of grid_base. */
template <typename Block>
static __device__ void grid_steps(const struct grid_net &net, int64_t steps)
{
    constexpr int N = Block::SAMPLES;
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct stack_step &step = net.step;
    const int thread = (int)threadIdx.x;
    const bool has_sample = thread < step.batch;
    const uint64_t samples = step.feed->samples, jump = (uint64_t)step.batch % samples;
    const int32_t updates = step.count ? *step.count : 0;
    uint64_t place = (step.feed->place + (uint64_t)thread) % samples;
    Block block(&net, shared);
    __shared__ struct ring loss, right; /* seldom used: not in registers */
    __shared__ struct data_intake<N> intake;
    __shared__ bool is_last; /* of all blocks to read where the data go on: it may move that */
    static_assert(2 * sizeof loss + sizeof intake + 4 <= GRID_OWN_BYTES, "their room");
    uint32_t *rows = (uint32_t *)&shared[net.layout.taken]; /* of even and of odd steps */

    if (step.count)
        block.rate = stack_rate(&step, updates);
    block.settle();
    if (thread == 0) {
        loss = ring_of(step.loss);
        right = ring_of(step.right);
        intake = intake_of<N>(&net, block.tiles[0]);
    }
    if (has_sample) {
        rows[thread] = stack_row(step.feed, place);
        place = stack_move(place, jump, samples);
        rows[GRID_TRAINED_MOST + thread] = stack_row(step.feed, place);
    }
    __syncthreads();
    const uint32_t before = thread == 0 ? atomicAdd(net.came, 1u) : 0; /* the feed has been read */
    intake.take(shared, thread, rows, net.first);
    if (thread == 0)
        is_last = before == gridDim.x - 1;
    __syncthreads();
    typename Block::weights held;
    block.begin(held);
#pragma unroll 1
    for (int64_t done = 0; done < steps; done++) {
        const uint32_t number = net.first + (uint32_t)done;
        const uint32_t *next_rows = &rows[(done + 1) % 2 * GRID_TRAINED_MOST];
        uint32_t *now_rows = &rows[done % 2 * GRID_TRAINED_MOST];
        float ahead; /* an element of the next step that a thread fetches early */
        uint32_t row_after = 0;
        block.first_layer(number, step.count && done > 0);
        block.forward(number, held, [&] {
            place = stack_move(place, jump, samples);
            if (has_sample)
                row_after = intake.row(place);
            if (thread < intake.all)
                ahead = intake.read(next_rows, thread);
        });
        block.store_outputs(now_rows);
        if (step.loss_kind != OP_COUNT)
            block.judge(&loss, &right);
        else
            __syncthreads();
        if (thread < intake.all)
            intake.put(shared, thread, ahead, number + 1);
        intake.take(shared, thread + GRID_THREADS, next_rows, number + 1);
        if (has_sample)
            now_rows[thread] = row_after;
        if (step.count) {
            if (!stack_rate_is_fixed(&step))
                block.rate = stack_rate(&step, updates + (int32_t)done);
            block.backward(number, held);
        } else {
            block.ask_first(held);
            __syncthreads();
        }
    }
    if (step.count && net.layout.layer[0].whole) {
        block.first_learns(net.first + (uint32_t)steps - 1);
        __syncthreads();
    }
    if (step.count)
        block.end(held);
    if (thread == 0 && is_last) {
        *net.came = 0;
        stack_end(&step, steps);
    }
}

#endif
