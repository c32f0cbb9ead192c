/* test_quantised.c: a network and its form in 8 bits, through prony.h, and what is told of planted
 * traps: outlier channels, ranges that are too narrow, numbers that are none. */
#include "base/memory.h"
#include "check.h"
#include "folder.h"
#include "library/prony_inside.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 256, INPUTS = 4 };

/* Rows of numbers between -1 and 1, every other `wider` times as large; the label says whether
 * their sum is positive. */
static bool write_rows(const char *path, double wider)
{
    FILE *file = fopen(path, "w");
    unsigned seed = 1;
    if (!CHECK(file))
        return false;
    fprintf(file, "a,b,c,d,label\n");
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = 0; i < INPUTS; i++) {
            seed = seed * 1664525u + 1013904223u;
            double value = (double)(seed >> 8) / 8388608 - 1;
            sum += value;
            fprintf(file, "%.6f,", value * (row % 2 ? wider : 1));
        }
        fprintf(file, "%s\n", sum > 0 ? "yes" : "no");
    }
    return CHECK(!fclose(file));
}

struct pair {
    char path[4096];
    struct prony *network, *small;
    struct prony_data *data;
    double outside, outlier, noise_db; /* the worst of all layers */
    int layers;
};

static void note_layer(void *context, const struct prony_layer *layer)
{
    struct pair *pair = context;
    pair->layers++;
    pair->outside = fmax(pair->outside, layer->outside);
    pair->outlier = fmax(pair->outlier, layer->outlier);
    pair->noise_db = fmin(pair->noise_db, layer->noise_db);
}

/* A network that was not trained serves as well; it takes the data as it comes. */
static bool open_pair(struct pair *pair, double wider)
{
    const struct prony_options options = {.classes = 2, .seed = 5, .threads = 1};
    *pair = (struct pair){.noise_db = HUGE_VAL};
    snprintf(pair->path, sizeof pair->path, "%s", at("rows.csv"));
    return write_rows(pair->path, wider) &&
           CHECK_EQUAL_INT(prony_open("mlp:4-16-8-2", &options, &pair->network), PRONY_OK) &&
           CHECK_EQUAL_INT(prony_data_open(pair->path, NULL, &pair->data), PRONY_OK);
}

static int quantise_pair(struct pair *pair, const struct prony_quantising *how)
{
    return prony_quantise(pair->network, pair->data, how, note_layer, pair, &pair->small);
}

static void close_pair(struct pair *pair)
{
    prony_close(pair->small);
    prony_close(pair->network);
    prony_data_close(pair->data);
}

static float *weights_of(struct pair *pair, const char *name)
{
    struct params *params = &pair->network->model.params;
    CHECK_OK(params_fill_new(params));
    return params_data(params, params_find(params, name));
}

TEST(outputs_are_near)
{
    struct pair pair;
    float inputs[8 * INPUTS], real[8 * 2], small[8 * 2];
    for (int i = 0; i < 8 * INPUTS; i++)
        inputs[i] = (float)(i % 7) / 4 - 0.8f;
    if (open_pair(&pair, 1) && CHECK_EQUAL_INT(quantise_pair(&pair, NULL), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_predict(pair.network, 8, inputs, real), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_predict(pair.small, 8, inputs, small), PRONY_OK)) {
        for (int i = 0; i < 16; i++)
            CHECK_NEAR(small[i], real[i], 0.02);
        CHECK_EQUAL_INT(pair.layers, 3);
        CHECK(pair.noise_db > 25);
        CHECK(pair.outside < 0.01);
        CHECK(pair.outlier < 20);
    }
    close_pair(&pair);
}

/* A file of it gives the same bits. */
TEST(a_file_keeps_it)
{
    struct pair pair;
    char path[4096];
    struct prony *again = NULL;
    float inputs[INPUTS] = {0.3f, -0.2f, 0.9f, -1}, first[2], second[2];
    snprintf(path, sizeof path, "%s", at("small.safetensors"));
    if (open_pair(&pair, 1) &&
        CHECK_EQUAL_INT(quantise_pair(&pair, &(struct prony_quantising){.plain = 1}), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_save(pair.small, path), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_open_saved(path, NULL, &again), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_predict(pair.small, 1, inputs, first), PRONY_OK) &&
        CHECK_EQUAL_INT(prony_predict(again, 1, inputs, second), PRONY_OK))
        CHECK(!memcmp(first, second, sizeof first));
    prony_close(again);
    close_pair(&pair);
}

/* One unit of the first layer gives a hundred times as much, and the second layer takes a
 * hundredth of it: in reals the same. */
TEST(outlier_channels_are_told)
{
    struct pair pair;
    if (open_pair(&pair, 1)) {
        float *first = weights_of(&pair, "dense1.weight"),
              *second = weights_of(&pair, "dense2.weight");
        for (int i = 0; i < INPUTS; i++)
            first[i * 16 + 5] *= 100;
        for (int i = 0; i < 8; i++)
            second[5 * 8 + i] /= 100;
        CHECK_EQUAL_INT(quantise_pair(&pair, NULL), PRONY_OK);
        CHECK(pair.outlier > 20);
    }
    close_pair(&pair);
}

/* Rows that are looked at are small, those between them ten times as large. */
TEST(narrow_ranges_are_told)
{
    struct pair pair;
    if (open_pair(&pair, 10)) {
        CHECK_EQUAL_INT(quantise_pair(&pair, &(struct prony_quantising){.rows = ROWS / 2}),
                        PRONY_OK);
        CHECK(pair.outside > 0.01);
    }
    close_pair(&pair);
}

TEST(numbers_that_are_none_are_refused)
{
    struct pair pair;
    if (open_pair(&pair, 1)) {
        weights_of(&pair, "dense2.weight")[3] = INFINITY;
        CHECK_EQUAL_INT(quantise_pair(&pair, NULL), PRONY_WRONG);
        CHECK(strstr(prony_error(), "dense2 gives") != NULL);
        CHECK(!pair.small);
    }
    close_pair(&pair);
}

/* With every allocation that fails it says so, and leaves nothing behind. */
TEST(memory_may_run_out)
{
    struct pair pair;
    if (open_pair(&pair, 1))
        for (long nth = 1; nth < 4000; nth += 7) {
            memory_fail_at(nth);
            int code = quantise_pair(&pair, &(struct prony_quantising){.rows = 32});
            bool failed = memory_failed();
            memory_fail_at(0);
            if (!CHECK(code == PRONY_OK || failed))
                break;
            if (code == PRONY_OK) {
                prony_close(pair.small);
                pair.small = NULL;
            }
            if (!failed)
                break;
        }
    close_pair(&pair);
}

CHECK_MAIN
