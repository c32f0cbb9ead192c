/* test_known.c: ops with answers worked out by hand. The reference kernels are what everything else
 * is compared with, so they themselves are held against something that is not them. */
#include "rig.h"

/* A program over x [batch, width], and what it needs to run. */
struct known {
    struct params params;
    struct draft draft;
    struct program *program;
    struct ready ready;
    int32_t rows, x;
};

static bool known_begin(struct known *known, int32_t batch, int64_t width)
{
    *known = (struct known){0};
    struct draft *draft = &known->draft;
    params_init(&known->params, DTYPE_F32);
    if (!CHECK_OK(program_begin(draft, &known->params, "known", batch, DTYPE_F32)))
        return false;
    known->rows = draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(batch));
    known->x = draft_tensor(draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(batch, width));
    draft_op(draft, OP_rows, NOTHING, OUT(known->rows));
    draft_op(draft, OP_load, IN(known->rows), OUT(known->x));
    draft_part(draft, PART_FORWARD);
    return true;
}

/* Another input, a label a row. */
static int32_t known_label(struct known *known)
{
    struct draft *draft = &known->draft;
    int32_t label =
        draft_tensor(draft, ROLE_INPUT, DTYPE_I32, "label", SHAPE(draft->program->batch));
    draft_part(draft, PART_PREPARE);
    draft_op(draft, OP_load, IN(known->rows), OUT(label));
    draft_part(draft, PART_FORWARD);
    return label;
}

static bool known_ready(struct known *known, struct rig *rig)
{
    return CHECK_OK(program_finish(&known->draft, &known->program)) &&
           ready_open(&known->ready, rig, &known->params, known->program);
}

/* Runs the program once over this data, all of it one batch. */
static bool known_run(struct known *known, float *x, int32_t *label)
{
    int64_t batch = known->program->batch;
    return ready_bind(&known->ready, known->program, (const char *[]){"x", "label"},
                      (void *[]){x, label}, (int64_t[]){batch, batch}, label ? 2 : 1, NULL, 0, 0) &&
           ready_run(&known->ready, PARTS_ALL, 0, 1);
}

static void known_fetch(struct known *known, int32_t tensor, float *out)
{
    CHECK_OK(known->ready.backend->fetch(known->ready.plan, tensor, out));
}

static void known_close(struct known *known)
{
    ready_close(&known->ready);
    draft_drop(&known->draft);
    program_free(known->program);
    params_free(&known->params);
}

/* e^1000 is no float; the softmax of 1000 and 999 is that of 1 and 0 all the same. */
ON_BACKENDS(softmax_of_large_numbers)
{
    struct known known;
    float x[] = {1000, 999, -1000, -999}, y[4], loss;
    int32_t label[] = {0, 0};
    if (known_begin(&known, 2, 2)) {
        struct draft *draft = &known.draft;
        int32_t labels = known_label(&known), p = draft_real(draft, "p", SHAPE(2, 2));
        int32_t softmax = draft_tensor(draft, ROLE_OUTPUT, DTYPE_F32, "y", SHAPE(2, 2));
        int32_t mean = draft_tensor(draft, ROLE_OUTPUT, DTYPE_F32, "loss", SHAPE(1));
        draft_op(draft, OP_softmax, IN(known.x), OUT(softmax));
        draft_op(draft, OP_cross_entropy, IN(known.x, labels), OUT(mean, p));
        if (known_ready(&known, rig) && known_run(&known, x, label)) {
            known_fetch(&known, softmax, y);
            known_fetch(&known, mean, &loss);
            CHECK_NEAR(y[0], 0.731058579, 1e-6); /* e / (e + 1) */
            CHECK_NEAR(y[2], 0.268941421, 1e-6);
            CHECK_NEAR(loss, (0.313261688 + 1.313261688) / 2, 1e-4); /* ln(1 + 1/e), and 1 more */
        }
    }
    known_close(&known);
}

/* Behind a sum of 2^24 a float counts no further by ones. */
TEST(the_reference_loses_nothing_of_a_long_loss)
{
    enum { ONES = 1024 };
    struct known known;
    struct rig ref;
    float x[ONES + 1] = {4096}, loss;
    for (int i = 1; i <= ONES; i++)
        x[i] = 1;
    CHECK(rig_open(&ref, "ref"));
    if (known_begin(&known, ONES + 1, 1)) {
        struct draft *draft = &known.draft;
        int32_t zero = draft_real(draft, "zero", SHAPE(ONES + 1, 1));
        int32_t mean = draft_tensor(draft, ROLE_OUTPUT, DTYPE_F32, "loss", SHAPE(1));
        draft_op(draft, OP_fill, NOTHING, OUT(zero))->attr.fill.value = 0;
        draft_op(draft, OP_mse, IN(known.x, zero), OUT(mean));
        if (known_ready(&known, &ref) && known_run(&known, x, NULL)) {
            known_fetch(&known, mean, &loss);
            CHECK_NEAR(loss, (16777216.0 + ONES) / (ONES + 1), 0.002);
        }
    }
    known_close(&known);
    rig_close(&ref);
}

