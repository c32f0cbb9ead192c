/* prony_api.c: a network of include/prony.h: opening it, one step or prediction over the caller's
 * arrays, weights. A training step is a lap of one step over a data set that lies in these arrays;
 * a prediction is a call (train/predictor.h). */
#include "backend/cpu/cpu_backends.h"
#include "base/memory.h"
#include "base/pool.h"
#include "library/prony_inside.h"
#include "nn/formats/saved.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *prony_version(void)
{
    return PRONY_VERSION;
}

const char *prony_error(void)
{
    return status_message();
}

locale_t inside_enter(void)
{
    /* The C library has this one ready: it is neither made nor freed. */
    return uselocale(newlocale(LC_ALL_MASK, "C", NULL));
}

int inside_leave(locale_t theirs, enum status status)
{
    uselocale(theirs);
    return (int)status;
}

void inside_release(struct prony *network, const char *why)
{
    inside_end_streams(network, why);
    network->quick = NULL;
    for (int i = 0; i < BATCHES_MOST; i++) {
        lap_close(&network->laps[i]);
        predictor_close(&network->predictors[i]);
    }
    trainer_close(network->trainer);
    network->trainer = NULL;
}

void prony_close(struct prony *network)
{
    if (!network)
        return;
    inside_release(network, "its network was closed");
    model_close(&network->model);
    mem_free(network->inputs);
    mem_free(network->levels);
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

static enum status count_outputs(struct prony *network)
{
    struct compile_options options = model_compile_options(&network->model, USE_INFERENCE, 1);
    struct recipe_step step;
    TRY(recipe_compile(network->network, &network->model.params, &options, &step));
    const struct program *program = step.programs[0];
    const struct tensor *y = &program->tensors[program_find(program, ROLE_OUTPUT, "y")];
    network->outputs = shape_count(&y->shape);
    recipe_free(&step);
    return STATUS_OK;
}

/* The backend of that name or, without one, the fastest of the CPU that this machine can run. */
static enum status choose_backend(const struct registry *registry, const char *name,
                                  const struct backend **out)
{
    if (name)
        return registry_find(registry, name, out);
    TRY(registry_find(registry, "simd", out));
    if ((*out)->probe() == STATUS_OK)
        return STATUS_OK;
    return registry_find(registry, "ref", out);
}

static enum status check_real(const char *name, const double *value, double low, double high)
{
    if (value && *value != 0 && !(*value >= low && *value <= high))
        FAIL(STATUS_INPUT, "found a %s of %g, expected %g to %g, or 0: as usual", name, *value, low,
             high);
    return STATUS_OK;
}

/* As the commands' flags are: what is not a usual choice must be one that can work. */
static enum status check_options(const struct prony_options *options)
{
/* What a name says is looked for later, and any seed will do. */
#define PRONY_LEARNS(type, name, low, high, otherwise, meaning, help)                              \
    TRY(check_real(#name, _Generic(&options->name, const double * : &options->name, default        \
                                   : NULL),                                                        \
                   low, high));
#include "prony_settings.def"
    const int32_t bits = options->weight_bits;
    if (bits && bits != 8 && bits != 4 && bits != 2)
        FAIL(STATUS_INPUT, "found weights of %d bits, expected 8, 4 or 2, or 0: none are rounded",
             bits);
    if (options->classes < 0)
        FAIL(STATUS_INPUT, "found %d classes, expected 0 (numbers) or more", options->classes);
    if (options->threads < 0 || options->threads > POOL_MOST)
        FAIL(STATUS_INPUT, "found %d threads, expected 0 (one a core) to %d", options->threads,
             POOL_MOST);
    return STATUS_OK;
}

enum status inside_backend(struct prony *network, const char *name, const struct backend **out)
{
    char folder[4096];
    TRY(find_folder(folder, sizeof folder));
    cpu_register(&network->registry);
    TRY(registry_load(&network->registry, folder));
    return choose_backend(&network->registry, name, out);
}

