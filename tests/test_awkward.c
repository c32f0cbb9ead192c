/* test_awkward.c: what bends a contract, driven through the same sockets on every backend: data
 * that the batch does not divide, dropout and resuming, statistics, sequences of unequal length,
 * two programs on one instance, gradients no autodiff made, accumulation, clipping, observation. */
#include "core/pass/fuse.h"
#include "nn/grad.h"
#include "nn/loss.h"
#include "nn/network.h"
#include "nn/optimiser.h"
#include "rig.h"

#include <stdio.h>

/* A network with its parameters, compiled once. */
struct model {
    struct network *network;
    struct params params;
    struct program *program;
};

static bool model_open(struct model *model, const char *text, struct compile_options options)
{
    *model = (struct model){0};
    params_init(&model->params, DTYPE_F32);
    bool ok = CHECK_OK(network_parse("test", text, strlen(text), &model->network)) &&
              CHECK_OK(network_compile(model->network, &model->params, &options, &model->program));
    params_fill(&model->params, 11);
    return ok;
}

static void model_close(struct model *model)
{
    program_free(model->program);
    params_free(&model->params);
    network_free(model->network);
}

/* Gives `to` the entries and values of `from`. */
static void copy_params(struct params *to, const struct params *from)
{
    params_init(to, from->real);
    for (int32_t i = 0; i < from->count; i++) {
        int32_t entry;
        const struct entry *e = &from->entries[i];
        CHECK_OK(params_declare(to, e->name, e->role, e->dtype, e->shape, e->init, &entry));
        if (e->matrix)
            params_mark_matrix(to, entry);
        memcpy(params_data(to, entry), params_data(from, i), (size_t)e->bytes);
    }
    to->control = from->control;
}

static bool bind_xt(struct ready *ready, const struct program *program, float *x, float *target,
                    int64_t rows, const uint32_t *order, int64_t order_count, uint64_t start)
{
    return ready_bind(ready, program, (const char *[]){"x", "target"}, (void *[]){x, target},
                      (int64_t[]){rows, rows}, 2, order, order_count, start);
}

#define DROPOUT_NET                                                                                \
    "input 3\ndense 16\ntanh\ndropout 0.3\ndense 8\ndropout 0.5\nsigmoid\ndense 2\nloss mse\n"

enum { ROWS = 10 };

/* 10 rows in batches of 4: two of 4 and one of 2, two programs on one instance, each row once. */
ON_BACKENDS(batch_that_does_not_divide)
{
    struct model model;
    struct program *rest = NULL;
    struct ready whole = {0}, last = {0};
    float x[ROWS * 3], y[ROWS * 2], expected[ROWS * 2];
    uint32_t order[ROWS] = {7, 2, 9, 0, 4, 1, 8, 3, 6, 5};
    fill_random(x, ROWS * 3, 1);
    for (int i = 0; i < ROWS * 2; i++)
        y[i] = expected[i] = NAN;
    const char *names[] = {"x", "y"};
    int64_t rows[] = {ROWS, ROWS};
    bool ok = model_open(&model, "input 3\ndense 5\ntanh\ndense 2\nloss mse\n",
                         (struct compile_options){.batch = 4, .use = USE_INFERENCE}) &&
              CHECK_OK(network_compile(model.network, &model.params,
                                       &(struct compile_options){.batch = 2}, &rest)) &&
              ready_open(&whole, rig, &model.params, model.program) &&
              ready_on(&last, rig, whole.instance, rest, NULL);
    if (ok) {
        ready_bind(&whole, model.program, names, (void *[]){x, y}, rows, 2, order, ROWS, 0);
        ready_run(&whole, PARTS_ALL, 0, 2);
        ready_bind(&last, rest, names, (void *[]){x, y}, rows, 2, order, ROWS, 8);
        ready_run(&last, PARTS_ALL, 0, 1);
        /* the same rows in order, two at a time */
        ready_bind(&last, rest, names, (void *[]){x, expected}, rows, 2, NULL, 0, 0);
        ready_run(&last, PARTS_ALL, 0, ROWS / 2);
        CHECK(difference(y, expected, ROWS * 2) < 1e-6);
    }
    ready_close(&last);
    ready_close(&whole);
    program_free(rest);
    model_close(&model);
}

