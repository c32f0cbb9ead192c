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
#ifdef __cplusplus
#define SIZE_CONSTANT constexpr
#else
#define SIZE_CONSTANT
#endif

enum whole_kind { WHOLE_NONE, WHOLE_WARP, WHOLE_TEAM, WHOLE_BLOCK, WHOLE_MANY, WHOLE_GRID };

/* Of the GPU. */
struct whole_limits {
    int32_t multiprocessors;
    int32_t shared_bytes; /* that one block can have */
};

SIZE_INLINE int32_t quads_of(int32_t features)
{
    return (features + 3) / 4;
}

SIZE_INLINE int32_t round_up(int32_t count, int32_t to)
{
    return (count + to - 1) / to * to;
}

/* --- One block: a sample is a group of `width` lanes, a lane is a unit of the layer at hand. */
enum {
    BLOCK_WIDTH_MOST = 32,
    BLOCK_THREADS_MOST = 512,
    BLOCK_UPDATERS = 256, /* threads that are worth starting for updates alone */
    BLOCK_UPDATE_FLOATS = 3,
    PACES = 16, /* steps whose rates are worked out at once */
    PACE_FLOATS = 4,
};

/* Offsets are in floats of shared memory, in which layers follow each other at equal distances:
 * each has its weights by output, its weights by input and its biases. A sample's line holds a 1
 * (what a bias is multiplied with), then the inputs of every layer, then the gradients of the
 * outputs of every layer. What an optimiser keeps lies as the updates do, four numbers each. */
struct block_layout {
    int32_t width;                               /* 8, 16 or 32: lanes of a sample */
    int32_t lanes;                               /* of all samples, in whole warps */
    int32_t threads;                             /* of the block: as many, or more */
    int32_t line;                                /* of a sample */
    int32_t states;                              /* that the optimiser keeps of a weight */
    int32_t lines, losses, paces, kept, updates; /* where these begin */
    int32_t update_count;                        /* of four weights each, or of a bias */
    int64_t shared_bytes;
};

/* Rows of weights: no two lanes of eight meet in a bank. */
#define BLOCK_STRIDE(width) ((width) + 4)
#define BLOCK_LAYER(width) (2 * (width)*BLOCK_STRIDE(width) + (width))
#define BLOCK_BY_IN(width) ((width)*BLOCK_STRIDE(width))
#define BLOCK_BIAS(width) (2 * (width)*BLOCK_STRIDE(width))
/* In a line: the inputs of layer l, and the gradients of its outputs. */
#define BLOCK_X(width, l) (4 + (l) * (width))
#define BLOCK_D(width, layers, l) (4 + ((layers) + (l)) * (width))

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
    layout.lanes = (batch * layout.width + 31) / 32 * 32;
    layout.line = BLOCK_D(layout.width, chain->layers, chain->layers) + 4; /* other banks for the
                                                                              next sample */
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        layout.update_count += ((layer->in + 3) / 4 + (layer->b >= 0)) * layer->out;
    }
    layout.threads = (layout.update_count + 31) / 32 * 32;
    if (layout.threads > BLOCK_UPDATERS)
        layout.threads = BLOCK_UPDATERS;
    if (layout.threads < layout.lanes)
        layout.threads = layout.lanes;
    at = BLOCK_LAYER(layout.width) * chain->layers;
    layout.lines = at;
    at += layout.line * (layout.lanes / layout.width);
    layout.losses = at; /* of even and of odd steps */
    at += 2 * 2 * layout.lanes;
    layout.paces = at;
    at += PACES * PACE_FLOATS;
    layout.states = chain->states;
    layout.kept = at; /* all of the first state, then of the second */
    at += 4 * chain->states * layout.update_count;
    layout.updates = at;
    at += BLOCK_UPDATE_FLOATS * layout.update_count;
    layout.shared_bytes = (int64_t)at * (int64_t)sizeof(float);
    *out = layout;
}

/* --- One warp, or a team of four for a batch: the usual kinds of networks at most 8 wide, which
 * have kernels without branches. */
enum {
    WARP_WIDTH_MOST = 8,
    WARP_LAYERS_LEAST = 2,
    WARP_LAYERS_MOST = 4,
    TEAM_BATCH_MOST = 12, /* four samples for each of three warps */
};

