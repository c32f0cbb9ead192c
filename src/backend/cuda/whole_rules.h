/* whole_rules.h: optimisers in kernels of many steps (whole_team.cu, whole_block.cu): the update of
 * one weight by whichever was asked for, and what it must know of each step. */
#ifndef PRONY_BACKEND_CUDA_WHOLE_RULES_H
#define PRONY_BACKEND_CUDA_WHOLE_RULES_H

#include "backend/cuda/whole_lanes.h"

/* The rules that are seldom asked for; called, not repeated. x is the weight, y and z are kept of
 * it, w is the gradient; the same come back. */
static __device__ __noinline__ float4 rule_others(const struct any_rule *rule, float4 of,
                                                  float rate, int32_t count)
{
    const struct pace pace = {rate, {}, count};
    float kept[2] = {of.y, of.z};
    switch (rule->kind) {
    case OP_sgd: of.x = rule->sgd.step(of.x, of.w, pace, kept); break;
    case OP_adagrad: of.x = rule->adagrad.step(of.x, of.w, pace, kept); break;
    case OP_rmsprop: of.x = rule->rmsprop.step(of.x, of.w, pace, kept); break;
    default: of.x = rule->rprop.step(of.x, of.w, pace, kept);
    }
    return make_float4(of.x, kept[0], kept[1], of.w);
}

/* The new weight; what is kept of it moves, too. */
static inline __device__ float rule_step(const struct any_rule *rule, float w, float g,
                                         const struct pace &pace, float (&kept)[2])
{
    if (rule->kind == OP_adam)
        return rule->adam.step(w, g, pace, kept);
    if (rule->kind == OP_momentum)
        return rule->momentum.step(w, g, pace, kept);
    const float4 moved =
        rule_others(rule, make_float4(w, kept[0], kept[1], g), pace.rate, pace.count);
    kept[0] = moved.y;
    kept[1] = moved.z;
    return moved.x;
}

/* By one warp: the paces of the steps from update number `count` on. A power in double takes about
 * as long as a step: 32 lanes make both powers of 16 steps at once. PLAIN: sgd's. */
template <bool PLAIN>
static __device__ __noinline__ void paces_make(const struct block_net *net, int32_t count,
                                               struct pace *paces)
{
    const int k = (int)threadIdx.x % PACES;
    const bool squares = threadIdx.x % 32 >= PACES;
    if (!PLAIN && net->rule.kind == OP_adam)
        paces[k].seen[squares] = adam_seen(net->rule.adam, squares, count + k);
    if (squares)
        return;
    paces[k].rate = whole_rate(&net->step, count + k);
    paces[k].count = count + k;
}

#endif
