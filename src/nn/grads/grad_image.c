/* grad_image.c: convolution, pooling, lrn. Gradient ops have the attributes of the op whose
 * gradient they compute. */
#include "nn/grad_rules.h"

grad_rule grad_conv, grad_conv_t, grad_max_pool, grad_max_unpool, grad_average_pool, grad_lrn;

/* dw and db: w relates `image` to `smaller`, of which one is dy. */
static void write_weights(struct grad *grad, const struct op *op, int32_t image, int32_t smaller,
                          int32_t dy)
{
    int32_t w = grad_operand(grad, op, AT_conv_w), b = grad_operand(grad, op, AT_conv_b);
    bool accumulate = false;
    if (grad_needs(grad, w)) {
        int32_t dw = grad_place(grad, w, &accumulate);
        struct op *product = draft_op(grad->draft, OP_conv_dw, IN(image, smaller), OUT(dw));
        product->attr = op->attr;
        product->attr.conv_dw.accumulate = accumulate;
        grad_give(grad, w, dw); /* of rounded weights it goes on to those */
    }
    if (grad_needs(grad, b)) {
        int32_t db = grad_weight(grad, b, &accumulate);
        draft_op(grad->draft, OP_sum_channels, IN(dy), OUT(db))->attr.sum_channels.accumulate =
            accumulate;
    }
}

/* dx by the op that goes the other way. */
static void write_image(struct grad *grad, const struct op *op, enum op_kind back, int32_t dy)
{
    int32_t x = grad_operand(grad, op, AT_conv_x), w = grad_operand(grad, op, AT_conv_w);
    if (!grad_needs(grad, x))
        return;
    int32_t dx = grad_fresh(grad, x);
    draft_op(grad->draft, back, IN(dy, w, -1), OUT(dx))->attr = op->attr;
    grad_give(grad, x, dx);
}

void grad_conv(struct grad *grad, const struct op *op)
{
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_conv_y));
    write_weights(grad, op, grad_operand(grad, op, AT_conv_x), dy, dy);
    write_image(grad, op, OP_conv_t, dy);
}

void grad_conv_t(struct grad *grad, const struct op *op)
{
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_conv_t_y));
    write_weights(grad, op, dy, grad_operand(grad, op, AT_conv_t_x), dy);
    write_image(grad, op, OP_conv, dy);
}

void grad_max_pool(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_max_pool_x),
            places = grad_operand(grad, op, AT_max_pool_places);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_max_pool_y)), dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_max_unpool, IN(dy, places), OUT(dx));
    grad_give(grad, x, dx);
}

void grad_max_unpool(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_max_unpool_x),
            places = grad_operand(grad, op, AT_max_unpool_places);
    if (!grad_needs(grad, x)) /* the places alone may depend on a parameter */
        return;
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_max_unpool_y)),
            dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_max_unpool_grad, IN(dy, places), OUT(dx));
    grad_give(grad, x, dx);
}

void grad_average_pool(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_average_pool_x);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_average_pool_y)),
            dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_average_pool_grad, IN(dy), OUT(dx))->attr = op->attr;
    grad_give(grad, x, dx);
}

void grad_lrn(struct grad *grad, const struct op *op)
{
    int32_t x = grad_operand(grad, op, AT_lrn_x), base = grad_operand(grad, op, AT_lrn_base);
    int32_t dy = grad_flows(grad, grad_operand(grad, op, AT_lrn_y)), dx = grad_fresh(grad, x);
    draft_op(grad->draft, OP_lrn_grad, IN(x, base, dy), OUT(dx))->attr = op->attr;
    grad_give(grad, x, dx);
}
