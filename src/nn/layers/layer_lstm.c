/* layer_lstm.c: one LSTM layer over [batch, time, feature]: one op, the time loop inside. Weights
 * are [in][4·units], gates in the order i, f, g, o; all start uniform in ±1/√units. */
#include "nn/layer.h"

#include <math.h>

layer_emitter emit_lstm;

int32_t emit_lstm(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    int32_t x = emit->inputs[0];
    struct shape shape = *draft_shape(draft, x);
    if (shape.rank != 3) {
        draft_fail(draft, STATUS_INPUT, "%s: its input is not a sequence [time, feature]",
                   emit->layer->name);
        return -1;
    }
    int64_t batch = shape.dim[0], time = shape.dim[1], in = shape.dim[2];
    int64_t units = (int64_t)emit->layer->values[0], gates = 4 * units;
    struct init init = {INIT_UNIFORM, 1.0f / sqrtf((float)units)};
    int32_t wx = layer_param(emit, "input_weight", SHAPE(in, gates), init);
    int32_t wh = layer_param(emit, "state_weight", SHAPE(units, gates), init);
    int32_t bx = layer_param(emit, "input_bias", SHAPE(gates), init);
    int32_t bh = layer_param(emit, "state_bias", SHAPE(gates), init);
    int32_t y = layer_output(emit, SHAPE(batch, time, units));
    int32_t hn = draft_real(draft, "state", SHAPE(batch, units));
    int32_t cn = draft_real(draft, "cell", SHAPE(batch, units));
    int32_t sums = draft_real(draft, "sums", SHAPE(batch, gates));
    int32_t kept = -1, cells = -1;
    if (emit->phase == PHASE_TRAINING) {
        kept = draft_real(draft, "gates", SHAPE(batch, time, gates));
        cells = draft_real(draft, "cells", SHAPE(batch, time, units));
    }
    draft_op(draft, OP_lstm, IN(x, wx, wh, bx, bh, -1, -1, emit->lengths),
             OUT(y, hn, cn, sums, kept, cells));
    return emit->layer->values[1] != 0 ? hn : y;
}
