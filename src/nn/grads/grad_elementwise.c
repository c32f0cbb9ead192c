/* grad_elementwise.c: activations, bounds, sums, products, quotients, masks, dropout. */
#include "nn/grad_rules.h"

grad_rule grad_activate, grad_bound, grad_add, grad_add_rows, grad_multiply, grad_divide, grad_mask,
    grad_dropout, grad_quantise, grad_dequantise, grad_fake_quantise;

void grad_activate(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_activate_x), y = grad_operand(grad, op, AT_activate_y);
    int32_t function = op->attr.activate.function;
    int32_t saved = activation_saves_input((enum activation)function) ? x : y;
    int32_t dx = grad_fresh(grad, x);
    struct op *back =
        draft_op(grad->draft, OP_activate_grad, IN(saved, grad_flows(grad, y)), OUT(dx));
    back->attr.activate_grad.function = function;
    back->attr.activate_grad.alpha = op->attr.activate.alpha;
    grad_give(grad, x, dx);
}

void grad_bound(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_bound_x), y = grad_operand(grad, op, AT_bound_y),
            dx = grad_fresh(grad, x);
    struct op *back = draft_op(grad->draft, OP_bound_grad, IN(y, grad_flows(grad, y)), OUT(dx));
    back->attr.bound_grad.low = op->attr.bound.low;
    back->attr.bound_grad.high = op->attr.bound.high;
    grad_give(grad, x, dx);
}

void grad_add(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_add_a), b = grad_operand(grad, op, AT_add_b),
            dy = grad_flows(grad, grad_operand(grad, op, AT_add_y));
    if (grad_needs(grad, a))
        grad_give(grad, a, dy);
    if (grad_needs(grad, b))
        grad_give(grad, b, dy);
}

/* b is added to every row: it gets the sum over the rows. */
void grad_add_rows(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_add_rows_x), b = grad_operand(grad, op, AT_add_rows_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_add_rows_y));
    if (grad_needs(grad, b)) {
        bool accumulate = false;
        int64_t width = shape_count(draft_shape(grad->draft, b));
        int64_t rows = shape_count(draft_shape(grad->draft, dy)) / width;
        int32_t db = grad_place(grad, b, &accumulate);
        struct op *sum =
            draft_op(grad->draft, OP_sum_rows, IN(draft_view(grad->draft, dy, SHAPE(rows, width))),
                     OUT(draft_view(grad->draft, db, SHAPE(width))));
        sum->attr.sum_rows.scale = 1;
        sum->attr.sum_rows.accumulate = accumulate;
        grad_give(grad, b, db);
    }
    if (grad_needs(grad, x))
        grad_give(grad, x, dy);
}

static void give_product(struct grad *grad, int32_t to, int32_t other, int32_t dy)
{
    if (!grad_needs(grad, to))
        return;
    int32_t d = grad_fresh(grad, to);
    draft_op(grad->draft, OP_multiply, IN(dy, other), OUT(d));
    grad_give(grad, to, d);
}

void grad_multiply(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_multiply_a), b = grad_operand(grad, op, AT_multiply_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_multiply_y));
    give_product(grad, a, b, dy);
    give_product(grad, b, a, dy);
}

void grad_divide(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_divide_a), b = grad_operand(grad, op, AT_divide_b);
    int32_t y = grad_operand(grad, op, AT_divide_y), dy = grad_flows(grad, y);
    if (grad_needs(grad, a)) {
        int32_t da = grad_fresh(grad, a);
        draft_op(grad->draft, OP_divide, IN(dy, b), OUT(da));
        grad_give(grad, a, da);
    }
    if (grad_needs(grad, b)) {
        int32_t db = grad_fresh(grad, b);
        draft_op(grad->draft, OP_divide_grad, IN(b, y, dy), OUT(db));
        grad_give(grad, b, db);
    }
}

void grad_mask(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_mask_x), dx = grad_fresh(grad, x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_mask_y));
    draft_op(grad->draft, OP_mask, IN(dy, grad_operand(grad, op, AT_mask_keep)), OUT(dx));
    grad_give(grad, x, dx);
}

void grad_dropout(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_dropout_x),
            rows = grad_operand(grad, op, AT_dropout_rows);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_dropout_y)), dx = grad_fresh(grad, x);
    union attributes attr = op->attr; /* appending may move the ops */
    draft_op(grad->draft, OP_dropout, IN(dy, rows), OUT(dx))->attr = attr;
    grad_give(grad, x, dx);
}

/* Straight through: the derivative of rounding is taken as 1. */
void grad_quantise(struct grad *grad, const struct op *op)
{
    grad_give(grad, grad_operand(grad, op, AT_quantise_x),
              grad_flows(grad, grad_operand(grad, op, AT_quantise_y)));
}

void grad_dequantise(struct grad *grad, const struct op *op)
{
    grad_give(grad, grad_operand(grad, op, AT_dequantise_x),
              grad_flows(grad, grad_operand(grad, op, AT_dequantise_y)));
}

void grad_fake_quantise(struct grad *grad, const struct op *op)
{
    grad_give(grad, grad_operand(grad, op, AT_fake_quantise_x),
              grad_flows(grad, grad_operand(grad, op, AT_fake_quantise_y)));
}
