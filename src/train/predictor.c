/* predictor.c: see predictor.h. */
#include "train/predictor.h"

#include "base/memory.h"
#include "core/pass/fuse.h"

#include <string.h>

/* The program, fused, and its plan. */
static enum status prepare(struct predictor *predictor, struct model *model,
                           const struct predictor_options *options)
{
    const struct model_form form = model_form(model);
    struct engine *engine = form.engine;
    struct compile_options compile = model_compile_options(model, USE_INFERENCE, options->rows);
    const struct plan_options plan = {.answering = options->answering};
    struct recipe_traits traits;
    struct program *fused;
    predictor->engine = engine;
    TRY(model_traits(model, &traits));
    if (traits.classes && model->class_count)
        FAIL(STATUS_INPUT,
             "%s learns on a condition, expected prony_predict_data: data has the class of each "
             "row",
             model->network->name);
    predictor->returns = traits.targets ? model_returns(model, &traits) : NULL;
    compile.stage = traits.stages - 1;
    TRY(recipe_compile(form.network, form.params, &compile, &predictor->step));
    TRY(fuse(predictor->step.programs[0], engine->backend, engine->device, &fused));
    program_free(predictor->step.programs[0]);
    predictor->step.programs[0] = fused;
    TRY(engine_check_memory(engine->backend, &fused, 1, form.params, 0));
    TRY(engine_attach(engine, form.params));
    return engine->backend->prepare(engine->instance, fused, &plan, &predictor->plan);
}

static enum status make_ring(struct predictor *predictor, uint64_t depth)
{
    NEED(predictor->ring_x =
             mem_array((size_t)depth, (size_t)predictor->inputs * sizeof *predictor->ring_x));
    NEED(predictor->ring_y =
             mem_array((size_t)depth, (size_t)predictor->outputs * sizeof *predictor->ring_y));
    NEED(predictor->into = mem_array((size_t)depth, sizeof *predictor->into));
    predictor->depth = depth;
    return STATUS_OK;
}

/* Binds the plan to so many requests in these arrays, from the next one on. */
static enum status bind(struct predictor *predictor, uint64_t requests, const float *x, float *y)
{
    const int64_t rows = (int64_t)requests * predictor->rows;
    const struct view views[] = {
        {predictor->x, (void *)(uintptr_t)x, rows}, /* is not const, but only read */
        {predictor->y, y, rows},
    };
    const struct binding binding = {
        .views = views, .view_count = 2, .ingestion = INGEST_PINNED /* calls come from the host */};
    predictor->bound_x = NULL; /* if that fails it is bound to nothing */
    TRY(predictor->engine->backend->bind(predictor->plan, &binding));
    predictor->bound_x = x;
    predictor->bound_y = y;
    return STATUS_OK;
}

enum status predictor_open(struct predictor *predictor, struct model *model,
                           const struct predictor_options *options)
{
    const struct scaling *scaling = &model->scaling;
    predictor->name = model->network->name;
    predictor->rows = options->rows;
    predictor->scaling = scaling->columns || scaling->tokens ? scaling : NULL;
    TRY(prepare(predictor, model, options));
    const struct program *program = predictor->step.programs[0];
    predictor->x = program_find(program, ROLE_INPUT, "x");
    predictor->y = program_find(program, ROLE_OUTPUT, "y");
    predictor->inputs = options->rows * shape_count(&model->network->input);
    predictor->outputs = shape_count(&program->tensors[predictor->y].shape);
    const bool in_place = strcmp(model->engine.backend->unit, "cpu") == 0 && !predictor->scaling &&
                          !predictor->returns;
    if (!options->depth && in_place)
        return STATUS_OK;
    TRY(make_ring(predictor, options->depth ? (uint64_t)options->depth : 1));
    return bind(predictor, predictor->depth, predictor->ring_x, predictor->ring_y);
}

void predictor_close(struct predictor *predictor)
{
    if (predictor->plan)
        predictor->engine->backend->release(predictor->plan);
    recipe_free(&predictor->step);
    mem_free(predictor->ring_x);
    mem_free(predictor->ring_y);
    mem_free(predictor->into);
    *predictor = (struct predictor){0};
}

static enum status check_arrays(const struct predictor *predictor, const float *inputs,
                                const float *outputs)
{
    if (!inputs || !outputs)
        FAIL(STATUS_INPUT, "%s: found NULL for its %s, expected an array", predictor->name,
             inputs ? "outputs" : "inputs");
    return STATUS_OK;
}

enum status predictor_ask(struct predictor *predictor, const float *inputs, float *outputs)
{
    const uint64_t place = predictor->asked % predictor->depth;
    float *x = predictor->ring_x + place * (uint64_t)predictor->inputs;
    TRY(check_arrays(predictor, inputs, outputs));
    memcpy(x, inputs, (size_t)predictor->inputs * sizeof *x);
    if (predictor->scaling) {
        struct dataset rows = {.name = predictor->name,
                               .rows = predictor->rows,
                               .columns = (int32_t)(predictor->inputs / predictor->rows),
                               .features = x};
        TRY(scaling_apply(predictor->scaling, &rows));
    }
    TRY(predictor->engine->backend->run(predictor->plan, PARTS_ALL, 0, 1));
    predictor->into[place] = outputs;
    predictor->asked++;
    return STATUS_OK;
}

static void undo_scale(const struct predictor *predictor, float *outputs)
{
    const int64_t width = predictor->outputs / predictor->rows;
    for (int64_t row = 0; predictor->returns && row < predictor->rows; row++)
        scaling_undo_row(predictor->returns, outputs + row * width);
}

enum status predictor_answer(struct predictor *predictor)
{
    TRY(predictor->engine->backend->sync(predictor->plan));
    for (; predictor->answered < predictor->asked; predictor->answered++) {
        const uint64_t place = predictor->answered % predictor->depth;
        memcpy(predictor->into[place], predictor->ring_y + place * (uint64_t)predictor->outputs,
               (size_t)predictor->outputs * sizeof *predictor->ring_y);
        undo_scale(predictor, predictor->into[place]);
    }
    return STATUS_OK;
}

enum status predictor_call(struct predictor *predictor, const float *inputs, float *outputs)
{
    const struct backend *backend = predictor->engine->backend;
    if (predictor->depth) {
        TRY(predictor_ask(predictor, inputs, outputs));
        return predictor_answer(predictor);
    }
    if (inputs != predictor->bound_x || outputs != predictor->bound_y || !inputs) {
        TRY(check_arrays(predictor, inputs, outputs));
        TRY(bind(predictor, 1, inputs, outputs));
    }
    TRY(backend->run(predictor->plan, PARTS_ALL, 0, 1));
    return backend->sync(predictor->plan);
}
