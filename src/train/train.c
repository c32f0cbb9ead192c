/* train.c: opening a trainer (compile, fill or load, attach, prepare) and running it. */
#include "train/train.h"

#include "base/memory.h"

#include <string.h>

enum { TEST_BATCH = 256 };

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

static enum status compile(struct trainer *trainer)
{
    struct model *model = &trainer->model;
    const struct course *course = &trainer->course;
    struct compile_options train = model_compile_options(model, USE_TRAINING, course->batch);
    struct compile_options test = model_compile_options(model, USE_EVALUATION, TEST_BATCH);
    train.optimiser = course->optimiser[0] ? course->optimiser : NULL;
    enum loss_kind loss = network_loss(model->network, &train);
    if (model->class_count && loss != LOSS_CROSS_ENTROPY)
        TRY(make_levels(trainer));
    TRY(lap_compile(&trainer->train, model->network, &model->params, &train,
                    trainer->split.train_count));
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
        FAIL(STATUS_INPUT, "%s: found no label column, expected one to learn from", dataset->name);
    course->data = dataset_hash(dataset);
    TRY(split_make(dataset->rows, course->test_share, course->seed, &trainer->split));
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
    model_free(&saved);
    TRY(status);
    TRY(model_read_course(file, course));
    if (course->data != dataset_hash(trainer->dataset))
        FAIL(STATUS_INPUT, "%s: found the training on other data, expected that on %s as it is now",
             file->name, trainer->dataset->name);
    if (epochs > 0)
        course->epochs = epochs;
    return STATUS_OK;
}

static void start_fresh(struct trainer *trainer)
{
    struct course *course = &trainer->course;
    double usual = trainer->model.network->rate;
    params_fill(&trainer->model.params, course->seed);
    if (course->rate == 0)
        course->rate = usual > 0 ? usual : 0.1;
    trainer->model.params.control.rate = course->rate;
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
    start_fresh(trainer);
    if (options->resume)
        TRY(safetensors_load(file, SAFETENSORS_CHECKPOINT, &trainer->model.params));
    TRY(engine_open(&trainer->engine, options->backend, &options->device, &trainer->model.params));
    TRY(lap_prepare(&trainer->train, &trainer->engine));
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
    trainer->dataset = dataset;
    trainer->course = options->course;
    trainer->course.epoch = trainer->course.step = 0;
    trainer->course.score = (struct score){0};
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
    lap_close(&trainer->test);
    engine_close(&trainer->engine);
    split_free(&trainer->split);
    mem_free(trainer->order);
    mem_free(trainer->levels);
    model_free(&trainer->model);
    mem_free(trainer);
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
    return begin_epoch(trainer);
}

enum status trainer_test(struct trainer *trainer, struct score *score)
{
    const struct lap_data data = bound_data(trainer);
    *score = (struct score){0};
    if (!trainer->split.test_count)
        return STATUS_OK;
    TRY(lap_begin(&trainer->test, &data, split_test(&trainer->split), 0));
    return lap_run(&trainer->test, trainer->test.steps, score);
}

enum status trainer_save(struct trainer *trainer, const char *path)
{
    TRY(trainer->engine.backend->download(trainer->engine.instance, &trainer->model.params));
    return model_save(&trainer->model, &trainer->course, path);
}
