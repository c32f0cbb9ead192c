/* test_layers.c: what single layers give, against numbers worked out by hand or by another way of
 * indexing; and what is said of layers that do not fit. */
#include "compiled.h"
#include "core/pass/fuse.h"

#include <stdio.h>

enum { MOST = 256 };

/* Runs a network on one batch and gives y; `weights`, unless NULL, become every parameter's first
 * elements. The number of elements of y, or 0. */
static int64_t answer(struct rig *rig, const char *text, int32_t batch, const void *x,
                      const float *weights, float *y)
{
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    struct ready ready = {0};
    int64_t count = 0;
    params_init(&params, DTYPE_F32);
    struct compile_options options = {.batch = batch};
    if (CHECK_OK(network_parse("layers", text, strlen(text), &network)) &&
        CHECK_OK(network_compile(network, &params, &options, &program))) {
        params_fill(&params, 1);
        for (int32_t e = 0; weights && e < params.count; e++)
            memcpy(params_data(&params, e), weights, (size_t)params.entries[e].bytes);
        if (ready_open(&ready, rig, &params, program) &&
            ready_bind(&ready, program, (const char *[]){"x", "y"},
                       (void *[]){(void *)(uintptr_t)x, y}, (int64_t[]){batch, batch}, 2, NULL, 0,
                       0) &&
            ready_run(&ready, PARTS_ALL, 0, 1))
            count = shape_count(&program->tensors[program_find(program, ROLE_OUTPUT, "y")].shape);
    }
    ready_close(&ready);
    program_free(program);
    params_free(&params);
    network_free(network);
    return count;
}

static void check_values(struct rig *rig, const char *text, const float *x, const double *expected,
                         int count)
{
    float y[MOST];
    int64_t found = answer(rig, text, 1, x, NULL, y);
    if (found && CHECK_EQUAL_INT(found, count))
        for (int i = 0; i < count; i++)
            if (!CHECK_NEAR((double)y[i], expected[i], 1e-6 * fmax(1, fabs(expected[i]))))
                printf("    element %d of the network\n%s", i, text);
}