/* Ten steps in one call, one by one, and with a download, a new instance and a resume between: the
 * same bits, dropout included. */
ON_BACKENDS(many_steps_are_the_same_bits)
{
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    struct model model;
    struct params at_once, one_by_one, resumed;
    if (!model_open(&model, DROPOUT_NET, (struct compile_options){.batch = 4, .use = USE_TRAINING}))
        return;
    copy_params(&at_once, &model.params);
    copy_params(&one_by_one, &model.params);
    copy_params(&resumed, &model.params);

    struct ready ready;
    if (ready_open(&ready, rig, &at_once, model.program) &&
        bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, 0)) {
        ready_run(&ready, PARTS_ALL, 0, 10);
        CHECK_OK(rig->backend->download(ready.instance, &at_once));
    }
    ready_close(&ready);
    if (ready_open(&ready, rig, &one_by_one, model.program) &&
        bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, 0)) {
        for (int i = 0; i < 10; i++)
            ready_run(&ready, PARTS_ALL, 0, 1);
        CHECK_OK(rig->backend->download(ready.instance, &one_by_one));
    }
    ready_close(&ready);
    for (int half = 0; half < 2; half++) {
        if (ready_open(&ready, rig, &resumed, model.program) &&
            bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, (uint64_t)half * 20)) {
            ready_run(&ready, PARTS_ALL, 0, 5);
            CHECK_OK(rig->backend->download(ready.instance, &resumed));
        }
        ready_close(&ready);
    }
    CHECK_EQUAL_INT(at_once.control.step, 10);
    CHECK(same_params(&at_once, &one_by_one));
    CHECK(same_params(&at_once, &resumed));
    CHECK(!same_params(&at_once, &model.params));
    params_free(&at_once);
    params_free(&one_by_one);
    params_free(&resumed);
    model_close(&model);
}

/* Every backend ends where the reference does, at a small and at a large rate. */
ON_BACKENDS(training_agrees_with_the_reference)
{
    static const char *const nets[] = {
        "input 3\ndense 16\nsigmoid\ndense 33\ntanh\ndense 2\nsigmoid\nloss mse\n",
        DROPOUT_NET,
        /* no bias before batch-norm, which takes it out again: its gradient is rounding noise */
        "input 3\ndense 8 bias=0\nbatch_norm\nrelu\ndense 2\nloss mse\n",
        "input 3x1\nlstm 5 output=last\ndense 2\nloss mse\n",
    };
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    struct rig reference;
    CHECK(rig_open(&reference, "ref"));
    for (size_t i = 0; !check_skipped && i < 2 * sizeof nets / sizeof *nets; i++) {
        struct model model;
        struct params results[2];
        if (!model_open(&model, nets[i / 2],
                        (struct compile_options){.batch = 4, .use = USE_TRAINING}))
            continue;
        model.params.control.rate = i % 2 ? 0.5 : 1e-3;
        for (int side = 0; side < 2; side++) {
            struct ready ready;
            struct rig *on = side ? &reference : rig;
            copy_params(&results[side], &model.params);
            if (ready_open(&ready, on, &results[side], model.program) &&
                bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, 0)) {
                ready_run(&ready, PARTS_ALL, 0, 50);
                CHECK_OK(on->backend->download(ready.instance, &results[side]));
            }
            ready_close(&ready);
        }
        double error = params_difference(&results[0], &results[1], ROLE_PARAM);
        if (!CHECK(error < 1e-4) && !check_skipped)
            printf("    network %zu, rate %g: parameters differ by %g\n", i / 2,
                   model.params.control.rate, error);
        CHECK(params_difference(&results[0], &results[1], ROLE_STATISTIC) < 1e-4);
        params_free(&results[0]);
        params_free(&results[1]);
        model_close(&model);
    }
    rig_close(&reference);
}

