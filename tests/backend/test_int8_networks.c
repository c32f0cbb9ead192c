/* test_int8_networks.c: random networks in 8 bits, the same bits on every backend as on the
 * reference: as steps, as calls one by one and queued, by every kernel that takes them. */
#include "base/rng.h"
#include "core/pass/quantise.h"
#include "trial.h"

enum { TEXT = 1024, FEW = 40, MANY = 200 };

/* Number i of so many below `below`, of network `seed`. */
static int32_t draw(uint64_t seed, uint64_t *i, uint32_t below)
{
    return (int32_t)(rng_below((struct rng_key){.seed = seed}, 0, (uint32_t)(*i)++, below));
}

static const char *function_of(int32_t number)
{
    static const char *const names[] = {"relu", "sigmoid", "tanh", "relu", "leaky_relu"};
    return names[number % 5];
}

/* Dense layers, most of them for few samples. */
static int write_dense(char *text, uint64_t seed, uint64_t *i)
{
    static const int32_t widths[] = {4, 8, 12, 16, 33, 64, 130, 200, 260};
    const int32_t layers = 1 + draw(seed, i, 4);
    int length = snprintf(text, TEXT, "input %d\n", 1 + draw(seed, i, 90));
    for (int32_t l = 0; l < layers; l++)
        length += snprintf(text + length, TEXT - (size_t)length, "dense %d\n%s\n",
                           widths[draw(seed, i, 9)], function_of(draw(seed, i, 5)));
    return length + snprintf(text + length, TEXT - (size_t)length, "dense %d\n%s",
                             1 + draw(seed, i, 40), draw(seed, i, 2) ? "sigmoid\n" : "");
}

/* Convolutions with and without groups, pooling, a sum, and a dense layer behind them. */
static int write_image(char *text, uint64_t seed, uint64_t *i)
{
    static const int32_t channels[] = {4, 8, 16, 20, 32, 48};
    const int32_t wide = channels[draw(seed, i, 6)], side = 7 + draw(seed, i, 9);
    int length = snprintf(text, TEXT, "input %dx%dx%d\nconv %d %dx3 pad=1 stride=%d\n%s\n",
                          1 + draw(seed, i, 5), side, side + 2, wide, 1 + 2 * draw(seed, i, 2),
                          1 + draw(seed, i, 2), function_of(draw(seed, i, 5)));
    if (draw(seed, i, 2))
        length += snprintf(text + length, TEXT - (size_t)length, "max_pool 2\n");
    if (draw(seed, i, 2))
        length +=
            snprintf(text + length, TEXT - (size_t)length, "conv %d 3x3 pad=1 groups=%d\nrelu\n",
                     wide, draw(seed, i, 2) ? 4 : wide);
    if (draw(seed, i, 2))
        length += snprintf(text + length, TEXT - (size_t)length,
                           "a = conv %d 3x3 pad=1\nrelu\nb = conv %d 1x1\nadd < a, b\nrelu\n", wide,
                           wide);
    if (draw(seed, i, 2))
        length += snprintf(text + length, TEXT - (size_t)length, "average_pool 2\n");
    return length + snprintf(text + length, TEXT - (size_t)length, "flatten\ndense %d\n",
                             1 + draw(seed, i, 30));
}

/* The network in 8 bits takes the place of the one in fp32. Activations lie between ± 3. */
static bool become_int8(struct trial *trial)
{
    struct quantisation how = {.weight_bits = 8, .count = trial->program->tensor_count};
    struct params small;
    struct program *program = NULL;
    const struct quantise_source source = {.params = &trial->params};
    params_init(&small, DTYPE_F32);
    how.ranges = mem_array((size_t)how.count, sizeof *how.ranges);
    for (int32_t t = 0; how.ranges && t < how.count; t++)
        how.ranges[t] = (struct range){-3, 3};
    const bool ok = CHECK(how.ranges) &&
                    CHECK_OK(quantise(trial->program, &how, &source, &small, NULL, &program));
    mem_free(how.ranges);
    program_free(trial->program);
    params_free(&trial->params);
    trial->program = program;
    trial->params = small;
    return ok;
}

static bool open_int8(struct trial *trial, const struct row *row)
{
    return trial_open(trial, row, USE_INFERENCE) && become_int8(trial);
}

