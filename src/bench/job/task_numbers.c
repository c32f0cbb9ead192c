/* task_numbers.c: the numbers of a task: the weights that it starts from, its data, and the places
 * that its check looks at. A fault must be able to show in them: see docs/measuring.md. */
#include "bench/job/task.h"

#include "base/machine/room.h"
#include "base/memory.h"
#include "base/rng.h"
#include "core/pass/quantise.h"
#include "nn/optimiser.h"

#include <math.h>
#include <string.h>

enum {
    STREAM_X = 1,
    STREAM_TARGET,
    STREAM_ORDER,
    STREAM_PLACES,
    STREAM_START,
    STREAM_SHIFT,
}; /* of random numbers */

/* Steps of a check: enough for an error to add up, few enough for a slow peer. A weight that is not
 * read again after its update shows in the second step. */
static const uint64_t CHEAP_FLOP = 50000000;
enum { CHECK_STEPS_CHEAP = 3, CHECK_STEPS_TRAINING = 2, CHECK_STEPS_INFERENCE = 1 };

/* An op of that kind among the programs; NULL: none. */
static const struct op *task_find_op(const struct task *task, enum op_kind kind,
                                     const struct program **program)
{
    for (int32_t p = 0; p < task->step.count; p++)
        for (int32_t i = 0; i < task->step.programs[p]->op_count; i++)
            if (task->step.programs[p]->ops[i].kind == kind) {
                *program = task->step.programs[p];
                return &task->step.programs[p]->ops[i];
            }
    return NULL;
}

/* Labels, where there are any, are drawn below this. */
static int64_t task_classes(const struct task *task)
{
    const struct program *program;
    const struct op *op = task_find_op(task, OP_cross_entropy, &program);
    return op ? program->tensors[op_input(program, op, 0)].shape.dim[1] : RECIPE_CLASSES;
}

static void task_draw_below(struct rng_key key, uint32_t row, int64_t width, int64_t most,
                            int32_t *out)
{
    for (int64_t i = 0; i < width; i++)
        out[i] = (int32_t)rng_below(key, row, (uint32_t)i, (uint32_t)most);
}

/* As rng_uniform, four at a time: there may be hundreds of millions. */
static void task_draw_units(struct rng_key key, uint32_t row, int64_t width, float *out)
{
    for (int64_t i = 0; i < width; i += 4) {
        const struct rng_block words = rng_words(key, row, (uint32_t)(i / 4));
        for (int64_t j = i; j < i + 4 && j < width; j++)
            out[j] = rng_unit(words.word[j - i]);
    }
}

/* Adds one input of the program to the data: the same shape, with all rows; whole numbers are drawn
 * below `most`. */
static enum status task_add_data(struct task *task, const char *name, uint32_t stream, int64_t most)
{
    int32_t index, entry;
    const struct program *program = task_find(task, ROLE_INPUT, name, &index);
    if (!program)
        return STATUS_OK;
    const struct tensor *tensor = &program->tensors[index];
    struct shape shape = tensor->shape;
    shape.dim[0] = task->rows;
    TRY(params_declare(&task->data, name, ROLE_PARAM, tensor->dtype, shape,
                       (struct init){INIT_ZERO, 0}, &entry));
    void *data = params_data(&task->data, entry);
    int64_t width = shape_count(&shape) / task->rows;
    const struct rng_key key = {.seed = task->seed, .stream = stream};
    for (int64_t row = 0; row < task->rows; row++)
        if (tensor->dtype == DTYPE_I32)
            task_draw_below(key, (uint32_t)row, width, most, (int32_t *)data + row * width);
        else
            task_draw_units(key, (uint32_t)row, width, (float *)data + row * width);
    return STATUS_OK;
}

/* Fisher–Yates. */
static void task_shuffle(uint64_t seed, uint32_t *order, uint32_t count)
{
    const struct rng_key key = {.seed = seed, .stream = STREAM_ORDER};
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = rng_below(key, i, 0, i), kept = order[j];
        order[j] = order[i - 1];
        order[i - 1] = kept;
    }
}

/* Elements of each parameter that are looked at: all, or one at random of each of TASK_PLACES
 * stretches of the same length; of the last stretch its end, where kernels forget numbers. */
static enum status task_choose_places(struct task *task)
{
    const struct params *params = &task->params;
    const struct rng_key key = {.seed = task->seed, .stream = STREAM_PLACES};

