/* test_whole.c: a program that a backend runs whole, many steps in one kernel, does what its ops do
 * on the reference, step after step: at a small and at a large learning rate, at sizes that fill no
 * tile, from any place in the data. */
#include "trial.h"

enum { STEPS = 50 };

static int64_t steps = STEPS; /* fewer where each is watched by a tool */

/* Runs so many steps, `at_once` of them in a call, and leaves parameters, losses and outputs. */
static bool trial_run(struct trial *trial, struct rig *rig, const struct program *program,
                      double rate, int64_t at_once)
{
    struct ready ready;
    trial->params.control.rate = rate;
    bool ok =
        ready_open(&ready, rig, &trial->params, program) && trial_bind(trial, &ready, program);
    if (ok)
        plan_kernel(rig->backend, ready.plan, trial->kernel);
    for (int64_t done = 0; ok && done < steps; done += at_once)
        ok = ready_run(&ready, PARTS_ALL, 0, at_once);
    ok = ok && CHECK_OK(rig->backend->download(ready.instance, &trial->params));
    for (int32_t t = 0; ok && program->whole && t < program->tensor_count; t++)
        if (program->tensors[t].role == ROLE_OUTPUT) { /* in the view alone */
            CHECK_STATUS(STATUS_INPUT, rig->backend->fetch(ready.plan, t, (float[ROWS * 64]){0}));
            CHECK_MESSAGE("expected a parameter");
        }
    ready_close(&ready);
    return ok;
}

/* The same steps on the reference, and again one at a time, which must give the same bits. Of
 * programs that are run whole, or of those that are not: `ran` counts them. */
static void compare(struct rig *rig, struct rig *reference, const struct row *row,
                    enum program_use use, double rate, bool whole, int *ran)
{
    struct trial found = {0}, expected = {0}, single = {0};
    struct program *fused = NULL;
    char said[NAME];
    expect_kernel(rig, row, use, ANSWER_STEPS, said);
    if (trial_open(&found, row, use) &&
        CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) && fused->whole == whole &&
        trial_open(&expected, row, use) && trial_open(&single, row, use) &&
        trial_run(&found, rig, fused, rate, steps) && trial_run(&single, rig, fused, rate, 1) &&
        trial_run(&expected, reference, expected.program, rate, steps)) {
        ++*ran;
        check_kernel(&found, said);
        near("parameters", row, rate,
             params_difference(&found.params, &expected.params, ROLE_PARAM), 2e-4);
        near("states", row, rate, params_difference(&found.params, &expected.params, ROLE_STATE),
             5e-4);
        near("losses", row, rate, difference(found.loss, expected.loss, RING), 2e-4);
        near("right answers", row, rate, difference(found.right, expected.right, STEPS), 0);
        near("outputs", row, rate, difference(found.y, expected.y, ROWS * (int64_t)1024), 2e-5);
        CHECK(same_params(&found.params, &single.params));
        CHECK_EQUAL_INT((int64_t)found.params.control.step, (int64_t)expected.params.control.step);
        near("losses of single steps", row, rate, difference(found.loss, single.loss, RING), 0);
    }
    program_free(fused);
    trial_close(&found);
    trial_close(&expected);
    trial_close(&single);
}

ON_BACKENDS(a_whole_program_does_what_its_ops_do)
{
    static const double rates[] = {1e-3, 0.05};
    struct rig reference;
    int whole = 0;
    CHECK(rig_open(&reference, "ref"));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (!check_wants(usual[i].network))
            continue;
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            compare(rig, &reference, &usual[i], USE_TRAINING, rates[r], true, &whole);
        compare(rig, &reference, &usual[i], USE_INFERENCE, 0, true, &whole);
        compare(rig, &reference, &usual[i], USE_EVALUATION, 0, true, &whole);
    }
    rig_close(&reference);
    if (!whole)
        SKIP("'%s' runs nothing whole", rig->backend->name);
    printf("    '%s' ran %d programs whole\n", rig->backend->name, whole);
}

/* More samples than a block has groups of lanes for: a thread each, of one block, of several, and
 * in several chunks of a block; every loss, layers that fill no tile, outputs that are no number of
 * four, activations that have no kernel of their own. */
