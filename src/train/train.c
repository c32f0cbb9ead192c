/* train.c: opening a trainer (compile, fill or load, attach, prepare) and running it. */
#include "train/train.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/binding.h"
#include "data/gaps.h"
#include "train/workers/agree.h"
#include "train/workers/lap_split.h"

#include <inttypes.h>
#include <string.h>

/* Workers of an asynchronous server wait for each other after so many steps, not more often. */
enum { TEST_BATCH = 256, STEPS_APART = 32 };

#define BEST_PREFIX "best."

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

/* Has this worker's unit a part of the network alone? The whole is on the host then, and on the
 * unit while it is tested. */
static bool is_split(const struct trainer *trainer)
{
    return sharing_splits(&trainer->sharing);
}

/* What is held out is looked at with the programs of the test, and stops the training early. */
static enum status compile_validation(struct trainer *trainer, const struct compile_options *test)
{
    struct params *params = &trainer->model->params;
    const struct course *course = &trainer->course;
    int64_t rows = trainer->split.validate_count;
    if (!rows && (course->until_accuracy > 0 || course->until_loss > 0 || course->patience))
        FAIL(STATUS_INPUT,
             "%s: found no rows to hold out, expected some to stop early by: hold out "
             "a larger share",
             trainer->dataset->name);
    if (!rows)
        return STATUS_OK;
    trainer->validate.sharing.comm = trainer->sharing.comm;
    trainer->validate.at_times = is_split(trainer);
    TRY(lap_compile(&trainer->validate, &trainer->model->engine, trainer->model->network, params,
                    test, rows));
    if (course->until_accuracy > 0 &&
        program_find(lap_program(&trainer->validate), ROLE_OUTPUT, "right") < 0)
        FAIL(STATUS_INPUT,
             "%s: found an accuracy to reach, but the network %s has none; expected "
             "a loss to reach",
             trainer->dataset->name, trainer->model->network->name);
    for (int32_t i = 0, count = params->count; i < count; i++)
        if (is_learnt(&params->entries[i]))
            TRY(declare_best(params, i));
    return STATUS_OK;
}

/* The stage of the recipe that the current epoch is in. */
static int32_t stage_of(const struct trainer *trainer)
{
    const struct recipe_traits *traits = &trainer->traits;
    int64_t last = traits->stages - 1, epochs = traits->stage_epochs;
    int64_t stage = epochs ? trainer->course.epoch / epochs : last;
    return (int32_t)(stage < last ? stage : last);
}

/* The rows that a stage learns from, the first ones of the split: where it learns targets, those
 * that have one. */
static int64_t stage_rows(const struct trainer *trainer, int32_t stage)
{
    const struct recipe_traits *traits = &trainer->traits;
    bool learns_targets = traits->targets && stage == traits->stages - 1;
    return learns_targets && trainer->course.labelled ? trainer->course.labelled
                                                      : trainer->split.train_count;
}

/* Is there a sample of every batch for each worker? Of the last batch, which may be small, there
 * need not be. */
static enum status check_workers(const struct trainer *trainer, int64_t rows)
{
    const int workers = trainer->sharing.copied ? 1 : sharing_samples(&trainer->sharing);
    const int64_t batch = trainer->course.batch < rows ? trainer->course.batch : rows;
    if (batch < workers)
        FAIL(STATUS_INPUT,
             "%s: found %d workers and batches of %lld samples, expected at least one sample for "
             "each: --batch %d or more, or --workers %lld",
             trainer->dataset->name, workers, (long long)batch, workers,
             (long long)batch + trainer->sharing.servers);
    return STATUS_OK;
}

static enum status compile_stage(struct trainer *trainer, int32_t stage)
{
    struct model *model = trainer->model;
    struct compile_options options =
        model_compile_options(model, USE_TRAINING, trainer->course.batch);
    options.stage = trainer->stage = stage;
    trainer->train.sharing = trainer->sharing;
    trainer->train.alone = true;
    TRY(check_workers(trainer, stage_rows(trainer, stage)));
    TRY(lap_compile(&trainer->train, &model->engine, model->network, &model->params, &options,
                    stage_rows(trainer, stage)));
    if (stage < trainer->traits.stages - 1)
        return STATUS_OK; /* only the last one may have targets */
    return model_check_targets(model, lap_program(&trainer->train), trainer->dataset);
}

