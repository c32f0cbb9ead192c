/* test_init.c: starting values: their moments, orthogonality, the same bits again and again, and
 * how a network's text chooses them. */
#include "check.h"
#include "nn/layer.h"
#include "nn/reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name[] = "dense1.weight";

static float *draw(struct init init, uint64_t seed, struct shape shape)
{
    float *data = calloc((size_t)shape_count(&shape), sizeof *data);
    CHECK_OK(init_fill(&init, seed, name, DTYPE_F32, &shape, data));
    return data;
}

TEST(moments)
{
    enum { COUNT = 100003 };
    static const struct {
        struct init init;
        double mean, variance, most;
    } kinds[] = {
        {{INIT_ZERO, 1}, 0, 0, 0},
        {{INIT_ONE, 1}, 1, 0, 1},
        {{INIT_UNIFORM, 3}, 0, 3, 3},
        {{INIT_NORMAL, 2}, 0, 4, 12},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        float *data = draw(kinds[k].init, 7, SHAPE(COUNT));
        double sum = 0, squares = 0, most = 0;
        for (int i = 0; i < COUNT; i++) {
            sum += (double)data[i];
            most = fmax(most, fabs((double)data[i]));
        }
        for (int i = 0; i < COUNT; i++)
            squares += pow((double)data[i] - sum / COUNT, 2);
        CHECK_NEAR(sum / COUNT, kinds[k].mean, 0.03);
        CHECK_NEAR(squares / COUNT, kinds[k].variance, 0.05);
        CHECK(most <= kinds[k].most);
        free(data);
    }
}

/* The rows, or the columns where these are fewer, are orthonormal. */
static void check_orthogonal(int64_t rows, int64_t columns)
{
    float *w = draw((struct init){INIT_ORTHOGONAL, 1}, 3, SHAPE(rows, columns));
    bool by_row = rows <= columns;
    int64_t vectors = by_row ? rows : columns, length = by_row ? columns : rows;
    double worst = 0;
    for (int64_t a = 0; a < vectors; a++)
        for (int64_t b = 0; b < vectors; b++) {
            double sum = 0;
            for (int64_t i = 0; i < length; i++)
                sum += (double)(by_row ? w[a * columns + i] : w[i * columns + a]) *
                       (double)(by_row ? w[b * columns + i] : w[i * columns + b]);
            worst = fmax(worst, fabs(sum - (a == b)));
        }
    CHECK_NEAR(worst, 0, 1e-5);
    free(w);
}

TEST(orthogonal)
{
    check_orthogonal(1, 1);
    check_orthogonal(64, 64);
    check_orthogonal(33, 128);
    check_orthogonal(101, 7);
}

/* A value is the same in every call, in either type, and however many follow; another seed or
 * another name gives another. */
TEST(same_bits)
{
    static const enum init_kind kinds[] = {INIT_UNIFORM, INIT_NORMAL, INIT_ORTHOGONAL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct init init = {kinds[k], 0.5f};
        struct shape shape = SHAPE(7, 13);
        float *first = draw(init, 5, shape), *again = draw(init, 5, shape);
        float *other = draw(init, 6, shape), *longer = draw(init, 5, SHAPE(7, 26));
        double wide[7 * 13];
        CHECK_OK(init_fill(&init, 5, name, DTYPE_F64, &shape, wide));
        CHECK(!memcmp(first, again, 7 * 13 * sizeof *first));
        CHECK(memcmp(first, other, 7 * 13 * sizeof *first) != 0);
        CHECK(kinds[k] == INIT_ORTHOGONAL || !memcmp(first, longer, 7 * 13 * sizeof *first));
        bool same = true;
        for (int i = 0; i < 7 * 13; i++)
            same &= wide[i] == (double)first[i];
        CHECK(same);
        free(first);
        free(again);
        free(other);
        free(longer);
    }
}

/* The kind and scale of an entry of a network. */
static struct init init_of(const char *text, const char *entry)
{
    struct network *network = NULL;
    struct program *program = NULL;
    struct params params;
    struct init init = {.scale = NAN};
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("test", text, strlen(text), &network)) &&
        CHECK_OK(
            network_compile(network, &params, &(struct compile_options){.batch = 1}, &program)))
        init = params.entries[params_find(&params, entry)].init;
    program_free(program);
    params_free(&params);
    network_free(network);
    return init;
}

static void check_init(const char *text, const char *entry, enum init_kind kind, double scale)
{
    struct init init = init_of(text, entry);
    bool ok = CHECK_EQUAL_INT(init.kind, kind);
    if (kind != INIT_ZERO && kind != INIT_ONE)
        ok &= CHECK_NEAR((double)init.scale, scale, 1e-6);
    if (!ok)
        printf("    %s in\n%s", entry, text);
}

TEST(text_chooses)
{
    check_init("input 8\ndense 4\n", name, INIT_UNIFORM, sqrt(6.0 / 12));
    check_init("input 8\ndense 4 init=zeros\n", name, INIT_ZERO, 0);
    check_init("input 8\ndense 4 init=uniform\n", name, INIT_UNIFORM, sqrt(1.0 / 8));
    check_init("input 8\ndense 4 init=normal\n", name, INIT_NORMAL, sqrt(1.0 / 8));
    check_init("input 8\ndense 4 init=xavier\n", name, INIT_UNIFORM, sqrt(6.0 / 12));
    check_init("input 8\ndense 4 init=he\n", name, INIT_NORMAL, sqrt(2.0 / 8));
    check_init("input 8\ndense 4 init=orthogonal\n", name, INIT_ORTHOGONAL, 1);
    check_init("input 8\ninit he\ndense 4\n", name, INIT_NORMAL, sqrt(2.0 / 8));
    check_init("input 8\ndense 4\ninit he\n", name, INIT_NORMAL, sqrt(2.0 / 8));
    check_init("init he\ninput 8\ndense 4 init=xavier\n", name, INIT_UNIFORM, sqrt(6.0 / 12));
    check_init("init he\ninput 8\ndense 4\n", "dense1.bias", INIT_ZERO, 0);
    check_init("input 5x8\ngru 4\n", "gru1.state_weight", INIT_UNIFORM, 0.5);
    check_init("input 5x8\ngru 4 init=orthogonal\n", "gru1.state_weight", INIT_ORTHOGONAL, 1);
    check_init("input 5x8\nlstm 4 init=he\n", "lstm1.input_weight", INIT_NORMAL, sqrt(2.0 / 8));
    check_init("input 5x8\nrnn 4 init=he\n", "rnn1.input_bias", INIT_UNIFORM, 0.5);
    struct network *network = NULL;
    CHECK(network_parse("test", "init best\n", 10, &network) == STATUS_INPUT);
    CHECK_EQUAL_TEXT(status_message(), "test:1:6: there is no init 'best'; there are: auto, zeros, "
                                       "uniform, normal, xavier, he, orthogonal");
}

/* Whatever takes `init` has the same words for it. */
TEST(every_layer_has_the_same_words)
{
    int32_t count;
    const struct layer_kind *kinds = layer_kinds(&count);
    for (int32_t k = 0; k < count; k++)
        if (arguments_find(kinds[k].arguments, "init") >= 0)
            CHECK(strstr(kinds[k].arguments,
                         "init=auto|zeros|uniform|normal|xavier|he|orthogonal") != NULL);
}

CHECK_MAIN
