/* optimiser_rules.h: the steps of optimisers, one element, for whoever does them: the same bits
 * whether an op of its own does it, the ending of a fused product, one kernel for many parameters,
 * or one for many steps.
 *
 * A rule is what an optimiser was asked for. Given a weight and its gradient it moves what is kept
 * of the weight (KEPT numbers) and returns the new weight. */
#ifndef PRONY_BACKEND_CUDA_OPTIMISER_RULES_H
#define PRONY_BACKEND_CUDA_OPTIMISER_RULES_H

extern "C" {
#include "core/program.h"
}

static inline __device__ float update_sgd(float w, float g, float rate)
{
    return w - rate * g;
}

/* What is the same for all weights of a step. */
struct alignas(16) pace {
    float rate;
    float seen[2]; /* adam: of the mean and of the squares; adam_seen */
    int32_t count; /* of updates before this one */
};

struct sgd_rule {
    static constexpr int KEPT = 0;
    float decay;
    __device__ float step(float w, float g, const struct pace &pace, float *) const
    {
        return update_sgd(w, g + decay * w, pace.rate);
    }
};

struct momentum_rule {
    static constexpr int KEPT = 1;
    float momentum, decay;
    int32_t nesterov;
    __device__ float step(float w, float g, const struct pace &pace, float *velocity) const
    {
        const float slope = g + decay * w, v = momentum * *velocity + slope;
        *velocity = v;
        return w - pace.rate * (nesterov ? slope + momentum * v : v);
    }
};

struct adagrad_rule {
    static constexpr int KEPT = 1;
    float epsilon, decay;
    __device__ float step(float w, float g, const struct pace &pace, float *squares) const
    {
        const float slope = g + decay * w, s = *squares + slope * slope;
        *squares = s;
        return w - pace.rate * slope / (sqrtf(s) + epsilon);
    }
};

struct rmsprop_rule {
    static constexpr int KEPT = 1;
    float smoothing, epsilon, decay;
    __device__ float step(float w, float g, const struct pace &pace, float *squares) const
    {
        const float slope = g + decay * w;
        const float s = smoothing * *squares + (1.0f - smoothing) * slope * slope;
        *squares = s;
        return w - pace.rate * slope / (sqrtf(s) + epsilon);
    }
};

struct adam_rule {
    static constexpr int KEPT = 2; /* mean, squares */
    float beta1, beta2, epsilon, decay;
    int32_t decoupled;
    __device__ float step(float w, float g, const struct pace &pace, float *kept) const
    {
        const float slope = decoupled ? g : g + decay * w;
        const float m = beta1 * kept[0] + (1.0f - beta1) * slope;
        const float s = beta2 * kept[1] + (1.0f - beta2) * slope * slope;
        kept[0] = m;
        kept[1] = s;
        if (decoupled)
            w -= pace.rate * decay * w;
        return w - pace.rate / pace.seen[0] * m / (sqrtf(s) / pace.seen[1] + epsilon);
    }
};

/* pace.seen of both: 1 - β1^step, √(1 - β2^step). By one thread, for all elements. */
static inline __device__ float adam_seen(const struct adam_rule &rule, bool squares, int32_t count)
{
    const double beta = (double)(squares ? rule.beta2 : rule.beta1), step = count + 1;
    const float seen = (float)(1.0 - pow(beta, step));
    return squares ? sqrtf(seen) : seen;
}

struct rprop_rule {
    static constexpr int KEPT = 2; /* the gradient before, the step's size */
    float shrink, grow, least, most;
    __device__ float step(float w, float g, const struct pace &pace, float *kept) const
    {
        const float agree = g * kept[0], slope = agree < 0.0f ? 0.0f : g;
        float size = pace.count == 0 || kept[1] == 0.0f ? pace.rate : kept[1]; /* 0: left out */
        size *= agree > 0.0f ? grow : agree < 0.0f ? shrink : 1.0f;
        size = size < least ? least : size > most ? most : size;
        kept[0] = slope;
        kept[1] = size;
        return w - (slope > 0.0f ? size : slope < 0.0f ? -size : 0.0f);
    }
};

/* Any of them. */
struct any_rule {
    enum op_kind kind;
    union {
        struct sgd_rule sgd;
        struct momentum_rule momentum;
        struct adagrad_rule adagrad;
        struct rmsprop_rule rmsprop;
        struct adam_rule adam;
        struct rprop_rule rprop;
    };
};

/* Of an optimiser's op. */
static inline struct any_rule rule_of(const struct op *op)
{
    struct any_rule rule = {};
    const auto &attr = op->attr;
    rule.kind = op->kind;
    switch (op->kind) {
    case OP_sgd: rule.sgd = {attr.sgd.decay}; break;
    case OP_momentum:
        rule.momentum = {attr.momentum.momentum, attr.momentum.decay, attr.momentum.nesterov};
        break;
    case OP_adagrad: rule.adagrad = {attr.adagrad.epsilon, attr.adagrad.decay}; break;
    case OP_rmsprop:
        rule.rmsprop = {attr.rmsprop.smoothing, attr.rmsprop.epsilon, attr.rmsprop.decay};
        break;
    case OP_adam:
        rule.adam = {attr.adam.beta1, attr.adam.beta2, attr.adam.epsilon, attr.adam.decay,
                     attr.adam.decoupled};
        break;
    default: rule.rprop = {attr.rprop.shrink, attr.rprop.grow, attr.rprop.least, attr.rprop.most};
    }
    return rule;
}

#endif
