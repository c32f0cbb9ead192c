/* test_quantise_given.c: networks that round to 8 bits by themselves, as ONNX files of 8 bits do,
 * in integers on their own scales: on every backend the numbers that fp32 gives, or one step
 * beside. */
#include "core/pass/quantise.h"
#include "trial.h"

/* One step of the last layer, and layers of each kind before it. */
#define LAST "last = quantise 0.0313 low=-128 high=127\n"
static const struct {
    const char *text;
    int32_t integers, kept; /* layers of products */
    int32_t batch;
    const char *why; /* of the one that is kept */
} rows[] = {
    {"input 40\nquantise 0.0531 low=-100 high=155\ndense 33\n" LAST, 1, 0, 3, NULL},
    {"input 40\nquantise 0.0531\ndense 33\nrelu\nquantise 0.0219 low=0 high=255\ndense 20\n" LAST,
     2, 0, 17, NULL},
    /* sums, which become reals for a function that has no scale */
    {"input 16\nquantise 0.0531\ndense 9\ntanh\nquantise 0.0119\ndense 20\n" LAST, 2, 0, 3, NULL},
    {"input 16\nquantise 0.0531\ndense 9\nquantise 0.0531\ntanh\nquantise 0.0119\ndense 20\n" LAST,
     2, 0, 3, NULL},
    {"input 3x7x6\nquantise 0.0531 low=-3 high=252\nconv 8 3x3 pad=1\nclip\n"
     "quantise 0.0235 low=0 high=255\nconv 8 3x3 groups=8 pad=1 stride=2\nrelu\n"
     "quantise 0.0219 low=0 high=255\nmax_pool 2\nflatten\ndense 20\n" LAST,
     3, 0, 3, NULL},
    /* two readers of a value, each with its own pair; a sum with a relu behind it */
    {"input 3x7x6\nq = quantise 0.0531\nconv 6 3x3 pad=1\na = quantise 0.0313\nconv 6 1x1 < q\n"
     "b = quantise 0.0427\nadd < a, b\nrelu\nquantise 0.0427 low=0 high=255\nflatten\ndense 20\n" LAST,
     3, 0, 3, NULL},
    {"input 3x7x6\nq = quantise 0.0531\nc = conv 6 3x3 pad=1\na = quantise 0.0313 < c\n"
     "b = quantise 0.0313 < c\nconv 4 1x1 < b\nd = quantise 0.0219\nconcat < a, d\nquantise 0.0427\n"
     "flatten\ndense 20\n" LAST,
     3, 0, 3, NULL},
    /* hard-swish, as files of ONNX become: a function of one number is a table */
    {"input 16\nquantise 0.0531\ndense 9\nq = quantise 0.0427\ns = parameter 1 learnt=0\n"
     "m = multiply < q, s\nh = parameter 1 learnt=0\nadd < m, h\nc = clip high=1\n"
     "multiply < q, c\nquantise 0.0119\ndense 20\n" LAST,
     2, 0, 3, NULL},
    /* a mean on the same scale, and one that is computed in reals */
    {"input 3x9x6\nquantise 0.0531\naverage_pool 3\nquantise 0.0531\nflatten\ndense 20\n" LAST, 1,
     0, 3, NULL},
    {"input 3x9x6\nquantise 0.0531\naverage_pool 2\nquantise 0.0119\nflatten\ndense 20\n" LAST, 1,
     0, 3, NULL},
    {"input 3x16\nquantise 0.0531\ndense 20\n", 1, 0, 3, NULL}, /* what it gives is a view */
    {"input 40\ndense 33\nquantise 0.0313\ndense 20\n" LAST, 1, 1, 3,
     "its input is not rounded to 8 bits"},
    {"input 40\nquantise 0.0531\ndense 33\nquantise 1e-6\ndense 20\n" LAST, 1, 1, 3,
     "its results are rounded more finely than its sums are"},
    {"input 12x8\nquantise 0.0531\ngru 4\nquantise 0.0313\ndense 20\n" LAST, 1, 1, 3,
     "recurrent layers have no form in integers"},
};
enum { CASES = sizeof rows / sizeof *rows };

/* Weights become steps, of a size per channel; `off`: the first of them is between two. */
static void round_weights(struct params *params, bool off)
{
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        const bool conv = entry->shape.rank == 4;
        const int64_t channels = conv ? entry->shape.dim[0] : entry->shape.dim[1];
        const int64_t terms = shape_count(&entry->shape) / (channels ? channels : 1);
        float *w = params_data(params, e);
        if (entry->role != ROLE_PARAM || !strstr(entry->name, ".weight"))
            continue;
        for (int64_t o = 0; o < channels; o++) {
            const int64_t stride = conv ? 1 : channels;
            float *first = conv ? w + o * terms : w + o, most = 0;
            for (int64_t i = 0; i < terms; i++)
                most = fmaxf(most, fabsf(first[i * stride]));
            for (int64_t i = 0; i < terms; i++)
                first[i * stride] = rintf(first[i * stride] / most * 127) * (most / 127);
        }
        if (off)
            w[0] += w[0] / 77;
    }
}

