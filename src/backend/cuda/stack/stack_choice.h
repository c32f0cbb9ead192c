/* stack_choice.h: which kernel runs a whole program. */
#ifndef PRONY_BACKEND_CUDA_STACK_CHOICE_H
#define PRONY_BACKEND_CUDA_STACK_CHOICE_H

#include "backend/cuda/stack/stack_block_layout.h"
#include "backend/cuda/stack/stack_data_parallel_layout.h"
#include "backend/cuda/stack/stack_grid_layout.h"

enum whole_kind { WHOLE_NONE, WHOLE_WARP, WHOLE_TEAM, WHOLE_BLOCK, WHOLE_MANY, WHOLE_GRID };

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
    if (!whole_can_activate(chain) || (chain->probabilities && chain->loss_grad >= 0))
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
