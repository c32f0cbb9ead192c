/* layer_dense.c: a fully connected layer. Weights are [in][out]; they start uniform in
 * ±√(6 / (in + out)) (Glorot and Bengio 2010), biases at 0. */
#include "nn/layer.h"

#include <math.h>

layer_emitter emit_dense;

int32_t emit_dense(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    int32_t x = emit->inputs[0];
    struct shape shape = *draft_shape(draft, x);
    int64_t in = shape.dim[shape.rank - 1], out = (int64_t)emit->layer->values[0];
    struct init usual = {INIT_UNIFORM, sqrtf(6.0f / (float)(in + out))};
    int32_t w = layer_matrix(emit, "weight", SHAPE(in, out), layer_init(emit, usual, in, out));
    int32_t b = -1;
    if (emit->layer->values[1] != 0)
        b = layer_param(emit, "bias", SHAPE(out), (struct init){.kind = INIT_ZERO});
    /* [batch, time, in] is a taller matrix with the same columns */
    int64_t rows = shape_count(&shape) / in;
    if (shape.rank > 2)
        x = draft_view(draft, x, SHAPE(rows, in));
    int32_t y = layer_output(emit, SHAPE(rows, out));
    x = layer_rounded_input(emit, x);
    w = layer_rounded_weight(emit, w, 1, out);
    draft_op(draft, OP_dense, IN(x, w, b), OUT(y));
    if (shape.rank == 2)
        return y;
    shape.dim[shape.rank - 1] = out;
    return draft_view(draft, y, shape);
}
