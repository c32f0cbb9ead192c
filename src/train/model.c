/* model.c: opening a model, and whether data fits it. */
#include "train/model.h"

#include "base/memory.h"
#include "base/text.h"

static enum status name_classes(struct model *model, int32_t count)
{
    NEED(model->classes = arena_array(&model->arena, (size_t)count, sizeof *model->classes));
    for (int32_t i = 0; i < count; i++)
        NEED(model->classes[i] = arena_format(&model->arena, "%d", i));
    model->class_count = count;
    return STATUS_OK;
}

struct model_form model_form(struct model *model)
{
    struct engine *engine = &model->settled_engine;
    if (!model->network->settled || model->changed)
        return (struct model_form){model->network, &model->params, &model->engine};
    engine->backend = model->engine.backend;
    engine->device = model->engine.device;
    return (struct model_form){model->network->settled, &model->settled, engine};
}

void model_change(struct model *model)
{
    if (model->settled_engine.instance)
        model->settled_engine.backend->detach(model->settled_engine.instance);
    model->settled_engine = (struct engine){0};
    params_free(&model->settled);
    model->changed = true;
}

enum status model_declare(struct model *model, enum program_use use)
{
    struct compile_options options = model_compile_options(model, use, 1);
    struct recipe_traits traits;
    if (use == USE_TRAINING)
        model_change(model);
    TRY(engine_detach(&model->engine, &model->params));
    TRY(model_traits(model, &traits));
    for (; options.stage < traits.stages; options.stage++) {
        struct recipe_step step;
        TRY(recipe_compile(model->network, &model->params, &options, &step));
        recipe_free(&step);
    }
    return STATUS_OK;
}

enum status model_traits(const struct model *model, struct recipe_traits *out)
{
    struct compile_options options = model_compile_options(model, USE_INFERENCE, 1);
    if (!model->part)
        return recipe_traits(model->network, &options, out);
    recipe_part_traits(model->network, &options, out);
    return STATUS_OK;
}

const struct scaling *model_returns(const struct model *model, const struct recipe_traits *traits)
{
    const struct scaling *scaling = traits->inner ? &model->returns : &model->scaling;
    if (traits->targets && traits->loss == LOSS_MSE && !model->class_count)
        return model->targets.columns ? &model->targets : NULL;
    return traits->returns && scaling->columns ? scaling : NULL;
}

enum status model_declare_learnt(struct model *model)
{
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    TRY(model_declare(model, USE_INFERENCE));
    bool usual = traits.targets && traits.stages == 1;
    return usual ? STATUS_OK : model_declare(model, USE_TRAINING);
}

enum status model_open(struct model *model, const struct network *network,
                       const struct backend *backend, const struct device_options *device,
                       const struct model_options *options)
{
    struct params *params = &model->params;
    *model = (struct model){
        .network = network, .loss = options->loss, .weight_bits = options->weight_bits};
    params_init(params, DTYPE_F32);
    params_init(&model->settled, DTYPE_F32);
    model->scaling.tokens = network->tokens;
    const char *optimiser = options->optimiser, *schedule = options->schedule;
    NEED(model->optimiser = arena_text(&model->arena, optimiser ? optimiser : ""));
    NEED(model->schedule = arena_text(&model->arena, schedule ? schedule : ""));
    NEED(model->recipe = arena_text(&model->arena, options->recipe ? options->recipe : ""));
    TRY(name_classes(model, options->class_count));
    params->control.seed = options->seed;
    TRY(model_declare_learnt(model));
    TRY(network_rate(network, model->optimiser, &params->control.rate));
    if (options->rate > 0)
        params->control.rate = options->rate;
    model->engine.recompute = options->recompute;
    return engine_open(&model->engine, backend, device);
}

void model_close(struct model *model)
{
    model_change(model);
    engine_close(&model->engine);
    params_free(&model->params);
    scaling_free(&model->scaling);
    scaling_free(&model->returns);
    scaling_free(&model->targets);
    arena_free(&model->arena);
    *model = (struct model){0};
}

enum status model_keep_classes(struct model *model, const char *const *classes, int32_t count)
{
    NEED(model->classes = arena_array(&model->arena, (size_t)count, sizeof *model->classes));
    for (int32_t i = 0; i < count; i++)
        NEED(model->classes[i] = arena_text(&model->arena, classes[i]));
    model->class_count = count;
    return STATUS_OK;
}

struct compile_options model_compile_options(const struct model *model, enum program_use use,
                                             int32_t batch)
{
    return (struct compile_options){
        .batch = batch,
        .use = use,
        .loss = model->loss,
        .classes = model->class_count,
        .optimiser = model->optimiser,
        .schedule = model->schedule,
        .recipe = model->recipe,
        .weight_bits = model->weight_bits,
    };
}

/* What may be meant, where a row has one number too few or too many. */
static const char *how_columns(const struct model *model, const struct dataset *dataset)
{
    const int64_t inputs = shape_count(&model->network->input);
    const int64_t labels = dataset->labels ? dataset->label_columns : dataset->number_columns;
    if (labels && dataset->columns + labels == inputs)
        return "; the last column was taken for a label: --label none says that there is none";
    if (dataset->table && text_starts(model->network->name, "mlp:"))
        return "; --label says which columns are labels, --drop leaves some out, mlp:auto fits";
    return dataset->columns > inputs ? "; --label says which columns are labels" : "";
}

enum status model_check_data(const struct model *model, const struct dataset *dataset)
{
    int64_t inputs = shape_count(&model->network->input);
    if (inputs != dataset->columns)
        FAIL(STATUS_INPUT, "%s: found %d feature columns, expected %lld, the inputs of %s%s",
             dataset->name, dataset->columns, (long long)inputs, model->network->name,
             how_columns(model, dataset));
    return STATUS_OK;
}

static enum loss_kind loss_of(const struct model *model)
{
    struct compile_options options = model_compile_options(model, USE_TRAINING, 1);
    return network_loss(model->network, &options);
}

/* What the data has for each row, the program must take: so many labels, or numbers. */
static enum status check_width(const struct model *model, const struct program *program,
                               const struct dataset *dataset, const char *target, int32_t found)
{
    int32_t tensor = program_find(program, ROLE_INPUT, target);
    int64_t expected = shape_count(&program->tensors[tensor].shape) / program->batch;
    if (found != expected)
        FAIL(STATUS_INPUT, "%s: found %d %s%s a row to learn, expected %lld: the outputs of %s",
             dataset->name, found, dataset->labels ? "label" : "number", found == 1 ? "" : "s",
             (long long)expected, model->network->name);
    return STATUS_OK;
}

enum status model_check_targets(const struct model *model, const struct program *program,
                                const struct dataset *dataset)
{
    enum loss_kind loss = loss_of(model);
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    if (!traits.targets)
        return STATUS_OK; /* it learns from the features */
    if (loss == LOSS_CROSS_ENTROPY && !dataset->labels)
        FAIL(STATUS_INPUT, "%s: found numbers to learn, expected classes: the loss of %s",
             dataset->name, model->network->name);
    if (loss == LOSS_BINARY_CROSS_ENTROPY && model->class_count && model->class_count != 2)
        FAIL(STATUS_INPUT, "%s: found %d classes, expected 2: the loss of %s is binary",
             dataset->name, model->class_count, model->network->name);
    if (loss == LOSS_CROSS_ENTROPY)
        return check_width(model, program, dataset, "label", dataset->label_columns);
    return check_width(model, program, dataset, "target",
                       dataset->labels ? dataset->label_columns : dataset->number_columns);
}
