/* test_fuse_conv.c: a convolution takes what follows it along, where nothing else needs it, and
 * computes the same. */
#include "compiled.h"
#include "core/pass/fuse.h"

#include <math.h>

static int count_ops(const struct program *program, enum op_kind kind)
{
    int count = 0;
    for (int32_t o = 0; o < program->op_count; o++)
        count += program->ops[o].kind == kind;
    return count;
}

/* Two blocks of a residual network. The first short cut is computed before the sum that takes it
 * along, the second after it; `wide` is read twice. */
static const char residual[] = "input 3x9x9\n"
                               "conv 5 3x3 pad=1\n"
                               "first = relu\n"
                               "short = conv 27 1x1 bias=0 < first\n"
                               "conv 27 3x3 pad=1 bias=0 < first\n"
                               "long = batch_norm\n"
                               "add < long, short\n"
                               "block = relu\n"
                               "a = conv 27 3x3 pad=1 < block\n"
                               "b = conv 27 1x1 < block\n"
                               "add < a, b\n"
                               "wide = conv 7 1x1\n"
                               "t = tanh < wide\n"
                               "last = add < wide, t\n"
                               "global_average_pool\n"
                               "dense 4\n"
                               "loss mse\n";

/* Outputs of the program for the same data. */
static bool outputs_of(struct rig *rig, const struct compiled *model, const struct program *program,
                       float *x, float *y)
{
    struct ready ready = {0};
    bool ok = ready_open(&ready, rig, &model->params, program) &&
              ready_bind(&ready, program, (const char *[]){"x", "y"}, (void *[]){x, y},
                         (int64_t[]){2, 2}, 2, NULL, 0, 0) &&
              ready_run(&ready, PARTS_ALL, 0, 1);
    ready_close(&ready);
    return ok;
}

ON_BACKENDS(what_follows_a_convolution_goes_along)
{
    struct compiled model;
    struct program *fused = NULL;
    float x[2 * 3 * 9 * 9], plain[2 * 4], together[2 * 4];
    fill_random(x, 2 * 3 * 9 * 9, 1);
    if (compiled_open(&model, residual,
                      (struct compile_options){.batch = 2, .use = USE_INFERENCE}) &&
        CHECK_OK(fuse(model.program, rig->backend, rig->device, &fused)) &&
        outputs_of(rig, &model, model.program, x, plain) &&
        outputs_of(rig, &model, fused, x, together))
        for (int i = 0; i < 2 * 4; i++)
            CHECK(fabsf(plain[i] - together[i]) <= 1e-5f * (1 + fabsf(plain[i])));
    program_free(fused);
    compiled_close(&model);
}

/* The reference has every merged kernel there is. */
TEST(what_others_read_stays)
{
    struct compiled model;
    struct rig rig;
    struct program *fused = NULL;
    if (CHECK(rig_open(&rig, "ref")) &&
        compiled_open(&model, residual,
                      (struct compile_options){.batch = 2, .use = USE_INFERENCE}) &&
        CHECK_OK(fuse(model.program, rig.backend, rig.device, &fused))) {
        CHECK_EQUAL_INT(count_ops(fused, OP_conv_fused), 3); /* first; block; b and its sum */
        CHECK_EQUAL_INT(count_ops(fused, OP_conv), 3);       /* short; a; wide */
        CHECK_EQUAL_INT(count_ops(fused, OP_batch_norm_fixed), 0);
        CHECK_EQUAL_INT(count_ops(fused, OP_add), 1);
        CHECK_EQUAL_INT(count_ops(fused, OP_activate), 1);
    }
    program_free(fused);
    compiled_close(&model);
    rig_close(&rig);
}

/* Bounds as they are in MobileNet; after another function; such as cannot be said in the merged op,
 * where high is not above low. */
static const char clipped[] = "input 3x9x9\n"
                              "conv 6 3x3 pad=1 bias=0\n"
                              "batch_norm\n"
                              "clip\n"
                              "conv 6 3x3 pad=1 groups=6\n"
                              "tanh\n"
                              "clip -0.1 0.2\n"
                              "conv 6 1x1\n"
                              "clip 0.1 0.1\n"
                              "conv 2 1x1\n"
                              "flatten\n"
                              "dense 4\n"
                              "loss mse\n";

ON_BACKENDS(bounds_go_along)
{
    struct compiled model;
    struct program *fused = NULL;
    float x[2 * 3 * 9 * 9], plain[2 * 4], together[2 * 4];
    fill_random(x, 2 * 3 * 9 * 9, 1);
    if (compiled_open(&model, clipped,
                      (struct compile_options){.batch = 2, .use = USE_INFERENCE}) &&
        CHECK_OK(fuse(model.program, rig->backend, rig->device, &fused)) &&
        outputs_of(rig, &model, model.program, x, plain) &&
        outputs_of(rig, &model, fused, x, together)) {
        for (int i = 0; i < 2 * 4; i++)
            CHECK(fabsf(plain[i] - together[i]) <= 1e-5f * (1 + fabsf(plain[i])));
        if (rig_is_complete(rig))
            CHECK_EQUAL_INT(count_ops(fused, OP_bound), 1);
    }
    program_free(fused);
    compiled_close(&model);
}

/* A gradient needs what batch-norm read, and relu's result, but not what relu read. */
TEST(training_keeps_what_gradients_need)
{
    struct compiled model;
    struct rig rig;
    struct program *fused = NULL;
    if (CHECK(rig_open(&rig, "ref")) &&
        compiled_open(&model, residual,
                      (struct compile_options){.batch = 2, .use = USE_TRAINING}) &&
        CHECK_OK(fuse(model.program, rig.backend, rig.device, &fused))) {
        CHECK_EQUAL_INT(count_ops(fused, OP_batch_norm), 1);
        CHECK_EQUAL_INT(count_ops(fused, OP_conv_fused), 2); /* first; b and its sum */
    }
    program_free(fused);
    compiled_close(&model);
    rig_close(&rig);
}

CHECK_MAIN