static enum status compile(struct trainer *trainer)
{
    struct model *model = trainer->model;
    struct params *params = &model->params;
    struct compile_options test = model_compile_options(model, USE_EVALUATION, TEST_BATCH);
    test.stage = trainer->traits.stages - 1;
    TRY(model_declare(model, USE_TRAINING));
    TRY(compile_stage(trainer, stage_of(trainer)));
    TRY(compile_validation(trainer, &test));
    if (trainer->split.test_count) {
        trainer->test.sharing.comm = trainer->sharing.comm;
        trainer->test.at_times = is_split(trainer);
        TRY(lap_compile(&trainer->test, &model->engine, model->network, params, &test,
                        trainer->split.test_count));
        TRY(model_check_targets(model, lap_program(&trainer->test), trainer->dataset));
    }
    return model_make_levels(model, trainer->dataset, &trainer->levels);
}

/* The next stage has programs of its own; what they need is on the device already. */
static enum status enter_stage(struct trainer *trainer)
{
    int32_t stage = stage_of(trainer);
    if (stage == trainer->stage)
        return STATUS_OK;
    lap_close(&trainer->train);
    TRY(compile_stage(trainer, stage));
    return lap_prepare(&trainer->train, &trainer->model->engine, &trainer->model->params);
}

/* A training that ends before its last stage would have learnt nothing of what it is asked for. */
static enum status check_stages(const struct trainer *trainer)
{
    const struct recipe_traits *traits = &trainer->traits;
    int64_t before = (int64_t)(traits->stages - 1) * traits->stage_epochs;
    if (trainer->course.epochs <= before)
        FAIL(STATUS_INPUT,
             "%s: found %lld epochs, expected more than the %lld of its first %d stages (%d each): "
             "--epochs %lld, or shorter stages, as --recipe dbn:pretrain=1",
             trainer->model->network->name, (long long)trainer->course.epochs, (long long)before,
             traits->stages - 1, traits->stage_epochs, (long long)before + 1);
    return STATUS_OK;
}

/* Is there an epoch that is the best, where one is asked for? */
static enum status check_held_out(const struct trainer *trainer)
{
    const struct course *course = &trainer->course;
    if (trainer->traits.rivals && course->validate_share > 0)
        FAIL(STATUS_INPUT,
             "%s: found rows to hold out (--validate, --until, --patience), expected none: the "
             "loss of a gan compares its two sides, so no epoch is best",
             trainer->model->network->name);
    return STATUS_OK;
}

static enum status check_labelled(const struct trainer *trainer)
{
    int64_t labelled = trainer->course.labelled, rows = trainer->split.train_count;
    if (labelled > rows)
        FAIL(STATUS_INPUT, "%s: found %lld labelled rows, expected at most the %lld to learn from",
             trainer->dataset->name, (long long)labelled, (long long)rows);
    if (labelled && !trainer->traits.targets)
        FAIL(STATUS_INPUT,
             "%s: found a recipe that learns no targets, expected one that does where some rows "
             "are labelled: feed_forward, dbn",
             trainer->model->network->name);
    return STATUS_OK;
}

/* Split, scale: all that follows from the data and the seed. A training that is resumed had the
 * same data before. */
