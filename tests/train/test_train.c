/* Training and prediction through the reference backend. */
#include "backend/cpu/cpu_backends.h"
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "folder.h"
#include "train/predict.h"
#include "train/train.h"

static const struct device_options one_thread = {.threads = 1};

/* What a lesson is given: how to open the model and how to train it. */
struct lesson_options {
    struct model_options model;
    struct trainer_options trainer;
};

static struct lesson_options make_options(int32_t batch, int64_t epochs, double rate)
{
    return (struct lesson_options){
        .model = {.rate = rate, .seed = 1},
        .trainer.course = {.batch = batch, .epochs = epochs, .test_share = 0.2},
    };
}

/* A network, Iris and a trainer over both. */
struct lesson {
    struct network *network;
    struct dataset *dataset;
    struct model model;
    struct trainer *trainer;
};

/* Once the network is there. */
static enum status lesson_start(struct lesson *lesson, const struct lesson_options *options)
{
    TRY(dataset_open("iris", &(struct dataset_options){0}, &lesson->dataset));
    TRY(model_open(&lesson->model, lesson->network, &backend_ref, &one_thread, &options->model));
    return trainer_open(&lesson->model, lesson->dataset, &options->trainer, &lesson->trainer);
}

static enum status lesson_begin(struct lesson *lesson, const char *spec,
                                const struct lesson_options *options)
{
    *lesson = (struct lesson){0};
    if (strchr(spec, '\n'))
        TRY(network_parse("test.net", spec, strlen(spec), &lesson->network));
    else
        TRY(network_open(spec, &lesson->network));
    return lesson_start(lesson, options);
}

static enum status lesson_save(struct lesson *lesson, const char *path)
{
    return model_save(&lesson->model, &lesson->trainer->course, path);
}

static enum status lesson_run(struct lesson *lesson, int64_t steps_at_once)
{
    while (lesson->trainer->course.epoch < lesson->trainer->course.epochs)
        TRY(trainer_run(lesson->trainer, steps_at_once));
    return STATUS_OK;
}

static void lesson_end(struct lesson *lesson)
{
    trainer_close(lesson->trainer);
    model_close(&lesson->model);
    dataset_free(lesson->dataset);
    if (lesson->network)
        network_free(lesson->network);
}

static double test_accuracy(const char *spec, int32_t batch, int64_t epochs, uint64_t seed)
{
    struct lesson lesson;
    struct score score = {.samples = 1};
    struct lesson_options options = make_options(batch, epochs, 0);
    options.model.seed = seed;
    if (CHECK_OK(lesson_begin(&lesson, spec, &options)) && CHECK_OK(lesson_run(&lesson, 1000)))
        CHECK_OK(trainer_test(lesson.trainer, &score));
    lesson_end(&lesson);
    return score_accuracy(&score);
}

/* The defaults of prony train, and more than one split to be lucky with. */
TEST(learns_iris)
{
    enum { SEEDS = 10 };
    double small = 0, deep = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        small += test_accuracy("small", 8, 100, seed) / SEEDS;
        deep += test_accuracy("mlp:4-16-16-3", 8, 100, seed) / SEEDS;
    }
    CHECK(small >= 0.95);
    CHECK(deep >= 0.95);
    CHECK(test_accuracy("small", 8, 100, 1) >= 0.9);
    CHECK(test_accuracy("mlp:4-16-16-3", 8, 100, 1) >= 0.95);
}

TEST(batch_need_not_divide_the_data)
{
    struct lesson lesson;
    struct lesson_options options = make_options(50, 2, 0.1);
    struct score score;
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options))) {
        struct trainer *trainer = lesson.trainer;
        CHECK_EQUAL_INT(trainer->train.steps, 3); /* 50, 50, 20 */
        CHECK_OK(trainer_run(trainer, 100));
        CHECK_EQUAL_INT(trainer->course.epoch, 1);
        CHECK_EQUAL_INT(trainer->epoch.samples, 120);
        CHECK_OK(trainer_run(trainer, 2));
        CHECK_EQUAL_INT(trainer->course.step, 2);
        CHECK_EQUAL_INT(trainer->course.score.samples, 100);
        CHECK_OK(trainer_run(trainer, 2));
        CHECK_EQUAL_INT(trainer->course.epoch, 2);
        CHECK_EQUAL_INT(trainer->epoch.samples, 120);
        CHECK(trainer->epoch.right_sum >= 0 && trainer->epoch.right_sum <= 120);
        CHECK_OK(trainer_test(trainer, &score));
        CHECK_EQUAL_INT(score.samples, 30);
        CHECK_OK(engine_download(&lesson.model.engine, &lesson.model.params));
        CHECK_EQUAL_INT(lesson.model.params.control.step, 6);
    }
    lesson_end(&lesson);
}

