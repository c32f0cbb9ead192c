/* dense_stack_isa.c: the steps of dense_stack.h for one sample, compiled once per ISA; those of a
 * batch are in dense_stack_batch_isa.c.
 *
 * Weights and gradients are padded with zeros that stay 0: lanes beyond a layer's outputs, rows
 * beyond its inputs. An output's padding is what the activation makes of 0. */
#include "backend/cpu/simd/stack/dense_stack_vec.h"
#include "backend/cpu/simd/vec_activate.h"

/* From memory a lane's number is broadcast by one instruction. */
static const int32_t lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static inline int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- one sample, every layer within one vector ---- */

/* start + Σ x[q][i]·w[i] for `samples` samples, as two chains of additions each. A row more than n
 * may be read: it is 0. The inputs are in `rows`, or where there are none in the lanes of x: what
 * was written number by number just before can be read so at once, but not as a vector. */
static inline __attribute__((always_inline)) void
narrow_product(int samples, const float *const *rows, const vec *x, int32_t n, const float *w,
               vec start, vec *sums)
{
    static const float nothing = 0;
    vec other[2];
#define INPUT(q, i) (rows ? vec_set(*((i) < n ? &rows[q][i] : &nothing)) : vec_lane(x[q], i))
    for (int q = 0; q < samples; q++) {
        sums[q] = vec_fma(INPUT(q, 0), vec_load(w), start);
        other[q] = vec_mul(INPUT(q, 1), vec_load(w + VEC_LANES));
    }
#define PAIR(i)                                                                                    \
    for (int q = 0; n > (i) && q < samples; q++) {                                                 \
        sums[q] = vec_fma(INPUT(q, i), vec_load(w + (i)*VEC_LANES), sums[q]);                      \
        other[q] = vec_fma(INPUT(q, (i) + 1), vec_load(w + ((i) + 1) * VEC_LANES), other[q]);      \
    }
    PAIR(2)
    if (n > 4) {
        PAIR(4)
        PAIR(6)
    }
#if VEC_LANES == 16
    if (n > 8) {
        PAIR(8)
        PAIR(10)
        PAIR(12)
        PAIR(14)
    }
#endif
#undef PAIR
#undef INPUT
    for (int q = 0; q < samples; q++)
        sums[q] = vec_add(sums[q], other[q]);
}

/* Updates a layer, or leaves its gradient in its block (`into`), given the gradient d of what its
 * activation was given; returns that of x. */
static inline __attribute__((always_inline)) vec
narrow_back(const struct stack_layer *layer, vec x, vec d, vec rate, bool first, int64_t into)
{
    vec down = vec_zero(), step = vec_mul(d, rate);
    if (!first)
        narrow_product(1, NULL, &d, layer->out, layer->back, vec_zero(), &down);
    if (layer->kept_b[0])
        vec_store(layer->b + into, vec_sub(vec_load(layer->b + into), step));
    for (int32_t i = 0; i < layer->in; i++) {
        float *w = layer->w + into + i * VEC_LANES; /* [VEC_LANES] */
        vec_store(w, vec_fnma(vec_lane(x, lane_numbers[i]), step, vec_load(w)));
    }
    x = vec_first(x, layer->in);
    for (int32_t o = 0; !first && !into && o < layer->out; o++) {
        float *back = layer->back + o * VEC_LANES; /* [VEC_LANES] */
        vec_store(back, vec_fnma(vec_lane(step, lane_numbers[o]), x, vec_load(back)));
    }
    return down;
}

/* Stores the loss; returns its gradient by y. */
static inline __attribute__((always_inline)) vec narrow_loss(struct stack *stack, vec y,
                                                             int32_t row, vec scale)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    if (stack->right != OP_COUNT || stack->loss == OP_cross_entropy)
        vec_store(last->y, y);
    if (stack->right != OP_COUNT)
        stack_store(stack->bound_right, stack_right(stack, last->y, row));
    if (stack->loss == OP_cross_entropy) {
        stack_store(stack->bound_loss, stack_cross_entropy(stack, last->y, row, last->d));
        return vec_load(last->d);
    }
    vec target = vec_load_part(stack_row(stack->bound_target, row, last->out), last->out);
    vec error = vec_first(vec_sub(y, target), last->out);
    stack_store(stack->bound_loss, vec_sum(vec_mul(error, error)) / (float)last->out);
    return vec_mul(error, scale);
}

/* A single number is not written as part of a vector: its next reader would wait for the store. */
static inline void narrow_store(const struct stack *stack, float *to, vec y, int32_t count)
{
    if (count == 1)
        *to = vec_low(y);
    else
        vec_store_part(to, y, count);
    if (stack->probabilities)
        softmax_row(to, to, count);
}

/* `samples` steps of inference, side by side: one alone waits most of the time. ys gets the input
 * and every layer's output, each for all samples. */
