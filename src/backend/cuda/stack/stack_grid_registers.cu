/* stack_grid_registers.cu: the grid (stack_grid.cu) for training with few samples, where each
 * thread works on the same weights up and down, and so can keep some in registers.
 *
 * A warp has every eighth set of four columns of a block's tile. Eight lanes share a line of eight
 * quadruples of inputs, four lanes the columns of a set. One layer stays in registers; of the
 * others some sets of each warp are in shared memory, the rest in L2, from where they are asked for
 * before the layer begins. Backward, a block first makes its part of the
 * gradients of its inputs and sends it, then updates its weights while packets are on their way.
 *
 * A register that is spilled costs more than it seems: shared memory leaves L1 28 KB, from where
 * packets and weights drive it out to L2. */
#include "backend/cuda/stack/stack_grid_registers.h"
#include "backend/cuda/stack/stack_grid_registers_tile.h"

/* --- The forward pass. */

/* Adds up over the eight lanes of a line sums of S sets, [S][N], so that each lane has one set's,
 * at most; which, or S_NONE. */
enum { S_NONE = 8 };
template <int N, int S, int BIT = 1, int V> static __device__ int sets_sum(float (&sum)[V])
{
    const bool upper = threadIdx.x & BIT;
    if constexpr (BIT == 8) {
        return 0;
    } else if constexpr (S == 1) {
        lanes_add<N>(sum, BIT);
        const int set = sets_sum<N, 1, 2 * BIT>(sum);
        return upper ? S_NONE : set;
    } else {
        constexpr int HALF = (S + 1) / 2;
        lanes_halve<HALF * N>(sum, BIT);
        const int set = sets_sum<N, HALF, 2 * BIT>(sum);
        return set >= HALF || (upper && HALF + set >= S) ? S_NONE : set + (upper ? HALF : 0);
    }
}

/* Room for these sums. */
template <int N, int S> constexpr int SUMS = ((S + 1) / 2 * 2 * N);

/* Sums of `some` of S sets, from `first` on, sent to the block's column. */
template <int N, int S, int V>
static __device__ void own_send(const struct own_tile &tile, const struct own_share &share,
                                int first, int some, float (&sum)[V], uint32_t number)
{
    uint4 *up = tile.up_sent(number);
    const int set = sets_sum<N, S>(sum);
    if (set >= some)
        return;
#pragma unroll
    for (int p = 0; p < PACKETS<N>; p++)
        packet_put<N>(&up[share.column(first + set) * PACKETS<N> + p], sum, p, number);
}

/* The sets in shared memory, some at a time, and those that are held. */
template <int N>
static __device__ void own_up(const struct own_tile &tile, const struct own_weights &weights,
                              const float *x, uint32_t number)
{
    const struct own_share share(tile);
    const int stride = share.stride(tile);
#pragma unroll 1
    for (int first = 0; first < share.near; first += NEAR_SETS) {
        const float4 *at = share.near_at(tile, first);
        const int some = share.near - first;
        float sum[SUMS<N, NEAR_SETS>] = {};
#pragma unroll 1
        for (int line = 0; line < tile.lines; line++, at += 8) {
            float4 w[NEAR_SETS];
            float in[4 * N];
#pragma unroll
            for (int s = 0; s < NEAR_SETS; s++)
                w[s] = at[s < some ? s * stride : 0];
            load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
            for (int s = 0; s < NEAR_SETS; s++)
                quad_multiply<N>(w[s], in, &sum[s * N]);
        }
        own_send<N, NEAR_SETS>(tile, share, first, min(some, NEAR_SETS), sum, number);
    }
    if (share.near == share.all)
        return;
    float sum[SUMS<N, HELD_SETS>] = {};
#pragma unroll
    for (int line = 0; line < HELD_LINES; line++) {
        float in[4 * N];
        if (line >= tile.lines)
            break;
        load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
        for (int s = 0; s < HELD_SETS; s++)
            quad_multiply<N>(weights.held[line][s], in, &sum[s * N]);
    }
    own_send<N, HELD_SETS>(tile, share, share.near, share.all - share.near, sum, number);
}