/* The mean loss of an epoch in which nothing moves is that of the data, however it is cut up. */
TEST(a_small_last_batch_weighs_less)
{
    double losses[2];
    for (int i = 0; i < 2; i++) {
        struct lesson lesson;
        struct lesson_options options = make_options(i ? 50 : 120, 1, 1e-12);
        if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options)) &&
            CHECK_OK(lesson_run(&lesson, 100)))
            losses[i] = lesson.trainer->epoch.loss_sum / (double)lesson.trainer->epoch.samples;
        lesson_end(&lesson);
    }
    CHECK_NEAR(losses[1], losses[0], 1e-6);
}

/* The scale must not know the rows that are kept for the test. */
TEST(features_are_standardised_over_the_training_rows)
{
    struct lesson lesson;
    struct lesson_options options = make_options(8, 1, 0);
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options))) {
        const struct split *split = &lesson.trainer->split;
        const struct dataset *dataset = lesson.dataset;
        double sum = 0;
        for (int64_t i = 0; i < split->train_count; i++)
            sum += (double)dataset->features[split->rows[i] * (uint32_t)dataset->columns];
        CHECK_NEAR(sum / (double)split->train_count, 0, 1e-6);
    }
    lesson_end(&lesson);
}

/* Weights that a file gave with the network were learnt on features as they are. */
TEST(features_stay_where_weights_came_with_the_network)
{
    static const float values[4 * 3] = {1};
    static struct given given = {.name = "dense1.weight", .count = 4 * 3, .values = values};
    struct lesson lesson = {0};
    struct lesson_options options = make_options(8, 1, 0);
    if (CHECK_OK(network_open("mlp:4-3", &lesson.network))) {
        lesson.network->given = &given;
        lesson.network->given_count = 1;
        if (CHECK_OK(lesson_start(&lesson, &options)))
            CHECK_NEAR(lesson.dataset->features[0], 5.1, 1e-6);
    }
    lesson_end(&lesson);
}

TEST(batch_larger_than_the_data_is_the_data)
{
    struct lesson lesson;
    struct lesson_options options = make_options(1000, 1, 0.1);
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options))) {
        CHECK_EQUAL_INT(lesson.trainer->train.steps, 1);
        CHECK_OK(trainer_run(lesson.trainer, 1));
        CHECK_EQUAL_INT(lesson.trainer->epoch.samples, 120);
    }
    lesson_end(&lesson);
}

static bool same_files(const char *a, const char *b)
{
    struct text left = {0}, right = {0};
    bool same = CHECK_OK(file_read(a, 1 << 20, &left)) && CHECK_OK(file_read(b, 1 << 20, &right)) &&
                left.length == right.length && memcmp(left.data, right.data, left.length) == 0;
    text_free(&left);
    text_free(&right);
    return same;
}

static const char dropout_net[] = "input 4\ndense 16\nrelu\ndropout 0.3\nbatch_norm\ndense 3\n";

/* Trains 4 epochs of 5 steps and saves; when `stop` > 0, through a checkpoint after so many calls.
 */
static void train_in_pieces(int64_t steps_at_once, int stop, const char *path)
{
    struct lesson lesson;
    struct lesson_options options = make_options(25, 4, 0.05);
    if (stop > 0) {
        if (!CHECK_OK(lesson_begin(&lesson, dropout_net, &options)))
            return;
        for (int i = 0; i < stop; i++)
            CHECK_OK(trainer_run(lesson.trainer, steps_at_once));
        CHECK_OK(lesson_save(&lesson, at("c")));
        lesson_end(&lesson);
        options.trainer.resume = at("c");
        options.trainer.course = (struct course){0};
    }
    if (CHECK_OK(lesson_begin(&lesson, dropout_net, &options)) &&
        CHECK_OK(lesson_run(&lesson, steps_at_once)))
        CHECK_OK(lesson_save(&lesson, path));
    lesson_end(&lesson);
}

