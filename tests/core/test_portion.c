/* test_portion.c: an inference in portions: the same outputs, less memory, and nothing cut up that
 * joins samples. */
#include "base/memory.h"
#include "core/pass/portion.h"
#include "nn/network.h"
#include "rig.h"

enum { BATCH = 6, ROWS = 18 };

/* A network and the program of its inference. */
struct cut {
    struct network *network;
    struct params params;
    struct program *program, *portions;
};

static bool cut_open(struct cut *cut, const char *text, int32_t batch, bool bare,
                     enum program_use use)
{
    const struct compile_options options = {.batch = batch, .use = use, .classes = 5};
    *cut = (struct cut){0};
    params_init(&cut->params, DTYPE_F32);
    cut->params.bare = bare;
    return CHECK_OK(network_parse("test", text, strlen(text), &cut->network)) &&
           CHECK_OK(network_compile(cut->network, &cut->params, &options, &cut->program)) &&
           (bare || CHECK_OK(params_fill(&cut->params, 3)));
}

static void cut_close(struct cut *cut)
{
    program_free(cut->program);
    program_free(cut->portions);
    params_free(&cut->params);
    network_free(cut->network);
}

/* What three steps of it give, of rows in another order than they lie. */
static bool run(struct rig *rig, const struct cut *cut, const struct program *program, float *x,
                float *y)
{
    uint32_t order[ROWS];
    struct ready ready = {0};
    for (uint32_t i = 0; i < ROWS; i++)
        order[i] = (7 * i + 3) % ROWS;
    bool ok = ready_open(&ready, rig, &cut->params, program) &&
              ready_bind(&ready, program, (const char *[]){"x", "y"}, (void *[]){x, y},
                         (int64_t[]){ROWS, ROWS}, 2, order, ROWS, 0) &&
              ready_run(&ready, PARTS_ALL, 0, ROWS / BATCH);
    ready_close(&ready);
    return ok;
}

static const char IMAGES[] = "input 2x8x8\n"
                             "a = conv 4 3 pad=1\n"
                             "batch_norm\n"
                             "relu\n"
                             "conv 4 3 pad=1\n"
                             "add < conv2, a\n"
                             "max_pool 2\n"
                             "dense 5\n"
                             "loss cross_entropy\n";

ON_BACKENDS(portions_give_the_same)
{
    struct cut cut;
    float *x = mem_array(ROWS * 2 * 8 * 8, sizeof *x);
    float *y[2] = {mem_array(ROWS * 80, sizeof **y), mem_array(ROWS * 80, sizeof **y)};
    fill_random(x, ROWS * 2 * 8 * 8, 5);
    if (strcmp(rig->backend->unit, "cpu")) {
        check_skip("only a CPU goes in portions");
    } else if (cut_open(&cut, IMAGES, BATCH, false, USE_INFERENCE) &&
               CHECK_OK(portion(cut.program, 2, &cut.portions))) {
        CHECK_EQUAL_INT(cut.portions->portions, 3);
        CHECK_EQUAL_INT(cut.portions->batch, 2);
        CHECK(3 * cut.portions->role_bytes[ROLE_ACTIVATION] <=
              cut.program->role_bytes[ROLE_ACTIVATION] + 3 * 64 * 20);
        for (int32_t o = 0; o < cut.program->op_count; o++)
            CHECK_EQUAL_INT((int64_t)op_flop(cut.portions, &cut.portions->ops[o]),
                            (int64_t)op_flop(cut.program, &cut.program->ops[o]));
        if (run(rig, &cut, cut.program, x, y[0]) && run(rig, &cut, cut.portions, x, y[1]))
            for (int i = 0; i < ROWS * 80; i++)
                CHECK(fabsf(y[0][i] - y[1][i]) <= 1e-6f);
        cut_close(&cut);
    }
    mem_free(x);
    mem_free(y[0]);
    mem_free(y[1]);
}

/* How many samples a portion of the network would have. */
static int32_t samples_of(const char *text, enum program_use use)
{
    struct cut cut;
    int32_t samples = cut_open(&cut, text, 240, true, use) ? portion_samples(cut.program) : -1;
    cut_close(&cut);
    return samples;
}

TEST(large_activations_go_in_portions)
{
    int32_t samples = samples_of("input 3x64x64\nconv 64 3 pad=1\nrelu\nconv 5 3\n"
                                 "global_average_pool\n",
                                 USE_INFERENCE);
    CHECK(samples < 240 && 240 % samples == 0);
}

TEST(what_joins_samples_or_is_small_stays_whole)
{
    static const char *const texts[] = {
        "input 4\ndense 3\n",
        "input 1000\ndense 4000\nrelu\ndense 5\n", /* more weights than activations */
        "input 64x64x64\np = parameter 64x64x64\nadd < input, p\nflatten\ndense 5\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_EQUAL_INT(samples_of(texts[i], USE_INFERENCE), 240);
    CHECK_EQUAL_INT(samples_of("input 3x64x64\nconv 64 3 pad=1\nrelu\nglobal_average_pool\ndense "
                               "5\nloss cross_entropy\n",
                               USE_TRAINING),
                    240);
}

CHECK_MAIN
