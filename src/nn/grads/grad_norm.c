/* grad_norm.c: normalisation. Both kinds keep the mean and 1/σ they used, in operands of the same
 * places. */
#include "nn/grad_rules.h"

grad_rule grad_batch_norm, grad_layer_norm;

/* attr.batch_norm_grad and attr.layer_norm_grad are alike. */
static void write_norm(struct grad *grad, const struct op *op, enum op_kind gradient)
{
    int32_t x = grad_input(grad, op, 0), gamma = grad_input(grad, op, 1);
    int32_t beta = grad_input(grad, op, 2), mean = grad_output(grad, op, 1);
    int32_t scale = grad_output(grad, op, 2), dy = grad_flows(grad, grad_output(grad, op, 0));
    bool accumulate = false;
    int32_t dx = grad_needs(grad, x) ? grad_fresh(grad, x) : -1;
    int32_t dgamma = grad_weight(grad, gamma, &accumulate);
    int32_t dbeta = grad_weight(grad, beta, &accumulate);
    draft_op(grad->draft, gradient, IN(x, gamma, mean, scale, dy), OUT(dx, dgamma, dbeta))
        ->attr.batch_norm_grad.accumulate = accumulate;
    if (dx >= 0)
        grad_give(grad, x, dx);
}

void grad_batch_norm(struct grad *grad, const struct op *op)
{
    write_norm(grad, op, OP_batch_norm_grad);
}

void grad_layer_norm(struct grad *grad, const struct op *op)
{
    write_norm(grad, op, OP_layer_norm_grad);
}
