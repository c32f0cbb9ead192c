/* prony_api.c: include/prony.h over the engine: a network, its parameters on one device, and a plan
 * for each batch size in use. This folder wires what train/ may not see, as cli/ does: which
 * backends there are and where plugins lie. */
#include "prony.h"

#include "backend/cpu/cpu_backends.h"
#include "base/memory.h"
#include "core/pass/fuse.h"
#include "train/engine.h"
#include "train/model.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_MOST = 8 };

/* One program and its plan: training or inference at one batch size. */
struct step {
    enum program_use use;
    struct program *program; /* NULL: the place is free */
    struct plan *plan;
};

struct prony {
    struct registry registry;
    struct network *network;
    struct model model;
    struct engine engine;
    struct compile_options options; /* of training; use and batch vary */
    int64_t outputs, places;        /* numbers, and classes, a sample has */
    struct step steps[STEPS_MOST];
    int next;      /* the place that is taken, or taken over, next */
    void *inputs;  /* a copy of what was given: scaled, or as tokens; or NULL */
    float *levels; /* classes as numbers; or NULL */
};

const char *prony_version(void)
{
    return PRONY_VERSION;
}

const char *prony_error(void)
{
    return status_message();
}

static void step_close(struct step *step, const struct engine *engine)
{
    if (step->plan)
        engine->backend->release(step->plan);
    program_free(step->program);
    *step = (struct step){0};
}

void prony_close(struct prony *network)
{
    if (!network)
        return;
    for (int i = 0; i < STEPS_MOST; i++)
        step_close(&network->steps[i], &network->engine);
    engine_close(&network->engine);
    mem_free(network->inputs);
    mem_free(network->levels);
    model_free(&network->model);
    network_free(network->network);
    registry_close(&network->registry);
    mem_free(network);
}

/* The folder of the file this code is in: the shared library's, or the executable's. */
static enum status find_folder(char *folder, size_t size)
{
    Dl_info info;
    ssize_t length;
    if (dladdr((void *)(uintptr_t)prony_version, &info) && strchr(info.dli_fname, '/'))
        length = snprintf(folder, size, "%s", info.dli_fname);
    else
        length = readlink("/proc/self/exe", folder, size);
    if (length <= 0 || (size_t)length >= size)
        FAIL(STATUS_IO, "cannot find out where prony lies: is /proc mounted?");
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    return STATUS_OK;
}

/* Declares all that training needs, so that programs of any batch size find it there. */
static enum status declare(struct prony *network)
{
    struct compile_options options = network->options;
    struct program *program;
    options.batch = 1;
    options.use = USE_TRAINING;
    TRY(network_compile(network->network, &network->model.params, &options, &program));
    int32_t label = program_find(program, ROLE_INPUT, "label");
    network->places = label < 0 ? 1 : shape_count(&program->tensors[label].shape);
    program_free(program);
    options.use = USE_INFERENCE;
    TRY(network_compile(network->network, &network->model.params, &options, &program));
    const struct tensor *y = &program->tensors[program_find(program, ROLE_OUTPUT, "y")];
    network->outputs = shape_count(&y->shape);
    program_free(program);
    return STATUS_OK;
}

static enum status name_classes(struct model *model, int32_t count)
{
    NEED(model->classes = arena_array(&model->arena, (size_t)count, sizeof *model->classes));
    for (int32_t i = 0; i < count; i++)
        NEED(model->classes[i] = arena_format(&model->arena, "%d", i));
    model->class_count = count;
    return STATUS_OK;
}

static enum status open_network(struct prony *network, const struct prony_options *options)
{
    char folder[4096];
    const struct backend *backend;
    struct params *params = &network->model.params;
    const struct device_options device = {.threads = options->threads, .isa = ISA_AVX512};
    TRY(find_folder(folder, sizeof folder));
    cpu_register(&network->registry);
    TRY(registry_load(&network->registry, folder));
    TRY(registry_find(&network->registry, options->backend ? options->backend : "ref", &backend));
    network->options = (struct compile_options){
        .classes = options->classes,
        .optimiser = options->optimiser,
    };
    if (options->loss)
        TRY(loss_read(options->loss, &network->options.loss));
    network->model.loss = network->options.loss;
    TRY(name_classes(&network->model, options->classes));
    TRY(declare(network));
    TRY(params_fill(params, options->seed));
    if (options->rate > 0)
        params->control.rate = options->rate;
    else
        TRY(network_rate(network->network, options->optimiser, &params->control.rate));
    return engine_open(&network->engine, backend, &device, params);
}

static enum status open_with(const char *name, const char *text,
                             const struct prony_options *options, struct prony **out)
{
    static const struct prony_options usual;
    struct prony *network;
    enum status status;
    *out = NULL;
    NEED(network = mem_alloc(sizeof *network));
    if (text)
        TRY_OR(fail, network_parse(name, text, strlen(text), &network->network));
    else
        TRY_OR(fail, network_open(name, &network->network));
    model_init(&network->model, network->network);
    TRY_OR(fail, open_network(network, options ? options : &usual));
    *out = network;
    return STATUS_OK;
fail:
    prony_close(network);
    return status;
}

