/* test_grad.c: gradients against central differences, in double precision on the reference.
 *
 * Each layer kind has a small network here; the test fails when a kind has none. Every element of
 * every parameter is moved up and down, and the loss's change compared with the gradient. */
#include "nn/layer.h"
#include "rig.h"

#include <stdio.h>

static const struct {
    const char *layer; /* the kind it checks */
    const char *text;
    bool lengths;
} examples[] = {
    {"dense", "input 3\ndense 4\ntanh\ndense 2\nloss mse\n", false},
    {"dense", "input 3x2\ndense 4 bias=0\ntanh\nflatten\ndense 3\nloss cross_entropy\n", false},
    {"sigmoid", "input 3\ndense 4\nsigmoid\ndense 1\nsigmoid\nloss mse\n", false},
    {"tanh", "input 3\ndense 4\ntanh\ndense 1\nloss binary_cross_entropy\n", false},
    {"relu", "input 3\ndense 5\nrelu\ndense 3\nloss cross_entropy\n", false},
    {"dropout", "input 3\ndense 6\ndropout 0.4\ntanh\ndense 2\nloss mse\n", false},
    {"batch_norm", "input 3\ndense 4\nbatch_norm\ntanh\ndense 2\nloss mse\n", false},
    {"batch_norm", "input 2x5\nbatch_norm\ndense 3\ntanh\nflatten\ndense 2\nloss mse\n", false},
    {"lstm", "input 4x3\nlstm 3 output=last\ndense 2\nloss mse\n", true},
    {"lstm", "input 4x3\nlstm 3\nlstm 2\nflatten\ndense 3\nloss cross_entropy\n", false},
    {"flatten", "input 2x3\nflatten\ndense 2\nloss mse\n", false},
    {"add", "input 3\na = dense 4\ntanh\nb = dense 4\nadd < a, b\ndense 2\nloss mse\n", false},
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

static void check_example(struct rig *rig, int index)
{
    struct gradient_check check;
    if (check_open(&check, rig, examples[index].text, examples[index].lengths)) {
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
                printf("    %s (example %d), %s: relative error %g\n", examples[index].layer, index,
                       check.program->tensors[t].name, error);
        }
        CHECK(checked > 0);
    }
    check_close(&check);
}

TEST(gradients_agree_with_central_differences)
{
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (int i = 0; i < EXAMPLES; i++)
        check_example(&rig, i);
    rig_close(&rig);
}

TEST(every_layer_has_an_example)
{
    int32_t count;
    const struct layer_kind *kinds = layer_kinds(&count);
    for (int32_t k = 0; k < count; k++) {
        bool has = false;
        for (int i = 0; i < EXAMPLES; i++)
            has |= !strcmp(kinds[k].name, examples[i].layer);
        if (!CHECK(has))
            printf("    the layer '%s' has no example in test_grad.c\n", kinds[k].name);
    }
}

CHECK_MAIN
