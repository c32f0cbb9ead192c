/* include/prony.h: what it learns, keeps and refuses. */
#include "prony.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "check.h"
#include "folder.h"

#include <math.h>

enum { ROWS = 6 };

static const float inputs[ROWS][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0.9f, 0}, {0, 0.8f}};
static const int32_t classes[ROWS] = {0, 1, 1, 0, 1, 1}; /* exclusive or */
static const float numbers[ROWS] = {0, 1, 1, 0, 0.9f, 0.8f};

static const struct prony_options two_classes = {.classes = 2, .rate = 0.5, .seed = 3};

static bool check_refused(int code, int expected, const char *message)
{
    return CHECK_EQUAL_INT(code, expected) && CHECK_MESSAGE(message);
}

TEST(has_a_version)
{
    CHECK(strchr(prony_version(), '.') != NULL);
}

TEST(learns_classes)
{
    struct prony *network;
    float loss = 9, chances[ROWS][2];
    if (!CHECK_EQUAL_INT(prony_open("mlp:2-16-2:tanh", &two_classes, &network), PRONY_OK))
        return;
    CHECK_EQUAL_INT(prony_inputs(network), 2);
    CHECK_EQUAL_INT(prony_outputs(network), 2);
    CHECK_EQUAL_INT(prony_parameters(network), 2 * 16 + 16 + 16 * 2 + 2);
    for (int step = 0; step < 500; step++)
        CHECK_EQUAL_INT(prony_train_classes(network, ROWS, inputs[0], classes, &loss), PRONY_OK);
    CHECK(loss < 0.1f);
    CHECK_EQUAL_INT(prony_predict(network, ROWS, inputs[0], chances[0]), PRONY_OK);
    for (int i = 0; i < ROWS; i++) {
        CHECK(chances[i][classes[i]] > 0.8f);
        CHECK_NEAR(chances[i][0] + chances[i][1], 1, 1e-5);
    }
    prony_close(network);
}

TEST(learns_numbers_in_batches_of_any_size)
{
    struct prony *network;
    float loss = 9, outputs[ROWS];
    const struct prony_options options = {.rate = 0.2, .optimiser = "sgd", .seed = 1};
    if (!CHECK_EQUAL_INT(
            prony_open_text("text", "input 2\ndense 16\ntanh\ndense 1\n", &options, &network),
            PRONY_OK))
        return;
    for (int step = 0; step < 3000; step++) /* more sizes than are kept */
        CHECK_EQUAL_INT(prony_train_numbers(network, 1 + step % ROWS, inputs[0], numbers, &loss),
                        PRONY_OK);
    CHECK_EQUAL_INT(prony_predict(network, ROWS, inputs[0], outputs), PRONY_OK);
    for (int i = 0; i < ROWS; i++)
        CHECK_NEAR(outputs[i], numbers[i], 0.2);
    prony_close(network);
}

/* A loss over numbers takes class c of C as c ÷ (C − 1). */
TEST(takes_classes_as_levels)
{
    struct prony *levels, *plain;
    float one = 1, other = 2;
    const struct prony_options of_classes = {.classes = 2, .loss = "mse"};
    const float targets[ROWS] = {0, 1, 1, 0, 1, 1};
    CHECK_EQUAL_INT(prony_open("mlp:2-4-1", &of_classes, &levels), PRONY_OK);
    CHECK_EQUAL_INT(prony_open("mlp:2-4-1", NULL, &plain), PRONY_OK);
    CHECK_EQUAL_INT(prony_train_classes(levels, ROWS, inputs[0], classes, &one), PRONY_OK);
    CHECK_EQUAL_INT(prony_train_numbers(plain, ROWS, inputs[0], targets, &other), PRONY_OK);
    CHECK(one == other);
    prony_close(levels);
    prony_close(plain);
}