ON_BACKENDS(many_samples_of_narrow_layers_agree)
{
    static const struct row many[] = {
        {"small", 65, LOSS_MSE, 0, NULL},
        {"small", 150, LOSS_MSE, 0, "step:period=7,factor=0.5"},
        {"small", 1000, LOSS_MSE, 0, NULL},
        {"mlp:2-5-6-3:sigmoid", 97, LOSS_CROSS_ENTROPY, 3, NULL},
        {"mlp:7-4-2:tanh", 257, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
        {"mlp:4-8-1:relu", 150, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
        {"mlp:3-8-5-8-8:relu", 513, LOSS_CROSS_ENTROPY, 8, "cosine:period=40,least=0.1"},
        {"mlp:5-16-11-4:relu", 33, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:9-32-31-3:sigmoid", 150, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
        {"mlp:32-32-32-32-32-32-32:tanh", 700, LOSS_MSE, 0, NULL},
        {"mlp:1-1", 1000, LOSS_MSE, 0, NULL},
        {"mlp:4-3-3-3-3-2:relu", 65, LOSS_CROSS_ENTROPY, 2, NULL},
    };
    static const double rates[] = {1e-3, 0.05};
    struct rig reference;
    int trained = 0, asked = 0;
    CHECK(rig_open(&reference, "ref"));
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        if (!check_wants(many[i].network))
            continue;
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            compare(rig, &reference, &many[i], USE_TRAINING, rates[r], true, &trained);
        compare(rig, &reference, &many[i], USE_INFERENCE, 0, true, &asked);
        compare(rig, &reference, &many[i], USE_EVALUATION, 0, true, &asked);
    }
    rig_close(&reference);
    if (!trained)
        SKIP("'%s' runs nothing whole", rig->backend->name);
    printf("    '%s' ran %d programs whole\n", rig->backend->name, trained + asked);
    if (strcmp(rig->backend->name, "cuda") == 0 && check_wants_all())
        CHECK_EQUAL_INT(trained, 2 * sizeof many / sizeof *many);
}

static const char *const optimisers[] = {"sgd:decay=0.1",
                                         "momentum",
                                         "nesterov:decay=0.01",
                                         "adagrad",
                                         "rmsprop:smoothing=0.9,decay=0.01",
                                         "adam",
                                         "adam:decay=0.1",
                                         "adamw:beta1=0.8,decay=0.1",
                                         "rprop"};
enum { OPTIMISERS = sizeof optimisers / sizeof *optimisers };

/* Each optimiser in each kernel that has them all: what it keeps is compared, too. */
ON_BACKENDS(a_whole_program_learns_by_any_optimiser)
{
    static const struct row learnt[] = {
        {"small", 1, LOSS_MSE, 0, NULL},
        {"small", 10, LOSS_MSE, 0, "cosine:period=40,least=0.1"},
        {"mlp:8-8-8-8-8:tanh", 11, LOSS_MSE, 0, "step:period=7,factor=0.5"},
        {"mlp:2-5-6-3:sigmoid", 1, LOSS_CROSS_ENTROPY, 3, NULL},
        {"mlp:3-7-8-2:tanh", 33, LOSS_MSE, 0, "step:period=7,factor=0.5"},
        {"mlp:5-16-11-4:tanh", 7, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:4-32-31-2:sigmoid", 5, LOSS_MSE, 0, NULL},
        {"small", 150, LOSS_MSE, 0, "cosine:period=40,least=0.1"},
        {"mlp:5-16-11-4:tanh", 600, LOSS_CROSS_ENTROPY, 4, NULL},
    };
    static const double rates[] = {1e-3, 0.05};
    struct rig reference;
    int whole = 0;
    CHECK(rig_open(&reference, "ref"));
    for (int o = 0; o < OPTIMISERS; o++)
        for (size_t i = 0; i < sizeof learnt / sizeof *learnt; i++)
            for (size_t r = 0; r < 2; r++) {
                if (!check_wants(optimisers[o]))
                    continue;
                optimiser = optimisers[o];
                compare(rig, &reference, &learnt[i], USE_TRAINING, rates[r], true, &whole);
            }
    optimiser = NULL;
    rig_close(&reference);
    if (!whole)
        SKIP("'%s' runs nothing whole", rig->backend->name);
    if (strcmp(rig->backend->name, "cuda") == 0 && check_wants_all())
        CHECK_EQUAL_INT(whole, 2 * OPTIMISERS * sizeof learnt / sizeof *learnt);
}

/* Stopped after as many steps as bring the data back to where they began, and resumed on another
 * instance: bit for bit as if it had not been stopped. */
ON_BACKENDS(a_stopped_training_goes_on)
{
    static const struct row stopped[] = {
        {"small", 1, LOSS_MSE, 0, "cosine:period=100,least=0.1"},
        {"small", 10, LOSS_MSE, 0, NULL},
        {"mlp:5-16-11-4:tanh", 7, LOSS_CROSS_ENTROPY, 4, "cosine:period=100,least=0.1"},
        {"mlp:5-16-11-4:tanh", 300, LOSS_CROSS_ENTROPY, 4, NULL},
    };
    for (size_t i = 0; i < 2 * sizeof stopped / sizeof *stopped; i++) {
        const struct row *row = &stopped[i / 2];
        struct trial found = {0}, expected = {0};
        struct program *fused = NULL;
        optimiser = i % 2 ? "adam" : NULL;
        if (trial_open(&found, row, USE_TRAINING) && trial_open(&expected, row, USE_TRAINING) &&
            CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused))) {
            steps = ROWS;
            trial_run(&found, rig, fused, 0.01, steps);
            trial_run(&found, rig, fused, 0.01, steps);
            steps = 2 * ROWS;
            trial_run(&expected, rig, fused, 0.01, steps);
            CHECK(same_params(&found.params, &expected.params));
        }
        program_free(fused);
        trial_close(&found);
        trial_close(&expected);
    }
    steps = STEPS;
    optimiser = NULL;
}

/* Narrow stacks have kernels for their number of layers and their functions, for one sample, a few,
 * more and many, by sgd and by any other optimiser. */
static void compare_narrow(struct rig *rig, struct rig *reference, int *whole)
{
    static const char *const functions[][2] = {
        {"sigmoid\n", ""}, {"sigmoid\n", "sigmoid\n"}, {"relu\n", ""}, {"tanh\n", ""}};
    static const int32_t batches[] = {1, 5, 13, 65};
    for (int layers = 2; layers <= 4; layers++)
        for (int f = 0; f < 4; f++)
            for (int b = 0; b < 4; b++) {
                char text[200];
                const char *hidden = functions[f][0];
                snprintf(text, sizeof text, "input 4\ndense 5\n%s%s%s%s%sdense 2\n%s", hidden,
                         layers > 2 ? "dense 3\n" : "", layers > 2 ? hidden : "",
                         layers > 3 ? "dense 6\n" : "", layers > 3 ? hidden : "", functions[f][1]);
                const struct row row = {text, batches[b], LOSS_MSE, 0, NULL};
                if (!check_wants("narrow"))
                    continue;
                compare(rig, reference, &row, USE_TRAINING, 0.05, true, whole);
                optimiser = "adam";
                compare(rig, reference, &row, USE_TRAINING, 0.05, true, whole);
                optimiser = NULL;
            }
}

/* A network for each kernel that runs steps whole, few steps: for compute-sanitizer's racecheck,
 * which is a thousand times slower (tools/sanitize-gpu). */
ON_BACKENDS(few_steps_of_every_kernel_agree)
{
    static const struct row few[] = {
        {"small", 1, LOSS_MSE, 0, NULL},
        {"small", 10, LOSS_MSE, 0, NULL},
        {"mlp:4-3-3-3-3-2:relu", 3, LOSS_CROSS_ENTROPY, 2, NULL},
        {"mlp:5-16-11-4:relu", 7, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:5-17-11-4:relu", 2, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:4-3-3-3-3-2:relu", 65, LOSS_CROSS_ENTROPY, 2, NULL},
        {"mlp:5-16-11-4:relu", 40, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:5-17-11-4:relu", 40, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:6-45-47-29:sigmoid", 3, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-29:sigmoid", 4, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-29:sigmoid", 5, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-29:sigmoid", 7, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-29:sigmoid", 10, LOSS_MSE, 0, NULL},
        {"mlp:40-45-47-29:sigmoid", 12, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-3:sigmoid", 3, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-3:sigmoid", 4, LOSS_MSE, 0, NULL},
        {"mlp:6-45-47-1:sigmoid", 10, LOSS_MSE, 0, NULL},
    };
    struct rig reference;
    int whole = 0;
    CHECK(rig_open(&reference, "ref"));
    steps = 2;
    compare_narrow(rig, &reference, &whole);
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        if (!check_wants(few[i].network))
            continue;
        compare(rig, &reference, &few[i], USE_TRAINING, 0.05, true, &whole);
        compare(rig, &reference, &few[i], USE_INFERENCE, 0, true, &whole);
        optimiser = "adam";
        compare(rig, &reference, &few[i], USE_TRAINING, 0.05, true, &whole);
        optimiser = NULL;
    }
    steps = STEPS;
    rig_close(&reference);
    if (!whole)
        SKIP("'%s' runs nothing whole", rig->backend->name);
    if (strcmp(rig->backend->name, "cuda") == 0 && check_wants_all())
        CHECK(has_run("stack_warp") && has_run("stack_four_warps") && has_run("stack_block") &&
              has_run("stack_replicas") && has_run("stack_grid"));
}

