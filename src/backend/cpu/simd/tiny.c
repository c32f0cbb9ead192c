/* tiny.c: which programs are tiny, and what their kernel needs of them; see tiny.h. */
#include "backend/cpu/simd/tiny.h"
#include "backend/cpu/simd/blocked.h"
#include "core/schedule.h"

#include <math.h>
#include <string.h>

static const char *tiny_supports(const struct program *program)
{
    struct chain chain;
    const char *why = chain_find(program, &chain);
    if (why)
        return why;
    int64_t weights = 0, turned = 0;
    for (int32_t l = 0; l < chain.layers; l++) {
        const struct chain_layer *layer = &chain.layer[l];
        if (layer->in > TINY_WIDTH || layer->out > TINY_WIDTH)
            return "a layer is not small";
        if (layer->activation > ACTIVATION_RELU)
            return "an activation is none of sigmoid, tanh, relu";
        weights += (int64_t)layer->in * layer->out;
        turned += chain.optimiser >= 0 && l > 0 ? (int64_t)layer->in * layer->out : 0;
    }
    if (weights + turned > TINY_WEIGHTS)
        return "it has too many weights";
    if (program->batch * weights > TINY_WORK)
        return "the batch is not small for so many weights";
    if (chain.loss >= 0 && program->ops[chain.loss].kind == OP_binary_cross_entropy)
        return "the loss is neither mse nor cross_entropy";
    if (chain.probabilities)
        return "it stores probabilities";
    if (chain.states > TINY_STATES)
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
static int64_t form_floats(const struct tiny *tiny, int64_t rows, int64_t across, int64_t stride)
{
    if (tiny->batch == 1)
        return (rows + 1) * stride;
    return tiny_squares(rows) * tiny_squares(across) * TINY_SQUARE * TINY_SQUARE;
}

/* The parameters of all layers, behind them their states, and behind these their gradients. */
static void lay_out_params(struct tiny *tiny, const struct chain *chain, int64_t lanes,
                           struct room *room)
{
    uint64_t before = room->used;
    for (int32_t l = 0; l < chain->layers; l++) {
        struct tiny_layer *layer = &tiny->layer[l];
        layer->in = chain->layer[l].in;
        layer->out = chain->layer[l].out;
        layer->stride = blocked_up(layer->out, lanes);
        layer->stride_back = blocked_up(layer->in, lanes);
        layer->w = take_floats(room, form_floats(tiny, layer->in, layer->out, layer->stride));
        layer->b = take_floats(room, layer->stride);
    }
    tiny->span = (int64_t)((room->used - before) / sizeof(float));
    if (chain->optimiser < 0)
        return;
    tiny->into = (1 + tiny->states) * tiny->span;
    take_floats(room, (1 + tiny->states) * tiny->span);
}

static void lay_out(struct tiny *tiny, const struct chain *chain, int64_t lanes, struct room *room)
{
    int64_t most = 0;
    bool single = tiny->batch == 1;
    tiny->plane = blocked_up(tiny->batch * TINY_SQUARE, lanes);
    lay_out_params(tiny, chain, lanes, room);
    for (int32_t l = 0; l < chain->layers; l++) {
        struct tiny_layer *layer = &tiny->layer[l];
        int64_t weights = (int64_t)layer->in * layer->out;
        int64_t each = single ? layer->stride : tiny_squares(layer->out) * tiny->plane;
        if (l > 0) {
            layer->back =
                take_floats(room, form_floats(tiny, layer->out, layer->in, layer->stride_back));
            tiny->pairs += weights;
        }
        layer->y = take_floats(room, each);
        layer->d = take_floats(room, each);
        most = weights > most ? weights : most;
    }
    tiny->pair = take(room, tiny->pairs, sizeof *tiny->pair);
    int64_t in = chain->layer[0].in, out = chain->layer[chain->layers - 1].out;
    int64_t x = single ? blocked_up(in, lanes) : tiny_squares(in) * tiny->plane;
    int64_t target = single ? 0 : tiny_squares(out) * tiny->plane;
    tiny->x = take_floats(room, x);
    tiny->next_x = take_floats(room, x);
    tiny->target = take_floats(room, target);
    tiny->next_target = take_floats(room, target);
    tiny->real = take_floats(room, target);
    tiny->rows = take(room, tiny->batch, sizeof *tiny->rows);
    tiny->next_rows = take(room, tiny->batch, sizeof *tiny->rows);
    tiny->canonical = take_floats(room, most);
}

static uint64_t tiny_bytes(const struct program *program)
{
    struct tiny tiny = {.batch = program->batch};
    struct chain chain;
    struct room room = {0};
    chain_find(program, &chain);
    tiny.states = chain.states;
    take(&room, 1, sizeof tiny);
    lay_out(&tiny, &chain, BLOCKED_LANES, &room); /* as much as any ISA needs */
    return room.used;
}

/* The instance's states of a parameter, by the optimiser's op for it. */
static void bind_states(const struct call *update, int64_t states, float **kept)
{
    for (int64_t s = 0; s < states; s++)
        kept[1 + s] = update->data[update->op->inputs + 2 + s];
}

static void bind_layer(const struct tiny *tiny, struct tiny_layer *layer,
                       const struct chain_layer *from, const struct call *calls)
{
    const struct call *call = &calls[from->dense];
    layer->activation = from->activation;
    layer->kept_w[0] = call->data[1];
    layer->kept_b[0] = call->data[2];
    if (tiny->optimiser)
        bind_states(&calls[from->update], tiny->states, layer->kept_w);
    if (tiny->optimiser && layer->kept_b[0])
        bind_states(&calls[from->update_b], tiny->states, layer->kept_b);
    layer->shape = call->tensors[1]->shape;
    layer->blocked = blocked_wanted(call->tensors[1]->matrix, DTYPE_F32, &layer->shape);
}

/* Where a batch keeps output o of sample n. */
static int64_t place_of(const struct tiny *tiny, int32_t n, int32_t o)
{
    return o / TINY_SQUARE * tiny->plane + n * TINY_SQUARE + o % TINY_SQUARE;
}

static void mark_real(const struct tiny *tiny)
{
    for (int32_t n = 0; n < tiny->batch; n++)
        for (int32_t o = 0; o < tiny->layer[tiny->layers - 1].out; o++)
            tiny->real[place_of(tiny, n, o)] = 1;
}

/* The optimiser's call, with the tiny network's blocks for its operands: w, g, rate, the count of
 * updates where it takes one, states; then w, g, which is so to be cleared, and states. */
static void bind_optimiser(struct tiny *tiny, const struct call *call)
{
    const struct op *op = call->op;
    float *params = tiny->layer[0].w;
    tiny->update = *call;
    tiny->update.data = tiny->operands;
    tiny->update.counts = tiny->counts;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int64_t state = i < op->inputs ? i - (op->inputs - tiny->states) : i - op->inputs - 2;
        tiny->operands[i] = state >= 0 ? params + (1 + state) * tiny->span : call->data[i];
        tiny->counts[i] = tiny->span;
    }
    tiny->operands[0] = tiny->operands[op->inputs] = params;
    tiny->operands[1] = tiny->operands[op->inputs + 1] = params + tiny->into;
    tiny->operands[2] = &tiny->rate;
}

