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
    if (program->batch > TINY_BATCH)
        return "the batch is not small";
    int64_t weights = 0;
    for (int32_t l = 0; l < chain.layers; l++) {
        const struct chain_layer *layer = &chain.layer[l];
        if (layer->in > TINY_WIDTH || layer->out > TINY_WIDTH)
            return "a layer is not small";
        if (layer->activation > ACTIVATION_RELU)
            return "an activation is none of sigmoid, tanh, relu";
        weights += (int64_t)layer->in * layer->out;
    }
    if (weights > TINY_WEIGHTS)
        return "it has too many weights";
    if (chain.loss >= 0 && program->ops[chain.loss].kind == OP_binary_cross_entropy)
        return "the loss is neither mse nor cross_entropy";
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

/* One sample: a row more than a matrix has is read, by pairs of rows. */
static void lay_out(struct tiny *tiny, const struct chain *chain, int64_t lanes, struct room *room)
{
    int64_t most = 0;
    bool single = tiny->batch == 1;
    tiny->plane = blocked_up(tiny->batch * TINY_SQUARE, lanes);
    for (int32_t l = 0; l < chain->layers; l++) {
        struct tiny_layer *layer = &tiny->layer[l];
        int64_t in = chain->layer[l].in, out = chain->layer[l].out;
        layer->in = (int32_t)in;
        layer->out = (int32_t)out;
        layer->stride = blocked_up(out, lanes);
        layer->stride_back = blocked_up(in, lanes);
        int64_t each = single ? layer->stride : tiny_squares(out) * tiny->plane;
        int64_t squares = tiny_squares(in) * tiny_squares(out) * TINY_SQUARE * TINY_SQUARE;
        layer->w = take_floats(room, single ? (in + 1) * layer->stride : squares);
        if (single || l > 0)
            layer->back = take_floats(room, single ? (out + 1) * layer->stride_back : squares);
        layer->b = take_floats(room, layer->stride);
        layer->y = take_floats(room, each);
        layer->d = take_floats(room, each);
        most = in * out > most ? in * out : most;
    }
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
    take(&room, 1, sizeof tiny);
    lay_out(&tiny, &chain, BLOCKED_LANES, &room); /* as much as any ISA needs */
    return room.used;
}

static void bind_layer(struct tiny_layer *layer, const struct chain_layer *from,
                       const struct call *calls)
{
    const struct call *call = &calls[from->dense];
    layer->activation = from->activation;
    layer->kept_w = call->data[1];
    layer->kept_b = call->data[2];
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

static void prepare(struct tiny *tiny, const struct program *program, const struct call *calls,
                    const struct tiny_kernels *widest)
{
    struct chain chain;
    struct room room = {.base = (char *)tiny};
    int64_t width = 0, lanes;
    chain_find(program, &chain);
    for (int32_t l = 0; l < chain.layers; l++) {
        width = chain.layer[l].in > width ? chain.layer[l].in : width;
        width = chain.layer[l].out > width ? chain.layer[l].out : width;
    }
    tiny->batch = program->batch;
    tiny->layers = chain.layers;
    choose(tiny, widest, width, &lanes);
    take(&room, 1, sizeof *tiny);
    lay_out(tiny, &chain, lanes, &room);
    for (int32_t l = 0; l < chain.layers; l++)
        bind_layer(&tiny->layer[l], &chain.layer[l], calls);
    if (tiny->batch > 1)
        mark_real(tiny);
    bind_ops(tiny, program, &chain, calls);
}

static void prepare_avx2(void *state, const struct program *program, const struct call *calls)
{
    prepare(state, program, calls, &tiny_avx2);
}

static void prepare_avx512(void *state, const struct program *program, const struct call *calls)
{
    prepare(state, program, calls, &tiny_avx512);
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

/* The instance's parameters into the forms of the kernel. */
static void read_layer(const struct tiny *tiny, const struct tiny_layer *layer)
{
    int64_t in = layer->in, out = layer->out;
    const float *kept = layer->kept_w; /* [in][out] */
    if (layer->blocked) {
        blocked_unpack(&layer->shape, layer->kept_w, tiny->canonical, 0,
                       blocked_groups(&layer->shape));
        kept = tiny->canonical;
    }
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++) {
            layer->w[forward_at(tiny, layer, i, o)] = kept[i * out + o];
            if (layer->back)
                layer->back[back_at(tiny, layer, i, o)] = kept[i * out + o];
        }
    if (layer->kept_b)
        memcpy(layer->b, layer->kept_b, (size_t)out * sizeof *layer->b);
}

static void write_layer(const struct tiny *tiny, const struct tiny_layer *layer)
{
    int64_t in = layer->in, out = layer->out;
    float *kept = layer->blocked ? tiny->canonical : layer->kept_w; /* [in][out] */
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++)
            kept[i * out + o] = layer->w[forward_at(tiny, layer, i, o)];
    if (layer->blocked)
        blocked_pack(&layer->shape, kept, layer->kept_w, 0, blocked_groups(&layer->shape));
    if (layer->kept_b)
        memcpy(layer->kept_b, layer->b, (size_t)out * sizeof *layer->b);
}

static void tiny_run(void *state, int64_t steps, bool fresh)
{
    struct tiny *tiny = state;
    for (int32_t l = 0; fresh && l < tiny->layers; l++)
        read_layer(tiny, &tiny->layer[l]);
    tiny->run(tiny, steps);
    for (int32_t l = 0; tiny->trains && l < tiny->layers; l++)
        write_layer(tiny, &tiny->layer[l]);
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
