/* test_int8.c: numbers of 8 bits, on every backend, against what docs/quantisation.md says, worked
 * out here by hand and with the zero points written out. */
#include "core/cases.h"
#include "core/requantise.h"
#include "rig.h"

#include <string.h>

/* Halves go up, also of negative numbers; beyond the bounds is the bound. */
TEST(requantise_rounds_halves_up)
{
    static const struct {
        int32_t sum, multiplier, shift, zero, low, high, expected;
    } rows[] = {{1, REQUANTISE_ONE, 31, 10, 0, 255, 11},
                {-1, REQUANTISE_ONE, 31, 10, 0, 255, 10},
                {3, REQUANTISE_ONE, 31, 10, 0, 255, 12},
                {-3, REQUANTISE_ONE, 31, 10, 0, 255, 9},
                {5, REQUANTISE_ONE, 32, 10, 0, 255, 11},
                {6, REQUANTISE_ONE, 32, 10, 0, 255, 12},
                {7, 0, 31, 10, 0, 255, 10},
                {INT32_MAX, INT32_MAX, 31, 0, 0, 255, 255},
                {INT32_MIN, INT32_MAX, 31, 0, 3, 255, 3},
                {INT32_MIN, INT32_MAX, 62, 128, 0, 255, 127},
                {300, REQUANTISE_ONE, 31, 0, 0, 127, 127}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!CHECK_EQUAL_INT(requantise(rows[i].sum, rows[i].multiplier, rows[i].shift,
                                        rows[i].zero, rows[i].low, rows[i].high),
                             rows[i].expected))
            printf("    row %zu\n", i);
}

/* The operands of one op, by their names. */
static void *operand(struct params *params, const char *name)
{
    return params_data(params, params_find(params, name));
}

/* Runs the op with the values that `params` have, and leaves the results there. */
static bool run_op(struct rig *rig, struct params *params, const struct program *program)
{
    struct ready ready = {0};
    bool ok = ready_open(&ready, rig, params, program) &&
              ready_run(&ready, PART_BIT(PART_FORWARD), 0, 1) &&
              CHECK_OK(rig->backend->download(ready.instance, params));
    ready_close(&ready);
    return ok;
}

/* Two samples of three inputs, zero 5; sums of (x - 5)·w by hand: 2·10 - 1·4 + 0 = 16, …; half of
 * it, from zero 100 on. The bias has 5·Σw taken off. */
ON_BACKENDS(dense_is_what_it_says)
{
    static const uint8_t x[] = {7, 4, 5, 5, 5, 255};
    static const int8_t w[] = {10, -3, 4, 127, 1, -127}; /* [3][2] */
    static const int32_t bias[] = {7, -1}, column[] = {15, -3};
    static const uint8_t expected[] = {112, 33, 229, 0};
    struct params params;
    struct program *program = NULL;
    params_init(&params, DTYPE_F32);
    const struct op_case op_case = {OP_dense_int8, "n=2 i=3 o=2 y:u8", "zero=100 high=255",
                                    "table"};
    if (CHECK_OK(case_program(&op_case, 7, &params, &program))) {
        memcpy(operand(&params, "x"), x, sizeof x);
        memcpy(operand(&params, "w"), w, sizeof w);
        for (int o = 0; o < 2; o++) {
            ((int32_t *)operand(&params, "b"))[o] = bias[o] - 5 * column[o];
            ((int32_t *)operand(&params, "multiplier"))[o] = REQUANTISE_ONE;
            ((int32_t *)operand(&params, "shift"))[o] = REQUANTISE_SHIFT_LEAST;
        }
        if (run_op(rig, &params, program))
            for (int i = 0; i < 4; i++)
                CHECK_EQUAL_INT(((uint8_t *)operand(&params, "y"))[i], expected[i]);
    }
    program_free(program);
    params_free(&params);
}

/* An image of zeros, whatever their level is, gives the bias at its border too. */
ON_BACKENDS(padding_stands_for_zero)
{
    struct params params;
    struct program *program = NULL;
    params_init(&params, DTYPE_F32);
    const struct op_case op_case = {
        OP_conv_int8, "n=1 c=2 h=3 w=3 o=1 i=2 kh=3 kw=3 p=3 q=3 y:i32",
        "stride_h=1 stride_w=1 pad_h=1 pad_w=1 dilation_h=1 dilation_w=1 zero_x=201",
        "multiplier shift table"};
    if (CHECK_OK(case_program(&op_case, 7, &params, &program))) {
        const int8_t *w = operand(&params, "w");
        int32_t sum = 0;
        for (int i = 0; i < 18; i++)
            sum += w[i];
        memset(operand(&params, "x"), 201, 18);
        *(int32_t *)operand(&params, "b") = 42 - 201 * sum;
        if (run_op(rig, &params, program))
            for (int i = 0; i < 9; i++)
                CHECK_EQUAL_INT(((int32_t *)operand(&params, "y"))[i], 42);
    }
    program_free(program);
    params_free(&params);
}

/* A case whose results are all at a bound would let any kernel pass. */
TEST(cases_have_results_of_all_sizes)
{
    struct op_case op_case;
    struct rig rig;
    CHECK(rig_open(&rig, "ref"));
    for (int32_t i = 0; case_at(i, &op_case); i++) {
        struct params params;
        struct program *program = NULL;
        int seen[256] = {0}, kinds = 0;
        int32_t y;
        params_init(&params, DTYPE_F32);
        if ((op_case.kind == OP_dense_int8 || op_case.kind == OP_conv_int8) &&
            CHECK_OK(case_program(&op_case, 7, &params, &program)) &&
            params.entries[y = params_find(&params, "y")].dtype == DTYPE_U8 &&
            params.entries[y].bytes > 100 && run_op(&rig, &params, program)) {
            for (uint64_t k = 0; k < params.entries[y].bytes; k++)
                seen[((uint8_t *)params_data(&params, y))[k]]++;
            for (int k = 0; k < 256; k++)
                kinds += seen[k] > 0;
            if (!CHECK(kinds > 20))
                printf("    %s %s: %d\n", op_name(op_case.kind), op_case.sizes, kinds);
        }
        program_free(program);
        params_free(&params);
    }
    rig_close(&rig);
}

CHECK_MAIN