static struct bound *bound_of(const struct call *calls, int32_t op)
{
    return op < 0 ? NULL : calls[op].bound;
}

static void bind_ops(struct tiny *tiny, const struct program *program, const struct chain *chain,
                     const struct call *calls)
{
    const struct op *ops = program->ops;
    tiny->trains = chain->tick >= 0;
    tiny->loss = chain->loss < 0 ? OP_COUNT : ops[chain->loss].kind;
    tiny->right = chain->right < 0 ? OP_COUNT : ops[chain->right].kind;
    if (tiny->right == OP_right_level)
        tiny->half = 0.5f / (float)(ops[chain->right].attr.right_level.classes - 1);
    if (tiny->trains) {
        const struct op *grad = &ops[chain->loss_grad];
        tiny->loss_scale =
            tiny->loss == OP_mse ? grad->attr.mse_grad.scale : grad->attr.cross_entropy_grad.scale;
        tiny->schedule = &ops[chain->schedule];
        tiny->count = calls[chain->tick].data[0];
    }
    tiny->control = calls->control;
    tiny->cursor = calls->cursor;
    tiny->bound_x = bound_of(calls, chain->load_x);
    tiny->bound_target = bound_of(calls, chain->load_target);
    tiny->bound_y = bound_of(calls, chain->store_y);
    tiny->bound_loss = bound_of(calls, chain->store_loss);
    tiny->bound_right = bound_of(calls, chain->store_right);
}

