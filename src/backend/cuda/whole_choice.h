/* whole_choice.h: which kernel runs a whole program, and how its memory is laid out: plain
 * arithmetic over sizes, also for tests on a machine without a GPU. C and CUDA. */
#ifndef PRONY_BACKEND_CUDA_WHOLE_CHOICE_H
#define PRONY_BACKEND_CUDA_WHOLE_CHOICE_H

#ifdef __cplusplus
extern "C" {
#endif
#include "core/pass/chain.h"
#ifdef __cplusplus
}
#endif

#include <string.h>

#ifdef __CUDACC__
#define SIZE_INLINE static inline __host__ __device__
#else
#define SIZE_INLINE static inline
#endif

enum whole_kind { WHOLE_NONE, WHOLE_BLOCK, WHOLE_GRID };

/* Of the GPU. */
struct whole_limits {
    int32_t multiprocessors;
    int32_t shared_bytes; /* that one block can have */
};

/* --- One block: a sample is a group of `width` lanes, a lane is a unit of the layer at hand. */
enum {
    BLOCK_WIDTH_MOST = 32,
    BLOCK_THREADS_MOST = 512,
};

/* Offsets are in floats of shared memory. A sample's line holds a 1 (what a bias is multiplied
 * with), then the inputs of every layer, then the gradients of the outputs of every layer. */
struct block_layout {
    int32_t width;   /* 8, 16 or 32: lanes of a sample */
    int32_t threads; /* of the block */
    int32_t stride;  /* of rows of weights: no two lanes of eight meet in a bank */
    int32_t line;    /* of a sample */
    int32_t x[CHAIN_MOST], d[CHAIN_MOST];          /* within a line */
    int32_t by_out[CHAIN_MOST], by_in[CHAIN_MOST]; /* weights, once each way */
    int32_t bias[CHAIN_MOST];                      /* of the layer */
    int32_t lines, losses, updates, rate;          /* where these begin */
    int32_t weights;                               /* biases included */
    int64_t shared_bytes;
};

static inline int32_t chain_widest(const struct chain *chain)
{
    int32_t widest = chain->layer[0].in;
    for (int32_t l = 0; l < chain->layers; l++)
        widest = chain->layer[l].out > widest ? chain->layer[l].out : widest;
    return widest;
}

static inline void block_lay_out(const struct chain *chain, int32_t batch, struct block_layout *out)
{
    const int32_t widest = chain_widest(chain);
    struct block_layout layout;
    int32_t at = 0;
    memset(&layout, 0, sizeof layout);
    layout.width = widest <= 8 ? 8 : widest <= 16 ? 16 : 32;
    layout.threads = (batch * layout.width + 31) / 32 * 32;
    layout.stride = layout.width + 4;
    layout.line = 4; /* the 1, and room that keeps quadruples aligned */
    for (int32_t l = 0; l < chain->layers; l++) {
        layout.x[l] = layout.line;
        layout.line += layout.width;
    }
    for (int32_t l = 0; l < chain->layers; l++) {
        layout.d[l] = layout.line;
        layout.line += layout.width;
    }
    layout.line += 4; /* samples begin in different banks */
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        layout.by_out[l] = at;
        at += layout.width * layout.stride;
        layout.by_in[l] = at;
        at += layout.width * layout.stride;
        layout.bias[l] = at;
        at += layout.width;
        layout.weights += (layer->in + (layer->b >= 0)) * layer->out;
    }
    layout.lines = at;
    at += layout.line * (layout.threads / layout.width);
    layout.losses = at;
    at += 2 * layout.threads;
    layout.rate = at;
    at += 4;
    layout.updates = at;
    at += 4 * layout.weights;
    layout.shared_bytes = (int64_t)at * (int64_t)sizeof(float);
    *out = layout;
}

/* --- All multiprocessors: each block owns some columns of every layer. */
enum {
    GRID_BATCH_MOST = 16,
    GRID_COPIED_MOST = 4096, /* weights of a last layer that every block has a copy of */
};

/* Of a block that works on so many samples: their sums need registers. */
#define GRID_THREADS_FOR(samples) ((samples) <= 6 ? 512 : 384)

/* Samples that the kernel is compiled for: the least that holds the batch. */
static inline int32_t grid_samples(int32_t batch)
{
    static const int32_t samples[] = {1, 2, 3, 4, 6, 8, 10, 12, GRID_BATCH_MOST};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (batch <= samples[i])
            return samples[i];
    return 0;
}

/* Floats that four neighbouring features of all samples take in shared memory: an odd number of
 * quadruples, so that neighbouring lanes meet in no bank. */
SIZE_INLINE int32_t grid_quad_floats(int32_t samples)
{
    return 4 * (samples | 1);
}

struct grid_layout {
    int32_t samples, blocks;
    int32_t x, y, target, scratch, delta, rows; /* where these begin in shared memory, in floats */
    struct {
        int32_t owners;              /* blocks that own columns */
        int32_t columns;             /* of a block, at most */
        int32_t resident;            /* of these, in shared memory */
        int32_t copied;              /* every block has all columns, and all of them resident */
        int32_t weights, kept, bias; /* resident columns; outputs of own columns; their biases */
    } layer[CHAIN_MOST];
    int64_t shared_bytes;
    int64_t weights_bytes; /* device memory: columns that are not resident, [out][in] */
    int64_t packets;       /* device memory: of 16 bytes, all exchanges */
};

SIZE_INLINE int32_t quads_of(int32_t in)
{
    return (in + 3) / 4;
}