static enum status open_network(struct prony *network, const struct prony_options *options)
{
    const struct backend *backend;
    const struct device_options device = {
        .threads = options->threads, .isa = ISA_BEST, .precision = options->precision};
    struct model_options model = {
        .optimiser = options->optimiser,
        .schedule = options->schedule,
        .recipe = options->recipe,
        .rate = options->rate,
        .seed = options->seed,
        .class_count = options->classes,
        .weight_bits = options->weight_bits,
        .recompute = options->recompute,
    };
    TRY(check_options(options));
    if (text_equal(options->precision, "int8") && !network_integers(network->network))
        FAIL(STATUS_INPUT,
             "%s: found precision int8, expected a network in 8 bits: prony quantise makes one",
             network->network->name);
    TRY(inside_backend(network, options->backend, &backend));
    if (options->loss)
        TRY(loss_read(options->loss, &model.loss));
    TRY(model_open(&network->model, network->network, backend, &device, &model));
    return count_outputs(network);
}

/* Its weights expect the scale of its data, which the network alone does not say. */
static enum status refuse_saved(const char *name)
{
    FAIL(STATUS_INPUT,
         "%s: found a saved network, expected a network; prony predict FILE DATA takes it with "
         "its weights",
         name);
}

/* From a file that is open, from a text, or by name. */
static enum status open_with(const char *name, const char *text, const struct safetensors *file,
                             const struct prony_options *options, struct prony **out)
{
    static const struct prony_options usual;
    struct prony *network;
    enum status status;
    *out = NULL;
    NEED(network = mem_alloc(sizeof *network));
    if (file)
        TRY_OR(fail, saved_parse(file, &network->network));
    else if (text)
        TRY_OR(fail, network_parse(name, text, strlen(text), &network->network));
    else if (!network_built_in(name) && saved_is(name))
        TRY_OR(fail, refuse_saved(name));
    else
        TRY_OR(fail, network_open(name, &network->network));
    TRY_OR(fail, open_network(network, options ? options : &usual));
    *out = network;
    return STATUS_OK;
fail:
    prony_close(network);
    return status;
}

int prony_open(const char *network, const struct prony_options *options, struct prony **out)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, open_with(network, NULL, NULL, options, out));
}

int prony_open_text(const char *name, const char *text, const struct prony_options *options,
                    struct prony **out)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, open_with(name, text, NULL, options, out));
}

int prony_open_saved(const char *path, const struct prony_options *options, struct prony **out)
{
    locale_t theirs = inside_enter();
    struct safetensors file = {0};
    *out = NULL;
    enum status status = safetensors_open(path, &file);
    if (status == STATUS_OK)
        status = open_with(path, NULL, &file, options, out);
    safetensors_close(&file);
    if (status == STATUS_OK)
        status = model_load(&(*out)->model, path);
    if (status != STATUS_OK) {
        prony_close(*out);
        *out = NULL;
    }
    return inside_leave(theirs, status);
}

const char *prony_backend(const struct prony *network)
{
    return network->model.engine.backend->name;
}

