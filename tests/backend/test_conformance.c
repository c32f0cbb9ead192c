/* test_conformance.c: every case of core/cases.h on every backend against the reference in double
 * precision: values, no write beyond an output, no output left unwritten. A case whose op the
 * backend refuses is passed over, and counted. */
#include "backend/cpu/team.h"
#include "base/machine/cpu.h"
#include "core/cases.h"
#include "levels.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>

/* The first number of the first operand is none: the one that a GPU's arithmetic makes. */
static void spoil(struct params *params)
{
    static const uint32_t none = 0x7fffffff;
    if (params->entries[0].dtype == DTYPE_F64)
        *(double *)params_data(params, 0) = (double)NAN;
    else if (params->entries[0].dtype == DTYPE_F32)
        memcpy(params_data(params, 0), &none, sizeof none);
}

/* Makes the case for `real`, runs it on the rig's backend, leaves the results in params. */
static bool run_case(struct rig *rig, const struct op_case *op_case, enum dtype real, bool spoilt,
                     struct params *params)
{
    struct program *program = NULL;
    struct ready ready = {0};
    params_init(params, real);
    bool ok = CHECK_OK(case_program(op_case, 7, params, &program));
    if (ok && spoilt)
        spoil(params);
    ok = ok && ready_open(&ready, rig, params, program) &&
         ready_run(&ready, PART_BIT(PART_FORWARD), 0, 1) &&
         CHECK_OK(rig->backend->download(ready.instance, params));
    ready_close(&ready);
    program_free(program);
    return ok;
}

/* What the split of a program among workers makes: they have CPUs. */
static bool is_split(enum op_kind kind)
{
    return kind == OP_channel_mean || kind == OP_channel_variance || kind == OP_batch_norm_given ||
           kind == OP_batch_norm_sums || kind == OP_batch_norm_given_grad;
}

/* Does the backend have the case's op? Those that are complete must have every op, but not what
 * fusion makes of several: where they have it not it is not made; nor what quantise or a split
 * makes. */
static bool is_supported(struct rig *rig, const struct op_case *op_case)
{
    struct params params;
    struct program *program = NULL;
    const char *why = NULL;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(case_program(op_case, 7, &params, &program)))
        why = rig->backend->supports(rig->device, program, &program->ops[0]);
    bool merged = op_case->kind == OP_conv_fused || op_case->kind == OP_dense_update ||
                  ((case_is_exact(op_case->kind) || is_split(op_case->kind)) &&
                   strcmp(rig->backend->name, "ref"));
    if (rig_is_complete(rig) && !merged && !CHECK_EQUAL_TEXT(why, NULL))
        printf("    '%s' must run every op, also %s\n", rig->backend->name, op_name(op_case->kind));
    program_free(program);
    params_free(&params);
    return !why;
}

/* What a case is asked for by: its op, but for one of so many blocks that no tool can watch it. */
static const char *row_of(const struct op_case *op_case)
{
    return strncmp(op_case->sizes, "n=65537 ", 8) == 0 ? "many_blocks" : op_name(op_case->kind);
}

/* What the reference makes of case number i, or NULL: in double precision, or of what is no number.
 * Several tests ask for it, and under a sanitizer it takes longer than what is tested: it is kept.
 */
static const struct params *known_of(struct rig *reference, int32_t i,
                                     const struct op_case *op_case, bool spoilt)
{
    enum { MOST = 1000 };
    static struct params known[2][MOST];
    static bool is_known[2][MOST];
    if (!CHECK(i < MOST))
        return NULL;
    if (!is_known[spoilt][i])
        is_known[spoilt][i] =
            run_case(reference, op_case, spoilt ? DTYPE_F32 : case_oracle(op_case->kind), spoilt,
                     &known[spoilt][i]);
    return is_known[spoilt][i] ? &known[spoilt][i] : NULL;
}

