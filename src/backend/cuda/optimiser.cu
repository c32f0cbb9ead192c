/* optimiser.cu: the optimisers: one pass over a parameter, its gradient and its state. A rule does
 * one element: it is given the weight and the gradient, moves its state and returns the new weight.
 * The bound is the bytes: everything is read and written once. */
#include "backend/cuda/families.h"
#include "backend/cuda/narrow.h"
#include "backend/cuda/update.h"

/* `copy` is the parameter in 16 bits, if there is one. */
template <typename Rule>
static __global__ void update_each(int64_t count, float *w, float *g, bool clear, const float *rate,
                                   Rule rule, struct cells copy, const struct scaling *scaling)
{
    const bool skip = scaling_skips(scaling);
    const float down = scaling_down(scaling);
    FOR_EACH(index, count)
    {
        if (!skip) {
            const float moved = rule.step(index, w[index], g[index] * down, *rate);
            w[index] = moved;
            if (copy.data)
                cells_put(copy, index, moved);
        }
        if (clear)
            g[index] = 0.0f;
    }
}

/* Operands are `w g rate …`, outputs `w g? …`. */
template <typename Rule>
static void update(const struct call *call, struct queue *queue, const Rule &rule)
{
    const int64_t count = call_count(call, 0);
    const struct cells none = {}, copy = call->narrow && call_tensor(call, 0)->role == ROLE_PARAM
                                             ? narrow_copy(call->narrow, call_tensor(call, 0))
                                             : none;
    enqueue(queue, update_each<Rule>, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_reals(call, 0), call_reals(call, 1), call_has(call, call->op->inputs + 1),
            (const float *)call_reals(call, 2), rule, copy, call_scaling(call));
}

struct sgd_rule {
    float decay;
    __device__ float step(int64_t, float w, float g, float rate) const
    {
        return update_sgd(w, g + decay * w, rate);
    }
};

void launch_sgd(const struct call *call, struct queue *queue)
{
    update(call, queue, sgd_rule{call->op->attr.sgd.decay});
}

struct momentum_rule {
    float *velocity;
    float momentum, decay;
    bool nesterov;
    __device__ float step(int64_t index, float w, float g, float rate) const
    {
        const float slope = g + decay * w, v = momentum * velocity[index] + slope;
        velocity[index] = v;
        return w - rate * (nesterov ? slope + momentum * v : v);
    }
};

void launch_momentum(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.momentum;
    update(call, queue,
           momentum_rule{call_reals(call, 3), attr.momentum, attr.decay, attr.nesterov != 0});
}

struct adagrad_rule {
    float *squares;
    float epsilon, decay;
    __device__ float step(int64_t index, float w, float g, float rate) const
    {
        const float slope = g + decay * w, s = squares[index] + slope * slope;
        squares[index] = s;
        return w - rate * slope / (sqrtf(s) + epsilon);
    }
};

void launch_adagrad(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.adagrad;
    update(call, queue, adagrad_rule{call_reals(call, 3), attr.epsilon, attr.decay});
}

struct rmsprop_rule {
    float *squares;
    float smoothing, epsilon, decay;
    __device__ float step(int64_t index, float w, float g, float rate) const
    {
        const float slope = g + decay * w;
        const float s = smoothing * squares[index] + (1.0f - smoothing) * slope * slope;
        squares[index] = s;
        return w - rate * slope / (sqrtf(s) + epsilon);
    }
};

void launch_rmsprop(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.rmsprop;
    update(call, queue,
           rmsprop_rule{call_reals(call, 3), attr.smoothing, attr.epsilon, attr.decay});
}

static __global__ void adam_seen(const int32_t *count, float beta1, float beta2, float *seen)
{
    adam_see(*count, beta1, beta2, seen);
}

uint64_t workspace_adam(const struct program *, const struct op *)
{
    return 2 * sizeof(float);
}

void launch_adam(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.adam;
    float *seen = (float *)call->workspace;
    enqueue(queue, adam_seen, dim3(1), dim3(1), call_integers(call, 3), attr.beta1, attr.beta2,
            seen);
    update(call, queue,
           adam_rule{call_reals(call, 4), call_reals(call, 5), seen, attr.beta1, attr.beta2,
                     attr.epsilon, attr.decay, attr.decoupled != 0});
}

struct rprop_rule {
    const int32_t *count;
    float *before, *steps;
    float shrink, grow, least, most;
    __device__ float step(int64_t index, float w, float g, float rate) const
    {
        const float agree = g * before[index], slope = agree < 0.0f ? 0.0f : g;
        float size =
            *count == 0 || steps[index] == 0.0f ? rate : steps[index]; /* 0: left out so far */
        size *= agree > 0.0f ? grow : agree < 0.0f ? shrink : 1.0f;
        size = size < least ? least : size > most ? most : size;
        steps[index] = size;
        before[index] = slope;
        return w - (slope > 0.0f ? size : slope < 0.0f ? -size : 0.0f);
    }
};

void launch_rprop(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.rprop;
    update(call, queue,
           rprop_rule{call_integers(call, 3), call_reals(call, 4), call_reals(call, 5), attr.shrink,
                      attr.grow, attr.least, attr.most});
}
