/* test_plan.c: what a plan does beside running all its steps, on every backend: parts apart,
 * accumulation, slots, clipping, fusion, observation, handing out tensors. */
#include "compiled.h"
#include "core/pass/fuse.h"

/* Four batches of 2 with one update are one batch of 8. */
ON_BACKENDS(accumulation_over_four_batches)
{
    static const char net[] = "input 3\ndense 7\ntanh\ndense 2\nloss mse\n";
    struct compiled small, large;
    struct ready four = {0}, one = {0};
    float x[8 * 3], target[8 * 2];
    fill_random(x, 8 * 3, 1);
    fill_random(target, 8 * 2, 2);
    bool ok = compiled_open(
        &small, net, (struct compile_options){.batch = 2, .use = USE_TRAINING, .accumulate = 4});
    ok &= compiled_open(&large, net, (struct compile_options){.batch = 8, .use = USE_TRAINING});
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
    compiled_close(&small);
    compiled_close(&large);
}

/* A plan of one slot may put gradients where activations were; one of two slots keeps them beside.
 */
ON_BACKENDS(where_gradients_lie_changes_nothing)
{
    static const char net[] =
        "input 2x9x9\nconv 7 3 pad=1\nbatch_norm\nrelu\na = conv 40 3 stride=2\n"
        "relu\nb = conv 40 1\nadd < a, b\nglobal_average_pool\ndense 67\n"
        "tanh\ndense 3\nloss mse\noptimiser momentum clip=0.1\n";
    enum { SAMPLES = 3, STEPS = 4 };
    struct compiled model;
    struct params after[2];
    float x[SAMPLES * 2 * 9 * 9], target[SAMPLES * 3];
    fill_random(x, SAMPLES * 2 * 9 * 9, 1);
    fill_random(target, SAMPLES * 3, 2);
    if (!compiled_open(&model, net,
                       (struct compile_options){.batch = SAMPLES, .use = USE_TRAINING}))
        return;
    for (int slots = 1; slots <= 2; slots++) {
        struct ready ready = {0};
        struct instance *instance = NULL;
        copy_params(&after[slots - 1], &model.params);
        if (CHECK_OK(rig->backend->attach(rig->device, &model.params, &instance)) &&
            ready_on(&ready, rig, instance, model.program,
                     &(struct plan_options){.slots = slots}) &&
            bind_xt(&ready, model.program, x, target, SAMPLES, NULL, 0, 0) &&
            ready_run(&ready, PARTS_ALL, 0, STEPS))
            CHECK_OK(rig->backend->download(instance, &after[slots - 1]));
        ready_close(&ready);
        if (instance)
            rig->backend->detach(instance);
    }
    CHECK(same_params(&after[0], &after[1]));
    params_free(&after[0]);
    params_free(&after[1]);
    compiled_close(&model);
}

