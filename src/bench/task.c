/* task.c: see task.h. */
#include "bench/task.h"

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
enum { LEAST_PER_ENTRY = 8, LEAST_TO_WEIGH = 64 }; /* places; the latter where sizes are compared */
enum { STREAM_X = 1, STREAM_TARGET, STREAM_ORDER, STREAM_SHAKE }; /* of random numbers */

/* Steps of a check: enough for an error to add up, few enough for a slow peer. */
static const uint64_t CHEAP_FLOP = 50000000;
enum { CHECK_STEPS_CHEAP = 3, CHECK_STEPS_DEAR = 1 };

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
    const struct rng_key key = {.seed = TASK_SEED, .stream = stream};
    for (int64_t row = 0; row < task->rows; row++)
        if (tensor->dtype == DTYPE_I32)
            task_draw_below(key, (uint32_t)row, width, most, (int32_t *)data + row * width);
        else
            task_draw_units(key, (uint32_t)row, width, (float *)data + row * width);
    return STATUS_OK;
}

/* Fisher–Yates. */
static void task_shuffle(uint32_t *order, uint32_t count)
{
    const struct rng_key key = {.seed = TASK_SEED, .stream = STREAM_ORDER};
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = rng_below(key, i, 0, i), kept = order[j];
        order[j] = order[i - 1];
        order[i - 1] = kept;
    }
}

/* Every entry has places in proportion to its size, evenly spread, and at least a few. */
static enum status task_choose_places(struct task *task)
{
    const struct params *params = &task->params;
    uint64_t total = params_count(params);
    const int64_t least = task->rounding > 0 ? LEAST_TO_WEIGH : LEAST_PER_ENTRY;
    size_t room = TASK_SAMPLES + (size_t)params->count * (size_t)(least + 1);

    NEED(task->places = arena_array(&task->arena, room, sizeof *task->places));
    for (int32_t e = 0; e < params->count; e++) {
        if (params->entries[e].role != ROLE_PARAM)
            continue;
        int64_t size = shape_count(&params->entries[e].shape);
        int64_t share = (int64_t)((double)size / (double)total * TASK_SAMPLES) + 1;
        share = share < least ? least : share;
        share = share > size ? size : share;
        for (int64_t i = 0; i < share; i++)
            task->places[task->value_count++] =
                (struct task_place){e, (int64_t)((double)size / (double)share * (double)i)};
    }
    return STATUS_OK;
}

/* What rounding may do: to outputs, and to how far parameters move, where errors add up; and by
 * how much it changes a number. The masters of the parameters are fp32 in all of them. */
static enum status task_tolerate(struct task *task, const char *precision)
{
    static const struct {
        const char *precision;
        double inference, training, rounding;
    } rows[] = {{"fp32", 1e-3, 1e-2, 0},
                {"tf32", 1e-2, 2e-1, 0x1p-11},
                {"fp16", 1e-2, 2e-1, 0x1p-11},
                {"bf16", 5e-2, 3e-1, 0x1p-8},
                {"int8", 1e-1, 3e-1, 0x1p-7}};
    size_t i = 0;
    while (precision && precision[0] && i < sizeof rows / sizeof *rows &&
           strcmp(rows[i].precision, precision) != 0)
        i++;
    if (i == sizeof rows / sizeof *rows)
        FAIL(STATUS_INPUT, "there is no precision \"%s\"", precision);
    task->coarse = i > 0;
    task->rounding = rows[i].rounding;
    task->tolerance = task->phase == PHASE_TRAINING ? rows[i].training : rows[i].inference;
    return STATUS_OK;
}

const char *task_optimiser(const struct network *network, const char *optimiser)
{
    bool own = !optimiser || strcmp(optimiser, network->optimiser.kind->name) == 0;
    return own ? NULL : optimiser;
}

/* Behind many batch norms rounding alone turns relus on and off and moves single gradients by tens
 * of per cent, in every framework: of ResNet-50's the mean square differs by up to 5 %. */
