/* layer_recurrent.c: layers over [batch, time, feature]: one op each, the time loop inside. Weights
 * are [in][gates·units] and [units][gates·units], gates in PyTorch's order (lstm: i, f, g, o; gru:
 * r, z, n); weights and the two biases start uniform in ±1/√units. */
#include "nn/layer.h"

#include <math.h>

layer_emitter emit_rnn, emit_gru, emit_lstm;

/* What the three have in common: sizes, parameters, the tensors of y and of the last state. */
struct recurrent {
    int64_t batch, time, units;
    int32_t x, wx, wh, bx, bh, y, hn;
};

static bool begin(struct layer_emit *emit, int64_t gates, struct recurrent *out)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]);
    if (shape.rank != 3) {
        draft_fail(draft, STATUS_INPUT, "%s: its input is not a sequence [time, feature]",
                   emit->layer->name);
        return false;
    }
    int64_t in = shape.dim[2], units = (int64_t)emit->layer->values[0], width = gates * units;
    struct init usual = {INIT_UNIFORM, 1.0f / sqrtf((float)units)};
    *out = (struct recurrent){
        .batch = shape.dim[0],
        .time = shape.dim[1],
        .units = units,
        .x = emit->inputs[0],
        .wx =
            layer_param(emit, "input_weight", SHAPE(in, width), layer_init(emit, usual, in, units)),
        .wh = layer_param(emit, "state_weight", SHAPE(units, width),
                          layer_init(emit, usual, units, units)),
        .bx = layer_param(emit, "input_bias", SHAPE(width), usual),
        .bh = layer_param(emit, "state_bias", SHAPE(width), usual),
        .y = layer_output(emit, SHAPE(shape.dim[0], shape.dim[1], units)),
        .hn = draft_real(draft, "state", SHAPE(shape.dim[0], units)),
    };
    return true;
}

/* The argument output=sequence|last. */
static int32_t chosen_output(const struct layer_emit *emit, const struct recurrent *r)
{
    return layer_value(emit, "output") != 0 ? r->hn : r->y;
}

int32_t emit_rnn(struct layer_emit *emit)
{
    struct recurrent r;
    if (!begin(emit, 1, &r))
        return -1;
    draft_op(emit->draft, OP_rnn, IN(r.x, r.wx, r.wh, r.bx, r.bh, -1, emit->lengths),
             OUT(r.y, r.hn))
        ->attr.rnn.function =
        layer_value(emit, "function") != 0 ? ACTIVATION_RELU : ACTIVATION_TANH;
    return chosen_output(emit, &r);
}

/* What the gradient needs is kept in training only; else one step's room is enough. */
int32_t emit_gru(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct recurrent r;
    if (!begin(emit, 3, &r))
        return -1;
    int32_t sums = draft_real(draft, "sums", SHAPE(r.batch, 4 * r.units)), kept = -1;
    if (emit->phase == PHASE_TRAINING)
        kept = draft_real(draft, "gates", SHAPE(r.batch, r.time, 4 * r.units));
    draft_op(draft, OP_gru, IN(r.x, r.wx, r.wh, r.bx, r.bh, -1, emit->lengths),
             OUT(r.y, r.hn, sums, kept));
    return chosen_output(emit, &r);
}

int32_t emit_lstm(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct recurrent r;
    if (!begin(emit, 4, &r))
        return -1;
    int32_t cn = draft_real(draft, "cell", SHAPE(r.batch, r.units));
    int32_t sums = draft_real(draft, "sums", SHAPE(r.batch, 4 * r.units));
    int32_t kept = -1, cells = -1;
    if (emit->phase == PHASE_TRAINING) {
        kept = draft_real(draft, "gates", SHAPE(r.batch, r.time, 4 * r.units));
        cells = draft_real(draft, "cells", SHAPE(r.batch, r.time, r.units));
    }
    draft_op(draft, OP_lstm, IN(r.x, r.wx, r.wh, r.bx, r.bh, -1, -1, emit->lengths),
             OUT(r.y, r.hn, cn, sums, kept, cells));
    return chosen_output(emit, &r);
}
