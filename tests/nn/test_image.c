/* test_image.c: the layers over images: results worked out by hand, and convolutions against a
 * second implementation that makes every pad, stride and dilation explicit as zeros in a larger
 * array. */
#include "nn/network.h"
#include "rig.h"

#include <stdio.h>

/* A network ready to run on one sample. */
struct trial {
    struct network *network;
    struct params params;
    struct program *program;
    struct ready ready;
};

static bool trial_open(struct trial *trial, const char *text)
{
    *trial = (struct trial){0};
    params_init(&trial->params, DTYPE_F32);
    struct compile_options options = {.batch = 1, .use = USE_INFERENCE};
    if (!CHECK_OK(network_parse("trial", text, strlen(text), &trial->network)) ||
        !CHECK_OK(network_compile(trial->network, &trial->params, &options, &trial->program)))
        return false;
    params_fill(&trial->params, 5);
    return true;
}

/* `y` has room for what the network gives; false also when the backend lacks an op. */
static bool trial_run(struct trial *trial, struct rig *rig, float *x, float *y)
{
    const char *names[] = {"x", "y"};
    void *data[] = {x, y};
    int64_t rows[] = {1, 1};
    return ready_open(&trial->ready, rig, &trial->params, trial->program) &&
           ready_bind(&trial->ready, trial->program, names, data, rows, 2, NULL, 0, 0) &&
           ready_run(&trial->ready, PARTS_ALL, 0, 1);
}

static void trial_close(struct trial *trial)
{
    ready_close(&trial->ready);
    program_free(trial->program);
    params_free(&trial->params);
    network_free(trial->network);
}

static int64_t output_count(const struct trial *trial)
{
    int32_t y = program_find(trial->program, ROLE_OUTPUT, "y");
    return shape_count(&trial->program->tensors[y].shape);
}

enum { MOST = 64 };

