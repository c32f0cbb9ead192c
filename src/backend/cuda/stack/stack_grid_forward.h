/* stack_grid_forward.h: the forward pass through a block's tile of one layer (stack_grid_tile.h),
 * what the blocks exchange after it, and both ways through a layer of which nothing is exchanged.
 */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_FORWARD_H
#define PRONY_BACKEND_CUDA_STACK_GRID_FORWARD_H

#include "backend/cuda/stack/stack_grid_tile.h"

/* Four features of all samples, [4][N]. */
template <int N> static __device__ void load_quad(const float *x, int quad, float (&into)[4 * N])
{
    const float4 *from = (const float4 *)&x[quad * grid_quad_floats(N)];
#pragma unroll
    for (int k = 0; k < N; k++)
        *(float4 *)&into[4 * k] = from[k];
}

/* To the sums of all samples, [N], what four inputs add. */
template <int N>
static __device__ void quad_multiply(const float4 &w, const float (&in)[4 * N], float *sum)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        sum[n] = fmaf(w.x, in[n], sum[n]);
        sum[n] = fmaf(w.y, in[N + n], sum[n]);
        sum[n] = fmaf(w.z, in[2 * N + n], sum[n]);
        sum[n] = fmaf(w.w, in[3 * N + n], sum[n]);
    }
}

/* The update of four weights by their gradients … */
static __device__ void quad_sgd(float4 &w, const float (&g)[4], float rate)
{
    w.x = fmaf(-rate, g[0], w.x);
    w.y = fmaf(-rate, g[1], w.y);
    w.z = fmaf(-rate, g[2], w.z);
    w.w = fmaf(-rate, g[3], w.w);
}

/* … and by what these are made of. */
template <int N, int V>
static __device__ void quad_update(float4 &w, const float (&in)[4 * N], const float (&dy)[V],
                                   float rate)
{
    float g[4] = {};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            g[k] = fmaf(in[k * N + n], dy[n], g[k]);
    quad_sgd(w, g, rate);
}

/* Of many samples, which registers cannot hold at once, PART at a time; these are the parts. */
template <int N> constexpr int PART = N > 12 ? N / 2 : N;

/* Four features of the samples from number `first` on, [4][PART]. */
template <int N>
static __device__ void load_part(const float *x, int quad, int first, float (&into)[4 * PART<N>])
{
    const float *from = &x[quad * grid_quad_floats(N) + first];
    static_assert(PART<N> == N || (N % 4 == 0 && PART<N> % 4 == 0), "whole quadruples");
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int n = 0; n + 3 < PART<N>; n += 4)
            *(float4 *)&into[k * PART<N> + n] = *(const float4 *)&from[k * N + n];
}

/* Where feature i of sample n lies among the inputs of a layer. */
template <int N> static __device__ int input_place(int i, int n)
{
    return i / 4 * grid_quad_floats(N) + i % 4 * N + n;
}

/* Rows of delta are whole quadruples. */
template <int N> constexpr int DELTA = (N + 3) / 4 * 4;

template <int N> static __device__ void delta_load(const float *delta, float (&into)[DELTA<N>])
{
#pragma unroll
    for (int n = 0; n < N; n += 4)
        *(float4 *)&into[n] = *(const float4 *)&delta[n];
}

template <int N> static __device__ float samples_sum(const float (&delta)[DELTA<N>])
{
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < N; n++)
        sum += delta[n];
    return sum;
}

/* Packet number p of a feature's samples, [N]. */
template <int N>
static __device__ void packet_put(uint4 *to, const float *samples, int p, uint32_t number)
{
    packet_put(to, samples[3 * p], 3 * p + 1 < N ? samples[3 * p + 1] : 0.0f,
               3 * p + 2 < N ? samples[3 * p + 2] : 0.0f, number);
}

/* The weights that a warp begins a layer with: they do not wait for x. Where a column has no more
 * inputs, lanes read what follows: x is 0 there. */