static inline __attribute__((always_inline)) void narrow_forward(struct stack *stack, int samples,
                                                                 const int32_t *rows, vec (*ys)[2],
                                                                 const bool watched)
{
    const int32_t in = stack->layer[0].in, out = stack->layer[stack->layers - 1].out;
    const struct stack_layer *layer = stack->layer;
    const float *x[2] = {NULL};
    vec y[2], sums[2];
    for (int q = 0; q < samples; q++) {
        x[q] = stack_row(stack->bound_x, rows[q], in);
        ys[0][q] = vec_load_part(x[q], in);
    }
    narrow_product(samples, x, NULL, in, layer->w, vec_load(layer->b), sums);
    for (int32_t l = 1;; l++) {
        for (int q = 0; q < samples; q++)
            ys[l][q] = y[q] = vec_activate((int32_t)layer->activation, sums[q]);
        if (watched)
            stack_mark(stack, watched, stack->dense->layer[l - 1].dense);
        if (l == stack->layers)
            break;
        layer++;
        narrow_product(samples, NULL, y, layer->in, layer->w, vec_load(layer->b), sums);
    }
    if (stack->bound_y && stack->bound_y->data)
        for (int q = 0; q < samples; q++)
            narrow_store(stack, stack_row(stack->bound_y, rows[q], out), y[q], out);
    if (watched && stack->bound_y)
        stack_mark(stack, watched, stack->dense->store_y);
}

static inline __attribute__((always_inline)) void narrow_steps(struct stack *stack, int64_t steps,
                                                               const bool watched)
{
    const int32_t layers = stack->layers;
    const vec scale = vec_set(stack->loss_scale * 2 / (float)stack->layer[layers - 1].out);
    struct stack_walk walk = stack_begin(stack, steps);
    vec ys[DENSE_STACK_MOST + 1][2];
    for (int64_t s = 0; s < steps; s++) {
        int32_t rows[2] = {stack_next(&walk), 0};
        if (stack->loss == OP_COUNT && s + 1 < steps) {
            rows[1] = stack_next(&walk);
            narrow_forward(stack, 2, rows, ys, watched);
            s++;
            continue;
        }
        narrow_forward(stack, 1, rows, ys, watched);
        if (stack->loss == OP_COUNT)
            continue;
        vec d = narrow_loss(stack, ys[layers][0], rows[0], scale);
        if (watched)
            stack_mark(stack, watched, stack->dense->loss);
        if (!stack->trains)
            continue;
        vec rate = vec_set(stack_factor(stack));
        for (int32_t l = layers - 1; l >= 0; l--) {
            const struct stack_layer *layer = &stack->layer[l];
            d = activate_grad(layer->activation, ys[l + 1][0], d);
            d = narrow_back(layer, ys[l][0], d, rate, l == 0, stack->into);
            if (watched)
                stack_mark(stack, watched, stack->backward[l]);
        }
        stack_end_step(stack);
        if (watched)
            stack_mark_end(stack);
    }
}

static void steps_narrow(struct stack *stack, int64_t steps)
{
    narrow_steps(stack, steps, false);
}

static void watch_narrow(struct stack *stack, int64_t steps)
{
    narrow_steps(stack, steps, true);
}

/* ---- one sample, layers of several vectors ---- */

/* sums = start + Σ x[i]·w[i]; start NULL: 0 */
static inline void wide_product(const float *x, int32_t n, const float *w, int64_t stride,
                                const float *start, float *sums)
{
    for (int64_t v = 0; v < stride; v += VEC_LANES) {
        vec sum = start ? vec_load(start + v) : vec_zero(), other = vec_zero();
        int32_t i = 0;
        for (; i + 1 < n; i += 2) {
            const float *rows = w + i * stride + v; /* two of them */
            sum = vec_fma(vec_set(x[i]), vec_load(rows), sum);
            other = vec_fma(vec_set(x[i + 1]), vec_load(rows + stride), other);
        }
        if (i < n)
            sum = vec_fma(vec_set(x[i]), vec_load(w + i * stride + v), sum);
        vec_store(sums + v, vec_add(sum, other));
    }
}

static inline __attribute__((always_inline)) void wide_forward(struct stack *stack, int32_t row,
                                                               const bool watched)
{
    const float *x = stack->x;
    memcpy(stack->x, stack_row(stack->bound_x, row, stack->layer[0].in),
           (size_t)stack->layer[0].in * sizeof *x);
    for (int32_t l = 0; l < stack->layers; l++) {
        const struct stack_layer *layer = &stack->layer[l];
        wide_product(x, layer->in, layer->w, layer->stride, layer->b, layer->y);
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES) {
            vec y = vec_activate((int32_t)layer->activation, vec_load(layer->y + v));
            vec_store(layer->y + v, vec_first(y, at_most(layer->out - v, VEC_LANES)));
        }
        x = layer->y;
        if (watched)
            stack_mark(stack, watched, stack->dense->layer[l].dense);
    }
}