/* The files have parameters, statistics, control block, progress: all bytes are equal. */
TEST(resumed_training_ends_bit_identical)
{
    train_in_pieces(100, 0, at("a"));
    for (int stop = 1; stop < 12; stop++) { /* 3 calls an epoch */
        train_in_pieces(2, stop, at("b"));
        CHECK(same_files(at("a"), at("b")));
    }
}

TEST(steps_at_once_do_not_matter)
{
    train_in_pieces(1, 0, at("b"));
    train_in_pieces(100, 0, at("a"));
    CHECK(same_files(at("a"), at("b")));
}

TEST(resume_may_ask_for_more_epochs)
{
    struct lesson lesson;
    struct lesson_options options = make_options(25, 2, 0.05);
    if (CHECK_OK(lesson_begin(&lesson, dropout_net, &options)) && CHECK_OK(lesson_run(&lesson, 9)))
        CHECK_OK(lesson_save(&lesson, at("c")));
    lesson_end(&lesson);
    options = make_options(0, 4, 0);
    options.trainer.resume = at("c");
    if (CHECK_OK(lesson_begin(&lesson, dropout_net, &options)) && CHECK_OK(lesson_run(&lesson, 9)))
        CHECK_EQUAL_INT(lesson.trainer->course.epoch, 4);
    lesson_end(&lesson);
}

static void check_refused(const char *spec, const struct lesson_options *options,
                          const char *message)
{
    struct lesson lesson;
    if (CHECK_STATUS(STATUS_INPUT, lesson_begin(&lesson, spec, options)))
        CHECK_MESSAGE(message);
    lesson_end(&lesson);
}

TEST(what_does_not_fit_is_refused)
{
    struct lesson lesson;
    struct lesson_options options = make_options(8, 1, 0.1);
    check_refused("mlp:5-8-3", &options, "iris: found 4 feature columns, expected 5");
    check_refused("mlp:4-8-2", &options, "found 2 outputs, expected one for each of 3 classes");
    check_refused("input 4\ndense 2\nloss mse\n", &options,
                  "found 1 label a row to learn, expected 2");
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options))) {
        CHECK_OK(lesson_save(&lesson, at("c")));
        CHECK_OK(safetensors_write(at("b"), &lesson.model.params, SAFETENSORS_WEIGHTS, NULL, 0));
    }
    options.trainer.resume = at("b");
    check_refused("mlp:4-8-3", &options, "found no 'network' in its metadata");
    options.trainer.resume = at("c");
    check_refused("mlp:4-9-3", &options, "found the weights of another network");
    if (lesson.dataset) {
        struct trainer *trainer = NULL;
        trainer_close(lesson.trainer);
        lesson.trainer = NULL;
        CHECK_STATUS(STATUS_INPUT,
                     trainer_open(&lesson.model, lesson.dataset, &options.trainer, &trainer));
        CHECK_MESSAGE("iris: found features that were scaled before");
        lesson.dataset->scaling = NULL; /* as if it had been read like that: other data */
        CHECK_STATUS(STATUS_INPUT,
                     trainer_open(&lesson.model, lesson.dataset, &options.trainer, &trainer));
        CHECK_MESSAGE("other data");
    }
    lesson_end(&lesson);
}

/* All that was said, put together; the caller frees both blocks. */
struct said {
    int64_t rows;
    int32_t width;
    float *outputs;
    int32_t *classes;
};

static enum status collect(void *context, const struct prediction *prediction)
{
    struct said *said = context;
    size_t width = (size_t)prediction->width, before = (size_t)said->rows;
    size_t count = (size_t)prediction->rows;
    CHECK_EQUAL_INT(prediction->first, said->rows);
    float *outputs = mem_grow(said->outputs, (before + count) * width, sizeof *outputs);
    NEED(outputs);
    said->outputs = outputs;
    int32_t *classes = mem_grow(said->classes, before + count, sizeof *classes);
    NEED(classes);
    said->classes = classes;
    memcpy(outputs + before * width, prediction->outputs, count * width * sizeof *outputs);
    if (prediction->classes)
        memcpy(classes + before, prediction->classes, count * sizeof *classes);
    said->rows += prediction->rows;
    said->width = prediction->width;
    return STATUS_OK;
}

