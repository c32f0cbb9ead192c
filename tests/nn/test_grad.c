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
    {"parameter",
     "input 3\na = dense 4\np = parameter 4\nq = parameter 4 learnt=0\nmultiply < a, p\n"
     "add < multiply1, q\ntanh\ndense 2\n",
     false},
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
    {"max_pool", "input 1x5x6\nconv 2 2\nmax_pool 3x2 stride=2 ceil=1\nflatten\ndense 2\n", false},
    {"average_pool",
     "input 1x6x8\nconv 2 2\naverage_pool 2x3 stride=3x2 pad=1 ceil=1\n"
     "average_pool 2 stride=2 count_pad=0 ceil=1\nflatten\ndense 2\n",
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
    {"rnn", "input 4x3\nrnn 3 output=last\ndense 2\nloss mse\n", true},
    {"rnn", "input 4x3\nrnn 3 function=relu\nrnn 2\nflatten\ndense 3\nloss cross_entropy\n", false},
    {"gru", "input 4x3\ngru 3 output=last\ndense 2\nloss mse\n", true},
    {"gru", "input 4x3\ngru 3\ngru 2\nflatten\ndense 3\nloss cross_entropy\n", false},
    {"lstm", "input 4x3\nlstm 3 output=last\ndense 2\nloss mse\n", true},
    {"lstm", "input 4x3\nlstm 3\nlstm 2\nflatten\ndense 3\nloss cross_entropy\n", false},
    {NULL, "input 3x2\ndense 4\nelu 0.6\nleaky_relu 0.2\nsoftplus\ngelu\ndense 3\nsoftmax\n",
     false},
    {NULL, "input 3x2\ndense 4\nlayer_norm 1e-2\nposition\ndense 3\nloss cross_entropy\n", false},
    {"sqrt", "input 3x2\ndense 4\nsigmoid\nsqrt\nerf\ndense 3\n", false},
    {"clip", "input 3x2\ndense 4\nclip -0.4 0.5\ndense 3\nclip -3.4e38 0.3\ndense 2\n", false},
    {"quantise", "input 3\nquantise 0.1\ndense 4\ntanh\ndense 2\nloss mse\n", false},
    {"divide", "input 3x2\na = dense 4\nb = softplus\ndivide < a, b\ndense 3\n", false},
    {"mask", "input 3x2\ndense 4\nmask\ndense 3\nmask\n", false},
    {"reciprocal", "input 3x2\ndense 4\nsoftplus\nreciprocal\ndense 3\n", false},
    {"log", "input 3x2\ndense 4\nexp\nsoftplus\nlog\ndense 3\n", false},
    {"embedding", "input 4 tokens=7\nembedding 3\nposition\nflatten\ndense 2\nloss mse\n", false},
    {"embedding", "input 4 tokens=3\na = embedding 5\ndense 3\nloss cross_entropy\n", false},
    {"gather",
     "input 4 tokens=3\nembedding 5\nslice 3 from=1\na = tanh\ngather < a, input\ndense 2\n",
     false},
    {"reshape", "input 3x4\ndense 6\nreshape 2x9\ntanh\ndense 2\n", false},
    {"transpose", "input 2x3x4\ndense 5\ntranspose 3,1,2\ntanh\ndense 2\n", false},
    {"transpose", "input 2x3x2x2\ndense 2\ntranspose 4,2,1,3\ndense 2\n", false},
    {"slice", "input 3x4\ndense 5\na = slice 2 from=1\nslice 3 from=2 axis=-1\ndense 2\n", false},
    {"concat",
     "input 3x4\na = dense 5\nb = tanh\nc = dense 2 < a\nconcat axis=2 < a, c, b\ndense 2\n",
     false},
    {"concat", "input 3x4\na = dense 4\nb = tanh\nconcat < a, input, b\ndense 2\n", false},
    {"matmul",
     "input 3x4\na = dense 5\nb = tanh\nmatmul transpose=first scale=0.5 < a, b\ndense 2\n", false},
    {"matmul", "input 3x4\na = dense 5\nb = tanh\nmatmul transpose=second < a, b\ndense 2\n",
     false},
    {"matmul", "input 2x3x4\na = dense 3\nb = tanh\nmatmul scale=2 < a, b\ndense 2\n", false},
    {"matmul", "input 3x4\na = dense 3\nmatmul < a, a\ndense 2\n", false},
    {NULL, "input 3x4\na = dense 3\nsoftmax causal=1\ndense 2\n", false},
    {NULL, "input 3x4\ndense 3\nreduce mean axis=1\ndense 2\n", false},
    {NULL, "input 3x4\ndense 3\nreduce max axis=-1\ndense 2\n", false},
    {NULL, "input 3x4\ndense 3\nreduce max\ndense 2\n", false},
    {NULL, "input 3\na = dense 4\nb = dense 4 < input\nmultiply < a, b\nmultiply < a, a\ndense 2\n",
     false},
    {NULL, /* channels weighed by what is in them, as squeeze-and-excitation does */
     "input 2x3x4\nx = conv 3 2\nglobal_average_pool\ndense 3\nsigmoid\ngate = reshape 3x1x1\n"
     "multiply < x, gate\nflatten\ndense 2\n",
     false},
    {NULL,
     "input 3x4\na = dense 2\nb = reduce sum axis=1\nrow = reshape 1x2\nc = dense 1 < a\n"
     "outer = multiply < row, c\nadd < outer, row\nadd < a, add1\ndense 2\n",
     false},
    {NULL, /* a transformer block, as in examples/transformer.net */
     "input 3 tokens=4\nembedding 4\nx = position\nnorm = layer_norm\n"
     "dense 4 < norm\nreshape 3x2x2\nquery = transpose 2,1,3\n"
     "dense 4 < norm\nreshape 3x2x2\nkey = transpose 2,1,3\n"
     "dense 4 < norm\nreshape 3x2x2\nvalue = transpose 2,1,3\n"
     "matmul second scale=0.7 < query, key\nweights = softmax causal=1\n"
     "matmul < weights, value\ntranspose 2,1,3\nreshape 3x4\nmixed = dense 4\n"
     "middle = add < mixed, x\nlayer_norm\ndense 5\ngelu\nforward = dense 4\n"
     "add < forward, middle\nlayer_norm\ndense 3\nloss cross_entropy\n",
     false},
};

enum { BATCH = 5, EXAMPLES = sizeof examples / sizeof *examples };

struct gradient_check {
    struct network *network;
    struct params params;
    struct program *program;
    struct ready ready;
    void *x; /* as the program's */
    double *target;
    int32_t *labels, lengths[BATCH];
};

static void fill_data(double *data, int64_t count, unsigned seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (double)(seed >> 8) / 8388608.0 - 1.0;
    }
}

static void fill_tokens(int32_t *data, int64_t count, int32_t tokens)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = (int32_t)((i * 5 + i / 3) % tokens);
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
    int64_t labels = count_of(check->program, "label");
    check->x = calloc((size_t)x, sizeof(double));
    check->target = calloc((size_t)target + 1, sizeof *check->target);
    check->labels = calloc((size_t)labels + 1, sizeof *check->labels);
    if (check->network->tokens)
        fill_tokens(check->x, x, check->network->tokens);
    else
        fill_data(check->x, x, 1);
    fill_data(check->target, target, 2);
    for (int64_t i = 0; i < labels; i++)
        check->labels[i] = (int32_t)(i % 3);
    for (int i = 0; i < BATCH; i++)
        check->lengths[i] = i; /* 0 too: a sample without a step */
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
    free(check->labels);
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
    if (kind->inputs != 1)
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
