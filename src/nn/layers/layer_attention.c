/* layer_attention.c: what a transformer needs beside dense layers: tokens as vectors, positions,
 * products of two layers, softmax. Heads are made with reshape and transpose. */
#include "nn/layer.h"

layer_emitter emit_embedding, emit_position, emit_gather, emit_softmax, emit_matmul;

static bool takes_tokens(struct layer_emit *emit, int32_t x)
{
    if (emit->draft->status == STATUS_OK && emit->draft->program->tensors[x].dtype != DTYPE_I32)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: found an input of real numbers, expected tokens (as in: input 16 "
                   "tokens=1000)",
                   emit->layer->name);
    return emit->draft->status == STATUS_OK;
}

/* The table starts as standard normal numbers, as PyTorch's. */
int32_t emit_embedding(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]);
    int64_t tokens = emit->tokens, units = (int64_t)emit->layer->values[0];
    int64_t picks = shape_count(&shape);
    if (!takes_tokens(emit, emit->inputs[0]))
        return -1;
    if (shape.rank == SHAPE_MOST) {
        draft_fail(draft, STATUS_INPUT, "%s: its input has too many dimensions", emit->layer->name);
        return -1;
    }
    int32_t table =
        layer_param(emit, "weight", SHAPE(tokens, units), (struct init){INIT_NORMAL, 1});
    shape.dim[shape.rank++] = units;
    int32_t y = layer_output(emit, shape);
    draft_op(draft, OP_gather,
             IN(layer_view(emit, table, SHAPE(1, tokens, units)),
                layer_view(emit, emit->inputs[0], SHAPE(1, picks))),
             OUT(layer_view(emit, y, SHAPE(1, picks, units))));
    return y;
}

int32_t emit_position(struct layer_emit *emit)
{
    struct shape shape = *draft_shape(emit->draft, emit->inputs[0]);
    struct shape sample = {.rank = shape.rank - 1};
    for (int32_t i = 0; i < sample.rank; i++)
        sample.dim[i] = shape.dim[i + 1];
    int32_t b = layer_param(emit, "weight", sample, (struct init){INIT_NORMAL, 1});
    int32_t y = layer_output(emit, shape);
    draft_op(emit->draft, OP_add_rows, IN(emit->inputs[0], b), OUT(y));
    return y;
}

int32_t emit_gather(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    int32_t table = emit->inputs[0], index = emit->inputs[1];
    struct shape shape = *draft_shape(draft, table), picks = *draft_shape(draft, index);
    if (!takes_tokens(emit, index))
        return -1;
    if (shape.rank != 3 || picks.rank != 2 || shape.dim[1] < emit->tokens) {
        draft_fail(draft, STATUS_INPUT,
                   "%s: expected a table [rows, features] with a row for each of %d tokens, and "
                   "one row of tokens",
                   emit->layer->name, emit->tokens);
        return -1;
    }
    int32_t y = layer_output(emit, SHAPE(shape.dim[0], picks.dim[1], shape.dim[2]));
    draft_op(draft, OP_gather, IN(table, index), OUT(y));
    return y;
}

int32_t emit_softmax(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]), rows = layer_rows(&shape);
    enum op_kind kind = OP_softmax;
    if (emit->layer->values[0] != 0) {
        int64_t time = rows.dim[1];
        if (shape.rank < 3 || shape.dim[shape.rank - 2] != time) {
            draft_fail(draft, STATUS_INPUT,
                       "%s: causal=1 expects square scores [query, key] in the last dimensions",
                       emit->layer->name);
            return -1;
        }
        kind = OP_softmax_causal;
        rows = SHAPE(rows.dim[0] / time, time, time);
    }
    int32_t y = layer_output(emit, shape);
    draft_op(draft, kind, IN(layer_view(emit, emit->inputs[0], rows)),
             OUT(layer_view(emit, y, rows)));
    return y;
}

/* [matrices side by side, rows, columns] */
static struct shape matrices(const struct shape *shape)
{
    int64_t rows = shape->dim[shape->rank - 2], columns = shape->dim[shape->rank - 1];
    return SHAPE(shape_count(shape) / (rows * columns), rows, columns);
}

int32_t emit_matmul(struct layer_emit *emit)
{
    enum { NONE, FIRST, SECOND };
    static const enum op_kind kinds[] = {
        [NONE] = OP_matmul, [FIRST] = OP_matmul_tn, [SECOND] = OP_matmul_nt};
    struct draft *draft = emit->draft;
    int transposed = (int)emit->layer->values[0];
    struct shape a = *draft_shape(draft, emit->inputs[0]), b = *draft_shape(draft, emit->inputs[1]);
    bool sound = a.rank >= 3 && a.rank == b.rank;
    for (int32_t i = 0; sound && i < a.rank - 2; i++)
        sound = a.dim[i] == b.dim[i];
    if (!sound) {
        draft_fail(draft, STATUS_INPUT,
                   "%s: expected two inputs of at least two dimensions, alike but for the last two",
                   emit->layer->name);
        return -1;
    }
    struct shape shape = a;
    shape.dim[a.rank - 2] = a.dim[transposed == FIRST ? a.rank - 1 : a.rank - 2];
    shape.dim[a.rank - 1] = b.dim[transposed == SECOND ? b.rank - 2 : b.rank - 1];
    int32_t y = layer_output(emit, shape);
    draft_op(draft, kinds[transposed],
             IN(layer_view(emit, emit->inputs[0], matrices(&a)),
                layer_view(emit, emit->inputs[1], matrices(&b))),
             OUT(layer_view(emit, y, matrices(&shape))))
        ->attr.matmul.scale = (float)emit->layer->values[1];
    return y;
}
