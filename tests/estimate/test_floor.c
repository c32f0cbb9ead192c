/* The floor: FLOP and bytes worked out by hand, and times from known ceilings. */
#include "check.h"

#include "base/clock.h"
#include "estimate/floor.h"
#include "nn/network.h"

#include <math.h>

static bool count(const char *model, enum program_use use, int32_t batch, struct work *out)
{
    struct network *network;
    struct params params;
    struct program *program = NULL;
    const struct compile_options options = {.batch = batch, .use = use};

    if (!CHECK_OK(network_open(model, &network)))
        return false;
    params_init(&params, DTYPE_F32);
    bool good = CHECK_OK(network_compile(network, &params, &options, &program)) &&
                CHECK_OK(work_count(program, out));
    program_free(program);
    params_free(&params);
    network_free(network);
    return good;
}

/* 4-3-4-5-1. Each layer: 2·in·out multiply-adds, out for the bias, out for the sigmoid. */
TEST(small_inference)
{
    struct work work;
    if (!count("small", USE_INFERENCE, 1, &work))
        return;
    CHECK_EQUAL_INT(work.forward.flop, (24 + 3 + 3) + (24 + 4 + 4) + (40 + 5 + 5) + (10 + 1 + 1));
    CHECK_EQUAL_INT(work.forward.bytes, 4 * (62 + 4 + 1)); /* parameters, x, y */
    CHECK_EQUAL_INT(work.backward.flop, 0);
    CHECK_EQUAL_INT(work.backward.bytes, 0);
    CHECK_EQUAL_INT(work.set_bytes, work.forward.bytes);
}

/* Backward, per layer: 2·out for the sigmoid's slope, 2·in·out for the weights' gradient, out for
 * the bias's, and, but for the first layer, 2·in·out for the input's. */
TEST(small_training)
{
    struct work work;
    if (!count("small", USE_TRAINING, 1, &work))
        return;
    CHECK_EQUAL_INT(work.forward.flop, 124 + 3); /* and the loss */
    CHECK_EQUAL_INT(work.backward.flop,
                    2 + (2 + 10 + 1 + 10) + (10 + 40 + 5 + 40) + (8 + 24 + 4 + 24) + (6 + 24 + 3));
    CHECK_EQUAL_INT(work.forward.bytes, 4 * (62 + 4 + 1 + 1));  /* parameters, x, target, loss */
    CHECK_EQUAL_INT(work.backward.bytes, 4 * (2 * 62) + 4 * 2); /* both ways; the step count */
}

/* 4-1600-2600-1600-2500-1: 12,337,201 parameters. A step moves them three times: 148 MB. */
TEST(large_training_moves_148_megabytes)
{
    struct work work;
    const uint64_t parameter_bytes = 4 * 12337201;
    if (!count("large", USE_TRAINING, 3, &work))
        return;
    CHECK_EQUAL_INT(work.forward.bytes, parameter_bytes + 4 * (3 * 4 + 3 + 1));
    CHECK_EQUAL_INT(work.backward.bytes, 2 * parameter_bytes + 8);
    CHECK_NEAR(work.forward.bytes + work.backward.bytes, 148.05e6, 0.01e6);

    const struct ceilings ceilings = {
        .flop_per_s = 118e9, .read_per_s = 61e9, .update_per_s = 61e9};
    struct floor floor;
    floor_of(&work, &ceilings, &floor);
    CHECK_NEAR(floor.ns, 2.427e6, 0.002e6);
    CHECK_EQUAL_TEXT(floor.bound, "bytes");
}

TEST(large_training_at_batch_10_is_bound_by_arithmetic)
{
    struct work work;
    if (!count("large", USE_TRAINING, 10, &work))
        return;
    const double weights = 4 * 1600 + 1600 * 2600 + 2600 * 1600 + 1600 * 2500 + 2500;
    const double products = 2 * 10 * (3 * weights - 4 * 1600); /* no gradient of the input */
    double flop = (double)(work.forward.flop + work.backward.flop);
    CHECK(flop >= products);
    CHECK(flop <= products * 1.001); /* biases and sigmoids are little beside them */

    const struct ceilings ceilings = {
        .flop_per_s = 118e9, .read_per_s = 61e9, .update_per_s = 61e9};
    struct floor floor;
    floor_of(&work, &ceilings, &floor);
    CHECK_NEAR(floor.ns, 6.27e6, 0.01e6);
    CHECK_EQUAL_TEXT(floor.bound, "flop");
}

TEST(a_floor_adds_up_its_halves)
{
    const struct work work = {.forward = {.flop = 2000, .bytes = 10},
                              .backward = {.flop = 10, .bytes = 6000}};
    const struct ceilings ceilings = {.flop_per_s = 1e9, .read_per_s = 1e9, .update_per_s = 2e9};
    struct floor floor;
    floor_of(&work, &ceilings, &floor);
    CHECK_NEAR(floor.ns, 2000 + 3000, 1e-6);
    CHECK_EQUAL_TEXT(floor.bound, "bytes");
}

TEST(what_is_shorter_than_a_launch_is_latency)
{
    const struct work work = {.forward = {.flop = 2000, .bytes = 10}};
    const struct ceilings ceilings = {
        .flop_per_s = 1e9, .read_per_s = 1e9, .update_per_s = 2e9, .launch_ns = 2500};
    struct floor floor;
    floor_of(&work, &ceilings, &floor);
    CHECK_NEAR(floor.ns, 2000, 1e-6);
    CHECK_EQUAL_TEXT(floor.bound, "latency");
}

