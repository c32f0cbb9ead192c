/* test_stack.c: small stacks of dense layers, which the simd backend runs by one kernel: the same
 * losses, counts, outputs and weights, for any sizes, and the same bits however its steps are
 * divided into runs. */
#include "core/pass/fuse.h"
#include "core/pass/stack_find.h"
#include "nn/network.h"
#include "rig.h"

enum { ROWS = 70, STEPS = 30, WIDEST = 130 };

/* Widths and batches around whole vectors; classes > 0: labels and cross-entropy. */
static const struct {
    const char *text;
    int32_t in, out, batch, classes;
} rows[] = {
    {"input 4\ndense 3\nsigmoid\ndense 4\nsigmoid\ndense 5\nsigmoid\ndense 1\nsigmoid\n", 4, 1, 1,
     0},
    {"input 4\ndense 3\nsigmoid\ndense 4\nsigmoid\ndense 5\nsigmoid\ndense 1\nsigmoid\n", 4, 1, 10,
     0},
    {"input 1\ndense 1\n", 1, 1, 1, 0},
    {"input 1\ndense 1\ntanh\n", 1, 1, 3, 0},
    {"input 8\ndense 8 bias=0\nrelu\ndense 7\ntanh\ndense 2\n", 8, 2, 1, 0},
    {"input 8\ndense 8 bias=0\nrelu\ndense 7\ntanh\ndense 2\n", 8, 2, 16, 0},
    {"input 16\ndense 9\ntanh\ndense 16\nsigmoid\ndense 3\n", 16, 3, 1, 0},
    {"input 5\ndense 33\ntanh\ndense 17\nrelu\ndense 12\n", 5, 12, 1, 0},
    {"input 5\ndense 33\ntanh\ndense 17\nrelu\ndense 12\n", 5, 12, 33, 0},
    {"input 64\ndense 40\nsigmoid\ndense 12\n", 64, 12, 1, 0},
    {"input 4\ndense 16\nrelu\ndense 16\nrelu\ndense 3\n", 4, 3, 1, 3},
    {"input 4\ndense 16\nrelu\ndense 16\nrelu\ndense 3\n", 4, 3, 17, 3},
    {"input 6\ndense 5\n", 6, 5, 64, 5},
    {"input 4\ndense 3\nsigmoid\ndense 4\nsigmoid\ndense 5\nsigmoid\ndense 1\nsigmoid\n", 4, 1, 259,
     0},
    {"input 7\ndense 130\ntanh\ndense 65\nrelu\ndense 3\n", 7, 3, 1, 3},
    {"input 130\ndense 101\nrelu\ndense 5\n", 130, 5, 9, 0},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* Every row is trained by the first and by one of the others. */
static const struct {
    const char *text;
    double rate;
} optimisers[] = {
    {"sgd:rate=0.5", 0.5},
    {"adam:rate=0.01", 0.01},
    {"momentum:rate=0.05,decay=0.01", 0.05},
    {"adagrad:rate=0.05", 0.05},
    {"rmsprop:rate=0.01", 0.01},
    {"adamw:rate=0.01", 0.01},
    {"nesterov:rate=0.05", 0.05},
    {"rprop:rate=0.01", 0.01},
    {"sgd:rate=0.5,decay=0.01", 0.5},
};
enum { OPTIMISER_COUNT = sizeof optimisers / sizeof *optimisers };

/* One row, compiled for training and for inference. */
struct model {
    const char *optimiser;
    struct network *network;
    struct params params;
    struct program *training, *inference, *whole, *answer; /* the last two are fused */
};

static struct data {
    float x[ROWS * WIDEST], target[ROWS * WIDEST];
    int32_t label[ROWS];
} data;

static void model_close(struct model *model)
{
    program_free(model->training);
    program_free(model->inference);
    program_free(model->whole);
    program_free(model->answer);
    params_free(&model->params);
    network_free(model->network);
}

static bool model_open(struct model *model, const struct rig *rig, size_t row, size_t optimiser)
{
    struct compile_options options = {.batch = rows[row].batch,
                                      .use = USE_TRAINING,
                                      .loss = rows[row].classes ? LOSS_CROSS_ENTROPY : LOSS_MSE,
                                      .classes = rows[row].classes,
                                      .optimiser = optimisers[optimiser].text,
                                      .schedule = row % 2 ? "step:period=7" : NULL};
    *model = (struct model){.optimiser = options.optimiser};
    params_init(&model->params, DTYPE_F32);
    if (!CHECK_OK(network_parse("test", rows[row].text, strlen(rows[row].text), &model->network)) ||
        !CHECK_OK(network_compile(model->network, &model->params, &options, &model->training)))
        return false;
    options.use = USE_INFERENCE;
    model->params.control.rate = optimisers[optimiser].rate;
    fill_random(data.x, ROWS * rows[row].in, 1);
    fill_random(data.target, ROWS * rows[row].out, 2);
    for (int32_t i = 0; i < ROWS; i++)
        data.label[i] = rows[row].classes ? i * 7 % rows[row].classes : 0;
    return CHECK_OK(network_compile(model->network, &model->params, &options, &model->inference)) &&
           CHECK_OK(params_fill(&model->params, 3)) &&
           CHECK_OK(fuse(model->training, rig->backend, rig->device, &model->whole)) &&
           CHECK_OK(fuse(model->inference, rig->backend, rig->device, &model->answer));
}

/* What a training left behind. */
struct result {
    float loss[STEPS], right[STEPS], y[ROWS * WIDEST];
    struct params params;
};

enum manner { AT_ONCE, ONE_BY_ONE, OP_BY_OP, WATCHED };

/* What is told of a watched step: in order, of the kernel of all of it. */
struct told {
    int events, wrong;
    uint64_t last_ns;
};

static void hear(void *context, const struct event *event)
{
    struct told *told = context;
    told->events++;
    told->wrong += event->op < 0 || !text_starts(event->kernel, "stack_f32") ||
                   event->end_ns < event->start_ns || event->start_ns < told->last_ns;
    told->last_ns = event->end_ns;
}

/* Each layer's op forward, and one backward; the loss. */
static void check_told(const struct told *told, const struct model *model)
{
    const int layers = model->whole->stack->layers;
    CHECK_EQUAL_INT(told->wrong, 0);
    CHECK_EQUAL_INT(told->events % STEPS, 0);
    CHECK(told->events / STEPS >= 2 * layers + 1 && told->events / STEPS <= 2 * layers + 4);
}

static bool train(struct ready *ready, const struct program *program, size_t row,
                  enum manner manner, struct result *result)
{
    const char *names[] = {"x", rows[row].classes ? "label" : "target", "loss", "right"};
    void *target = rows[row].classes ? (void *)data.label : (void *)data.target;
    void *views[] = {data.x, target, result->loss, result->right};
    int64_t counts[] = {ROWS, ROWS, STEPS, STEPS};
    int bound = program_find(program, ROLE_OUTPUT, "right") < 0 ? 3 : 4;
    uint32_t order[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        order[i] = i * 13 % ROWS;
    bool ok = ready_bind(ready, program, names, views, counts, bound, order, ROWS, 5);
    if (ok && (manner == AT_ONCE || manner == WATCHED))
        return ready_run(ready, PARTS_ALL, 0, STEPS);
    for (int i = 0; ok && i < STEPS; i++)
        for (int part = 0; ok && part < PART_COUNT; part++)
            if (manner == OP_BY_OP)
                ok = ready_run(ready, PART_BIT(part), 0, 1);
            else if (part == 0)
                ok = ready_run(ready, PARTS_ALL, 0, 1);
    return ok;
}

static bool copy_params(struct params *to, const struct model *model)
{
    struct program *again = NULL;
    struct compile_options options = {
        .batch = 1, .use = USE_TRAINING, .loss = LOSS_MSE, .optimiser = model->optimiser};
    params_init(to, DTYPE_F32);
    bool ok = CHECK_OK(network_compile(model->network, to, &options, &again)) &&
              CHECK_OK(params_fill(to, 3));
    program_free(again);
    return ok;
}

/* The plan that trains, on an instance of its own. */
static bool open_trainer(struct ready *trainer, struct rig *rig, const struct params *params,
                         const struct program *program, struct told *told)
{
    const struct plan_options watched = {
        .observer = {.level = OBSERVE_OPS, .event = hear, .context = told}};
    if (!ready_open(trainer, rig, params, program))
        return false;
    if (!told)
        return true;
    rig->backend->release(trainer->plan);
    trainer->plan = NULL;
    return CHECK_OK(rig->backend->prepare(trainer->instance, program, &watched, &trainer->plan));
}

/* Trains, then predicts on the same instance, whose weights the training has changed. */
static bool run_model(struct rig *rig, const struct model *model, size_t row, enum manner manner,
                      struct result *result)
{
    struct ready trainer, oracle = {0};
    memset(result, 0, sizeof *result);
    int64_t counts[] = {ROWS, ROWS};
    bool apart = manner == OP_BY_OP;
    struct told told = {0};
    const struct program *training = apart ? model->training : model->whole;
    const struct program *inference = apart ? model->inference : model->answer;
    bool ok =
        open_trainer(&trainer, rig, &model->params, training, manner == WATCHED ? &told : NULL) &&
        ready_on(&oracle, rig, trainer.instance, inference, NULL) &&
        ready_bind(&oracle, inference, (const char *[]){"x", "y"}, (void *[]){data.x, result->y},
                   counts, 2, NULL, 0, 0) &&
        ready_run(&oracle, PARTS_ALL, 0, 1) && /* with weights that are soon out of date */
        train(&trainer, training, row, manner, result) &&
        ready_run(&oracle, PARTS_ALL, 0, 2 * ROWS / rows[row].batch + 1) &&
        copy_params(&result->params, model) &&
        CHECK_OK(rig->backend->download(trainer.instance, &result->params));
    if (ok && manner == WATCHED)
        check_told(&told, model);
    ready_close(&oracle);
    ready_close(&trainer);
    return ok;
}

static void compare(const struct model *model, size_t row, const struct result *a,
                    const struct result *b)
{
    int64_t ys = ROWS * rows[row].out;
    if (!CHECK(difference(a->loss, b->loss, STEPS) < 2e-4) ||
        !CHECK(difference(a->right, b->right, STEPS) < 1e-6) ||
        !CHECK(difference(a->y, b->y, ys) < 1e-3) ||
        !CHECK(params_difference(&a->params, &b->params, ROLE_PARAM) < 1e-3) ||
        !CHECK(params_difference(&a->params, &b->params, ROLE_STATE) < 1e-3))
        fprintf(stderr, "    row %zu, batch %d, %s: %s", row, rows[row].batch, model->optimiser,
                rows[row].text);
}

static bool same(const struct result *a, const struct result *b)
{
    return same_params(&a->params, &b->params) && !memcmp(a->loss, b->loss, sizeof a->loss) &&
           !memcmp(a->right, b->right, sizeof a->right) && !memcmp(a->y, b->y, sizeof a->y);
}

/* Was the row run by one kernel? */
static bool check_row(struct rig *rig, size_t row, size_t optimiser)
{
    static struct result at_once, one_by_one, op_by_op, watched;
    struct model model;
    bool whole = model_open(&model, rig, row, optimiser) && model.whole->whole;
    if (whole) {
        CHECK(model.answer->whole || rig->backend != &backend_simd);
        if (run_model(rig, &model, row, AT_ONCE, &at_once) &&
            run_model(rig, &model, row, ONE_BY_ONE, &one_by_one) &&
            run_model(rig, &model, row, OP_BY_OP, &op_by_op) &&
            run_model(rig, &model, row, WATCHED, &watched)) {
            CHECK(same(&at_once, &one_by_one));
            CHECK(same(&at_once, &watched));
            compare(&model, row, &at_once, &op_by_op);
        }
        params_free(&at_once.params);
        params_free(&one_by_one.params);
        params_free(&op_by_op.params);
        params_free(&watched.params);
    }
    model_close(&model);
    return whole;
}

/* Returns how many rows were run by one kernel. */
static int check_rows(struct rig *rig)
{
    int whole = 0;
    for (size_t row = 0; row < ROW_COUNT; row++)
        whole += check_row(rig, row, 0) + check_row(rig, row, 1 + row % (OPTIMISER_COUNT - 1));
    return whole;
}

/* simd has one for all of these, with every instruction set. */
TEST(simd_is_whole_at_every_isa)
{
    struct cpu cpu;
    cpu_detect(&cpu);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++) {
        struct rig rig;
        struct device_options options = {.threads = 1, .isa = (enum isa)isa};
        if (cpu.isa != ISA_SCALAR && !cpu_has(&cpu, (enum isa)isa))
            continue;
        if (!rig_open(&rig, "simd")) {
            check_skip("%s", status_message());
            return;
        }
        rig_close(&rig);
        if (CHECK_OK(rig.backend->open(&options, &rig.device)))
            CHECK_EQUAL_INT(check_rows(&rig), 2 * ROW_COUNT);
        rig_close(&rig);
    }
}

CHECK_MAIN
