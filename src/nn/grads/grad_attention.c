/* grad_attention.c: batched products and softmax. */
#include "nn/grad_rules.h"

grad_rule grad_matmul, grad_matmul_nt, grad_matmul_tn, grad_softmax, grad_softmax_causal;

/* The gradient of `to` is the product of kind `kind` of a and b, with the op's scale. */
static void give_matmul(struct grad *grad, int32_t to, enum op_kind kind, int32_t a, int32_t b,
                        float scale)
{
    if (!grad_needs(grad, to))
        return;
    int32_t d = grad_fresh(grad, to);
    draft_op(grad->draft, kind, IN(a, b), OUT(d))->attr.matmul.scale = scale;
    grad_give(grad, to, d);
}

/* y = a·b: da = dy·bᵀ, db = aᵀ·dy */
void grad_matmul(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_matmul_a), b = grad_operand(grad, op, AT_matmul_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_matmul_y));
    give_matmul(grad, a, OP_matmul_nt, dy, b, op->attr.matmul.scale);
    give_matmul(grad, b, OP_matmul_tn, a, dy, op->attr.matmul.scale);
}

/* y = a·bᵀ: da = dy·b, db = dyᵀ·a */
void grad_matmul_nt(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_matmul_nt_a), b = grad_operand(grad, op, AT_matmul_nt_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_matmul_nt_y));
    give_matmul(grad, a, OP_matmul, dy, b, op->attr.matmul_nt.scale);
    give_matmul(grad, b, OP_matmul_tn, dy, a, op->attr.matmul_nt.scale);
}

/* y = aᵀ·b: da = b·dyᵀ, db = a·dy */
void grad_matmul_tn(struct grad *grad, const struct op *op)
{
    int32_t a = grad_operand(grad, op, AT_matmul_tn_a), b = grad_operand(grad, op, AT_matmul_tn_b);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_matmul_tn_y));
    give_matmul(grad, a, OP_matmul_nt, b, dy, op->attr.matmul_tn.scale);
    give_matmul(grad, b, OP_matmul, a, dy, op->attr.matmul_tn.scale);
}

void grad_softmax(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    int32_t x = grad_operand(grad, op, AT_softmax_x), y = grad_operand(grad, op, AT_softmax_y);
    int32_t dy = grad_flows(grad, y), dx = grad_fresh(grad, x);
    const struct shape *shape = draft_shape(draft, x);
    int64_t width = shape->dim[shape->rank - 1], rows = shape_count(shape) / width;
    draft_op(
        draft, OP_softmax_grad,
        IN(draft_view(draft, y, SHAPE(rows, width)), draft_view(draft, dy, SHAPE(rows, width))),
        OUT(draft_view(draft, dx, SHAPE(rows, width))));
    grad_give(grad, x, dx);
}

/* What was masked has y = 0, so no gradient goes there. */
void grad_softmax_causal(struct grad *grad, const struct op *op)
{
    grad_softmax(grad, op);
}