TEST(saves_and_loads)
{
    const char *path = at("weights");
    struct prony *trained, *loaded;
    float expected[ROWS][2], found[ROWS][2];
    CHECK_EQUAL_INT(prony_open("mlp:2-5-2", &two_classes, &trained), PRONY_OK);
    CHECK_EQUAL_INT(prony_train_classes(trained, ROWS, inputs[0], classes, NULL), PRONY_OK);
    CHECK_EQUAL_INT(prony_predict(trained, ROWS, inputs[0], expected[0]), PRONY_OK);
    CHECK_EQUAL_INT(prony_save(trained, path), PRONY_OK);

    /* that it has classes, and so gives probabilities, is said by the file */
    CHECK_EQUAL_INT(prony_open("mlp:2-5-2", NULL, &loaded), PRONY_OK);
    CHECK_EQUAL_INT(prony_load(loaded, path), PRONY_OK);
    CHECK_EQUAL_INT(prony_predict(loaded, ROWS, inputs[0], found[0]), PRONY_OK);
    CHECK(memcmp(found, expected, sizeof found) == 0);
    prony_close(loaded);

    CHECK_EQUAL_INT(prony_open("mlp:2-6-2", NULL, &loaded), PRONY_OK);
    CHECK(prony_load(loaded, path) == PRONY_INPUT);
    CHECK_MESSAGE(path);
    CHECK(prony_load(loaded, "/nowhere/at/all") != PRONY_OK);
    CHECK_MESSAGE("/nowhere/at/all");
    prony_close(loaded);
    prony_close(trained);
}

TEST(refuses_with_a_message)
{
    struct prony *network;
    const int32_t beyond[ROWS] = {0, 1, 2, 0, 0, 0};
    check_refused(prony_open("smal", NULL, &network), PRONY_INPUT, "did you mean 'small'?");
    CHECK(network == NULL);
    prony_close(network);
    check_refused(prony_open("small", &(struct prony_options){.backend = "reff"}, &network),
                  PRONY_INPUT, "did you mean 'ref'?");
    check_refused(prony_open("small", &(struct prony_options){.loss = "mce"}, &network),
                  PRONY_INPUT, "there is no loss 'mce'");
    check_refused(prony_open_text("here", "input 2\ndens 1\n", NULL, &network), PRONY_INPUT,
                  "here:2:1: there is no layer 'dens'");
    check_refused(prony_open("small", &(struct prony_options){.rate = (double)NAN}, &network),
                  PRONY_INPUT, "found a rate of nan");
    check_refused(prony_open("small", &(struct prony_options){.rate = -1}, &network), PRONY_INPUT,
                  "found a rate of -1");
    check_refused(prony_open("small", &(struct prony_options){.classes = -3}, &network),
                  PRONY_INPUT, "found -3 classes");
    check_refused(prony_open("small", &(struct prony_options){.threads = 1000000}, &network),
                  PRONY_INPUT, "found 1000000 threads");
    if (!CHECK_EQUAL_INT(prony_open("mlp:2-4-2", &two_classes, &network), PRONY_OK))
        return;
    check_refused(prony_train_classes(network, ROWS, NULL, beyond, NULL), PRONY_INPUT,
                  "found NULL for its inputs");
    check_refused(prony_train_classes(network, ROWS, inputs[0], NULL, NULL), PRONY_INPUT,
                  "found NULL for its classes");
    check_refused(prony_train_classes(network, ROWS, inputs[0], beyond, NULL), PRONY_INPUT,
                  "row 2: found class 2, expected one from 0 to 1");
    check_refused(prony_train_numbers(network, ROWS, inputs[0], numbers, NULL), PRONY_INPUT,
                  "expected prony_train_classes");
    check_refused(prony_predict(network, 0, inputs[0], NULL), PRONY_INPUT, "found 0 rows");
    prony_close(network);
}

/* Steps of a dbn are its fine-tuning: it learns the classes it is given. */
TEST(a_step_of_a_dbn_learns_classes)
{
    struct prony *network;
    float first = 0, last = 0;
    const struct prony_options options = {.classes = 2, .rate = 0.05, .seed = 3};
    if (!CHECK_EQUAL_INT(prony_open_text("here",
                                         "input 2\nrecipe dbn pretrain=1 gentle=1\ndense 8\n"
                                         "sigmoid\ndense 2\noptimiser adam\n",
                                         &options, &network),
                         PRONY_OK))
        return;
    CHECK_EQUAL_INT(prony_train_classes(network, ROWS, inputs[0], classes, &first), PRONY_OK);
    for (int i = 0; i < 300; i++)
        CHECK_EQUAL_INT(prony_train_classes(network, ROWS, inputs[0], classes, &last), PRONY_OK);
    CHECK_NEAR(first, 0.69, 0.3);
    CHECK(last < 0.1f);
    prony_close(network);
}