/* Training moves the running mean towards the data's; inference uses it; it is no parameter. */
ON_BACKENDS(batch_norm_keeps_statistics)
{
    struct model model;
    struct ready ready = {0};
    float x[ROWS], target[ROWS];
    double mean = 0, variance = 0;
    fill_random(x, ROWS, 1);
    fill_random(target, ROWS, 2);
    for (int i = 0; i < ROWS; i++)
        mean += (double)x[i] / ROWS;
    for (int i = 0; i < ROWS; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (ROWS - 1); /* unbiased */
    if (model_open(&model, "input 1\nbatch_norm\ndense 1\nloss mse\n",
                   (struct compile_options){.batch = ROWS, .use = USE_TRAINING}) &&
        ready_open(&ready, rig, &model.params, model.program) &&
        bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, 0)) {
        ready_run(&ready, PARTS_ALL, 0, 100);
        CHECK_OK(rig->backend->download(ready.instance, &model.params));
        const struct params *params = &model.params;
        const float *running = params_data(params, params_find(params, "batch_norm1.mean"));
        CHECK_NEAR(*running, mean, 1e-4);
        running = params_data(params, params_find(params, "batch_norm1.variance"));
        CHECK_NEAR(*running, variance, 1e-4);
        CHECK_EQUAL_INT(params_count(params), 4);
    }
    ready_close(&ready);
    model_close(&model);
}

/* A sample of length 3 in a batch of 5 steps gives what it gives alone in a batch of 3 steps. */
ON_BACKENDS(lstm_with_lengths)
{
    enum { TIME = 5, SHORT = 3, FEATURES = 2, UNITS = 4 };
    struct model padded, exact;
    struct ready a = {0}, b = {0};
    float x[2 * TIME * FEATURES], y[2 * UNITS] = {0}, alone[UNITS] = {0};
    int32_t lengths[2] = {SHORT, 0};
    fill_random(x, 2 * TIME * FEATURES, 5);
    bool ok = model_open(&padded, "input 5x2\nlstm 4 output=last\nloss mse\n",
                         (struct compile_options){.batch = 2, .lengths = true});
    ok &= model_open(&exact, "input 3x2\nlstm 4 output=last\nloss mse\n",
                     (struct compile_options){.batch = 1});
    if (ok && ready_open(&a, rig, &padded.params, padded.program) &&
        ready_open(&b, rig, &exact.params, exact.program)) {
        ready_bind(&a, padded.program, (const char *[]){"x", "lengths", "y"},
                   (void *[]){x, lengths, y}, (int64_t[]){2, 2, 2}, 3, NULL, 0, 0);
        ready_bind(&b, exact.program, (const char *[]){"x", "y"}, (void *[]){x, alone},
                   (int64_t[]){1, 1}, 2, NULL, 0, 0);
        ready_run(&a, PARTS_ALL, 0, 1);
        ready_run(&b, PARTS_ALL, 0, 1);
        CHECK(difference(y, alone, UNITS) < 1e-6);
        for (int i = UNITS; i < 2 * UNITS; i++)
            CHECK(y[i] == 0); /* no step at all: the state it began with */
    }
    ready_close(&a);
    ready_close(&b);
    model_close(&padded);
    model_close(&exact);
}

/* A GAN: the discriminator's step and the generator's step are two programs over one instance; each
 * updates its own side and only reads the other. */
struct gan {
    struct network *generator, *discriminator;
    struct params params;
    struct program *learn[2]; /* 0: discriminator, 1: generator */
};

static bool is_side(void *context, int32_t entry)
{
    void **pair = context; /* params, prefix */
    const struct params *params = pair[0];
    return text_starts(params->entries[entry].name, pair[1]);
}

static int32_t emit_judged(struct draft *draft, const struct gan *gan, int32_t x, int32_t rows,
                           float truth, enum loss_kind loss, struct grad_seed *seed)
{
    int32_t batch = draft->program->batch;
    int32_t y =
        network_emit(gan->discriminator, draft, "discriminator.", PHASE_TRAINING, rows, x, -1);
    int32_t target = draft_real(draft, "truth", SHAPE(batch, 1));
    draft_op(draft, OP_fill, NOTHING, OUT(target))->attr.fill.value = truth;
    struct loss_tensors tensors = loss_emit(draft, loss, y, target, 0);
    draft_part(draft, PART_BACKWARD);
    *seed = loss_emit_seed(draft, loss, y, target, &tensors, 1);
    draft_part(draft, PART_FORWARD);
    return tensors.loss;
}

