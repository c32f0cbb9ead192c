/* test_conformance.c: every case of core/cases.def on every backend against the reference in
 * double precision: values, no write beyond an output, no output left unwritten. */
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

ON_BACKENDS(every_case_agrees_with_f64)
{
    int32_t count;
    const struct op_case *cases = cases_list(&count);
    struct rig oracle;
    CHECK(rig_open(&oracle, "ref"));
    for (int32_t i = 0; i < count; i++) {
        struct params found, expected;
        if (run_case(rig, &cases[i], DTYPE_F32, &found) &&
            run_case(&oracle, &cases[i], DTYPE_F64, &expected))
            same_results(&cases[i], &found, &expected);
        params_free(&found);
        params_free(&expected);
    }
    rig_close(&oracle);
}

/* What is random must not only be close but the same, wherever it runs. */
ON_BACKENDS(random_ops_have_the_same_bits)
{
    int32_t count;
    const struct op_case *cases = cases_list(&count);
    struct rig reference;
    CHECK(rig_open(&reference, "ref"));
    for (int32_t i = 0; i < count; i++) {
        struct params found, expected;
        if (cases[i].kind != OP_dropout && cases[i].kind != OP_bernoulli &&
            cases[i].kind != OP_random)
            continue;
        if (run_case(rig, &cases[i], DTYPE_F32, &found) &&
            run_case(&reference, &cases[i], DTYPE_F32, &expected))
            CHECK(same_params(&found, &expected));
        params_free(&found);
        params_free(&expected);
    }
    rig_close(&reference);
}

TEST(every_op_has_a_case)
{
    int32_t count;
    const struct op_case *cases = cases_list(&count);
    bool has[OP_COUNT] = {[OP_rows] = true, [OP_load] = true, [OP_store] = true, [OP_clip] = true};
    for (int32_t i = 0; i < count; i++)
        has[cases[i].kind] = true;
    for (int kind = 0; kind < OP_COUNT; kind++)
        if (!CHECK(has[kind]))
            printf("    %s has no case in core/cases.def\n", op_name((enum op_kind)kind));
}

CHECK_MAIN
