/* whole_ways.h: the way up and the way down through a block's tile of one layer (whole_tile.h), and
 * what the blocks exchange between two layers. */
#ifndef PRONY_BACKEND_CUDA_WHOLE_WAYS_H
#define PRONY_BACKEND_CUDA_WHOLE_WAYS_H

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
#pragma unroll 1
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

/* All of a layer whose inputs every block has: outputs of the block's columns, and nothing to
 * exchange. */
template <int N, int SETS>
static __device__ void grid_up_alone(const struct weight_tile<SETS> &tile, const float *x,
                                     const float *bias, enum activation function, float *to)
{
#pragma unroll 1
    for (int column = (int)threadIdx.x; column < 4 * tile.sets; column += GRID_THREADS) {
        const float4 *w = tile.column_at(column);
        float sum[N] = {};
#pragma unroll 1
        for (int quad = 0; quad < tile.quads; quad++) {
            float in[4 * N];
            load_quad<N>(x, quad, in);
#pragma unroll
            for (int n = 0; n < N; n++) {
                sum[n] = fmaf(w[quad].x, in[n], sum[n]);
                sum[n] = fmaf(w[quad].y, in[N + n], sum[n]);
                sum[n] = fmaf(w[quad].z, in[2 * N + n], sum[n]);
                sum[n] = fmaf(w[quad].w, in[3 * N + n], sum[n]);
            }
        }
#pragma unroll
        for (int n = 0; n < N; n++)
            to[input_place<N>(column, n)] =
                column < tile.outputs ? whole_activation(function, sum[n] + bias[column]) : 0.0f;
    }
}

/* … and its way down: new weights, a thread a column. */
template <int N, int SETS>
static __device__ void grid_down_alone(const struct weight_tile<SETS> &tile, const float *x,
                                       const float *delta, float rate)
{
#pragma unroll 1
    for (int column = (int)threadIdx.x; column < 4 * tile.sets; column += GRID_THREADS) {
        float4 *w = tile.column_at(column);
        float dy[DELTA<N>];
#pragma unroll
        for (int n = 0; n < N; n += 4)
            *(float4 *)&dy[n] = *(const float4 *)&delta[column * DELTA<N> + n];
#pragma unroll 1
        for (int quad = 0; quad < tile.quads; quad++) {
            float in[4 * N], g[4] = {};
            load_quad<N>(x, quad, in);
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    g[k] = fmaf(in[k * N + n], dy[n], g[k]);
            w[quad].x = fmaf(-rate, g[0], w[quad].x);
            w[quad].y = fmaf(-rate, g[1], w[quad].y);
            w[quad].z = fmaf(-rate, g[2], w[quad].z);
            w[quad].w = fmaf(-rate, g[3], w[quad].w);
        }
    }
}

/* The block's part of a layer with at most four outputs, sent to its column: all warps share the
 * inputs, and `sums` [warp][4][N] is where they add up. */
template <int N, int SETS>
static __device__ void grid_up_narrow(const struct weight_tile<SETS> &tile, const float *x,
                                      float *sums, uint32_t number)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int lines = (tile.quads + 7) / 8, warps = lines < GRID_WARPS ? lines : GRID_WARPS;
    uint4 *up = tile.up + (number % 2 ? tile.up_odd : 0) + tile.row * tile.up_apart;
    float sum[N] = {};
#pragma unroll 1
    for (int line = warp; line < lines; line += GRID_WARPS) {
        const float4 w = tile.at(0, 0, lane / 8)[8 * line + lane % 8];
        float in[4 * N];
        load_quad<N>(x, 8 * line + lane % 8, in);
#pragma unroll
        for (int n = 0; n < N; n++) {
            sum[n] = fmaf(w.x, in[n], sum[n]);
            sum[n] = fmaf(w.y, in[N + n], sum[n]);
            sum[n] = fmaf(w.z, in[2 * N + n], sum[n]);
            sum[n] = fmaf(w.w, in[3 * N + n], sum[n]);
        }
    }
    lanes_add<N>(sum, 1);
    lanes_add<N>(sum, 2);
    lanes_add<N>(sum, 4);
    if (lane % 8 == 0 && warp < warps)
#pragma unroll
        for (int n = 0; n < N; n++)
            sums[(warp * 4 + lane / 8) * N + n] = sum[n];
    __syncthreads();
    const int item = (int)threadIdx.x, n0 = item % PACKETS<N> * 3;
    if (item >= 4 * PACKETS<N>)
        return;
    float three[3] = {};
