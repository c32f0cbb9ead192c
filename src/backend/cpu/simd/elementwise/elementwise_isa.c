/* elementwise_isa.c: ops that treat every element alike: functions and their derivatives, sums and
 * products, optimisers; compiled once per ISA.
 *
 * The bound is bytes: each operand is read or written once, by all threads together when there is
 * enough for them. Each element is computed from its own alone, and the norm of gradients from
 * pieces of them (sums.h), so the bits do not depend on the number of threads. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/dense/dense_shared.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/sums.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { SPAN = 1024 }; /* elements: a thread has a multiple of it */

typedef void span_run(const struct call *call, int64_t from, int64_t to);

struct spans {
    const struct call *call;
    span_run *run;
    int64_t count;
};

static void span_member(void *context, int member, int members)
{
    const struct spans *spans = context;
    long from, to;
    pool_share(spans->count, SPAN, member, members, &from, &to);
    if (from < to)
        spans->run(spans->call, from, to);
}

/* The operands have as many elements as the first; those that have fewer are read by all. */
static void run_spans(const struct call *call, span_run *run)
{
    struct spans spans = {call, run, call->counts[0]};
    int64_t bytes = spans.count * (int64_t)sizeof(float) * (call->op->inputs + call->op->outputs);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, spans.count / SPAN), span_member,
             &spans);
}

#define EACH_VECTOR(i, from, to) for (int64_t i = from; i < to; i += VEC_LANES)

static void span_activate(const struct call *call, int64_t from, int64_t to)
{
    activate_alpha_span(call->op->attr.activate.function, call->op->attr.activate.alpha,
                        floats(call, AT_activate_x) + from, floats(call, AT_activate_y) + from,
                        to - from);
}

static void span_activate_grad(const struct call *call, int64_t from, int64_t to)
{
    activate_grad_span(call->op->attr.activate_grad.function, call->op->attr.activate_grad.alpha,
                       floats(call, AT_activate_grad_saved) + from,
                       floats(call, AT_activate_grad_dy) + from,
                       floats(call, AT_activate_grad_dx) + from, to - from);
}

static void span_bound(const struct call *call, int64_t from, int64_t to)
{
    const float *x = floats(call, AT_bound_x);
    float *y = floats(call, AT_bound_y);
    vec low = vec_set(call->op->attr.bound.low), high = vec_set(call->op->attr.bound.high);
    EACH_VECTOR(i, from, to)
    vec_store_part(y + i, vec_bound(vec_load_part(x + i, to - i), low, high), to - i);
}

static void span_bound_grad(const struct call *call, int64_t from, int64_t to)
{
    const float *y = floats(call, AT_bound_grad_y), *dy = floats(call, AT_bound_grad_dy);
    float *dx = floats(call, AT_bound_grad_dx);
    vec low = vec_set(call->op->attr.bound_grad.low),
        high = vec_set(call->op->attr.bound_grad.high);
    EACH_VECTOR(i, from, to)
    {
        vec at = vec_load_part(y + i, to - i), gradient = vec_load_part(dy + i, to - i);
        gradient = vec_choose_positive(vec_sub(at, low), gradient, vec_zero());
        gradient = vec_choose_positive(vec_sub(high, at), gradient, vec_zero());
        vec_store_part(dx + i, gradient, to - i);
    }
}

static void span_add(const struct call *call, int64_t from, int64_t to)
{
    const float *a = floats(call, AT_add_a), *b = floats(call, AT_add_b);
    float *y = floats(call, AT_add_y);
    EACH_VECTOR(i, from, to)
    vec_store_part(y + i, vec_add(vec_load_part(a + i, to - i), vec_load_part(b + i, to - i)),
                   to - i);
}

static void span_multiply(const struct call *call, int64_t from, int64_t to)
{
    const float *a = floats(call, AT_multiply_a), *b = floats(call, AT_multiply_b);
    float *y = floats(call, AT_multiply_y);
    EACH_VECTOR(i, from, to)
    vec_store_part(y + i, vec_mul(vec_load_part(a + i, to - i), vec_load_part(b + i, to - i)),
                   to - i);
}

static void span_divide(const struct call *call, int64_t from, int64_t to)
{
    const float *a = floats(call, AT_divide_a), *b = floats(call, AT_divide_b);
    float *y = floats(call, AT_divide_y);
    EACH_VECTOR(i, from, to)
    vec_store_part(y + i, vec_div(vec_load_part(a + i, to - i), vec_load_part(b + i, to - i)),
                   to - i);
}

