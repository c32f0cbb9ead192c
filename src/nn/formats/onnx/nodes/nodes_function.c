/* nodes_function.c: functions of one number that no layer is, made of those that are. Steps (Sign,
 * Shrink, ThresholdedRelu, Hardmax) are exact: see compose_step. */
#include "nn/formats/onnx/compose.h"

#include "nn/layer.h"

#include <float.h>
#include <math.h>
#include <string.h>

node_writer node_activation, node_unit, node_softsign, node_hyperbolic, node_inverse_hyperbolic,
    node_shrink, node_sign;

enum status node_activation(struct import *in)
{
    static const char *const kinds[][2] = {
        {"Relu", "relu"},         {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"},
        {"Softplus", "softplus"}, {"Gelu", "gelu"},       {"Reciprocal", "reciprocal"},
        {"Erf", "erf"},           {"Sqrt", "sqrt"},       {"Exp", "exp"},
        {"Log", "log"},
    };
    struct value *x;
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i][0], in->node->op_type))
            kind = kinds[i][1];
    if (!strcmp(kind, "gelu") && !graph_text_is(in, "approximate", "none", "none"))
        REFUSE(in, STATUS_UNSUPPORTED, "found an approximation, expected approximate='none'");
    TRY(node_data(in, 0, &x));
    struct value y = *x;
    TRY(compose_apply(in, &y, kind, "%s", ""));
    return compose_give(in, &y);
}

/* e^(by·x) - 1 times alpha; where alpha is not below 0, that of the layer, which is exact near 0.
 */
static enum status exponential(struct import *in, double alpha, double by, struct value *x)
{
    TRY(compose_affine(in, x, by, 0));
    if (alpha >= 0)
        return compose_apply(in, x, "elu", "%.9g", alpha);
    TRY(compose_apply(in, x, "exp", "%s", ""));
    return compose_affine(in, x, alpha, -alpha);
}

/* LeakyRelu, Elu, Selu and Celu: x above 0, below it x, or an exponential of it, times alpha. */
enum status node_unit(struct import *in)
{
    const char *op = in->node->op_type;
    bool leaky = !strcmp(op, "LeakyRelu"), celu = !strcmp(op, "Celu"), selu = !strcmp(op, "Selu");
    double usual = leaky ? 0.01 : selu ? 1.67326319217681884765625 : 1;
    double alpha = graph_real(in, "alpha", usual);
    double gamma = selu ? graph_real(in, "gamma", 1.05070102214813232421875) : 1;
    struct value *x;
    TRY(node_data(in, 0, &x));
    if (!(fabs(alpha) <= (double)FLT_MAX && fabs(gamma) <= (double)FLT_MAX) ||
        (celu && !isnormal(1 / alpha)))
        REFUSE(in, STATUS_UNSUPPORTED, "alpha is %g, expected another number", alpha);
    struct value y = *x;
    if (alpha >= 0 && !celu) {
        TRY(compose_apply(in, &y, leaky ? "leaky_relu" : "elu", "%.9g", alpha));
        TRY(compose_affine(in, &y, gamma, 0));
        return compose_give(in, &y);
    }
    TRY(compose_below_zero(in, &y));
    if (leaky)
        TRY(compose_affine(in, &y, alpha, 0));
    else
        TRY(exponential(in, alpha, celu ? 1 / alpha : 1, &y));
    struct value above = *x;
    TRY(compose_above_zero(in, &above));
    TRY(node_combine(in, "add", &above, &y, &above));
    TRY(compose_affine(in, &above, gamma, 0));
    return compose_give(in, &above);
}

/* x / (1 + |x|) */
enum status node_softsign(struct import *in)
{
    struct value *x;
    TRY(node_data(in, 0, &x));
    struct value size = *x;
    TRY(compose_absolute(in, &size));
    TRY(compose_affine(in, &size, 1, 1));
    TRY(node_combine(in, "divide", x, &size, &size));
    return compose_give(in, &size);
}

/* With c the cosine of x / 2, cosh x is 2·c² - 1, and sinh x is 2·c²·tanh(x / 2): nothing cancels,
 * and nothing is infinite too early. */
enum status node_hyperbolic(struct import *in)
{
    struct value *x;
    TRY(node_data(in, 0, &x));
    struct value half = *x;
    TRY(compose_affine(in, &half, 0.5, 0));
    struct value up = half, down = half;
    TRY(compose_apply(in, &up, "exp", "%s", ""));
    TRY(compose_affine(in, &down, -1, 0));
    TRY(compose_apply(in, &down, "exp", "%s", ""));
    TRY(node_combine(in, "add", &up, &down, &up)); /* 2·c */
    down = up;
    TRY(compose_affine(in, &down, 0.5, 0));
    if (!strcmp(in->node->op_type, "Cosh")) {
        TRY(node_combine(in, "multiply", &up, &down, &up));
        TRY(compose_affine(in, &up, 1, -1));
        return compose_give(in, &up);
    }
    TRY(compose_apply(in, &half, "tanh", "%s", ""));
    TRY(node_combine(in, "multiply", &half, &up, &up));
    TRY(node_combine(in, "multiply", &up, &down, &up));
    return compose_give(in, &up);
}

