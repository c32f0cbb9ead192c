/* whole_grid.cu: a stack of dense layers at a small batch, on all multiprocessors at once, for as
 * many steps as are asked for.
 *
 * Blocks form a grid of rows × columns. Each owns a tile of every layer's weights for the whole
 * launch: the inputs of its row, the outputs of its column; as much of it as fits in shared memory,
 * the rest in device memory that stays in L2. Going up, a block makes its part of the sums of its
 * outputs; those in its column exchange them, and each adds them all up. In the next layer rows and
 * columns change places, so these outputs are the block's own inputs. Going down it is the same the
 * other way: a block makes its part of the gradients of its inputs, those in its row exchange them.
 * The weights are updated in the same pass, with the gradient summed over the batch first. The last
 * layer is narrow: each block has all columns of its rows, and computes the loss as all others do.
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
#include "backend/cuda/whole_tile.h"

/* Four features of all samples, [4][N]. */
template <int N> static __device__ void load_quad(const float *x, int quad, float (&into)[4 * N])
{
    const float4 *from = (const float4 *)&x[quad * grid_quad_floats(N)];
#pragma unroll
    for (int k = 0; k < N; k++)
        *(float4 *)&into[4 * k] = from[k];
}

/* Where feature i of sample n lies among the inputs of a layer. */
template <int N> static __device__ int input_place(int i, int n)
{
    return i / 4 * grid_quad_floats(N) + i % 4 * N + n;
}

/* Rows of delta are whole quadruples. */
template <int N> constexpr int DELTA = (N + 3) / 4 * 4;
/* One level of a sum over lanes: of two halves, each lane keeps one and adds its partner's, whose
 * lane number differs in `bit`. */
template <int H, int V> static __device__ void lanes_halve(float (&values)[V], int bit)
{
    const bool upper = threadIdx.x & (unsigned)bit;
#pragma unroll
    for (int k = 0; k < H; k++) {
        const float other = __shfl_xor_sync(~0u, upper ? values[k] : values[k + H], bit);
        values[k] = (upper ? values[k + H] : values[k]) + other;
    }
}

/* And one where all have the same numbers to add. */
template <int H, int V> static __device__ void lanes_add(float (&values)[V], int bit)
{
#pragma unroll
    for (int k = 0; k < H; k++)
        values[k] += __shfl_xor_sync(~0u, values[k], bit);
}

/* The weights that a warp begins a layer with: they do not wait for x. Where a column has no more
 * inputs, lanes read what follows: x is 0 there. */
template <int SETS> struct first_weights {
    const float4 *from[SETS];
    float4 w[SETS];
    __device__ void load(const struct weight_tile<SETS> &tile, int pass)
    {
        const int lane = (int)threadIdx.x % 32;
        if (pass >= tile.passes)
            return;
#pragma unroll
        for (int s = 0; s < SETS; s++) {
            from[s] = tile.at(pass, s, lane / 8) + lane % 8;
            w[s] = *from[s];
        }
    }
};

/* The block's part of x·W, sent to its column. Eight lanes share the inputs, four the columns of a
 * set; a warp takes SETS sets. */
template <int N, int SETS>
static __device__ void grid_up(const struct weight_tile<SETS> &tile, const float *x,
                               struct first_weights<SETS> &first, uint32_t number)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, part = lane % 8;
    const int rounds = (tile.quads + 7) / 8;
    uint4 *up = tile.up + (number % 2 ? tile.up_odd : 0) + tile.row * tile.up_apart;
    for (int pass = warp; pass < tile.passes; pass += GRID_WARPS) {
        float sum[SETS * N] = {};
        if (pass != warp)
            first.load(tile, pass);
        for (int round = 0; round < rounds; round++) {
            float4 then[SETS];
            float in[4 * N];
#pragma unroll
            for (int s = 0; s < SETS; s++)
                then[s] = first.from[s][round + 1 < rounds ? 8 : 0];
            load_quad<N>(x, round * 8 + part, in);
#pragma unroll
            for (int s = 0; s < SETS; s++) {
#pragma unroll
                for (int n = 0; n < N; n++) {
                    float *to = &sum[s * N + n];
                    *to = fmaf(first.w[s].x, in[n], *to);
                    *to = fmaf(first.w[s].y, in[N + n], *to);
                    *to = fmaf(first.w[s].z, in[2 * N + n], *to);
                    *to = fmaf(first.w[s].w, in[3 * N + n], *to);
                }
                first.w[s] = then[s];
                first.from[s] += 8;
            }
        }
        int set = pass * SETS;
        if constexpr (SETS == 4) {
            lanes_halve<2 * N>(sum, 1);
            lanes_halve<N>(sum, 2);
            lanes_add<N>(sum, 4);
            set += part % 2 * 2 + part / 2 % 2;
        } else {
            lanes_halve<N>(sum, 1);
            lanes_add<N>(sum, 2);
            lanes_add<N>(sum, 4);
            set += part % 2;
        }
        const int sender = part / SETS, senders = 8 / SETS;
#pragma unroll
        for (int p = 0; p < PACKETS<N>; p++)
            if (p % senders == sender && set < tile.sets)
                packet_put(&up[(int64_t)(4 * set + lane / 8) * PACKETS<N> + p], sum[3 * p],
                           3 * p + 1 < N ? sum[3 * p + 1] : 0.0f,
                           3 * p + 2 < N ? sum[3 * p + 2] : 0.0f, number);
    }
}

