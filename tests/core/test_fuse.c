/* test_fuse.c: what may be merged and what may not: nothing that anything else still reads. */
#include "core/pass/fuse.h"
#include "rig.h"

/* A program of one dense layer, and its fused form. */
struct merge {
    struct params params;
    struct draft draft;
    struct program *program, *fused;
    int32_t x, w, y; /* y = x·w */
};

static bool merge_begin(struct merge *merge)
{
    *merge = (struct merge){0};
    struct draft *draft = &merge->draft;
    int32_t entry;
    params_init(&merge->params, DTYPE_F32);
    if (!CHECK_OK(params_declare(&merge->params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(3, 4),
                                 (struct init){.kind = INIT_ONE}, &entry)) ||
        !CHECK_OK(program_begin(draft, &merge->params, "merge", 2, DTYPE_F32)))
        return false;
    int32_t rows = draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(2));
    merge->x = draft_tensor(draft, ROLE_INPUT, DTYPE_F32, "x", SHAPE(2, 3));
    merge->w = draft_kept(draft, entry);
    merge->y = draft_real(draft, "y", SHAPE(2, 4));
    draft_op(draft, OP_rows, NOTHING, OUT(rows));
    draft_op(draft, OP_load, IN(rows), OUT(merge->x));
    draft_part(draft, PART_FORWARD);
    draft_op(draft, OP_dense, IN(merge->x, merge->w, -1), OUT(merge->y));
    return true;
}

/* Appends t = f(y). */
static int32_t merge_activate(struct merge *merge, enum activation function)
{
    int32_t t = draft_real(&merge->draft, "t", SHAPE(2, 4));
    draft_op(&merge->draft, OP_activate, IN(merge->y), OUT(t))->attr.activate.function = function;
    return t;
}

/* Appends the gradient of w for a dy of ones. */
static struct op *merge_outer(struct merge *merge)
{
    struct draft *draft = &merge->draft;
    int32_t dy = draft_real(draft, "dy", SHAPE(2, 4));
    draft_part(draft, PART_BACKWARD);
    draft_op(draft, OP_fill, NOTHING, OUT(dy))->attr.fill.value = 1;
    struct op *outer =
        draft_op(draft, OP_outer, IN(merge->x, dy), OUT(draft_grad(draft, merge->w)));
    outer->attr.outer.scale = 1;
    return outer;
}

static struct op *merge_update(struct merge *merge)
{
    struct draft *draft = &merge->draft;
    int32_t rate = draft_real(draft, "rate", SHAPE(1));
    draft_part(draft, PART_PREPARE);
    draft_op(draft, OP_fill, NOTHING, OUT(rate))->attr.fill.value = 0.1f;
    draft_part(draft, PART_UPDATE);
    return draft_op(draft, OP_sgd, IN(merge->w, draft_grad(draft, merge->w), rate),
                    OUT(merge->w, -1));
}

/* Fuses for the reference, which has every merged kernel there is. */
static bool merge_end(struct merge *merge)
{
    struct rig rig;
    bool ok = CHECK(rig_open(&rig, "ref")) &&
              CHECK_OK(program_finish(&merge->draft, &merge->program)) &&
              CHECK_OK(fuse(merge->program, rig.backend, rig.device, &merge->fused));
    rig_close(&rig);
    return ok;
}

static int32_t merge_count(const struct merge *merge, enum op_kind kind)
{
    int32_t count = 0;
    for (int32_t o = 0; o < merge->fused->op_count; o++)
        count += merge->fused->ops[o].kind == kind;
    return count;
}

static void merge_close(struct merge *merge)
{
    draft_drop(&merge->draft);
    program_free(merge->program);
    program_free(merge->fused);
    params_free(&merge->params);
}

TEST(an_activation_is_merged_when_it_is_the_only_reader)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_activate(&merge, ACTIVATION_TANH);
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 0);
    }
    merge_close(&merge);
}

/* The merged op has no room for its slope below 0. */
TEST(an_activation_with_a_parameter_stays_apart)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_activate(&merge, ACTIVATION_LEAKY_RELU);
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 1);
    }
    merge_close(&merge);
}

TEST(a_second_reader_keeps_the_activation_apart)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        int32_t t = merge_activate(&merge, ACTIVATION_TANH),
                sum = draft_real(&merge.draft, "sum", SHAPE(2, 4));
        draft_op(&merge.draft, OP_add, IN(merge.y, t), OUT(sum));
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 1);
    }
    merge_close(&merge);
}

/* The bytes of a tensor are read, whoever shows them: a view, a view of that, or the tensor itself
 * beside a view. */
