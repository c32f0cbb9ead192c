/* layer_simple.c: layers without parameters. */
#include "nn/layer.h"

layer_emitter emit_sigmoid, emit_tanh, emit_relu, emit_dropout, emit_flatten, emit_add;

static int32_t emit_activation(struct layer_emit *emit, enum activation function)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    draft_op(emit->draft, OP_activate, IN(emit->inputs[0]), OUT(y))->attr.activate.function =
        (int32_t)function;
    return y;
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

int32_t emit_flatten(struct layer_emit *emit)
{
    const struct shape *shape = draft_shape(emit->draft, emit->inputs[0]);
    int64_t batch = shape->dim[0];
    return draft_view(emit->draft, emit->inputs[0], SHAPE(batch, shape_count(shape) / batch));
}

int32_t emit_add(struct layer_emit *emit)
{
    int32_t y = layer_output(emit, *draft_shape(emit->draft, emit->inputs[0]));
    draft_op(emit->draft, OP_add, IN(emit->inputs[0], emit->inputs[1]), OUT(y));
    return y;
}