/* Outputs f(Σ parts + b) of the block's columns, [quadruple][4][N], quadruples `apart` from each
 * other; 0 where there is no such output. */
template <int N, int SETS>
static __device__ void grid_take_up(const struct weight_tile<SETS> &tile, const float *bias,
                                    enum activation function, uint32_t number, float *to, int apart)
{
    const uint4 *up = tile.up + (number % 2 ? tile.up_odd : 0);
    for (int item = (int)threadIdx.x; item < 4 * tile.sets * PACKETS<N>; item += GRID_THREADS) {
        const int column = item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
        const float3 sum = packets_sum(up + item, tile.rows, tile.up_apart, number);
        const float y[3] = {sum.x, sum.y, sum.z};
        float *place = &to[column / 4 * apart + column % 4 * N + n0];
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                place[k] =
                    column < tile.outputs ? whole_activation(function, y[k] + bias[column]) : 0.0f;
    }
}

/* The way down through the tile: gradients of its inputs as far as its columns make them, to
 * parts[group of columns][quads][4][N], and new weights. Eight lanes are eight quadruples of
 * inputs, four lanes the columns of a set; warps share the quadruples, and where there are fewer of
 * these, the sets. */
struct parting {
    int lines, groups;
    __device__ explicit parting(int quads)
        : lines((quads + 7) / 8), groups(lines == 0 || lines > GRID_WARPS ? 1 : GRID_WARPS / lines)
    {
    }
};

template <int N, int SETS>
static __device__ void grid_down(const struct weight_tile<SETS> &tile, const float *x,
                                 const float *delta, float rate, bool wanted, float *parts)
{
    const struct parting parting(tile.quads);
    const int lane = (int)threadIdx.x % 32, across = lane / 8;
    const int each = (tile.passes + parting.groups - 1) / parting.groups;
    for (int item = (int)threadIdx.x / 32; item < parting.lines * parting.groups;
         item += GRID_WARPS) {
        const int group = item / parting.lines, quad = item % parting.lines * 8 + lane % 8;
        const int begin = group * each;
        const int end = begin + each < tile.passes ? begin + each : tile.passes;
        const bool inside = quad < tile.quads;
        const float *dy_at = &delta[(4 * SETS * begin + across) * DELTA<N>];
        float input[4 * N], dx[4 * N] = {};
        float4 *at[SETS], w[SETS];
        if (N <= 4)
            load_quad<N>(x, quad, input);
#pragma unroll
        for (int s = 0; s < SETS && begin < end; s++) {
            at[s] = tile.at(begin, s, across) + (inside ? quad : 0);
            w[s] = inside ? *at[s] : float4{};
        }
        for (int pass = begin; pass < end; pass++, dy_at += 4 * SETS * DELTA<N>) {
            float4 then[SETS];
            if (N > 4) /* no registers for them from pass to pass */
                load_quad<N>(x, quad, input);
#pragma unroll
            for (int s = 0; s < SETS; s++)
                then[s] = inside ? at[s][pass + 1 < end ? tile.stride(s) : 0] : float4{};
#pragma unroll
            for (int s = 0; s < SETS; s++) {
                float dy[DELTA<N>], g[4] = {};
#pragma unroll
                for (int n = 0; n < N; n += 4)
                    *(float4 *)&dy[n] = *(const float4 *)&dy_at[4 * s * DELTA<N> + n];
#pragma unroll
                for (int n = 0; n < N; n++) {
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        g[k] = fmaf(input[k * N + n], dy[n], g[k]);
                    dx[n] = fmaf(w[s].x, dy[n], dx[n]);
                    dx[N + n] = fmaf(w[s].y, dy[n], dx[N + n]);
                    dx[2 * N + n] = fmaf(w[s].z, dy[n], dx[2 * N + n]);
                    dx[3 * N + n] = fmaf(w[s].w, dy[n], dx[3 * N + n]);
                }
                w[s].x = fmaf(-rate, g[0], w[s].x);
                w[s].y = fmaf(-rate, g[1], w[s].y);
                w[s].z = fmaf(-rate, g[2], w[s].z);
                w[s].w = fmaf(-rate, g[3], w[s].w);
                if (inside)
                    *at[s] = w[s];
                w[s] = then[s];
                at[s] += tile.stride(s);
            }
        }
        if (!wanted)
            continue;
        lanes_halve<2 * N>(dx, 8);
        lanes_halve<N>(dx, 16);
        const int k = across % 2 * 2 + across / 2;
#pragma unroll
        for (int n = 0; n < N; n++)
            if (inside)
                parts[((group * tile.quads + quad) * 4 + k) * N + n] = dx[n];
    }
}