static const struct by_hand {
    const char *text;
    float x[MOST], weights[MOST]; /* weights: of all parameters, one after the other */
    int count;                    /* of the results */
    float y[MOST];
} by_hand[] = {
    {"input 1x3x3\nconv 1 2", {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 0, 0, -1, 10}, 4, {6, 6, 6, 6}},
    {"input 1x3x3\nconv 1 2 stride=2 pad=1 bias=0",
     {1, 2, 3, 4, 5, 6, 7, 8, 9},
     {1, 1, 1, 1},
     4,
     {1, 5, 11, 28}},
    {"input 1x3x3\nconv 1 2 dilation=2 bias=0",
     {1, 2, 3, 4, 5, 6, 7, 8, 9},
     {1, 1, 1, 1},
     1,
     {1 + 3 + 7 + 9}},
    {"input 2x1x2\nconv 4 1 groups=2 bias=0",
     {1, 2, 3, 4},
     {1, 10, 100, 1000},
     8,
     {1, 2, 10, 20, 300, 400, 3000, 4000}},
    {"input 1x1x2\nconv_transpose 1 2 stride=2",
     {1, 2},
     {1, 2, 3, 4, 0.5f},
     8,
     {1.5f, 2.5f, 2.5f, 4.5f, 3.5f, 4.5f, 6.5f, 8.5f}},
    {"input 1x1x3\nconv_transpose 1 1x2 bias=0", {1, 2, 3}, {1, 10}, 4, {1, 12, 23, 30}},
    {"input 1x1x3\nconv_transpose 1 1x2 pad=0x1 bias=0", {1, 2, 3}, {1, 10}, 2, {12, 23}},
    {"input 1x1x2\nconv_transpose 1 1 stride=1x2 output_pad=0x1 bias=0",
     {1, 2},
     {5},
     4,
     {5, 0, 10, 0}},
    {"input 2x1x1\nconv_transpose 2 1x2 groups=2 bias=0",
     {1, 2},
     {1, 10, 100, 1000},
     4,
     {1, 10, 200, 2000}},
    /* padding is nothing, not 0: the largest of negative numbers is negative */
    {"input 1x3x3\nmax_pool 2 pad=1",
     {-1, -2, -3, -4, -5, -6, -7, -8, -9},
     {0},
     4,
     {-1, -2, -4, -5}},
    {"input 1x3x4\nmax_pool 2x3 stride=1",
     {1, 5, 2, 0, 3, 4, 9, 8, 7, 6, 1, 2},
     {0},
     4,
     {9, 9, 9, 9}},
    {"input 1x4x4\np = max_pool 2\nmax_unpool < p, p",
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
     {0},
     16,
     {0, 0, 0, 0, 0, 6, 0, 8, 0, 0, 0, 0, 0, 14, 0, 16}},
    /* both windows have the 5; the first of two equal elements is taken */
    {"input 1x1x4\np = max_pool 1x3 stride=1\nmax_unpool < p, p",
     {1, 5, 5, 2},
     {0},
     4,
     {0, 10, 0, 0}},
    {"input 1x2x2\naverage_pool 2 pad=1", {4, 8, 12, 16}, {0}, 4, {1, 2, 3, 4}},
    {"input 1x2x2\naverage_pool 2 pad=1 count_pad=0", {4, 8, 12, 16}, {0}, 4, {4, 8, 12, 16}},
    {"input 1x2x3\naverage_pool 2 stride=1", {1, 2, 3, 4, 5, 6}, {0}, 2, {3, 4}},
    {"input 1x1x3\naverage_pool 1x2 ceil=1", {1, 2, 3}, {0}, 2, {1.5f, 3}},
    {"input 1x1x4\naverage_pool 1x3 stride=2 pad=0x1 ceil=1", {1, 2, 3, 4}, {0}, 3, {1, 3, 2}},
    {"input 1x1x4\naverage_pool 1x3 stride=2 pad=0x1", {1, 2, 3, 4}, {0}, 2, {1, 3}},
    {"input 1x1x3\nmax_pool 1x2 ceil=1", {3, 2, 1}, {0}, 2, {3, 1}},
    {"input 1x1x3\nmax_pool 1x2 stride=4 pad=0x1 ceil=1", {3, 2, 1}, {0}, 1, {3}},
    {"input 2x1x3\nglobal_average_pool", {1, 2, 6, -1, -2, -6}, {0}, 2, {3, -3}},
    {"input 2x1x3\nglobal_max_pool", {1, 2, 6, -1, -2, -6}, {0}, 2, {6, -1}},
    {"input 3x1x1\nlrn 3 alpha=3 beta=1", {1, 2, 3}, {0}, 3, {1 / 6.0f, 2 / 15.0f, 3 / 14.0f}},
    /* an even size has one channel more before than after */
    {"input 3x1x1\nlrn 2 alpha=2 beta=1 k=2", {1, 2, 3}, {0}, 3, {1 / 3.0f, 2 / 7.0f, 3 / 15.0f}},
};

static void set_weights(struct params *params, const float *weights)
{
    for (int32_t i = 0; i < params->count; i++) {
        int64_t count = shape_count(&params->entries[i].shape);
        memcpy(params_data(params, i), weights, (size_t)count * sizeof *weights);
        weights += count;
    }
}

ON_BACKENDS(results_are_those_worked_out_by_hand)
{
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
        const struct by_hand *expected = &by_hand[i];
        struct trial trial;
        float x[MOST], y[MOST];
        memcpy(x, expected->x, sizeof x);
        if (trial_open(&trial, expected->text)) {
            set_weights(&trial.params, expected->weights);
            if (CHECK_EQUAL_INT(output_count(&trial), expected->count) &&
                trial_run(&trial, rig, x, y) &&
                !CHECK(difference(y, expected->y, expected->count) < 1e-6))
                printf("    in the network\n%s\n", expected->text);
        }
        trial_close(&trial);
    }
}

/* A convolution, or a transposed one, as the second implementation sees it. All arrays are one
 * plane. */
struct plane {
    int h, w;
    double v[1000];
};

/* `from` in a plane of h×w, its first element at (top, left), its elements some steps apart. */
static struct plane spread(const struct plane *from, int h, int w, int top, int left, int step_h,
                           int step_w)
{
    struct plane to = {.h = h, .w = w};
    for (int r = 0; r < from->h; r++)
        for (int c = 0; c < from->w; c++)
            to.v[(top + r * step_h) * w + left + c * step_w] = from->v[r * from->w + c];
    return to;
}