static inline bool warp_takes(const struct chain *chain, int32_t batch)
{
    if (chain->layers < WARP_LAYERS_LEAST || chain->layers > WARP_LAYERS_MOST ||
        batch > TEAM_BATCH_MOST || chain_widest(chain) > WARP_WIDTH_MOST)
        return false;
    const enum activation hidden = chain->layer[0].activation;
    const enum activation last = chain->layer[chain->layers - 1].activation;
    for (int32_t l = 0; l < chain->layers - 1; l++)
        if (chain->layer[l].activation != hidden)
            return false;
    if (last != ACTIVATION_NONE)
        return hidden == ACTIVATION_SIGMOID && last == ACTIVATION_SIGMOID;
    return hidden == ACTIVATION_SIGMOID || hidden == ACTIVATION_RELU || hidden == ACTIVATION_TANH;
}

/* --- Many samples of narrow layers: each block has the whole network and a share of the samples,
 * which it takes in chunks. A sample is a thread, or of wider layers several. */
enum {
    MANY_THREADS = 512,
    MANY_WARPS = MANY_THREADS / 32,
    MANY_TILE_FLOATS = 2,
};

/* One block, while its samples take less time than an exchange. Then the more blocks the less each
 * has to compute and the more each has to read of the others: both take as long when there are as
 * many blocks as a block has samples, but for a factor, whatever the network. */
static inline int32_t many_blocks(int32_t batch, int32_t widest, int32_t most)
{
    const int32_t alone = widest <= 8 ? 512 : widest <= 16 ? 128 : 32;
    int32_t blocks = 1;
    while (batch > alone && blocks < most && 4 * blocks * blocks < batch)
        blocks++;
    return blocks;
}

/* Offsets are in floats of shared memory. First lie all weights, in tiles of four inputs by four
 * outputs and with zeros where a layer has none, and its biases; as they do, what an optimiser
 * keeps and the sums of gradients. Of each sample of a chunk there is a line, with the outputs of
 * all layers and the gradients of their sums, and an intake: inputs and targets, twice, as the next
 * chunk's come while this one is computed. */
struct many_layout {
    int32_t blocks, share;           /* samples of a block, at most, … */
    int32_t chunks, samples;         /* … in so many chunks of so many, … */
    int32_t parts;                   /* … of so many threads each */
    int32_t quads;                   /* of the widest layer */
    int32_t weights, learnt, states; /* numbers; those that are updated; what is kept of each */
    int32_t numbers;                 /* with zeros */
    int32_t tile_count, first_tiles; /* tiles; of the first layer */
    int32_t shares;                  /* of a chunk's samples: warps that have the same tile */
    int32_t packets, pieces;         /* that a block sends; in which those of all are added up */
    int32_t kept, sums, tiles, places, paces, losses, intakes, lines; /* where these begin */
    int32_t intake, target, intakes_apart; /* of a sample; the target's place; of both chunks */
    int32_t line;
    struct {
        int32_t weights, bias;
        int32_t down;    /* tiles of four outputs */
        int32_t x, y, d; /* in a line; x of the first: in an intake */
    } layer[CHAIN_MOST];
    int32_t floats;
    int64_t shared_bytes;
};

/* A distance in floats at which eight lanes that read four each meet in no bank. */
static inline int32_t lanes_apart(int32_t floats)
{
    return (floats + 3) / 4 % 2 ? round_up(floats, 4) : round_up(floats, 4) + 4;
}

/* Layers at most 8 wide lie at equal distances, as if all were: kernels then know where. */
enum {
    MANY_QUADS = 2,
    MANY_LAYER = 16 * MANY_QUADS * MANY_QUADS + 4 * MANY_QUADS, /* weights and biases */
    MANY_BIAS = 16 * MANY_QUADS * MANY_QUADS,
    MANY_LINE = 8 * MANY_QUADS, /* outputs and their gradients */
};