TEST(what_is_shorter_than_any_latency_has_no_floor)
{
    const struct work work = {.forward = {.flop = 20, .bytes = 10}};
    struct ceilings ceilings = {
        .flop_per_s = 1e9, .read_per_s = 1e9, .update_per_s = 2e9, .launch_ns = 2500};
    struct floor floor;
    floor_of(&work, &ceilings, &floor);
    CHECK(isnan(floor.ns));
    CHECK_EQUAL_TEXT(floor.bound, "latency");
    ceilings.launch_ns = 0; /* a CPU's */
    floor_of(&work, &ceilings, &floor);
    CHECK_NEAR(floor.ns, 20, 1e-6);
}

TEST(half_the_bits_are_half_the_bytes_that_forward_reads)
{
    const struct work work = {.forward = {.bytes = 1000}, .backward = {.bytes = 4000}};
    CHECK_EQUAL_INT(work_in(&work, "bf16").forward.bytes, 500);
    CHECK_EQUAL_INT(work_in(&work, "fp16").backward.bytes, 4000); /* masters have 32 bits */
    CHECK_EQUAL_INT(work_in(&work, "tf32").forward.bytes, 1000);
    const struct work read = {.forward = {.bytes = 1000},
                              .set_bytes = 1000}; /* nothing is learnt */
    CHECK_EQUAL_INT(work_in(&read, "bf16").set_bytes, 500);
    CHECK_EQUAL_INT(work_in(&work, "bf16").set_bytes, 0);
}

/* What is known of a CPU so well that nothing is measured. */
static void know(struct calibration *calibration, enum ceiling ceiling, enum isa isa,
                 enum pages pages, uint64_t set_bytes, double per_s)
{
    const struct ceiling_row row = {.ceiling = ceiling,
                                    .isa = isa,
                                    .threads = 1,
                                    .pages = pages,
                                    .set_bytes = set_bytes,
                                    .per_s = per_s,
                                    .spent_ns = 1e12};
    CHECK_OK(calibration_merge(calibration, &row));
}

static const struct op *find_op(const struct program *program, enum op_kind kind)
{
    for (int32_t i = 0; i < program->op_count; i++)
        if (program->ops[i].kind == kind)
            return &program->ops[i];
    return NULL;
}

/* 4-3 at batch 2: weights of 12 numbers read at the speed of the whole step, and all operands (8
 * in, 6 out) at the higher of the speeds of so small a set. */
TEST(an_op_has_the_floor_of_what_it_moves)
{
    struct cpu cpu;
    struct calibration calibration = {0};
    const struct yardstick here = {.calibration = &calibration, .threads = 1};
    struct network *network = NULL;
    struct params params;
    struct program *program = NULL;
    const struct compile_options options = {.batch = 2, .use = USE_INFERENCE};
    const struct ceilings slow_all = {
        .threads = 1, .flop_per_s = 1e15, .read_per_s = 1e6, .update_per_s = 5e5};
    const struct ceilings fast_all = {
        .threads = 1, .flop_per_s = 1e15, .read_per_s = 1e15, .update_per_s = 1e15};
    const struct ceilings no_flop = {
        .threads = 1, .flop_per_s = 1e3, .read_per_s = 1e15, .update_per_s = 1e15};
    struct ceilings launched = no_flop; /* a floor is 1 % of a launch, or no floor */
    double ns;

    cpu_detect(&cpu);
    know(&calibration, CEILING_FP32, cpu.isa, PAGES_4K, 0, 1e15);
    know(&calibration, CEILING_READ, cpu.isa, PAGES_2M, 16384, 2e9);
    know(&calibration, CEILING_UPDATE, cpu.isa, PAGES_2M, 16384, 4e9);
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(network_open("mlp:4-3", &network)) &&
        CHECK_OK(network_compile(network, &params, &options, &program))) {
        const struct op *op = find_op(program, OP_dense);
        enum status status = op ? floor_of_op(program, op, &here, &fast_all, &ns) : STATUS_INPUT;
        if (status == STATUS_UNSUPPORTED)
            check_skip("%s", status_message());
        else if (CHECK_OK(status)) {
            CHECK_NEAR(ns, (double)op_bytes(program, op) / 4, 1e-9); /* 4 GB/s: the higher one */
            CHECK_OK(floor_of_op(program, op, &here, &slow_all, &ns));
            CHECK_NEAR(ns, 1e3 * 4 * (12 + 3), 1e-6); /* weights and bias, read */
            CHECK_OK(floor_of_op(program, op, &here, &no_flop, &ns));
            CHECK_NEAR(ns, 1e6 * (double)op_flop(program, op), 1e-3);
            launched.launch_ns = 99 * ns;
            CHECK_OK(floor_of_op(program, op, &here, &launched, &ns));
            CHECK_NEAR(ns, 1e6 * (double)op_flop(program, op), 1e-3);
            launched.launch_ns = 101 * ns;
            CHECK_OK(floor_of_op(program, op, &here, &launched, &ns));
            CHECK(isnan(ns));
        }
    }
    program_free(program);
    params_free(&params);
    network_free(network);
    calibration_free(&calibration);
}

CHECK_MAIN