/* The kernel over all of a, at every place: y[r][c] = Σ a[r+i][c+j]·k[i][j]. */
static struct plane correlate(const struct plane *a, const struct plane *k)
{
    struct plane y = {.h = a->h - k->h + 1, .w = a->w - k->w + 1};
    for (int r = 0; r < y.h; r++)
        for (int c = 0; c < y.w; c++)
            for (int i = 0; i < k->h; i++)
                for (int j = 0; j < k->w; j++)
                    y.v[r * y.w + c] += a->v[(r + i) * a->w + c + j] * k->v[i * k->w + j];
    return y;
}

static struct plane plane_from(const float *values, int h, int w, bool turned)
{
    struct plane plane = {.h = h, .w = w};
    for (int i = 0; i < h * w; i++)
        plane.v[i] = (double)values[turned ? h * w - 1 - i : i];
    return plane;
}

struct sizes {
    bool transposed;
    int in, out, groups, h, w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w, output_pad_h, output_pad_w;
};

/* What one input plane adds to one output plane of out_h×out_w. */
static void add_plane(const struct sizes *s, const float *x, const float *w, float *y, int out_h,
                      int out_w)
{
    int extent_h = (s->kernel_h - 1) * s->dilation_h + 1;
    int extent_w = (s->kernel_w - 1) * s->dilation_w + 1;
    struct plane image = plane_from(x, s->h, s->w, false);
    struct plane kernel = plane_from(w, s->kernel_h, s->kernel_w, s->transposed);
    kernel = spread(&kernel, extent_h, extent_w, 0, 0, s->dilation_h, s->dilation_w);
    if (s->transposed)
        image = spread(&image, out_h + extent_h - 1, out_w + extent_w - 1, extent_h - 1 - s->pad_h,
                       extent_w - 1 - s->pad_w, s->stride_h, s->stride_w);
    else
        image = spread(&image, s->h + 2 * s->pad_h, s->w + 2 * s->pad_w, s->pad_h, s->pad_w, 1, 1);
    struct plane all = correlate(&image, &kernel);
    int step_h = s->transposed ? 1 : s->stride_h, step_w = s->transposed ? 1 : s->stride_w;
    for (int r = 0; r < out_h; r++)
        for (int c = 0; c < out_w; c++)
            y[r * out_w + c] += (float)all.v[r * step_h * all.w + c * step_w];
}

static void second_opinion(const struct sizes *s, const float *x, const float *w, const float *b,
                           float *y, int out_h, int out_w)
{
    int in = s->in / s->groups, out = s->out / s->groups; /* of a group */
    for (int o = 0; o < s->out; o++) {
        float *plane = y + o * out_h * out_w;
        for (int i = 0; i < out_h * out_w; i++)
            plane[i] = b[o];
        for (int i = 0; i < in; i++) {
            int channel = o / out * in + i;
            int pair = s->transposed ? channel * out + o % out : o * in + i;
            add_plane(s, x + channel * s->h * s->w, w + pair * s->kernel_h * s->kernel_w, plane,
                      out_h, out_w);
        }
    }
}

static const struct sizes convolutions[] = {
    {false, 4, 6, 2, 9, 8, 3, 2, 2, 3, 1, 2, 2, 3, 0, 0},
    {false, 3, 3, 3, 5, 7, 5, 1, 1, 2, 2, 0, 1, 1, 0, 0},
    {false, 2, 5, 1, 6, 6, 2, 4, 3, 1, 0, 1, 4, 1, 0, 0},
    {true, 4, 6, 2, 4, 3, 3, 2, 2, 3, 1, 1, 2, 2, 1, 2},
    {true, 3, 3, 3, 5, 7, 2, 3, 1, 2, 0, 2, 1, 1, 0, 1},
    {true, 2, 5, 1, 3, 4, 4, 2, 3, 1, 2, 0, 1, 3, 2, 2},
};

static void write_network(const struct sizes *s, struct text *out)
{
    text_printf(out, "input %dx%dx%d\n%s %d %dx%d stride=%dx%d pad=%dx%d dilation=%dx%d groups=%d",
                s->in, s->h, s->w, s->transposed ? "conv_transpose" : "conv", s->out, s->kernel_h,
                s->kernel_w, s->stride_h, s->stride_w, s->pad_h, s->pad_w, s->dilation_h,
                s->dilation_w, s->groups);
    if (s->transposed)
        text_printf(out, " output_pad=%dx%d", s->output_pad_h, s->output_pad_w);
}