const char *prony_rounded(const struct prony *network)
{
    return network->network->rounded;
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

int32_t prony_classes(const struct prony *network)
{
    return network->model.class_count;
}

const char *prony_class(const struct prony *network, int32_t class_index)
{
    return network->model.classes[class_index];
}

/* A step of a recipe with stages is one of its last: those before need many over the same data. */
static enum status prepare(struct prony *network, int32_t rows, struct lap *lap)
{
    struct model *model = &network->model;
    struct compile_options options = model_compile_options(model, USE_TRAINING, rows);
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    options.stage = traits.stages - 1;
    TRY(lap_compile(lap, &model->engine, network->network, &model->params, &options, rows));
    TRY(engine_attach(&model->engine, &model->params));
    return lap_prepare(lap, &model->engine, &model->params);
}

static enum status check_rows(int32_t rows)
{
    if (rows < 1)
        FAIL(STATUS_INPUT, "found %d rows, expected at least 1", rows);
    return STATUS_OK;
}

/* The lap that trains on so many rows: one there is, or a new one in the oldest one's place. */
static enum status find_lap(struct prony *network, int32_t rows, struct lap **out)
{
    TRY(check_rows(rows));
    network->model.part = false; /* alone it goes on learning as any network */
    for (int i = 0; i < BATCHES_MOST; i++)
        if (network->laps[i].rows == rows) {
            *out = &network->laps[i];
            return STATUS_OK;
        }
    if (!network->learns) {
        inside_release(network, "its network learns since");
        TRY(model_declare(&network->model, USE_TRAINING));
        network->learns = true;
    }
    struct lap *lap = *out = &network->laps[network->next_lap];
    network->next_lap = (network->next_lap + 1) % BATCHES_MOST;
    lap_close(lap);
    enum status status = prepare(network, rows, lap);
    if (status != STATUS_OK)
        lap_close(lap);
    return status;
}

/* The caller's rows as features, or where they are scaled a copy of them. */
static enum status take_inputs(struct prony *network, const float *given, struct dataset *data)
{
    const struct scaling *scaling = &network->model.scaling;
    data->name = network->network->name;
    data->columns = (int32_t)prony_inputs(network);
    data->features = (float *)(uintptr_t)given; /* is not const, but only read */
    if (!scaling->columns && !scaling->tokens)
        return STATUS_OK;
    size_t count = (size_t)data->rows * (size_t)data->columns;
    float *copy;
    NEED(copy = mem_grow(network->inputs, count, sizeof *copy));
    network->inputs = data->features = copy;
    memcpy(copy, given, count * sizeof *copy);
    return scaling_apply(scaling, data);
}

/* One step over the data set, whose features are still to come. */
static enum status train(struct prony *network, struct lap *lap, const float *inputs,
                         struct dataset *data, float *loss)
{
    const struct model *model = &network->model;
    struct score score = {0};
    TRY(take_inputs(network, inputs, data));
    TRY(model_check_targets(model, lap_program(lap), data));
    TRY(model_make_levels(model, data, &network->levels));
    const bool levels = model_has_levels(model, data);
    const struct lap_data bound = {.dataset = data,
                                   .targets = levels ? network->levels : data->numbers};
    TRY(lap_begin(lap, &bound, NULL, 0));
    TRY(lap_run(lap, 1, &score));
    if (loss)
        *loss = (float)score_loss(&score);
    return STATUS_OK;
}

/* Numbers or classes that the program learns of each row. */
static int32_t count_targets(const struct program *program, const char *name)
{
    int32_t tensor = program_find(program, ROLE_INPUT, name);
    return tensor < 0 ? 0
                      : (int32_t)(shape_count(&program->tensors[tensor].shape) / program->batch);
}

static enum status check_array(const struct prony *network, const void *array, const char *of)
{
    if (!array)
        FAIL(STATUS_INPUT, "%s: found NULL for its %s, expected an array", network->network->name,
             of);
    return STATUS_OK;
}

static enum status train_classes(struct prony *network, int32_t rows, const float *inputs,
                                 const int32_t *classes, float *loss)
{
    struct lap *lap;
    struct recipe_traits traits;
    TRY(check_array(network, inputs, "inputs"));
    TRY(check_array(network, classes, "classes"));
    TRY(find_lap(network, rows, &lap));
    TRY(model_traits(&network->model, &traits));
    if (!traits.targets && !traits.classes)
        FAIL(STATUS_INPUT,
             "%s learns from its inputs alone, expected prony_train_numbers with NULL for numbers",
             network->network->name);
    const struct program *program = lap_program(lap);
    int32_t count = network->model.class_count, places = count_targets(program, "label");
    if (!places)
        places = count_targets(program, "target");
    if (!count)
        FAIL(STATUS_INPUT, "%s was opened for numbers, expected prony_options.classes above 0",
             network->network->name);
    for (int64_t i = 0; i < (int64_t)rows * places; i++)
        if (classes[i] < 0 || classes[i] >= count)
            FAIL(STATUS_INPUT, "row %lld: found class %d, expected one from 0 to %d",
                 (long long)(i / places), classes[i], count - 1);
    struct dataset data = {
        .rows = rows, .label_columns = places, .labels = (int32_t *)(uintptr_t)classes};
    return train(network, lap, inputs, &data, loss);
}

int prony_train_classes(struct prony *network, int32_t rows, const float *inputs,
                        const int32_t *classes, float *loss)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, train_classes(network, rows, inputs, classes, loss));
}