/* How many are a number in one and none in the other. */
static int64_t count_unlike(const float *a, const float *b, int64_t count)
{
    int64_t unlike = 0;
    for (int64_t i = 0; i < count; i++)
        unlike += !isnan(a[i]) != !isnan(b[i]);
    return unlike;
}

/* The first sample that is visited has something that is no number. */
static bool trial_open_spoilt(struct trial *trial, const struct row *row, enum program_use use)
{
    if (!trial_open(trial, row, use))
        return false;
    const int32_t x = program_find(trial->program, ROLE_INPUT, "x");
    const int64_t in = shape_count(&trial->program->tensors[x].shape) / row->batch;
    trial->x[trial->order[ROWS - 2] * in] = NAN;
    return true;
}

static void compare_spoilt(struct rig *rig, struct rig *reference, const struct row *row,
                           enum program_use use, bool called)
{
    struct trial found = {0}, expected = {0};
    struct program *fused = NULL;
    if (trial_open_spoilt(&found, row, use) && trial_open_spoilt(&expected, row, use) &&
        CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) &&
        (called ? trial_call(&found, rig, row, fused, ANSWER_CALLS) &&
                      trial_call(&expected, reference, row, expected.program, ANSWER_CALLS)
                : trial_run(&found, rig, fused, 0.05, 2) &&
                      trial_run(&expected, reference, expected.program, 0.05, 2))) {
        int64_t unlike = count_unlike(found.y, expected.y, ROWS * (int64_t)1024);
        for (int32_t e = 0; e < found.params.count; e++)
            if (found.params.entries[e].dtype == DTYPE_F32)
                unlike +=
                    count_unlike(params_data(&found.params, e), params_data(&expected.params, e),
                                 shape_count(&found.params.entries[e].shape));
        near("numbers that are none", row, 0, (double)unlike, 0);
    }
    program_free(fused);
    trial_close(&found);
    trial_close(&expected);
}

