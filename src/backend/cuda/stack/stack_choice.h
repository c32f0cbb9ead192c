/* stack_choice.h: which kernel runs a whole program. */
#ifndef PRONY_BACKEND_CUDA_STACK_CHOICE_H
#define PRONY_BACKEND_CUDA_STACK_CHOICE_H

#include "backend/cuda/stack/stack_block_layout.h"
#include "backend/cuda/stack/stack_grid_layout.h"
#include "backend/cuda/stack/stack_replicas_layout.h"

enum stack_kind {
    STACK_NONE,
    STACK_WARP,
    STACK_FOUR_WARPS,
    STACK_BLOCK,
    STACK_REPLICAS,
    STACK_GRID
};

/* --- One warp, or a team of four for a batch: the usual kinds of networks at most 8 wide, which
 * have kernels without branches. */
enum {
    WARP_WIDTH_MOST = 8,
    WARP_LAYERS_LEAST = 2,
    WARP_LAYERS_MOST = 4,
    FOUR_WARPS_BATCH_MOST = 12, /* four samples for each of three warps */
};

static inline bool warp_takes(const struct chain *chain, int32_t batch)
{
    if (chain->layers < WARP_LAYERS_LEAST || chain->layers > WARP_LAYERS_MOST ||
        batch > FOUR_WARPS_BATCH_MOST || chain_widest(chain) > WARP_WIDTH_MOST)
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
static inline bool stack_can_activate(const struct chain *chain)
{
    for (int32_t l = 0; l < chain->layers; l++)
        if (chain->layer[l].activation == ACTIVATION_GELU && chain->loss_grad >= 0)
            return false;
    return true;
}

static inline enum stack_kind stack_choose(const struct chain *chain, int32_t batch,
                                           const struct stack_limits *limits)
{
    struct block_layout block;
    struct replicas_layout replicas;
    struct grid_layout grid;
    if (!stack_can_activate(chain) || (chain->probabilities && chain->loss_grad >= 0))
        return STACK_NONE;
    /* a warp has each weight several times: too often for a rule */
    if (warp_takes(chain, batch) && !chain->probabilities)
        return batch == 1 && chain->optimiser < 0 ? STACK_WARP : STACK_FOUR_WARPS;
    if (chain_widest(chain) <= BLOCK_WIDTH_MOST && batch <= BLOCK_THREADS_MOST) {
        block_lay_out(chain, batch, &block);
        if (block.threads <= BLOCK_THREADS_MOST && block.shared_bytes <= limits->shared_bytes)
            return STACK_BLOCK;
    }
    if (chain->probabilities) /* a softmax as a step's last act would slow all others */
        return STACK_NONE;
    if (chain_widest(chain) <= BLOCK_WIDTH_MOST &&
        replicas_lay_out(chain, batch, limits, &replicas))
        return STACK_REPLICAS;
    const bool plain = chain->optimiser < 0 && !chain->counts_sigmoid;
    return plain && grid_lay_out(chain, batch, limits, &grid) ? STACK_GRID : STACK_NONE;
}

#endif