int prony_open(const char *network, const struct prony_options *options, struct prony **out)
{
    return (int)open_with(network, NULL, options, out);
}

int prony_open_text(const char *name, const char *text, const struct prony_options *options,
                    struct prony **out)
{
    return (int)open_with(name, text, options, out);
}

int64_t prony_inputs(const struct prony *network)
{
    return shape_count(&network->network->input);
}

int64_t prony_outputs(const struct prony *network)
{
    return network->outputs;
}

int64_t prony_parameters(const struct prony *network)
{
    return (int64_t)params_count(&network->model.params);
}

static enum status step_open(struct prony *network, enum program_use use, int32_t rows,
                             struct step *step)
{
    const struct engine *engine = &network->engine;
    struct compile_options options = network->options;
    struct program *program;
    options.use = use;
    options.batch = rows;
    step->use = use;
    TRY(network_compile(network->network, &network->model.params, &options, &program));
    enum status status = fuse(program, engine->backend, engine->device, &step->program);
    program_free(program);
    TRY(status);
    return engine->backend->prepare(engine->instance, step->program, &(struct plan_options){0},
                                    &step->plan);
}

/* The plan for so many rows: one there is, or a new one in the oldest one's place. */
static enum status find_step(struct prony *network, enum program_use use, int32_t rows,
                             const struct step **out)
{
    if (rows < 1)
        FAIL(STATUS_INPUT, "found %d rows, expected at least 1", rows);
    for (int i = 0; i < STEPS_MOST; i++)
        if (network->steps[i].program && network->steps[i].use == use &&
            network->steps[i].program->batch == rows) {
            *out = &network->steps[i];
            return STATUS_OK;
        }
    struct step *step = &network->steps[network->next];
    network->next = (network->next + 1) % STEPS_MOST;
    step_close(step, &network->engine);
    enum status status = step_open(network, use, rows, step);
    if (status != STATUS_OK)
        step_close(step, &network->engine);
    *out = step;
    return status;
}

/* Whole numbers below the network's count of tokens, given as floats. */
static enum status take_tokens(const struct network *network, size_t count, const float *from,
                               int32_t *to)
{
    for (size_t i = 0; i < count; i++) {
        if (!(from[i] >= 0 && from[i] < (float)network->tokens) || from[i] != (float)(int)from[i])
            FAIL(STATUS_INPUT, "input %zu: found %g, expected a token: a whole number from 0 to %d",
                 i, (double)from[i], network->tokens - 1);
        to[i] = (int32_t)from[i];
    }
    return STATUS_OK;
}

/* What the network is given: the caller's rows, or a copy of them, scaled or as tokens. */
static enum status take_inputs(struct prony *network, int32_t rows, const float *given,
                               const void **inputs)
{
    const struct scaling *scaling = &network->model.scaling;
    size_t count = (size_t)rows * (size_t)prony_inputs(network);
    void *copy;
    *inputs = given;
    if (!scaling->columns && !network->network->tokens)
        return STATUS_OK;
    NEED(copy = mem_grow(network->inputs, count, sizeof(float)));
    *inputs = network->inputs = copy;
    if (network->network->tokens)
        return take_tokens(network->network, count, given, copy);
    memcpy(copy, given, count * sizeof(float));
    scaling_apply(scaling,
                  &(struct dataset){.rows = rows, .columns = scaling->columns, .features = copy});
    return STATUS_OK;
}

struct bound_array {
    enum role role;
    const char *name;
    void *data;
    int64_t rows;
};

static enum status run_step(struct prony *network, const struct step *step,
                            const struct bound_array *arrays, int count)
{
    const struct backend *backend = network->engine.backend;
    struct view views[4];
    struct binding binding = {.views = views};
    for (int i = 0; i < count; i++) {
        int32_t tensor = program_find(step->program, arrays[i].role, arrays[i].name);
        if (tensor >= 0)
            views[binding.view_count++] = (struct view){tensor, arrays[i].data, arrays[i].rows};
    }
    TRY(backend->bind(step->plan, &binding));
    TRY(backend->run(step->plan, PARTS_ALL, 0, 1));
    return backend->sync(step->plan);
}

/* One step towards `target`, the array that the program loads under that name. */
static enum status train(struct prony *network, const struct step *step, int32_t rows,
                         const float *inputs, const char *name, const void *target, float *loss)
{
    float value, right;
    const void *x;
    TRY(take_inputs(network, rows, inputs, &x));
    /* a view is not const, but what a program loads it only reads */
    const struct bound_array arrays[] = {
        {ROLE_INPUT, "x", (void *)(uintptr_t)x, rows},
        {ROLE_INPUT, name, (void *)(uintptr_t)target, rows},
        {ROLE_OUTPUT, "loss", &value, 1},
        {ROLE_OUTPUT, "right", &right, 1},
    };
    TRY(run_step(network, step, arrays, 4));
    if (loss)
        *loss = value;
    return STATUS_OK;
}