#pragma unroll 1
    for (int k = 0; k < warps; k++)
#pragma unroll
        for (int j = 0; j < 3; j++)
            if (n0 + j < N)
                three[j] += sums[(k * 4 + item / PACKETS<N>)*N + n0 + j];
    packet_put(&up[item], three[0], three[1], three[2], number);
}

/* Packets are numbered: an item is three samples of a feature of the block's. Of many samples each
 * block adds up the parts of some items only, and hands them on to the others of its column or row:
 * one exchange more, and a sixth of the packets. */
template <int N> constexpr bool HANDS_ON = grid_hands_on(N);

/* f(Σ parts + b) of one item; 0 where there is no such output. */
template <int N, int SETS>
static __device__ float3 up_sum(const struct weight_tile<SETS> &tile, const uint4 *up,
                                const float *bias, enum activation function, uint32_t number,
                                int item)
{
    const int column = item / PACKETS<N>;
    const float3 sum = packets_sum(up + item, tile.rows, tile.up_apart, number);
    if (column >= tile.outputs)
        return make_float3(0.0f, 0.0f, 0.0f);
    return make_float3(whole_activation(function, sum.x + bias[column]),
                       whole_activation(function, sum.y + bias[column]),
                       whole_activation(function, sum.z + bias[column]));
}

/* Outputs of the block's columns, [quadruple][4][N], quadruples `apart` from each other. */
template <int N, int SETS>
static __device__ void grid_take_up(const struct weight_tile<SETS> &tile, const float *bias,
                                    enum activation function, uint32_t number, float *to, int apart)
{
    const uint4 *up = tile.up + (number % 2 ? tile.up_odd : 0);
    uint4 *y = tile.y + (number % 2 ? tile.y_odd : 0);
    const int items = 4 * tile.sets * PACKETS<N>, thread = (int)threadIdx.x;
    const bool hands_on = HANDS_ON<N> && tile.y;
    if (hands_on) {
        const int end = slice(items, tile.row + 1, tile.rows);
#pragma unroll 1
        for (int item = slice(items, tile.row, tile.rows) + thread; item < end;
             item += GRID_THREADS) {
            const float3 sum = up_sum<N>(tile, up, bias, function, number, item);
            packet_put(&y[item], sum.x, sum.y, sum.z, number);
        }
    }
#pragma unroll 1
    for (int item = thread; item < items; item += GRID_THREADS) {
        const int column = item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
        const float3 three = hands_on ? packet_wait(&y[item], number)
                                      : up_sum<N>(tile, up, bias, function, number, item);
        const float sum[3] = {three.x, three.y, three.z};
        float *place = &to[column / 4 * apart + column % 4 * N + n0];
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                place[k] = sum[k];
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
#pragma unroll 1
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
            at[s] = inside ? tile.at(begin, s, across) + quad : (float4 *)&tile;
            w[s] = *at[s];
        }
        for (int pass = begin; pass < end; pass++, dy_at += 4 * SETS * DELTA<N>) {
            float4 then[SETS];
            if (N > 4) /* no registers for them from pass to pass */
                load_quad<N>(x, quad, input);
#pragma unroll
            for (int s = 0; s < SETS; s++)
                then[s] = at[s][inside && pass + 1 < end ? tile.stride(s) : 0];
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
                if (inside && s < tile.real())
                    *at[s] = w[s];
                w[s] = then[s];
                at[s] += inside ? tile.stride(s) : 0;
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
#pragma unroll 1
    for (int c = (int)threadIdx.x; c < 4 * tile.sets; c += GRID_THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < N; n++)
            sum += delta[c * DELTA<N> + n];
        bias[c] = update_sgd(bias[c], sum, rate);
    }
}

/* The way down through a last layer with at most four outputs, a thread a quadruple of inputs: new
 * weights, and delta of the layer below, of which nothing has to be exchanged. `stash` [4][DELTA]
 * is where this layer's delta goes first. */