static void said_free(struct said *said)
{
    mem_free(said->outputs);
    mem_free(said->classes);
}

/* What the model in file m says of a data set. */
static enum status predict_by_file(const struct network *network, struct dataset *dataset,
                                   struct said *said)
{
    static const struct model_options usual;
    struct model model = {0};
    enum status status;
    TRY_OR(done, model_open(&model, network, &backend_ref, &one_thread, &usual));
    TRY_OR(done, model_load(&model, at("m")));
    status = predict_data(&model, dataset, collect, said);
    if (status == STATUS_OK)
        CHECK_EQUAL_TEXT(model.classes[1], "versicolor");
done:
    model_close(&model);
    return status;
}

/* The outputs of the first `rows` rows of synthetic data, by the model in file m. */
static enum status predict_rows(const struct network *network, int64_t rows, struct said *said)
{
    struct dataset *dataset = NULL;
    enum status status = dataset_synthetic(rows, 4, 0, 0, 3, &dataset);
    if (status == STATUS_OK)
        status = predict_by_file(network, dataset, said);
    dataset_free(dataset);
    return status;
}

TEST(prediction_covers_every_row_whatever_the_batch)
{
    struct lesson lesson;
    struct lesson_options options = make_options(8, 20, 0.1);
    struct said many = {0}, few = {0};
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options)) &&
        CHECK_OK(lesson_run(&lesson, 100)) && CHECK_OK(lesson_save(&lesson, at("m"))) &&
        CHECK_OK(predict_rows(lesson.network, 9000, &many)) && /* 35 × 256, 40: three visits */
        CHECK_OK(predict_rows(lesson.network, 7, &few))) {
        CHECK_EQUAL_INT(many.rows, 9000);
        CHECK_EQUAL_INT(many.width, 3);
        for (int64_t row = 0; row < many.rows; row++) {
            const float *p = many.outputs + row * 3;
            CHECK_NEAR(p[0] + p[1] + p[2], 1, 1e-5);
            for (int i = 0; i < 3; i++)
                CHECK(p[many.classes[row]] >= p[i]);
        }
        for (int i = 0; i < 7 * 3; i++)
            CHECK_NEAR(few.outputs[i], many.outputs[i], 1e-6);
    }
    said_free(&many);
    said_free(&few);
    lesson_end(&lesson);
}

/* Early stopping, and the weights of the best epoch afterwards. */
TEST(stops_early_and_goes_back_to_the_best)
{
    struct lesson lesson;
    struct score best;
    struct lesson_options options = make_options(8, 1000, 0.1);
    options.trainer.course.validate_share = 0.3;
    options.trainer.course.patience = 3;
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-64-64-3", &options))) {
        struct trainer *trainer = lesson.trainer;
        enum status status = STATUS_OK;
        while (status == STATUS_OK && !trainer_done(trainer))
            status = trainer_run(trainer, 1000);
        CHECK_OK(status);
        CHECK(trainer->course.epoch < 1000);
        CHECK_EQUAL_INT(trainer->course.epoch, trainer->course.best_epoch + 3);
        CHECK(score_loss(&trainer->held_out) >= trainer->course.best_loss);
        CHECK_OK(trainer_take_best(trainer));
        const struct lap_data data = {.dataset = lesson.dataset};
        best = (struct score){0};
        CHECK_OK(lap_begin(&trainer->validate, &data, split_validate(&trainer->split), 0));
        CHECK_OK(lap_run(&trainer->validate, trainer->validate.steps, &best));
        CHECK(score_loss(&best) == trainer->course.best_loss);
    }
    lesson_end(&lesson);
}

TEST(stops_when_the_goal_is_reached)
{
    struct lesson lesson;
    struct lesson_options options = make_options(8, 1000, 0.1);
    options.trainer.course.validate_share = 0.2;
    options.trainer.course.until_accuracy = 0.9;
    if (CHECK_OK(lesson_begin(&lesson, "mlp:4-16-3", &options))) {
        enum status status = STATUS_OK;
        while (status == STATUS_OK && !trainer_done(lesson.trainer))
            status = trainer_run(lesson.trainer, 1000);
        CHECK_OK(status);
        CHECK(lesson.trainer->course.epoch < 1000);
        CHECK(score_accuracy(&lesson.trainer->held_out) >= 0.9);
    }
    lesson_end(&lesson);
}

