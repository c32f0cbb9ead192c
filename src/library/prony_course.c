/* prony_course.c: data, and training, predicting and generating with it: what `prony train`, `prony
 * predict` and `prony generate` are made of. */
#include "base/memory.h"
#include "base/text.h"
#include "library/prony_inside.h"
#include "library/prony_workers.h"
#include "train/generate.h"
#include "train/predict.h"

#include <inttypes.h>
#include <math.h>

/* How data is read for a network; *nameless: it gives classes, as many as the data may name. */
static enum status fit_network(const struct prony *network, struct dataset_options *options,
                               bool *nameless)
{
    const struct model *model = &network->model;
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    *nameless = traits.targets && traits.loss == LOSS_CROSS_ENTROPY && !model->class_count;
    options->inputs = (int32_t)prony_inputs(network);
    options->passed_over = !traits.targets && !traits.classes;
    options->classes = model->classes;
    options->class_count = options->passed_over ? 0 : model->class_count;
    options->numbers = !model->class_count && !*nameless;
    options->columns = model->columns;
    return STATUS_OK;
}

static enum status open_data(const char *name, const struct prony_data_options *given,
                             struct prony_data *data)
{
    struct dataset_options options = {.label = given->label,
                                      .labels = given->labels,
                                      .numbers = given->numbers != 0,
                                      .as_classes = given->classes != 0,
                                      .drop = given->drop,
                                      .encode = given->encode,
                                      .fill = given->fill,
                                      .drop_rows = given->drop_rows != 0,
                                      .memory_bytes = given->memory_bytes};
    bool nameless = false;
    if (given->network)
        TRY(fit_network(given->network, &options, &nameless));
    TRY(dataset_open(name, &options, &data->dataset));
    const struct dataset *dataset = data->dataset;
    if (!nameless || !dataset->class_count)
        return STATUS_OK;
    if (given->network->outputs % dataset->class_count)
        FAIL(STATUS_INPUT, "%s: found %d classes, expected one for each of the %lld outputs of %s",
             dataset->name, dataset->class_count, (long long)given->network->outputs,
             given->network->network->name);
    return model_keep_classes(&given->network->model, dataset->classes, dataset->class_count);
}

int prony_data_open(const char *name, const struct prony_data_options *options,
                    struct prony_data **out)
{
    static const struct prony_data_options usual;
    locale_t theirs = inside_enter();
    struct prony_data *data = mem_alloc(sizeof *data);
    enum status status = data ? open_data(name, options ? options : &usual, data)
                              : status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    if (status != STATUS_OK) {
        prony_data_close(data);
        data = NULL;
    }
    *out = data;
    return inside_leave(theirs, status);
}

void prony_data_close(struct prony_data *data)
{
    if (data)
        dataset_free(data->dataset);
    mem_free(data);
}

int64_t prony_data_rows(const struct prony_data *data)
{
    return data->dataset->rows;
}

const char *prony_data_notes(const struct prony_data *data)
{
    return data->dataset->notes ? data->dataset->notes : "";
}

/* A hidden layer as wide as the rows can teach: its width doubles from 8 to 128 as long as there
 * are at most two weights for each row; a second one, half as wide, follows where the first has 32
 * units or more. */
static enum status suggest(struct prony_data *data, const char **out)
{
    enum { LEAST = 8, MOST = 128, ENOUGH = 32, WEIGHTS = 2 };
    struct dataset *dataset = data->dataset;
    const int32_t outputs = dataset->class_count ? dataset->class_count : dataset->number_columns;
    const double weights = WEIGHTS * (double)dataset->rows;
    int32_t units = LEAST;
    if (!outputs)
        FAIL(STATUS_INPUT, "%s: found nothing to learn, expected labels: --target COLUMN",
             dataset->name);
    while (units < MOST && 2.0 * units * (dataset->columns + units + outputs) <= weights)
        units *= 2;
    const char *spec = units >= ENOUGH ? arena_format(&dataset->arena, "mlp:%d-%d-%d-%d",
                                                      dataset->columns, units, units / 2, outputs)
                                       : arena_format(&dataset->arena, "mlp:%d-%d-%d",
                                                      dataset->columns, units, outputs);
    NEED(spec);
    *out = spec;
    return STATUS_OK;
}

int prony_data_network(struct prony_data *data, const char **out)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, suggest(data, out));
}

const char *prony_target(const struct prony *network, int32_t target)
{
    const struct columns *columns = network->model.columns;
    if (!columns || !columns->header || target < 0 || target >= columns->target_count)
        return NULL;
    return columns->targets[target];
}

double prony_target_mean(const struct prony *network, int32_t target)
{
    const struct model *model = &network->model;
    if (!model->target_means || target < 0 || target >= model->targets.columns)
        return (double)NAN;
    return (double)model->target_means[target];
}

int32_t prony_data_targets(const struct prony_data *data)
{
    const struct dataset *dataset = data->dataset;
    return dataset->labels ? dataset->label_columns : dataset->number_columns;
}