template <int N, int SETS>
static __device__ void grid_down_narrow(const struct weight_tile<SETS> &tile, const float *x,
                                        float *delta, float rate, enum activation function,
                                        float *stash)
{
    if (threadIdx.x < 4 * DELTA<N>)
        stash[threadIdx.x] = delta[threadIdx.x];
    __syncthreads();
#pragma unroll 1
    for (int quad = (int)threadIdx.x; quad < round_up(tile.quads, SETS); quad += GRID_THREADS) {
        float in[4 * N], dx[4 * N] = {};
        const bool inside = quad < tile.quads;
        if (inside)
            load_quad<N>(x, quad, in);
#pragma unroll 1
        for (int c = 0; inside && c < 4 && c < tile.outputs; c++) {
            float4 *at = tile.column_at(c) + quad, w = *at;
            float g[4] = {};
#pragma unroll
            for (int n = 0; n < N; n++) {
                const float dy = stash[c * DELTA<N> + n];
#pragma unroll
                for (int k = 0; k < 4; k++)
                    g[k] = fmaf(in[k * N + n], dy, g[k]);
                dx[n] = fmaf(w.x, dy, dx[n]);
                dx[N + n] = fmaf(w.y, dy, dx[N + n]);
                dx[2 * N + n] = fmaf(w.z, dy, dx[2 * N + n]);
                dx[3 * N + n] = fmaf(w.w, dy, dx[3 * N + n]);
            }
            *at = make_float4(fmaf(-rate, g[0], w.x), fmaf(-rate, g[1], w.y),
                              fmaf(-rate, g[2], w.z), fmaf(-rate, g[3], w.w));
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int n = 0; n < N; n++)
                delta[(4 * quad + k) * DELTA<N> + n] = dx[k * N + n];
    }
    __syncthreads();
#pragma unroll 1
    for (int e = (int)threadIdx.x; e < 4 * tile.quads * N; e += GRID_THREADS) {
        const int i = e / N, n = e % N;
        float *to = &delta[i * DELTA<N> + n];
        *to = i < tile.inputs ? *to * whole_slope(function, x[input_place<N>(i, n)]) : 0.0f;
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

/* delta of the layer below, of one item: the gradients of the block's inputs through the activation
 * that made them. `x` is this layer's input. Of a copied layer nothing has been exchanged. */
template <int N, int SETS>
static __device__ float3 down_sum(const struct weight_tile<SETS> &tile, const uint4 *down,
                                  const float *parts, const float *x, enum activation function,
                                  uint32_t number, int item)
{
    const int i = item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
    const float3 sum = down ? packets_sum(down + item, tile.columns, tile.down_apart, number)
                            : parts_sum<N>(tile, parts, i, n0);
    float dx[3] = {sum.x, sum.y, sum.z};
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (n0 + k < N)
            dx[k] = i < tile.inputs ? dx[k] * whole_slope(function, x[input_place<N>(i, n0 + k)])
                                    : 0.0f;
    return make_float3(dx[0], dx[1], dx[2]);
}

/* … of all. */
template <int N, int SETS>
static __device__ void grid_take_down(const struct weight_tile<SETS> &tile, const float *parts,
                                      const float *x, enum activation function, uint32_t number,
                                      float *delta)
{
    const int items = 4 * tile.quads * PACKETS<N>, thread = (int)threadIdx.x;
    const int all =
        4 * round_up(tile.quads, SETS) * PACKETS<N>; /* the layer below counts in passes */
    uint4 *down = tile.down ? tile.down + (number % 2 ? tile.down_odd : 0) : NULL;
    uint4 *d = tile.d + (number % 2 ? tile.d_odd : 0);
    const bool hands_on = HANDS_ON<N> && tile.d;
#pragma unroll 1
    for (int item = thread; down && item < items; item += GRID_THREADS) {
        const float3 sum = parts_sum<N>(tile, parts, item / PACKETS<N>, item % PACKETS<N> * 3);
        packet_put(&down[tile.column * tile.down_apart + item], sum.x, sum.y, sum.z, number);
    }
    if (hands_on) {
        const int end = slice(items, tile.column + 1, tile.columns);
#pragma unroll 1
        for (int item = slice(items, tile.column, tile.columns) + thread; item < end;
             item += GRID_THREADS) {
            const float3 sum = down_sum<N>(tile, down, parts, x, function, number, item);
            packet_put(&d[item], sum.x, sum.y, sum.z, number);
        }
    }
#pragma unroll 1
    for (int item = thread; item < all; item += GRID_THREADS) {
        const int n0 = item % PACKETS<N> * 3;
        const float3 sum = item >= items ? make_float3(0.0f, 0.0f, 0.0f)
                           : hands_on    ? packet_wait(&d[item], number)
                                      : down_sum<N>(tile, down, parts, x, function, number, item);
        const float dx[3] = {sum.x, sum.y, sum.z};
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                delta[item / PACKETS<N> * DELTA<N> + n0 + k] = dx[k];
    }
}

#endif