/* The kernel for these sizes: vectors no wider than what they hold; a batch has four lanes a
 * sample. */
static void choose(struct tiny *tiny, const struct tiny_kernels *widest, int64_t width,
                   int64_t *lanes)
{
    bool single = tiny->batch == 1;
    int64_t held = single ? width : tiny->batch * TINY_SQUARE;
    const struct tiny_kernels *kernels = held <= tiny_avx2.lanes ? &tiny_avx2 : widest;
    tiny->run = !single                   ? kernels->batch
                : width <= kernels->lanes ? kernels->narrow
                                          : kernels->wide;
    *lanes = kernels->lanes;
}

/* Where a weight is in a form whose rows are `across` long. In squares: rows of squares; in a
 * square, rows of weights. */
static int64_t weight_at(const struct tiny *tiny, int64_t row, int64_t column, int64_t across)
{
    if (tiny->batch == 1)
        return row * across + column;
    int64_t square = row / TINY_SQUARE * tiny_squares(across) + column / TINY_SQUARE;
    return (square * TINY_SQUARE + row % TINY_SQUARE) * TINY_SQUARE + column % TINY_SQUARE;
}

static int64_t forward_at(const struct tiny *tiny, const struct tiny_layer *layer, int64_t i,
                          int64_t o)
{
    return weight_at(tiny, i, o, tiny->batch == 1 ? layer->stride : layer->out);
}

static int64_t back_at(const struct tiny *tiny, const struct tiny_layer *layer, int64_t i,
                       int64_t o)
{
    return weight_at(tiny, o, i, tiny->batch == 1 ? layer->stride_back : layer->in);
}

/* The weights that are kept in both forms. */
static void list_pairs(struct tiny *tiny)
{
    const float *params = tiny->layer[0].w;
    struct tiny_pair *pair = tiny->pair;
    for (int32_t l = 1; l < tiny->layers; l++) {
        const struct tiny_layer *layer = &tiny->layer[l];
        for (int64_t i = 0; i < layer->in; i++)
            for (int64_t o = 0; o < layer->out; o++)
                *pair++ = (struct tiny_pair){
                    (int32_t)(layer->w - params + forward_at(tiny, layer, i, o)),
                    (int32_t)(layer->back - params + back_at(tiny, layer, i, o)),
                };
    }
}

static void prepare(struct tiny *tiny, const struct program *program, const struct call *calls,
                    const struct kernel *const *kernels, const struct tiny_kernels *widest)
{
    struct chain chain;
    struct room room = {.base = (char *)tiny};
    int64_t width = 0, lanes;
    chain_find(program, &chain);
    tiny->states = chain.states;
    for (int32_t l = 0; l < chain.layers; l++) {
        width = chain.layer[l].in > width ? chain.layer[l].in : width;
        width = chain.layer[l].out > width ? chain.layer[l].out : width;
    }
    tiny->batch = program->batch;
    tiny->layers = chain.layers;
    choose(tiny, widest, width, &lanes);
    take(&room, 1, sizeof *tiny);
    lay_out(tiny, &chain, lanes, &room);
    list_pairs(tiny);
    if (chain.optimiser >= 0) {
        tiny->optimiser = kernels[chain.optimiser]->run;
        bind_optimiser(tiny, &calls[chain.optimiser]);
    }
    for (int32_t l = 0; l < chain.layers; l++)
        bind_layer(tiny, &tiny->layer[l], &chain.layer[l], calls);
    if (tiny->batch > 1)
        mark_real(tiny);
    bind_ops(tiny, program, &chain, calls);
}

static void prepare_avx2(void *state, const struct program *program, const struct call *calls,
                         const struct kernel *const *kernels)
{
    prepare(state, program, calls, kernels, &tiny_avx2);
}

static void prepare_avx512(void *state, const struct program *program, const struct call *calls,
                           const struct kernel *const *kernels)
{
    prepare(state, program, calls, kernels, &tiny_avx512);
}

