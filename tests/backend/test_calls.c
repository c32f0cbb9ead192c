/* test_calls.c: calls, from host memory to host memory, are answered as the reference does: by
 * every kernel that answers them, one by one, queued, and by one that stays. */
#include "trial.h"

enum { WAYS = ANSWER_QUEUED + 1 };

/* What is asked in calls, in every way up to `last`, and the same on the reference; answered[way]
 * counts. */
static void compare_calls(struct rig *rig, struct rig *reference, const struct row *row,
                          enum answering last, int *answered)
{
    struct trial expected = {0};
    const bool known = trial_open(&expected, row, USE_INFERENCE) &&
                       trial_call(&expected, reference, row, expected.program, ANSWER_CALLS);
    for (enum answering way = ANSWER_CALLS; known && way <= last; way++) {
        struct trial found = {0};
        struct program *fused = NULL;
        char said[NAME];
        expect_kernel(rig, row, USE_INFERENCE, way, said);
        if (trial_open(&found, row, USE_INFERENCE) &&
            CHECK_OK(fuse(found.program, rig->backend, rig->device, &fused)) &&
            trial_call(&found, rig, row, fused, way)) {
            answered[way]++;
            check_kernel(&found, said);
            near("answers", row, 0, difference(found.y, expected.y, ROWS * (int64_t)1024), 2e-5);
        } else {
            CHECK_EQUAL_TEXT(said, "");
        }
        program_free(fused);
        trial_close(&found);
    }
    trial_close(&expected);
}

ON_BACKENDS(calls_are_answered)
{
    struct rig reference;
    int asked = 0, answered[WAYS] = {0};
    CHECK(rig_open(&reference, "ref"));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (!check_wants(usual[i].network))
            continue;
        asked++;
        compare_calls(rig, &reference, &usual[i], ANSWER_QUEUED, answered);
    }
    rig_close(&reference);
    CHECK(asked > 0);
    CHECK_EQUAL_INT(answered[ANSWER_CALLS], asked);
    CHECK_EQUAL_INT(answered[ANSWER_QUEUED], asked);
    printf("    '%s' answers calls of %d programs by a kernel that stays\n", rig->backend->name,
           answered[ANSWER_RESIDENT]);
}

/* As few_steps_of_every_kernel_agree, for kernels that answer calls. */
ON_BACKENDS(few_calls_of_every_kernel_are_answered)
{
    static const struct row few[] = {
        {"small", 1, LOSS_MSE, 0, NULL},
        {"mlp:5-16-11-4:relu", 2, LOSS_MSE, 0, NULL},
        {"mlp:5-17-11-4:relu", 1, LOSS_MSE, 0, NULL},
        {"mlp:5-17-11-4:relu", 7, LOSS_MSE, 0, NULL},
        {"mlp:5-17-11-4:relu", 40, LOSS_MSE, 0, NULL}, /* more than a block answers */
        {"mlp:9-45-47-29:sigmoid", 1, LOSS_MSE, 0, NULL},
        {"mlp:9-45-47-29:sigmoid", 4, LOSS_MSE, 0, NULL},
        {"mlp:9-45-47-29:sigmoid", 6, LOSS_MSE, 0, NULL},
        {"mlp:9-48-44-28:sigmoid", 1, LOSS_MSE, 0, NULL},
        {"mlp:9-48-44-28:sigmoid", 3, LOSS_MSE, 0, NULL},
        {"mlp:9-48-44-28:sigmoid", 8, LOSS_MSE, 0, NULL},
        {"mlp:9-45-47-3:sigmoid", 1, LOSS_MSE, 0, NULL},
        {"mlp:9-45-47-1:sigmoid", 3, LOSS_MSE, 0, NULL},
        {"mlp:5-136-36-132-7:tanh", 3, LOSS_MSE, 0, NULL},
        {"mlp:5-136-36-132-7:tanh", 10, LOSS_MSE, 0, NULL},
        {"mlp:5-136-36-132-7:tanh", 12, LOSS_MSE, 0, NULL},
    };
    struct rig reference;
    int asked = 0, answered[WAYS] = {0};
    CHECK(rig_open(&reference, "ref"));
    most_calls = 17;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        if (!check_wants(few[i].network))
            continue;
        asked++;
        compare_calls(rig, &reference, &few[i], ANSWER_RESIDENT, answered);
    }
    most_calls = 150;
    rig_close(&reference);
    CHECK(asked > 0);
    CHECK_EQUAL_INT(answered[ANSWER_CALLS], asked);
    if (strcmp(rig->backend->name, "cuda") != 0 || !check_wants_all())
        return;
    CHECK(has_run("answer_warp") && has_run("answer_block") && has_run("answer_layers"));
    CHECK(answered[ANSWER_RESIDENT] > 0 && has_run("stack_grid"));
}

CHECK_MAIN