template <int N>
static __device__ void own_up_kept(const struct own_tile &tile, const struct own_weights &weights,
                                   const float *x, uint32_t number)
{
    const struct own_share share(tile);
    const int lines = tile.lines;
    float sum[SUMS<N, KEPT_SETS>] = {};
#pragma unroll
    for (int line = 0; line < KEPT_LINES; line++) {
        float in[4 * N];
        if (line >= lines)
            break;
        load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
        for (int s = 0; s < KEPT_SETS; s++)
            quad_multiply<N>(weights.kept[line][s], in, &sum[s * N]);
    }
    own_send<N, KEPT_SETS>(tile, share, 0, min(share.all, (int)KEPT_SETS), sum, number);
}

/* A last layer with at most four outputs: a warp has an item, a lane the part of a block. */
template <int N>
static __device__ void own_take_narrow(const struct own_tile &tile, const float *bias,
                                       enum activation function, uint32_t number, float *y)
{
    const uint4 *up = tile.up_read(number);
    const int item = (int)threadIdx.x / 32, column = item / PACKETS<N>;
    static_assert(4 * PACKETS<N> <= OWN_WARPS, "a warp each");
    float sum[3] = {};
    if (item >= 4 * PACKETS<N> || column >= tile.outputs)
        return;
#pragma unroll 1
    for (int row = (int)threadIdx.x % 32; row < tile.rows; row += 32) {
        const float3 part = packet_wait(up + item + row * tile.up_apart, number);
        sum[0] += part.x;
        sum[1] += part.y;
        sum[2] += part.z;
    }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const float all = warp_sum(sum[k]);
        const int n = item % PACKETS<N> * 3 + k;
        if (n < N && threadIdx.x % 32 == 0)
            y[column * N + n] = stack_activation(function, all + bias[column]);
    }
}

/* --- The backward pass. */

/* delta of `some` of S sets, from `first` on; 0 where there is none. */
template <int N, int S>
static __device__ void own_delta(const struct own_share &share, const float *delta, int first,
                                 int some, float (&dy)[S][N])
{
#pragma unroll
    for (int s = 0; s < S; s++) {
        float padded[DELTA<N>] = {};
        if (s < some)
            delta_load<N>(&delta[share.column(first + s) * DELTA<N>], padded);
#pragma unroll
        for (int n = 0; n < N; n++)
            dy[s][n] = padded[n];
    }
}

template <int N>
static __device__ void own_gradient(const float4 &w, const float (&dy)[N], float (&dx)[4 * N])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        dx[n] = fmaf(w.x, dy[n], dx[n]);
        dx[N + n] = fmaf(w.y, dy[n], dx[N + n]);
        dx[2 * N + n] = fmaf(w.z, dy[n], dx[2 * N + n]);
        dx[3 * N + n] = fmaf(w.w, dy[n], dx[3 * N + n]);
    }
}

/* Adds the gradients of a line's inputs up over the columns of a set: each lane then has [N] of one
 * input. */
template <int N> static __device__ void own_across(float (&dx)[4 * N])
{
    lanes_halve<2 * N>(dx, 8);
    lanes_halve<N>(dx, 16);
}

/* These, of the quadruple number `quad` of `quads`, to parts[warp][quads][4][N]. */
template <int N>
static __device__ void own_leave(const struct own_share &share, int quad, int quads,
                                 const float *dx, bool adds, float *parts)
{
    const int k = share.across % 2 * 2 + share.across / 2;
    float *to = &parts[((share.warp * quads + quad) * 4 + k) * N];
    if (quad >= quads)
        return;
#pragma unroll
    for (int n = 0; n < N; n++)
        to[n] = adds ? to[n] + dx[n] : dx[n];
}