ON_BACKENDS(of_equal_answers_the_first_counts)
{
    struct known known;
    float x[] = {2, 2, 2, 2, 1, 2}, right;
    int32_t label[] = {0, 0, 1};
    if (known_begin(&known, 3, 2)) {
        int32_t labels = known_label(&known), count = draft_real(&known.draft, "right", SHAPE(1));
        draft_op(&known.draft, OP_right_class, IN(known.x, labels), OUT(count));
        if (known_ready(&known, rig) && known_run(&known, x, label)) {
            known_fetch(&known, count, &right);
            CHECK_NEAR(right, 3, 0);
        }
    }
    known_close(&known);
}

/* 3 and 4 have the norm 5. */
ON_BACKENDS(a_norm_just_above_the_limit_is_clipped_to_it)
{
    for (int limit = 4; limit <= 6; limit += 2) {
        struct known known;
        float x[] = {0}, found[2];
        if (known_begin(&known, 1, 1)) {
            struct draft *draft = &known.draft;
            int32_t a = draft_real(draft, "a", SHAPE(1)), b = draft_real(draft, "b", SHAPE(1));
            draft_op(draft, OP_fill, NOTHING, OUT(a))->attr.fill.value = 3;
            draft_op(draft, OP_fill, NOTHING, OUT(b))->attr.fill.value = 4;
            draft_op(draft, OP_clip, IN(a, b), OUT(a, b))->attr.clip.limit = (float)limit;
            if (known_ready(&known, rig) && known_run(&known, x, NULL)) {
                known_fetch(&known, a, &found[0]);
                known_fetch(&known, b, &found[1]);
                CHECK_NEAR(found[0], limit == 4 ? 2.4 : 3, 1e-6);
                CHECK_NEAR(found[1], limit == 4 ? 3.2 : 4, 1e-6);
            }
        }
        known_close(&known);
    }
}

enum { DROPPED_ROWS = 4, DROPPED_WIDTH = 64 };

/* Ones with dropout, in this order of the rows, at this step; each row goes to its own place. */
static void drop(struct known *known, uint64_t step, const uint32_t *order, float *y)
{
    float x[DROPPED_ROWS * DROPPED_WIDTH];
    for (int i = 0; i < DROPPED_ROWS * DROPPED_WIDTH; i++)
        x[i] = 1;
    known->params.control.step = step;
    CHECK_OK(known->ready.backend->upload(known->ready.instance, &known->params));
    ready_bind(&known->ready, known->program, (const char *[]){"x", "y"}, (void *[]){x, y},
               (int64_t[]){DROPPED_ROWS, DROPPED_ROWS}, 2, order, DROPPED_ROWS, 0);
    ready_run(&known->ready, PARTS_ALL, 0, 1);
}

/* What is dropped is another choice each step, and goes with the row, not with its place in the
 * batch: whoever else is in the batch, and in which worker, does not matter. */
ON_BACKENDS(dropout_goes_by_step_and_row)
{
    struct known known;
    float first[DROPPED_ROWS * DROPPED_WIDTH], other[DROPPED_ROWS * DROPPED_WIDTH];
    static const uint32_t forth[] = {0, 1, 2, 3}, back[] = {3, 2, 1, 0};
    if (known_begin(&known, DROPPED_ROWS, DROPPED_WIDTH)) {
        struct draft *draft = &known.draft;
        int32_t y =
            draft_tensor(draft, ROLE_OUTPUT, DTYPE_F32, "y", SHAPE(DROPPED_ROWS, DROPPED_WIDTH));
        struct op *op = draft_op(draft, OP_dropout, IN(known.x, known.rows), OUT(y));
        op->attr.dropout.rate = 0.5f;
        op->attr.dropout.stream = 7;
        draft_op(draft, OP_store, IN(y, known.rows), NOTHING);
        if (known_ready(&known, rig)) {
            drop(&known, 0, forth, first);
            drop(&known, 0, back, other);
            CHECK(!memcmp(first, other, sizeof first));
            drop(&known, 1, forth, other);
            CHECK(memcmp(first, other, sizeof first) != 0);
            CHECK(memcmp(first, first + DROPPED_WIDTH, DROPPED_WIDTH * sizeof *first) != 0);
        }
    }
    known_close(&known);
}

CHECK_MAIN
