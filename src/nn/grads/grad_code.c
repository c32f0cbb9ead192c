/* grad_code.c: through the draw of a code to its mean and variance. */
#include "nn/grad_rules.h"

grad_rule grad_draw_normal;

void grad_draw_normal(struct grad *grad, const struct op *op)
{
    int32_t moments = grad_input(grad, op, 0), z = grad_output(grad, op, 0);
    int32_t dz = grad_flows(grad, z), dmoments = grad_fresh(grad, moments);
    draft_op(grad->draft, OP_draw_normal_grad, IN(moments, z, dz), OUT(dmoments));
    grad_give(grad, moments, dmoments);
}
