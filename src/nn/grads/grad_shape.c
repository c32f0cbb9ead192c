/* grad_shape.c: elements moved, picked and added up: the gradient goes back where they came from.
 */
#include "nn/grad_rules.h"

grad_rule grad_expand, grad_transpose, grad_concat, grad_slice, grad_gather, grad_reduce;

/* What was repeated gets the sum. */
void grad_expand(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_expand_x), dx = grad_fresh(grad, x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_expand_y));
    draft_op(grad->draft, OP_reduce, IN(dy), OUT(dx))->attr.reduce.reduction = REDUCTION_SUM;
    grad_give(grad, x, dx);
}

void grad_transpose(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_transpose_x), dx = grad_fresh(grad, x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_transpose_y));
    draft_op(grad->draft, OP_transpose, IN(dy), OUT(dx));
    grad_give(grad, x, dx);
}

void grad_concat(struct grad *grad, const struct op *op)
{
    int32_t dy = grad_flows(grad, grad_operand(grad, op, op->inputs));
    int64_t from = 0;
    for (int32_t i = 0; i < op->inputs; i++) {
        int32_t x = grad_operand(grad, op, i);
        if (grad_needs(grad, x)) {
            int32_t dx = grad_fresh(grad, x);
            draft_op(grad->draft, OP_slice, IN(dy), OUT(dx))->attr.slice.from = (int32_t)from;
            grad_give(grad, x, dx);
        }
        from += draft_shape(grad->draft, x)->dim[1];
    }
}

void grad_slice(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_slice_x), dx = grad_fresh(grad, x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_slice_y));
    draft_op(grad->draft, OP_slice_grad, IN(dy), OUT(dx))->attr.slice_grad.from =
        op->attr.slice.from;
    grad_give(grad, x, dx);
}

void grad_gather(struct grad *grad, const struct op *op)
{
    int32_t table = grad_operand(grad, op, AT_gather_table),
            index = grad_operand(grad, op, AT_gather_index);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_gather_y));
    bool accumulate = false;
    int32_t dtable = grad_place(grad, table, &accumulate);
    draft_op(grad->draft, OP_scatter, IN(index, dy), OUT(dtable))->attr.scatter.accumulate =
        accumulate;
    grad_give(grad, table, dtable);
}

void grad_reduce(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_reduce_x), dx = grad_fresh(grad, x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_reduce_y));
    int32_t saved = op->attr.reduce.reduction == REDUCTION_MAX ? x : -1;
    draft_op(grad->draft, OP_reduce_grad, IN(saved, dy), OUT(dx))->attr.reduce_grad.reduction =
        op->attr.reduce.reduction;
    grad_give(grad, x, dx);
}
