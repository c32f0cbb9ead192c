/* layer_simple.c: layers without parameters. */
#include "nn/layer.h"

#include <math.h>

layer_emitter emit_sigmoid, emit_tanh, emit_relu, emit_gelu, emit_softplus, emit_leaky_relu,
    emit_elu, emit_erf, emit_sqrt, emit_reciprocal, emit_exp, emit_log, emit_clip, emit_dropout,
    emit_quantise, emit_add, emit_multiply, emit_divide;

static int32_t emit_activation(struct layer_emit *emit, enum activation function)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    struct op *op = draft_op(emit->draft, OP_activate, IN(emit->inputs[0]), OUT(y));
    op->attr.activate.function = (int32_t)function;
    if (activation_has_alpha(function))
        op->attr.activate.alpha = (float)emit->layer->values[0];
    return y;
}

/* Its derivative is computed from its output, which must therefore tell the two sides apart. */
static int32_t emit_two_sided(struct layer_emit *emit, enum activation function, const char *what)
{
    if (!(emit->layer->values[0] >= 0))
        draft_fail(emit->draft, STATUS_INPUT, "%s: the %s is %g, expected 0 or more",
                   emit->layer->name, what, emit->layer->values[0]);
    return emit_activation(emit, function);
}

int32_t emit_sigmoid(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_SIGMOID);
}

int32_t emit_tanh(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_TANH);
}

int32_t emit_relu(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_RELU);
}

int32_t emit_gelu(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_GELU);
}

int32_t emit_softplus(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_SOFTPLUS);
}

int32_t emit_erf(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_ERF);
}

int32_t emit_sqrt(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_SQRT);
}

int32_t emit_reciprocal(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_RECIPROCAL);
}

int32_t emit_exp(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_EXP);
}

int32_t emit_log(struct layer_emit *emit)
{
    return emit_activation(emit, ACTIVATION_LOG);
}

int32_t emit_leaky_relu(struct layer_emit *emit)
{
    return emit_two_sided(emit, ACTIVATION_LEAKY_RELU, "slope");
}

int32_t emit_elu(struct layer_emit *emit)
{
    return emit_two_sided(emit, ACTIVATION_ELU, "alpha");
}

/* As the op takes it. */
static float bound_of(double given)
{
    return fabs(given) < BOUND_NONE ? (float)given : given < 0 ? -HUGE_VALF : HUGE_VALF;
}

int32_t emit_clip(struct layer_emit *emit)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    struct op *op = draft_op(emit->draft, OP_bound, IN(emit->inputs[0]), OUT(y));
    op->attr.bound.low = bound_of(emit->layer->values[0]);
    op->attr.bound.high = bound_of(emit->layer->values[1]);
    return y;
}

/* Through the 8 bits that the levels fit into, and back. */
int32_t emit_quantise(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    const struct shape shape = *draft_shape(draft, emit->inputs[0]);
    const double scale = layer_value(emit, "scale"), low = layer_value(emit, "low");
    const double high = layer_value(emit, "high");
    const bool levels = layer_value(emit, "levels") != 0;
    if (!((float)scale > 0) || !isfinite((float)scale) || !(low >= -255 && low <= 0) ||
        !(high >= 0 && high - low <= 255) || rint(low) != low || rint(high) != high)
        draft_fail(draft, STATUS_INPUT,
                   "%s: found the scale %g and levels from %g to %g, expected a scale above 0 and "
                   "up to 256 whole levels, 0 among them",
                   emit->layer->name, scale, low, high);
    if (levels && emit->phase == PHASE_TRAINING)
        draft_fail(draft, STATUS_INPUT, "%s: levels=1 is for inference", emit->layer->name);
    if (draft->status != STATUS_OK)
        return emit->inputs[0];
    int32_t small = draft_tensor(draft, ROLE_ACTIVATION, DTYPE_U8, "levels", shape);
    int32_t y = layer_output(emit, shape);
    struct op *op = draft_op(draft, OP_quantise, IN(emit->inputs[0]), OUT(small));
    op->attr.quantise.scale = (float)scale;
    op->attr.quantise.zero = -(int32_t)low;
    op->attr.quantise.high = (int32_t)(high - low);
    op = draft_op(draft, OP_dequantise, IN(small, -1), OUT(y));
    op->attr.dequantise.scale = levels ? 1 : (float)scale;
    op->attr.dequantise.zero = -(int32_t)low;
    return y;
}

