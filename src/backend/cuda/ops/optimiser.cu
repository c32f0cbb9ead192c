/* optimiser.cu: the optimisers: one pass over a parameter, its gradient and what is kept of it
 * (optimiser_rules.h has the rules). The bound is the bytes: everything is read and written once.
 */
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"

/* Where a step's pace is found. */
struct pace_source {
    const float *rate, *seen; /* seen: adam's, or NULL */
    const int32_t *count;     /* or NULL */
};

static __device__ struct pace pace_of(const struct pace_source &from)
{
    struct pace pace = {*from.rate, {}, from.count ? *from.count : 0};
    if (from.seen) {
        pace.seen[0] = from.seen[0];
        pace.seen[1] = from.seen[1];
    }
    return pace;
}

/* `copy` is the parameter in 16 bits, if there is one. */
template <typename Rule>
static __global__ void update_each(int64_t count, float *w, float *g, bool clear, Rule rule,
                                   struct pace_source from, float *first, float *second,
                                   struct cells copy, const struct loss_scale *loss_scale)
{
    const bool skip = loss_scale_skips(loss_scale);
    const float down = loss_scale_down(loss_scale);
    const struct pace pace = pace_of(from);
    FOR_EACH(index, count)
    {
        if (!skip) {
            float kept[2] = {Rule::KEPT > 0 ? first[index] : 0.0f,
                             Rule::KEPT > 1 ? second[index] : 0.0f};
            const float moved = rule.step(w[index], g[index] * down, pace, kept);
            w[index] = moved;
            if (Rule::KEPT > 0)
                first[index] = kept[0];
            if (Rule::KEPT > 1)
                second[index] = kept[1];
            if (copy.data)
                cells_put(copy, index, moved);
        }
        if (clear)
            g[index] = 0.0f;
    }
}

/* Operands are `w g rate count? kept…`, outputs `w g? kept…`. */
template <typename Rule>
static void update(const struct call *call, struct queue *queue, const Rule &rule,
                   const float *seen = NULL)
{
    const int64_t count = call_count(call, AT_sgd_w);
    const struct cells none = {}, copy = call->mixed && call_tensor(call, 0)->role == ROLE_PARAM
                                             ? mixed_copy(call->mixed, call_tensor(call, 0))
                                             : none;
    const int32_t kept = call->op->inputs - Rule::KEPT;
    const struct pace_source from = {call_reals(call, AT_adam_rate), seen,
                                     kept > 3 ? call_integers(call, AT_adam_count) : NULL};
    enqueue(queue, update_each<Rule>, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_reals(call, AT_adam_w), call_reals(call, AT_adam_g),
            call_has(call, call->op->inputs + 1), rule, from,
            Rule::KEPT > 0 ? call_reals(call, kept) : (float *)NULL,
            Rule::KEPT > 1 ? call_reals(call, kept + 1) : (float *)NULL, copy,
            call_loss_scale(call));
}

void launch_sgd(const struct call *call, struct queue *queue)
{
    update(call, queue, rule_of(call->op).sgd);
}

void launch_momentum(const struct call *call, struct queue *queue)
{
    update(call, queue, rule_of(call->op).momentum);
}

void launch_adagrad(const struct call *call, struct queue *queue)
{
    update(call, queue, rule_of(call->op).adagrad);
}

void launch_rmsprop(const struct call *call, struct queue *queue)
{
    update(call, queue, rule_of(call->op).rmsprop);
}

static __global__ void adam_see(const int32_t *count, struct adam_rule rule, float *seen)
{
    seen[threadIdx.x] = adam_seen(rule, threadIdx.x == 1, *count);
}

uint64_t workspace_adam(const struct program *, const struct op *)
{
    return 2 * sizeof(float);
}

void launch_adam(const struct call *call, struct queue *queue)
{
    const struct adam_rule rule = rule_of(call->op).adam;
    float *seen = (float *)call->workspace;
    enqueue(queue, adam_see, dim3(1), dim3(2), call_integers(call, AT_adam_count), rule, seen);
    update(call, queue, rule, seen);
}

void launch_rprop(const struct call *call, struct queue *queue)
{
    update(call, queue, rule_of(call->op).rprop);
}
