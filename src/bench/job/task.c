/* task.c: see task.h. */
#include "bench/job/task.h"

#include "base/memory.h"
#include "bench/job/task_files.h"
#include "core/pass/quantise.h"
#include "nn/formats/onnx.h"
#include "nn/optimiser.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TASK_SEED = 1 };

bool task_steps_are_full(const struct task *task)
{
    const enum op_kind op = task->optimiser.kind->op;
    return op == OP_adam || op == OP_rmsprop || op == OP_adagrad || op == OP_rprop;
}

static bool op_has_kink(const struct op *op)
{
    switch (op->kind) {
    case OP_max_pool:
    case OP_bound: return true;
    case OP_reduce: return op->attr.reduce.reduction == REDUCTION_MAX;
    case OP_activate:
        return op->attr.activate.function == ACTIVATION_RELU ||
               op->attr.activate.function == ACTIVATION_LEAKY_RELU;
    default: return false;
    }
}

bool task_has_kinks(const struct task *task)
{
    /* fp32 is off by some 1e-6 of a value behind a few layers, so of so many one is as near to 0 */
    static const int64_t MANY = 1000000;
    int64_t places = 0;
    for (int32_t p = 0; p < task->step.count; p++) {
        const struct program *program = task->step.programs[p];
        for (int32_t i = 0; i < program->op_count; i++)
            if (op_has_kink(&program->ops[i]))
                places +=
                    shape_count(&program->tensors[op_output(program, &program->ops[i], 0)].shape);
    }
    return places >= MANY;
}

int32_t task_stages(const struct task *task)
{
    return task->phase == PHASE_TRAINING && task->check_steps > 1 ? 2 : 1;
}

int32_t task_steps(const struct task *task, int32_t stage)
{
    return stage + 1 < task_stages(task) ? 1 : task->check_steps;
}

double task_real(const struct params *params, int32_t entry, int64_t element)
{
    const void *data = params_data(params, entry);
    return params->entries[entry].dtype == DTYPE_F64 ? ((const double *)data)[element]
                                                     : (double)((const float *)data)[element];
}

const struct program *task_find(const struct task *task, enum role role, const char *name,
                                int32_t *tensor)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        *tensor = program_find(task->step.programs[p], role, name);
        if (*tensor >= 0)
            return task->step.programs[p];
    }
    return NULL;
}

/* How much of a number the precision rounds away. */
static enum status task_rounding(struct task *task, const char *precision)
{
    static const struct {
        const char *precision;
        double rounding;
    } rows[] = {{"fp32", 0x1p-24}, {"tf32", 0x1p-11}, {"fp16", 0x1p-11},
                {"bf16", 0x1p-8},  {"fp8", 0x1p-4},   {"int8", 0x1p-7}};
    size_t i = 0;
    while (precision && precision[0] && i < sizeof rows / sizeof *rows &&
           strcmp(rows[i].precision, precision) != 0)
        i++;
    if (i == sizeof rows / sizeof *rows)
        FAIL(STATUS_INPUT, "there is no precision \"%s\"", precision);
    task->rounding = rows[i].rounding;
    return STATUS_OK;
}

const char *task_optimiser(const struct network *network, const char *optimiser)
{
    bool own = !optimiser || !optimiser[0] || strcmp(optimiser, network->optimiser.kind->name) == 0;
    return own ? NULL : optimiser;
}

enum status task_count_work(struct task *task)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        struct work work;
        TRY(work_count(task->step.programs[p], &work));
        task->work.forward.flop += work.forward.flop;
        task->work.forward.bytes += work.forward.bytes;
        task->work.backward.flop += work.backward.flop;
        task->work.backward.bytes += work.backward.bytes;
        if (work.set_bytes > task->work.set_bytes)
            task->work.set_bytes = work.set_bytes;
    }
    return STATUS_OK;
}

enum status task_compile(struct task *task)
{
    const struct compile_options compile = {.batch = task->batch,
                                            .use = task->phase == PHASE_TRAINING ? USE_TRAINING
                                                                                 : USE_INFERENCE,
                                            .optimiser = task->optimiser_text};
    return recipe_compile_stages(task->network, &task->params, &compile, &task->step);
}

/* Weights that are drawn have no data to find ranges from: activations lie between ± 4, which the
 * weights of a task fill well. */
static enum status task_choose_ranges(struct task *task)
{
    struct arena *arena = &task->network->arena;
    struct quantisation *how;
    NEED(how = arena_alloc(arena, sizeof *how));
    *how = (struct quantisation){.weight_bits = 8, .count = task->step.programs[0]->tensor_count};
    NEED(how->ranges = arena_array(arena, (size_t)how->count, sizeof *how->ranges));
    for (int32_t t = 0; t < how->count; t++)
        how->ranges[t] = (struct range){-4, 4};
    task->quantise = how;
    return STATUS_OK;
}

