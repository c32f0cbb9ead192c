/* stack_grid_backward.h: the backward pass through a block's tile of one layer (stack_grid_tile.h),
 * and what the blocks exchange after it. */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_BACKWARD_H
#define PRONY_BACKEND_CUDA_STACK_GRID_BACKWARD_H

#include "backend/cuda/stack/stack_grid_forward.h"

/* A warp's part of a tile on the backward pass: some passes of eight quadruples of inputs. Eight
 * lanes are the quadruples, four lanes the columns of a set. */
struct down_share {
    int group, quad, begin, end;
    bool inside; /* the lane has a quadruple that there is */
    template <int SETS>
    __device__ down_share(const struct weight_tile<SETS> &tile, int item)
        : group(item < GRID_WARPS ? tile.group[item] : 0),
          quad((item - group * tile.lines) * 8 + (int)threadIdx.x % 8), begin(group * tile.each),
          end(item < tile.lines * tile.groups ? min(begin + tile.each, tile.passes) : begin),
          inside(quad < tile.quads)
    {
    }
};

/* What a warp has found of the gradients of its inputs, [4][N] in each lane, summed over the
 * columns of a set: to parts[group of passes][quads][4][N]. */
template <int N>
static __device__ void parts_put(const struct down_share &share, int quads, float (&dx)[4 * N],
                                 float *parts)
{
    const int across = (int)threadIdx.x % 32 / 8, k = across % 2 * 2 + across / 2;
    lanes_halve<2 * N>(dx, 8);
    lanes_halve<N>(dx, 16);
#pragma unroll
    for (int n = 0; n < N; n++)
        if (share.inside)
            parts[((share.group * quads + share.quad) * 4 + k) * N + n] = dx[n];
}

/* What one output's delta of some samples, from number `first` on, adds to the gradients of four
 * weights and of their inputs, [4][N]. */
template <int N>
static __device__ __forceinline__ void quad_down(const float4 &w, const float (&in)[4 * PART<N>],
                                                 const float *delta, int first, float (&g)[4],
                                                 float (&dx)[4 * N])
{
    float dy[DELTA<PART<N>>];
    delta_load<PART<N>>(delta + first, dy);
#pragma unroll
    for (int n = 0; n < PART<N>; n++) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            g[k] = fmaf(in[k * PART<N> + n], dy[n], g[k]);
        dx[first + n] = fmaf(w.x, dy[n], dx[first + n]);
        dx[N + first + n] = fmaf(w.y, dy[n], dx[N + first + n]);
        dx[2 * N + first + n] = fmaf(w.z, dy[n], dx[2 * N + first + n]);
        dx[3 * N + first + n] = fmaf(w.w, dy[n], dx[3 * N + first + n]);
    }
}

/* The backward pass through the tile: gradients of its inputs as far as its columns make them, to
 * parts, and new weights. */
template <int N, int SETS>
static __device__ void grid_down(const struct weight_tile<SETS> &tile, const float *x,
                                 const float *delta, float rate, bool wanted, float *parts)
{
    const int across = (int)threadIdx.x % 32 / 8;
#pragma unroll 1
    for (int item = (int)threadIdx.x / 32; item < tile.lines * tile.groups; item += GRID_WARPS) {
        const struct down_share share(tile, item);
        const int quad = share.quad, begin = share.begin, end = share.end;
        const bool inside = share.inside;
        const float *dy_at = &delta[(4 * SETS * begin + across) * DELTA<N>];
        float input[4 * PART<N>], dx[4 * N] = {};
        float4 *at[SETS], w[SETS];
#pragma unroll
        for (int s = 0; s < SETS && begin < end; s++) {
            at[s] = inside ? tile.at(begin, s, across) + quad : (float4 *)&tile;
            w[s] = *at[s];
        }
        for (int pass = begin; pass < end; pass++, dy_at += 4 * SETS * DELTA<N>) {
            float4 then[SETS];
            float g[SETS][4] = {};
            if constexpr (PART<N> == N)
                load_quad<N>(x, quad, input); /* no registers for them from pass to pass */
#pragma unroll
            for (int s = 0; s < SETS; s++)
                then[s] = at[s][inside && pass + 1 < end ? tile.stride[s] : 0];
#pragma unroll
            for (int n = 0; PART<N> < N && n < N; n += PART<N>) {
                load_part<N>(x, quad, n, input);
#pragma unroll
                for (int s = 0; s < SETS; s++)
                    quad_down<N>(w[s], input, &dy_at[4 * s * DELTA<N>], n, g[s], dx);
            }
#pragma unroll
            for (int s = 0; s < SETS; s++) {
                if (PART<N> == N)
                    quad_down<N>(w[s], input, &dy_at[4 * s * DELTA<N>], 0, g[s], dx);
                quad_sgd(w[s], g[s], rate);
                if (inside)
                    *at[s] = w[s];
                w[s] = then[s];
                at[s] += inside ? tile.stride[s] : 0;
            }
        }
        if (!wanted)
            continue;
        parts_put<N>(share, tile.quads, dx, parts);
    }
}