static bool gan_program(struct gan *gan, bool generator, struct program **out)
{
    enum { BATCH = 4, NOISE = 3 };
    struct draft draft;
    struct grad_seed seeds[2];
    int32_t seed_count = 0;
    if (!CHECK_OK(program_begin(&draft, &gan->params, "gan", BATCH, DTYPE_F32)))
        return false;
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(BATCH));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    int32_t real = draft_tensor(&draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(BATCH, 2));
    if (!generator)
        draft_op(&draft, OP_load, IN(rows), OUT(real));
    draft_part(&draft, PART_FORWARD);
    int32_t noise = draft_real(&draft, "noise", SHAPE(BATCH, NOISE));
    struct op *random = draft_op(&draft, OP_random, IN(rows), OUT(noise));
    random->attr.random.distribution = DISTRIBUTION_NORMAL;
    random->attr.random.stream = random->id;
    int32_t fake =
        network_emit(gan->generator, &draft, "generator.", PHASE_TRAINING, rows, noise, -1);
    emit_judged(&draft, gan, fake, rows, generator ? 1 : 0, LOSS_BINARY_CROSS_ENTROPY,
                &seeds[seed_count++]);
    if (!generator)
        emit_judged(&draft, gan, real, rows, 1, LOSS_BINARY_CROSS_ENTROPY, &seeds[seed_count++]);
    char *prefix = generator ? "generator." : "discriminator.";
    void *pair[] = {&gan->params, prefix};
    grad_emit(&draft,
              &(struct grad_options){
                  .seeds = seeds, .seed_count = seed_count, .wanted = is_side, .context = pair});
    update_emit(&draft, &(struct update_options){.prefix = prefix, .rate = 1});
    return CHECK_OK(program_finish(&draft, out));
}

static bool gan_open(struct gan *gan)
{
    static const char g[] = "input 3\ndense 8\ntanh\ndense 2\n";
    static const char d[] = "input 2\ndense 8\nbatch_norm\ntanh\ndense 1\n";
    *gan = (struct gan){0};
    params_init(&gan->params, DTYPE_F32);
    bool ok = CHECK_OK(network_parse("generator", g, sizeof g - 1, &gan->generator)) &&
              CHECK_OK(network_parse("discriminator", d, sizeof d - 1, &gan->discriminator)) &&
              gan_program(gan, false, &gan->learn[0]) && gan_program(gan, true, &gan->learn[1]);
    params_fill(&gan->params, 5);
    return ok;
}

/* How far the parameters with this prefix are from where they began. */
static double moved(const struct params *now, const struct params *then, const char *prefix)
{
    double most = 0;
    for (int32_t i = 0; i < now->count; i++)
        if (text_starts(now->entries[i].name, prefix) && now->entries[i].role == ROLE_PARAM)
            most = fmax(most, difference(params_data(now, i), params_data(then, i),
                                         shape_count(&now->entries[i].shape)));
    return most;
}

ON_BACKENDS(gan_has_two_programs_on_one_instance)
{
    struct gan gan;
    struct ready sides[2] = {{0}};
    struct params start = {0};
    float x[ROWS * 2];
    fill_random(x, ROWS * 2, 3);
    if (gan_open(&gan) && ready_open(&sides[0], rig, &gan.params, gan.learn[0]) &&
        ready_on(&sides[1], rig, sides[0].instance, gan.learn[1], NULL)) {
        copy_params(&start, &gan.params);
        ready_bind(&sides[0], gan.learn[0], (const char *[]){"x"}, (void *[]){x}, (int64_t[]){ROWS},
                   1, NULL, 0, 0);
        ready_bind(&sides[1], gan.learn[1], NULL, NULL, NULL, 0, NULL, 0, 0);
        ready_run(&sides[0], PARTS_ALL, 0, 1);
        CHECK_OK(rig->backend->download(sides[0].instance, &gan.params));
        CHECK(moved(&gan.params, &start, "discriminator.") > 1e-5);
        CHECK(moved(&gan.params, &start, "generator.") == 0);
        struct params before;
        copy_params(&before, &gan.params);
        ready_run(&sides[1], PARTS_ALL, 0, 1);
        CHECK_OK(rig->backend->download(sides[0].instance, &gan.params));
        CHECK(moved(&gan.params, &before, "discriminator.") == 0);
        CHECK(moved(&gan.params, &before, "generator.") > 1e-6);
        CHECK_EQUAL_INT(gan.params.control.step, 2);
        params_free(&before);
    }
    ready_close(&sides[1]);
    ready_close(&sides[0]);
    params_free(&start);
    program_free(gan.learn[0]);
    program_free(gan.learn[1]);
    params_free(&gan.params);
    network_free(gan.generator);
    network_free(gan.discriminator);
}