static int32_t count_products(const struct program *program)
{
    int32_t count = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == OP_dense_int8 || program->ops[o].kind == OP_conv_int8;
    return count;
}

/* Its program in integers, made of the one in fp32; `how` lies in the arena. */
static bool become_integers(struct trial *trial, struct arena *arena, struct quantisation *how)
{
    struct params params;
    struct program *program = NULL;
    params_init(&params, DTYPE_F32);
    const bool ok =
        CHECK_OK(quantise_given(trial->program, &trial->params, arena, how, &params, &program));
    program_free(trial->program);
    params_free(&trial->params);
    trial->program = program;
    trial->params = params;
    return ok;
}

static void check_steps(const struct trial *found, const struct trial *expected, const char *text)
{
    const int64_t count = ROWS * (int64_t)20;
    int64_t moved = 0;
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)found->y[i] - (double)expected->y[i]);
        moved += off > 1e-5;
        most = fmax(most, off);
    }
    if (!CHECK(most < 0.0314 && moved <= count / 50))
        printf("    %lld of %lld numbers are off, by up to %g:\n%s", (long long)moved,
               (long long)count, most, text);
}

ON_BACKENDS(integers_are_what_the_file_says)
{
    struct rig reference;
    CHECK(rig_open(&reference, "ref"));
    most_calls = 30;
    for (int i = 0; i < CASES; i++) {
        const struct row row = {rows[i].text, rows[i].batch, LOSS_MSE, 0, NULL};
        struct trial found, expected;
        struct arena arena = {0};
        struct quantisation how;
        struct program *fused = NULL;
        if (!trial_open(&found, &row, USE_INFERENCE) || !trial_open(&expected, &row, USE_INFERENCE))
            continue;
        round_weights(&found.params, false);
        round_weights(&expected.params, false);
        const bool made = become_integers(&found, &arena, &how) &&
                          CHECK_EQUAL_INT(count_products(found.program), rows[i].integers) &&
                          CHECK_EQUAL_INT(how.keep_count, rows[i].kept);
        for (int32_t k = 0; !made && k < how.keep_count; k++)
            printf("    %s: %s\n%s", how.keep[k], how.why[k], rows[i].text);
        if (made && CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) &&
            trial_call(&expected, &reference, &row, expected.program, ANSWER_CALLS) &&
            trial_call(&found, rig, &row, fused, ANSWER_CALLS)) {
            if (rows[i].why)
                CHECK_EQUAL_TEXT(how.why[0], rows[i].why);
            check_steps(&found, &expected, rows[i].text);
        }
        program_free(fused);
        trial_close(&found);
        trial_close(&expected);
        arena_free(&arena);
    }
    rig_close(&reference);
}

/* A weight between two steps, and one at -128: no integers give them. */
TEST(weights_that_are_no_steps_stay_real)
{
    const struct row row = {rows[0].text, 1, LOSS_MSE, 0, NULL};
    for (int way = 0; way < 2; way++) {
        struct trial trial;
        struct arena arena = {0};
        struct quantisation how = {0};
        if (trial_open(&trial, &row, USE_INFERENCE)) {
            round_weights(&trial.params, way == 0);
            float *w = params_data(&trial.params, params_find(&trial.params, "dense1.weight"));
            for (int64_t i = 0; way == 1 && i < 40; i++) /* of the first of 33 channels */
                w[i * 33] = (float)(i % 3 ? i : -128) * 0.01f;
            if (become_integers(&trial, &arena, &how) &&
                CHECK_EQUAL_INT(count_products(trial.program), 0) &&
                CHECK_EQUAL_INT(how.keep_count, 1))
                CHECK(strstr(how.why[0], "-127 to 127"));
        }
        trial_close(&trial);
        arena_free(&arena);
    }
}

/* The same structure without values, and at another batch. */
TEST(another_batch_has_the_same_parameters)
{
    for (int i = 0; i < CASES; i++) {
        const struct row row = {rows[i].text, 1, LOSS_MSE, 0, NULL},
                         wide = {rows[i].text, 5, LOSS_MSE, 0, NULL};
        struct trial trial, other;
        struct arena arena = {0};
        struct quantisation how = {0};
        struct program *program = NULL;
        if (trial_open(&trial, &row, USE_INFERENCE) &&
            trial_compile(&other, &wide, USE_INFERENCE, true)) {
            round_weights(&trial.params, false);
            if (become_integers(&trial, &arena, &how)) {
                const int32_t count = trial.params.count;
                if (!CHECK_OK(quantise(other.program, &how, NULL, &trial.params, NULL, &program)) ||
                    !CHECK_EQUAL_INT(trial.params.count, count) ||
                    !CHECK_EQUAL_INT(count_products(program), rows[i].integers))
                    printf("    %s", rows[i].text);
            }
            program_free(program);
            trial_close(&other);
        }
        trial_close(&trial);
        arena_free(&arena);
    }
}

CHECK_MAIN