static void task_tolerate_depth(struct task *task)
{
    enum { MANY_NORMS = 8 };
    static const double DEEP = 0.1;
    int norms = 0;
    for (int32_t p = 0; p < task->step.count; p++)
        for (int32_t i = 0; i < task->step.programs[p]->op_count; i++)
            norms += task->step.programs[p]->ops[i].kind == OP_batch_norm_grad;
    if (norms < MANY_NORMS)
        return;
    task->coarse = true;
    task->tolerance = fmax(task->tolerance, DEEP);
}

/* What all programs of an iteration need; the working set is the largest of theirs. */
static enum status task_count_work(struct task *task)
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
 * judged when they are asked for. */
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

static enum status task_fill(struct task *task, const struct task_options *options)
{
    TRY(task_tolerate(task, options->precision));
    TRY(network_open(options->model, &task->network));
    if (task->phase == PHASE_INFERENCE)
        network_settle(&task->network);
    task->optimiser = task->network->optimiser;
    const char *optimiser = task_optimiser(task->network, options->optimiser);
    TRY(optimiser_parse(optimiser, &task->optimiser));
    const struct compile_options compile = {.batch = task->batch,
                                            .use = task->phase == PHASE_TRAINING ? USE_TRAINING
                                                                                 : USE_INFERENCE,
                                            .optimiser = optimiser};
    TRY(recipe_compile_stages(task->network, &task->params, &compile, &task->step));
    TRY(task_check_memory(task, options->host));
    TRY(params_fill(&task->params, TASK_SEED));
    task->params.control.rate = optimiser_value(&task->optimiser, "rate");
    TRY(task_count_work(task));

    task->rows = (int64_t)TASK_BATCHES * task->batch;
    int64_t classes = task_classes(task);
    TRY(task_add_data(task, "x", STREAM_X, task->network->tokens));
    TRY(task_add_data(task, "target", STREAM_TARGET, 0));
    TRY(task_add_data(task, "label", STREAM_TARGET, classes));
    NEED(task->order = arena_array(&task->arena, (size_t)task->rows, sizeof *task->order));
    task_shuffle(task->order, (uint32_t)task->rows);

    uint64_t flop = task->work.forward.flop + task->work.backward.flop;
    task->check_steps = flop < CHEAP_FLOP ? CHECK_STEPS_CHEAP : CHECK_STEPS_DEAR;
    const struct program *drawing; /* a unit's chance that rounding moves may turn it on or off */
    if (task_find_op(task, OP_bernoulli, &drawing))
        task->coarse = true;
    task_tolerate_depth(task);
    if (task->phase == PHASE_TRAINING)
        return task_choose_places(task);
    int32_t y;
    const struct program *program = task_output(task, "y", &y);
    if (!program)
        FAIL(STATUS_UNSUPPORTED, "%s: it has no output", options->model);
    int64_t outputs = task->check_steps * shape_count(&program->tensors[y].shape);
    task->value_count = outputs < TASK_SAMPLES ? outputs : TASK_SAMPLES;
    return STATUS_OK;
}

static enum status task_make(const struct task_options *options, struct task **out)
{
    struct task *task = mem_alloc(sizeof *task);
    NEED(*out = task);
    task->phase = options->phase;
    task->batch = options->batch;
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
    network_free(task->network);
    params_free(&task->params);
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

enum status task_outcome(struct task *task, struct arena *arena, struct outcome *out)
{
    out->loss = 0;
    NEED(out->values = arena_array(arena, (size_t)task->value_count, sizeof *out->values));
    return STATUS_OK;
}

float task_initial(const struct task *task, int64_t place)
{
    const struct task_place *at = &task->places[place];
    return ((const float *)params_data(&task->params, at->entry))[at->element];
}

void task_shake(const struct task *task, float *values, uint64_t count)
{
    const struct rng_key key = {.seed = TASK_SEED, .stream = STREAM_SHAKE};
    const float up = (float)(1 + task->rounding), down = (float)(1 - task->rounding);
    for (uint64_t i = 0; i < count; i++)
        values[i] *= rng_below(key, (uint32_t)(i >> 32), (uint32_t)i, 2) ? up : down;
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
