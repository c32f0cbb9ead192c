/* test_grad.c: gradients against central differences, in double precision on the reference.
 *
 * Every layer kind is tried in a small network written from its row in layers.def; the list below
 * has kinds that need something else, and more networks. Every element of every parameter is moved
 * up and down, and the loss's change compared with the gradient. */
#include "nn/layer.h"
#include "rig.h"

#include <stdio.h>

static const struct example {
    const char *instead; /* of the network written for this kind; or NULL */
    const char *text;
    bool lengths;
} examples[] = {
    {NULL, "input 3x2\ndense 4 bias=0\ntanh\nflatten\ndense 3\nloss cross_entropy\n", false},
    {NULL, "input 3\ndense 4\nsigmoid\ndense 1\nsigmoid\nloss mse\n", false},
    {NULL, "input 3\ndense 4\ntanh\ndense 1\nloss binary_cross_entropy\n", false},
    {NULL, "input 3\ndense 5\nrelu\ndense 3\nloss cross_entropy\n", false},
    {NULL, "input 3\ndense 6\ndropout 0.4\ntanh\ndense 2\nloss mse\n", false},
    {NULL, "input 2x5\nbatch_norm\ndense 3\ntanh\nflatten\ndense 2\nloss mse\n", false},
    {NULL, "input 2x4x3\nbatch_norm\nconv 2 2\nbatch_norm\ntanh\nflatten\ndense 2\n", false},
    {"conv", "input 2x5x4\nconv 3 3x2 pad=1\ntanh\nconv 2 2\nflatten\ndense 2\n", false},
    {"conv",
     "input 2x7x6\nconv 4 1\nconv 6 3x2 stride=2x1 pad=1x2 dilation=2x3 groups=2 bias=0\ntanh\n"
     "flatten\ndense 2\n",
     false},
    {"conv_transpose",
     "input 2x3x2\nconv 4 1\nconv_transpose 6 3x2 stride=2x3 pad=1 output_pad=1x2 dilation=2x1 "
     "groups=2\ntanh\nconv_transpose 1 2 bias=0\nflatten\ndense 2\n",
     false},
    {"max_pool", "input 1x5x6\nconv 2 2\nmax_pool 3x2 stride=2 pad=1\nflatten\ndense 2\n", false},
    {"average_pool",
     "input 1x5x6\nconv 2 2\naverage_pool 2\naverage_pool 2 stride=1 pad=1 count_pad=0\n"
     "average_pool 2 pad=1\nflatten\ndense 2\n",
     false},
    {"global_average_pool", "input 2x4x3\nconv 3 2\nglobal_average_pool\ndense 2\n", false},
    {"global_max_pool", "input 2x4x3\nconv 3 2\nglobal_max_pool\ndense 2\n", false},
    {"max_unpool",
     "input 1x5x4\na = conv 2 1\npool = max_pool 2\nconv 2 1\ntanh\nb = max_unpool < tanh1, pool\n"
     "add < a, b\nflatten\ndense 2\n",
     false},
    {"max_unpool",
     "input 1x5x4\npool = max_pool 3 stride=1\nconv 1 1\nmax_unpool < conv1, pool\nconv 2 1\nflatten\n"
     "dense 2\n",
     false},
    {"lrn", "input 2x3x2\nconv 6 1\nlrn 5 alpha=2 beta=0.6 k=1.5\nlrn 2 1\nflatten\ndense 2\n",
     false},
    {"lstm", "input 4x3\nlstm 3 output=last\ndense 2\nloss mse\n", true},
    {"lstm", "input 4x3\nlstm 3\nlstm 2\nflatten\ndense 3\nloss cross_entropy\n", false},
};

enum { BATCH = 5, EXAMPLES = sizeof examples / sizeof *examples };

struct gradient_check {
    struct network *network;
    struct params params;
    struct program *program;
    struct ready ready;
    double *x, *target;
    int32_t labels[BATCH], lengths[BATCH];
};

static void fill_data(double *data, int64_t count, unsigned seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (double)(seed >> 8) / 8388608.0 - 1.0;
    }
}

static int64_t count_of(const struct program *program, const char *name)
{
    int32_t tensor = program_find(program, ROLE_INPUT, name);
    return tensor < 0 ? 0 : shape_count(&program->tensors[tensor].shape);
}