#define VALUES(...)                                                                                \
    (const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

ON_BACKENDS(activations_have_their_published_values)
{
    const float x[] = {1, -2, 0, 100, -100};
    check_values(rig, "input 5\ngelu\n", x,
                 VALUES(0.8413447460685429, -0.0455002638963584, 0, 100, 0));
    check_values(rig, "input 5\nsoftplus\n", x,
                 VALUES(1.3132616875182228, 0.1269280110429725, 0.6931471805599453, 100, 0));
    check_values(rig, "input 5\nelu 0.5\n", x, VALUES(1, -0.4323323583816936, 0, 100, -0.5));
    check_values(rig, "input 5\nleaky_relu\n", x, VALUES(1, -0.02, 0, 100, -1));
    check_values(rig, "input 5\nleaky_relu slope=0.25\n", x, VALUES(1, -0.5, 0, 100, -25));
    check_values(rig, "input 5\nclip\n", x, VALUES(1, 0, 0, 6, 0));
    check_values(rig, "input 5\nclip -3.4e38 0.5\n", x, VALUES(0.5, -2, 0, 0.5, -100));
    check_values(rig, "input 5\nclip 2 1\n", x, VALUES(1, 1, 1, 1, 1));
}

/* As PyTorch's relu6 has it: nothing at the bounds. The weights of `position` take the gradient. */
ON_BACKENDS(bounds_let_nothing_back_at_and_beyond_them)
{
    enum { COUNT = 8 };
    float x[COUNT] = {-1, 0, 0x1p-149f, 3, 6, 0x1.7ffffep+2f, 7, HUGE_VALF}, target[COUNT];
    static const bool moves[COUNT] = {false, false, true, true, false, true, false, false};
    struct compiled model;
    struct ready ready = {0};
    for (int i = 0; i < COUNT; i++)
        target[i] = 10;
    if (!compiled_open(&model, "input 8\nposition\nclip\nloss mse\noptimiser sgd rate=1\n",
                       (struct compile_options){.batch = 1, .use = USE_TRAINING}))
        return;
    float *weight = params_data(&model.params, params_find(&model.params, "position1.weight"));
    memset(weight, 0, sizeof x);
    if (ready_open(&ready, rig, &model.params, model.program) &&
        bind_xt(&ready, model.program, x, target, 1, NULL, 0, 0) &&
        ready_run(&ready, PARTS_ALL, 0, 1) &&
        CHECK_OK(rig->backend->download(ready.instance, &model.params)))
        for (int i = 0; i < COUNT; i++)
            CHECK_EQUAL_INT(weight[i] != 0, moves[i]);
    ready_close(&ready);
    compiled_close(&model);
}

ON_BACKENDS(products_and_softmax_by_hand)
{
    const float x[] = {1, 2, 3, 4}, scores[] = {0, 9, 1.0986122887f, 0};
    check_values(rig, "input 2x2\nmatmul < input, input\n", x, VALUES(7, 10, 15, 22));
    check_values(rig, "input 2x2\nmatmul second scale=2 < input, input\n", x,
                 VALUES(10, 22, 22, 50));
    check_values(rig, "input 2x2\nmatmul transpose=first < input, input\n", x,
                 VALUES(10, 14, 14, 20));
    check_values(rig, "input 2x2\nmultiply < input, input\n", x, VALUES(1, 4, 9, 16));
    check_values(rig, "input 2x2\ntranspose 2,1\ndivide < transpose1, input\n", x,
                 VALUES(1, 1.5, 2.0 / 3, 1));
    check_values(rig, "input 2x2\nsoftmax causal=1\n", scores, VALUES(1, 0, 0.75, 0.25));
    check_values(rig, "input 4\nlayer_norm\n", x,
                 VALUES(-1.3416354199, -0.4472118066, 0.4472118066, 1.3416354199));
}

ON_BACKENDS(reductions_by_hand)
{
    const float x[] = {1, 5, -2, 4, 3, 0.5f};
    check_values(rig, "input 2x3\nreduce\n", x, VALUES(11.5));
    check_values(rig, "input 2x3\nreduce sum axis=1\n", x, VALUES(5, 8, -1.5));
    check_values(rig, "input 2x3\nreduce mean axis=-1\n", x, VALUES(4.0 / 3, 2.5));
    check_values(rig, "input 2x3\nreduce max axis=2\n", x, VALUES(5, 4));
    check_values(rig, "input 2x3\nreduce max axis=1\n", x, VALUES(4, 5, 0.5));
}

/* Every order of three axes, by indices. */
ON_BACKENDS(transposed_elements_are_where_they_belong)
{
    enum { BATCH = 2 };
    static const int sizes[] = {2, 3, 4}, orders[][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                                         {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    float x[BATCH][2][3][4], y[BATCH * 24];
    fill_random(&x[0][0][0][0], BATCH * 24, 1);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        const int *order = orders[o];
        char text[100];
        snprintf(text, sizeof text, "input 2x3x4\ntranspose %d,%d,%d\n", order[0], order[1],
                 order[2]);
        if (answer(rig, text, BATCH, x, NULL, y) != BATCH * 24)
            return;
        int wrong = 0, place = 0, at[3]; /* at: along the axes of x */
        for (int n = 0; n < BATCH; n++)
            for (int i = 0; i < sizes[order[0] - 1]; i++)
                for (int j = 0; j < sizes[order[1] - 1]; j++)
                    for (int k = 0; k < sizes[order[2] - 1]; k++) {
                        at[order[0] - 1] = i;
                        at[order[1] - 1] = j;
                        at[order[2] - 1] = k;
                        wrong += y[place++] != x[n][at[0]][at[1]][at[2]];
                    }
        CHECK_EQUAL_INT(wrong, 0);
    }
}

ON_BACKENDS(slices_put_together_again)
{
    const float x[] = {0, 1, 2, 3, 4, 5};
    check_values(rig, "input 2x3\nslice 1 from=1\n", x, VALUES(3, 4, 5));
    check_values(rig, "input 2x3\nslice 2 from=1 axis=2\n", x, VALUES(1, 2, 4, 5));
    check_values(rig,
                 "input 2x3\na = slice 1 axis=-1 < input\nb = slice 2 from=1 axis=-1 < input\n"
                 "concat axis=2 < b, a, b\n",
                 x, VALUES(1, 2, 0, 1, 2, 4, 5, 3, 4, 5));
    check_values(rig, "input 2x3\na = slice 1 < input\nconcat < input, a\nreshape 9\n", x,
                 VALUES(0, 1, 2, 3, 4, 5, 0, 1, 2));
}

ON_BACKENDS(what_has_the_size_1_is_repeated)
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    check_values(rig, "input 2x3\nreduce sum axis=2\nreshape 2x1\nadd < input, reshape1\n", x,
                 VALUES(7, 8, 9, 19, 20, 21));
    check_values(rig, "input 2x3\nslice 1\nmultiply < slice1, input\n", x,
                 VALUES(1, 4, 9, 4, 10, 18));
    check_values(rig,
                 "input 2x3\na = slice 1 < input\nb = slice 1 axis=2 < input\nmultiply < b, a\n", x,
                 VALUES(1, 2, 3, 4, 8, 12));
    check_values(rig,
                 "input 6\na = reshape 3x1x2 < input\nb = reshape 1x6x1 < input\nadd < a, b\n"
                 "slice 1\nslice 1 from=5 axis=2\n",
                 x, VALUES(7, 8));
}

ON_BACKENDS(embedding_takes_rows_and_marks_what_is_none)
{
    const float table[] = {10, 11, 20, 21, 30, 31};
    const int32_t tokens[2][3] = {{2, 0, 2}, {1, 3, -1}};
    static const float expected[] = {30, 31, 10, 11, 30, 31, 20, 21};
    float y[12];
    if (answer(rig, "input 3 tokens=3\nembedding 2\n", 2, tokens, table, y)) {
        CHECK(!memcmp(y, expected, sizeof expected));
        for (int i = 8; i < 12; i++)
            CHECK(isnan(y[i]));
    }
}

/* gelu becomes part of its dense layer; what has a number of its own stays apart, and keeps it. */
ON_BACKENDS(fusion_keeps_activations_as_they_are)
{
    static const char text[] = "input 3\ndense 5\ngelu\ndense 5\nleaky_relu 0.3\ndense 5\nelu 2\n";
    const float x[] = {0.3f, -0.7f, 0.1f, -0.2f, 0.9f, 0.5f};
    struct network *network = NULL;
    struct params params;
    struct program *programs[2] = {NULL};
    float y[2][10] = {{0}};
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_parse("layers", text, strlen(text), &network)) &&
        CHECK_OK(network_compile(network, &params, &(struct compile_options){.batch = 2},
                                 &programs[0])) &&
        CHECK_OK(fuse(programs[0], rig->backend, rig->device, &programs[1]))) {
        params_fill(&params, 1);
        for (int i = 0; i < 2; i++) {
            struct ready ready;
            if (ready_open(&ready, rig, &params, programs[i]) &&
                ready_bind(&ready, programs[i], (const char *[]){"x", "y"},
                           (void *[]){(void *)(uintptr_t)x, y[i]}, (int64_t[]){2, 2}, 2, NULL, 0,
                           0))
                ready_run(&ready, PARTS_ALL, 0, 1);
            ready_close(&ready);
        }
        CHECK_EQUAL_INT(programs[0]->op_count - programs[1]->op_count, 1);
        CHECK(!memcmp(y[0], y[1], sizeof y[0]));
    }
    program_free(programs[0]);
    program_free(programs[1]);
    params_free(&params);
    network_free(network);
}