/* `exact`: those alone that have the same bits everywhere. */
static void check_cases(struct rig *rig, bool exact)
{
    struct op_case op_case;
    struct rig oracle;
    int32_t ran = 0, refused = 0;
    CHECK(rig_open(&oracle, "ref"));
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        struct params found = {0};
        if (!check_wants(row_of(&op_case)) || (exact && !case_is_exact(op_case.kind)))
            continue;
        if (!is_supported(rig, &op_case)) {
            refused++;
            continue;
        }
        ran++;
        double error;
        const struct params *expected = known_of(&oracle, i, &op_case, false);
        if (expected && run_case(rig, &op_case, DTYPE_F32, false, &found) &&
            !CHECK_OK(case_compare(&op_case, &found, expected, case_tolerance(NULL), &error)))
            printf("    %s %s\n", op_name(op_case.kind), op_case.sizes);
        params_free(&found);
    }
    if (refused)
        printf("    '%s' ran %d cases and passed over %d of ops that it refuses\n",
               rig->backend->name, ran, refused);
    CHECK(ran > 0);
    rig_close(&oracle);
}

ON_BACKENDS(every_case_agrees_with_f64)
{
    check_cases(rig, false);
}

/* Kernels for a lower ISA than this CPU's best. */
TEST(every_case_agrees_on_avx2)
{
    struct rig rig = {.backend = &backend_simd};
    struct device_options options = {.threads = 3, .isa = ISA_AVX2};
    struct cpu cpu;
    cpu_detect(&cpu);
    if (!cpu_has(&cpu, ISA_AVX2))
        SKIP("this CPU has no avx2");
    if (CHECK_OK(rig.backend->open(&options, &rig.device)))
        check_cases(&rig, false);
    rig_close(&rig);
}

/* … and for a level without its extensions, which are for numbers of 8 bits here. */
TEST(every_case_of_8_bits_agrees_at_every_level)
{
    struct rig levels[LEVELS_MOST];
    const int count = levels_open(levels, (struct device_options){.threads = 3});
    if (!count)
        SKIP("this CPU has no vectors");
    for (int level = 0; level < count; level++)
        check_cases(&levels[level], true);
    levels_close(levels, count);
}

/* Every kernel's division of work: threads for what is worth none. */
TEST(every_case_agrees_in_threads)
{
    const struct team_worth usual = team_worth;
    struct rig rig = {.backend = &backend_simd};
    struct device_options options = {.threads = 7};
    struct cpu cpu;
    if (rig.backend->probe() != STATUS_OK)
        SKIP("%s", status_message());
    cpu_detect(&cpu);
    if (cpu.cores < 2)
        SKIP("there is one CPU only");
    options.isa = cpu.isa;
    team_worth = (struct team_worth){.flop = 1, .bytes = 1};
    if (CHECK_OK(rig.backend->open(&options, &rig.device)))
        check_cases(&rig, false);
    rig_close(&rig);
    team_worth = usual;
}

/* What is random must not only be close but the same, wherever it runs. */
ON_BACKENDS(random_ops_have_the_same_bits)
{
    struct op_case op_case;
    struct rig reference;
    int ran = 0;
    CHECK(rig_open(&reference, "ref"));
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        struct params found = {0}, expected = {0};
        if ((op_case.kind != OP_dropout && op_case.kind != OP_bernoulli &&
             op_case.kind != OP_random) ||
            !is_supported(rig, &op_case))
            continue;
        if (run_case(rig, &op_case, DTYPE_F32, false, &found) &&
            run_case(&reference, &op_case, DTYPE_F32, false, &expected))
            CHECK(same_params(&found, &expected));
        params_free(&found);
        params_free(&expected);
        ran++;
    }
    rig_close(&reference);
    if (!ran)
        SKIP("'%s' has no random op", rig->backend->name);
}

/* Samples that each move a parameter by less than half its last bit still move it together: a sum
 * comes before it is subtracted. */
