/* grad_code.c: through the draw of a code to its mean and variance. */
#include "nn/grad_rules.h"

grad_rule grad_draw_normal;

void grad_draw_normal(struct grad *grad, const struct op *op)
{
    int32_t moments = grad_operand(grad, op, AT_draw_normal_moments),
            z = grad_operand(grad, op, AT_draw_normal_z);
    int32_t dz = grad_flows(grad, z), dmoments = grad_fresh(grad, moments);
    draft_op(grad->draft, OP_draw_normal_grad, IN(moments, z, dz), OUT(dmoments));
    grad_give(grad, moments, dmoments);
}
