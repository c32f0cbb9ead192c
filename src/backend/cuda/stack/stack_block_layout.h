/* stack_block_layout.h: the memory of stack_block.cu. A sample is a group of `width` lanes, a lane
 * is a unit of the layer at hand. */
#ifndef PRONY_BACKEND_CUDA_STACK_BLOCK_LAYOUT_H
#define PRONY_BACKEND_CUDA_STACK_BLOCK_LAYOUT_H

#include "backend/cuda/stack/stack_sizes.h"

/* One warp, or four for a batch. */
enum {
    WARP_WIDTH_MOST = 8,
    WARP_LAYERS_LEAST = 2,
    WARP_LAYERS_MOST = 4,
    FOUR_WARPS_BATCH_MOST = 12, /* four samples for each of three warps */
};

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

static inline void block_lay_out(const struct dense_stack *dense, int32_t batch,
                                 struct block_layout *out)
{
    const int32_t widest = dense_widest(dense);
    struct block_layout layout;
    int32_t at = 0;
    memset(&layout, 0, sizeof layout);
    layout.width = widest <= 8 ? 8 : widest <= 16 ? 16 : 32;
    layout.lanes = (batch * layout.width + 31) / 32 * 32;
    layout.line = BLOCK_D(layout.width, dense->layers, dense->layers) + 4; /* other banks for the
                                                                              next sample */
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *layer = &dense->layer[l];
        layout.update_count += ((layer->in + 3) / 4 + (layer->b >= 0)) * layer->out;
    }
    layout.threads = (layout.update_count + 31) / 32 * 32;
    if (layout.threads > BLOCK_UPDATERS)
        layout.threads = BLOCK_UPDATERS;
    if (layout.threads < layout.lanes)
        layout.threads = layout.lanes;
    at = BLOCK_LAYER(layout.width) * dense->layers;
    layout.lines = at;
    at += layout.line * (layout.lanes / layout.width);
    layout.losses = at; /* of even and of odd steps */
    at += 2 * 2 * layout.lanes;
    layout.paces = at;
    at += PACES * PACE_FLOATS;
    layout.states = dense->states;
    layout.kept = at; /* all of the first state, then of the second */
    at += 4 * dense->states * layout.update_count;
    layout.updates = at;
    at += BLOCK_UPDATE_FLOATS * layout.update_count;
    layout.shared_bytes = (int64_t)at * (int64_t)sizeof(float);
    *out = layout;
}

#endif