/* What does not depend on the batch. */
static inline void many_lay_out_layers(const struct chain *chain, struct many_layout *out)
{
    const int32_t last = chain->layers - 1;
    int32_t line = 0;
    out->quads = quads_of(chain_widest(chain));
    for (int32_t l = 0; l <= last; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        const bool alike = out->quads <= MANY_QUADS;
        const int32_t down = alike ? (int32_t)MANY_QUADS : quads_of(layer->in);
        const int32_t across = alike ? (int32_t)MANY_QUADS : quads_of(layer->out);
        out->weights += (layer->in + (layer->b >= 0)) * layer->out;
        out->tile_count += quads_of(layer->in) * quads_of(layer->out);
        out->layer[l].down = down;
        out->layer[l].weights = out->numbers;
        out->numbers += 16 * down * across;
        out->layer[l].bias = out->numbers;
        out->numbers += 4 * across;
        out->layer[l].x = l ? out->layer[l - 1].y : 0;
        out->layer[l].y = line;
        line += 4 * across;
        out->layer[l].d = line;
        line += 4 * (l == last ? quads_of(layer->out) : across);
    }
    out->first_tiles = quads_of(chain->layer[0].in) * quads_of(chain->layer[0].out);
    out->states = chain->states;
    out->learnt = chain->loss_grad >= 0 ? out->weights : 0;
    out->line = lanes_apart(line);
    out->target =
        4 * (out->quads <= MANY_QUADS ? (int32_t)MANY_QUADS : quads_of(chain->layer[0].in));
    out->intake = lanes_apart(out->target + 4 * quads_of(chain->layer[last].out));
}

/* Where everything lies, for so many samples a chunk. */
static inline void many_place(int32_t samples, struct many_layout *out)
{
    int32_t at = out->numbers, room = samples * out->line;
    out->samples = samples;
    out->chunks = (out->share + samples - 1) / samples;
    out->parts = out->quads <= 2 ? 1 : MANY_THREADS / samples;
    out->parts = out->parts > out->quads ? out->quads : out->parts;
    out->shares = MANY_WARPS / out->tile_count;
    out->shares = out->shares > samples / 32 ? samples / 32 : out->shares;
    out->shares = out->shares < 1 ? 1 : out->shares;
    out->pieces = out->packets < MANY_THREADS ? MANY_THREADS / out->packets : 1;
    out->pieces = out->pieces > out->blocks ? out->blocks : out->pieces;
    while (out->pieces > 1 && 3 * out->packets * out->pieces > room)
        out->pieces--;
    room = room < 3 * out->packets * out->pieces ? 3 * out->packets * out->pieces : room;
    out->kept = at;
    at += out->states * out->numbers;
    out->sums = at;
    at += out->shares * out->numbers;
    out->tiles = at;
    at += MANY_TILE_FLOATS * out->tile_count;
    out->places = at; /* 16 bits each */
    at = round_up(at + (out->weights + 1) / 2, 4);
    out->paces = at;
    at += PACES * PACE_FLOATS;
    out->losses = at;
    at += 2 * MANY_WARPS;
    out->intakes = at;
    out->intakes_apart = samples * out->intake;
    at += 2 * out->intakes_apart;
    out->lines = at;
    out->floats = at + room;
    out->shared_bytes = (int64_t)out->floats * (int64_t)sizeof(float);
}

/* False: there is no room for it. */
static inline bool many_lay_out(const struct chain *chain, int32_t batch,
                                const struct whole_limits *limits, struct many_layout *out)
{
    const int32_t blocks = many_blocks(batch, chain_widest(chain), limits->multiprocessors);
    int32_t samples;
    memset(out, 0, sizeof *out);
    many_lay_out_layers(chain, out);
    out->share = (batch - 1) / blocks + 1;
    out->blocks = (batch - 1) / out->share + 1;
    out->packets = (out->learnt + 2 + 2) / 3; /* with the loss and the right answers */
    samples = out->share < MANY_THREADS ? round_up(out->share, 32) : MANY_THREADS;
    for (many_place(samples, out); samples > 32 && out->shared_bytes > limits->shared_bytes;)
        many_place(samples -= 32, out);
    many_place(round_up((out->share - 1) / out->chunks + 1, 32), out); /* each about as many */
    return out->shared_bytes <= limits->shared_bytes;
}

/* --- All multiprocessors: a grid of rows × columns of blocks, each of which owns a tile of every
 * layer's weights. Features are counted in quadruples; a slice is what one of several blocks has of
 * them. In every second layer rows and columns change places, so that what a block gets as outputs
 * of one layer are its inputs of the next. The last layer is narrow and its columns are copied:
 * whoever has its rows has all its columns. */