static void span_divide_grad(const struct call *call, int64_t from, int64_t to)
{
    const float *b = floats(call, AT_divide_grad_b), *y = floats(call, AT_divide_grad_y),
                *dy = floats(call, AT_divide_grad_dy);
    float *db = floats(call, AT_divide_grad_db);
    EACH_VECTOR(i, from, to)
    {
        vec ratio = vec_div(vec_load_part(y + i, to - i), vec_load_part(b + i, to - i));
        vec_store_part(db + i, vec_mul(vec_negative(vec_load_part(dy + i, to - i)), ratio), to - i);
    }
}

static void span_mse_grad(const struct call *call, int64_t from, int64_t to)
{
    const float *y = floats(call, AT_mse_grad_y), *target = floats(call, AT_mse_grad_target);
    float *dy = floats(call, AT_mse_grad_dy);
    vec scale = vec_set(call->op->attr.mse_grad.scale * 2 / (float)call->counts[0]);
    EACH_VECTOR(i, from, to)
    {
        vec d = vec_sub(vec_load_part(y + i, to - i), vec_load_part(target + i, to - i));
        vec_store_part(dy + i, vec_mul(scale, d), to - i);
    }
}

static void span_binary_cross_entropy_grad(const struct call *call, int64_t from, int64_t to)
{
    const float *x = floats(call, AT_binary_cross_entropy_grad_x),
                *target = floats(call, AT_binary_cross_entropy_grad_target);
    float *dx = floats(call, AT_binary_cross_entropy_grad_dx);
    vec scale = vec_set(call->op->attr.binary_cross_entropy_grad.scale / (float)call->counts[0]);
    EACH_VECTOR(i, from, to)
    {
        vec d =
            vec_sub(vec_sigmoid(vec_load_part(x + i, to - i)), vec_load_part(target + i, to - i));
        vec_store_part(dx + i, vec_mul(scale, d), to - i);
    }
}

/* The optimisers, as ref_optimiser.c states them. Operands: w, g, rate, (count,) states … Of the
 * states, what lies `below` floats before comes into L2. */
enum { W, G, RATE };

/* g + decay·w */
static inline vec gradient_at(const struct call *call, int64_t i, int64_t to, float decay)
{
    return vec_fma(vec_set(decay), vec_load_part(floats(call, W) + i, to - i),
                   vec_load_part(floats(call, G) + i, to - i));
}

/* An accumulated gradient (the second output) starts anew. */
static void clear_gradient(const struct call *call, int64_t from, int64_t to)
{
    float *cleared = floats(call, call->op->inputs + 1);
    if (cleared)
        memset(cleared + from, 0, (size_t)(to - from) * sizeof *cleared);
}

/* w -= rate · by */
static inline void step_weight(const struct call *call, int64_t i, int64_t to, vec rate, vec by)
{
    float *w = floats(call, W) + i;
    vec_store_part(w, vec_fnma(rate, by, vec_load_part(w, to - i)), to - i);
}

static void step_sgd(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    vec rate = vec_set(*floats(call, RATE));
    EACH_VECTOR(i, from, to)
    {
        vec_prefetch(floats(call, W) + i - below);
        step_weight(call, i, to, rate, gradient_at(call, i, to, call->op->attr.sgd.decay));
    }
    clear_gradient(call, from, to);
}

static void step_momentum(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    float *velocity = floats(call, AT_momentum_velocity), decay = call->op->attr.momentum.decay;
    vec rate = vec_set(*floats(call, RATE)), momentum = vec_set(call->op->attr.momentum.momentum);
    bool nesterov = call->op->attr.momentum.nesterov;
    EACH_VECTOR(i, from, to)
    {
        vec gradient = gradient_at(call, i, to, decay);
        vec v = vec_fma(momentum, vec_load_part(velocity + i, to - i), gradient);
        vec_prefetch(velocity + i - below);
        vec_store_part(velocity + i, v, to - i);
        step_weight(call, i, to, rate, nesterov ? vec_fma(momentum, v, gradient) : v);
    }
    clear_gradient(call, from, to);
}

/* gradient / (√squares + ε) */
static inline vec by_root(vec gradient, vec squares, float epsilon)
{
    return vec_div(gradient, vec_add(vec_sqrt(squares), vec_set(epsilon)));
}

