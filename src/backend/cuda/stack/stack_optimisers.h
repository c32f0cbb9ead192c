/* stack_optimisers.h: optimisers in kernels of many steps (stack_four_warps.cu, stack_block.cu,
 * stack_replicas.cu): the update of one weight by whichever was asked for, and what it must
 * know of each step. */
#ifndef PRONY_BACKEND_CUDA_STACK_OPTIMISERS_H
#define PRONY_BACKEND_CUDA_STACK_OPTIMISERS_H

#include "backend/cuda/stack/stack_lanes.h"

/* The rule of plain sgd. */
struct plain_rule {
    static constexpr int KEPT = 0;
    __device__ float step(float w, float g, const struct pace &pace, float *) const
    {
        return update_sgd(w, g, pace.rate);
    }
};

/* Calls visit(rule) with the one that was asked for. */
template <typename Visit>
static inline __device__ void rule_visit(const struct any_rule &rule, Visit visit)
{
    switch (rule.kind) {
    case OP_adam: visit(rule.adam); break;
    case OP_momentum: visit(rule.momentum); break;
    case OP_sgd: visit(rule.sgd); break;
    case OP_adagrad: visit(rule.adagrad); break;
    case OP_rmsprop: visit(rule.rmsprop); break;
    default: visit(rule.rprop);
    }
}

/* By one warp: the paces of the steps from update number `count` on. A power in double takes about
 * as long as a step: 32 lanes make both powers of 16 steps at once. PLAIN: sgd's. */
template <bool PLAIN>
static __device__ __noinline__ void paces_make(const struct stack_step *step,
                                               const struct any_rule *rule, int32_t count,
                                               struct pace *paces)
{
    const int k = (int)threadIdx.x % PACES;
    const bool squares = threadIdx.x % 32 >= PACES;
    if (!PLAIN && rule->kind == OP_adam)
        paces[k].seen[squares] = adam_seen(rule->adam, squares, count + k);
    if (squares)
        return;
    paces[k].rate = stack_rate(step, count + k);
    paces[k].count = count + k;
}

#endif
