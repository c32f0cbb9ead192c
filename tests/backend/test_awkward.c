/* test_awkward.c: data and networks that bend a contract, on every backend: rows that the batch
 * does not divide, dropout and resuming, statistics, sequences of unequal length. */
#include "compiled.h"

/* 10 rows in batches of 4: two of 4 and one of 2, two programs on one instance, each row once. */
ON_BACKENDS(batch_that_does_not_divide)
{
    struct compiled model;
    struct program *rest = NULL;
    struct ready whole = {0}, last = {0};
    float x[ROWS * 3], y[ROWS * 2], expected[ROWS * 2];
    uint32_t order[ROWS] = {7, 2, 9, 0, 4, 1, 8, 3, 6, 5};
    fill_random(x, ROWS * 3, 1);
    for (int i = 0; i < ROWS * 2; i++)
        y[i] = expected[i] = NAN;
    const char *names[] = {"x", "y"};
    int64_t rows[] = {ROWS, ROWS};
    bool ok = compiled_open(&model, "input 3\ndense 5\ntanh\ndense 2\nloss mse\n",
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
    compiled_close(&model);
}

/* Answers to 23 batches, each with rows of its own: in one call they are the same bits as one by
 * one, and those of the last batch are what is fetched. */
ON_BACKENDS(many_answers_are_the_same_bits)
{
    enum { STEPS = 23, BATCH = 5, WIDE = 3, SAMPLES = STEPS * BATCH, LAST = (STEPS - 1) * BATCH };
    static float x[SAMPLES * WIDE], y[2][SAMPLES * 2], last[BATCH * 2];
    struct compiled model;
    struct ready ready = {0};
    fill_random(x, SAMPLES * WIDE, 1);
    if (compiled_open(&model, "input 3\ndense 300\ntanh\ndense 300\ntanh\ndense 2\nloss mse\n",
                      (struct compile_options){.batch = BATCH, .use = USE_INFERENCE}) &&
        ready_open(&ready, rig, &model.params, model.program)) {
        for (int way = 0; way < 2; way++) {
            memset(y[way], 0xff, sizeof y[way]);
            ready_bind(&ready, model.program, (const char *[]){"x", "y"}, (void *[]){x, y[way]},
                       (int64_t[]){SAMPLES, SAMPLES}, 2, NULL, 0, 0);
            for (int step = 0; step < (way ? 1 : STEPS); step++)
                ready_run(&ready, PARTS_ALL, 0, way ? STEPS : 1);
            CHECK_OK(rig->backend->fetch(ready.plan, program_find(model.program, ROLE_OUTPUT, "y"),
                                         last));
            CHECK(!memcmp(last, y[way] + LAST * 2, sizeof last));
        }
        CHECK(difference(y[1], y[0], SAMPLES * 2) < HUGE_VAL);
        CHECK(!memcmp(y[0], y[1], sizeof *y));
    }
    ready_close(&ready);
    compiled_close(&model);
}

/* Ten steps in one call, one by one, and with a download, a new instance and a resume between: the
 * same bits, dropout included. */
ON_BACKENDS(many_steps_are_the_same_bits)
{
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    struct compiled model;
    struct params at_once, one_by_one, resumed;
    if (!compiled_open(&model, DROPOUT_NET,
                       (struct compile_options){.batch = 4, .use = USE_TRAINING}))
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
    compiled_close(&model);
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
        struct compiled model;
        struct params results[2];
        if (!compiled_open(&model, nets[i / 2],
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
        compiled_close(&model);
    }
    rig_close(&reference);
}

/* Training moves the running mean towards the data's; inference uses it; it is no parameter. */
ON_BACKENDS(batch_norm_keeps_statistics)
{
    struct compiled model;
    struct ready ready = {0};
    float x[ROWS], target[ROWS];
    double mean = 0, variance = 0;
    fill_random(x, ROWS, 1);
    fill_random(target, ROWS, 2);
    for (int i = 0; i < ROWS; i++)
        mean += (double)x[i] / ROWS;
    for (int i = 0; i < ROWS; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (ROWS - 1); /* unbiased */
    if (compiled_open(&model, "input 1\nbatch_norm\ndense 1\nloss mse\n",
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
    compiled_close(&model);
}

/* A sample of length 3 in a batch of 5 steps gives what it gives alone in a batch of 3 steps. */
ON_BACKENDS(lstm_with_lengths)
{
    enum { TIME = 5, SHORT = 3, FEATURES = 2, UNITS = 4 };
    struct compiled padded, exact;
    struct ready a = {0}, b = {0};
    float x[2 * TIME * FEATURES], y[2 * UNITS] = {0}, alone[UNITS] = {0};
    int32_t lengths[2] = {SHORT, 0};
    fill_random(x, 2 * TIME * FEATURES, 5);
    bool ok = compiled_open(&padded, "input 5x2\nlstm 4 output=last\nloss mse\n",
                            (struct compile_options){.batch = 2, .lengths = true});
    ok &= compiled_open(&exact, "input 3x2\nlstm 4 output=last\nloss mse\n",
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
    compiled_close(&padded);
    compiled_close(&exact);
}

CHECK_MAIN