static enum status take_data(struct trainer *trainer, const char *resume)
{
    uint64_t hash;
    struct dataset *dataset = trainer->dataset;
    struct course *course = &trainer->course;
    struct model *model = trainer->model;
    TRY(model_check_data(model, dataset));
    TRY(model_traits(model, &trainer->traits));
    TRY(check_stages(trainer));
    TRY(check_held_out(trainer));
    if (trainer->traits.targets && !dataset->labels && !dataset->numbers)
        FAIL(STATUS_INPUT,
             "%s: found no labels, expected some to learn from: a label column, or --labels FILE; "
             "or "
             "a recipe that needs none, as --recipe autoencoder",
             dataset->name);
    if (trainer->traits.classes && (!dataset->labels || dataset->label_columns != 1))
        FAIL(STATUS_INPUT, "%s: found no class of each row, expected one: %s learns on a condition",
             dataset->name, model->network->name);
    if (dataset->scaling)
        FAIL(STATUS_INPUT,
             "%s: found features that were scaled before, expected data that was just opened",
             dataset->name);
    TRY(dataset_hash(dataset, &hash));
    if (resume && course->data != hash)
        FAIL(STATUS_INPUT,
             "%s: found a training on other data than %s as it is now: name the data that it began "
             "with, or train without --resume",
             resume, dataset->name);
    course->data = hash;
    const struct split_options options = {.test_share = course->test_share,
                                          .validate_share = course->validate_share,
                                          .first = course->labelled,
                                          .seed = model->params.control.seed};
    TRY(split_make(dataset, &options, &trainer->split));
    TRY(check_labelled(trainer));
    TRY(gaps_fill(dataset, trainer->split.rows, trainer->split.train_count));
    size_t rows = (size_t)trainer->split.train_count;
    NEED(trainer->order = mem_array(rows, sizeof *trainer->order));
    model->scaling.unit = trainer->traits.unit;
    if (!model->scaling.columns && !model->network->given_count) { /* given weights have a scale */
        const uint32_t *train = trainer->split.rows;
        TRY(scaling_make(dataset, train, trainer->split.train_count, &model->scaling));
        TRY(model_scale_targets(model, dataset, train, trainer->split.train_count));
    }
    TRY(scaling_apply(&model->scaling, dataset));
    if (dataset->table)
        TRY(model_keep_columns(model, dataset));
    return model_keep_classes(model, dataset->classes, dataset->class_count);
}

static struct lap_data bound_data(const struct trainer *trainer)
{
    return (struct lap_data){
        .dataset = trainer->dataset,
        .targets = trainer->levels ? trainer->levels : trainer->dataset->numbers,
        .version = trainer->version,
    };
}

/* Puts the rows into the epoch's order and the lap to its step. */
static enum status begin_epoch(struct trainer *trainer)
{
    const struct course *course = &trainer->course;
    const struct lap_data data = bound_data(trainer);
    TRY(enter_stage(trainer));
    int64_t count = trainer->train.rows;
    memcpy(trainer->order, trainer->split.rows, (size_t)count * sizeof *trainer->order);
    split_shuffle(trainer->order, count, trainer->model->params.control.seed,
                  (uint64_t)course->epoch);
    return lap_begin(&trainer->train, &data, trainer->order, course->step);
}

/* Does what a file says of its training fit the data? */
static enum status check_course(const struct trainer *trainer, const char *resume)
{
    const struct course *course = &trainer->course;
    if (course->step >= trainer->train.steps)
        FAIL(STATUS_INPUT, "%s: found step %lld of an epoch that has %lld", resume,
             (long long)course->step, (long long)trainer->train.steps);
    if (resume && course->epoch > course->epochs)
        FAIL(STATUS_INPUT,
             "%s: found a training that has run %lld epochs, expected at least as many to go on "
             "with: --epochs %lld or more",
             resume, (long long)course->epoch, (long long)course->epoch);
    if (course->best_epoch && !trainer->split.validate_count)
        FAIL(STATUS_INPUT, "%s: found the best epoch of a training that held no rows out", resume);
    return STATUS_OK;
}

/* The network and how it learns: with the settings and the build they make the program. */
static void tell_network(const struct model *model, struct text *facts)
{
    const struct network *network = model->network;
    const struct control *control = &model->params.control;
    agree_hashed(facts, "the network", agree_hash_text(0, network->text), network->name);
    agree_fact(facts, "the loss", "%s", loss_name(model->loss));
    agree_fact(facts, "the optimiser", "%s", *model->optimiser ? model->optimiser : "its own");
    agree_fact(facts, "the schedule", "%s", *model->schedule ? model->schedule : "its own");
    agree_fact(facts, "the recipe", "%s", *model->recipe ? model->recipe : "its own");
    agree_fact(facts, "--weight-bits", "%d", model->weight_bits);
    agree_fact(facts, "the rate", "%.15g", control->rate);
    agree_fact(facts, "the seed", "%" PRIu64, control->seed);
    agree_fact(facts, "the updates done", "%" PRIu64, control->step);
}