/* The gradients, as far as the block's columns make them: … */
template <int N>
static __device__ void own_down(const struct own_tile &tile, const struct own_share &share,
                                const struct own_weights &weights, const float *delta, float *parts)
{
    const int stride = share.stride(tile), lines = tile.lines, quads = tile.quads;
    int first = 0;
#pragma unroll 1
    do { /* also of none: parts have to be there */
        const float4 *at = share.near_at(tile, first);
        const int some = share.near - first;
        float dy[NEAR_SETS][N];
        own_delta<N, NEAR_SETS>(share, delta, first, some, dy);
#pragma unroll 1
        for (int line = 0; line < lines; line++, at += 8) {
            float4 w[NEAR_SETS];
            float dx[4 * N] = {};
            if (some > 0) { /* what lies behind need not be a number */
#pragma unroll
                for (int s = 0; s < NEAR_SETS; s++)
                    w[s] = at[s < some ? s * stride : 0];
#pragma unroll
                for (int s = 0; s < NEAR_SETS; s++)
                    own_gradient<N>(w[s], dy[s], dx);
                own_across<N>(dx);
            }
            own_leave<N>(share, 8 * line + share.part, quads, dx, first > 0, parts);
        }
        first += NEAR_SETS;
    } while (first < share.near);
    if (share.near == share.all)
        return;
    float dy[HELD_SETS][N];
    own_delta<N, HELD_SETS>(share, delta, share.near, share.all - share.near, dy);
#pragma unroll
    for (int line = 0; line < HELD_LINES; line++) {
        float dx[4 * N] = {};
        if (line >= lines)
            break;
#pragma unroll
        for (int s = 0; s < HELD_SETS; s++)
            own_gradient<N>(weights.held[line][s], dy[s], dx);
        own_across<N>(dx);
        own_leave<N>(share, 8 * line + share.part, quads, dx, true, parts);
    }
}

/* … and the new weights. */
template <int N>
static __device__ void own_learn(const struct own_tile &tile, const struct own_share &share,
                                 const struct own_weights &weights, const float *x,
                                 const float *delta, float rate)
{
    const int stride = share.stride(tile), inside = tile.quads - share.part;
    if (share.near < share.all) {
        float dy[HELD_SETS][N];
        own_delta<N, HELD_SETS>(share, delta, share.near, share.all - share.near, dy);
        float4 *at = share.at(tile, share.near);
#pragma unroll
        for (int line = 0; line < HELD_LINES; line++) {
            float in[4 * N];
            if (line >= tile.lines)
                break;
            load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
            for (int s = 0; s < HELD_SETS; s++) {
                float4 w = weights.held[line][s];
                quad_update<N>(w, in, dy[s], rate);
                if (share.near + s < share.all && 8 * line < inside)
                    at[s * stride + 8 * line] = w;
            }
        }
    }
#pragma unroll 1
    for (int first = 0; first < share.near; first += NEAR_SETS) {
        float4 *at = share.near_at(tile, first);
        const int some = share.near - first;
        float dy[NEAR_SETS][N];
        own_delta<N, NEAR_SETS>(share, delta, first, some, dy);
#pragma unroll 1
        for (int line = 0; 8 * line < inside; line++, at += 8) {
            float4 w[NEAR_SETS];
            float in[4 * N];
            load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
            for (int s = 0; s < NEAR_SETS; s++)
                w[s] = at[s < some ? s * stride : 0];
#pragma unroll
            for (int s = 0; s < NEAR_SETS; s++) {
                quad_update<N>(w[s], in, dy[s], rate);
                if (s < some)
                    at[s * stride] = w[s];
            }
        }
        __syncwarp();
    }
}

