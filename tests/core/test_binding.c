/* test_binding.c: which bindings a program accepts, and what it says about the others. */
#include "check.h"

#include "core/binding.h"
#include "core/params.h"

/* x [4, 3] and label [4] come in; y [4, 3] goes out by row, loss [1] once a step. */
struct fixture {
    struct params params;
    struct program *program;
    int32_t x, label, y, loss;
};

static bool fixture_make(struct fixture *fixture)
{
    struct draft draft;
    params_init(&fixture->params, DTYPE_F32);
    if (!CHECK_OK(program_begin(&draft, &fixture->params, "bound", 4, DTYPE_F32)))
        return false;
    int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(4));
    fixture->x = draft_tensor(&draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(4, 3));
    fixture->label = draft_tensor(&draft, ROLE_INPUT, DTYPE_I32, "label", SHAPE(4));
    fixture->y = draft_tensor(&draft, ROLE_OUTPUT, DTYPE_F32, "y", SHAPE(4, 3));
    fixture->loss = draft_tensor(&draft, ROLE_OUTPUT, DTYPE_F32, "loss", SHAPE(1));
    draft_op(&draft, OP_rows, NOTHING, OUT(rows));
    draft_op(&draft, OP_load, IN(rows), OUT(fixture->x));
    draft_op(&draft, OP_load, IN(rows), OUT(fixture->label));
    draft_part(&draft, PART_FORWARD);
    draft_op(&draft, OP_cross_entropy, IN(fixture->x, fixture->label),
             OUT(fixture->loss, fixture->y));
    draft_op(&draft, OP_store, IN(fixture->y, rows), NOTHING);
    draft_op(&draft, OP_store, IN(fixture->loss, -1), NOTHING);
    return CHECK_OK(program_finish(&draft, &fixture->program));
}

static void fixture_free(struct fixture *fixture)
{
    program_free(fixture->program);
    params_free(&fixture->params);
}

static float data[64];

TEST(row_sizes_follow_the_ports)
{
    struct fixture f;
    if (fixture_make(&f)) {
        CHECK_EQUAL_INT(binding_row_bytes(f.program, f.x), 12);
        CHECK_EQUAL_INT(binding_row_bytes(f.program, f.label), 4);
        CHECK_EQUAL_INT(binding_row_bytes(f.program, f.y), 12);
        CHECK_EQUAL_INT(binding_row_bytes(f.program, f.loss), 4);
        CHECK(!binding_port(f.program, -1));
        CHECK(!binding_port(f.program, 0)); /* rows: neither loaded nor stored */
    }
    fixture_free(&f);
}

TEST(counts_samples)
{
    struct fixture f;
    static const uint32_t order[] = {2, 0, 4};
    uint64_t samples = 99;
    if (fixture_make(&f)) {
        struct view views[] = {{f.x, data, 5}, {f.label, data, 5}, {f.loss, data, 2}};
        struct binding binding = {.views = views, .view_count = 3};
        CHECK_OK(binding_check(f.program, &binding, &samples));
        CHECK_EQUAL_INT(samples, 5);
        binding.order = order;
        binding.order_count = 3;
        CHECK_OK(binding_check(f.program, &binding, &samples));
        CHECK_EQUAL_INT(samples, 3);
        CHECK_OK(binding_check(f.program, &(struct binding){0}, &samples));
        CHECK_EQUAL_INT(samples, 0);
    }
    fixture_free(&f);
}

static void check_refused(const struct program *program, struct view view, const char *message)
{
    uint64_t samples;
    struct binding binding = {.views = &view, .view_count = 1};
    CHECK_STATUS(STATUS_INPUT, binding_check(program, &binding, &samples));
    CHECK_MESSAGE(message);
}

TEST(refuses_views_that_do_not_fit)
{
    struct fixture f;
    if (fixture_make(&f)) {
        check_refused(f.program, (struct view){0, data, 4}, "neither loaded nor stored");
        check_refused(f.program, (struct view){1000, data, 4}, "neither loaded nor stored");
        check_refused(f.program, (struct view){f.x, NULL, 4}, "the data bound to 'x' is empty");
        check_refused(f.program, (struct view){f.x, data, 0}, "the data bound to 'x' is empty");
        check_refused(f.program, (struct view){f.x, data, INT64_C(1) << 40}, "can be numbered");
        check_refused(f.program, (struct view){f.loss, data, INT64_C(1) << 61},
                      "more than can be addressed");
    }
    fixture_free(&f);
}

TEST(refuses_an_order_or_rows_that_do_not_fit)
{
    struct fixture f;
    static const uint32_t order[] = {0, 5, 1};
    uint64_t samples;
    if (fixture_make(&f)) {
        struct view views[] = {{f.x, data, 5}, {f.label, data, 4}};
        struct binding binding = {.views = views, .view_count = 2};
        CHECK_STATUS(STATUS_INPUT, binding_check(f.program, &binding, &samples));
        CHECK_MESSAGE("'label' has 4 rows, expected 5");
        views[1] = views[0];
        CHECK_STATUS(STATUS_INPUT, binding_check(f.program, &binding, &samples));
        CHECK_MESSAGE("'x' is bound twice");
        binding.order = order;
        binding.order_count = 3;
        CHECK_STATUS(STATUS_INPUT, binding_check(f.program, &binding, &samples));
        CHECK_MESSAGE("the order names row 5 but the data bound to 'x' has 5 rows");
        binding.order_count = 0;
        CHECK_STATUS(STATUS_INPUT, binding_check(f.program, &binding, &samples));
        CHECK_MESSAGE("empty");
    }
    fixture_free(&f);
}

CHECK_MAIN