/* A restricted Boltzmann machine by contrastive divergence: the gradient is two outer products that
 * no autodiff made. */
static bool rbm_program(struct params *params, int32_t batch, struct program **out)
{
    enum { VISIBLE = 6, HIDDEN = 4 };
    struct draft draft;
    int32_t entries[3];
    struct init init = {INIT_NORMAL, 0.1f}, zero = {.kind = INIT_ZERO};
    CHECK_OK(params_declare(params, "weight", ROLE_PARAM, DTYPE_F32, SHAPE(VISIBLE, HIDDEN), init,
                            &entries[0]));
    CHECK_OK(
        params_declare(params, "hidden", ROLE_PARAM, DTYPE_F32, SHAPE(HIDDEN), zero, &entries[1]));
    CHECK_OK(params_declare(params, "visible", ROLE_PARAM, DTYPE_F32, SHAPE(VISIBLE), zero,
                            &entries[2]));
    if (!CHECK_OK(program_begin(&draft, params, "rbm", batch, DTYPE_F32)))
        return false;
    int32_t w = draft_kept(&draft, entries[0]), hidden = draft_kept(&draft, entries[1]);
    int32_t visible = draft_kept(&draft, entries[2]);
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(batch));
    int32_t v0 = draft_tensor(&draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(batch, VISIBLE));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    draft_op(&draft, OP_load, IN(rows), OUT(v0));
    draft_part(&draft, PART_FORWARD);
    int32_t p0 = draft_real(&draft, "p0", SHAPE(batch, HIDDEN));
    int32_t h0 = draft_real(&draft, "h0", SHAPE(batch, HIDDEN));
    int32_t v1 = draft_real(&draft, "v1", SHAPE(batch, VISIBLE));
    int32_t p1 = draft_real(&draft, "p1", SHAPE(batch, HIDDEN));
    int32_t loss = draft_tensor(&draft, ROLE_OUTPUT, DTYPE_F32, "loss", SHAPE(1));
    draft_op(&draft, OP_dense, IN(v0, w, hidden), OUT(p0))->attr.dense.activation =
        ACTIVATION_SIGMOID;
    struct op *draw = draft_op(&draft, OP_bernoulli, IN(p0, rows), OUT(h0));
    draw->attr.bernoulli.stream = draw->id;
    draft_op(&draft, OP_dense_t, IN(h0, w, visible), OUT(v1))->attr.dense_t.activation =
        ACTIVATION_SIGMOID;
    draft_op(&draft, OP_dense, IN(v1, w, hidden), OUT(p1))->attr.dense.activation =
        ACTIVATION_SIGMOID;
    draft_op(&draft, OP_mse, IN(v1, v0), OUT(loss));
    draft_op(&draft, OP_store, IN(loss, -1), NOTHING);
    draft_part(&draft, PART_BACKWARD);
    const struct {
        int32_t v, p;
        float sign;
        int32_t accumulate;
    } phases[] = {{v0, p0, -1, 0}, {v1, p1, 1, 1}};
    for (int i = 0; i < 2; i++) {
        float scale = phases[i].sign / (float)batch;
        struct op *op =
            draft_op(&draft, OP_outer, IN(phases[i].v, phases[i].p), OUT(draft_grad(&draft, w)));
        op->attr.outer.scale = scale;
        op->attr.outer.accumulate = phases[i].accumulate;
        op = draft_op(&draft, OP_sum_rows, IN(phases[i].p), OUT(draft_grad(&draft, hidden)));
        op->attr.sum_rows.scale = scale;
        op->attr.sum_rows.accumulate = phases[i].accumulate;
        op = draft_op(&draft, OP_sum_rows, IN(phases[i].v), OUT(draft_grad(&draft, visible)));
        op->attr.sum_rows.scale = scale;
        op->attr.sum_rows.accumulate = phases[i].accumulate;
    }
    update_emit(&draft, &(struct update_options){.prefix = "", .rate = 1});
    return CHECK_OK(program_finish(&draft, out));
}