/* Of kept weights. Some lines are sent before the others are worked on: half of the room. */
template <int N>
static __device__ void own_down_kept(const struct own_tile &tile, const struct own_share &share,
                                     const struct own_weights &weights, const float *delta,
                                     float *parts, uint32_t number)
{
    uint4 *down = tile.down_sent(number);
    const int lines = tile.lines, items = 4 * tile.quads;
    float dy[KEPT_SETS][N];
    own_delta<N, KEPT_SETS>(share, delta, 0, share.all, dy);
#pragma unroll
    for (int begin = 0; begin < KEPT_LINES; begin += KEPT_SENT) {
#pragma unroll
        for (int line = begin; line < begin + KEPT_SENT && line < KEPT_LINES; line++) {
            float dx[4 * N] = {};
            if (line >= lines)
                break;
#pragma unroll
            for (int s = 0; s < KEPT_SETS; s++)
                own_gradient<N>(weights.kept[line][s], dy[s], dx);
            own_across<N>(dx);
            own_leave<N>(share, 8 * (line - begin) + share.part, 8 * KEPT_SENT, dx, false, parts);
        }
        __syncthreads();
        const int item = (int)threadIdx.x % (32 * KEPT_SENT * PACKETS<N>);
        static_assert(32 * KEPT_SENT * PACKETS<N> <= OWN_THREADS, "a thread each");
        const int i = 32 * begin + item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
        if ((int)threadIdx.x == item && i < items) {
            float sum[3] = {};
#pragma unroll
            for (int warp = 0; warp < OWN_WARPS; warp++)
#pragma unroll
                for (int k = 0; k < 3; k++)
                    if (n0 + k < N)
                        sum[k] += parts[((warp * 32 * KEPT_SENT) + item / PACKETS<N>)*N + n0 + k];
            packet_put(&down[i * PACKETS<N> + item % PACKETS<N>], sum[0], sum[1], sum[2], number);
        }
        if (begin + KEPT_SENT < KEPT_LINES)
            __syncthreads();
    }
}

template <int N>
static __device__ void own_learn_kept(const struct own_tile &tile, const struct own_share &share,
                                      struct own_weights &weights, const float *x,
                                      const float *delta, float rate)
{
    float dy[KEPT_SETS][N];
    own_delta<N, KEPT_SETS>(share, delta, 0, share.all, dy);
#pragma unroll
    for (int line = 0; line < KEPT_LINES; line++) {
        float in[4 * N];
        if (line >= tile.lines)
            break;
        load_quad<N>(x, 8 * line + share.part, in);
#pragma unroll
        for (int s = 0; s < KEPT_SETS; s++)
            quad_update<N>(weights.kept[line][s], in, dy[s], rate);
    }
}

/* One block at work. */
template <int N> struct own_block : grid_base<N, own_tile> {
    typedef struct own_weights weights;
    using base = grid_base<N, own_tile>;
    using base::base, base::net, base::shared, base::tiles, base::rate, base::inputs, base::narrow;

    /* visit(weight, its place in the parameters) for all that are kept; NULL: it has none */
    template <typename Visit> __device__ void each_kept(weights &own, Visit visit) const;
    __device__ void begin(weights &own) const;
    __device__ void ask_first(weights &own) const
    {
        own.ask(tiles[net->layout.layer[0].whole]);
    }
    template <typename Meanwhile>
    __device__ void forward(uint32_t number, weights &own, Meanwhile meanwhile) const;
    __device__ void backward(uint32_t number, weights &own) const;
    __device__ void end(weights &own) const;
};

template <int N>
template <typename Visit>
__device__ void own_block<N>::each_kept(weights &own, Visit visit) const
{
    const int l = net->layout.kept;
    if (l < 0)
        return;
    const struct own_tile &tile = tiles[l];
    const struct own_share share(tile);
    const int in = net->layer[l].in, out = net->layer[l].out;
#pragma unroll
    for (int line = 0; line < KEPT_LINES; line++)
#pragma unroll
        for (int s = 0; s < KEPT_SETS; s++) {
            const int quad = 8 * line + share.part, i = 4 * (tile.quad0 + quad);
            const int o = 4 * tile.set0 + share.column(s);
            const bool there = quad < tile.quads && s < share.all && o < out;
            float *at = net->layer[l].w + (int64_t)i * out + o;
            visit(own.kept[line][s].x, there && i < in ? at : NULL);
            visit(own.kept[line][s].y, there && i + 1 < in ? at + out : NULL);
            visit(own.kept[line][s].z, there && i + 2 < in ? at + 2 * out : NULL);
            visit(own.kept[line][s].w, there && i + 3 < in ? at + 3 * out : NULL);
        }
}