static void tell_sharing(const struct sharing *sharing, struct text *facts)
{
    agree_fact(facts, "--parallelism", "%s", sharing_name(sharing));
    agree_fact(facts, "--copies", "%d", sharing->copies);
    agree_fact(facts, "--micro-batches", "%d", sharing->micros);
    agree_fact(facts, "--servers", "%d", sharing->servers);
    agree_fact(facts, "--pipeline", "%s", pipeline_schedule_name(sharing->schedule));
    agree_fact(facts, "--average-every", "%d", sharing->average);
    agree_fact(facts, "--sync-norm", "%s", sharing->sync_norm ? "yes" : "no");
}

/* What follows from the same command on the same files. Which samples are a worker's own does not,
 * so that the programs of a batch's parts cannot be compared. */
static enum status agree_on_training(const struct trainer *trainer)
{
    const struct model *model = trainer->model;
    const struct engine *engine = &model->engine;
    struct device_info device = {0};
    struct text facts = {0};
    engine->backend->describe(engine->device, &device);
    tell_network(model, &facts);
    course_tell(&trainer->course, &facts);
    tell_sharing(&trainer->sharing, &facts);
    agree_fact(&facts, "the backend", "%s", engine->backend->name);
    agree_fact(&facts, "the instructions (--isa)", "%s", device.isa ? device.isa : "");
    agree_fact(&facts, "--precision", "%s", *engine->precision ? engine->precision : "as usual");
    agree_hashed(&facts, "the data", trainer->course.data, trainer->dataset->name);
    agree_hashed(&facts, "the parameters", agree_hash_params(&model->params), "");
    enum status status = agree(trainer->sharing.comm, &facts);
    text_free(&facts);
    return status;
}

static enum status prepare_tests(struct trainer *trainer)
{
    const struct engine *engine = &trainer->model->engine;
    TRY(lap_prepare(&trainer->validate, engine, &trainer->model->params));
    return lap_prepare(&trainer->test, engine, &trainer->model->params);
}

/* The whole network comes to the unit for one lap, beside this worker's part. All workers fail
 * together. */
static enum status bring_whole(struct trainer *trainer, struct lap *lap)
{
    struct engine *engine = &trainer->model->engine;
    struct params *params = &trainer->model->params;
    struct comm *comm = trainer->sharing.comm;
    enum status status = params_hold(params); /* without values where it is only tried */
    for (int i = 0; i < LAP_LEGS && status == STATUS_OK; i++)
        if (lap->legs[i].step.count)
            status = engine_check_memory(engine->backend, lap->legs[i].step.programs,
                                         lap->legs[i].step.count, params,
                                         lap_split_bytes(&trainer->train));
    if (status == STATUS_OK)
        status = engine_attach(engine, params);
    if (status == STATUS_OK)
        status = lap_prepare(lap, engine, params);
    double failed = status != STATUS_OK;
    if (comm)
        TRY(comm_all_reduce(comm, &failed, 1, DTYPE_F64));
    if (status == STATUS_OK && failed > 0)
        FAIL(STATUS_MEMORY, "another worker's unit cannot hold the whole network");
    return status;
}

static void take_whole_away(struct trainer *trainer, struct lap *lap)
{
    struct engine *engine = &trainer->model->engine;
    lap_release(lap);
    if (engine->instance)
        engine->backend->detach(engine->instance);
    engine->instance = NULL;
}

/* Can the units hold the whole network while it is tested? Rows that are held out need it; without
 * the test the training has its worth. */
static enum status try_tests(struct trainer *trainer)
{
    enum status status = STATUS_OK;
    if (trainer->validate.steps) {
        status = bring_whole(trainer, &trainer->validate);
        take_whole_away(trainer, &trainer->validate);
        TRY(status);
    }
    if (trainer->test.steps)
        status = bring_whole(trainer, &trainer->test);
    take_whole_away(trainer, &trainer->test);
    lap_split_give_up(&trainer->train);
    trainer->untested = status == STATUS_MEMORY;
    if (!trainer->untested)
        return status;
    log_warning("no test will follow, since it takes the whole network on one unit: %s",
                status_message());
    return STATUS_OK;
}