template <int N, typename Tile>
static __device__ void grid_bias(const Tile &tile, const float *delta, float rate, float *bias)
{
#pragma unroll 1
    for (int c = (int)threadIdx.x; c < 4 * tile.sets; c += GRID_THREADS) {
        float dy[DELTA<N>];
        delta_load<N>(&delta[c * DELTA<N>], dy);
        bias[c] = update_sgd(bias[c], samples_sum<N>(dy), rate);
    }
}

/* The backward pass through a last layer with at most four outputs, a thread an input: new weights,
 * and delta of the layer below, of which nothing has to be exchanged, in place of this layer's. */
template <int N, typename Tile>
static __device__ void grid_down_narrow(const Tile &tile, const float *x, float *delta, float rate,
                                        enum activation function)
{
    float dy[4][DELTA<N>];
#pragma unroll
    for (int c = 0; c < 4; c++)
        delta_load<N>(&delta[c * DELTA<N>], dy[c]);
    __syncthreads();
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < 4 * round_up(tile.quads, Tile::TOGETHER);
         i += GRID_THREADS) {
        const bool inside = i < tile.inputs && i < 4 * tile.quads;
        float in[N], dx[N] = {};
#pragma unroll
        for (int n = 0; n < N; n++)
            in[n] = inside ? x[input_place<N>(i, n)] : 0.0f;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            if (!inside || c >= tile.outputs)
                break;
            float *at = (float *)tile.column_at(c) + i, g = 0.0f;
#pragma unroll
            for (int n = 0; n < N; n++) {
                g = fmaf(in[n], dy[c][n], g);
                dx[n] = fmaf(*at, dy[c][n], dx[n]);
            }
            *at = fmaf(-rate, g, *at);
        }
#pragma unroll
        for (int n = 0; n < N; n++)
            delta[i * DELTA<N> + n] = inside ? dx[n] * stack_derivative(function, in[n]) : 0.0f;
    }
}

/* What the groups of warps made of one input's gradient, for up to three samples from n0 on. */
template <int N, typename Tile>
static __device__ float3 parts_sum(const Tile &tile, const float *parts, int i, int n0)
{
    float sum[3] = {};
#pragma unroll 1
    for (int group = 0; group < tile.groups; group++)
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (n0 + k < N)
                sum[k] += parts[(group * tile.quads * 4 + i) * N + n0 + k];
    return make_float3(sum[0], sum[1], sum[2]);
}

/* delta of the layer below, of one item: the gradients of the block's inputs through the activation
 * that made them. `x` is this layer's input. Of a copied layer nothing has been exchanged. */
template <int N, typename Tile>
static __device__ float3 down_sum(const Tile &tile, const uint4 *down, const float *parts,
                                  const float *x, enum activation function, uint32_t number,
                                  int item)
{
    const int i = item / PACKETS<N>, n0 = item % PACKETS<N> * 3;
    const float3 sum = down ? packets_sum(down + item, tile.columns, tile.down_apart, number)
                            : parts_sum<N>(tile, parts, i, n0);
    float dx[3] = {sum.x, sum.y, sum.z};
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (n0 + k < N)
            dx[k] = i < tile.inputs
                        ? dx[k] * stack_derivative(function, x[input_place<N>(i, n0 + k)])
                        : 0.0f;
    return make_float3(dx[0], dx[1], dx[2]);
}

/* The block's part of the gradients of its inputs, to its row. */
template <int N, typename Tile>
static __device__ void grid_send_down(const Tile &tile, const float *parts, uint32_t number)
{
    uint4 *down = tile.down_sent(number);
#pragma unroll 1
    for (int item = (int)threadIdx.x; tile.down && item < 4 * tile.quads * PACKETS<N>;
         item += GRID_THREADS) {
        const float3 sum = parts_sum<N>(tile, parts, item / PACKETS<N>, item % PACKETS<N> * 3);
        packet_put(&down[item], sum.x, sum.y, sum.z, number);
    }
}

/* … and what all of them make of it. */
template <int N, typename Tile>
static __device__ void grid_take_down(const Tile &tile, const float *parts, const float *x,
                                      enum activation function, uint32_t number, float *delta)
{
    const int items = 4 * tile.quads * PACKETS<N>, thread = (int)threadIdx.x;
    const int all = 4 * round_up(tile.quads, Tile::TOGETHER) *
                    PACKETS<N>; /* the layer below counts in passes */
    uint4 *down = tile.down ? tile.down_read(number) : NULL;
    uint4 *d = tile.d + (number % 2 ? tile.d_odd : 0);
    const bool hands_on = HANDS_ON<N> && tile.d;
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