enum {
    GRID_BATCH_MOST = 12,
    GRID_THREADS = 512,
    GRID_WARPS = GRID_THREADS / 32,
    GRID_FIRST_MOST = 32,  /* inputs of a first layer that every block has all of */
    GRID_LAST_MOST = 32,   /* outputs of the last layer */
    GRID_TILE_FLOATS = 48, /* a description of a block's part of a layer */
    GRID_SLICE_LEAST = 8,  /* quadruples of the widest layer that are worth a block */
    GRID_OWN_BYTES = 128,  /* of shared memory, beside the layout */
    GRID_SLACK = 32,       /* floats behind the weights: eight lanes read on where a column ends */
};

/* Training with few samples: fewer threads, which own weights. A warp has every eighth set of four
 * columns, going up and going down; a line is eight quadruples of inputs. */
enum {
    OWN_SAMPLES_MOST = 4,
    OWN_WIDTH_MOST = 320, /* of layers whose tiles fit into shared memory */
    OWN_THREADS = 256,
    OWN_WARPS = OWN_THREADS / 32,
    KEPT_LINES = 7, /* of a layer that stays in registers, at most … */
    KEPT_SETS = 5,  /* … of each warp */
    KEPT_SENT = 4,  /* lines whose gradients are sent at a time */
    HELD_LINES = 5, /* of what a warp gets from L2, at most */
    HELD_SETS = 2,
};

/* Samples that the kernel is compiled for: the least that holds the batch. Fewer than three would
 * leave words of a packet unused, and the assembler then reads the others one by one. */
