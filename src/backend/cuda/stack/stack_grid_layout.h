/* stack_grid_layout.h: the memory of stack_grid.cu: a grid of rows ×
 * columns of blocks, each of which owns a tile of every layer's weights. Features are counted in
 * quadruples; a slice is what one of several blocks has of them. In every second layer rows and
 * columns change places, so that what a block gets as outputs of one layer are its inputs of the
 * next. The last layer is narrow and its columns are copied: whoever has its rows has all its
 * columns. */
#ifndef PRONY_BACKEND_CUDA_STACK_GRID_LAYOUT_H
#define PRONY_BACKEND_CUDA_STACK_GRID_LAYOUT_H

#include "backend/cuda/stack/stack_sizes.h"

enum {
    GRID_BATCH_MOST = 12,   /* asked, … */
    GRID_TRAINED_MOST = 16, /* … or trained */
    GRID_THREADS = 512,
    GRID_WARPS = GRID_THREADS / 32,
    GRID_FIRST_MOST = 32,  /* inputs of a first layer that every block has all of */
    GRID_LAST_MOST = 32,   /* outputs of the last layer */
    GRID_TILE_FLOATS = 48, /* a description of a block's part of a layer */
    GRID_SLICE_LEAST = 8,  /* quadruples of the widest layer that are worth a block */
    GRID_OWN_BYTES = 128,  /* of shared memory, beside the layout */
    GRID_SLACK = 32,       /* floats behind the weights: eight lanes read on where a column ends */
};

/* Samples that the kernel is compiled for: the least that holds the batch. Fewer than three would
 * leave words of a packet unused, and the assembler then reads the others one by one. */
static inline int32_t grid_samples(int32_t batch, bool trains)
{
    static const int32_t samples[] = {3, 4, 6, 8, 10, GRID_BATCH_MOST, GRID_TRAINED_MOST};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (batch <= samples[i] && (trains || samples[i] <= GRID_BATCH_MOST))
            return samples[i];
    return 0;
}

/* Column quadruples that a warp takes at once: more samples need the registers for sums. */
#define GRID_SETS_AT_ONCE(samples) ((samples) <= 4 ? 4 : 2)

/* Floats that four neighbouring features of all samples take in shared memory: an odd number of
 * quadruples, so that neighbouring lanes meet in no bank. */
SIZE_INLINE int32_t grid_quad_floats(int32_t samples)
{
    return 4 * (samples | 1);
}

/* Packets that carry the samples of one feature: three floats and the step's number each. */
static inline int32_t grid_packets(int32_t samples)
{
    return (samples + 2) / 3;
}

/* Whether what blocks find is added up by one of them for the others: fewer packets, more hops. */
SIZE_INLINE SIZE_CONSTANT bool grid_hands_on(int32_t samples)
{
    return samples > 4;
}

/* What a call's inputs take on their way to all blocks, and a packet that says whether it goes on:
 * of an even or of an odd call. */
static inline int32_t grid_relay_packets(const struct dense_stack *dense, int32_t samples)
{
    return 1 + dense->layer[0].in * grid_packets(samples);
}

/* Numbers that blocks leave: one each, and one of all. */
static inline int32_t grid_number_packets(int32_t blocks)
{
    return (blocks + 1 + 3) / 4;
}

struct grid_layout {
    int32_t samples;
    int32_t rows, columns; /* of blocks; in odd layers the other way round */
    int32_t tiles, y, target, taken, shares, scratch, delta; /* where these begin in shared memory,
                                                                in floats */
    int32_t x_apart; /* the network's inputs of even steps from those of odd ones */
    struct {
        int32_t quads;            /* of a block's slice of the inputs, at most */
        int32_t sets;             /* quadruples of its slice of the outputs, at most */
        int32_t passes;           /* in which warps take these */
        int32_t near;             /* of the quadruples of a pass, how many are in shared memory */
        int32_t copied;           /* the last layer: every block has all its outputs */
        int32_t whole;            /* the first, when it is narrow: every block has all its inputs */
        int32_t x, bias, weights; /* in shared memory */
        int64_t far;              /* floats of a block in device memory */
    } layer[DENSE_STACK_MOST];
    int64_t shared_bytes;
    int64_t far_bytes; /* device memory of all blocks and layers */
    int64_t packets;   /* device memory: of 16 bytes, all exchanges */
};

/* Blocks that share the inputs of a layer, and those that share its outputs. */
SIZE_INLINE int32_t grid_sharers(const struct grid_layout *layout, int32_t l)
{
    return layout->layer[l].whole ? 1 : l % 2 ? layout->columns : layout->rows;
}

SIZE_INLINE int32_t grid_across(const struct grid_layout *layout, int32_t l)
{
    return l % 2 ? layout->rows : layout->columns;
}

