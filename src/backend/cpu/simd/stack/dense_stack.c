/* dense_stack.c: which programs are small stacks, and what their kernel needs of them; see
 * dense_stack.h. */
#include "backend/cpu/simd/stack/dense_stack.h"
#include "backend/cpu/blocked.h"
#include "core/schedule.h"

#include <math.h>
#include <string.h>

const char *stack_supports(const struct program *program)
{
    const struct dense_stack *dense = program->stack;
    if (!dense)
        return "it is no stack of dense layers";
    int64_t weights = 0, transposed = 0;
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *layer = &dense->layer[l];
        if (layer->in > STACK_WIDTH || layer->out > STACK_WIDTH)
            return "a layer is not small";
        if (layer->activation > ACTIVATION_RELU)
            return "an activation is none of sigmoid, tanh, relu";
        weights += (int64_t)layer->in * layer->out;
        transposed += dense->optimiser >= 0 && l > 0 ? (int64_t)layer->in * layer->out : 0;
    }
    if (weights + transposed > STACK_WEIGHTS)
        return "it has too many weights";
    if (program->batch * weights > STACK_WORK)
        return "batch × weights is too large for a whole step in one kernel";
    if (dense->loss >= 0 && program->ops[dense->loss].kind == OP_binary_cross_entropy)
        return "the loss is neither mse nor cross_entropy";
    if (dense->states > STACK_STATES)
        return "its optimiser keeps too much of each parameter";
    return NULL;
}

/* Hands out memory; without any it only counts. */
struct room {
    char *base;
    uint64_t used;
};

static void *take(struct room *room, int64_t count, size_t size)
{
    void *at = room->base ? room->base + room->used : NULL;
    room->used += ((uint64_t)count * size + 63) / 64 * 64;
    return at;
}

static float *take_floats(struct room *room, int64_t count)
{
    return take(room, count, sizeof(float));
}

/* Floats of a layer's w, or back: `rows` rows of `across`, which are `stride` in whole vectors. One
 * sample: a row more than there are is read, by pairs of rows. */
static int64_t form_floats(const struct stack *stack, int64_t rows, int64_t across, int64_t stride)
{
    if (stack->batch == 1)
        return (rows + 1) * stride;
    return stack_squares(rows) * stack_squares(across) * STACK_SQUARE * STACK_SQUARE;
}

/* The parameters of all layers, behind them their states, and behind these their gradients. */
static void lay_out_params(struct stack *stack, const struct dense_stack *dense, int64_t lanes,
                           struct room *room)
{
    uint64_t before = room->used;
    for (int32_t l = 0; l < dense->layers; l++) {
        struct stack_layer *layer = &stack->layer[l];
        layer->in = dense->layer[l].in;
        layer->out = dense->layer[l].out;
        layer->stride = blocked_up(layer->out, lanes);
        layer->stride_back = blocked_up(layer->in, lanes);
        layer->w = take_floats(room, form_floats(stack, layer->in, layer->out, layer->stride));
        layer->b = take_floats(room, layer->stride);
    }
    stack->span = (int64_t)((room->used - before) / sizeof(float));
    if (dense->optimiser < 0)
        return;
    stack->into = (1 + stack->states) * stack->span;
    take_floats(room, (1 + stack->states) * stack->span);
}

static void lay_out(struct stack *stack, const struct dense_stack *dense, int64_t lanes,
                    struct room *room)
{
    int64_t most = 0;
    bool single = stack->batch == 1;
    stack->plane = blocked_up(stack->batch * STACK_SQUARE, lanes);
    lay_out_params(stack, dense, lanes, room);
    for (int32_t l = 0; l < dense->layers; l++) {
        struct stack_layer *layer = &stack->layer[l];
        int64_t weights = (int64_t)layer->in * layer->out;
        int64_t each = single ? layer->stride : stack_squares(layer->out) * stack->plane;
        if (l > 0) {
            layer->back =
                take_floats(room, form_floats(stack, layer->out, layer->in, layer->stride_back));
            stack->pairs += weights;
        }
        layer->y = take_floats(room, each);
        layer->d = take_floats(room, each);
        most = weights > most ? weights : most;
    }
    stack->pair = take(room, stack->pairs, sizeof *stack->pair);
    int64_t in = dense->layer[0].in, out = dense->layer[dense->layers - 1].out;
    int64_t x = single ? blocked_up(in, lanes) : stack_squares(in) * stack->plane;
    int64_t target = single ? 0 : stack_squares(out) * stack->plane;
    stack->x = take_floats(room, x);
    stack->next_x = take_floats(room, x);
    stack->target = take_floats(room, target);
    stack->next_target = take_floats(room, target);
    stack->real = take_floats(room, target);
    stack->rows = take(room, stack->batch, sizeof *stack->rows);
    stack->next_rows = take(room, stack->batch, sizeof *stack->rows);
    stack->canonical = take_floats(room, most);
}

