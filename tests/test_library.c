/* include/prony.h: what it learns, keeps and refuses. */
#include "prony.h"

#include "base/memory.h"
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

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
    char path[] = "/tmp/prony-library-XXXXXX";
    struct prony *trained, *loaded;
    float expected[ROWS][2], found[ROWS][2];
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
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
    unlink(path);
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
    if (!CHECK_EQUAL_INT(prony_open("mlp:2-4-2", &two_classes, &network), PRONY_OK))
        return;
    check_refused(prony_train_classes(network, ROWS, inputs[0], beyond, NULL), PRONY_INPUT,
                  "row 2: found class 2, expected one from 0 to 1");
    check_refused(prony_train_numbers(network, ROWS, inputs[0], numbers, NULL), PRONY_INPUT,
                  "expected prony_train_classes");
    check_refused(prony_predict(network, 0, inputs[0], NULL), PRONY_INPUT, "found 0 rows");
    prony_close(network);
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

TEST(goes_on_when_memory_is_out)
{
    int code = PRONY_MEMORY;
    long nth = 1;
    for (; nth < 10000 && code != PRONY_OK; nth++) {
        memory_fail_at(nth);
        code = live();
        memory_fail_at(0);
        if (code != PRONY_OK && !CHECK_EQUAL_INT(code, PRONY_MEMORY))
            return;
    }
    CHECK(nth > 20);
    CHECK_EQUAL_INT(code, PRONY_OK);
}

CHECK_MAIN