ON_BACKENDS(tiny_steps_add_up)
{
    static const char *const sizes[] = {"n=9 i=7 o=5", "n=9 i=400 o=120", "n=67 i=7 o=5",
                                        "n=256 i=13 o=541", "n=256 i=400 o=120"};
    static const char *const operands[] = {"x", "dy", "w", "b", "rate"};
    static const float values[] = {1, 2e-8f, 0.2f, 0.2f, 0.25f};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct op_case op_case = {OP_dense_sgd, sizes[s], "", ""};
        const double way = strtod(sizes[s] + 2, NULL) * (double)values[1] * (double)values[4];
        struct params params;
        struct program *program = NULL;
        struct ready ready = {0};
        params_init(&params, DTYPE_F32);
        bool ok = CHECK_OK(case_program(&op_case, 7, &params, &program));
        for (size_t k = 0; k < 5 && ok; k++) {
            const int32_t entry = params_find(&params, operands[k]);
            float *data = params_data(&params, entry);
            for (int64_t i = 0; i < shape_count(&params.entries[entry].shape); i++)
                data[i] = values[k];
        }
        ok = ok && ready_open(&ready, rig, &params, program) &&
             ready_run(&ready, PART_BIT(PART_FORWARD), 0, 1) &&
             CHECK_OK(rig->backend->download(ready.instance, &params));
        for (size_t k = 2; k < 4 && ok; k++) {
            const float *data = params_data(&params, params_find(&params, operands[k]));
            if (!CHECK_NEAR(*data, (double)values[k] - way, way / 4))
                printf("    %s of dense_sgd %s\n", operands[k], sizes[s]);
        }
        ready_close(&ready);
        program_free(program);
        params_free(&params);
    }
}

/* How many elements became a number that should be none. */
static int64_t count_lost(const struct params *found, const struct params *expected)
{
    int64_t lost = 0;
    for (int32_t e = 0; e < found->count; e++) {
        const float *a = params_data(found, e), *b = params_data(expected, e);
        const char *name = found->entries[e].name;
        if (found->entries[e].dtype != DTYPE_F32 || !strcmp(name, "sums") ||
            !strcmp(name, "gates") || !strcmp(name, "cells")) /* may hold anything, as in cases.c */
            continue;
        for (int64_t i = 0; i < shape_count(&found->entries[e].shape); i++)
            lost += isnan(b[i]) && !isnan(a[i]);
    }
    return lost;
}

/* What is no number stays none through every op. It may get further than on the reference in
 * gradients of parameters, where zeros stand for what is not there. */
ON_BACKENDS(what_is_no_number_stays_so)
{
    struct op_case op_case;
    struct rig reference;
    CHECK(rig_open(&reference, "ref"));
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        struct params found = {0};
        if (!check_wants(row_of(&op_case)) || !is_supported(rig, &op_case))
            continue;
        const struct params *expected = known_of(&reference, i, &op_case, true);
        if (expected && run_case(rig, &op_case, DTYPE_F32, true, &found) &&
            !CHECK_EQUAL_INT(count_lost(&found, expected), 0))
            printf("    %s %s %s\n", op_name(op_case.kind), op_case.sizes, op_case.attributes);
        params_free(&found);
    }
    rig_close(&reference);
}

TEST(every_op_has_a_case)
{
    struct op_case op_case;
    bool has[OP_COUNT] = {[OP_rows] = true,        [OP_load] = true,       [OP_store] = true,
                          [OP_clip] = true,        [OP_send] = true,       [OP_receive] = true,
                          [OP_receive_add] = true, [OP_all_reduce] = true, [OP_wait] = true};
    for (int32_t i = 0; case_at(i, &op_case); i++)
        has[op_case.kind] = true;
    for (int kind = 0; kind < OP_COUNT; kind++)
        if (!CHECK(has[kind]))
            printf("    %s has no case\n", op_name((enum op_kind)kind));
}

/* An op without a row in cases.def has a case at the usual sizes. */
TEST(usual_sizes_fit)
{
    static const enum op_kind kinds[] = {OP_dense, OP_activate, OP_fill, OP_cross_entropy, OP_tick};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct params params;
        struct program *program = NULL;
        params_init(&params, DTYPE_F32);
        CHECK_OK(case_program(&(struct op_case){kinds[i], "", "", ""}, 7, &params, &program));
        program_free(program);
        params_free(&params);
    }
}

CHECK_MAIN