    NEED(task->places =
             arena_array(&task->arena, (size_t)params->count * TASK_PLACES, sizeof *task->places));
    for (int32_t e = 0; e < params->count; e++) {
        if (params->entries[e].role != ROLE_PARAM || params->entries[e].fixed)
            continue;
        const int64_t size = shape_count(&params->entries[e].shape);
        const int64_t count = size < TASK_PLACES ? size : TASK_PLACES;
        for (int64_t i = 0; i < count; i++) {
            const int64_t from = size * i / count, to = size * (i + 1) / count;
            const uint32_t luck = rng_below(key, (uint32_t)e, (uint32_t)i, (uint32_t)(to - from));
            const int64_t element = i + 1 == count ? size - 1 : from + luck;
            task->places[task->value_count++] = (struct task_place){e, element};
        }
    }
    return STATUS_OK;
}

/* Where the relus behind a norm are on for some channels and off for others, rounding turns few of
 * them over: at the usual zero a step of fifty such layers is decided by rounding. */
static float task_shift(struct rng_key key, uint32_t entry, uint32_t element)
{
    static const float SHIFT = 1.5f;
    return rng_below(key, entry, element, 4) == 0 ? -SHIFT : SHIFT;
}

static bool is_shift(const struct entry *entry)
{
    const char *dot = strrchr(entry->name, '.');
    return dot && strcmp(dot, ".shift") == 0;
}

/* Of the weights of one output. */
static double task_squares(const struct task *task, int32_t entry, int64_t outputs)
{
    const float *weights = params_data(&task->params, entry);
    const int64_t count = shape_count(&task->params.entries[entry].shape);
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)weights[i] * (double)weights[i];
    return squares / (double)outputs;
}

static void task_scale(struct task *task, int32_t w, double by)
{
    float *weights = params_data(&task->params, w);
    for (int64_t i = 0; i < shape_count(&task->params.entries[w].shape); i++)
        weights[i] *= (float)by;
}

/* Where each convolution makes signals smaller, nothing of the first ones shows in the outputs of
 * twenty: so none does, as He has it. Returns the mean square of what it makes of `size`. */
static double task_fit_conv(struct task *task, int32_t w, double size)
{
    if (w < 0)
        return size;
    const double squares = task_squares(task, w, task->params.entries[w].shape.dim[0]);
    if (task->params.entries[w].given || !(squares > 0 && squares < 2))
        return squares * size;
    task_scale(task, w, sqrt(2 / squares));
    return 2 * size;
}

/* Large numbers before a softmax make one class certain, whatever a layer below did wrong: so a
 * dense layer of an inference makes none. */
static double task_fit_dense(struct task *task, int32_t w, double size)
{
    if (w < 0)
        return size;
    const double made = size * task_squares(task, w, task->params.entries[w].shape.dim[1]);
    if (task->phase == PHASE_TRAINING || task->params.entries[w].given || !(made > 1))
        return made;
    task_scale(task, w, sqrt(1 / made));
    return 1;
}

/* A norm whose running variance is one would let signals fade or grow, layer by layer, until
 * nothing at the input shows in outputs. So it is the mean square of what the norm is given. */
static void task_fit_norm(struct task *task, int32_t v, double size)
{
    if (v < 0 || task->params.entries[v].given)
        return;
    float *variance = params_data(&task->params, v);
    for (int64_t i = 0; i < shape_count(&task->params.entries[v].shape); i++)
        variance[i] *= (float)size;
}

/* The mean square of an operand; 1 of one that is left out. */
static double task_size_of(const struct program *program, const struct op *op, int32_t operand,
                           const double *sizes)
{
    const int32_t tensor = operand < op->inputs ? op_input(program, op, operand) : -1;
    return tensor >= 0 ? sizes[program_root(program, tensor)] : 1;
}

/* The mean square of what the op makes, from those of its operands: roughly, for random weights. */
static double task_fit_op(struct task *task, const struct program *program, const struct op *op,
                          const double *sizes)
{
    static const double NORMED = 3.3; /* task_vary's scales and shifts */
    const double size = task_size_of(program, op, 0, sizes);
    const int32_t second = op->inputs > 1 ? op_input(program, op, 1) : -1;
    const int32_t w = second >= 0 ? program->tensors[second].entry : -1;
    switch (op->kind) {
    case OP_conv: return task_fit_conv(task, w, size);
    case OP_dense: return task_fit_dense(task, w, size);
    case OP_batch_norm_fixed:
        task_fit_norm(task,
                      program->tensors[op_input(program, op, AT_batch_norm_fixed_variance)].entry,
                      size);
        return NORMED;
    case OP_batch_norm: return NORMED;
    case OP_activate: return size / 2; /* as relu does */
    case OP_add: return size + task_size_of(program, op, 1, sizes);
    default: return size;
    }
}