int32_t emit_dropout(struct layer_emit *emit)
{
    double rate = emit->layer->values[0];
    if (!(rate >= 0 && rate < 1))
        draft_fail(emit->draft, STATUS_INPUT, "%s: the rate is %g, expected 0 or more, below 1",
                   emit->layer->name, rate);
    if (emit->phase == PHASE_INFERENCE)
        return emit->inputs[0];
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    struct op *op = draft_op(emit->draft, OP_dropout, IN(emit->inputs[0], emit->rows), OUT(y));
    op->attr.dropout.rate = (float)rate;
    op->attr.dropout.stream = op->id;
    return y;
}

/* The shape in which both inputs fit: where one has the size 1, that of the other. */
static bool find_common(struct layer_emit *emit, struct shape *out)
{
    const struct shape *a = draft_shape(emit->draft, emit->inputs[0]);
    const struct shape *b = draft_shape(emit->draft, emit->inputs[1]);
    bool fits = a->rank == b->rank;
    *out = *a;
    for (int32_t i = 0; fits && i < a->rank; i++) {
        fits = a->dim[i] == b->dim[i] || a->dim[i] == 1 || b->dim[i] == 1;
        out->dim[i] = a->dim[i] == 1 ? b->dim[i] : a->dim[i];
    }
    if (fits)
        return true;
    struct text first = {0}, second = {0};
    shape_print(a, &first);
    shape_print(b, &second);
    draft_fail(emit->draft, STATUS_INPUT,
               "%s: its inputs are %s and %s, expected equal sizes or 1 in the same number of "
               "dimensions (reshape adds dimensions of 1)",
               emit->layer->name, text_of(&first), text_of(&second));
    text_free(&first);
    text_free(&second);
    return false;
}

/* The tensor in that shape, repeated along the dimensions in which it has the size 1: an op for
 * each run of these. */
static int32_t repeat(struct layer_emit *emit, int32_t x, const struct shape *to)
{
    struct shape shape = *draft_shape(emit->draft, x);
    for (int32_t axis = 0, next; axis < shape.rank; axis = next) {
        int64_t before = 1, times = 1;
        for (next = axis; next < shape.rank && shape.dim[next] < to->dim[next]; next++)
            times *= to->dim[next];
        if (next == axis) {
            next++;
            continue;
        }
        for (int32_t i = 0; i < axis; i++)
            before *= shape.dim[i];
        int64_t behind = shape_count(&shape) / before;
        int32_t from = layer_view(emit, x, SHAPE(before, behind));
        for (int32_t i = axis; i < next; i++)
            shape.dim[i] = to->dim[i];
        x = layer_output(emit, shape);
        draft_op(emit->draft, OP_expand, IN(from),
                 OUT(layer_view(emit, x, SHAPE(before, times, behind))));
    }
    return x;
}

static int32_t emit_pair(struct layer_emit *emit, enum op_kind kind)
{
    struct shape shape;
    if (emit->draft->status != STATUS_OK || !find_common(emit, &shape))
        return -1;
    int32_t a = repeat(emit, emit->inputs[0], &shape), b = repeat(emit, emit->inputs[1], &shape);
    int32_t y = layer_output(emit, shape);
    draft_op(emit->draft, kind, IN(a, b), OUT(y));
    return y;
}

int32_t emit_add(struct layer_emit *emit)
{
    return emit_pair(emit, OP_add);
}

int32_t emit_multiply(struct layer_emit *emit)
{
    return emit_pair(emit, OP_multiply);
}

int32_t emit_divide(struct layer_emit *emit)
{
    return emit_pair(emit, OP_divide);
}
