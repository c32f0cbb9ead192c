/* stack_lanes.h: a sample as a group of 8, 16 or 32 lanes, a lane being a unit of the layer at
 * hand: what the kernels of narrow networks (stack_warp.cu, stack_four_warps.cu,
 * stack_block.cu) have in common. */
#ifndef PRONY_BACKEND_CUDA_STACK_LANES_H
#define PRONY_BACKEND_CUDA_STACK_LANES_H

#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/stack/stack_run.h"

struct block_net {
    struct stack_step step;
    struct block_layout layout;
    bool probabilities;   /* it stores the softmax of its outputs */
    struct any_rule rule; /* of kind OP_COUNT: plain sgd, or nothing is trained */
    struct learnt_layer layer[DENSE_STACK_MOST];
};

/* What is known when it is compiled saves branches in a chain where nothing hides them. */
enum { AS_IT_COMES = -1 };
template <int WIDTH_, int LAYERS_, int HIDDEN_, int LAST_, bool PROBABILITIES_ = false>
struct block_kind {
    static constexpr int WIDTH = WIDTH_;
    static constexpr int LAYERS = LAYERS_; /* 0: as many as there are */
    static constexpr int HIDDEN = HIDDEN_; /* enum activation, or AS_IT_COMES */
    static constexpr int LAST = LAST_;
    static constexpr bool PROBABILITIES = PROBABILITIES_; /* what is stored is a softmax */
    static __device__ int layers(const struct block_net *net)
    {
        return LAYERS ? LAYERS : net->step.layers;
    }
    static __device__ enum activation function(const struct block_net *net, int l)
    {
        if (HIDDEN == AS_IT_COMES)
            return net->layer[l].function;
        return (enum activation)(l == LAYERS - 1 ? LAST : HIDDEN);
    }
};

/* tanh is known when these are compiled, and need not be called. */
static inline __device__ float warp_activation(enum activation function, float x)
{
    return function == ACTIVATION_TANH ? tanhf(x) : stack_activation(function, x);
}

static inline __device__ float warp_derivative(enum activation function, float y)
{
    return function == ACTIVATION_TANH ? 1.0f - y * y : stack_derivative(function, y);
}

template <int WIDTH> static __device__ float group_max(float value)
{
#pragma unroll
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, apart, WIDTH));
    return value;
}

template <int WIDTH> static __device__ float group_sum(float value)
{
#pragma unroll
    for (int apart = WIDTH / 2; apart > 0; apart /= 2)
        value += __shfl_xor_sync(~0u, value, apart, WIDTH);
    return value;
}

struct judged {
    float gradient;    /* of the loss with respect to this lane's output */
    float loss, right; /* this lane's share */
};

/* The share of this lane's output in the softmax of `out` of them. */
template <int WIDTH> static __device__ float group_softmax(int out, float y)
{
    const bool counts = (int)threadIdx.x % WIDTH < out;
    const float most = group_max<WIDTH>(counts ? y : -INFINITY);
    const float e = counts ? expf(y - most) : 0.0f;
    return e / group_sum<WIDTH>(e);
}

/* The losses that are seldom asked for of narrow networks; called, not repeated. */
template <int WIDTH>
static __device__ __noinline__ struct judged judge_others(const struct stack_step *step,
                                                          bool counts, float y, float target)
{
    const int lane = (int)threadIdx.x % WIDTH, label = __float_as_int(target);
    struct judged judged = {};
    if (step->loss_kind == OP_binary_cross_entropy) {
        const float error = sigmoid(y) - target;
        judged.gradient = step->gradient * error;
        judged.right = fabsf(error) < step->half ? 1.0f : 0.0f;
        judged.loss = (fmaxf(y, 0.0f) - y * target + log1pf(expf(-fabsf(y)))) * step->share;
    } else {
        const float most = group_max<WIDTH>(counts ? y : -INFINITY);
        const float e = counts ? expf(y - most) : 0.0f, sum = group_sum<WIDTH>(e);
        judged.gradient = step->gradient * (e / sum - (lane == label ? 1.0f : 0.0f));
        judged.loss = lane == label ? (logf(sum) - (y - most)) * step->share : 0.0f;
    }
    return judged;
}

/* The mean square, and nobody asks what is right: what a step pays one branch for. */
static inline __device__ bool judges_plainly(const struct stack_step *step)
{
    return step->loss_kind == OP_mse && step->right_kind == OP_COUNT;
}

/* `target` is a number, or the bits of a label. Lanes from `out` on get zeros. */
template <int WIDTH>
static __device__ struct judged judge(const struct stack_step *step, bool plainly, int out, float y,
                                      float target)
{
    const int lane = (int)threadIdx.x % WIDTH, label = __float_as_int(target);
    const bool counts = lane < out;
    const float error = counts ? y - target : 0.0f;
    struct judged judged = {step->gradient * error, error * error * step->share, 0.0f};
    if (plainly)
        return judged;
    if (step->loss_kind != OP_mse)
        judged = judge_others<WIDTH>(step, counts, y, target);
    if (step->right_kind == OP_right_level) {
        judged.right = fabsf(y - target) < step->half ? 1.0f : 0.0f;
    } else if (step->right_kind == OP_right_class) {
        const float most = group_max<WIDTH>(counts ? y : -INFINITY);
        const unsigned group = (unsigned)(threadIdx.x % 32) / WIDTH * WIDTH;
        const unsigned best = __ballot_sync(~0u, counts && y == most) >> group;
        judged.right = lane == label && __ffs((int)best) - 1 == label ? 1.0f : 0.0f;
    }
    const struct judged nothing = {};
    return counts ? judged : nothing;
}

/* One lane's part of a sample: the row, its input and its target. */
struct sample {
    uint32_t row;
    float x, target;
};

/* Where a lane's samples come from; all that does not change from step to step is found once. */
struct source {
    const uint32_t *x, *target, *order; /* x and target: NULL for a lane that has none */
    uint32_t x_stride, target_stride;   /* from a row to the next */
    uint32_t samples, jump;             /* from a step to the next */
    __device__ source(const struct block_net *net, int lane, bool there);
    /* a step later; rows are numbered in 31 bits */
    __device__ uint32_t after(uint32_t place) const
    {
        place += jump;
        return place >= samples ? place - samples : place;
    }
    __device__ uint32_t row(uint32_t place) const
    {
        return order ? __ldg(&order[place]) : place;
    }
    __device__ struct sample fetch(uint32_t from) const
    {
        struct sample sample = {from, 0.0f, 0.0f};
        if (x)
            sample.x = __uint_as_float(__ldg(x + (uint64_t)from * x_stride));
        if (target)
            sample.target = __uint_as_float(__ldg(target + (uint64_t)from * target_stride));
        return sample;
    }
};

inline __device__ source::source(const struct block_net *net, int lane, bool there)
    : x(NULL), target(NULL), order(net->step.feed->order), x_stride((uint32_t)net->layer[0].in),
      target_stride((uint32_t)net->layer[net->step.layers - 1].out),
      samples((uint32_t)net->step.feed->samples), jump((uint32_t)net->step.batch % samples)
{
    const bool labels = net->step.loss_kind == OP_cross_entropy; /* one for all lanes */
    if (there && lane < (int)x_stride)
        x = net->step.x->data + lane;
    if (there && net->step.target && (labels || lane < (int)target_stride))
        target = net->step.target->data + (labels ? 0 : lane);
    target_stride = labels ? 1 : target_stride;
}

#endif
