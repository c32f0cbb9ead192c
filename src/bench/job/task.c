/* task.c: see task.h. */
#include "bench/job/task.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "nn/formats/onnx.h"
#include "nn/formats/safetensors.h"
#include "nn/loss.h"
#include "nn/optimiser.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TASK_SEED = 1 };
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

static const struct program *task_find(const struct task *task, enum role role, const char *name,
                                       int32_t *tensor)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        *tensor = program_find(task->step.programs[p], role, name);
        if (*tensor >= 0)
            return task->step.programs[p];
    }
    return NULL;
}

const struct program *task_output(const struct task *task, const char *name, int32_t *tensor)
{
    return task_find(task, ROLE_OUTPUT, name, tensor);
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

/* The op that writes the tensor; NULL: none does. */
static const struct op *task_writer(const struct program *program, int32_t tensor)
{
    for (int32_t i = 0; i < program->op_count; i++)
        for (int32_t out = 0; out < program->ops[i].outputs; out++)
            if (op_output(program, &program->ops[i], out) == tensor)
                return &program->ops[i];
    return NULL;
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

/* Where each convolution makes signals smaller, nothing of the first ones shows in the outputs of
 * twenty: so none does, as He has it. */
static void task_fit_conv(struct task *task, const struct program *program, const struct op *conv)
{
    const int32_t w = program->tensors[op_input(program, conv, 1)].entry;
    if (w < 0 || task->params.entries[w].given)
        return;
    const double squares = task_squares(task, w, task->params.entries[w].shape.dim[0]);
    if (!(squares > 0 && squares < 2))
        return;
    float *weights = params_data(&task->params, w);
    for (int64_t i = 0; i < shape_count(&task->params.entries[w].shape); i++)
        weights[i] *= (float)sqrt(2 / squares);
}

/* A norm whose running variance is one would let signals fade, layer by layer, until nothing at the
 * input shows in outputs. So it is what the weights before the norm make of inputs of size one. */
static void task_fit_norm(struct task *task, const struct program *program, const struct op *norm)
{
    enum { WEIGHT = 1, VARIANCE = 4 };
    const struct op *before = task_writer(program, op_input(program, norm, 0));
    if (!before || (before->kind != OP_conv && before->kind != OP_dense))
        return;
    const int32_t w = program->tensors[op_input(program, before, WEIGHT)].entry;
    const int32_t v = program->tensors[op_input(program, norm, VARIANCE)].entry;
    if (w < 0 || v < 0 || task->params.entries[v].given)
        return;
    float *variance = params_data(&task->params, v);
    const int64_t channels = shape_count(&task->params.entries[v].shape);
    const double squares = task_squares(task, w, channels);
    for (int64_t i = 0; i < channels; i++)
        variance[i] *= (float)squares;
}

static void task_fit(struct task *task)
{
    for (int32_t p = 0; p < task->step.count; p++) {
        const struct program *program = task->step.programs[p];
        for (int32_t i = 0; i < program->op_count; i++)
            if (program->ops[i].kind == OP_conv)
                task_fit_conv(task, program, &program->ops[i]);
            else if (program->ops[i].kind == OP_batch_norm_fixed)
                task_fit_norm(task, program, &program->ops[i]);
    }
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
        if (!plain || entry->given || entry->dtype != DTYPE_F32 || entry->role == ROLE_STATE)
            continue;
        float *values = params_data(&task->params, e);
        const int64_t count = shape_count(&entry->shape);
        const bool shifts = is_shift(entry);
        for (int64_t i = 0; i < count; i++)
            values[i] += HALF_WIDTH * (2 * rng_uniform(key, (uint32_t)e, (uint32_t)i) - 1) +
                         (shifts ? task_shift(shift_key, (uint32_t)e, (uint32_t)i) : 0);
    }
}

/* How much of a number the precision rounds away. */
static enum status task_rounding(struct task *task, const char *precision)
{
    static const struct {
        const char *precision;
        double rounding;
    } rows[] = {{"fp32", 0x1p-24},
                {"tf32", 0x1p-11},
                {"fp16", 0x1p-11},
                {"bf16", 0x1p-8},
                {"int8", 0x1p-7}};
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
    bool own = !optimiser || strcmp(optimiser, network->optimiser.kind->name) == 0;
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

/* Before any of it is made. What fusing saves is not known yet: activations and gradients are
 * counted when they are asked for. */
static enum status task_check_memory(const struct task *task, bool host)
{
    double kept = 0, total = (double)mem_total();
    for (int role = 0; role < ROLE_COUNT; role++)
        kept += (double)task->params.blocks[role].bytes;
    if ((host ? 2 : 1) * kept > total)
        FAIL(STATUS_MEMORY,
             "out of memory: %s takes %.1f MB for its parameters, and as much again where they are "
             "used; this machine allows %.1f MB",
             task->network->name, kept / 1e6, total / 1e6);
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

static enum status task_fill(struct task *task, const struct task_options *options)
{
    TRY(task_rounding(task, options->precision));
    TRY(network_open(options->model, &task->network));
    if (task->phase == PHASE_INFERENCE)
        network_settle(&task->network);
    task->optimiser = task->network->optimiser;
    const char *optimiser = task_optimiser(task->network, options->optimiser);
    TRY(optimiser_parse(optimiser, &task->optimiser));
    if (optimiser)
        NEED(task->optimiser_text = arena_text(&task->arena, optimiser));
    TRY(task_compile(task));
    TRY(task_check_memory(task, options->host));
    TRY(params_fill(&task->params, task->seed));
    task_vary(task);
    task_fit(task);
    task->params.control.rate = optimiser_value(&task->optimiser, "rate");
    TRY(task_count_work(task));

    task->rows = (int64_t)TASK_BATCHES * task->batch;
    int64_t classes = task_classes(task);
    TRY(task_add_data(task, "x", STREAM_X, task->network->tokens));
    TRY(task_add_data(task, "target", STREAM_TARGET, 0));
    TRY(task_add_data(task, "label", STREAM_TARGET, classes));
    NEED(task->order = arena_array(&task->arena, (size_t)task->rows, sizeof *task->order));
    task_shuffle(task->seed, task->order, (uint32_t)task->rows);

    const bool training = task->phase == PHASE_TRAINING;
    const bool cheap = task->work.forward.flop + task->work.backward.flop < CHEAP_FLOP;
    const bool full = training && task_steps_are_full(task);
    task->check_steps = cheap && !full ? CHECK_STEPS_CHEAP
                        : training     ? CHECK_STEPS_TRAINING
                                       : CHECK_STEPS_INFERENCE;
    if (training)
        return task_choose_places(task);
    int32_t y;
    const struct program *program = task_output(task, "y", &y);
    if (!program)
        FAIL(STATUS_UNSUPPORTED, "%s: it has no output", options->model);
    int64_t outputs = task->check_steps * shape_count(&program->tensors[y].shape);
    task->value_count = outputs < TASK_OUTPUTS ? outputs : TASK_OUTPUTS;
    return STATUS_OK;
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

/* Gives the task away if all went well. */
static enum status task_give(struct task *task, enum status status, struct task **out)
{
    if (status == STATUS_OK)
        *out = task;
    else
        task_close(task);
    return status;
}

enum status task_open(const struct task_options *options, struct task **out)
{
    struct task *task = NULL;
    enum status status = task_make(options, &task);
    if (status == STATUS_OK)
        status = task_fill(task, options);
    return task_give(task, status, out);
}

const char *task_onnx_end(const char *model)
{
    return network_built_in(model) ? NULL : network_onnx_end(model);
}

static enum status task_refuse(struct task *task, const char *reason)
{
    NEED(task->refused = arena_text(&task->arena, reason));
    return STATUS_OK;
}

enum status task_open_file(const struct task_options *options, const char *reason,
                           struct task **out)
{
    struct task *task = NULL;
    enum status status = task_make(options, &task);
    if (status == STATUS_OK)
        status = task_refuse(task, reason);
    return task_give(task, status, out);
}

static const char weights_name[] = "weights.safetensors", data_name[] = "data.safetensors",
                  onnx_name[] = "network.onnx";

/* With the files that are ours; whatever else is in it stays, and so does it. */
static void folder_remove(const char *folder)
{
    static const char *const names[] = {weights_name, data_name, onnx_name};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
            unlink(path);
    rmdir(folder);
}

/* Opens and locks it; -1: somebody uses it. The lock ends with its process, however that ends. */
static int folder_lock(const char *folder)
{
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

/* Removes folders of this user that nobody uses any more. One that was just made may not be locked
 * yet. */
static void folders_clean(void)
{
    enum { YOUNG_S = 60 };
    char path[PATH_MAX];
    struct stat info;
    DIR *all = opendir(file_temporary_folder());
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
        if (!text_starts(entry->d_name, "prony-") ||
            strlen(entry->d_name) != strlen("prony-XXXXXX"))
            continue;
        snprintf(path, sizeof path, "%s/%s", file_temporary_folder(), entry->d_name);
        if (lstat(path, &info) != 0 || info.st_uid != geteuid() ||
            time(NULL) - info.st_mtime < YOUNG_S)
            continue;
        int lock = folder_lock(path);
        if (lock < 0)
            continue;
        folder_remove(path);
        close(lock);
    }
    if (all)
        closedir(all);
}

void task_close(struct task *task)
{
    if (!task)
        return;
    if (task->folder)
        folder_remove(task->folder);
    if (task->folder_lock)
        close(task->folder_lock);
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

/* The data as a peer visits it: row after row. */
static enum status task_write_data(const struct task *task, const char *path)
{
    struct params sorted;
    enum status status = STATUS_OK;

    params_init(&sorted, DTYPE_F32);
    for (int32_t e = 0; e < task->data.count; e++) {
        const struct entry *entry = &task->data.entries[e];
        int32_t copy;
        TRY_OR(done, params_declare(&sorted, entry->name, entry->role, entry->dtype, entry->shape,
                                    entry->init, &copy));
        const char *from = params_data(&task->data, e);
        char *to = params_data(&sorted, copy);
        size_t row_bytes = (size_t)(entry->bytes / (uint64_t)task->rows);
        for (int64_t row = 0; row < task->rows; row++)
            memcpy(to + (size_t)row * row_bytes, from + task->order[row] * row_bytes, row_bytes);
    }
    status = safetensors_write(path, &sorted, SAFETENSORS_WEIGHTS, NULL, 0);
done:
    params_free(&sorted);
    return status;
}

enum status task_write_files(struct task *task)
{
    if (task->folder)
        return STATUS_OK;
    char *folder = arena_format(&task->arena, "%s/prony-XXXXXX", file_temporary_folder());
    NEED(folder);
    folders_clean();
    if (!mkdtemp(folder))
        FAIL(STATUS_IO, "cannot make a temporary folder like %s: %s", folder, strerror(errno));
    int lock = folder_lock(folder);
    task->folder_lock = lock > 0 ? lock : 0;
    task->weights_path = arena_format(&task->arena, "%s/%s", folder, weights_name);
    task->data_path = arena_format(&task->arena, "%s/%s", folder, data_name);
    task->onnx_path = arena_format(&task->arena, "%s/%s", folder, onnx_name);
    if (!task->weights_path || !task->data_path || !task->onnx_path) {
        rmdir(folder);
        FAIL(STATUS_MEMORY, "out of memory");
    }
    task->folder = folder;
    TRY(safetensors_write(task->weights_path, &task->params, SAFETENSORS_WEIGHTS, NULL, 0));
    return task_write_data(task, task->data_path);
}

enum status task_write_onnx(struct task *task)
{
    const struct compile_options options = {.batch = task->batch, .use = USE_TRAINING};
    const enum loss_kind loss = network_loss(task->network, &options);
    const struct onnx_ends ends = {.loss = loss == LOSS_CROSS_ENTROPY ? loss : LOSS_MSE};
    if (file_exists(task->onnx_path))
        return STATUS_OK;
    return onnx_write(task->onnx_path, task->network, &task->params, &ends);
}
