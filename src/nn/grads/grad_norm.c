/* grad_norm.c: normalisation. */
#include "nn/grad_rules.h"

grad_rule grad_batch_norm, grad_layer_norm;

void grad_batch_norm(struct grad *grad, const struct op *op)
{
    int32_t x = grad_input(grad, op, 0), gamma = grad_input(grad, op, 1),
            beta = grad_input(grad, op, 2);
    int32_t mean = grad_output(grad, op, 1), scale = grad_output(grad, op, 2);
    int32_t dy = grad_flows(grad, grad_output(grad, op, 0));
    bool accumulate = false;
    int32_t dx = grad_needs(grad, x) ? grad_fresh(grad, x) : -1;
    int32_t dgamma = grad_weight(grad, gamma, &accumulate);
    int32_t dbeta = grad_weight(grad, beta, &accumulate);
    draft_op(grad->draft, OP_batch_norm_grad, IN(x, gamma, mean, scale, dy), OUT(dx, dgamma, dbeta))
        ->attr.batch_norm_grad.accumulate = accumulate;
    if (dx >= 0)
        grad_give(grad, x, dx);
}

void grad_layer_norm(struct grad *grad, const struct op *op)
{
    int32_t x = grad_input(grad, op, 0), gamma = grad_input(grad, op, 1),
            beta = grad_input(grad, op, 2);
    int32_t mean = grad_output(grad, op, 1), scale = grad_output(grad, op, 2);
    int32_t dy = grad_flows(grad, grad_output(grad, op, 0));
    bool accumulate = false;
    int32_t dx = grad_needs(grad, x) ? grad_fresh(grad, x) : -1;
    int32_t dgamma = grad_weight(grad, gamma, &accumulate);
    int32_t dbeta = grad_weight(grad, beta, &accumulate);
    draft_op(grad->draft, OP_layer_norm_grad, IN(x, gamma, mean, scale, dy), OUT(dx, dgamma, dbeta))
        ->attr.layer_norm_grad.accumulate = accumulate;
    if (dx >= 0)
        grad_give(grad, x, dx);
}