static bool check_open(struct gradient_check *check, struct rig *rig, const char *text,
                       bool lengths)
{
    *check = (struct gradient_check){0};
    params_init(&check->params, DTYPE_F64);
    struct compile_options options = {.batch = BATCH, .use = USE_TRAINING, .lengths = lengths};
    if (!CHECK_OK(network_parse("example", text, strlen(text), &check->network)) ||
        !CHECK_OK(network_compile(check->network, &check->params, &options, &check->program)))
        return false;
    params_fill(&check->params, 3);
    if (!ready_open(&check->ready, rig, &check->params, check->program))
        return false;
    int64_t x = count_of(check->program, "x"), target = count_of(check->program, "target");
    check->x = calloc((size_t)x, sizeof *check->x);
    check->target = calloc((size_t)target + 1, sizeof *check->target);
    fill_data(check->x, x, 1);
    fill_data(check->target, target, 2);
    for (int i = 0; i < BATCH; i++) {
        check->labels[i] = i % 3;
        check->lengths[i] = i; /* 0 too: a sample without a step */
    }
    const char *names[] = {"x", target ? "target" : "label", "lengths"};
    void *data[] = {check->x, target ? (void *)check->target : check->labels, check->lengths};
    int64_t rows[] = {BATCH, BATCH, BATCH};
    return ready_bind(&check->ready, check->program, names, data, rows, lengths ? 3 : 2, NULL, 0,
                      0);
}

static void check_close(struct gradient_check *check)
{
    ready_close(&check->ready);
    program_free(check->program);
    params_free(&check->params);
    network_free(check->network);
    free(check->x);
    free(check->target);
}

static double loss_at(struct gradient_check *check)
{
    const struct backend *backend = check->ready.backend;
    double loss = NAN;
    CHECK_OK(backend->upload(check->ready.instance, &check->params));
    ready_run(&check->ready, PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD), 0, 1);
    CHECK_OK(backend->fetch(check->ready.plan, program_find(check->program, ROLE_OUTPUT, "loss"),
                            &loss));
    return loss;
}

/* The worst relative error over one parameter. Every batch is the whole data set, so each run
 * computes the same loss. */
static double worst_error(struct gradient_check *check, int32_t tensor)
{
    const struct tensor *grad = &check->program->tensors[tensor];
    int64_t count = shape_count(&grad->shape);
    double *analytic = calloc((size_t)count, sizeof *analytic), worst = 0;
    CHECK_OK(check->ready.backend->fetch(check->ready.plan, tensor, analytic));
    double *w = params_data(&check->params, grad->entry);
    for (int64_t i = 0; i < count; i++) {
        double kept = w[i], h = 1e-5;
        w[i] = kept + h;
        double up = loss_at(check);
        w[i] = kept - h;
        double down = loss_at(check);
        w[i] = kept;
        double numeric = (up - down) / (2 * h);
        double error = fabs(numeric - analytic[i]) / fmax(1e-3, fabs(numeric) + fabs(analytic[i]));
        worst = isnan(error) ? HUGE_VAL : fmax(worst, error);
    }
    free(analytic);
    return worst;
}

static void check_example(struct rig *rig, const char *text, bool lengths)
{
    struct gradient_check check;
    if (check_open(&check, rig, text, lengths)) {
        unsigned parts = PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD) | PART_BIT(PART_BACKWARD);
        int checked = 0;
        for (int32_t t = 0; t < check.program->tensor_count; t++) {
            if (check.program->tensors[t].role != ROLE_GRAD)
                continue;
            CHECK_OK(rig->backend->upload(check.ready.instance, &check.params));
            ready_run(&check.ready, parts, 0, 1);
            double error = worst_error(&check, t);
            checked++;
            if (!CHECK(error < 1e-4))
                printf("    %s: relative error %g in the network\n%s",
                       check.program->tensors[t].name, error, text);
        }
        CHECK(checked > 0);
    }
    check_close(&check);
}

TEST(gradients_of_examples_agree_with_central_differences)
{
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (int i = 0; i < EXAMPLES; i++)
        check_example(&rig, examples[i].text, examples[i].lengths);
    rig_close(&rig);
}

/* The layer between two dense ones, arguments that must be there being 3. */
static void write_network(const struct layer_kind *kind, struct text *out)
{
    text_add(out, "input 3\na = dense 4\nb = tanh\n");
    text_add(out, kind->name);
    for (const char *at = kind->arguments; *at;) {
        size_t length = strcspn(at, " ");
        if (!memchr(at, '=', length))
            text_add(out, " 3");
        at += length;
        at += strspn(at, " ");
    }
    if (kind->inputs == 2)
        text_add(out, " < a, b");
    text_add(out, "\ndense 2\nloss mse\n");
}

TEST(gradients_of_every_layer_agree_with_central_differences)
{
    struct rig rig;
    int32_t count;
    const struct layer_kind *kinds = layer_kinds(&count);
    CHECK(rig_open(&rig, "ref"));
    for (int32_t k = 0; k < count; k++) {
        bool listed = false;
        for (int i = 0; i < EXAMPLES; i++)
            listed |= examples[i].instead && !strcmp(kinds[k].name, examples[i].instead);
        struct text text = {0};
        write_network(&kinds[k], &text);
        if (!listed)
            check_example(&rig, text_of(&text), false);
        text_free(&text);
    }
    rig_close(&rig);
}

CHECK_MAIN