/* What the task will compute in 8 bits, before it has weights. */
static enum status task_define_int8(struct task *task)
{
    struct recipe_step small = {.count = 1}, reals = task->step;
    struct params bare;
    TRY(task_choose_ranges(task));
    params_init(&bare, DTYPE_F32);
    bare.bare = true;
    enum status status =
        quantise(reals.programs[0], task->quantise, NULL, &bare, NULL, &small.programs[0]);
    params_free(&bare);
    TRY(status);
    snprintf(task->program, sizeof task->program, "%016" PRIx64, recipe_hash(&small));
    task->step = small;
    status = task_count_work(task);
    task->step = reals;
    recipe_free(&small);
    return status;
}

static enum status task_check_int8(const struct task *task, bool int8)
{
    if (int8 && (task->phase != PHASE_INFERENCE || task->network->part_count))
        FAIL(STATUS_UNSUPPORTED, "int8 is for inference: --phase inference");
    if (!int8 && task->network->quantised)
        FAIL(STATUS_INPUT, "%s: found a network in 8 bits, expected --precision int8",
             task->network->name);
    return STATUS_OK;
}

/* What is computed: nothing large is made. */
static enum status task_define(struct task *task, const struct task_options *options)
{
    const bool int8 = options->precision && strcmp(options->precision, "int8") == 0;
    TRY(task_rounding(task, options->precision));
    TRY(network_open(options->model, &task->network));
    TRY(task_check_int8(task, int8));
    /* a file of 8 bits has two forms: in integers, and in fp32 between roundings */
    if (task->phase == PHASE_INFERENCE && (int8 || !network_integers(task->network)))
        network_settle(&task->network);
    task->optimiser = task->network->optimiser;
    const char *optimiser = task_optimiser(task->network, options->optimiser);
    TRY(optimiser_parse(optimiser, &task->optimiser));
    if (optimiser)
        NEED(task->optimiser_text = arena_text(&task->arena, optimiser));
    TRY(task_compile(task));
    if (int8 && !task->network->quantised)
        return task_define_int8(task);
    snprintf(task->program, sizeof task->program, "%016" PRIx64, recipe_hash(&task->step));
    return task_count_work(task);
}

static enum status task_make(const struct task_options *options, struct task **out)
{
    struct task *task = mem_alloc(sizeof *task);
    NEED(*out = task);
    task->phase = options->phase;
    task->batch = options->batch;
    task->seed = options->seed ? options->seed : TASK_SEED;
    params_init(&task->params, DTYPE_F32);
    params_init(&task->data, DTYPE_F32);
    NEED(task->model = arena_text(&task->arena, options->model));
    return STATUS_OK;
}

const char *task_onnx_end(const char *model)
{
    return network_built_in(model) ? NULL : network_onnx_end(model);
}

/* Keeps the last error, for as long as the task lives. */
static enum status task_refuse(struct task *task, enum status status)
{
    task->refusal = status;
    NEED(task->refused = arena_text(&task->arena, status_message()));
    task->for_peers = status == STATUS_UNSUPPORTED && task->phase == PHASE_INFERENCE &&
                      task_onnx_end(task->model);
    if (task->for_peers) {
        recipe_free(&task->step);
        network_free(task->network);
        task->network = NULL;
    }
    return STATUS_OK;
}

enum status task_begin(const struct task_options *options, struct task **out)
{
    struct task *task = NULL;
    enum status status = task_make(options, &task), defined = STATUS_OK;
    if (status == STATUS_OK)
        defined = task_define(task, options);
    if (defined != STATUS_OK)
        status = task_refuse(task, defined);
    if (status == STATUS_OK)
        *out = task;
    else
        task_close(task);
    return status;
}

enum status task_fill(struct task *task, bool host)
{
    if (!task->refused && !task->order) {
        enum status status = task_make_numbers(task, host);
        if (status != STATUS_OK)
            TRY(task_refuse(task, status));
    }
    if (task->refused)
        FAIL(task->refusal, "%s", task->refused);
    return STATUS_OK;
}

enum status task_open(const struct task_options *options, struct task **out)
{
    TRY(task_begin(options, out));
    enum status status = task_fill(*out, false);
    if (status != STATUS_OK) {
        task_close(*out);
        *out = NULL;
    }
    return status;
}

void task_close(struct task *task)
{
    if (!task)
        return;
    task_remove_files(task);
    recipe_free(&task->step);
    params_free(&task->params);
    if (!task->is_copy)
        network_free(task->network);
    params_free(&task->data);
    arena_free(&task->arena);
    mem_free(task);
}

uint64_t task_input_bytes(const struct task *task)
{
    uint64_t bytes = 0;
    for (int32_t e = 0; e < task->data.count; e++)
        bytes += task->data.entries[e].bytes / TASK_BATCHES;
    return bytes;
}

double task_initial(const struct task *task, int64_t place)
{
    const struct task_place *at = &task->places[place];
    return task_real(&task->params, at->entry, at->element);
}
