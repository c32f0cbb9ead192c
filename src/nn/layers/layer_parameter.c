/* layer_parameter.c: numbers that are learnt, or given with the network, and depend on no input. */
#include "nn/layer.h"

layer_emitter emit_parameter, emit_mask;

/* Numbers that are not learnt are a statistic: saved with the weights, left alone by updates. */
int32_t emit_parameter(struct layer_emit *emit)
{
    const struct layer_list *sizes = &emit->layer->lists[0];
    struct shape shape = {.rank = 1, .dim = {draft_shape(emit->draft, emit->rows)->dim[0]}};
    struct shape sample = {.rank = sizes->count};
    struct init init = {INIT_NORMAL, 1};
    if (sizes->count >= SHAPE_MOST) {
        draft_fail(emit->draft, STATUS_INPUT, "%s: found %d sizes, expected at most %d",
                   emit->layer->name, sizes->count, SHAPE_MOST - 1);
        return -1;
    }
    for (int32_t i = 0; i < sizes->count; i++)
        shape.dim[shape.rank++] = sample.dim[i] = sizes->items[i];
    int64_t count = shape_count(&sample);
    int32_t w = emit->layer->values[1] != 0 ? layer_param(emit, "weight", sample, init)
                                            : layer_statistic(emit, "weight", sample, init);
    int32_t y = layer_output(emit, shape);
    draft_op(emit->draft, OP_expand, IN(layer_view(emit, w, SHAPE(1, count))),
             OUT(layer_view(emit, y, SHAPE(1, shape.dim[0], count))));
    return y;
}

int32_t emit_mask(struct layer_emit *emit)
{
    int32_t x = emit->inputs[0];
    struct shape shape = *draft_shape(emit->draft, x), sample = {.rank = shape.rank - 1};
    for (int32_t d = 0; d < sample.rank; d++)
        sample.dim[d] = shape.dim[d + 1];
    int32_t keep = layer_statistic(emit, "keep", sample, (struct init){INIT_NORMAL, 1});
    int32_t y = layer_output(emit, shape);
    draft_op(emit->draft, OP_mask, IN(x, keep), OUT(y));
    return y;
}