/* What learns from its inputs alone is given nothing else; on a condition, classes. */
TEST(learns_from_inputs_alone)
{
    struct prony *rbm, *vae;
    float first = 0, last = 0, outputs[ROWS * 2];
    CHECK_EQUAL_INT(prony_open_text("here", "input 2\nrecipe rbm\ndense 8\nsigmoid\n", NULL, &rbm),
                    PRONY_OK);
    CHECK_EQUAL_INT(prony_open_text("here",
                                    "recipe vae condition=1\nnetwork encoder\ninput 2\ndense 4\n"
                                    "network decoder\ninput 2\ndense 2\n",
                                    &two_classes, &vae),
                    PRONY_OK);
    if (rbm && vae) {
        CHECK_EQUAL_INT(prony_train_numbers(rbm, ROWS, inputs[0], NULL, &first), PRONY_OK);
        for (int i = 0; i < 300; i++)
            CHECK_EQUAL_INT(prony_train_numbers(rbm, ROWS, inputs[0], NULL, &last), PRONY_OK);
        CHECK(last < first);
        check_refused(prony_train_classes(rbm, ROWS, inputs[0], classes, NULL), PRONY_INPUT,
                      "learns from its inputs alone, expected prony_train_numbers with NULL");
        CHECK_EQUAL_INT(prony_train_classes(vae, ROWS, inputs[0], classes, &last), PRONY_OK);
        check_refused(prony_train_numbers(vae, ROWS, inputs[0], NULL, NULL), PRONY_INPUT,
                      "expected prony_train_classes");
        check_refused(prony_predict(vae, ROWS, inputs[0], outputs), PRONY_INPUT,
                      "expected prony_predict_data");
    }
    prony_close(rbm);
    prony_close(vae);
}

static const struct prony_course short_course = {.epochs = 6, .batch = 25, .test = 0.2};

/* A network on Iris that trains up to that epoch and is saved; NULL when it could not. */
static struct prony *train_on_iris(const struct prony_course *course, int64_t epoch,
                                   struct prony_data **iris, const char *path)
{
    struct prony *network = NULL;
    struct prony_progress progress = {0};
    const struct prony_options options = {.seed = 1, .optimiser = "adam", .rate = 0.01};
    *iris = NULL;
    int code = prony_open("mlp:4-16-3", &options, &network);
    if (!code)
        code = prony_data_open("iris", NULL, iris);
    if (!code)
        code = prony_begin(network, *iris, course);
    while (!code && !progress.finished && progress.epoch < epoch)
        code = prony_run(network, 3, &progress);
    if (!code)
        code = prony_save(network, path);
    if (CHECK_EQUAL_INT(code, PRONY_OK))
        return network;
    prony_close(network);
    prony_data_close(*iris);
    return NULL;
}

static int count_right(void *context, const struct prony_prediction *prediction)
{
    int64_t *right = context;
    for (int64_t row = 0; row < prediction->rows; row++)
        *right += prediction->classes[row] == (prediction->first + row) / 50; /* as Iris lies */
    return prediction->first + prediction->rows == 150 ? 0 : PRONY_STOPPED;
}

TEST(trains_on_data_and_predicts_it)
{
    struct prony_data *iris;
    struct prony_score test;
    struct prony_progress progress;
    int64_t right = 0;
    const struct prony_course course = {
        .epochs = 60, .batch = 8, .test = 0.2, .validate = 0.2, .patience = 20};
    struct prony *network = train_on_iris(&course, 60, &iris, at("weights"));
    if (!network)
        return;
    CHECK_EQUAL_INT(prony_run(network, 0, &progress), PRONY_OK);
    CHECK(progress.train_rows == 90 && progress.held_out_rows == 30 && progress.test_rows == 30);
    CHECK(progress.finished && progress.best_epoch > 0 && progress.held_out.accuracy > 0.9);
    CHECK_EQUAL_INT(prony_end(network, &test), PRONY_OK);
    CHECK(test.samples == 30 && test.accuracy > 0.9 && test.loss < 0.3);
    CHECK_EQUAL_INT(prony_classes(network), 3);
    CHECK_EQUAL_TEXT(prony_class(network, 2), "virginica");
    CHECK_EQUAL_INT(prony_data_rows(iris), 150);
    CHECK_EQUAL_INT(prony_data_classes(iris, 149)[0], 2);
    CHECK(prony_data_numbers(iris, 0) == NULL && prony_data_targets(iris) == 1);
    CHECK_EQUAL_INT(prony_predict_data(network, iris, count_right, &right), PRONY_OK);
    CHECK(right > 140);
    prony_close(network);
    prony_data_close(iris);
}