const int32_t *prony_data_classes(const struct prony_data *data, int64_t row)
{
    const struct dataset *dataset = data->dataset;
    return dataset->labels ? dataset->labels + row * dataset->label_columns : NULL;
}

const float *prony_data_numbers(const struct prony_data *data, int64_t row)
{
    const struct dataset *dataset = data->dataset;
    return dataset->numbers ? dataset->numbers + row * dataset->number_columns : NULL;
}

static enum status check_shares(const struct course *course)
{
    if (!(course->test_share + course->validate_share < 1))
        FAIL(STATUS_INPUT,
             "found %g of the rows held out and %g kept for the test, expected shares that are "
             "together below 1",
             course->validate_share, course->test_share);
    return STATUS_OK;
}

static enum status begin(struct prony *network, struct prony_data *data,
                         const struct prony_course *asked)
{
    struct trainer_options options = {
        .resume = asked->resume,
        .sharing = network->sharing,
        .course =
            {
#define PRONY_COURSE(type, name, key, usual, low, high, otherwise, meaning, help)                  \
    .key = asked->name,
#include "prony_settings.def"
            },
    };
    TRY(course_check(&options.course));
    TRY(check_shares(&options.course));
    if (!asked->resume) /* else it is the file's */
        course_settle(&options.course);
    inside_release(network, "a training on data was begun since");
    network->learns = false;
    TRY(trainer_open(&network->model, data->dataset, &options, &network->trainer));
    network->learns = true;
    const char *name = data->dataset->name;
    network->model.used_to_bits = network->model.weight_bits;
    network->model.data = NULL;
    if (dataset_built_in(name))
        NEED(network->model.data = arena_text(&network->model.arena, name));
    return STATUS_OK;
}

int prony_begin(struct prony *network, struct prony_data *data, const struct prony_course *course)
{
    static const struct prony_course usual;
    locale_t theirs = inside_enter();
    return inside_leave(theirs, begin(network, data, course ? course : &usual));
}

void prony_share(struct prony *network, const struct sharing *sharing)
{
    network->sharing = *sharing;
}

static struct prony_score score_of(const struct score *score)
{
    return (struct prony_score){
        .samples = score->samples,
        .loss = score->samples ? score_loss(score) : 0,
        .accuracy = score->samples && score->has_right ? score_accuracy(score) : -1,
    };
}

static void tell(const struct prony *network, struct prony_progress *progress)
{
    const struct trainer *trainer = network->trainer;
    const struct course *course = &trainer->course;
    const struct control *control = &network->model.params.control;
    *progress = (struct prony_progress){
        .epoch = course->epoch,
        .epochs = course->epochs,
        .step = course->step,
        .steps = trainer->train.steps,
        .finished = trainer_done(trainer),
        .stage = trainer->stage + 1,
        .stages = trainer->traits.stages,
        .so_far = score_of(&course->score),
        .last = score_of(&trainer->epoch),
        .held_out = score_of(&trainer->held_out),
        .best_epoch = course->best_epoch,
        .best_loss = course->best_loss,
        .train_rows = trainer->train.rows,
        .labelled_rows = course->labelled,
        .held_out_rows = trainer->split.validate_count,
        .test_rows = trainer->split.test_count,
        .window = trainer->dataset->stream ? dataset_window(trainer->dataset) : 0,
        .batch = course->batch,
        .rate = control->rate,
        .seed = control->seed,
    };
}

static enum status check_training(const struct prony *network)
{
    if (!network->trainer)
        FAIL(STATUS_INPUT, "%s: found no training on data, expected prony_begin before",
             network->network->name);
    return STATUS_OK;
}

static enum status run(struct prony *network, int64_t steps, struct prony_progress *progress)
{
    TRY(check_training(network));
    struct trainer *trainer = network->trainer;
    int64_t epoch = trainer->course.epoch;
    if (steps > 0 && !trainer_done(trainer))
        TRY(trainer_run(trainer, steps));
    const struct score *score =
        trainer->course.epoch > epoch ? &trainer->epoch : &trainer->course.score;
    if (score->samples && !isfinite(score_loss(score)))
        FAIL(STATUS_WRONG,
             "the loss is no longer a number in epoch %" PRId64 "; expected it to fall: try a "
             "--rate below %g",
             epoch + 1, network->model.params.control.rate);
    if (progress)
        tell(network, progress);
    return STATUS_OK;
}

static enum status gather(struct prony *network)
{
    TRY(check_training(network));
    return trainer_gather(network->trainer, false);
}

int prony_gather(struct prony *network)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, gather(network));
}

int prony_micros(const struct prony *network)
{
    return network->trainer->train.legs[0].micros;
}

bool prony_staleness(const struct prony *network, double *mean, double *most)
{
    const struct staleness *stale = &network->trainer->train.stale;
    *mean = stale->updates > 0 ? stale->sum / stale->updates : 0;
    *most = stale->most;
    return stale->updates > 0;
}

int prony_run(struct prony *network, int64_t steps, struct prony_progress *progress)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, run(network, steps, progress));
}