/* What the trainer's own test says must come out of the saved file too. */
TEST(prediction_agrees_with_the_test)
{
    struct lesson lesson;
    struct lesson_options options = make_options(8, 50, 0);
    struct score score;
    struct said prediction = {0};
    struct dataset *iris = NULL;
    if (CHECK_OK(lesson_begin(&lesson, "small", &options)) && CHECK_OK(lesson_run(&lesson, 100)) &&
        CHECK_OK(trainer_test(lesson.trainer, &score)) && CHECK_OK(lesson_save(&lesson, at("m"))) &&
        CHECK_OK(dataset_open("iris", &(struct dataset_options){0}, &iris)) &&
        CHECK_OK(predict_by_file(lesson.network, iris, &prediction))) {
        const struct split *split = &lesson.trainer->split;
        int64_t right = 0;
        for (int64_t i = 0; i < split->test_count; i++) {
            uint32_t row = split_test(split)[i];
            right += prediction.classes[row] == iris->labels[row];
        }
        CHECK_EQUAL_INT(right, (int64_t)score.right_sum);
    }
    dataset_free(iris);
    said_free(&prediction);
    lesson_end(&lesson);
}

/* Train, test, save, resume, predict: once through. */
static enum status whole_story(void)
{
    struct lesson lesson;
    struct score score;
    struct said said = {0};
    struct lesson_options options = make_options(50, 1, 0.1);
    options.trainer.course.validate_share = 0.2;
    enum status status;
    TRY_OR(done, lesson_begin(&lesson, dropout_net, &options));
    TRY_OR(done, lesson_run(&lesson, 2));
    TRY_OR(done, trainer_test(lesson.trainer, &score));
    TRY_OR(done, lesson_save(&lesson, at("m")));
    lesson_end(&lesson);
    options.trainer.resume = at("m");
    TRY_OR(done, lesson_begin(&lesson, dropout_net, &options));
    TRY_OR(done, predict_rows(lesson.network, 300, &said));
done:
    said_free(&said);
    lesson_end(&lesson);
    return status;
}

/* The versions that binds were told, by whoever computes. */
static struct {
    uint64_t first, others, binds;
} told;

static enum status listen_to_bind(struct plan *plan, const struct binding *binding)
{
    if (!told.binds++)
        told.first = binding->version;
    told.others += binding->version != told.first;
    return backend_ref.bind(plan, binding);
}

/* … so that a unit with memory of its own copies them once, for all plans and epochs. */
TEST(the_data_of_a_training_have_one_version)
{
    struct backend listening = backend_ref;
    struct lesson lesson;
    struct lesson_options options = make_options(50, 3, 0.1);
    uint64_t before = 0;
    listening.bind = listen_to_bind;
    options.trainer.course.validate_share = 0.2;
    for (int again = 0; again < 2; again++) { /* the second one scales other data */
        struct score score;
        memset(&told, 0, sizeof told);
        if (CHECK_OK(lesson_begin(&lesson, "mlp:4-8-3", &options))) {
            lesson.model.engine.backend = &listening;
            CHECK_OK(lesson_run(&lesson, 1));
            CHECK_OK(trainer_test(lesson.trainer, &score));
            CHECK(told.binds >= 3 * 3 + 1 && told.others == 0);
            CHECK(told.first != 0 && told.first != before);
            lesson.model.engine.backend = &backend_ref;
        }
        before = told.first;
        lesson_end(&lesson);
    }
}

TEST(every_failed_allocation_ends_cleanly)
{
    enum status status = STATUS_MEMORY;
    long nth = 1;
    for (; nth < 10000 && status != STATUS_OK; nth++) {
        memory_fail_at(nth);
        status = whole_story();
        bool failed = memory_failed();
        memory_fail_at(0);
        if (failed && !CHECK(status == STATUS_MEMORY)) {
            printf("  allocation %ld: status %s, %s\n", nth, status_name(status), status_message());
            return;
        }
    }
    CHECK(nth > 100);
    CHECK_OK(status);
}

CHECK_MAIN
