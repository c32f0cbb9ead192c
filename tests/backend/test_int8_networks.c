/* test_int8_networks.c: random networks in 8 bits, the same bits on every backend as on the
 * reference: as steps, as calls one by one and queued, by every kernel that takes them, with every
 * level of instructions. PRONY_RANDOM_NETWORKS=1000: so many. */
#include "base/rng.h"
#include "core/pass/quantise.h"
#include "levels.h"
#include "trial.h"

#include <stdarg.h>

enum { TEXT = 2048, FEW = 40, MANY = 200 };

/* A network, and how it becomes one in 8 bits. */
struct drawn {
    char text[TEXT];
    struct row row;
    bool plain;
    int32_t weight_bits;
};

/* Number i of so many below `below`, of network `seed`. */
static int32_t draw(uint64_t seed, uint64_t *i, uint32_t below)
{
    return (int32_t)(rng_below((struct rng_key){.seed = seed}, 0, (uint32_t)(*i)++, below));
}

static const char *function_of(int32_t number)
{
    static const char *const names[] = {"relu", "sigmoid", "tanh", "relu", "leaky_relu", "clip"};
    return names[number % 6];
}

/* Adds to a text of so many characters. */
__attribute__((format(printf, 3, 4))) static void add(char *text, int *length, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    *length += vsnprintf(text + *length, TEXT - (size_t)*length, format, arguments);
    va_end(arguments);
}

/* Dense layers, most of them for few samples. */
static void write_dense(char *text, uint64_t seed, uint64_t *i)
{
    static const int32_t widths[] = {4, 8, 12, 16, 33, 64, 130, 200, 260};
    const int32_t layers = 1 + draw(seed, i, 4);
    int length = 0;
    add(text, &length, "input %d\n", 1 + draw(seed, i, 90));
    for (int32_t l = 0; l < layers; l++)
        add(text, &length, "dense %d\n%s\n", widths[draw(seed, i, 9)],
            function_of(draw(seed, i, 6)));
    add(text, &length, "dense %d\n%s", 1 + draw(seed, i, 40), draw(seed, i, 2) ? "sigmoid\n" : "");
}

/* What may stand between the first convolution of an image and the last pooling. */
static void write_block(char *text, int *length, int32_t block, int32_t wide, uint64_t seed,
                        uint64_t *i)
{
    switch (draw(seed, i, 6)) {
    case 0: /* in groups, or each channel by itself */
        add(text, length, "conv %d 3x3 pad=1 groups=%d\nrelu\n", wide, draw(seed, i, 2) ? 4 : wide);
        break;
    case 1: /* twice as many from each channel, with gaps, and back */
        add(text, length, "conv %d 3x3 pad=2 dilation=2 groups=%d\n%s\nconv %d 1x1\nrelu\n",
            2 * wide, wide, function_of(draw(seed, i, 6)), wide);
        break;
    case 2:
        add(text, length, "a%d = conv %d 3x3 pad=1\nrelu\nb%d = conv %d 1x1\nadd < a%d, b%d\n%s\n",
            block, wide, block, wide, block, block, function_of(draw(seed, i, 6)));
        break;
    case 3: /* two scales meet, one of them without a function */
        add(text, length,
            "s%d = conv %d 1x1\nc%d = sigmoid\nd%d = conv %d 3x3 pad=1 < s%d\nconcat < c%d, d%d\n"
            "conv %d 1x1\n",
            block, wide, block, block, 3 + wide, block, block, block, wide);
        break;
    case 4: add(text, length, "max_pool 3 stride=1 pad=1\n"); break;
    default:
        add(text, length, "average_pool 3 stride=1 pad=1 count_pad=%d\n%s\n", draw(seed, i, 2),
            function_of(draw(seed, i, 6)));
    }
}

/* Convolutions, sums, concatenations, pooling, and a dense layer behind them. */
static void write_image(char *text, uint64_t seed, uint64_t *i)
{
    static const char *const ends[] = {"average_pool 2\nflatten\n", "global_average_pool\n",
                                       "max_pool 2\nflatten\n", "flatten\n"};
    static const int32_t channels[] = {4, 8, 16, 20, 32, 48};
    const int32_t wide = channels[draw(seed, i, 6)], side = 7 + draw(seed, i, 9);
    const int32_t blocks = draw(seed, i, 4);
    int length = 0;
    add(text, &length, "input %dx%dx%d\nconv %d %dx3 pad=1 stride=%d\n%s\n", 1 + draw(seed, i, 5),
        side, side + 2, wide, 1 + 2 * draw(seed, i, 2), 1 + draw(seed, i, 2),
        function_of(draw(seed, i, 6)));
    for (int32_t block = 0; block < blocks; block++)
        write_block(text, &length, block, wide, seed, i);
    add(text, &length, "%sdense %d\n", ends[draw(seed, i, 4)], 1 + draw(seed, i, 30));
}

