/* grad_elementwise.c: activations, sums, dropout. */
#include "nn/grad_rules.h"

grad_rule grad_activate, grad_add, grad_dropout;

void grad_activate(struct grad *grad, const struct op *op)
{
    int32_t x = grad_input(grad, op, 0), y = grad_output(grad, op, 0);
    int32_t function = op->attr.activate.function;
    int32_t dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_activate_grad, IN(y, grad_flows(grad, y)), OUT(dx))
        ->attr.activate_grad.function = function;
    grad_give(grad, x, dx);
}

void grad_add(struct grad *grad, const struct op *op)
{
    int32_t a = grad_input(grad, op, 0), b = grad_input(grad, op, 1),
            dy = grad_flows(grad, grad_output(grad, op, 0));
    if (grad_needs(grad, a))
        grad_give(grad, a, dy);
    if (grad_needs(grad, b))
        grad_give(grad, b, dy);
}

void grad_dropout(struct grad *grad, const struct op *op)
{
    int32_t x = grad_input(grad, op, 0), rows = grad_input(grad, op, 1);
    int32_t dy = grad_flows(grad, grad_output(grad, op, 0)), dx = grad_fresh(grad, x);
    union attributes attr = op->attr; /* appending may move the ops */
    draft_op(grad->draft, OP_dropout, IN(dy, rows), OUT(dx))->attr = attr;
    grad_give(grad, x, dx);
}