/* A network for each kernel that ends with a relu: what is no number comes through it, and into no
 * other sample. */
ON_BACKENDS(what_is_no_number_stays_so)
{
    static const struct row spoilt[] = {
        {"mlp:8-8-1:relu", 1, LOSS_MSE, 0, NULL},
        {"mlp:3-8-5-8-8:relu", 2, LOSS_CROSS_ENTROPY, 8, NULL},
        {"mlp:4-3-3-3-3-2:relu", 3, LOSS_CROSS_ENTROPY, 2, NULL},
        {"mlp:5-17-11-4:relu", 7, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:5-17-11-4:relu", 40, LOSS_CROSS_ENTROPY, 4, NULL},
        {"mlp:7-33-129-40-10:relu", 2, LOSS_CROSS_ENTROPY, 10, NULL},
        {"mlp:8-300-344-20:relu", 12, LOSS_CROSS_ENTROPY, 20, NULL},
        {"mlp:8-300-344-20:relu", 37, LOSS_CROSS_ENTROPY, 20, NULL},
    };
    struct rig reference;
    CHECK(rig_open(&reference, "ref"));
    steps = 2;
    most_calls = 17;
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        compare_spoilt(rig, &reference, &spoilt[i], USE_TRAINING, false);
        compare_spoilt(rig, &reference, &spoilt[i], USE_INFERENCE, false);
        compare_spoilt(rig, &reference, &spoilt[i], USE_INFERENCE, true);
    }
    steps = STEPS;
    most_calls = 150;
    rig_close(&reference);
}

/* So many steps of each row, whole or op by op, on a GPU and on the backend `other`. */
static void compare_on_a_gpu(struct rig *rig, const char *other, int64_t some,
                             const struct row *list, size_t count, double rate, bool whole)
{
    struct rig reference;
    int asked = 0, ran = 0;
    if (strcmp(rig->backend->unit, "gpu") != 0)
        SKIP("'%s' is not on a GPU", rig->backend->name);
    CHECK(rig_open(&reference, other));
    steps = some;
    for (size_t i = 0; i < count; i++) {
        if (!check_wants(list[i].network))
            continue;
        asked++;
        compare(rig, &reference, &list[i], USE_TRAINING, rate, whole, &ran);
    }
    steps = STEPS;
    rig_close(&reference);
    CHECK(asked > 0);
    CHECK_EQUAL_INT(ran, asked);
}