TEST(resumed_training_ends_with_the_same_bytes)
{
    struct prony_data *iris;
    struct text whole = {0}, resumed = {0};
    struct prony *network = train_on_iris(&short_course, 6, &iris, at("whole"));
    prony_close(network);
    prony_data_close(iris);
    network = train_on_iris(&short_course, 2, &iris, at("part"));
    prony_close(network);
    prony_data_close(iris);
    const struct prony_course rest = {.resume = at("part")};
    network = train_on_iris(&rest, 6, &iris, at("resumed"));
    prony_close(network);
    prony_data_close(iris);
    if (CHECK_OK(file_read(at("whole"), 1 << 20, &whole)) &&
        CHECK_OK(file_read(at("resumed"), 1 << 20, &resumed)))
        CHECK(whole.length == resumed.length && !memcmp(whole.data, resumed.data, whole.length));
    text_free(&whole);
    text_free(&resumed);
}

TEST(goes_on_from_what_it_loaded)
{
    struct prony_data *iris;
    struct prony_progress before, after = {0};
    struct prony *network = train_on_iris(&short_course, 6, &iris, at("weights"));
    if (!network || !CHECK_EQUAL_INT(prony_run(network, 0, &before), PRONY_OK))
        return;
    prony_close(network);
    prony_data_close(iris);
    CHECK_EQUAL_INT(prony_open("mlp:4-16-3", NULL, &network), PRONY_OK);
    CHECK_EQUAL_INT(prony_load(network, at("weights")), PRONY_OK);
    const struct prony_data_options options = {.network = network};
    CHECK_EQUAL_INT(prony_data_open("iris", &options, &iris), PRONY_OK);
    CHECK_EQUAL_INT(prony_begin(network, iris, &short_course), PRONY_OK);
    CHECK_EQUAL_INT(prony_run(network, 100, &after), PRONY_OK);
    CHECK(after.last.loss < before.last.loss + 0.1);
    prony_close(network);
    prony_data_close(iris);
}

TEST(refuses_a_training_that_cannot_be)
{
    struct prony *network;
    struct prony_data *iris, *digits;
    struct prony_progress progress;
    CHECK_EQUAL_INT(prony_open("mlp:4-16-3", NULL, &network), PRONY_OK);
    CHECK_EQUAL_INT(prony_data_open("iris", NULL, &iris), PRONY_OK);
    CHECK_EQUAL_INT(prony_data_open("digits", NULL, &digits), PRONY_OK);
    check_refused(prony_data_open("iriss", NULL, &(struct prony_data *){NULL}), PRONY_INPUT,
                  "did you mean 'iris'?");
    check_refused(prony_run(network, 1, &progress), PRONY_INPUT, "expected prony_begin before");
    check_refused(prony_begin(network, digits, NULL), PRONY_INPUT, "found 64 feature columns");
    check_refused(prony_begin(network, iris, &(struct prony_course){.test = 0.7, .validate = 0.3}),
                  PRONY_INPUT, "expected shares that are together below 1");
    CHECK_EQUAL_INT(prony_begin(network, iris, NULL), PRONY_OK);
    check_refused(prony_begin(network, iris, NULL), PRONY_INPUT, "were scaled before");
    prony_close(network);
    prony_data_close(iris);
    prony_data_close(digits);
}

/* A short life, for the allocations in it. */
static int live(void)
{
    struct prony *network;
    float chances[ROWS][2];
    int code = prony_open("mlp:2-4-2", &two_classes, &network);
    if (!code)
        code = prony_train_classes(network, ROWS, inputs[0], classes, NULL);
    if (!code)
        code = prony_predict(network, ROWS, inputs[0], chances[0]);
    prony_close(network);
    return code;
}

static int live_on_data(void)
{
    struct prony *network = NULL;
    struct prony_data *iris = NULL;
    int64_t right = 0;
    int code = prony_open("mlp:4-4-3", NULL, &network);
    if (!code)
        code = prony_data_open("iris", NULL, &iris);
    if (!code)
        code = prony_begin(network, iris, &short_course);
    if (!code)
        code = prony_run(network, 1, NULL);
    if (!code)
        code = prony_end(network, NULL);
    if (!code)
        code = prony_predict_data(network, iris, count_right, &right);
    prony_close(network);
    prony_data_close(iris);
    return code;
}

