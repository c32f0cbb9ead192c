/* stack_grid_tile.h: what a block of stack_grid.cu owns and what it sends: its tile of each layer's
 * weights, from and to their place in the parameters. */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_TILE_H
#define PRONY_BACKEND_CUDA_STACK_GRID_TILE_H

#include "backend/cuda/device/mailbox.h"
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/device/packet.h"
#include "backend/cuda/stack/stack_run.h"

struct grid_net {
    struct stack_step step;
    struct grid_layout layout;
    uint32_t first;      /* the number of the launch's first step; never the same twice */
    struct mailbox mail; /* where calls come from, … */
    uint32_t call;       /* … from this one on */
    uint4 *relay;        /* [2][1 + inputs × packets]: whether it goes on, then a call's inputs */
    uint32_t *heard;     /* [block]: the last call that it has taken from there */
    uint32_t *came;      /* blocks of this launch that have read where the data go on */
    struct {
        int32_t in, out;
        enum activation function;
        float *w, *b; /* [in][out], [out] or NULL */
        float *far;   /* [block][layout.far] */
        uint4 *up;    /* [2][rows][outputs][packets]: parts of outputs */
        uint4 *down;  /* [2][columns][inputs][packets]: parts of the inputs' gradients */
        uint4 *y, *d; /* [2][outputs][packets], [2][inputs][packets]: their sums; or NULL */
    } layer[DENSE_STACK_MOST];
};

/* A block's part of one layer, worked out once: what it has of inputs and outputs, and where the
 * packets lie that it exchanges. */
struct tile_place {
    int row, column;          /* of the block, in this layer's grid … */
    int rows, columns;        /* … of so many */
    int quad0, quads;         /* inputs, in quadruples */
    int set0, sets;           /* outputs, likewise */
    int inputs, outputs;      /* of these quadruples, features that there are */
    uint4 *up, *down;         /* the block's first packet to read, of even steps … */
    int up_apart, down_apart; /* … from one sender's to the next one's … */
    int up_odd, down_odd;     /* … and from those of even to those of odd steps */
    uint4 *y, *d;             /* likewise of sums that are handed on, or NULL */
    int y_odd, d_odd;
    bool keeps_weights, keeps_biases; /* of several with the same, the one that stores them */

    /* packets of step `number`: those that the block reads, and those that it sends */
    __device__ uint4 *up_read(uint32_t number) const
    {
        return up + (number % 2 ? up_odd : 0);
    }
    __device__ uint4 *up_sent(uint32_t number) const
    {
        return up_read(number) + row * up_apart;
    }
    __device__ uint4 *down_read(uint32_t number) const
    {
        return down + (number % 2 ? down_odd : 0);
    }
    __device__ uint4 *down_sent(uint32_t number) const
    {
        return down_read(number) + column * down_apart;
    }
};

/* Where slice number `index` of `of` begins. */
static __device__ int slice(int quads, int index, int of)
{
    return (int)((int64_t)quads * index / of);
}

template <int N> constexpr int PACKETS = (N + 2) / 3;

template <int N>
static __device__ void place_tile(const struct grid_net *net, int l, struct tile_place &tile)
{
    const struct grid_layout &layout = net->layout;
    const int row = (int)blockIdx.x / layout.columns, column = (int)blockIdx.x % layout.columns;
    const bool transposed = l % 2, copied = layout.layer[l].copied;
    const int inputs = quads_of(net->layer[l].in), outputs = quads_of(net->layer[l].out);
    tile.rows = grid_sharers(&layout, l);
    tile.columns = grid_across(&layout, l);
    tile.row = (transposed ? column : row) % tile.rows;
    tile.column = transposed ? row : column;
    const bool first = (transposed ? column : row) == 0, foremost = !copied || tile.column == 0;
    tile.keeps_weights = foremost && (first || !layout.layer[l].whole);
    tile.keeps_biases = foremost && first;
    tile.quad0 = slice(inputs, tile.row, tile.rows);
    tile.quads = slice(inputs, tile.row + 1, tile.rows) - tile.quad0;
    tile.set0 = copied ? 0 : slice(outputs, tile.column, tile.columns);
    tile.sets = (copied ? outputs : slice(outputs, tile.column + 1, tile.columns)) - tile.set0;
    tile.inputs = net->layer[l].in - 4 * tile.quad0;
    tile.outputs = net->layer[l].out - 4 * tile.set0;
    tile.up_apart = 4 * outputs * PACKETS<N> * (copied ? tile.columns : 1);
    tile.up_odd = tile.up_apart * tile.rows;
    tile.up = net->layer[l].up + (copied ? 4 * outputs * tile.column : 4 * tile.set0) * PACKETS<N>;
    tile.down_apart = 4 * inputs * PACKETS<N>;
    tile.down_odd = tile.down_apart * tile.columns;
    tile.down = copied ? NULL : net->layer[l].down + 4 * tile.quad0 * PACKETS<N>;
    const bool hands_on = net->layer[l].y && !copied;
    tile.y = hands_on ? net->layer[l].y + 4 * tile.set0 * PACKETS<N> : NULL;
    tile.d = hands_on ? net->layer[l].d + 4 * tile.quad0 * PACKETS<N> : NULL;
    tile.y_odd = 4 * outputs * PACKETS<N>;
    tile.d_odd = 4 * inputs * PACKETS<N>;
}

