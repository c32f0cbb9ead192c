/* layer_simple.c: layers without parameters. */
#include "nn/layer.h"

layer_emitter emit_sigmoid, emit_tanh, emit_relu, emit_gelu, emit_softplus, emit_leaky_relu,
    emit_elu, emit_dropout, emit_add, emit_multiply;

static int32_t emit_activation(struct layer_emit *emit, enum activation function)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    struct op *op = draft_op(emit->draft, OP_activate, IN(emit->inputs[0]), OUT(y));
    op->attr.activate.function = (int32_t)function;
    if (activation_has_alpha(function))
        op->attr.activate.alpha = (float)emit->layer->values[0];
    return y;
}

/* Its slope is computed from its output, which must therefore tell the two sides apart. */
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

int32_t emit_leaky_relu(struct layer_emit *emit)
{
    return emit_two_sided(emit, ACTIVATION_LEAKY_RELU, "slope");
}

int32_t emit_elu(struct layer_emit *emit)
{
    return emit_two_sided(emit, ACTIVATION_ELU, "alpha");
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

static int32_t emit_pair(struct layer_emit *emit, enum op_kind kind)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    draft_op(emit->draft, kind, IN(emit->inputs[0], emit->inputs[1]), OUT(y));
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