template <int N> __device__ void own_block<N>::begin(weights &own) const
{
#pragma unroll
    for (int line = 0; line < KEPT_LINES; line++)
#pragma unroll
        for (int s = 0; s < KEPT_SETS; s++)
            own.kept[line][s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int line = 0; line < HELD_LINES; line++)
#pragma unroll
        for (int s = 0; s < HELD_SETS; s++)
            own.held[line][s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    each_kept(own, [](float &w, const float *at) { w = at ? *at : 0.0f; });
    ask_first(own);
}

template <int N> __device__ void own_block<N>::end(weights &own) const
{
    grid_end(net, shared, tiles);
    each_kept(own, [](float &w, float *at) {
        if (at)
            *at = w;
    });
}

/* Begins with the step's inputs in place, its first layer done and its first weights asked for;
 * ends with its outputs in y. `meanwhile` is done while the first parts are on their way. */
template <int N>
template <typename Meanwhile>
__device__ void own_block<N>::forward(uint32_t number, weights &own, Meanwhile meanwhile) const
{
    const int last = net->step.layers - 1, alone = net->layout.layer[0].whole;
#pragma unroll 1
    for (int l = alone; l <= last; l++) {
        const struct own_tile &tile = tiles[l];
        const float *x = inputs(l, number), *bias = &shared[net->layout.layer[l].bias];
        if (narrow(l)) {
            grid_up_narrow<N>(tile, x, &shared[net->layout.scratch], number);
            own_take_narrow<N>(tile, bias, net->layer[l].function, number, &shared[net->layout.y]);
            __syncthreads();
            break;
        }
        if (tile.kept)
            own_up_kept<N>(tile, own, x, number);
        else
            own_up<N>(tile, own, x, number);
        if (l == alone)
            meanwhile();
        /* What the next layer needs, up or down. Packets wait behind so many, which is worth it
         * only after a kept layer. */
        const int next = l == last || narrow(l + 1) ? l : l + 1;
        if (tile.kept)
            own.ask(tiles[next]);
        grid_take_up<N>(tile, bias, net->layer[l].function, number,
                        &shared[l < last ? net->layout.layer[l + 1].x : net->layout.y],
                        l < last ? grid_quad_floats(N) : 4 * N);
        if (!tile.kept)
            own.ask(tiles[next]);
        __syncthreads();
    }
}

/* From delta of the last layer down to the first. When a layer begins, what its warps hold of its
 * weights has been asked for. */
template <int N> __device__ void own_block<N>::backward(uint32_t number, weights &own) const
{
    float *delta = &shared[net->layout.delta], *parts = &shared[net->layout.scratch];
    const int last = net->step.layers - 1, alone = net->layout.layer[0].whole;
#pragma unroll 1
    for (int l = last; l >= alone; l--) {
        const struct own_tile &tile = tiles[l];
        const float *x = inputs(l, number);
        if (narrow(l)) {
            grid_bias<N>(tile, delta, rate, &shared[net->layout.layer[l].bias]);
            grid_down_narrow<N>(tile, x, delta, rate, net->layer[l - 1].function);
            __syncthreads();
            continue;
        }
        const struct own_share share(tile);
        if (tile.kept)
            own_down_kept<N>(tile, share, own, delta, parts, number);
        else
            own_down<N>(tile, share, own, delta, parts);
        if (!tile.kept)
            __syncthreads();
        if (l > 0 && !tile.kept)
            grid_send_down<N>(tile, parts, number);
        if (tile.kept)
            own_learn_kept<N>(tile, share, own, x, delta, rate);
        else
            own_learn<N>(tile, share, own, x, delta, rate);
        grid_bias<N>(tile, delta, rate, &shared[net->layout.layer[l].bias]);
        __syncthreads();
        if (l == 0) {
            ask_first(own);
            break;
        }
        if (tile.kept)
            own.ask(tiles[max(l - 1, alone)]);
        grid_take_down<N>(tile, parts, x, net->layer[l - 1].function, number, delta);
        if (!tile.kept)
            own.ask(tiles[max(l - 1, alone)]); /* … or the next step's first */
        __syncthreads();
    }
}

template <int N>
static __global__ void __launch_bounds__(OWN_THREADS, 1)
    stack_grid_registers(const __grid_constant__ struct grid_net net, int64_t steps)
{
    grid_steps<own_block<N>>(net, steps);
}

void *grid_registers_kernel(int32_t samples)
{
    return samples == 3 ? (void *)stack_grid_registers<3> : (void *)stack_grid_registers<4>;
}