template <int SETS> struct first_weights {
    const float4 *from[SETS];
    float4 w[SETS];
    __device__ void ask_up(const struct weight_tile<SETS> &tile, int pass)
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
    uint4 *up = tile.up_sent(number);
#pragma unroll 1
    for (int pass = warp; pass < tile.passes; pass += GRID_WARPS) {
        float sum[SETS * N] = {};
        if (pass != warp)
            first.ask_up(tile, pass);
        for (int round = 0; round < rounds; round++) {
            float4 then[SETS];
#pragma unroll
            for (int s = 0; s < SETS; s++)
                then[s] = first.from[s][round + 1 < rounds ? 8 : 0];
            if constexpr (PART<N> == N) {
                float in[4 * N];
                load_quad<N>(x, round * 8 + part, in);
#pragma unroll
                for (int s = 0; s < SETS; s++)
                    quad_multiply<N>(first.w[s], in, &sum[s * N]);
            } else {
#pragma unroll
                for (int n = 0; n < N; n += PART<N>) {
                    float in[4 * PART<N>];
                    load_part<N>(x, round * 8 + part, n, in);
#pragma unroll
                    for (int s = 0; s < SETS; s++)
                        quad_multiply<PART<N>>(first.w[s], in, &sum[s * N + n]);
                }
            }
#pragma unroll
            for (int s = 0; s < SETS; s++) {
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
                packet_put<N>(&up[(int64_t)(4 * set + lane / 8) * PACKETS<N> + p], sum, p, number);
    }
}

/* All of a layer whose inputs every block has: outputs of the block's columns, and nothing to
 * exchange. */
template <int N, typename Tile>
static __device__ void grid_up_alone(const Tile &tile, const float *x, const float *bias,
                                     enum activation function, float *to)
{
#pragma unroll 1
    for (int column = (int)threadIdx.x; column < 4 * tile.sets; column += GRID_THREADS) {
        const float4 *w = tile.column_at(column);
        float sum[N] = {};
#pragma unroll 1
        for (int quad = 0; quad < tile.quads; quad++) {
            float in[4 * N];
            load_quad<N>(x, quad, in);
            quad_multiply<N>(w[quad], in, sum);
        }
#pragma unroll
        for (int n = 0; n < N; n++)
            to[input_place<N>(column, n)] =
                column < tile.outputs ? stack_activation(function, sum[n] + bias[column]) : 0.0f;
    }
}

/* … and its way down: new weights, a thread a column. */
template <int N, typename Tile>
static __device__ void grid_down_alone(const Tile &tile, const float *x, const float *delta,
                                       float rate, float *bias)
{
#pragma unroll 1
    for (int column = (int)threadIdx.x; column < 4 * tile.sets; column += GRID_THREADS) {
        float4 *w = tile.column_at(column);
        float dy[DELTA<N>];
        delta_load<N>(&delta[column * DELTA<N>], dy);
        bias[column] = update_sgd(bias[column], samples_sum<N>(dy), rate);
#pragma unroll 1
        for (int quad = 0; quad < tile.quads; quad++) {
            float in[4 * N];
            load_quad<N>(x, quad, in);
            quad_update<N>(w[quad], in, dy, rate);
        }
    }
}

/* The block's part of a layer with at most four outputs, sent to its column: all warps share the
 * inputs, and `sums` [warp][4][N] is where they add up. */
template <int N, typename Tile>
static __device__ void grid_up_narrow(const Tile &tile, const float *x, float *sums,
                                      uint32_t number)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int lines = (tile.quads + 7) / 8;
    uint4 *up = tile.up_sent(number);
    float sum[N] = {};
#pragma unroll 1
    for (int line = warp; line < lines; line += GRID_WARPS) {
        const float4 w = tile.column_at(lane / 8)[8 * line + lane % 8];
        float in[4 * N];
        load_quad<N>(x, 8 * line + lane % 8, in);
        quad_multiply<N>(w, in, sum);
    }
    lanes_add<N>(sum, 1);
    lanes_add<N>(sum, 2);
    lanes_add<N>(sum, 4);
    if (lane % 8 == 0)
#pragma unroll
        for (int n = 0; n < N; n++)
            sums[(warp * 4 + lane / 8) * N + n] = sum[n];
    __syncthreads();
    const int item = (int)threadIdx.x, n0 = item % PACKETS<N> * 3;
    if (item >= 4 * PACKETS<N>)
        return;
    float three[3] = {};
#pragma unroll
    for (int k = 0; k < GRID_WARPS; k++)
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
template <int N, typename Tile>
static __device__ float3 up_sum(const Tile &tile, const uint4 *up, const float *bias,
                                enum activation function, uint32_t number, int item)
{
    const int column = item / PACKETS<N>;
    const float3 sum = packets_sum(up + item, tile.rows, tile.up_apart, number);
    if (column >= tile.outputs)
        return make_float3(0.0f, 0.0f, 0.0f);
    return make_float3(stack_activation(function, sum.x + bias[column]),
                       stack_activation(function, sum.y + bias[column]),
                       stack_activation(function, sum.z + bias[column]));
}

/* Outputs of the block's columns, [quadruple][4][N], quadruples `apart` from each other. */
template <int N, typename Tile>
static __device__ void grid_take_up(const Tile &tile, const float *bias, enum activation function,
                                    uint32_t number, float *to, int apart)
{
    const uint4 *up = tile.up_read(number);
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

#endif