static void step_adagrad(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    float *squares = floats(call, AT_adagrad_squares), decay = call->op->attr.adagrad.decay;
    vec rate = vec_set(*floats(call, RATE));
    EACH_VECTOR(i, from, to)
    {
        vec gradient = gradient_at(call, i, to, decay);
        vec s = vec_fma(gradient, gradient, vec_load_part(squares + i, to - i));
        vec_prefetch(squares + i - below);
        vec_store_part(squares + i, s, to - i);
        step_weight(call, i, to, rate, by_root(gradient, s, call->op->attr.adagrad.epsilon));
    }
    clear_gradient(call, from, to);
}

static void step_rmsprop(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    float *squares = floats(call, AT_rmsprop_squares), decay = call->op->attr.rmsprop.decay;
    float smoothing = call->op->attr.rmsprop.smoothing;
    vec rate = vec_set(*floats(call, RATE)), keep = vec_set(smoothing),
        take = vec_set(1 - smoothing);
    EACH_VECTOR(i, from, to)
    {
        vec gradient = gradient_at(call, i, to, decay);
        vec s = vec_mul(keep, vec_load_part(squares + i, to - i));
        s = vec_fma(vec_mul(take, gradient), gradient, s);
        vec_prefetch(squares + i - below);
        vec_store_part(squares + i, s, to - i);
        step_weight(call, i, to, rate, by_root(gradient, s, call->op->attr.rmsprop.epsilon));
    }
    clear_gradient(call, from, to);
}

static void step_adam(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    float *w = floats(call, W), *mean = floats(call, AT_adam_mean),
          *squares = floats(call, AT_adam_squares);
    float beta1 = call->op->attr.adam.beta1, beta2 = call->op->attr.adam.beta2;
    float decay = call->op->attr.adam.decay, rate = *floats(call, RATE);
    double step = *(const int32_t *)call->data[AT_adam_count] + 1;
    float seen1 = (float)(1 - pow((double)beta1, step));
    float seen2 = sqrtf((float)(1 - pow((double)beta2, step)));
    bool decoupled = call->op->attr.adam.decoupled;
    vec rates = vec_set(rate / seen1), roots = vec_set(1 / seen2);
    vec shrink = vec_set(decoupled ? rate * decay : 0),
        epsilon = vec_set(call->op->attr.adam.epsilon);
    EACH_VECTOR(i, from, to)
    {
        vec gradient = gradient_at(call, i, to, decoupled ? 0 : decay),
            weight = vec_load_part(w + i, to - i);
        vec m = vec_mul(vec_set(beta1), vec_load_part(mean + i, to - i));
        vec s = vec_mul(vec_set(beta2), vec_load_part(squares + i, to - i));
        m = vec_fma(vec_set(1 - beta1), gradient, m);
        s = vec_fma(vec_mul(vec_set(1 - beta2), gradient), gradient, s);
        vec_prefetch(mean + i - below);
        vec_store_part(mean + i, m, to - i);
        vec_prefetch(squares + i - below);
        vec_store_part(squares + i, s, to - i);
        vec by = vec_div(m, vec_fma(vec_sqrt(s), roots, epsilon));
        weight = vec_fnma(shrink, weight, weight);
        vec_store_part(w + i, vec_fnma(rates, by, weight), to - i);
    }
    clear_gradient(call, from, to);
}

static void step_rprop(const struct call *call, int64_t from, int64_t to, int64_t below)
{
    float *w = floats(call, W), *before = floats(call, AT_rprop_before),
          *steps = floats(call, AT_rprop_step);
    const float *g = floats(call, G);
    bool first = *(const int32_t *)call->data[AT_rprop_count] == 0;
    vec one = vec_set(1), shrink = vec_set(call->op->attr.rprop.shrink);
    vec grow = vec_set(call->op->attr.rprop.grow), rate = vec_set(*floats(call, RATE));
    vec least = vec_set(call->op->attr.rprop.least), most = vec_set(call->op->attr.rprop.most);
    EACH_VECTOR(i, from, to)
    {
        vec gradient = vec_load_part(g + i, to - i);
        vec agree = vec_mul(gradient, vec_load_part(before + i, to - i));
        vec turned = vec_negative(agree);
        vec step = first ? rate : vec_load_part(steps + i, to - i);
        step = vec_mul(step,
                       vec_choose_positive(agree, grow, vec_choose_positive(turned, shrink, one)));
        step = vec_min(vec_max(step, least), most);
        gradient = vec_choose_positive(turned, vec_zero(), gradient);
        vec down = vec_choose_positive(vec_negative(gradient), vec_negative(step), vec_zero());
        vec by = vec_choose_positive(gradient, step, down);
        vec_prefetch(before + i - below);
        vec_prefetch(steps + i - below);
        vec_store_part(steps + i, step, to - i);
        vec_store_part(before + i, gradient, to - i);
        vec_store_part(w + i, vec_sub(vec_load_part(w + i, to - i), by), to - i);
    }
    clear_gradient(call, from, to);
}

