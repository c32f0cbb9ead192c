/* stack_replicas_layout.h: the memory of stack_replicas.cu: of many samples of narrow
 * layers. Each block has the whole network and a share of the samples, which it takes in chunks. A
 * sample is a thread, or of wider layers several. */
#ifndef PRONY_BACKEND_CUDA_STACK_REPLICAS_LAYOUT_H
#define PRONY_BACKEND_CUDA_STACK_REPLICAS_LAYOUT_H

#include "backend/cuda/stack/stack_sizes.h"

enum {
    REPLICAS_THREADS = 512,
    REPLICAS_WARPS = REPLICAS_THREADS / 32,
    REPLICAS_TILE_FLOATS = 2,
};

/* One block, while its samples take less time than an exchange. Then the more blocks the less each
 * has to compute and the more each has to read of the others: both take as long when there are as
 * many blocks as a block has samples, but for a factor, whatever the network. */
static inline int32_t replicas_blocks(int32_t batch, int32_t widest, int32_t most)
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
struct replicas_layout {
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
    } layer[DENSE_STACK_MOST];
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
    REPLICAS_QUADS = 2,
    REPLICAS_LAYER =
        16 * REPLICAS_QUADS * REPLICAS_QUADS + 4 * REPLICAS_QUADS, /* weights and biases */
    REPLICAS_BIAS = 16 * REPLICAS_QUADS * REPLICAS_QUADS,
    REPLICAS_LINE = 8 * REPLICAS_QUADS, /* outputs and their gradients */
};

/* What does not depend on the batch. */
static inline void replicas_lay_out_layers(const struct dense_stack *dense,
                                           struct replicas_layout *out)
{
    const int32_t last = dense->layers - 1;
    int32_t line = 0;
    out->quads = quads_of(dense_widest(dense));
    for (int32_t l = 0; l <= last; l++) {
        const struct dense_stack_layer *layer = &dense->layer[l];
        const bool alike = out->quads <= REPLICAS_QUADS;
        const int32_t down = alike ? (int32_t)REPLICAS_QUADS : quads_of(layer->in);
        const int32_t across = alike ? (int32_t)REPLICAS_QUADS : quads_of(layer->out);
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
    out->first_tiles = quads_of(dense->layer[0].in) * quads_of(dense->layer[0].out);
    out->states = dense->states;
    out->learnt = dense->loss_grad >= 0 ? out->weights : 0;
    out->line = lanes_apart(line);
    out->target =
        4 * (out->quads <= REPLICAS_QUADS ? (int32_t)REPLICAS_QUADS : quads_of(dense->layer[0].in));
    out->intake = lanes_apart(out->target + 4 * quads_of(dense->layer[last].out));
}

/* Where everything lies, for so many samples a chunk. */
static inline void replicas_place(int32_t samples, struct replicas_layout *out)
{
    int32_t at = out->numbers, room = samples * out->line;
    out->samples = samples;
    out->chunks = (out->share + samples - 1) / samples;
    out->parts = out->quads <= 2 ? 1 : REPLICAS_THREADS / samples;
    out->parts = out->parts > out->quads ? out->quads : out->parts;
    out->shares = REPLICAS_WARPS / out->tile_count;
    out->shares = out->shares > samples / 32 ? samples / 32 : out->shares;
    out->shares = out->shares < 1 ? 1 : out->shares;
    out->pieces = out->packets < REPLICAS_THREADS ? REPLICAS_THREADS / out->packets : 1;
    out->pieces = out->pieces > out->blocks ? out->blocks : out->pieces;
    while (out->pieces > 1 && 3 * out->packets * out->pieces > room)
        out->pieces--;
    room = room < 3 * out->packets * out->pieces ? 3 * out->packets * out->pieces : room;
    out->kept = at;
    at += out->states * out->numbers;
    out->sums = at;
    at += out->shares * out->numbers;
    out->tiles = at;
    at += REPLICAS_TILE_FLOATS * out->tile_count;
    out->places = at; /* 16 bits each */
    at = round_up(at + (out->weights + 1) / 2, 4);
    out->paces = at;
    at += PACES * PACE_FLOATS;
    out->losses = at;
    at += 2 * REPLICAS_WARPS;
    out->intakes = at;
    out->intakes_apart = samples * out->intake;
    at += 2 * out->intakes_apart;
    out->lines = at;
    out->floats = at + room;
    out->shared_bytes = (int64_t)out->floats * (int64_t)sizeof(float);
}

/* False: there is no room for it. */
static inline bool replicas_lay_out(const struct dense_stack *dense, int32_t batch,
                                    const struct stack_limits *limits, struct replicas_layout *out)
{
    const int32_t blocks = replicas_blocks(batch, dense_widest(dense), limits->multiprocessors);
    int32_t samples;
    memset(out, 0, sizeof *out);
    replicas_lay_out_layers(dense, out);
    out->share = (batch - 1) / blocks + 1;
    out->blocks = (batch - 1) / out->share + 1;
    out->packets = (out->learnt + 2 + 2) / 3; /* with the loss and the right answers */
    samples = out->share < REPLICAS_THREADS ? round_up(out->share, 32) : REPLICAS_THREADS;
    for (replicas_place(samples, out); samples > 32 && out->shared_bytes > limits->shared_bytes;)
        replicas_place(samples -= 32, out);
    replicas_place(round_up((out->share - 1) / out->chunks + 1, 32), out); /* each about as many */
    return out->shared_bytes <= limits->shared_bytes &&
           (int64_t)out->blocks * out->share <= INT32_MAX;
}

#endif