static enum status train_numbers(struct prony *network, int32_t rows, const float *inputs,
                                 const float *numbers, float *loss)
{
    struct lap *lap;
    struct recipe_traits traits;
    TRY(check_array(network, inputs, "inputs"));
    TRY(find_lap(network, rows, &lap));
    TRY(model_traits(&network->model, &traits));
    int32_t width = count_targets(lap_program(lap), "target");
    if (traits.classes || (traits.targets && !width))
        FAIL(STATUS_INPUT, "%s learns classes, expected prony_train_classes",
             network->network->name);
    if (width)
        TRY(check_array(network, numbers, "numbers"));
    struct dataset data = {
        .rows = rows,
        .number_columns = width,
        .numbers = width ? (float *)(uintptr_t)numbers : NULL,
    };
    return train(network, lap, inputs, &data, loss);
}

int prony_train_numbers(struct prony *network, int32_t rows, const float *inputs,
                        const float *numbers, float *loss)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, train_numbers(network, rows, inputs, numbers, loss));
}

/* What predicts so many rows: likewise. */
static enum status find_predictor(struct prony *network, int32_t rows, struct predictor **out)
{
    const struct predictor_options options = {.rows = rows, .answering = ANSWER_CALLS};
    TRY(check_rows(rows));
    for (int i = 0; i < BATCHES_MOST; i++)
        if (network->predictors[i].rows == rows) {
            *out = &network->predictors[i];
            return STATUS_OK;
        }
    struct predictor *predictor = *out = &network->predictors[network->next_predictor];
    network->next_predictor = (network->next_predictor + 1) % BATCHES_MOST;
    predictor_close(predictor);
    enum status status = predictor_open(predictor, &network->model, &options);
    if (status != STATUS_OK)
        predictor_close(predictor);
    return status;
}

/* One request. Wrong inputs leave the predictor as it was; after another failure it is closed. */
static enum status call(struct prony *network, struct predictor *predictor, const float *inputs,
                        float *outputs)
{
    enum status status = predictor_call(predictor, inputs, outputs);
    bool stays = status == STATUS_OK || status == STATUS_INPUT;
    network->quick = stays && !predictor->scaling ? predictor : NULL;
    if (!stays)
        predictor_close(predictor);
    return status;
}

static enum status predict(struct prony *network, int32_t rows, const float *inputs, float *outputs)
{
    struct predictor *predictor;
    network->quick = NULL;
    TRY(find_predictor(network, rows, &predictor));
    return call(network, predictor, inputs, outputs);
}

/* A call of a small network takes tens of nanoseconds: what is the same as in the last one is not
 * looked for again, and where no number becomes text the locale does not matter. */
int prony_predict(struct prony *network, int32_t rows, const float *inputs, float *outputs)
{
    struct predictor *quick = network->quick;
    if (quick && quick->rows == rows)
        return (int)call(network, quick, inputs, outputs);
    locale_t theirs = inside_enter();
    return inside_leave(theirs, predict(network, rows, inputs, outputs));
}

int prony_save(struct prony *network, const char *path)
{
    const struct trainer *trainer = network->trainer;
    locale_t theirs = inside_enter();
    return inside_leave(theirs,
                        model_save(&network->model, trainer ? &trainer->course : NULL, path));
}

int prony_export(struct prony *network, const char *path)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, model_export(&network->model, path));
}

int prony_load(struct prony *network, const char *path)
{
    inside_release(network, "weights were loaded since"); /* programs depend on loss and classes */
    locale_t theirs = inside_enter();
    return inside_leave(theirs, model_load(&network->model, path));
}