/* ln(x + root) */
static enum status log_of_sum(struct import *in, const struct value *root, struct value *x)
{
    TRY(node_combine(in, "add", x, root, x));
    return compose_apply(in, x, "log", "%s", "");
}

/* ln(x + √(x² + 1)), x not below 0 */
static enum status inverse_sine(struct import *in, struct value *x)
{
    struct value root;
    TRY(node_combine(in, "multiply", x, x, &root));
    TRY(compose_affine(in, &root, 1, 1));
    TRY(compose_apply(in, &root, "sqrt", "%s", ""));
    return log_of_sum(in, &root, x);
}

/* The sine's of each half, so that nothing cancels. */
static enum status write_asinh(struct import *in, const struct value *x)
{
    struct value above = *x, below = *x;
    TRY(compose_above_zero(in, &above));
    TRY(compose_below_zero(in, &below));
    TRY(compose_affine(in, &below, -1, 0));
    TRY(inverse_sine(in, &above));
    TRY(inverse_sine(in, &below));
    TRY(compose_affine(in, &below, -1, 0));
    TRY(node_combine(in, "add", &above, &below, &above));
    return compose_give(in, &above);
}

/* ln(x + √(x - 1)·√(x + 1)) */
static enum status write_acosh(struct import *in, const struct value *x)
{
    struct value root = *x, other = *x, y = *x;
    TRY(compose_affine(in, &root, 1, -1));
    TRY(compose_affine(in, &other, 1, 1));
    TRY(compose_apply(in, &root, "sqrt", "%s", ""));
    TRY(compose_apply(in, &other, "sqrt", "%s", ""));
    TRY(node_combine(in, "multiply", &root, &other, &root));
    TRY(log_of_sum(in, &root, &y));
    return compose_give(in, &y);
}

/* ½·ln((1 + x) / (1 - x)) */
static enum status write_atanh(struct import *in, const struct value *x)
{
    struct value y = *x, other = *x;
    TRY(compose_affine(in, &y, 1, 1));
    TRY(compose_affine(in, &other, -1, 1));
    TRY(node_combine(in, "divide", &y, &other, &y));
    TRY(compose_apply(in, &y, "log", "%s", ""));
    TRY(compose_affine(in, &y, 0.5, 0));
    return compose_give(in, &y);
}

enum status node_inverse_hyperbolic(struct import *in)
{
    const char *op = in->node->op_type;
    struct value *x;
    TRY(node_data(in, 0, &x));
    return !strcmp(op, "Asinh")   ? write_asinh(in, x)
           : !strcmp(op, "Acosh") ? write_acosh(in, x)
                                  : write_atanh(in, x);
}

/* x + shift where x is above the number, else 0; what lies below must not be infinite. */
static enum status take_above(struct import *in, double number, double shift, struct value *x)
{
    struct value step = *x;
    TRY(compose_step(in, &step, number));
    TRY(compose_apply(in, x, "clip", "%.9g %.9g", number, BOUND_NONE));
    TRY(compose_affine(in, x, 1, shift));
    return node_combine(in, "multiply", x, &step, x);
}

/* ThresholdedRelu: x above alpha; Shrink: x above lambd or below -lambd, nearer to 0 by the bias.
 * Else 0. */
enum status node_shrink(struct import *in)
{
    bool both = !strcmp(in->node->op_type, "Shrink");
    double number = both ? graph_real(in, "lambd", 0.5) : graph_real(in, "alpha", 1);
    double bias = both ? graph_real(in, "bias", 0) : 0;
    struct value *x;
    TRY(node_data(in, 0, &x));
    if (!(fabs(number) < BOUND_NONE && fabs(bias) < BOUND_NONE) || (both && number < 0))
        REFUSE(in, STATUS_UNSUPPORTED, "it cuts at %g, expected a number, of Shrink not below 0",
               number);
    struct value above = *x, below = *x;
    TRY(take_above(in, number, -bias, &above));
    if (both) {
        TRY(compose_affine(in, &below, -1, 0));
        TRY(take_above(in, number, -bias, &below));
        TRY(compose_affine(in, &below, -1, 0));
        TRY(node_combine(in, "add", &above, &below, &above));
    }
    return compose_give(in, &above);
}

enum status node_sign(struct import *in)
{
    struct value *x;
    TRY(node_data(in, 0, &x));
    struct value above = *x, below = *x;
    TRY(compose_step(in, &above, 0));
    TRY(compose_affine(in, &below, -1, 0));
    TRY(compose_step(in, &below, 0));
    TRY(compose_affine(in, &below, -1, 0));
    TRY(node_combine(in, "add", &above, &below, &above));
    return compose_give(in, &above);
}