TEST(a_reader_of_a_view_of_a_view_counts)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_activate(&merge, ACTIVATION_TANH);
        int32_t flat = draft_view(&merge.draft, merge.y, SHAPE(8));
        int32_t cube = draft_view(&merge.draft, flat, SHAPE(2, 2, 2));
        int32_t sum = draft_real(&merge.draft, "sum", SHAPE(2, 2, 2));
        draft_op(&merge.draft, OP_add, IN(cube, cube), OUT(sum));
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 1);
    }
    merge_close(&merge);
}

TEST(a_reader_of_what_a_view_shows_counts)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        int32_t whole = draft_real(&merge.draft, "whole", SHAPE(8));
        int32_t sum = draft_real(&merge.draft, "sum", SHAPE(8));
        merge.y = draft_view(&merge.draft, whole, SHAPE(2, 4));
        draft_op(&merge.draft, OP_dense, IN(merge.x, merge.w, -1), OUT(merge.y));
        merge_activate(&merge, ACTIVATION_TANH);
        draft_op(&merge.draft, OP_add, IN(whole, whole), OUT(sum));
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 1);
    }
    merge_close(&merge);
}

TEST(a_reader_in_another_shape_counts)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_activate(&merge, ACTIVATION_TANH);
        int32_t flat = draft_view(&merge.draft, merge.y, SHAPE(8));
        int32_t sum = draft_real(&merge.draft, "sum", SHAPE(8));
        draft_op(&merge.draft, OP_add, IN(flat, flat), OUT(sum));
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_activate), 1);
    }
    merge_close(&merge);
}

/* An op keeps its name through a pass: a merged one is called by the op that began it. */
TEST(gradient_and_update_are_merged_and_keep_their_id)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_outer(&merge);
        merge_update(&merge);
    }
    if (merge_end(&merge)) {
        CHECK_EQUAL_INT(merge_count(&merge, OP_dense_sgd), 1);
        CHECK_EQUAL_INT(merge_count(&merge, OP_sgd), 0);
        for (int32_t o = 0; o < merge.fused->op_count; o++) {
            const struct op *op = &merge.fused->ops[o];
            enum op_kind wanted = op->kind == OP_dense_sgd ? OP_outer : op->kind;
            bool found = false;
            for (int32_t k = 0; k < merge.program->op_count; k++)
                found |= merge.program->ops[k].id == op->id && merge.program->ops[k].kind == wanted;
            CHECK(found);
        }
    }
    merge_close(&merge);
}

TEST(an_update_that_is_more_than_sgd_is_merged_with_its_attributes)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_outer(&merge);
        merge_update(&merge)->attr.sgd.decay = 0.1f;
        if (merge_end(&merge)) {
            CHECK_EQUAL_INT(merge_count(&merge, OP_sgd), 0);
            CHECK_EQUAL_INT(merge_count(&merge, OP_dense_update), 1);
        }
        for (int32_t o = 0; merge.fused && o < merge.fused->op_count; o++) {
            const struct op *op = &merge.fused->ops[o];
            if (op->kind != OP_dense_update)
                continue;
            CHECK_EQUAL_INT(op->attr.dense_update.optimiser, OP_sgd);
            CHECK(op->attr.dense_update.decay == 0.1f);
            CHECK_EQUAL_INT(op_flop(merge.fused, op), 2 * 2 * 3 * 4 + 2 * 3 * 4);
        }
    }
    merge_close(&merge);
}

/* It would be too early for what is written between the gradient and the update. */
TEST(what_an_update_reads_must_be_there)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_outer(&merge);
        struct op *update = merge_update(&merge);
        update->attr.sgd.decay = 0.1f;
        int32_t rate = merge.draft.program->operands[update->first + 2];
        draft_part(&merge.draft, PART_BACKWARD);
        draft_op(&merge.draft, OP_fill, NOTHING, OUT(rate));
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_dense_update), 0);
    }
    merge_close(&merge);
}

TEST(a_gradient_that_adds_up_is_kept)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        merge_outer(&merge)->attr.outer.accumulate = 1;
        merge_update(&merge);
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_dense_sgd), 0);
    }
    merge_close(&merge);
}

/* The merged op updates the weights where the gradient was: too early for whoever reads them
 * between that and the update. */
TEST(weights_that_are_read_later_are_updated_later)
{
    struct merge merge;
    if (merge_begin(&merge)) {
        int32_t again = draft_real(&merge.draft, "again", SHAPE(2, 4));
        merge_outer(&merge);
        draft_op(&merge.draft, OP_dense, IN(merge.x, merge.w, -1), OUT(again));
        merge_update(&merge);
        if (merge_end(&merge))
            CHECK_EQUAL_INT(merge_count(&merge, OP_dense_sgd), 0);
    }
    merge_close(&merge);
}

CHECK_MAIN