uint64_t stack_bytes(const struct program *program)
{
    struct stack stack = {.batch = program->batch, .states = program->stack->states};
    struct room room = {0};
    take(&room, 1, sizeof stack);
    lay_out(&stack, program->stack, BLOCKED_LANES, &room); /* as much as any ISA needs */
    return room.used;
}

/* The instance's states of a parameter, by the optimiser's op for it. */
static void bind_states(const struct call *update, int64_t states, float **kept)
{
    for (int64_t s = 0; s < states; s++)
        kept[1 + s] = update->data[update->op->inputs + 2 + s];
}

static void bind_layer(const struct stack *stack, struct stack_layer *layer,
                       const struct dense_stack_layer *from, const struct call *calls)
{
    const struct call *call = &calls[from->dense];
    layer->activation = from->activation;
    layer->kept_w[0] = call->data[AT_dense_w];
    layer->kept_b[0] = call->data[AT_dense_b];
    if (stack->optimiser)
        bind_states(&calls[from->update], stack->states, layer->kept_w);
    if (stack->optimiser && layer->kept_b[0])
        bind_states(&calls[from->update_b], stack->states, layer->kept_b);
    layer->shape = call->tensors[AT_dense_w]->shape;
    layer->blocked = blocked_wanted(call->tensors[AT_dense_w]->matrix, DTYPE_F32, &layer->shape);
}

/* Where a batch keeps output o of sample n. */
static int64_t place_of(const struct stack *stack, int32_t n, int32_t o)
{
    return o / STACK_SQUARE * stack->plane + n * STACK_SQUARE + o % STACK_SQUARE;
}

static void mark_real(const struct stack *stack)
{
    for (int32_t n = 0; n < stack->batch; n++)
        for (int32_t o = 0; o < stack->layer[stack->layers - 1].out; o++)
            stack->real[place_of(stack, n, o)] = 1;
}

/* The optimiser's call, with the stack's blocks for its operands: w, g, rate, the count of
 * updates where it takes one, states; then w, g, which is so to be cleared, and states. */
static void bind_optimiser(struct stack *stack, const struct call *call)
{
    const struct op *op = call->op;
    float *params = stack->layer[0].w;
    stack->update = *call;
    stack->update.data = stack->operands;
    stack->update.counts = stack->counts;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int64_t state = i < op->inputs ? i - (op->inputs - stack->states) : i - op->inputs - 2;
        stack->operands[i] = state >= 0 ? params + (1 + state) * stack->span : call->data[i];
        stack->counts[i] = stack->span;
    }
    stack->operands[0] = stack->operands[op->inputs] = params;
    stack->operands[1] = stack->operands[op->inputs + 1] = params + stack->into;
    stack->operands[2] = &stack->rate;
}

static struct bound *bound_of(const struct call *calls, int32_t op)
{
    return op < 0 ? NULL : calls[op].bound;
}

static void bind_ops(struct stack *stack, const struct program *program,
                     const struct dense_stack *dense, const struct call *calls)
{
    const struct op *ops = program->ops;
    stack->trains = dense->tick >= 0;
    stack->probabilities = dense->probabilities;
    stack->loss = dense->loss < 0 ? OP_COUNT : ops[dense->loss].kind;
    stack->right = dense->right < 0 ? OP_COUNT : ops[dense->right].kind;
    if (stack->right == OP_right_level)
        stack->half = 0.5f / (float)(ops[dense->right].attr.right_level.classes - 1);
    if (stack->trains) {
        const struct op *grad = &ops[dense->loss_grad];
        stack->loss_scale =
            stack->loss == OP_mse ? grad->attr.mse_grad.scale : grad->attr.cross_entropy_grad.scale;
        stack->schedule = &ops[dense->schedule];
        stack->count = calls[dense->tick].data[0];
    }
    stack->control = calls->control;
    stack->cursor = calls->cursor;
    stack->bound_x = bound_of(calls, dense->load_x);
    stack->bound_target = bound_of(calls, dense->load_target);
    stack->bound_y = bound_of(calls, dense->store_y);
    stack->bound_loss = bound_of(calls, dense->store_loss);
    stack->bound_right = bound_of(calls, dense->store_right);
}

/* Of a layer's way back the op that has its name: dense_sgd, or the first of several. */
static void find_backward(struct stack *stack, const struct program *program,
                          const struct dense_stack *dense)
{
    const int32_t from = program->parts[PART_BACKWARD].from, to = program->parts[PART_BACKWARD].to;
    stack->program = program;
    stack->dense = dense;
    for (int32_t l = 0; l < dense->layers; l++) {
        const char *layer = program->ops[dense->layer[l].dense].layer;
        stack->backward[l] = -1;
        for (int32_t o = to; o-- > from;)
            if (strcmp(program->ops[o].layer, layer) == 0)
                stack->backward[l] = o;
    }
}