/* … with its weights: [set][4 columns][quads] of four inputs each; a set is four columns, and warps
 * take SETS of them in a pass. What a pass has beyond the last set is zeros, which stay zeros. */
template <int SETS> struct alignas(16) weight_tile : tile_place {
    static constexpr int TOGETHER = SETS;
    int passes;
    int near;          /* sets of each pass that are in shared memory */
    float4 *set[SETS]; /* where each set of the first pass lies … */
    int stride[SETS];  /* … and how far it is to the same place in the next pass */
    /* On the backward pass warps share the inputs, eight quadruples each, and where these are few
     * also the passes: so many lines of inputs × groups of passes; and which group a warp is in. */
    int lines, groups, each;
    uint8_t group[GRID_WARPS];

    /* column `lane` of set `s` of a pass */
    __device__ float4 *at(int pass, int s, int lane) const
    {
        return set[s] + pass * stride[s] + lane * quads;
    }
    __device__ float4 *column_at(int c) const
    {
        return at(c / 4 / SETS, c / 4 % SETS, c % 4);
    }
    __device__ int columns_there() const /* with those that fill a pass */
    {
        return 4 * SETS * passes;
    }
    template <int N> __device__ void settle(const struct grid_net *net, float *shared, int l);
};

template <int SETS>
template <int N>
__device__ void weight_tile<SETS>::settle(const struct grid_net *net, float *shared, int l)
{
    const struct grid_layout &layout = net->layout;
    static_assert(sizeof *this <= GRID_TILE_FLOATS * sizeof(float), "its room");
    place_tile<N>(net, l, *this);
    passes = (sets + SETS - 1) / SETS;
    near = layout.layer[l].near;
    float4 *close = (float4 *)&shared[layout.layer[l].weights];
    float4 *far = (float4 *)(net->layer[l].far + blockIdx.x * layout.layer[l].far);
    for (int s = 0; s < SETS; s++) {
        set[s] = s < near ? close + s * 4 * quads : far + (s - near) * 4 * quads;
        stride[s] = 4 * quads * (s < near ? near : SETS - near);
    }
    lines = (quads + 7) / 8;
    groups = lines == 0 || lines > GRID_WARPS ? 1 : GRID_WARPS / lines;
    each = (passes + groups - 1) / groups;
#pragma unroll 1
    for (int warp = 0; warp < GRID_WARPS; warp++)
        group[warp] = (uint8_t)(lines == 0 || lines > GRID_WARPS ? 0 : warp / lines);
}

/* Weights from [in][out] to where they are worked on, zeros beyond. */
template <typename Tile>
static __device__ void grid_begin(const struct grid_net *net, float *shared, const Tile *tiles)
{
#pragma unroll 1
    for (int l = 0; l < net->step.layers; l++) {
        const Tile &tile = tiles[l];
        const int in = net->layer[l].in, out = net->layer[l].out;
        const int across = tile.columns_there();
#pragma unroll 1
        for (int e = (int)threadIdx.x; e < across * tile.quads; e += GRID_THREADS) {
            const int column = e % across, quad = e / across;
            const int o = 4 * tile.set0 + column, i = 4 * (tile.quad0 + quad);
            const bool there = column < 4 * tile.sets && o < out;
            float q[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                q[k] = i + k < in && there ? net->layer[l].w[(int64_t)(i + k) * out + o] : 0.0f;
            tile.column_at(column)[quad] = make_float4(q[0], q[1], q[2], q[3]);
        }
#pragma unroll 1
        for (int c = (int)threadIdx.x; c < 4 * tile.sets; c += GRID_THREADS)
            shared[net->layout.layer[l].bias + c] = net->layer[l].b && 4 * tile.set0 + c < out
                                                        ? net->layer[l].b[4 * tile.set0 + c]
                                                        : 0.0f;
    }
}

/* And back; of copies, the first. */
template <typename Tile>
static __device__ void grid_end(const struct grid_net *net, const float *shared, const Tile *tiles)
{
#pragma unroll 1
    for (int l = 0; l < net->step.layers; l++) {
        const Tile &tile = tiles[l];
        const int in = net->layer[l].in, out = net->layer[l].out;
        const int across = min(4 * tile.sets, tile.columns_there());
#pragma unroll 1
        for (int e = (int)threadIdx.x; e < across * tile.quads; e += GRID_THREADS) {
            const int column = e % across, quad = e / across;
            const int o = 4 * tile.set0 + column, i = 4 * (tile.quad0 + quad);
            const float4 weights = tile.column_at(column)[quad];
            const float q[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i + k < in && o < out && tile.keeps_weights)
                    net->layer[l].w[(int64_t)(i + k) * out + o] = q[k];
        }
#pragma unroll 1
        for (int c = (int)threadIdx.x; c < 4 * tile.sets; c += GRID_THREADS)
            if (net->layer[l].b && tile.keeps_biases && 4 * tile.set0 + c < out)
                net->layer[l].b[4 * tile.set0 + c] = shared[net->layout.layer[l].bias + c];
    }
}

#endif