ON_BACKENDS(convolutions_agree_with_a_second_implementation)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        const struct sizes *s = &convolutions[i];
        struct text text = {0};
        struct trial trial;
        static float x[4000], y[4000], expected[4000];
        write_network(s, &text);
        fill_random(x, s->in * s->h * s->w, 3);
        if (trial_open(&trial, text_of(&text)) && trial_run(&trial, rig, x, y)) {
            const struct tensor *out =
                &trial.program->tensors[program_find(trial.program, ROLE_OUTPUT, "y")];
            second_opinion(s, x, params_data(&trial.params, 0), params_data(&trial.params, 1),
                           expected, (int)out->shape.dim[2], (int)out->shape.dim[3]);
            if (!CHECK(difference(y, expected, shape_count(&out->shape)) < 1e-5))
                printf("    in the network\n%s\n", text_of(&text));
        }
        trial_close(&trial);
        text_free(&text);
    }
}

/* What is wrong, and what the message must say of it. */
static const struct {
    const char *text, *message;
} mistakes[] = {
    {"input 1x4x5\nconv 3 7", "t:2:1: conv1: its window covers 7x7, expected at most the 4x5"},
    {"input 1x4x4\n  conv 3 3 pad=1 dilation=4", "t:2:3: conv1: its window covers 9x9, expected"},
    {"input 1x4x4\nconv 3 2 stride=0", "t:2:1: conv1: stride is 0x0, expected 1 or more"},
    {"input 1x4x4\nconv 3 2x2x2", "t:2:1: conv1: kernel has 3 sizes, expected one or two"},
    {"input 1x4x4\nconv 3 2x", "t:2:8: kernel is '2x', expected one to"},
    {"input 1x4x4\nconv 3", "t:2:7: conv needs kernel"},
    {"input 6x4x4\nconv 4 1 groups=4", "groups is 4, expected a divisor of its 6 input and 4"},
    {"input 6x4x4\nconv 4 1 groups=0.5", "groups is 0.5, expected a divisor"},
    {"input 6x4x4\nconv 4 1 groups=1e30", "groups is 1e+30, expected a divisor"},
    {"input 6\nconv 4 1", "t:2:1: conv1: its input has 1 dimensions, expected the 3 of an image"},
    {"input 1x100000x100000\nconv 4 1", "an image of 100000x100000, expected at most 2147483647"},
    {"input 1x4x4\nconv_transpose 1 3 pad=5", "its output would be -4x-4, expected 1x1 or more"},
    {"input 1x4x4\nconv_transpose 1 3 output_pad=1", "output_pad is 1x1, expected less than"},
    {"input 1x4x4\nmax_pool 5",
     "t:2:1: max_pool1: its window covers 5x5, expected at most the 4x4"},
    {"input 1x4x4\naverage_pool 2 pad=2", "pad is 2x2, expected less than the window of 2x2"},
    {"input 1x4x4\na = average_pool 2\nmax_unpool < a, a",
     "t:3:1: max_unpool1: its second input is 'a', expected the name of a max_pool"},
    {"input 1x4x4\na = max_pool 2\nmax_unpool < input, a",
     "t:3:1: op max_unpool (max_unpool1): 'places' has the shape"},
    {"input 7\nglobal_max_pool", "t:2:1: global_max_pool1: its input has 1 dimensions, expected"},
};

TEST(mistakes_are_told_with_their_place)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const char *text = mistakes[i].text;
        struct params params;
        struct network *network = NULL;
        struct program *program = NULL;
        struct compile_options options = {.batch = 1, .use = USE_TRAINING};
        params_init(&params, DTYPE_F32);
        enum status status = network_parse("t", text, strlen(text), &network);
        if (status == STATUS_OK)
            status = network_compile(network, &params, &options, &program);
        CHECK_STATUS(STATUS_INPUT, status);
        CHECK_MESSAGE(mistakes[i].message);
        program_free(program);
        params_free(&params);
        network_free(network);
    }
}

CHECK_MAIN