/* One step; false: it did not run. */
static bool run_once(struct trial *trial, struct rig *rig, const struct row *row)
{
    struct program *fused = NULL;
    struct ready ready = {0};
    bool ok = open_int8(trial, row) &&
              CHECK_OK(fuse(trial->program, rig->backend, rig->device, &fused)) &&
              ready_open(&ready, rig, &trial->params, fused) && trial_bind(trial, &ready, fused) &&
              ready_run(&ready, PARTS_ALL, 0, 1);
    ready_close(&ready);
    program_free(fused);
    return ok;
}

/* Steps, calls, queued calls: the same numbers as those of the reference. */
static void compare(struct rig *rig, const struct row *row, const struct trial *expected)
{
    const int64_t count = ROWS * (int64_t)64;
    for (enum answering way = ANSWER_STEPS; way <= ANSWER_QUEUED; way++) {
        struct trial found = {0};
        struct program *fused = NULL;
        if (way == ANSWER_RESIDENT)
            continue;
        if (open_int8(&found, row) &&
            CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) &&
            trial_call(&found, rig, row, fused, way)) {
            check_kernel(&found, found.kernel);
            if (!CHECK(!memcmp(found.y, expected->y, (size_t)count * sizeof *found.y)))
                printf("    batch %d, way %d, by %s:\n%s\n", row->batch, (int)way, found.kernel,
                       row->network);
        }
        program_free(fused);
        trial_close(&found);
    }
}

ON_BACKENDS(random_networks_are_the_references)
{
    static const int32_t batches[] = {1, 1, 2, 3, 7, 8, 9, 16, 17, 33, 61};
    const bool gpu = strcmp(rig->backend->unit, "gpu") == 0;
    struct rig reference;
    char text[TEXT];
    CHECK(rig_open(&reference, "ref"));
    most_calls = 20;
    for (uint64_t seed = 1; seed <= (gpu ? MANY : FEW); seed++) {
        uint64_t i = 0;
        struct trial expected = {0};
        const struct row row = {text, batches[draw(seed, &i, 11)], LOSS_MSE, 0, NULL};
        if (draw(seed, &i, 3))
            write_dense(text, seed, &i);
        else
            write_image(text, seed, &i);
        if (open_int8(&expected, &row) &&
            trial_call(&expected, &reference, &row, expected.program, ANSWER_CALLS))
            compare(rig, &row, &expected);
        trial_close(&expected);
    }
    rig_close(&reference);
    for (int k = 0; k < KERNELS_MOST && kernels[k][0]; k++)
        printf("    '%s' ran %s\n", rig->backend->name, kernels[k]);
    CHECK(strcmp(rig->backend->name, "cuda") != 0 || has_run("stack_cores_int8"));
    memset(kernels, 0, sizeof kernels);
}

/* Tiles of every size and way of reading, beside the CPU's kernels. */
ON_BACKENDS(large_products_are_the_cpus)
{
    static const struct row rows[] = {
        {"input 3x40x40\nconv 64 3x3 pad=1\nrelu\nconv 72 3x3 pad=1\nrelu\nconv 64 1x1\n"
         "max_pool 8\nflatten\ndense 10\n",
         11, LOSS_MSE, 0, NULL},
        {"input 3x40x40\nconv 80 3x3 pad=1 stride=1\nsigmoid\naverage_pool 8\nflatten\n"
         "dense 36\nrelu\ndense 16\n",
         11, LOSS_MSE, 0, NULL},
        {"input 264\ndense 1040\nrelu\ndense 516\ntanh\ndense 32\n", 61, LOSS_MSE, 0, NULL},
        {"input 1024\ndense 1040\nrelu\ndense 1024\nsigmoid\ndense 16\n", 512, LOSS_MSE, 0, NULL},
        {"input 68\ndense 516\nrelu\ndense 64\n", 61, LOSS_MSE, 0, NULL},
    };
    struct rig reference;
    CHECK(rig_open(&reference, "simd"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial found = {0}, expected = {0};
        if (check_wants(strstr(rows[i].network, "conv") ? "conv" : "dense") &&
            run_once(&found, rig, &rows[i]) && run_once(&expected, &reference, &rows[i]) &&
            !CHECK(!memcmp(found.y, expected.y, ROWS * (size_t)64 * sizeof *found.y)))
            printf("    %s\n", rows[i].network);
        trial_close(&found);
        trial_close(&expected);
    }
    rig_close(&reference);
}

CHECK_MAIN
