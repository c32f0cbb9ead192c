/* train.c: opening a trainer (compile, fill or load, attach, prepare) and running it. */
#include "train/train.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

enum { TEST_BATCH = 256 };

#define BEST_PREFIX "best."

/* Class c of C as the number c ÷ (C − 1). */
static enum status make_levels(struct trainer *trainer)
{
    const struct dataset *dataset = trainer->dataset;
    float step = 1.0f / (float)(dataset->class_count > 1 ? dataset->class_count - 1 : 1);
    NEED(trainer->levels = mem_array((size_t)dataset->rows, sizeof *trainer->levels));
    for (int64_t row = 0; row < dataset->rows; row++)
        trainer->levels[row] = (float)dataset->labels[row] * step;
    return STATUS_OK;
}

/* Do the network's outputs fit what is to be learnt? */
static enum status check_outputs(const struct trainer *trainer)
{
    const struct dataset *dataset = trainer->dataset;
    const struct program *program = trainer->train.legs[0].program;
    int32_t target = program_find(program, ROLE_INPUT, "target");
    if (target < 0 && !dataset->labels)
        FAIL(STATUS_INPUT, "%s: found numbers to learn, expected classes: the loss of %s",
             dataset->name, trainer->model.network->name);
    if (target < 0)
        return STATUS_OK; /* network_compile has seen the number of classes */
    int64_t width = shape_count(&program->tensors[target].shape) / program->batch;
    int64_t expected = trainer->levels ? 1 : dataset->number_columns;
    if (width != expected)
        FAIL(STATUS_INPUT,
             "%s: found %lld number%s a row to learn, expected %lld: the outputs of %s",
             dataset->name, (long long)expected, expected == 1 ? "" : "s", (long long)width,
             trainer->model.network->name);
    return STATUS_OK;
}

/* A copy of the entry among the state, which is where the best weights are kept. */
static enum status declare_best(struct params *params, int32_t index)
{
    const struct entry entry = params->entries[index];
    struct text name = {0};
    int32_t best;
    text_printf(&name, BEST_PREFIX "%s", entry.name);
    enum status status = text_done(&name);
    if (status == STATUS_OK)
        status = params_declare(params, text_of(&name), ROLE_STATE, entry.dtype, entry.shape,
                                (struct init){.kind = INIT_ZERO}, &best);
    text_free(&name);
    return status;
}

static bool is_learnt(const struct entry *entry)
{
    return entry->role == ROLE_PARAM || entry->role == ROLE_STATISTIC;
}

/* What is held out is looked at with the programs of the test, and stops the training early. */
static enum status compile_validation(struct trainer *trainer, const struct compile_options *test)
{
    struct params *params = &trainer->model.params;
    const struct course *course = &trainer->course;
    int64_t rows = trainer->split.validate_count;
    if (!rows && (course->until_accuracy > 0 || course->until_loss > 0 || course->patience))
        FAIL(STATUS_INPUT,
             "%s: found no rows to hold out, expected some to stop early by: hold out "
             "a larger share",
             trainer->dataset->name);
    if (!rows)
        return STATUS_OK;
    TRY(lap_compile(&trainer->validate, trainer->model.network, params, test, rows));
    if (course->until_accuracy > 0 &&
        program_find(trainer->validate.legs[0].program, ROLE_OUTPUT, "right") < 0)
        FAIL(STATUS_INPUT,
             "%s: found an accuracy to reach, but the network %s has none; expected "
             "a loss to reach",
             trainer->dataset->name, trainer->model.network->name);
    for (int32_t i = 0, count = params->count; i < count; i++)
        if (is_learnt(&params->entries[i]))
            TRY(declare_best(params, i));
    return STATUS_OK;
}

static enum status compile(struct trainer *trainer)
{
    struct model *model = &trainer->model;
    const struct course *course = &trainer->course;
    struct compile_options train = model_compile_options(model, USE_TRAINING, course->batch);
    struct compile_options test = model_compile_options(model, USE_EVALUATION, TEST_BATCH);
    train.optimiser = course->optimiser;
    train.schedule = course->schedule;
    enum loss_kind loss = network_loss(model->network, &train);
    if (loss == LOSS_BINARY_CROSS_ENTROPY && model->class_count && model->class_count != 2)
        FAIL(STATUS_INPUT, "%s: found %d classes, expected 2: the loss of %s is binary",
             trainer->dataset->name, model->class_count, model->network->name);
    if (model->class_count && loss != LOSS_CROSS_ENTROPY)
        TRY(make_levels(trainer));
    TRY(lap_compile(&trainer->train, model->network, &model->params, &train,
                    trainer->split.train_count));
    TRY(compile_validation(trainer, &test));
    if (trainer->split.test_count)
        TRY(lap_compile(&trainer->test, model->network, &model->params, &test,
                        trainer->split.test_count));
    return check_outputs(trainer);
}