ON_BACKENDS(rbm_learns_by_contrastive_divergence)
{
    enum { VISIBLE = 6, SAMPLES = 8, STEPS = 2000 };
    struct params params;
    struct program *program = NULL;
    struct ready ready = {0};
    static float losses[STEPS];
    float x[SAMPLES * VISIBLE]; /* the first half on, or the second half on */
    for (int i = 0; i < SAMPLES * VISIBLE; i++)
        x[i] = (i % VISIBLE < VISIBLE / 2) == (i / VISIBLE % 2 == 0) ? 1 : 0;
    params_init(&params, DTYPE_F32);
    if (rbm_program(&params, SAMPLES, &program)) {
        params_fill(&params, 3);
        params.control.rate = 0.5;
        if (ready_open(&ready, rig, &params, program) &&
            ready_bind(&ready, program, (const char *[]){"x", "loss"}, (void *[]){x, losses},
                       (int64_t[]){SAMPLES, STEPS}, 2, NULL, 0, 0)) {
            ready_run(&ready, PARTS_ALL, 0, STEPS);
            CHECK(losses[0] > 0.2f);
            CHECK(losses[STEPS - 1] < 0.02f);
        }
    }
    ready_close(&ready);
    program_free(program);
    params_free(&params);
}

/* Four batches of 2 with one update are one batch of 8. */
ON_BACKENDS(accumulation_over_four_batches)
{
    static const char net[] = "input 3\ndense 7\ntanh\ndense 2\nloss mse\n";
    struct model small, large;
    struct ready four = {0}, one = {0};
    float x[8 * 3], target[8 * 2];
    fill_random(x, 8 * 3, 1);
    fill_random(target, 8 * 2, 2);
    bool ok = model_open(
        &small, net, (struct compile_options){.batch = 2, .use = USE_TRAINING, .accumulate = 4});
    ok &= model_open(&large, net, (struct compile_options){.batch = 8, .use = USE_TRAINING});
    if (ok && ready_open(&four, rig, &small.params, small.program) &&
        ready_open(&one, rig, &large.params, large.program) &&
        bind_xt(&four, small.program, x, target, 8, NULL, 0, 0) &&
        bind_xt(&one, large.program, x, target, 8, NULL, 0, 0)) {
        unsigned learn = PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD) | PART_BIT(PART_BACKWARD);
        for (int step = 0; step < 3; step++) {
            ready_run(&four, learn, 0, 4);
            ready_run(&four, PART_BIT(PART_UPDATE), 0, 1);
            ready_run(&one, PARTS_ALL, 0, 1);
        }
        CHECK_OK(rig->backend->download(four.instance, &small.params));
        CHECK_OK(rig->backend->download(one.instance, &large.params));
        CHECK(params_difference(&small.params, &large.params, ROLE_PARAM) < 1e-5);
        CHECK_EQUAL_INT(small.params.control.step, 3);
    }
    ready_close(&four);
    ready_close(&one);
    model_close(&small);
    model_close(&large);
}

