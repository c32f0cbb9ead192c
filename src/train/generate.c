/* generate.c: see generate.h. */
#include "train/generate.h"

#include "base/memory.h"
#include "core/pass/fuse.h"

#include <math.h>

/* Rows are made some at a time: memory and the time until somebody is asked whether to go on do not
 * grow with their number. */
enum { ROWS_AT_ONCE = 2048 };

/* What is needed while it runs. */
struct generation {
    struct model *model;
    const struct generate_options *options;
    struct recipe_traits traits;
    struct recipe_step step; /* for so many rows at once as its program's batch */
    struct plan *plan;
    int32_t *labels; /* [rows], or NULL */
    float *chain;    /* [rows, inputs]: where Gibbs sampling is, or NULL */
    float *out;
};

static void release(struct generation *generation)
{
    if (generation->plan)
        generation->model->engine.backend->release(generation->plan);
    generation->plan = NULL;
    recipe_free(&generation->step);
}

static enum status compile(struct generation *generation, int32_t rows)
{
    struct model *model = generation->model;
    struct compile_options options = model_compile_options(model, USE_GENERATION, rows);
    const struct engine *engine = &model->engine;
    struct program **program = &generation->step.programs[0], *fused;
    TRY(recipe_compile(model->network, &model->params, &options, &generation->step));
    TRY(fuse(*program, engine->backend, engine->device, &fused));
    program_free(*program);
    *program = fused;
    return engine_check_memory(engine->backend, program, 1, &model->params, 0);
}

/* The class of each row, where there is a condition. */
static enum status make_labels(struct generation *generation, bool told)
{
    size_t rows = (size_t)generation->options->rows;
    int32_t classes = generation->model->class_count, only = generation->options->class_index;
    if (only >= 0 && (!told || only >= classes))
        FAIL(STATUS_INPUT, "%s: found a class to generate, expected none: it learnt %s",
             generation->model->network->name, told ? "other classes" : "without a condition");
    if (!told)
        return STATUS_OK;
    NEED(generation->labels = mem_array(rows, sizeof *generation->labels));
    for (size_t i = 0; i < rows; i++)
        generation->labels[i] = only >= 0 ? only : (int32_t)(i % (size_t)classes);
    return STATUS_OK;
}

static enum status make_inputs(struct generation *generation)
{
    const struct program *program = generation->step.programs[0];
    size_t rows = (size_t)generation->options->rows;
    size_t width = (size_t)shape_count(&generation->model->network->input);
    bool chain = program_find(program, ROLE_INPUT, "x") >= 0;
    if (!chain && generation->options->sweeps)
        FAIL(STATUS_INPUT,
             "%s: found a number of sweeps, expected none: only an rbm generates by Gibbs sampling",
             generation->model->network->name);
    if (generation->options->sweeps % RECIPE_SWEEPS)
        FAIL(STATUS_INPUT, "%s: found %lld sweeps, expected a multiple of %d",
             generation->model->network->name, (long long)generation->options->sweeps,
             RECIPE_SWEEPS);
    if (chain) {
        NEED(generation->chain = mem_array(rows, width * sizeof *generation->chain));
        rbm_begin(generation->model->network, &generation->model->params, (int64_t)rows,
                  generation->chain);
    }
    return make_labels(generation, program_find(program, ROLE_INPUT, "label") >= 0);
}

/* Makes the plan of the step's program. */
static enum status prepare(struct generation *generation)
{
    const struct engine *engine = &generation->model->engine;
    const struct plan_options usual = {.slots = 1};
    return engine->backend->prepare(engine->instance, generation->step.programs[0], &usual,
                                    &generation->plan);
}

static void add_view(struct view *views, int32_t *count, const struct generation *generation,
                     enum role role, const char *name, void *data)
{
    int32_t tensor = program_find(generation->step.programs[0], role, name);
    if (tensor >= 0)
        views[(*count)++] = (struct view){tensor, data, generation->options->rows};
}

static enum status check_stop(const struct generation *generation)
{
    const struct generate_options *options = generation->options;
    if (options->stop && options->stop(options->context))
        FAIL(STATUS_INTERRUPTED, "interrupted; nothing was generated");
    return STATUS_OK;
}

/* The rows from `first` on, as many as the program takes. Bound anew for each run: what a run left
 * in the chain is what the next one begins with, also on a device that copies what is bound. */
static enum status run(struct generation *generation, int64_t first)
{
    const struct backend *backend = generation->model->engine.backend;
    int64_t sweeps = generation->options->sweeps ? generation->options->sweeps : GENERATE_SWEEPS;
    int64_t runs = generation->chain ? sweeps / RECIPE_SWEEPS : 1;
    struct view views[4];
    int32_t count = 0;
    add_view(views, &count, generation, ROLE_INPUT, "x", generation->chain);
    add_view(views, &count, generation, ROLE_INPUT, "label", generation->labels);
    add_view(views, &count, generation, ROLE_OUTPUT, "chain", generation->chain);
    add_view(views, &count, generation, ROLE_OUTPUT, "y", generation->out);
    const struct binding binding = {.views = views, .view_count = count, .start = (uint64_t)first};
    for (int64_t i = 0; i < runs; i++) {
        TRY(check_stop(generation));
        TRY(backend->bind(generation->plan, &binding));
        TRY(backend->run(generation->plan, PARTS_ALL, 0, 1));
        TRY(backend->sync(generation->plan));
    }
    return STATUS_OK;
}

/* All rows; the last are mostly fewer, and have a program of their own. */
static enum status run_all(struct generation *generation)
{
    int64_t rows = generation->options->rows;
    for (int64_t first = 0; first < rows;) {
        int64_t left = rows - first;
        if (left < generation->step.programs[0]->batch) {
            release(generation);
            TRY(compile(generation, (int32_t)left));
        }
        if (!generation->plan)
            TRY(prepare(generation));
        TRY(run(generation, first));
        first += generation->step.programs[0]->batch;
    }
    return STATUS_OK;
}

/* From what the network gives to what the data is like. */
static void finish(struct generation *generation)
{
    const struct model *model = generation->model;
    const struct recipe_traits *traits = &generation->traits;
    int64_t width = shape_count(&model->network->input), rows = generation->options->rows;
    if (traits->returns && traits->loss == LOSS_BINARY_CROSS_ENTROPY)
        for (int64_t i = 0; i < rows * width; i++)
            generation->out[i] = 1 / (1 + expf(-generation->out[i]));
    for (int64_t row = 0; row < rows; row++)
        scaling_undo_row(&model->scaling, generation->out + row * width);
}

static enum status generate(struct generation *generation)
{
    struct model *model = generation->model;
    int32_t rows = generation->options->rows;
    TRY(model_traits(model, &generation->traits));
    TRY(compile(generation, rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE));
    TRY(params_fill_new(&model->params));
    model->params.control.seed = generation->options->seed;
    model->params.control.step = 0;
    TRY(make_inputs(generation));
    TRY(engine_attach(&model->engine, &model->params));
    TRY(run_all(generation));
    finish(generation);
    return STATUS_OK;
}

enum status generate_rows(struct model *model, const struct generate_options *options, float *out)
{
    struct generation generation = {.model = model, .options = options, .out = out};
    TRY(engine_detach(&model->engine, &model->params));
    const struct control before = model->params.control;
    enum status status = generate(&generation);
    release(&generation);
    enum status left = engine_detach(&model->engine, &model->params);
    model->params.control = before;
    mem_free(generation.labels);
    mem_free(generation.chain);
    return status == STATUS_OK ? left : status;
}
