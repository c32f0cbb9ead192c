/* stack_grid_registers_tile.h: a block's tile of a layer as stack_grid_registers.cu has it: its
 * place, a warp's share of it, and the weights that a thread keeps in registers. */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_REGISTERS_TILE_H
#define PRONY_BACKEND_CUDA_STACK_GRID_REGISTERS_TILE_H

#include "backend/cuda/stack/stack_grid_step.h"

enum { NEAR_SETS = 5 }; /* of a warp, at a time */

struct alignas(16) own_tile : tile_place {
    static constexpr int THREADS = OWN_THREADS, WARPS = OWN_WARPS, TOGETHER = 1;
    bool kept;          /* in registers */
    int near_sets;      /* the first ones are in shared memory */
    int near_at;        /* there, in quadruples: the compiler is to see that it is shared memory */
    float4 *near, *far; /* where set 0 would be */
    int lines;          /* of eight quadruples */
    int groups;         /* of warps that leave parts of gradients */

    __device__ float4 *column_at(int c) const
    {
        return (c / 4 < near_sets ? near : far) + c * quads;
    }
    __device__ int columns_there() const
    {
        return kept ? 0 : 4 * sets;
    }
    template <int N> __device__ void settle(const struct grid_net *net, float *shared, int l);
};

template <int N> __device__ void own_tile::settle(const struct grid_net *net, float *shared, int l)
{
    const struct grid_layout &layout = net->layout;
    static_assert(sizeof *this <= GRID_TILE_FLOATS * sizeof(float), "its room");
    place_tile<N>(net, l, *this);
    kept = l == layout.kept;
    near_sets = layout.layer[l].near < sets ? layout.layer[l].near : sets;
    near_at = layout.layer[l].weights / 4;
    near = (float4 *)shared + near_at;
    far = (float4 *)(net->layer[l].far + blockIdx.x * layout.layer[l].far) - near_sets * 4 * quads;
    lines = (quads + 7) / 8;
    groups = WARPS;
}

/* What a warp has of a tile, and the lane's place in it. */
struct own_share {
    int warp, part, across;
    int near, all; /* sets */
    __device__ explicit own_share(const struct own_tile &tile)
        : warp((int)threadIdx.x / 32), part((int)threadIdx.x % 8),
          across((int)threadIdx.x % 32 / 8),
          near((tile.near_sets - warp + OWN_WARPS - 1) / OWN_WARPS),
          all((tile.sets - warp + OWN_WARPS - 1) / OWN_WARPS)
    {
    }
    __device__ int column(int set) const
    {
        return 4 * (set * OWN_WARPS + warp) + across;
    }
    /* the lane's first quadruple of a set in shared memory */
    __device__ float4 *near_at(const struct own_tile &tile, int set) const
    {
        extern __shared__ float4 shared_quads[];
        return &shared_quads[tile.near_at + column(set) * tile.quads + part];
    }
    /* … of any */
    __device__ float4 *at(const struct own_tile &tile, int set) const
    {
        return tile.column_at(column(set)) + part;
    }
    static __device__ int stride(const struct own_tile &tile) /* from a set to the next */
    {
        return 4 * OWN_WARPS * tile.quads;
    }
};

/* Asks for four weights, if wanted, and goes on. Left to itself the compiler may load to another
 * register first, and wait there. */
static __device__ void weight_ask(float4 &w, const float4 *at, bool wanted)
{
    asm volatile("{ .reg .pred wanted;\n\tsetp.ne.s32 wanted, %5, 0;\n\t"
                 "@wanted ld.v4.f32 {%0, %1, %2, %3}, [%4]; }"
                 : "+f"(w.x), "+f"(w.y), "+f"(w.z), "+f"(w.w)
                 : "l"(at), "r"((int)wanted)
                 : "memory");
}

/* In registers: a layer's weights, and of another what has been asked for. */
struct own_weights {
    float4 kept[KEPT_LINES][KEPT_SETS];
    float4 held[HELD_LINES][HELD_SETS];

    /* Where a column has no more inputs, lanes read what follows: x is 0 there. */
    __device__ void ask(const struct own_tile &tile)
    {
        const struct own_share share(tile);
        if (tile.kept)
            return;
#pragma unroll
        for (int s = 0; s < HELD_SETS; s++) {
            const float4 *at = share.at(tile, share.near + s);
            const int lines = share.near + s < share.all ? tile.lines : 0;
#pragma unroll
            for (int r = 0; r < HELD_LINES; r++)
                weight_ask(held[r][s], &at[8 * r], r < lines);
        }
    }
};

#endif