/* Two micro-batches in flight: both forward, then both backward, each in its slot. */
ON_BACKENDS(slots_keep_micro_batches_apart)
{
    static const char net[] = "input 3\ndense 7\ntanh\ndense 2\nloss mse\n";
    struct model model;
    struct ready slots = {0};
    struct params turns = {0};
    struct instance *instance = NULL;
    float x[4 * 3], target[4 * 2];
    fill_random(x, 4 * 3, 1);
    fill_random(target, 4 * 2, 2);
    unsigned before = PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD);
    if (!model_open(&model, net,
                    (struct compile_options){.batch = 2, .use = USE_TRAINING, .accumulate = 2}))
        return;
    copy_params(&turns, &model.params);
    struct ready plain;
    if (ready_open(&plain, rig, &turns, model.program) &&
        bind_xt(&plain, model.program, x, target, 4, NULL, 0, 0)) {
        ready_run(&plain, before | PART_BIT(PART_BACKWARD), 0, 2);
        ready_run(&plain, PART_BIT(PART_UPDATE), 0, 1);
        CHECK_OK(rig->backend->download(plain.instance, &turns));
    }
    ready_close(&plain);
    if (CHECK_OK(rig->backend->attach(rig->device, &model.params, &instance)) &&
        ready_on(&slots, rig, instance, model.program, &(struct plan_options){.slots = 2}) &&
        bind_xt(&slots, model.program, x, target, 4, NULL, 0, 0)) {
        ready_run(&slots, before, 0, 1);
        ready_run(&slots, before, 1, 1);
        ready_run(&slots, PART_BIT(PART_BACKWARD), 0, 1);
        ready_run(&slots, PART_BIT(PART_BACKWARD), 1, 1);
        ready_run(&slots, PART_BIT(PART_UPDATE), 0, 1);
        CHECK_OK(rig->backend->download(instance, &model.params));
        CHECK(same_params(&turns, &model.params));
        CHECK_STATUS(STATUS_INPUT, rig->backend->run(slots.plan, before, 2, 1));
    }
    ready_close(&slots);
    if (instance)
        rig->backend->detach(instance);
    params_free(&turns);
    model_close(&model);
}

/* The norm of all gradients of a plan. */
static double grad_norm(struct ready *ready, const struct program *program)
{
    double sum = 0;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        float values[256];
        if (program->tensors[t].role != ROLE_GRAD)
            continue;
        CHECK_OK(ready->backend->fetch(ready->plan, t, values));
        for (int64_t i = 0; i < shape_count(&program->tensors[t].shape); i++)
            sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum);
}

static int count_ops(const struct program *program, enum op_kind kind)
{
    int count = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == kind;
    return count;
}

/* Clipping reads the gradients, so fusion leaves them; without it they vanish into the update. */
ON_BACKENDS(clipping_by_norm_keeps_gradients)
{
    static const char net[] = "input 3\ndense 7\ntanh\ndense 2\nloss mse\n";
    struct model clipped, plain;
    struct program *fused = NULL, *merged = NULL;
    struct ready ready = {0};
    float x[4 * 3], target[4 * 2];
    fill_random(x, 4 * 3, 1);
    for (int i = 0; i < 4 * 2; i++)
        target[i] = 50;
    bool ok = model_open(
        &clipped, net,
        (struct compile_options){.batch = 4, .use = USE_TRAINING, .optimiser = "sgd:clip=0.5"});
    ok &= model_open(&plain, net, (struct compile_options){.batch = 4, .use = USE_TRAINING});
    if (ok && CHECK_OK(fuse(clipped.program, rig->backend, rig->device, &fused)) &&
        CHECK_OK(fuse(plain.program, rig->backend, rig->device, &merged)) &&
        ready_open(&ready, rig, &clipped.params, fused) &&
        bind_xt(&ready, fused, x, target, 4, NULL, 0, 0)) {
        CHECK_EQUAL_INT(count_ops(fused, OP_outer), 2);
        CHECK_EQUAL_INT(count_ops(fused, OP_dense_sgd), 0);
        CHECK_EQUAL_INT(count_ops(fused, OP_activate), 0); /* dense + activation still merge */
        CHECK_EQUAL_INT(count_ops(merged, OP_outer), 0);
        CHECK_EQUAL_INT(count_ops(merged, OP_dense_sgd), 2);
        CHECK_EQUAL_INT(merged->role_bytes[ROLE_GRAD], 0);
        ready_run(&ready, PARTS_ALL & ~PART_BIT(PART_UPDATE), 0, 1);
        CHECK(grad_norm(&ready, fused) > 5);
        ready_run(&ready, PART_BIT(PART_UPDATE), 0, 1);
        CHECK_NEAR(grad_norm(&ready, fused), 0.5, 1e-5);
    }
    ready_close(&ready);
    program_free(fused);
    program_free(merged);
    model_close(&clipped);
    model_close(&plain);
}