/* Split, scale: all that follows from the data and the seed. */
static enum status take_data(struct trainer *trainer)
{
    struct dataset *dataset = trainer->dataset;
    struct course *course = &trainer->course;
    struct model *model = &trainer->model;
    TRY(model_check_data(model, dataset));
    if (!dataset->labels && !dataset->numbers)
        FAIL(STATUS_INPUT,
             "%s: found no labels, expected some to learn from: a label column, or --labels FILE",
             dataset->name);
    TRY(dataset_hash(dataset, &course->data));
    const struct split_options options = {.test_share = course->test_share,
                                          .validate_share = course->validate_share,
                                          .test_rows = dataset->test_rows,
                                          .seed = course->seed};
    TRY(split_make(dataset->rows, &options, &trainer->split));
    size_t rows = (size_t)trainer->split.train_count;
    NEED(trainer->order = mem_array(rows, sizeof *trainer->order));
    TRY(scaling_make(dataset, trainer->split.rows, trainer->split.train_count, &model->scaling));
    scaling_apply(&model->scaling, dataset);
    return model_keep_classes(model, dataset->classes, dataset->class_count);
}

/* The course of the file, on the same network and data. */
static enum status take_course(struct trainer *trainer, const struct safetensors *file,
                               int64_t epochs)
{
    struct course *course = &trainer->course;
    struct model saved;
    model_init(&saved, trainer->model.network);
    enum status status = model_read(&saved, file);
    trainer->model.loss = saved.loss;
    model_free(&saved);
    TRY(status);
    TRY(model_read_course(file, course));
    uint64_t data;
    TRY(dataset_hash(trainer->dataset, &data));
    if (course->data != data)
        FAIL(STATUS_INPUT, "%s: found the training on other data, expected that on %s as it is now",
             file->name, trainer->dataset->name);
    if (epochs > 0)
        course->epochs = epochs;
    return STATUS_OK;
}

static enum status start_fresh(struct trainer *trainer)
{
    struct course *course = &trainer->course;
    TRY(params_fill(&trainer->model.params, course->seed));
    if (course->rate == 0)
        TRY(network_rate(trainer->model.network, course->optimiser, &course->rate));
    trainer->model.params.control.rate = course->rate;
    return STATUS_OK;
}

static struct lap_data bound_data(const struct trainer *trainer)
{
    return (struct lap_data){
        .dataset = trainer->dataset,
        .targets = trainer->levels ? trainer->levels : trainer->dataset->numbers,
    };
}

/* Puts the rows into the epoch's order and the lap to its step. */
static enum status begin_epoch(struct trainer *trainer)
{
    const struct course *course = &trainer->course;
    const struct lap_data data = bound_data(trainer);
    int64_t count = trainer->split.train_count;
    memcpy(trainer->order, trainer->split.rows, (size_t)count * sizeof *trainer->order);
    split_shuffle(trainer->order, count, course->seed, (uint64_t)course->epoch);
    return lap_begin(&trainer->train, &data, trainer->order, course->step);
}

static enum status open_trainer(struct trainer *trainer, const struct trainer_options *options,
                                const struct safetensors *file)
{
    if (options->resume)
        TRY(take_course(trainer, file, options->course.epochs));
    TRY(take_data(trainer));
    TRY(compile(trainer));
    if (trainer->course.step >= trainer->train.steps)
        FAIL(STATUS_INPUT, "%s: found step %lld of an epoch that has %lld", options->resume,
             (long long)trainer->course.step, (long long)trainer->train.steps);
    TRY(start_fresh(trainer));
    if (options->resume)
        TRY(safetensors_load(file, SAFETENSORS_CHECKPOINT, &trainer->model.params));
    TRY(engine_open(&trainer->engine, options->backend, &options->device, &trainer->model.params));
    TRY(lap_prepare(&trainer->train, &trainer->engine));
    TRY(lap_prepare(&trainer->validate, &trainer->engine));
    TRY(lap_prepare(&trainer->test, &trainer->engine));
    return begin_epoch(trainer);
}