/* Packets that carry the samples of one feature: three floats and the step's number each. */
static inline int32_t grid_packets(int32_t samples)
{
    return (samples + 2) / 3;
}

static inline bool grid_is_copied(const struct chain *chain, int32_t l)
{
    return l == chain->layers - 1 &&
           (int64_t)chain->layer[l].in * chain->layer[l].out <= GRID_COPIED_MOST;
}

/* Every block must own a column of some layer: an exchange that needs all of them is what keeps
 * them in step. */
static inline int32_t grid_blocks(const struct chain *chain, const struct whole_limits *limits)
{
    int32_t widest = 1;
    for (int32_t l = 0; l < chain->layers; l++)
        if (!grid_is_copied(chain, l) && chain->layer[l].out > widest)
            widest = chain->layer[l].out;
    return widest < limits->multiprocessors ? widest : limits->multiprocessors;
}

/* The most columns of every layer that a block owns. */
static inline void grid_share(const struct chain *chain, int32_t blocks, struct grid_layout *out)
{
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        out->layer[l].copied = grid_is_copied(chain, l);
        out->layer[l].owners = layer->out < blocks ? layer->out : blocks;
        out->layer[l].columns =
            out->layer[l].copied ? layer->out
                                 : (layer->out + out->layer[l].owners - 1) / out->layer[l].owners;
    }
}

/* False: it does not fit. */
static inline bool grid_lay_out(const struct chain *chain, int32_t batch,
                                const struct whole_limits *limits, struct grid_layout *out)
{
    struct grid_layout layout;
    const int32_t samples = grid_samples(batch), last = chain->layers - 1;
    int32_t most_quads = 0, most_columns = 0, at = 0;
    int64_t column_floats = 0;
    if (!samples)
        return false;
    memset(&layout, 0, sizeof layout);
    layout.samples = samples;
    layout.blocks = grid_blocks(chain, limits);
    grid_share(chain, layout.blocks, &layout);
    for (int32_t l = 0; l < chain->layers; l++) {
        const int32_t quads = quads_of(chain->layer[l].in), columns = layout.layer[l].columns;
        most_quads = quads > most_quads ? quads : most_quads;
        most_columns = columns > most_columns ? columns : most_columns;
        if (!layout.layer[l].copied)
            column_floats += 4 * (int64_t)quads * columns;
        layout.weights_bytes += 16 * (int64_t)quads * chain->layer[l].out;
        layout.packets +=
            2 * (int64_t)grid_packets(samples) *
            (chain->layer[l].out + (int64_t)chain->layer[l].in * layout.layer[l].owners);
    }
    layout.x = at;
    at += most_quads * grid_quad_floats(samples);
    layout.y = at;
    at += (chain->layer[last].out * samples + 3) / 4 * 4;
    layout.target = at;
    at += (chain->layer[last].out * samples + 3) / 4 * 4;
    layout.rows = at;
    at += 2 * GRID_BATCH_MOST;
    layout.scratch = at;
    const int32_t chunks = (most_columns + 3) / 4;
    const int32_t threads = GRID_THREADS_FOR(samples), warps = threads / 32;
    const int32_t sums = 4 * samples * (chunks > warps ? chunks : warps);
    const int32_t deltas = most_columns * ((samples + 3) / 4 * 4);
    int32_t scratch = sums > 3 * threads ? sums : 3 * threads;
    scratch = deltas > scratch ? deltas : scratch;
    at += scratch;
    layout.delta = at;
    at += deltas;
    for (int32_t l = 0; l < chain->layers; l++) {
        layout.layer[l].kept = at;
        at += (layout.layer[l].columns * samples + 3) / 4 * 4;
        layout.layer[l].bias = at;
        at += (layout.layer[l].columns + 3) / 4 * 4;
        if (layout.layer[l].copied) {
            layout.layer[l].weights = at;
            layout.layer[l].resident = layout.layer[l].columns;
            at += 4 * quads_of(chain->layer[l].in) * layout.layer[l].columns;
        }
    }
    const int64_t left = limits->shared_bytes / 4 - at;
    if (left < 0)
        return false;
    for (int32_t l = 0; l < chain->layers; l++) { /* the same share of every layer */
        if (layout.layer[l].copied)
            continue;
        int64_t resident = layout.layer[l].columns;
        if (column_floats > left)
            resident = resident * left / column_floats;
        layout.layer[l].resident = (int32_t)resident;
        layout.layer[l].weights = at;
        at += 4 * quads_of(chain->layer[l].in) * (int32_t)resident;
    }
    layout.shared_bytes = (int64_t)at * 4;
    *out = layout;
    return true;
}

/* --- The choice. Slopes are computed from outputs, which gelu's cannot. */
static inline bool whole_can_activate(const struct chain *chain)
{
    for (int32_t l = 0; l < chain->layers; l++)
        if (chain->layer[l].activation == ACTIVATION_GELU && chain->loss_grad >= 0)
            return false;
    return true;
}

static inline enum whole_kind whole_choose(const struct chain *chain, int32_t batch,
                                           const struct whole_limits *limits)
{
    struct block_layout block;
    struct grid_layout grid;
    if (!whole_can_activate(chain))
        return WHOLE_NONE;
    if (chain_widest(chain) <= BLOCK_WIDTH_MOST && batch <= BLOCK_THREADS_MOST) {
        block_lay_out(chain, batch, &block);
        if (block.threads <= BLOCK_THREADS_MOST && block.shared_bytes <= limits->shared_bytes)
            return WHOLE_BLOCK;
    }
    return grid_lay_out(chain, batch, limits, &grid) ? WHOLE_GRID : WHOLE_NONE;
}

#endif