template <int N, int SETS>
static __device__ void grid_bias(const struct weight_tile<SETS> &tile, const float *delta,
                                 float rate, float *bias)
{
    for (int c = (int)threadIdx.x; c < 4 * tile.sets; c += GRID_THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < N; n++)
            sum += delta[c * DELTA<N> + n];
        bias[c] = update_sgd(bias[c], sum, rate);
    }
}

/* What the groups of warps made of one input's gradient, for up to three samples from n0 on. */
template <int N, int SETS>
static __device__ float3 parts_sum(const struct weight_tile<SETS> &tile, const float *parts, int i,
                                   int n0)
{
    const int groups = parting(tile.quads).groups;
    float sum[3] = {};
    for (int group = 0; group < groups; group++)
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                sum[k] += parts[(group * tile.quads * 4 + i) * N + n0 + k];
    return make_float3(sum[0], sum[1], sum[2]);
}

/* The gradients of the block's inputs through the activation that made them: delta of the layer
 * below. `x` is this layer's input. Of a copied layer nothing has to be exchanged. */
template <int N, int SETS>
static __device__ void grid_take_down(const struct weight_tile<SETS> &tile, const float *parts,
                                      const float *x, enum activation function, uint32_t number,
                                      float *delta)
{
    const int items = 4 * tile.quads * PACKETS<N>;
    const int all =
        4 * round_up(tile.quads, SETS) * PACKETS<N>; /* the layer below counts in passes */
    uint4 *down = tile.down ? tile.down + (number % 2 ? tile.down_odd : 0) : NULL;
    for (int item = (int)threadIdx.x; down && item < items; item += GRID_THREADS) {
        const float3 sum = parts_sum<N>(tile, parts, item / PACKETS<N>, item % PACKETS<N> * 3);
        packet_put(&down[tile.column * tile.down_apart + item], sum.x, sum.y, sum.z, number);
    }
    for (int item = (int)threadIdx.x; item < all; item += GRID_THREADS) {
        const int i = item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
        const float3 sum = item >= items ? make_float3(0.0f, 0.0f, 0.0f)
                           : down ? packets_sum(down + item, tile.columns, tile.down_apart, number)
                                  : parts_sum<N>(tile, parts, i, n0);
        const float dx[3] = {sum.x, sum.y, sum.z};
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                delta[i * DELTA<N> + n0 + k] =
                    i < tile.inputs && item < items
                        ? dx[k] * whole_slope(function, x[input_place<N>(i, n0 + k)])
                        : 0.0f;
    }
}

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
        loss = error * error / (float)(out * step->batch);
    } else if (step->loss_kind == OP_binary_cross_entropy) {
        gradient = sigmoid(y) - wanted;
        loss = (fmaxf(y, 0.0f) - y * wanted + log1pf(expf(-fabsf(y)))) / (float)(out * step->batch);
    } else {
        const float most = warp_max(counts ? y : -INFINITY);
        const float e = counts ? expf(y - most) : 0.0f, sum = warp_sum(e);
        gradient = e / sum - (lane == label ? 1.0f : 0.0f);
        loss = lane == label ? (logf(sum) - (y - most)) / (float)step->batch : 0.0f;
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
 * element. */
template <int N> struct data_intake {
    const struct whole_step *step;
    int in, first, slice, wide, inputs, all; /* features, elements */
    int x, target;                           /* where they go */
    /* 0 where the batch has no such sample, or the sample no such feature */
    __device__ float read(const uint32_t *rows, int e) const
    {
        const bool input = e < inputs;
        const int width = input ? slice : wide, k = input ? e : e - inputs, n = k / width;
        const int feature = k % width + (input ? first : 0);
        if (n >= step->batch || (input && feature >= in))
            return 0.0f;
        const uint32_t *data = input ? step->x->data : step->target->data;
        return __uint_as_float(
            __ldg(&data[(uint64_t)rows[n] * (unsigned)(input ? in : wide) + (unsigned)feature]));
    }
    __device__ void put(float *shared, int e, float value) const
    {
        if (e < inputs)
            shared[x + input_place<N>(e % slice, e / slice)] = value;
        else
            shared[target + e - inputs] = value;
    }
};

template <int N, int SETS>
static __device__ struct data_intake<N> intake_of(const struct grid_net *net,
                                                  const struct weight_tile<SETS> &tile) {
    const struct whole_step &step = net->step;
    struct data_intake<N> intake;
    intake.step = &step;
    intake.in = net->layer[0].in;
    intake.first = 4 * tile.quad0;
    intake.slice = 4 * tile.quads;
    intake.wide = !step.target                         ? 0
                  : step.loss_kind == OP_cross_entropy ? 1
                                                       : net->layer[step.layers - 1].out;
    intake.inputs = intake.slice * N;
    intake.all = intake.inputs + intake.wide * N;
    intake.x = net->layout.layer[0].x;
    intake.target = net->layout.target;
    return intake;
}

/* One block at work. */
template <int N>
struct grid_block {
    static constexpr int SETS = GRID_SETS_AT_ONCE(N);
    const struct grid_net *net;
    float *shared;
    struct weight_tile<SETS> *tiles; /* in shared memory */
    float rate;

    __device__ void forward(uint32_t number) const;
    __device__ void backward(uint32_t number) const;
    __device__ void judge(struct ring *loss, struct ring *right) const;
    __device__ void store_outputs(const uint32_t *rows) const;
};

/* Begins with the step's inputs in place; ends with its outputs in y. */
template <int N> __device__ void grid_block<N>::forward(uint32_t number) const
{
    const int last = net->step.layers - 1, warp = (int)threadIdx.x / 32;
    struct first_weights<SETS> first;
    first.load(tiles[0], warp);
    for (int l = 0; l <= last; l++) {
        const auto &at = net->layout.layer[l];
        grid_up<N>(tiles[l], &shared[at.x], first, number);
        if (l < last)
            first.load(tiles[l + 1], warp);
        grid_take_up<N>(tiles[l], &shared[at.bias], net->layer[l].function, number,
                        &shared[l < last ? net->layout.layer[l + 1].x : net->layout.y],
                        l < last ? grid_quad_floats(N) : 4 * N);
        __syncthreads();
    }
}

/* From delta of the last layer down to the first. */
template <int N> __device__ void grid_block<N>::backward(uint32_t number) const
{
    float *delta = &shared[net->layout.delta], *parts = &shared[net->layout.scratch];
    for (int l = net->step.layers - 1; l >= 0; l--) {
        const auto &at = net->layout.layer[l];
        grid_down<N>(tiles[l], &shared[at.x], delta, rate, l > 0, parts);
        grid_bias<N>(tiles[l], delta, rate, &shared[at.bias]);
        __syncthreads();
        if (l == 0)
            return;
        grid_take_down<N>(tiles[l], parts, &shared[at.x], net->layer[l - 1].function, number,
                          delta);
        __syncthreads();
    }
}

/* delta of the last layer; the last block reports the step. Warps take a sample each. */
template <int N> __device__ void grid_block<N>::judge(struct ring *loss, struct ring *right) const
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
    for (int k = 0; k < net->step.batch; k++) {
        sum.x += shares[k].x;
        sum.y += shares[k].y;
    }
    ring_put(loss, sum.x);
    ring_put(right, sum.y);
}