static enum status open_trainer(struct trainer *trainer, const struct trainer_options *options,
                                const struct safetensors *file)
{
    struct params *params = &trainer->model->params;
    struct engine *engine = &trainer->model->engine;
    TRY(engine_detach(engine, params));
    if (options->resume)
        TRY(model_read_course(trainer->model, file, &trainer->course));
    if (options->course.epochs > 0)
        trainer->course.epochs = options->course.epochs;
    TRY(take_data(trainer, options->resume));
    TRY(compile(trainer));
    TRY(check_course(trainer, options->resume));
    if (options->resume) {
        TRY(params_fill_new(params));
        TRY(safetensors_load(file, SAFETENSORS_CHECKPOINT, params));
        TRY(model_check_numbers(trainer->model, options->resume));
    }
    TRY(params_fill_new(params));
    if (trainer->sharing.comm)
        TRY(agree_on_training(trainer));
    if (!is_split(trainer))
        TRY(engine_attach(engine, params));
    TRY(lap_prepare(&trainer->train, engine, params));
    TRY(is_split(trainer) ? try_tests(trainer) : prepare_tests(trainer));
    trainer->version = binding_version();
    return begin_epoch(trainer);
}

enum status trainer_open(struct model *model, struct dataset *dataset,
                         const struct trainer_options *options, struct trainer **out)
{
    struct trainer *trainer;
    struct safetensors file = {0};
    enum status status;
    NEED(trainer = mem_alloc(sizeof *trainer));
    model->part = false; /* what goes on learning alone does so as any network */
    trainer->model = model;
    trainer->dataset = dataset;
    trainer->sharing = options->sharing;
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
    dataset_settle(trainer->dataset);
    params_hold(&trainer->model->params); /* zeros, where nothing was gathered */
    lap_close(&trainer->train);
    lap_close(&trainer->validate);
    lap_close(&trainer->test);
    split_free(&trainer->split);
    mem_free(trainer->order);
    mem_free(trainer->levels);
    mem_free(trainer);
}

enum status trainer_gather(struct trainer *trainer, bool for_all)
{
    struct params *params = &trainer->model->params;
    if (!sharing_splits(&trainer->sharing))
        return STATUS_OK;
    return lap_split_gather(&trainer->train, params, for_all);
}

static enum status run_held_out(struct trainer *trainer, struct lap *lap, const uint32_t *rows,
                                struct score *score)
{
    const struct lap_data data = bound_data(trainer);
    *score = (struct score){0};
    if (!lap->steps)
        return STATUS_OK;
    enum status status = is_split(trainer) ? bring_whole(trainer, lap) : STATUS_OK;
    if (status == STATUS_OK)
        status = lap_begin(lap, &data, rows, 0);
    if (status == STATUS_OK)
        status = lap_run(lap, lap->steps, score);
    if (is_split(trainer))
        take_whole_away(trainer, lap);
    return status;
}

/* Copies the learnt entries to "best.…", or back from there, on the host and on the device. */
static enum status copy_best(struct trainer *trainer, bool back)
{
    const struct engine *engine = &trainer->model->engine;
    struct params *params = &trainer->model->params;
    TRY(engine_download(engine, params));
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
    return is_split(trainer) ? STATUS_OK : engine->backend->upload(engine->instance, params);
}

/* The end of an epoch: is it the best yet, and is it enough? */
static enum status validate(struct trainer *trainer)
{
    struct course *course = &trainer->course;
    const struct score *score = &trainer->held_out;
    if (!trainer->split.validate_count || trainer->stage < trainer->traits.stages - 1)
        return STATUS_OK; /* what an earlier stage learns has another measure */
    TRY(trainer_gather(trainer, true));
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
    if (trainer->sharing.parallelism == PARALLEL_ASYNC_SERVER && steps > 0 && steps < STEPS_APART)
        steps = STEPS_APART;
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

enum status trainer_tell_left_out(const struct trainer *trainer)
{
    struct params *params = &trainer->model->params;
    TRY(engine_download(&trainer->model->engine, params));
    if (params->control.left_out)
        log_warning("%llu of %llu updates were left out, since fp16 cannot hold their gradients at "
                    "any loss scale; smaller data or --precision bf16 help",
                    (unsigned long long)params->control.left_out,
                    (unsigned long long)params->control.step);
    return STATUS_OK;
}

enum status trainer_test(struct trainer *trainer, struct score *score)
{
    *score = (struct score){0};
    return trainer->untested
               ? STATUS_OK
               : run_held_out(trainer, &trainer->test, split_test(&trainer->split), score);
}