static void check_refused(const char *text, const char *message)
{
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    params_init(&params, DTYPE_F32);
    enum status status = network_parse("n", text, strlen(text), &network);
    if (status == STATUS_OK)
        status = network_compile(network, &params, &(struct compile_options){.batch = 1}, &program);
    CHECK_STATUS(STATUS_INPUT, status);
    CHECK_MESSAGE(message);
    program_free(program);
    params_free(&params);
    network_free(network);
}

TEST(layers_that_do_not_fit_are_refused)
{
    check_refused("input 4 tokens=0\ndense 2\n", "n:1:16: tokens is '0', expected a whole number");
    check_refused("input 4 tokens 9\ndense 2\n", "n:1:16: found '9', expected tokens=NUMBER");
    check_refused("input 4 tokens=9\ndense 2\n", "'x' is i32, expected f32");
    check_refused("input 4\nembedding 2\n", "found an input of real numbers, expected tokens");
    check_refused("input 4x2\nreshape 8\nadd < input, reshape1\n",
                  "add1: its inputs are 1×4×2 and 1×8, expected equal sizes or 1");
    check_refused("input 4x2\nslice 3\nmultiply < input, slice1\n",
                  "multiply1: its inputs are 1×4×2 and 1×3×2, expected");
    check_refused("input 4x2\nreshape 3x3\n",
                  "found 1×4×2, which has not as many elements as 1×3×3");
    check_refused("input 4x2\nreshape 3x\n",
                  "n:2:9: sizes is '3x', expected one to 6 whole numbers");
    check_refused("input 4x2\nreshape 2x1x1x1x2x2\n", "found 6 sizes, expected at most 5");
    check_refused("input 4x2\ntranspose 1,1\n", "expected each of the axes 1 to 2 once");
    check_refused("input 4x2\ntranspose 2\n", "expected each of the axes 1 to 2 once");
    check_refused("input 4x2\ntranspose axes=2,one\n",
                  "n:2:16: axes is '2,one', expected one to 6");
    check_refused("input 4x2\ntranspose\n", "n:2:10: transpose needs axes");
    check_refused("input 4x2\nslice 3 from=2\n",
                  "found 4 places, expected those from 2 to below 5");
    check_refused("input 4x2\nslice 1 axis=3\n", "the axis is 3, expected 1 to 2 (-1 is the last)");
    check_refused("input 4x2\nslice 1 from=0.5\n", "found 4 places, expected those from 0.5");
    check_refused("input 4x2\nconcat < input\n", "n:2:1: concat has 1 inputs, expected 2 or more");
    check_refused("input 4x2\na = dense 3\nconcat < input, a\n",
                  "its input 2 has another shape than the first, beside axis 1");
    check_refused("input 4x2\nmatmul third < input, input\n",
                  "n:2:8: transpose is 'third', expected one of none|first|second");
    check_refused("input 4x2\nmatmul < input, input\n",
                  "op matmul (matmul1): 'b' has the shape 1×4×2");
    check_refused("input 4\nmatmul < input, input\n",
                  "expected two inputs of at least two dimensions");
    check_refused("input 4x2\nsoftmax causal=1\n", "causal=1 expects square scores [query, key]");
    check_refused("input 4\nleaky_relu slope=-1\n", "the slope is -1, expected 0 or more");
    check_refused("input 4 tokens=3\nembedding 2\na = slice 2\ngather < a, input\n",
                  "with a row for each of 3 tokens");
    check_refused("input 4x2\nmultiply < input\n",
                  "n:2:1: multiply has 1 inputs, expected 2 (as in");
}

TEST(text_that_cannot_be_meant_is_refused)
{
    check_refused("x = input 4\ndense 2\n",
                  "n:1:5: found a name before 'input', expected one only");
    check_refused("input 4\ny = loss mse\n", "n:2:5: found a name before 'loss'");
    check_refused("input 4\nloss = dense 2\n", "n:2:1: the name 'loss' has a meaning of its own");
    check_refused("input 4\nstate.a = dense 2\n", "n:2:1: the name 'state.a' has a meaning");
    check_refused("input 4\na = dense 2\na = relu\n", "n:3:1: the name 'a' is taken");
    check_refused("input 4\ndense 2 <\n", "n:2:10: found nothing, expected the name of a layer");
    check_refused("input 4\nadd < input,\n", "n:2:13: found nothing, expected the name");
    check_refused("input 4\ndense 2\fbais=0\n", "n:2:9: dense has no argument 'bais'");
    check_refused("input 4\nelu alpha=1e39\n", "n:2:11: alpha is '1e39', expected a number");
    check_refused("input 4\n# caf\xE9\ndense 2\n", "n:2:6: found the byte 0xE9, expected UTF-8");
}

CHECK_MAIN