static enum status end(struct prony *network, struct prony_score *test)
{
    struct score score;
    TRY(check_training(network));
    TRY(trainer_gather(network->trainer, true));
    TRY(trainer_tell_left_out(network->trainer));
    TRY(trainer_take_best(network->trainer));
    TRY(trainer_test(network->trainer, &score));
    if (test)
        *test = score_of(&score);
    return STATUS_OK;
}

int prony_end(struct prony *network, struct prony_score *test)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, end(network, test));
}

/* A visitor of the library's user. */
struct visitor {
    prony_visit *visit;
    void *context;
    locale_t locale;
};

static enum status pass_on(void *context, const struct prediction *prediction)
{
    const struct visitor *visitor = context;
    const struct prony_prediction said = {.first = prediction->first,
                                          .rows = prediction->rows,
                                          .list = prediction->list,
                                          .width = prediction->width,
                                          .places = prediction->places,
                                          .outputs = prediction->outputs,
                                          .classes = prediction->classes};
    locale_t ours = uselocale(visitor->locale);
    enum status status = (enum status)visitor->visit(visitor->context, &said);
    uselocale(ours);
    return status;
}

int prony_predict_data(struct prony *network, struct prony_data *data, prony_visit *visit,
                       void *context)
{
    locale_t theirs = inside_enter();
    struct visitor visitor = {visit, context, theirs};
    return inside_leave(theirs, predict_data(&network->model, data->dataset, pass_on, &visitor));
}

static enum status predict_test(struct prony *network, struct dataset *dataset,
                                struct visitor *visitor)
{
    int64_t count = dataset->test_rows;
    if (!count)
        return predict_data(&network->model, dataset, pass_on, visitor);
    uint32_t *rows = mem_array((size_t)count, sizeof *rows);
    NEED(rows);
    for (int64_t i = 0; i < count; i++)
        rows[i] = (uint32_t)(dataset->rows - count + i);
    enum status status = predict_some(&network->model, dataset, rows, count, pass_on, visitor);
    mem_free(rows);
    return status;
}

int prony_predict_test(struct prony *network, struct prony_data *data, prony_visit *visit,
                       void *context)
{
    locale_t theirs = inside_enter();
    struct visitor visitor = {visit, context, theirs};
    return inside_leave(theirs, predict_test(network, data->dataset, &visitor));
}

static enum status test(struct prony *network, struct visitor *visitor)
{
    TRY(check_training(network));
    const struct trainer *trainer = network->trainer;
    if (!trainer->traits.targets || !trainer->split.test_count)
        return STATUS_OK;
    return predict_some(&network->model, trainer->dataset, split_test(&trainer->split),
                        trainer->split.test_count, pass_on, visitor);
}

int prony_test(struct prony *network, prony_visit *visit, void *context)
{
    locale_t theirs = inside_enter();
    struct visitor visitor = {visit, context, theirs};
    return inside_leave(theirs, test(network, &visitor));
}

/* Which class is meant; *out is -1 when none was named. */
static enum status find_class(const struct model *model, const char *name, int32_t *out)
{
    *out = -1;
    if (!name)
        return STATUS_OK;
    for (int32_t i = 0; i < model->class_count; i++)
        if (text_equal(model->classes[i], name))
            *out = i;
    if (*out < 0)
        FAIL(STATUS_INPUT, "there is no class '%s' in what %s learnt; expected one of its %d%s%s",
             name, model->network->name, model->class_count, model->class_count ? ", as " : "",
             model->class_count ? model->classes[0] : "");
    return STATUS_OK;
}

/* Whom the library's user wants to be asked. */
struct asker {
    int (*stop)(void *context);
    void *context;
};

static bool shall_stop(void *context)
{
    const struct asker *asker = context;
    return asker->stop(asker->context) != 0;
}

static enum status generate(struct prony *network, const struct prony_samples *asked,
                            float *samples)
{
    struct asker asker = {asked->stop, asked->context};
    struct generate_options options = {.rows = asked->rows,
                                       .sweeps = asked->sweeps,
                                       .seed = asked->seed,
                                       .stop = asked->stop ? shall_stop : NULL,
                                       .context = &asker};
    if (asked->sweeps < 0)
        FAIL(STATUS_INPUT, "found %" PRId64 " sweeps, expected at least 1", asked->sweeps);
    if (asked->rows < 1 || asked->rows > GENERATE_MOST)
        FAIL(STATUS_INPUT, "found %d samples to generate, expected 1 to %d", asked->rows,
             GENERATE_MOST);
    TRY(find_class(&network->model, asked->class_name, &options.class_index));
    inside_release(network, "its network generated samples since");
    return generate_rows(&network->model, &options, samples);
}

int prony_generate(struct prony *network, const struct prony_samples *asked, float *samples)
{
    locale_t theirs = inside_enter();
    return inside_leave(theirs, generate(network, asked, samples));
}

int32_t prony_input_sizes(const struct prony *network, int64_t *sizes, int32_t most)
{
    const struct shape *input = &network->network->input;
    for (int32_t i = 0; i < input->rank && i < most; i++)
        sizes[i] = input->dim[i];
    return input->rank;
}