/* Two micro-batches in flight: both forward, then both backward, each in its slot. */
ON_BACKENDS(slots_keep_micro_batches_apart)
{
    static const char net[] = "input 3\ndense 7\ntanh\ndense 2\nloss mse\n";
    struct compiled model;
    struct ready slots = {0};
    struct params turns = {0};
    struct instance *instance = NULL;
    float x[4 * 3], target[4 * 2];
    fill_random(x, 4 * 3, 1);
    fill_random(target, 4 * 2, 2);
    unsigned before = PART_BIT(PART_PREPARE) | PART_BIT(PART_FORWARD);
    if (!compiled_open(&model, net,
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
    compiled_close(&model);
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
    struct compiled clipped, plain;
    struct program *fused = NULL, *merged = NULL;
    struct ready ready = {0};
    float x[4 * 3], target[4 * 2];
    fill_random(x, 4 * 3, 1);
    for (int i = 0; i < 4 * 2; i++)
        target[i] = 50;
    bool ok = compiled_open(
        &clipped, net,
        (struct compile_options){.batch = 4, .use = USE_TRAINING, .optimiser = "sgd:clip=0.5"});
    ok &= compiled_open(&plain, net, (struct compile_options){.batch = 4, .use = USE_TRAINING});
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
    compiled_close(&clipped);
    compiled_close(&plain);
}

/* Fused and unfused are the same computation. */
ON_BACKENDS(fusion_changes_nothing_but_speed)
{
    struct compiled model;
    struct program *fused = NULL;
    struct params results[2];
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (!compiled_open(&model, DROPOUT_NET,
                       (struct compile_options){.batch = 4, .use = USE_TRAINING}))
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
    compiled_close(&model);
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
    struct compiled model;
    float x[ROWS * 3], target[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (!compiled_open(&model, DROPOUT_NET,
                       (struct compile_options){.batch = 4, .use = USE_TRAINING}))
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
    compiled_close(&model);
}

/* A plan that is bound again, to other arrays, rows, orders and starts, gives what one does that is
 * bound for the first time. */
ON_BACKENDS(bound_again_it_is_as_new)
{
    static const uint32_t order[] = {3, 1, 2, 0};
    static const struct {
        int array;
        int64_t rows;
        bool ordered;
        uint64_t start;
    } rows[] = {{0, 4, false, 0}, {1, 4, false, 0}, {1, 4, false, 2}, {0, 4, true, 1},
                {1, 4, true, 0},  {1, 4, false, 1}, {0, 2, false, 0}, {1, 2, false, 1}};
    struct compiled model;
    struct ready kept = {0};
    float x[2][4 * 3];
    fill_random(x[0], 8 * 3, 1);
    if (compiled_open(&model, "input 3\ndense 5\nrelu\ndense 2\n",
                      (struct compile_options){.batch = 2, .use = USE_INFERENCE}) &&
        ready_open(&kept, rig, &model.params, model.program))
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct ready fresh = {0};
            float y[2][2][4 * 2] = {0}; /* by whom, to which array */
            if (ready_open(&fresh, rig, &model.params, model.program))
                for (int who = 0; who < 2; who++) {
                    ready_bind(who ? &fresh : &kept, model.program, (const char *[]){"x", "y"},
                               (void *[]){x[rows[i].array], y[who][rows[i].array]},
                               (int64_t[]){rows[i].rows, rows[i].rows}, 2,
                               rows[i].ordered ? order : NULL, 4, rows[i].start);
                    ready_run(who ? &fresh : &kept, PARTS_ALL, 0, 1);
                }
            CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
            ready_close(&fresh);
        }
    ready_close(&kept);
    compiled_close(&model);
}

/* What a backend must refuse, with a reason. */
/* Memory of what is no longer needed is used again: it must not be handed out as what it was. */
ON_BACKENDS(only_what_is_kept_can_be_fetched)
{
    struct compiled model;
    struct ready ready = {0};
    float x[ROWS * 3] = {0}, values[4 * 5], y[ROWS * 2];
    fill_random(x, ROWS * 3, 1);
    if (compiled_open(&model, "input 3\nfirst = dense 5\ndense 5\ndense 5\nlast = dense 2\n",
                      (struct compile_options){.batch = 4, .use = USE_INFERENCE}) &&
        ready_open(&ready, rig, &model.params, model.program)) {
        const struct program *program = model.program;
        int32_t first = program_find(program, ROLE_ACTIVATION, "first");
        ready_bind(&ready, program, (const char *[]){"x", "y"}, (void *[]){x, y},
                   (int64_t[]){ROWS, ROWS}, 2, NULL, 0, 0);
        ready_run(&ready, PARTS_ALL, 0, 1);
        CHECK_STATUS(STATUS_INPUT, rig->backend->fetch(ready.plan, first, values));
        CHECK_MESSAGE("does not keep the tensor 'first' to the end of a step");
        CHECK_STATUS(STATUS_INPUT, rig->backend->fetch(ready.plan, program->tensor_count, values));
        CHECK_MESSAGE("has no tensor");
        CHECK_OK(rig->backend->fetch(ready.plan, program_find(program, ROLE_OUTPUT, "y"), values));
        CHECK(!memcmp(values, y, 4 * 2 * sizeof *y));
    }
    ready_close(&ready);
    compiled_close(&model);
}

ON_BACKENDS(mistakes_are_refused)
{
    struct compiled model;
    struct ready ready = {0};
    float x[ROWS * 3], target[ROWS * 2];
    uint32_t order[] = {0, ROWS};
    fill_random(x, ROWS * 3, 1);
    fill_random(target, ROWS * 2, 2);
    if (compiled_open(&model, "input 3\ndense 2\nloss mse\n",
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
    compiled_close(&model);
}

CHECK_MAIN
