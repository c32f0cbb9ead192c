/* layer_norm.c: normalisation: scale and shift are learnt; the running mean and variance of batch
 * normalisation are statistics of the network. */
#include "nn/layer.h"

layer_emitter emit_batch_norm, emit_layer_norm, emit_lrn;

int32_t emit_batch_norm(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    int32_t x = emit->inputs[0];
    struct shape shape = *draft_shape(draft, x);
    if (shape.rank < 2)
        draft_fail(draft, STATUS_INPUT, "%s: its input has no channels", emit->layer->name);
    struct shape channels = SHAPE(shape.dim[1]);
    struct init zero = {.kind = INIT_ZERO}, one = {.kind = INIT_ONE};
    int32_t gamma = layer_param(emit, "scale", channels, one);
    int32_t beta = layer_param(emit, "shift", channels, zero);
    int32_t mean = layer_statistic(emit, "mean", channels, zero);
    int32_t variance = layer_statistic(emit, "variance", channels, one);
    float epsilon = (float)emit->layer->values[0], momentum = (float)emit->layer->values[1];
    if (!(epsilon >= 0) || !(momentum >= 0 && momentum <= 1))
        draft_fail(draft, STATUS_INPUT,
                   "%s: epsilon is %g and momentum %g, expected 0 or more, and 0 to 1",
                   emit->layer->name, (double)epsilon, (double)momentum);
    int32_t y = layer_output(emit, shape);
    if (emit->phase == PHASE_INFERENCE) {
        draft_op(draft, OP_batch_norm_fixed, IN(x, gamma, beta, mean, variance), OUT(y))
            ->attr.batch_norm_fixed.epsilon = epsilon;
        return y;
    }
    int32_t saved_mean = draft_real(draft, "saved_mean", channels);
    int32_t saved_scale = draft_real(draft, "saved_scale", channels);
    struct op *op = draft_op(draft, OP_batch_norm, IN(x, gamma, beta, mean, variance),
                             OUT(y, saved_mean, saved_scale, mean, variance));
    op->attr.batch_norm.epsilon = epsilon;
    op->attr.batch_norm.momentum = momentum;
    return y;
}

int32_t emit_lrn(struct layer_emit *emit)
{
    enum { SIZE, ALPHA, BETA, K };
    struct draft *draft = emit->draft;
    const double *values = emit->layer->values;
    int32_t x = emit->inputs[0];
    struct shape shape = *draft_shape(draft, x);
    if (shape.rank < 2)
        draft_fail(draft, STATUS_INPUT, "%s: its input has no channels", emit->layer->name);
    int32_t y = layer_output(emit, shape);
    int32_t base = emit->phase == PHASE_TRAINING ? draft_real(draft, "base", shape) : -1;
    struct op *op = draft_op(draft, OP_lrn, IN(x), OUT(y, base));
    op->attr.lrn.size = (int32_t)values[SIZE];
    op->attr.lrn.alpha = (float)values[ALPHA];
    op->attr.lrn.beta = (float)values[BETA];
    op->attr.lrn.k = (float)values[K];
    return y;
}

int32_t emit_layer_norm(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]), rows = layer_rows(&shape);
    struct shape one_each = SHAPE(rows.dim[0]), width = SHAPE(rows.dim[1]);
    int32_t gamma = layer_param(emit, "scale", width, (struct init){.kind = INIT_ONE});
    int32_t beta = layer_param(emit, "shift", width, (struct init){.kind = INIT_ZERO});
    int32_t y = layer_output(emit, shape);
    int32_t saved_mean = draft_real(draft, "saved_mean", one_each);
    int32_t saved_scale = draft_real(draft, "saved_scale", one_each);
    draft_op(draft, OP_layer_norm, IN(layer_view(emit, emit->inputs[0], rows), gamma, beta),
             OUT(layer_view(emit, y, rows), saved_mean, saved_scale))
        ->attr.layer_norm.epsilon = (float)emit->layer->values[0];
    return y;
}
