/* stack_choice.h: which kernel runs a whole program: rows that are asked in order. C and CUDA. */
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

static inline bool warp_takes(const struct dense_stack *dense, int32_t batch)
{
    if (dense->layers < WARP_LAYERS_LEAST || dense->layers > WARP_LAYERS_MOST ||
        batch > FOUR_WARPS_BATCH_MOST || dense_widest(dense) > WARP_WIDTH_MOST)
        return false;
    const enum activation hidden = dense->layer[0].activation;
    const enum activation last = dense->layer[dense->layers - 1].activation;
    for (int32_t l = 0; l < dense->layers - 1; l++)
        if (dense->layer[l].activation != hidden)
            return false;
    if (last != ACTIVATION_NONE)
        return hidden == ACTIVATION_SIGMOID && last == ACTIVATION_SIGMOID;
    return hidden == ACTIVATION_SIGMOID || hidden == ACTIVATION_RELU || hidden == ACTIVATION_TANH;
}

/* --- The choice. Slopes are computed from outputs, which gelu's cannot. */
static inline bool stack_can_activate(const struct dense_stack *dense)
{
    for (int32_t l = 0; l < dense->layers; l++)
        if (dense->layer[l].activation == ACTIVATION_GELU && dense->loss_grad >= 0)
            return false;
    return true;
}

/* --- The rows, in the order of enum stack_kind, in which they are asked. Only a block makes
 * probabilities: a softmax as a step's last act would slow all others. */
typedef bool stack_takes(const struct dense_stack *dense, int32_t batch,
                         const struct stack_limits *limits);

static inline bool stack_four_warps_takes(const struct dense_stack *dense, int32_t batch,
                                          const struct stack_limits *limits)
{
    (void)limits;
    return warp_takes(dense, batch) && !dense->probabilities;
}

/* Plain sgd only: a warp has each weight several times, too often for another rule. */
static inline bool stack_warp_takes(const struct dense_stack *dense, int32_t batch,
                                    const struct stack_limits *limits)
{
    return batch == 1 && dense->optimiser < 0 && stack_four_warps_takes(dense, batch, limits);
}

static inline bool stack_block_takes(const struct dense_stack *dense, int32_t batch,
                                     const struct stack_limits *limits)
{
    struct block_layout layout;
    if (dense_widest(dense) > BLOCK_WIDTH_MOST || batch > BLOCK_THREADS_MOST)
        return false;
    block_lay_out(dense, batch, &layout);
    return layout.threads <= BLOCK_THREADS_MOST && layout.shared_bytes <= limits->shared_bytes;
}

static inline bool stack_replicas_takes(const struct dense_stack *dense, int32_t batch,
                                        const struct stack_limits *limits)
{
    struct replicas_layout layout;
    return !dense->probabilities && dense_widest(dense) <= BLOCK_WIDTH_MOST &&
           replicas_lay_out(dense, batch, limits, &layout);
}

static inline bool stack_grid_takes(const struct dense_stack *dense, int32_t batch,
                                    const struct stack_limits *limits)
{
    struct grid_layout layout;
    return !dense->probabilities && dense->optimiser < 0 && !dense->counts_sigmoid &&
           grid_lay_out(dense, batch, limits, &layout);
}

static inline enum stack_kind stack_choose(const struct dense_stack *dense, int32_t batch,
                                           const struct stack_limits *limits)
{
    static stack_takes *const rows[] = {stack_warp_takes, stack_four_warps_takes, stack_block_takes,
                                        stack_replicas_takes, stack_grid_takes};
    if (!stack_can_activate(dense) || (dense->probabilities && dense->loss_grad >= 0))
        return STACK_NONE;
    for (int row = 0; row < STACK_GRID; row++)
        if (rows[row](dense, batch, limits))
            return (enum stack_kind)(row + 1);
    return STACK_NONE;
}

#endif