/* The kernel for these sizes: vectors no wider than what they hold; a batch has four lanes a
 * sample. */
static void choose(struct stack *stack, const struct stack_kernels *widest,
                   const struct stack_kernels *narrowest, int64_t width, int64_t *lanes)
{
    bool single = stack->batch == 1;
    int64_t held = single ? width : stack->batch * STACK_SQUARE;
    const struct stack_kernels *kernels = held <= narrowest->lanes ? narrowest : widest;
    stack->run = !single                   ? kernels->batch
                 : width <= kernels->lanes ? kernels->narrow
                                           : kernels->wide;
    stack->watched = !single                   ? kernels->batch_watched
                     : width <= kernels->lanes ? kernels->narrow_watched
                                               : kernels->wide_watched;
    *lanes = kernels->lanes;
}

/* Where a weight is in a form whose rows are `across` long. In squares: rows of squares; in a
 * square, rows of weights. */
static int64_t weight_at(const struct stack *stack, int64_t row, int64_t column, int64_t across)
{
    if (stack->batch == 1)
        return row * across + column;
    int64_t square = row / STACK_SQUARE * stack_squares(across) + column / STACK_SQUARE;
    return (square * STACK_SQUARE + row % STACK_SQUARE) * STACK_SQUARE + column % STACK_SQUARE;
}

static int64_t forward_at(const struct stack *stack, const struct stack_layer *layer, int64_t i,
                          int64_t o)
{
    return weight_at(stack, i, o, stack->batch == 1 ? layer->stride : layer->out);
}

static int64_t back_at(const struct stack *stack, const struct stack_layer *layer, int64_t i,
                       int64_t o)
{
    return weight_at(stack, o, i, stack->batch == 1 ? layer->stride_back : layer->in);
}

/* The weights that are kept in both forms. */
static void list_pairs(struct stack *stack)
{
    const float *params = stack->layer[0].w;
    struct stack_pair *pair = stack->pair;
    for (int32_t l = 1; l < stack->layers; l++) {
        const struct stack_layer *layer = &stack->layer[l];
        for (int64_t i = 0; i < layer->in; i++)
            for (int64_t o = 0; o < layer->out; o++)
                *pair++ = (struct stack_pair){
                    (int32_t)(layer->w - params + forward_at(stack, layer, i, o)),
                    (int32_t)(layer->back - params + back_at(stack, layer, i, o)),
                };
    }
}

void stack_prepare(struct stack *stack, const struct program *program, const struct call *calls,
                   const struct kernel *const *kernels, const struct stack_kernels *widest,
                   const struct stack_kernels *narrowest)
{
    const struct dense_stack *dense = program->stack;
    struct room room = {.base = (char *)stack};
    int64_t width = 0, lanes;
    stack->states = dense->states;
    for (int32_t l = 0; l < dense->layers; l++) {
        width = dense->layer[l].in > width ? dense->layer[l].in : width;
        width = dense->layer[l].out > width ? dense->layer[l].out : width;
    }
    stack->batch = program->batch;
    stack->layers = dense->layers;
    choose(stack, widest, narrowest, width, &lanes);
    take(&room, 1, sizeof *stack);
    lay_out(stack, dense, lanes, &room);
    list_pairs(stack);
    if (dense->optimiser >= 0) {
        stack->optimiser = kernels[dense->optimiser]->run;
        bind_optimiser(stack, &calls[dense->optimiser]);
    }
    for (int32_t l = 0; l < dense->layers; l++)
        bind_layer(stack, &stack->layer[l], &dense->layer[l], calls);
    if (stack->batch > 1)
        mark_real(stack);
    bind_ops(stack, program, dense, calls);
    find_backward(stack, program, dense);
}

/* The instance's w and b of a layer, or their state number k, into the form of the kernel. */
static void read_layer(const struct stack *stack, const struct stack_layer *layer, int64_t k)
{
    int64_t in = layer->in, out = layer->out;
    float *w = layer->w + k * stack->span, *b = layer->b + k * stack->span;
    const float *kept = layer->kept_w[k]; /* [in][out] */
    if (layer->blocked) {
        blocked_unpack(&layer->shape, kept, stack->canonical, 0, blocked_groups(&layer->shape));
        kept = stack->canonical;
    }
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            w[forward_at(stack, layer, i, o)] = kept[i * out + o];
    if (layer->kept_b[k])
        memcpy(b, layer->kept_b[k], (size_t)out * sizeof *b);
}