/* As square as can be, as many as can be, none with too little to do. */
static inline void grid_shape(const struct dense_stack *dense, const struct stack_limits *limits,
                              struct grid_layout *out)
{
    const int32_t most = (quads_of(dense_widest(dense)) + GRID_SLICE_LEAST - 1) / GRID_SLICE_LEAST;
    const int32_t blocks = /* each has a thread in the first, which hears of it */
        limits->multiprocessors < GRID_THREADS ? limits->multiprocessors : GRID_THREADS;
    int32_t rows = 1;
    while ((rows + 1) * (rows + 1) <= blocks)
        rows++;
    const int32_t across = blocks / rows < most ? blocks / rows : most;
    rows = rows < most ? rows : most;
    out->rows = rows;
    out->columns = across;
    if (dense->layers == 1)
        out->columns = 1; /* all blocks must hear of all others */
}

/* Keeps as many columns as fit in shared memory, about the same share of every layer. */
static inline void grid_place_weights(const struct dense_stack *dense,
                                      const struct stack_limits *limits, int32_t at,
                                      struct grid_layout *layout)
{
    const int32_t at_once = GRID_SETS_AT_ONCE(layout->samples);
    const int32_t all = (limits->shared_bytes - GRID_OWN_BYTES) / 4 - GRID_SLACK;
    int32_t used = at;
    for (int32_t near = 1; near <= at_once; near++)
        for (int32_t l = 0; l < dense->layers; l++) {
            const int32_t floats = 16 * layout->layer[l].passes * layout->layer[l].quads;
            if (layout->layer[l].near != near - 1 || used + floats > all)
                continue;
            used += floats;
            layout->layer[l].near = near;
        }
    for (int32_t l = 0; l < dense->layers; l++) {
        const int32_t near = layout->layer[l].near;
        const int32_t floats = 16 * layout->layer[l].passes * layout->layer[l].quads;
        layout->layer[l].weights = at;
        at += near * floats;
        layout->layer[l].far = (int64_t)(at_once - near) * floats;
        layout->far_bytes += 4 * layout->layer[l].far * layout->rows * layout->columns;
    }
    layout->shared_bytes = 4 * (int64_t)(at + GRID_SLACK);
}

/* False: it does not fit, or its last layer is too wide. */
static inline bool grid_lay_out(const struct dense_stack *dense, int32_t batch,
                                const struct stack_limits *limits, struct grid_layout *out)
{
    struct grid_layout layout;
    const int32_t samples = grid_samples(batch, dense->loss_grad >= 0),
                  last = dense->layers > 1 ? dense->layers - 1 : 0;
    const int32_t deltas = (samples + 3) / 4 * 4, wide = dense->layer[last].out;
    int32_t most_quads = 0, most_sets = 0, at = 0;
    if (!samples || wide > GRID_LAST_MOST)
        return false;
    memset(&layout, 0, sizeof layout);
    layout.samples = samples;
    grid_shape(dense, limits, &layout);
    layout.packets =
        2 * grid_relay_packets(dense, samples) + grid_number_packets(layout.rows * layout.columns);
    layout.tiles = at;
    at += dense->layers * GRID_TILE_FLOATS;
    for (int32_t l = 0; l <= last; l++) {
        layout.layer[l].copied = l == last;
        layout.layer[l].whole = l == 0 && last > 1 && dense->layer[l].in <= GRID_FIRST_MOST;
        const int32_t down = grid_sharers(&layout, l), across = grid_across(&layout, l);
        const int32_t in = quads_of(dense->layer[l].in), wanted = quads_of(dense->layer[l].out);
        layout.layer[l].quads = (in + down - 1) / down;
        layout.layer[l].sets = l == last ? wanted : (wanted + across - 1) / across;
        layout.layer[l].passes =
            (layout.layer[l].sets + GRID_SETS_AT_ONCE(samples) - 1) / GRID_SETS_AT_ONCE(samples);
        most_quads = layout.layer[l].quads > most_quads ? layout.layer[l].quads : most_quads;
        most_sets = layout.layer[l].sets > most_sets ? layout.layer[l].sets : most_sets;
        layout.packets += 2 * 4 * (int64_t)grid_packets(samples) *
                          ((int64_t)down * wanted * (l == last ? across : 1) +
                           (int64_t)across * in + (grid_hands_on(samples) ? wanted + in : 0));
        layout.layer[l].x = at;
        if (l == 0)
            at += layout.x_apart = round_up(layout.layer[l].quads, 8) * grid_quad_floats(samples);
        at += round_up(layout.layer[l].quads, 8) * grid_quad_floats(samples);
        layout.layer[l].bias = at;
        at += 4 * layout.layer[l].sets;
    }
    layout.y = at;
    at += 4 * quads_of(wide) * samples;
    layout.target = at;
    at += (wide * samples + 3) / 4 * 4;
    layout.taken = at; /* rows of the data, of even and of odd steps */
    at += 2 * GRID_TRAINED_MOST;
    layout.shares = at; /* loss and right answers of each sample */
    at += 2 * GRID_TRAINED_MOST;
    layout.delta = at;
    at += 4 * round_up(most_sets, GRID_SETS_AT_ONCE(samples)) * deltas;
    layout.scratch = at;
    at += 4 * samples * (most_quads > 8 * GRID_WARPS ? most_quads : 8 * GRID_WARPS);
    if (at > (limits->shared_bytes - GRID_OWN_BYTES) / 4 - GRID_SLACK)
        return false;
    grid_place_weights(dense, limits, at, &layout);
    *out = layout;
    return true;
}

#endif