static void draw_network(struct drawn *drawn, uint64_t seed)
{
    static const int32_t batches[] = {1, 1, 2, 3, 7, 8, 9, 16, 17, 33, 61};
    static const int32_t bits[] = {8, 8, 4, 2};
    uint64_t i = 0;
    drawn->row = (struct row){drawn->text, batches[draw(seed, &i, 11)], LOSS_MSE, 0, NULL};
    drawn->plain = draw(seed, &i, 3) == 0;
    drawn->weight_bits = bits[draw(seed, &i, 4)];
    if (draw(seed, &i, 3))
        write_dense(drawn->text, seed, &i);
    else
        write_image(drawn->text, seed, &i);
}

/* The network in 8 bits takes the place of the one in fp32. Activations lie between ± 3. */
static bool become_int8(struct trial *trial, bool plain, int32_t weight_bits)
{
    struct quantisation how = {
        .plain = plain, .weight_bits = weight_bits, .count = trial->program->tensor_count};
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

static bool open_int8(struct trial *trial, const struct drawn *drawn)
{
    return trial_open(trial, &drawn->row, USE_INFERENCE) &&
           become_int8(trial, drawn->plain, drawn->weight_bits);
}

/* One step; false: it did not run. */
static bool run_once(struct trial *trial, struct rig *rig, const struct row *row)
{
    struct program *fused = NULL;
    struct ready ready = {0};
    bool ok = trial_open(trial, row, USE_INFERENCE) && become_int8(trial, false, 8) &&
              CHECK_OK(fuse(trial->program, rig->backend, rig->device, &fused)) &&
              ready_open(&ready, rig, &trial->params, fused) && trial_bind(trial, &ready, fused) &&
              ready_run(&ready, PARTS_ALL, 0, 1);
    ready_close(&ready);
    program_free(fused);
    return ok;
}

/* Steps, calls, queued calls: the same numbers as those of the reference. */
static void compare(struct rig *rig, const struct drawn *drawn, const struct trial *expected)
{
    const int64_t count = ROWS * (int64_t)64;
    for (enum answering way = ANSWER_STEPS; way <= ANSWER_QUEUED; way++) {
        struct trial found = {0};
        struct program *fused = NULL;
        if (way == ANSWER_RESIDENT)
            continue;
        if (open_int8(&found, drawn) &&
            CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) &&
            trial_call(&found, rig, &drawn->row, fused, way)) {
            check_kernel(&found, found.kernel);
            if (!CHECK(!memcmp(found.y, expected->y, (size_t)count * sizeof *found.y)))
                printf("    batch %d, way %d, %s, weights of %d bits, by %s:\n%s\n",
                       drawn->row.batch, (int)way, drawn->plain ? "plain" : "not plain",
                       drawn->weight_bits, found.kernel, drawn->text);
        }
        program_free(fused);
        trial_close(&found);
    }
}

static uint64_t networks_asked(const struct rig *rig)
{
    const char *asked = getenv("PRONY_RANDOM_NETWORKS");
    if (asked)
        return strtoull(asked, NULL, 10);
    return strcmp(rig->backend->unit, "gpu") == 0 ? MANY : FEW;
}

static void tell_kernels(const struct rig *rig)
{
    for (int k = 0; k < KERNELS_MOST && kernels[k][0]; k++)
        printf("    '%s' ran %s\n", rig->backend->name, kernels[k]);
    CHECK(strcmp(rig->backend->name, "cuda") != 0 || has_run("stack_cores_int8"));
    memset(kernels, 0, sizeof kernels);
}

/* simd with every level of instructions, any other backend as it is opened. */
ON_BACKENDS(random_networks_are_the_references)
{
    struct rig levels[LEVELS_MOST], reference;
    const bool simd = rig->backend == &backend_simd;
    const int count = simd ? levels_open(levels, (struct device_options){.threads = 2}) : 0;
    CHECK(rig_open(&reference, "ref"));
    most_calls = 20;
    for (uint64_t seed = 1; seed <= networks_asked(rig); seed++) {
        struct trial expected = {0};
        struct drawn drawn;
        draw_network(&drawn, seed);
        if (open_int8(&expected, &drawn) &&
            trial_call(&expected, &reference, &drawn.row, expected.program, ANSWER_CALLS)) {
            for (int level = 0; level < count; level++)
                compare(&levels[level], &drawn, &expected);
            if (!simd)
                compare(rig, &drawn, &expected);
        }
        trial_close(&expected);
    }
    rig_close(&reference);
    levels_close(levels, count);
    tell_kernels(rig);
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