static void write_layer(const struct stack *stack, const struct stack_layer *layer, int64_t k)
{
    int64_t in = layer->in, out = layer->out;
    const float *w = layer->w + k * stack->span, *b = layer->b + k * stack->span;
    float *kept = layer->blocked ? stack->canonical : layer->kept_w[k]; /* [in][out] */
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            kept[i * out + o] = w[forward_at(stack, layer, i, o)];
    if (layer->blocked)
        blocked_pack(&layer->shape, kept, layer->kept_w[k], 0, blocked_groups(&layer->shape));
    if (layer->kept_b[k])
        memcpy(layer->kept_b[k], b, (size_t)out * sizeof *b);
}

/* Makes the form for the way back the same as that for the way forward. */
static void transpose_weights(const struct stack *stack)
{
    float *params = stack->layer[0].w;
    for (int64_t p = 0; p < stack->pairs; p++)
        params[stack->pair[p].back] = params[stack->pair[p].w];
}

void stack_update(struct stack *stack)
{
    stack->rate = stack_rate(stack);
    stack->optimiser(&stack->update);
    transpose_weights(stack);
}

/* Its own copy of the parameters, where others changed them. */
static void take_layers(struct stack *stack, bool fresh)
{
    for (int32_t l = 0; fresh && l < stack->layers; l++)
        for (int64_t k = 0; k <= stack->states; k++)
            read_layer(stack, &stack->layer[l], k);
    if (fresh && stack->trains)
        transpose_weights(stack);
}

static void give_layers(const struct stack *stack)
{
    for (int32_t l = 0; stack->trains && l < stack->layers; l++)
        for (int64_t k = 0; k <= stack->states; k++)
            write_layer(stack, &stack->layer[l], k);
}

/* What lies between two marks, one behind the other, without what reading the clock adds (it is
 * rounded up). */
static void tell(const struct stack *stack, const struct observer *observer)
{
    const struct stack_marks *marks = &stack->marks;
    const uint64_t cost_ns = clock_cost_ns() - 1;
    uint64_t end_ns = marks->at_ns[0];
    for (int32_t m = 1; m < marks->count; m++) {
        const uint64_t took_ns = marks->at_ns[m] - marks->at_ns[m - 1], start_ns = end_ns;
        end_ns += took_ns > cost_ns ? took_ns - cost_ns : 0;
        if (marks->op[m] >= 0)
            observer->event(observer->context,
                            &(struct event){.op = marks->op[m],
                                            .part = (int32_t)stack->program->ops[marks->op[m]].part,
                                            .kernel = stack->name,
                                            .start_ns = start_ns,
                                            .end_ns = end_ns});
    }
}

/* Step by step, with the clock read between the parts of a step. */
static void watch(struct stack *stack, int64_t steps, const struct observer *observer)
{
    for (int64_t s = 0; s < steps; s++) {
        stack->marks.count = 0;
        stack_mark(stack, true, -1);
        stack->watched(stack, 1);
        tell(stack, observer);
    }
}

void stack_run(void *state, int64_t steps, bool fresh, const struct observer *observer)
{
    struct stack *stack = state;
    take_layers(stack, fresh);
    if (observer->level == OBSERVE_OPS)
        watch(stack, steps, observer);
    else
        stack->run(stack, steps);
    give_layers(stack);
}

float stack_rate(const struct stack *stack)
{
    const struct op *op = stack->schedule;
    double factor =
        schedule_factor(op->attr.schedule.kind, op->attr.schedule.warmup, op->attr.schedule.period,
                        (double)op->attr.schedule.factor, *stack->count);
    return (float)(stack->control->rate * (double)op->attr.schedule.scale * factor);
}

float stack_cross_entropy(const struct stack *stack, const float *y, int32_t row, float *d)
{
    int32_t out = stack->layer[stack->layers - 1].out;
    int32_t label = ((const int32_t *)(const void *)stack->bound_target->data)[row];
    float most = y[0], sum = 0, scale = stack->loss_scale / (float)stack->batch;
    for (int32_t o = 1; o < out; o++)
        most = y[o] > most ? y[o] : most;
    for (int32_t o = 0; o < out; o++)
        sum += d[o] = expf(y[o] - most);
    for (int32_t o = 0; o < out; o++)
        d[o] = scale * (d[o] / sum - (o == label ? 1.0f : 0.0f));
    return logf(sum) + most - y[label];
}

float stack_right(const struct stack *stack, const float *y, int32_t row)
{
    int32_t out = stack->layer[stack->layers - 1].out, best = 0;
    if (stack->right == OP_right_level)
        return fabsf(*y - *stack_row(stack->bound_target, row, 1)) < stack->half ? 1 : 0;
    for (int32_t o = 1; o < out; o++)
        if (y[o] > y[best])
            best = o;
    return best == ((const int32_t *)(const void *)stack->bound_target->data)[row] ? 1 : 0;
}
