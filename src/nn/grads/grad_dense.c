/* grad_dense.c: the GEMM family: dW = xᵀ·dy, db = Σ dy, dx = dy·Wᵀ. */
#include "nn/grad_rules.h"

grad_rule grad_dense, grad_dense_t;

static void write_outer(struct grad *grad, int32_t x, int32_t dy, int32_t w)
{
    if (!grad_needs(grad, w))
        return;
    bool accumulate = false;
    int32_t dw = grad_place(grad, w, &accumulate);
    struct op *op = draft_op(grad->draft, OP_outer, IN(x, dy), OUT(dw));
    op->attr.outer.scale = 1;
    op->attr.outer.accumulate = accumulate;
    grad_give(grad, w, dw); /* of rounded weights it goes on to those */
}

/* dW = xᵀ·dy, db = Σ dy, dx = dy·Wᵀ */
void grad_dense(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_dense_x), w = grad_operand(grad, op, AT_dense_w),
            b = grad_operand(grad, op, AT_dense_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_dense_y));
    write_outer(grad, x, dy, w);
    grad_bias(grad, dy, b);
    if (!grad_needs(grad, x))
        return;
    int32_t dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_dense_t, IN(dy, w, -1), OUT(dx));
    grad_give(grad, x, dx);
}

/* y = x·Wᵀ + b: dW = dyᵀ·x, dx = dy·W */
void grad_dense_t(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_dense_t_x), w = grad_operand(grad, op, AT_dense_t_w),
            b = grad_operand(grad, op, AT_dense_t_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_dense_t_y));
    write_outer(grad, dy, x, w);
    grad_bias(grad, dy, b);
    if (!grad_needs(grad, x))
        return;
    int32_t dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_dense, IN(dy, w, -1), OUT(dx));
    grad_give(grad, x, dx);
}