static enum status task_fit(struct task *task)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        const struct program *program = task->step.programs[p];
        double *sizes = mem_array((size_t)program->tensor_count + 1, sizeof *sizes);
        NEED(sizes);
        for (int32_t t = 0; t < program->tensor_count; t++)
            sizes[t] = 1;
        for (int32_t i = 0; i < program->op_count; i++) {
            const struct op *op = &program->ops[i];
            const double size = task_fit_op(task, program, op, sizes);
            for (int32_t out = 0; out < op->outputs; out++)
                if (op_output(program, op, out) >= 0)
                    sizes[program_root(program, op_output(program, op, out))] = size;
        }
        mem_free(sizes);
    }
    return STATUS_OK;
}

/* A bias of zero, a scale of one: whoever leaves them out computes the same. So in a task these
 * begin elsewhere, unless the network was given their values. */
static void task_vary(struct task *task)
{
    static const float HALF_WIDTH = 0.25f;
    const struct rng_key key = {.seed = task->seed, .stream = STREAM_START};
    const struct rng_key shift_key = {.seed = task->seed, .stream = STREAM_SHIFT};
    for (int32_t e = 0; e < task->params.count; e++) {
        const struct entry *entry = &task->params.entries[e];
        const bool plain = entry->init.kind == INIT_ZERO || entry->init.kind == INIT_ONE;
        if (!plain || entry->given || entry->raw || entry->dtype != DTYPE_F32 ||
            entry->role == ROLE_STATE)
            continue;
        float *values = params_data(&task->params, e);
        const int64_t count = shape_count(&entry->shape);
        const bool shifts = is_shift(entry);
        for (int64_t i = 0; i < count; i++)
            values[i] += HALF_WIDTH * (2 * rng_uniform(key, (uint32_t)e, (uint32_t)i) - 1) +
                         (shifts ? task_shift(shift_key, (uint32_t)e, (uint32_t)i) : 0);
    }
}

/* Before any of it is made. What fusing saves is not known yet: activations and gradients are
 * counted when they are asked for. */
static enum status task_check_memory(const struct task *task, bool host)
{
    double kept = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        kept += (double)task->params.blocks[role].bytes;
    return room_check((host ? 2 : 1) * kept,
                      "%s takes %.1f MB for its parameters, and as much again where they are used",
                      task->network->name, kept / 1e6);
}

static enum status task_make_data(struct task *task)
{
    const int64_t classes = task_classes(task);
    task->rows = (int64_t)TASK_BATCHES * task->batch;
    TRY(task_add_data(task, "x", STREAM_X, task->network->tokens));
    TRY(task_add_data(task, "target", STREAM_TARGET, 0));
    TRY(task_add_data(task, "label", STREAM_TARGET, classes));
    NEED(task->order = arena_array(&task->arena, (size_t)task->rows, sizeof *task->order));
    task_shuffle(task->seed, task->order, (uint32_t)task->rows);
    return STATUS_OK;
}

/* How many steps the check has, and what it looks at. */
static enum status task_choose_check(struct task *task)
{
    const bool training = task->phase == PHASE_TRAINING;
    const bool cheap = task->work.forward.flop + task->work.backward.flop < CHEAP_FLOP;
    const bool full = training && task_steps_are_full(task);
    int32_t y;
    task->check_steps = cheap && !full ? CHECK_STEPS_CHEAP
                        : training     ? CHECK_STEPS_TRAINING
                                       : CHECK_STEPS_INFERENCE;
    if (training)
        return task_choose_places(task);
    const struct program *program = task_find(task, ROLE_OUTPUT, "y", &y);
    if (!program)
        FAIL(STATUS_UNSUPPORTED, "%s: it has no output", task->model);
    const int64_t outputs = task->check_steps * shape_count(&program->tensors[y].shape);
    task->value_count = outputs < TASK_OUTPUTS ? outputs : TASK_OUTPUTS;
    return STATUS_OK;
}

/* The task's program and weights in 8 bits take the place of those in reals. */
static enum status task_quantise(struct task *task)
{
    const struct quantise_source source = {.params = &task->params};
    struct program *small = NULL;
    struct params params;
    params_init(&params, DTYPE_F32);
    enum status status =
        quantise(task->step.programs[0], task->quantise, &source, &params, NULL, &small);
    if (status != STATUS_OK) {
        params_free(&params);
        return status;
    }
    params.control = task->params.control;
    params_free(&task->params);
    task->params = params;
    program_free(task->step.programs[0]);
    task->step.programs[0] = small;
    task->network->quantised = task->quantise; /* copies of the task are compiled so … */
    task->network->given_count = 0;            /* … and take these numbers, not a file's reals */
    return STATUS_OK;
}

enum status task_make_numbers(struct task *task, bool host)
{
    TRY(task_check_memory(task, host));
    TRY(params_fill(&task->params, task->seed));
    task_vary(task);
    TRY(task_fit(task));
    task->params.control.rate = optimiser_value(&task->optimiser, "rate");
    if (task->quantise)
        TRY(task_quantise(task));
    TRY(task_make_data(task));
    return task_choose_check(task);
}