/* Class c of C as the number c ÷ (C − 1), for losses over numbers. */
static enum status make_levels(struct prony *network, int32_t rows, const int32_t *classes,
                               int32_t count)
{
    float *levels;
    NEED(levels = mem_grow(network->levels, (size_t)rows, sizeof *levels));
    network->levels = levels;
    for (int32_t i = 0; i < rows; i++)
        levels[i] = (float)classes[i] / (float)(count > 1 ? count - 1 : 1);
    return STATUS_OK;
}

static enum status train_classes(struct prony *network, int32_t rows, const float *inputs,
                                 const int32_t *classes, float *loss)
{
    const struct step *step;
    TRY(find_step(network, USE_TRAINING, rows, &step));
    int32_t count = network->model.class_count;
    if (!count)
        FAIL(STATUS_INPUT, "%s was opened for numbers, expected prony_options.classes above 0",
             network->network->name);
    for (int64_t i = 0; i < rows * network->places; i++)
        if (classes[i] < 0 || classes[i] >= count)
            FAIL(STATUS_INPUT, "row %lld: found class %d, expected one from 0 to %d",
                 (long long)(i / network->places), classes[i], count - 1);
    if (program_find(step->program, ROLE_INPUT, "label") >= 0)
        return train(network, step, rows, inputs, "label", classes, loss);
    if (network->outputs != 1)
        FAIL(STATUS_INPUT, "%s: found %lld outputs, expected 1: its loss takes classes as levels",
             network->network->name, (long long)network->outputs);
    TRY(make_levels(network, rows, classes, count));
    return train(network, step, rows, inputs, "target", network->levels, loss);
}

int prony_train_classes(struct prony *network, int32_t rows, const float *inputs,
                        const int32_t *classes, float *loss)
{
    return (int)train_classes(network, rows, inputs, classes, loss);
}

static enum status train_numbers(struct prony *network, int32_t rows, const float *inputs,
                                 const float *numbers, float *loss)
{
    const struct step *step;
    TRY(find_step(network, USE_TRAINING, rows, &step));
    if (program_find(step->program, ROLE_INPUT, "target") < 0)
        FAIL(STATUS_INPUT, "%s learns classes, expected prony_train_classes",
             network->network->name);
    return train(network, step, rows, inputs, "target", numbers, loss);
}

int prony_train_numbers(struct prony *network, int32_t rows, const float *inputs,
                        const float *numbers, float *loss)
{
    return (int)train_numbers(network, rows, inputs, numbers, loss);
}

static enum status predict(struct prony *network, int32_t rows, const float *inputs, float *outputs)
{
    const struct step *step;
    const void *x;
    TRY(find_step(network, USE_INFERENCE, rows, &step));
    TRY(take_inputs(network, rows, inputs, &x));
    const struct bound_array arrays[] = {
        {ROLE_INPUT, "x", (void *)(uintptr_t)x, rows},
        {ROLE_OUTPUT, "y", outputs, rows},
    };
    return run_step(network, step, arrays, 2);
}

int prony_predict(struct prony *network, int32_t rows, const float *inputs, float *outputs)
{
    return (int)predict(network, rows, inputs, outputs);
}

static enum status save(struct prony *network, const char *path)
{
    const struct engine *engine = &network->engine;
    TRY(engine->backend->download(engine->instance, &network->model.params));
    return model_save_weights(&network->model, path);
}

int prony_save(struct prony *network, const char *path)
{
    return (int)save(network, path);
}

/* A file of prony also says which classes there are and how inputs are scaled; one of another
 * framework is weights alone. */
static enum status load(struct prony *network, const struct safetensors *file)
{
    struct model *model = &network->model;
    const struct engine *engine = &network->engine;
    TRY(engine->backend->download(engine->instance, &model->params));
    TRY(safetensors_load(file, SAFETENSORS_WEIGHTS, &model->params));
    if (model_is_described(file)) {
        scaling_free(&model->scaling);
        TRY(model_read(model, file));
        network->options.classes = model->class_count;
        network->options.loss = model->loss;
        for (int i = 0; i < STEPS_MOST; i++)
            step_close(&network->steps[i], engine);
    }
    return engine->backend->upload(engine->instance, &model->params);
}

int prony_load(struct prony *network, const char *path)
{
    struct safetensors file = {0};
    enum status status = safetensors_open(path, &file);
    if (status == STATUS_OK)
        status = load(network, &file);
    safetensors_close(&file);
    return (int)status;
}