/* The loss of the last layer's y, and its gradient in d. */
static inline __attribute__((always_inline)) void wide_loss(struct stack *stack, int32_t row)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    if (stack->right != OP_COUNT)
        stack_store(stack->bound_right, stack_right(stack, last->y, row));
    if (stack->loss == OP_cross_entropy) {
        stack_store(stack->bound_loss, stack_cross_entropy(stack, last->y, row, last->d));
        return;
    }
    const float *target = stack_row(stack->bound_target, row, last->out);
    vec sum = vec_zero(), scale = vec_set(stack->loss_scale * 2 / (float)last->out);
    for (int64_t v = 0; v < last->stride; v += VEC_LANES) {
        vec wanted = vec_load_part(target + v, last->out - v);
        vec error = vec_sub(vec_load(last->y + v), wanted);
        sum = vec_fma(error, error, sum);
        vec_store(last->d + v, vec_mul(error, scale));
    }
    stack_store(stack->bound_loss, vec_sum(sum) / (float)last->out);
}

static inline __attribute__((always_inline)) void wide_backward(struct stack *stack,
                                                                const bool watched)
{
    const int64_t into = stack->into;
    vec rate = vec_set(stack_factor(stack));
    for (int32_t l = stack->layers - 1; l >= 0; l--) {
        const struct stack_layer *layer = &stack->layer[l];
        const float *x = l ? stack->layer[l - 1].y : stack->x; /* [stride_back] */
        float *d = layer->d;                                   /* [stride] */
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES)
            vec_store(d + v,
                      activate_grad(layer->activation, vec_load(layer->y + v), vec_load(d + v)));
        if (l)
            wide_product(d, layer->out, layer->back, layer->stride_back, NULL,
                         stack->layer[l - 1].d);
        for (int64_t v = 0; v < layer->stride; v += VEC_LANES) {
            vec step = vec_mul(vec_load(d + v), rate);
            vec_store(d + v, step);
            if (layer->kept_b[0])
                vec_store(layer->b + into + v, vec_sub(vec_load(layer->b + into + v), step));
            for (int32_t i = 0; i < layer->in; i++) {
                float *w = layer->w + into + i * layer->stride + v; /* [VEC_LANES] */
                vec_store(w, vec_fnma(vec_set(x[i]), step, vec_load(w)));
            }
        }
        for (int64_t v = 0; l && !into && v < layer->stride_back; v += VEC_LANES)
            for (int32_t o = 0; o < layer->out; o++) {
                float *back = layer->back + o * layer->stride_back + v; /* [VEC_LANES] */
                vec_store(back, vec_fnma(vec_set(d[o]), vec_load(x + v), vec_load(back)));
            }
        if (watched)
            stack_mark(stack, watched, stack->backward[l]);
    }
    stack_end_step(stack);
    if (watched)
        stack_mark_end(stack);
}

static inline __attribute__((always_inline)) void wide_store(const struct stack *stack, int32_t row)
{
    const struct stack_layer *last = &stack->layer[stack->layers - 1];
    float *to = stack_row(stack->bound_y, row, last->out);
    if (stack->probabilities)
        softmax_row(last->y, to, last->out);
    else
        memcpy(to, last->y, (size_t)last->out * sizeof *to);
}

static inline __attribute__((always_inline)) void wide_steps(struct stack *stack, int64_t steps,
                                                             const bool watched)
{
    struct stack_walk walk = stack_begin(stack, steps);
    for (int64_t s = 0; s < steps; s++) {
        int32_t row = stack_next(&walk);
        wide_forward(stack, row, watched);
        if (stack->bound_y && stack->bound_y->data)
            wide_store(stack, row);
        if (watched && stack->bound_y)
            stack_mark(stack, watched, stack->dense->store_y);
        if (stack->loss != OP_COUNT)
            wide_loss(stack, row);
        if (watched && stack->loss != OP_COUNT)
            stack_mark(stack, watched, stack->dense->loss);
        if (stack->trains)
            wide_backward(stack, watched);
    }
}

static void steps_wide(struct stack *stack, int64_t steps)
{
    wide_steps(stack, steps, false);
}

static void watch_wide(struct stack *stack, int64_t steps)
{
    wide_steps(stack, steps, true);
}

const struct stack_kernels ISA(stack_kernels) = {VEC_LANES,
                                                 steps_narrow,
                                                 steps_wide,
                                                 ISA(stack_batch),
                                                 watch_narrow,
                                                 watch_wide,
                                                 ISA(stack_batch_watched)};

static const char name[] = "stack_f32_" ISA_NAME;

static void prepare(void *state, const struct program *program, const struct call *calls,
                    const struct kernel *const *kernels)
{
    stack_prepare(state, program, calls, kernels, &ISA(stack_kernels), &ISA_LEAST(stack_kernels));
    ((struct stack *)state)->name = name;
}

const struct whole ISA(stack) = {
    .name = name,
    .why = "the whole network is small: one kernel runs all ops of a step",
    .supports = stack_supports,
    .bytes = stack_bytes,
    .prepare = prepare,
    .run = stack_run,
};