static void check_allocations(int (*life)(void))
{
    int code = PRONY_MEMORY;
    long nth = 1;
    for (; nth < 10000 && code != PRONY_OK; nth++) {
        memory_fail_at(nth);
        code = life();
        memory_fail_at(0);
        if (code != PRONY_OK && !CHECK_EQUAL_INT(code, PRONY_MEMORY))
            return;
    }
    CHECK(nth > 20);
    CHECK_EQUAL_INT(code, PRONY_OK);
}

/* What is said of the rows, put where `context` points. */
static int keep_outputs(void *context, const struct prony_prediction *prediction)
{
    float *out = context;
    for (int64_t i = 0; i < prediction->rows; i++)
        out[prediction->list ? prediction->list[i] : prediction->first + i] =
            prediction->outputs[i];
    return 0;
}

/* A table of 100 rows: the price is 100000 + 2000 area, and 50000 more in Rome. */
static bool write_table(const char *path)
{
    struct text table = {0};
    text_add(&table, "city,area,price\n");
    for (int i = 0; i < 100; i++)
        text_printf(&table, "%s,%s%.0d,%d\n", i % 3 ? "Bari" : "Rome", i % 25 ? "" : "NA",
                    i % 25 ? i : 0, 100000 + 2000 * i + (i % 3 ? 0 : 50000));
    bool written = CHECK_OK(file_write(path, table.data, table.length));
    text_free(&table);
    return written;
}

TEST(learns_a_table_and_keeps_how_it_is_read)
{
    const struct prony_data_options filled = {.fill = "median"};
    const struct prony_options adam = {.optimiser = "adam", .rate = 0.01, .seed = 1};
    const struct prony_course course = {.epochs = 100, .test = 0.2};
    struct prony_data *data = NULL, *again = NULL;
    struct prony *network = NULL, *saved = NULL;
    struct prony_progress progress = {0};
    float tested[100] = {0}, said[100], one[2] = {1, 60}, price = 0;
    const char *spec = NULL;
    if (!write_table(at("table.csv")) ||
        !CHECK_EQUAL_INT(prony_data_open(at("table.csv"), &filled, &data), PRONY_OK) ||
        !CHECK_EQUAL_INT(prony_data_network(data, &spec), PRONY_OK) ||
        !CHECK_EQUAL_INT(prony_open(spec, &adam, &network), PRONY_OK) ||
        !CHECK_EQUAL_INT(prony_begin(network, data, &course), PRONY_OK))
        goto done;
    CHECK(strstr(prony_data_notes(data),
                 "area: 4 missing of 100, filled with the median of the training rows\n"));
    CHECK(strstr(prony_data_notes(data), "medians of the 80 training rows: area "));
    while (!progress.finished)
        if (!CHECK_EQUAL_INT(prony_run(network, 1000, &progress), PRONY_OK))
            goto done;
    CHECK_EQUAL_INT(prony_test(network, keep_outputs, tested), PRONY_OK);
    CHECK_EQUAL_INT(prony_save(network, at("table.model")), PRONY_OK);
    if (!CHECK_EQUAL_INT(prony_open_saved(at("table.model"), NULL, &saved), PRONY_OK))
        goto done;
    const struct prony_data_options as_learnt = {.network = saved};
    CHECK_EQUAL_TEXT(prony_target(saved, 0), "price");
    CHECK(!prony_target(saved, 1) && !prony_target(saved, -1));
    CHECK(prony_target_mean(saved, 0) == prony_target_mean(network, 0));
    CHECK(prony_target_mean(saved, 0) > 0 && isnan(prony_target_mean(saved, 1)));
    if (!CHECK_EQUAL_INT(prony_data_open(at("table.csv"), &as_learnt, &again), PRONY_OK) ||
        !CHECK_EQUAL_INT(prony_predict_data(saved, again, keep_outputs, said), PRONY_OK))
        goto done;
    int rows = 0;
    for (int i = 0; i < 100; i++)
        if (tested[i] != 0) { /* by the same weights, in their unit */
            CHECK_NEAR(tested[i], said[i], 1);
            rows++;
        }
    CHECK_EQUAL_INT(rows, 20);
    CHECK_EQUAL_INT(prony_predict(saved, 1, one, &price), PRONY_OK);
    CHECK_NEAR(price, said[60], 1); /* Rome, which is text 1 */
    CHECK(price > 250000 && price < 290000);
done:
    prony_close(network);
    prony_close(saved);
    prony_data_close(data);
    prony_data_close(again);
}

TEST(goes_on_when_memory_is_out)
{
    check_allocations(live);
    check_allocations(live_on_data);
}

CHECK_MAIN