static inline int32_t grid_samples(int32_t batch)
{
    static const int32_t samples[] = {3, 4, 6, 8, 10, GRID_BATCH_MOST};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (batch <= samples[i])
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
static inline int32_t grid_relay_packets(const struct chain *chain, int32_t samples)
{
    return 1 + chain->layer[0].in * grid_packets(samples);
}

/* Numbers that blocks leave: one each, and one of all. */
static inline int32_t grid_number_packets(int32_t blocks)
{
    return (blocks + 1 + 3) / 4;
}

struct grid_layout {
    int32_t samples;
    int32_t rows, columns; /* of blocks; in odd layers the other way round */
    int32_t owns;          /* a step's threads own weights (whole_own.cu) … */
    int32_t kept;          /* … and have those of this layer in registers; -1: of none */
    int32_t tiles, y, target, taken, shares, scratch, delta; /* where these begin in shared memory,
                                                                in floats */
    int32_t x_apart; /* the network's inputs of even steps from those of odd ones */
    struct {
        int32_t quads;            /* of a block's slice of the inputs, at most */
        int32_t sets;             /* quadruples of its slice of the outputs, at most */
        int32_t passes;           /* in which warps take these */
        int32_t near;             /* of the quadruples of a pass, or of all of them when threads own
                                     weights, how many are in shared memory */
        int32_t copied;           /* the last layer: every block has all its outputs */
        int32_t whole;            /* the first, when it is narrow: every block has all its inputs */
        int32_t x, bias, weights; /* in shared memory */
        int64_t far;              /* floats of a block in device memory */
    } layer[CHAIN_MOST];
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
static inline void grid_shape(const struct chain *chain, const struct whole_limits *limits,
                              struct grid_layout *out)
{
    const int32_t most = (quads_of(chain_widest(chain)) + GRID_SLICE_LEAST - 1) / GRID_SLICE_LEAST;
    const int32_t blocks = /* each has a thread in the first, which hears of it */
        limits->multiprocessors < GRID_THREADS ? limits->multiprocessors : GRID_THREADS;
    int32_t rows = 1;
    while ((rows + 1) * (rows + 1) <= blocks)
        rows++;
    const int32_t across = blocks / rows < most ? blocks / rows : most;
    rows = rows < most ? rows : most;
    out->rows = out->owns ? across : rows;
    out->columns = out->owns ? rows : across;
    if (chain->layers == 1)
        out->columns = 1; /* all blocks must hear of all others */
}

/* Keeps as many columns as fit in shared memory, about the same share of every layer. */
static inline void grid_place_weights(const struct chain *chain, const struct whole_limits *limits,
                                      int32_t at, struct grid_layout *layout)
{
    const int32_t at_once = GRID_SETS_AT_ONCE(layout->samples);
    const int32_t all = (limits->shared_bytes - GRID_OWN_BYTES) / 4 - GRID_SLACK;
    int32_t used = at;
    for (int32_t near = 1; near <= at_once; near++)
        for (int32_t l = 0; l < chain->layers; l++) {
            const int32_t floats = 16 * layout->layer[l].passes * layout->layer[l].quads;
            if (layout->layer[l].near != near - 1 || used + floats > all)
                continue;
            used += floats;
            layout->layer[l].near = near;
        }
    for (int32_t l = 0; l < chain->layers; l++) {
        const int32_t near = layout->layer[l].near;
        const int32_t floats = 16 * layout->layer[l].passes * layout->layer[l].quads;
        layout->layer[l].weights = at;
        at += near * floats;
        layout->layer[l].far = (int64_t)(at_once - near) * floats;
        layout->far_bytes += 4 * layout->layer[l].far * layout->rows * layout->columns;
    }
    layout->shared_bytes = 4 * (int64_t)(at + GRID_SLACK);
}

/* The largest layer that fits into the registers of a block's threads. */
static inline int32_t grid_kept(const struct chain *chain, const struct grid_layout *layout)
{
    int32_t kept = -1, most = 0;
    for (int32_t l = 1; l < chain->layers; l++) {
        const int32_t quads = layout->layer[l].quads, sets = layout->layer[l].sets;
        if (layout->layer[l].whole || layout->layer[l].copied || quads > 8 * KEPT_LINES ||
            sets > OWN_WARPS * KEPT_SETS || quads * sets <= most)
            continue;
        most = quads * sets;
        kept = l;
    }
    return kept;
}

/* Gradients of quadruples of inputs that warps leave to be added up. */
static inline int32_t grid_parts(const struct chain *chain, const struct grid_layout *layout)
{
    int32_t most = OWN_WARPS;
    for (int32_t l = 0; l < chain->layers; l++) {
        const int32_t parts =
            OWN_WARPS * (l == layout->kept ? 8 * KEPT_SENT : layout->layer[l].quads);
        const bool none = layout->layer[l].whole || /* narrow ones are added up otherwise */
                          (l > 0 && layout->layer[l].copied && layout->layer[l].sets == 1);
        most = parts > most && !none ? parts : most;
    }
    return most;
}

/* When threads own weights: narrow layers first, then about as many sets of every layer, each warp
 * as many as the others. */
static inline void grid_place_owned(const struct chain *chain, const struct whole_limits *limits,
                                    int32_t at, struct grid_layout *layout)
{
    int32_t left = (limits->shared_bytes - GRID_OWN_BYTES) / 4 - GRID_SLACK - at;
    for (int32_t far = 1; far > 0;) {
        int32_t best = -1;
        far = 0;
        for (int32_t l = 0; l < chain->layers; l++) {
            const int32_t away = layout->layer[l].sets - layout->layer[l].near;
            const int32_t some = away < OWN_WARPS ? away : OWN_WARPS;
            const bool narrow = layout->layer[l].whole || layout->layer[l].copied;
            if (l == layout->kept || (narrow ? away + (1 << 20) * (away > 0) : away) <= far ||
                16 * layout->layer[l].quads * some > left)
                continue;
            far = narrow ? away + (1 << 20) : away;
            best = l;
        }
        if (best < 0)
            break;
        const int32_t away = layout->layer[best].sets - layout->layer[best].near;
        const int32_t some = away < OWN_WARPS ? away : OWN_WARPS;
        left -= 16 * layout->layer[best].quads * some;
        layout->layer[best].near += some;
    }
    for (int32_t l = 0; l < chain->layers; l++) {
        const int32_t floats = 16 * layout->layer[l].quads;
        layout->layer[l].weights = at;
        at += layout->layer[l].near * floats;
        layout->layer[l].far =
            l == layout->kept ? 0
                              : (int64_t)(layout->layer[l].sets - layout->layer[l].near) * floats;
        layout->far_bytes += 4 * layout->layer[l].far * layout->rows * layout->columns;
    }
    layout->shared_bytes = 4 * (int64_t)(at + GRID_SLACK);
}

/* Whether warps can hold what they get from L2. */
static inline bool grid_can_hold(const struct chain *chain, const struct grid_layout *layout)
{
    for (int32_t l = 0; l < chain->layers; l++)
        if (layout->layer[l].far &&
            (layout->layer[l].quads > 8 * HELD_LINES ||
             layout->layer[l].sets - layout->layer[l].near > OWN_WARPS * HELD_SETS))
            return false;
    return true;
}

/* False: it does not fit, or its last layer is too wide. */
static inline bool grid_lay_out_so(const struct chain *chain, int32_t batch, bool owns,
                                   const struct whole_limits *limits, struct grid_layout *out)
{
    struct grid_layout layout;
    const int32_t samples = grid_samples(batch), last = chain->layers > 1 ? chain->layers - 1 : 0;
    const int32_t deltas = (samples + 3) / 4 * 4, wide = chain->layer[last].out;
    int32_t most_quads = 0, most_sets = 0, at = 0;
    if (!samples || wide > GRID_LAST_MOST)
        return false;
    memset(&layout, 0, sizeof layout);
    layout.samples = samples;
    layout.owns = owns;
    grid_shape(chain, limits, &layout);
    layout.packets =
        2 * grid_relay_packets(chain, samples) + grid_number_packets(layout.rows * layout.columns);
    layout.tiles = at;
    at += chain->layers * GRID_TILE_FLOATS;
    for (int32_t l = 0; l <= last; l++) {
        layout.layer[l].copied = l == last;
        layout.layer[l].whole = l == 0 && last > 1 && chain->layer[l].in <= GRID_FIRST_MOST;
        const int32_t down = grid_sharers(&layout, l), across = grid_across(&layout, l);
        const int32_t in = quads_of(chain->layer[l].in), wanted = quads_of(chain->layer[l].out);
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
    at += 2 * GRID_BATCH_MOST;
    layout.shares = at; /* loss and right answers of each sample */
    at += 2 * GRID_BATCH_MOST;
    layout.delta = at;
    at += 4 * round_up(most_sets, GRID_SETS_AT_ONCE(samples)) * deltas;
    layout.scratch = at;
    layout.kept = owns ? grid_kept(chain, &layout) : -1;
    if (owns)
        at += 4 * samples * grid_parts(chain, &layout);
    else
        at += 4 * samples * (most_quads > 8 * GRID_WARPS ? most_quads : 8 * GRID_WARPS);
    if (at > (limits->shared_bytes - GRID_OWN_BYTES) / 4 - GRID_SLACK)
        return false;
    if (owns)
        grid_place_owned(chain, limits, at, &layout);
    else
        grid_place_weights(chain, limits, at, &layout);
    *out = layout;
    return !owns || grid_can_hold(chain, &layout);
}

/* Registers are worth it where tiles do not fit into shared memory; and where narrow layers end
 * with at most four outputs, for which that kernel has a quicker way (measured: 2 %; with more
 * outputs 8 to 16 % slower, 640 to 1,024 wide 3 to 4 %). */
static inline bool grid_may_own(const struct chain *chain, int32_t batch, bool fits)
{
    const bool narrow = chain->layers > 1 && chain_widest(chain) <= OWN_WIDTH_MOST &&
                        chain->layer[chain->layers - 1].out <= 4;
    return chain->loss_grad >= 0 && batch <= OWN_SAMPLES_MOST && (!fits || narrow);
}

static inline bool grid_lay_out(const struct chain *chain, int32_t batch,
                                const struct whole_limits *limits, struct grid_layout *out)
{
    const bool can = grid_lay_out_so(chain, batch, false, limits, out);
    struct grid_layout owned;
    if (!grid_may_own(chain, batch, can && !out->far_bytes) ||
        !grid_lay_out_so(chain, batch, true, limits, &owned))
        return can;
    *out = owned;
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
    struct many_layout many;
    struct grid_layout grid;
    if (!whole_can_activate(chain))
        return WHOLE_NONE;
    /* a warp has each weight several times: too often for a rule */
    if (warp_takes(chain, batch) && !chain->probabilities)
        return batch == 1 && chain->optimiser < 0 ? WHOLE_WARP : WHOLE_TEAM;
    if (chain_widest(chain) <= BLOCK_WIDTH_MOST && batch <= BLOCK_THREADS_MOST) {
        block_lay_out(chain, batch, &block);
        if (block.threads <= BLOCK_THREADS_MOST && block.shared_bytes <= limits->shared_bytes)
            return WHOLE_BLOCK;
    }
    if (chain->probabilities) /* a softmax as a step's last act would slow all others */
        return WHOLE_NONE;
    if (chain_widest(chain) <= BLOCK_WIDTH_MOST && many_lay_out(chain, batch, limits, &many))
        return WHOLE_MANY;
    const bool plain = chain->optimiser < 0 && !chain->counts_sigmoid;
    return plain && grid_lay_out(chain, batch, limits, &grid) ? WHOLE_GRID : WHOLE_NONE;
}

#endif