/* The instance's w and b of a layer, or their state number k, into the form of the kernel. */
static void read_layer(const struct tiny *tiny, const struct tiny_layer *layer, int64_t k)
{
    int64_t in = layer->in, out = layer->out;
    float *w = layer->w + k * tiny->span, *b = layer->b + k * tiny->span;
    const float *kept = layer->kept_w[k]; /* [in][out] */
    if (layer->blocked) {
        blocked_unpack(&layer->shape, kept, tiny->canonical, 0, blocked_groups(&layer->shape));
        kept = tiny->canonical;
    }
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            w[forward_at(tiny, layer, i, o)] = kept[i * out + o];
    if (layer->kept_b[k])
        memcpy(b, layer->kept_b[k], (size_t)out * sizeof *b);
}

static void write_layer(const struct tiny *tiny, const struct tiny_layer *layer, int64_t k)
{
    int64_t in = layer->in, out = layer->out;
    const float *w = layer->w + k * tiny->span, *b = layer->b + k * tiny->span;
    float *kept = layer->blocked ? tiny->canonical : layer->kept_w[k]; /* [in][out] */
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            kept[i * out + o] = w[forward_at(tiny, layer, i, o)];
    if (layer->blocked)
        blocked_pack(&layer->shape, kept, layer->kept_w[k], 0, blocked_groups(&layer->shape));
    if (layer->kept_b[k])
        memcpy(layer->kept_b[k], b, (size_t)out * sizeof *b);
}

/* Makes the form for the way back the same as that for the way forward. */
static void turn_weights(const struct tiny *tiny)
{
    float *params = tiny->layer[0].w;
    for (int64_t p = 0; p < tiny->pairs; p++)
        params[tiny->pair[p].back] = params[tiny->pair[p].w];
}

void tiny_update(struct tiny *tiny)
{
    tiny->rate = tiny_rate(tiny);
    tiny->optimiser(&tiny->update);
    turn_weights(tiny);
}

static void tiny_run(void *state, int64_t steps, bool fresh)
{
    struct tiny *tiny = state;
    for (int32_t l = 0; fresh && l < tiny->layers; l++)
        for (int64_t k = 0; k <= tiny->states; k++)
            read_layer(tiny, &tiny->layer[l], k);
    if (fresh && tiny->trains)
        turn_weights(tiny);
    tiny->run(tiny, steps);
    for (int32_t l = 0; tiny->trains && l < tiny->layers; l++)
        for (int64_t k = 0; k <= tiny->states; k++)
            write_layer(tiny, &tiny->layer[l], k);
}

float tiny_rate(const struct tiny *tiny)
{
    const struct op *op = tiny->schedule;
    double factor =
        schedule_factor(op->attr.schedule.kind, op->attr.schedule.warmup, op->attr.schedule.period,
                        (double)op->attr.schedule.factor, *tiny->count);
    return (float)(tiny->control->rate * (double)op->attr.schedule.scale * factor);
}

float tiny_cross_entropy(const struct tiny *tiny, const float *y, int32_t row, float *d)
{
    int32_t out = tiny->layer[tiny->layers - 1].out;
    int32_t label = ((const int32_t *)(const void *)tiny->bound_target->data)[row];
    float most = y[0], sum = 0, scale = tiny->loss_scale / (float)tiny->batch;
    for (int32_t o = 1; o < out; o++)
        most = y[o] > most ? y[o] : most;
    for (int32_t o = 0; o < out; o++)
        sum += d[o] = expf(y[o] - most);
    for (int32_t o = 0; o < out; o++)
        d[o] = scale * (d[o] / sum - (o == label ? 1.0f : 0.0f));
    return logf(sum) + most - y[label];
}

float tiny_right(const struct tiny *tiny, const float *y, int32_t row)
{
    int32_t out = tiny->layer[tiny->layers - 1].out, best = 0;
    if (tiny->right == OP_right_level)
        return fabsf(*y - *tiny_row(tiny->bound_target, row, 1)) < tiny->half ? 1 : 0;
    for (int32_t o = 1; o < out; o++)
        if (y[o] > y[best])
            best = o;
    return best == ((const int32_t *)(const void *)tiny->bound_target->data)[row] ? 1 : 0;
}

void tiny_fill(struct kernel_table *table, enum isa isa)
{
    table->whole = (struct whole){
        .name = isa >= ISA_AVX512 ? "tiny_f32_avx512" : "tiny_f32_avx2",
        .supports = tiny_supports,
        .bytes = tiny_bytes,
        .prepare = isa >= ISA_AVX512 ? prepare_avx512 : prepare_avx2,
        .run = tiny_run,
    };
}