#define OPTIMISERS(EACH) EACH(sgd) EACH(momentum) EACH(adagrad) EACH(rmsprop) EACH(adam) EACH(rprop)
#define DEFINE_SPAN(op)                                                                            \
    static void span_##op(const struct call *call, int64_t from, int64_t to)                       \
    {                                                                                              \
        step_##op(call, from, to, 0);                                                              \
    }
OPTIMISERS(DEFINE_SPAN)

void ISA(update_span)(const struct call *call, int64_t count)
{
#define STEP(op)                                                                                   \
    case OP_##op: step_##op(call, 0, count, count); return;
    switch (call->op->kind) {
        OPTIMISERS(STEP)
    default: assert(false);
    }
}

static float squares_piece(const void *context, int64_t from, int64_t to)
{
    const float *x = context;
    vec a = vec_zero(), b = vec_zero();
    for (int64_t i = from; i < to; i += 2 * VEC_LANES) {
        vec left = vec_load_part(x + i, to - i), right = vec_zero();
        if (to - i > VEC_LANES)
            right = vec_load_part(x + i + VEC_LANES, to - i - VEC_LANES);
        a = vec_fma(left, left, a);
        b = vec_fma(right, right, b);
    }
    return vec_sum(vec_add(a, b));
}

struct scaled {
    float *x, by;
    int64_t count;
};

static void scale_member(void *context, int member, int members)
{
    const struct scaled *scaled = context;
    vec scale = vec_set(scaled->by);
    long from, to;
    pool_share(scaled->count, SPAN, member, members, &from, &to);
    EACH_VECTOR(i, from, to)
    vec_store_part(scaled->x + i, vec_mul(scale, vec_load_part(scaled->x + i, to - i)), to - i);
}

/* All gradients together are scaled down to the norm `limit` when theirs is larger. */
static void run_clip(const struct call *call)
{
    float sum = 0, limit = call->op->attr.clip.limit;
    for (int g = 0; g < call->op->inputs; g++) {
        int64_t count = call->counts[g];
        sum += sum_pieces(call->pool, squares_piece, floats(call, g), count, SPAN,
                          count * (int64_t)sizeof(float));
    }
    float norm = sqrtf(sum);
    if (!(norm > limit))
        return;
    for (int g = 0; g < call->op->inputs; g++) {
        struct scaled scaled = {floats(call, g), limit / norm, call->counts[g]};
        int64_t bytes = 2 * scaled.count * (int64_t)sizeof(float);
        pool_run(call->pool, team_for_bytes(call->pool, bytes, scaled.count / SPAN), scale_member,
                 &scaled);
    }
}

/* An op's kernel from its span. Updates, and sums of gradients, treat weights in blocks alike. */
#define ELEMENTWISE(EACH)                                                                          \
    EACH(activate, FORM_PLAIN)                                                                     \
    EACH(activate_grad, FORM_PLAIN)                                                                \
    EACH(add, FORM_ANY)                                                                            \
    EACH(bound, FORM_PLAIN)                                                                        \
    EACH(bound_grad, FORM_PLAIN)                                                                   \
    EACH(multiply, FORM_PLAIN)                                                                     \
    EACH(divide, FORM_PLAIN)                                                                       \
    EACH(divide_grad, FORM_PLAIN)                                                                  \
    EACH(mse_grad, FORM_PLAIN)                                                                     \
    EACH(binary_cross_entropy_grad, FORM_PLAIN)                                                    \
    EACH(sgd, FORM_ANY)                                                                            \
    EACH(momentum, FORM_ANY)                                                                       \
    EACH(adagrad, FORM_ANY)                                                                        \
    EACH(rmsprop, FORM_ANY)                                                                        \
    EACH(adam, FORM_ANY)                                                                           \
    EACH(rprop, FORM_ANY)
#define DEFINE(op, weights)                                                                        \
    static void run_##op(const struct call *call)                                                  \
    {                                                                                              \
        run_spans(call, span_##op);                                                                \
    }
ELEMENTWISE(DEFINE)

#define SPAN_ROW(kind, weights) {ROW(kind), .form = weights},
static const struct kernel rows[] = {
    ELEMENTWISE(SPAN_ROW){ROW(clip), .form = FORM_ANY},
};

const struct kernel_list ISA(elementwise_list) = KERNEL_LIST(rows);