enum status trainer_open(const struct network *network, struct dataset *dataset,
                         const struct trainer_options *options, struct trainer **out)
{
    struct trainer *trainer;
    struct safetensors file = {0};
    enum status status;
    NEED(trainer = mem_alloc(sizeof *trainer));
    model_init(&trainer->model, network);
    trainer->model.loss = options->loss;
    trainer->dataset = dataset;
    trainer->course = options->course;
    trainer->course.epoch = trainer->course.step = 0;
    trainer->course.score = (struct score){0};
    trainer->course.best_epoch = 0;
    trainer->course.best_loss = 0;
    trainer->course.stopped = false;
    if (options->resume)
        TRY_OR(done, safetensors_open(options->resume, &file));
    TRY_OR(done, open_trainer(trainer, options, &file));
    *out = trainer;
done:
    if (status != STATUS_OK)
        trainer_close(trainer);
    safetensors_close(&file);
    return status;
}

void trainer_close(struct trainer *trainer)
{
    if (!trainer)
        return;
    lap_close(&trainer->train);
    lap_close(&trainer->validate);
    lap_close(&trainer->test);
    engine_close(&trainer->engine);
    split_free(&trainer->split);
    mem_free(trainer->order);
    mem_free(trainer->levels);
    model_free(&trainer->model);
    mem_free(trainer);
}

static enum status run_held_out(struct trainer *trainer, struct lap *lap, const uint32_t *rows,
                                struct score *score)
{
    const struct lap_data data = bound_data(trainer);
    *score = (struct score){0};
    if (!lap->steps)
        return STATUS_OK;
    TRY(lap_begin(lap, &data, rows, 0));
    return lap_run(lap, lap->steps, score);
}

/* Copies the learnt entries to "best.…", or back from there, on the host and on the device. */
static enum status copy_best(struct trainer *trainer, bool back)
{
    const struct engine *engine = &trainer->engine;
    struct params *params = &trainer->model.params;
    TRY(engine->backend->download(engine->instance, params));
    for (int32_t i = 0; i < params->count; i++) {
        struct text name = {0};
        if (!is_learnt(&params->entries[i]))
            continue;
        text_printf(&name, BEST_PREFIX "%s", params->entries[i].name);
        enum status status = text_done(&name);
        int32_t best = status == STATUS_OK ? params_find(params, text_of(&name)) : -1;
        text_free(&name);
        TRY(status);
        memcpy(params_data(params, back ? i : best), params_data(params, back ? best : i),
               (size_t)params->entries[i].bytes);
    }
    return engine->backend->upload(engine->instance, params);
}

/* The end of an epoch: is it the best yet, and is it enough? */
static enum status validate(struct trainer *trainer)
{
    struct course *course = &trainer->course;
    const struct score *score = &trainer->held_out;
    if (!trainer->split.validate_count)
        return STATUS_OK;
    TRY(run_held_out(trainer, &trainer->validate, split_validate(&trainer->split),
                     &trainer->held_out));
    double loss = score_loss(score);
    bool accurate = course->until_accuracy > 0 && score_accuracy(score) >= course->until_accuracy;
    bool reached = accurate || (course->until_loss > 0 && loss <= course->until_loss);
    if (!course->best_epoch || loss < course->best_loss || reached) {
        course->best_epoch = course->epoch;
        course->best_loss = loss;
        TRY(copy_best(trainer, false));
    }
    bool tired = course->patience && course->epoch - course->best_epoch >= course->patience;
    course->stopped = reached || tired;
    return STATUS_OK;
}

bool trainer_done(const struct trainer *trainer)
{
    return trainer->course.stopped || trainer->course.epoch >= trainer->course.epochs;
}

enum status trainer_take_best(struct trainer *trainer)
{
    return trainer->course.best_epoch ? copy_best(trainer, true) : STATUS_OK;
}

enum status trainer_run(struct trainer *trainer, int64_t steps)
{
    struct course *course = &trainer->course;
    TRY(lap_run(&trainer->train, steps, &course->score));
    course->step = trainer->train.step;
    if (course->step < trainer->train.steps)
        return STATUS_OK;
    trainer->epoch = course->score;
    course->score = (struct score){0};
    course->epoch++;
    course->step = 0;
    TRY(validate(trainer));
    return begin_epoch(trainer);
}

enum status trainer_test(struct trainer *trainer, struct score *score)
{
    return run_held_out(trainer, &trainer->test, split_test(&trainer->split), score);
}

enum status trainer_save(struct trainer *trainer, const char *path)
{
    TRY(trainer->engine.backend->download(trainer->engine.instance, &trainer->model.params));
    return model_save(&trainer->model, &trainer->course, path);
}