/* Tiles as large as they get: as many passes as a warp of the grid can hold of them, or more, and
 * more inputs than warps share. */
ON_BACKENDS(steps_of_wide_networks_agree_on_a_gpu)
{
    static const struct row wide[] = {
        {"large", 3, LOSS_MSE, 0, NULL},
        {"large", 10, LOSS_MSE, 0, NULL},
        {"large", 14, LOSS_MSE, 0, NULL},
        {"mlp:20-516-652-516-3:sigmoid", 13, LOSS_MSE, 0, NULL},
        {"mlp:6000-1000-3:sigmoid", 2, LOSS_CROSS_ENTROPY, 3, NULL},
    };
    compare_on_a_gpu(rig, "ref", 3, wide, sizeof wide / sizeof *wide, 0.01, true);
}

/* More samples than a kernel of whole steps takes, op by op: rows that fill no strip, slab or tile.
 */
ON_BACKENDS(steps_of_a_handful_of_samples_agree_on_a_gpu)
{
    static const struct row some[] = {
        {"mlp:20-516-652-516-3:sigmoid", 17, LOSS_MSE, 0, NULL},
        {"mlp:20-516-652-516-3:tanh", 27, LOSS_MSE, 0, NULL},
    };
    compare_on_a_gpu(rig, "ref", 3, some, sizeof some / sizeof *some, 0.05, false);
}

/* Few weights of so many samples that blocks share these, op by op; by momentum gradients and
 * updates are apart. */
ON_BACKENDS(steps_of_few_weights_agree_on_a_gpu)
{
    static const struct row some[] = {
        {"mlp:33-3-1:tanh", 4100, LOSS_MSE, 0, NULL},
        {"mlp:33-20-9:tanh", 5003, LOSS_MSE, 0, NULL},
    };
    struct rig reference;
    int asked = 0, ran = 0;
    if (strcmp(rig->backend->unit, "gpu") != 0)
        SKIP("'%s' is not on a GPU", rig->backend->name);
    CHECK(rig_open(&reference, "ref"));
    steps = 3;
    for (size_t i = 0; i < 2 * sizeof some / sizeof *some; i++) {
        if (!check_wants(some[i / 2].network))
            continue;
        asked++;
        optimiser = i % 2 ? "momentum" : NULL;
        compare(rig, &reference, &some[i / 2], USE_TRAINING, 0.05, false, &ran);
    }
    steps = STEPS;
    optimiser = NULL;
    rig_close(&reference);
    CHECK(asked > 0);
    CHECK_EQUAL_INT(ran, asked);
}

/* Convolution, op by op; only where other arithmetic than the reference's is worth the time. */
ON_BACKENDS(steps_of_a_convolution_agree_on_a_gpu)
{
    static const struct row lenet = {"lenet", 5, LOSS_CROSS_ENTROPY, 10, NULL};
    compare_on_a_gpu(rig, "ref", STEPS, &lenet, 1, 1e-3, false);
    compare_on_a_gpu(rig, "ref", STEPS, &lenet, 1, 0.05, false);
}

/* Many samples, op by op, what no gradient needs beside the rest: a loss over so many outputs that
 * its sum takes several blocks, together with the sums of a bias's gradient, and widths that fill
 * no tile. Compared with the CPU's fast backend: the reference would take minutes. */
ON_BACKENDS(steps_of_many_samples_agree_on_a_gpu)
{
    static const struct row many[] = {
        {"mlp:64-96-784:sigmoid", 1024, LOSS_MSE, 0, NULL},
        {"mlp:64-96-784:tanh", 1024, LOSS_BINARY_CROSS_ENTROPY, 0, NULL},
        {"mlp:48-264:tanh", 1024, LOSS_MSE, 0, NULL},
        {"mlp:33-257-129-265:tanh", 1024, LOSS_MSE, 0, NULL},
        {"mlp:65-257-129-67-33:sigmoid", 1023, LOSS_CROSS_ENTROPY, 33, NULL},
    };
    compare_on_a_gpu(rig, "simd", STEPS, many, sizeof many / sizeof *many, 0.05, false);
}

CHECK_MAIN
