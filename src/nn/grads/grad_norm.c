/* grad_norm.c: normalisation. Both kinds keep the mean and 1/σ they used. */
#include "nn/grad_rules.h"

grad_rule grad_batch_norm, grad_layer_norm;

/* Its result, and what it kept: the mean and 1/σ. */
struct norm {
    int32_t y, mean, scale;
};

/* attr.batch_norm_grad and attr.layer_norm_grad are alike, and so are the first three operands. */
static void write_norm(struct grad *grad, const struct op *op, enum op_kind gradient,
                       const struct norm *norm)
{
    int32_t x = grad_operand(grad, op, AT_batch_norm_x);
    int32_t gamma = grad_operand(grad, op, AT_batch_norm_gamma);
    int32_t beta = grad_operand(grad, op, AT_batch_norm_beta), dy = grad_flows(grad, norm->y);
    bool accumulate = false;
    int32_t dx = grad_needs(grad, x) ? grad_fresh(grad, x) : -1;
    int32_t dgamma = grad_weight(grad, gamma, &accumulate);
    int32_t dbeta = grad_weight(grad, beta, &accumulate);
    draft_op(grad->draft, gradient, IN(x, gamma, norm->mean, norm->scale, dy),
             OUT(dx, dgamma, dbeta))
        ->attr.batch_norm_grad.accumulate = accumulate;
    if (dx >= 0)
        grad_give(grad, x, dx);
}

void grad_batch_norm(struct grad *grad, const struct op *op)
{
    const struct norm norm = {grad_operand(grad, op, AT_batch_norm_y),
                              grad_operand(grad, op, AT_batch_norm_saved_mean),
                              grad_operand(grad, op, AT_batch_norm_saved_scale)};
    write_norm(grad, op, OP_batch_norm_grad, &norm);
}

void grad_layer_norm(struct grad *grad, const struct op *op)
{
    const struct norm norm = {grad_operand(grad, op, AT_layer_norm_y),
                              grad_operand(grad, op, AT_layer_norm_saved_mean),
                              grad_operand(grad, op, AT_layer_norm_saved_scale)};
    write_norm(grad, op, OP_layer_norm_grad, &norm);
}
