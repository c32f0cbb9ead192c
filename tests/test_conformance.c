/* test_conformance.c: every case of core/cases.h on every backend against the reference in double
 * precision: values, no write beyond an output, no output left unwritten. A case whose op the
 * backend refuses is passed over, and counted. */
#include "core/cases.h"
#include "rig.h"

#include <stdio.h>

static double value_at(const struct params *params, int32_t entry, int64_t i)
{
    const void *data = params_data(params, entry);
    switch (params->entries[entry].dtype) {
    case DTYPE_F64: return ((const double *)data)[i];
    case DTYPE_I32: return (double)((const int32_t *)data)[i];
    default: return (double)((const float *)data)[i];
    }
}

/* Makes the case for `real`, runs it on the rig's backend, leaves the results in params. */
static bool run_case(struct rig *rig, const struct op_case *op_case, enum dtype real,
                     struct params *params)
{
    struct program *program = NULL;
    struct ready ready = {0};
    params_init(params, real);
    bool ok = CHECK_OK(case_program(op_case, 7, params, &program)) &&
              ready_open(&ready, rig, params, program) &&
              ready_run(&ready, PART_BIT(PART_FORWARD), 0, 1) &&
              CHECK_OK(rig->backend->download(ready.instance, params));
    ready_close(&ready);
    program_free(program);
    return ok;
}

/* Does the backend have the case's op? Those that are complete must have every op. */
static bool is_supported(struct rig *rig, const struct op_case *op_case)
{
    struct params params;
    struct program *program = NULL;
    const char *why = NULL;
    params_init(&params, DTYPE_F32);
    if (CHECK_OK(case_program(op_case, 7, &params, &program)))
        why = rig->backend->supports(rig->device, program, &program->ops[0]);
    if (rig_is_complete(rig) && !CHECK_EQUAL_TEXT(why, NULL))
        printf("    '%s' must run every op, also %s\n", rig->backend->name, op_name(op_case->kind));
    program_free(program);
    params_free(&params);
    return !why;
}

/* What lies beyond a sample's length may hold anything. */
static bool may_be_unwritten(const char *name)
{
    return !strcmp(name, "gates") || !strcmp(name, "cells");
}

/* Room to work in: what is left there is nobody's business. */
static bool is_room(const char *name)
{
    return !strcmp(name, "sums");
}

static bool same_results(const struct op_case *op_case, const struct params *found,
                         const struct params *expected)
{
    bool ok = true;
    for (int32_t e = 0; e < found->count; e++) {
        const struct entry *entry = &found->entries[e];
        int64_t count = shape_count(&entry->shape);
        double size = 0, most = 0;
        if (is_room(entry->name))
            continue;
        for (int64_t i = 0; i < count; i++)
            size = fmax(size, fabs(value_at(expected, e, i)));
        for (int64_t i = 0; i < count; i++) {
            if (isnan(value_at(expected, e, i)) && may_be_unwritten(entry->name))
                continue;
            double d = fabs(value_at(found, e, i) - value_at(expected, e, i));
            most = isnan(d) ? HUGE_VAL : fmax(most, d);
        }
        double limit = case_is_guard(entry) ? 0 : 3e-6 * size + 1e-7;
        if (!CHECK(most <= limit)) {
            printf("    %s %s: '%s' differs by %g where the largest value is %g\n",
                   op_name(op_case->kind), op_case->sizes, entry->name, most, size);
            ok = false;
        }
    }
    return ok;
}

static void check_cases(struct rig *rig)
{
    struct op_case op_case;
    struct rig oracle;
    int32_t count = 0, refused = 0;
    CHECK(rig_open(&oracle, "ref"));
    for (; case_at(count, &op_case); count++) {
        struct params found = {0}, expected = {0};
        if (!is_supported(rig, &op_case)) {
            refused++;
            continue;
        }
        if (run_case(rig, &op_case, DTYPE_F32, &found) &&
            run_case(&oracle, &op_case, DTYPE_F64, &expected))
            same_results(&op_case, &found, &expected);
        params_free(&found);
        params_free(&expected);
    }
    if (refused)
        printf("    '%s' ran %d cases and passed over %d of ops that it refuses\n",
               rig->backend->name, count - refused, refused);
    CHECK(refused < count);
    rig_close(&oracle);
}

ON_BACKENDS(every_case_agrees_with_f64)
{
    check_cases(rig);
}

/* Kernels for a lower ISA than this CPU's best. */
TEST(every_case_agrees_on_avx2)
{
    struct rig rig = {.backend = &backend_simd};
    struct device_options options = {.threads = 3, .isa = ISA_AVX2};
    if (rig.backend->probe() != STATUS_OK)
        SKIP("%s", status_message());
    if (CHECK_OK(rig.backend->open(&options, &rig.device)))
        check_cases(&rig);
    rig_close(&rig);
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
        if (run_case(rig, &op_case, DTYPE_F32, &found) &&
            run_case(&reference, &op_case, DTYPE_F32, &expected))
            CHECK(same_params(&found, &expected));
        params_free(&found);
        params_free(&expected);
        ran++;
    }
    rig_close(&reference);
    if (!ran)
        SKIP("'%s' has no random op", rig->backend->name);
}

TEST(every_op_has_a_case)
{
    struct op_case op_case;
    bool has[OP_COUNT] = {[OP_rows] = true, [OP_load] = true, [OP_store] = true, [OP_clip] = true};
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
