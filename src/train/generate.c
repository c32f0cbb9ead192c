/* generate.c: see generate.h. */
#include "train/generate.h"

#include "base/memory.h"
#include "core/pass/fuse.h"

#include <math.h>

/* What is needed while it runs. */
struct generation {
    struct model *model;
    const struct generate_options *options;
    struct recipe_step step;
    struct plan *plan;
    int32_t *labels; /* [rows], or NULL */
    float *chain;    /* [rows, inputs]: where Gibbs sampling is, or NULL */
    float *out;
};

static enum status make_inputs(struct generation *generation)
{
    const struct program *program = generation->step.programs[0];
    size_t rows = (size_t)generation->options->rows;
    int32_t classes = generation->model->class_count, only = generation->options->class_index;
    if (program_find(program, ROLE_INPUT, "x") >= 0)
        NEED(generation->chain =
                 mem_array(rows, (size_t)shape_count(&generation->model->network->input) *
                                     sizeof *generation->chain));
    bool told = program_find(program, ROLE_INPUT, "label") >= 0;
    if (only >= 0 && (!told || only >= classes))
        FAIL(STATUS_INPUT, "%s: found a class to generate, expected none: it learnt %s",
             generation->model->network->name, told ? "no such class" : "without a condition");
    if (told)
        NEED(generation->labels = mem_array(rows, sizeof *generation->labels));
    for (size_t i = 0; told && i < rows; i++)
        generation->labels[i] = only >= 0 ? only : (int32_t)(i % (size_t)classes);
    return STATUS_OK;
}

static void add_view(struct view *views, int32_t *count, const struct generation *generation,
                     enum role role, const char *name, void *data)
{
    int32_t tensor = program_find(generation->step.programs[0], role, name);
    if (tensor >= 0)
        views[(*count)++] = (struct view){tensor, data, generation->options->rows};
}

/* Bound anew for each run: what a run left in the chain is what the next one begins with, also on
 * a device that copies what is bound. */
static enum status run(struct generation *generation)
{
    const struct backend *backend = generation->model->engine.backend;
    int64_t runs = generation->chain ? (generation->options->sweeps - 1) / RECIPE_SWEEPS + 1 : 1;
    struct view views[4];
    int32_t count = 0;
    add_view(views, &count, generation, ROLE_INPUT, "x", generation->chain);
    add_view(views, &count, generation, ROLE_INPUT, "label", generation->labels);
    add_view(views, &count, generation, ROLE_OUTPUT, "chain", generation->chain);
    add_view(views, &count, generation, ROLE_OUTPUT, "y", generation->out);
    const struct binding binding = {.views = views, .view_count = count};
    for (int64_t i = 0; i < runs; i++) {
        TRY(backend->bind(generation->plan, &binding));
        TRY(backend->run(generation->plan, PARTS_ALL, 0, 1));
        TRY(backend->sync(generation->plan));
    }
    return STATUS_OK;
}

/* From what the network gives to what the data is like. */
static enum status finish(struct generation *generation)
{
    struct model *model = generation->model;
    struct recipe_traits traits;
    int64_t width = shape_count(&model->network->input), rows = generation->options->rows;
    TRY(model_traits(model, &traits));
    if (traits.returns && traits.loss == LOSS_BINARY_CROSS_ENTROPY)
        for (int64_t i = 0; i < rows * width; i++)
            generation->out[i] = 1 / (1 + expf(-generation->out[i]));
    for (int64_t row = 0; row < rows; row++)
        scaling_undo_row(&model->scaling, generation->out + row * width);
    return STATUS_OK;
}

static enum status generate(struct generation *generation)
{
    struct model *model = generation->model;
    struct engine *engine = &model->engine;
    const struct plan_options usual = {.slots = 1};
    struct compile_options options =
        model_compile_options(model, USE_GENERATION, generation->options->rows);
    struct program *fused;
    TRY(recipe_compile(model->network, &model->params, &options, &generation->step));
    TRY(params_fill_new(&model->params));
    TRY(make_inputs(generation));
    model->params.control.seed = generation->options->seed;
    model->params.control.step = 0;
    TRY(engine_attach(engine, &model->params));
    TRY(fuse(generation->step.programs[0], engine->backend, engine->device, &fused));
    program_free(generation->step.programs[0]);
    generation->step.programs[0] = fused;
    TRY(engine->backend->prepare(engine->instance, fused, &usual, &generation->plan));
    TRY(run(generation));
    return finish(generation);
}

enum status generate_rows(struct model *model, const struct generate_options *options, float *out)
{
    struct generation generation = {.model = model, .options = options, .out = out};
    TRY(engine_detach(&model->engine, &model->params));
    const struct control before = model->params.control;
    enum status status = generate(&generation);
    if (generation.plan)
        model->engine.backend->release(generation.plan);
    enum status left = engine_detach(&model->engine, &model->params);
    model->params.control = before;
    recipe_free(&generation.step);
    mem_free(generation.labels);
    mem_free(generation.chain);
    return status == STATUS_OK ? left : status;
}