/* The first block hands the outputs out. */
template <int N> __device__ void grid_block<N>::store_outputs(const uint32_t *rows) const
{
    const struct feed_view *view = net->step.y;
    const int out = net->layer[net->step.layers - 1].out;
    if (!view || !view->data || blockIdx.x > 0)
        return;
    for (int e = (int)threadIdx.x; e < net->step.batch * out; e += GRID_THREADS) {
        const int n = e / out, o = e % out;
        view->data[(uint64_t)rows[n] * (unsigned)out + (unsigned)o] =
            __float_as_uint(shared[net->layout.y + o * N + n]);
        view->written[rows[n]] = 1;
    }
}

template <int N>
static __global__ void __launch_bounds__(GRID_THREADS, 1)
    whole_grid(const __grid_constant__ struct grid_net net, int64_t steps)
{
    constexpr int AHEAD =
        N <= 4 ? 2 : 1; /* elements of the next step that a thread fetches early */
    constexpr int SETS = GRID_SETS_AT_ONCE(N);
    extern __shared__ float4 shared_quads[];
    float *shared = (float *)shared_quads;
    const struct whole_step &step = net.step;
    const int thread = (int)threadIdx.x;
    const bool has_sample = thread < step.batch;
    const uint64_t samples = step.feed->samples, jump = (uint64_t)step.batch % samples;
    const int32_t updates = step.count ? *step.count : 0;
    uint64_t place = (step.feed->place + (uint64_t)thread) % samples;
    struct weight_tile<SETS> *tiles = (struct weight_tile<SETS> *)&shared[net.layout.tiles];
    struct grid_block<N> block;
    block.net = &net;
    block.shared = shared;
    block.tiles = tiles;
    block.rate = 0.0f;
    struct ring loss = ring_of(step.loss), right = ring_of(step.right);
    uint32_t *rows = (uint32_t *)&shared[net.layout.taken]; /* of even and of odd steps */

    if (step.count)
        block.rate = whole_rate(&step, updates);
    for (int64_t k = thread; k < net.layout.shared_bytes / 4; k += GRID_THREADS)
        shared[k] = 0.0f;
    __syncthreads();
    if (thread < step.layers)
        tiles[thread] = tile_of<N, SETS>(&net, shared, thread);
    __syncthreads();
    const struct data_intake<N> intake = intake_of<N>(&net, tiles[0]);
    grid_begin<SETS>(&net, shared, tiles);
    if (has_sample) {
        rows[thread] = whole_row(step.feed, place);
        place = whole_move(place, jump, samples);
        rows[GRID_BATCH_MOST + thread] = whole_row(step.feed, place);
    }
    __syncthreads();
    for (int e = thread; e < intake.all; e += GRID_THREADS)
        intake.put(shared, e, intake.read(rows, e));
    __syncthreads();
    for (int64_t done = 0; done < steps; done++) {
        const uint32_t number = net.first + (uint32_t)done;
        const uint32_t *next_rows = &rows[(done + 1) % 2 * GRID_BATCH_MOST];
        uint32_t *now_rows = &rows[done % 2 * GRID_BATCH_MOST];
        float ahead[AHEAD];
        place = whole_move(place, jump, samples);
        const uint32_t row_after = has_sample ? whole_row(step.feed, place) : 0;
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (thread + k * GRID_THREADS < intake.all)
                ahead[k] = intake.read(next_rows, thread + k * GRID_THREADS);

        block.forward(number);
        block.store_outputs(now_rows);
        if (step.loss_kind != OP_COUNT)
            block.judge(&loss, &right);
        if (step.count) {
            if (!whole_rate_is_fixed(&step))
                block.rate = whole_rate(&step, updates + (int32_t)done);
            block.backward(number);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (thread + k * GRID_THREADS < intake.all)
                intake.put(shared, thread + k * GRID_THREADS, ahead[k]);
        for (int e = thread + AHEAD * GRID_THREADS; e < intake.all; e += GRID_THREADS)
            intake.put(shared, e, intake.read(next_rows, e));
        if (has_sample)
            now_rows[thread] = row_after;
        __syncthreads();
    }
    if (step.count)
        grid_end<SETS>(&net, shared, tiles);
    /* What the others read of the feed at the start they have read: this block has had packets of
     * theirs, or there are no others. */
    if (blockIdx.x == 0 && thread == 0)
        whole_end(&step, steps);
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
    net->step = *step;
    net->layout = *layout;
    net->first = 1; /* no packet has come yet: all numbers are 0 */
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        const int64_t rows = l % 2 ? layout->columns : layout->rows;
        const int64_t columns = l % 2 ? layout->rows : layout->columns;
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
        far += layout->layer[l].far * rows * columns;
    }
}

cudaError_t grid_launch(struct whole *whole, int64_t steps, cudaStream_t stream)
{
    struct grid_net *net = (struct grid_net *)whole->net;
    void *arguments[] = {net, &steps};
    void *kernel = grid_kernel(net->layout.samples);
    const int32_t blocks = net->layout.rows * net->layout.columns;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)net->layout.shared_bytes);
    if (error == cudaSuccess)
        error = cudaLaunchCooperativeKernel(kernel, dim3((unsigned)blocks), dim3(GRID_THREADS),
                                            arguments, (size_t)net->layout.shared_bytes, stream);
    net->first += (uint32_t)steps;
    return error;
}