/* Fused and unfused are the same computation. */
ON_BACKENDS(fusion_changes_nothing_but_speed)
{
    struct model model;
    struct program *fused = NULL;
    struct params results[2];
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (!model_open(&model, DROPOUT_NET, (struct compile_options){.batch = 4, .use = USE_TRAINING}))
        return;
    CHECK_OK(fuse(model.program, rig->backend, rig->device, &fused));
    for (int side = 0; side < 2; side++) {
        struct ready ready;
        const struct program *program = side ? fused : model.program;
        copy_params(&results[side], &model.params);
        if (ready_open(&ready, rig, &results[side], program) &&
            bind_xt(&ready, program, x, target, ROWS, NULL, 0, 0)) {
            ready_run(&ready, PARTS_ALL, 0, 20);
            CHECK_OK(rig->backend->download(ready.instance, &results[side]));
        }
        ready_close(&ready);
    }
    CHECK(fused->op_count < model.program->op_count);
    CHECK(params_difference(&results[0], &results[1], ROLE_PARAM) < 1e-6);
    params_free(&results[0]);
    params_free(&results[1]);
    program_free(fused);
    model_close(&model);
}

/* Events: every op once a step, in order, with a kernel's name and a time that does not run
 * backwards; and parts. */
struct seen {
    int32_t count, out_of_order;
    uint64_t last_end;
};

static void see(void *context, const struct event *event)
{
    struct seen *seen = context;
    seen->count++;
    seen->out_of_order += event->start_ns > event->end_ns || event->start_ns < seen->last_end ||
                          (event->op >= 0 && !*event->kernel);
    seen->last_end = event->end_ns;
}

ON_BACKENDS(ops_and_parts_are_observed)
{
    struct model model;
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (!model_open(&model, DROPOUT_NET, (struct compile_options){.batch = 4, .use = USE_TRAINING}))
        return;
    struct instance *instance = NULL;
    CHECK_OK(rig->backend->attach(rig->device, &model.params, &instance));
    const enum observe levels[] = {OBSERVE_OPS, OBSERVE_PARTS};
    for (int i = 0; i < 2; i++) {
        struct seen seen = {0};
        struct ready ready;
        struct plan_options options = {
            .observer = {.level = levels[i], .event = see, .context = &seen}};
        if (ready_on(&ready, rig, instance, model.program, &options) &&
            bind_xt(&ready, model.program, x, target, ROWS, NULL, 0, 0)) {
            ready_run(&ready, PARTS_ALL, 0, 3);
            CHECK_EQUAL_INT(seen.count, 3 * (i ? PART_COUNT : model.program->op_count));
            CHECK_EQUAL_INT(seen.out_of_order, 0);
        }
        ready_close(&ready);
    }
    rig->backend->detach(instance);
    model_close(&model);
}

/* What a backend must refuse, with a reason. */
ON_BACKENDS(mistakes_are_refused)
{
    struct model model;
    struct ready ready = {0};
    float x[ROWS * 3], target[ROWS * 2];
    uint32_t order[] = {0, ROWS};
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (model_open(&model, "input 3\ndense 2\nloss mse\n",
                   (struct compile_options){.batch = 4, .use = USE_TRAINING}) &&
        ready_open(&ready, rig, &model.params, model.program)) {
        const struct program *program = model.program;
        int32_t tensor = program_find(program, ROLE_INPUT, "x");
        struct view view = {.tensor = tensor, .data = x, .rows = ROWS};
        CHECK_STATUS(STATUS_INPUT, rig->backend->run(ready.plan, PARTS_ALL, 0, 1));
        CHECK_MESSAGE("'x'");
        struct binding past = {.views = &view, .view_count = 1, .order = order, .order_count = 2};
        CHECK_STATUS(STATUS_INPUT, rig->backend->bind(ready.plan, &past));
        CHECK_MESSAGE("row 10");
        struct view weight = {.tensor = program->tensor_count, .data = x, .rows = ROWS};
        CHECK_STATUS(
            STATUS_INPUT,
            rig->backend->bind(ready.plan, &(struct binding){.views = &weight, .view_count = 1}));
        struct params more;
        int32_t entry;
        copy_params(&more, &model.params);
        CHECK_OK(params_declare(&more, "late", ROLE_PARAM, DTYPE_F32, SHAPE(2), (struct init){0},
                                &entry));
        CHECK_STATUS(STATUS_INPUT, rig->backend->upload(ready.instance, &more));
        params_free(&more);
    }
    ready_close(&ready);
    model_close(&model);
}

CHECK_MAIN
