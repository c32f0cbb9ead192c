/* layer_shape.c: layers that move elements, take some of them, or add them up. What is only another
 * shape is a view; the rest are ops along one axis of [before, axis, behind]. */
#include "nn/layer.h"

layer_emitter emit_flatten, emit_reshape, emit_transpose, emit_slice, emit_concat, emit_reduce;

int32_t emit_flatten(struct layer_emit *emit)
{
    const struct shape *shape = draft_shape(emit->draft, emit->inputs[0]);
    int64_t batch = shape->dim[0];
    return draft_view(emit->draft, emit->inputs[0], SHAPE(batch, shape_count(shape) / batch));
}

int32_t emit_reshape(struct layer_emit *emit)
{
    const struct shape *from = draft_shape(emit->draft, emit->inputs[0]);
    const struct layer_list *sizes = &emit->layer->lists[0];
    struct shape to = {.rank = 1, .dim = {from->dim[0]}};
    if (sizes->count >= SHAPE_MOST) {
        draft_fail(emit->draft, STATUS_INPUT, "%s: found %d sizes, expected at most %d",
                   emit->layer->name, sizes->count, SHAPE_MOST - 1);
        return -1;
    }
    for (int32_t i = 0; i < sizes->count; i++)
        to.dim[to.rank++] = sizes->items[i];
    if (shape_count(&to) != shape_count(from)) {
        struct text found = {0}, expected = {0};
        shape_print(from, &found);
        shape_print(&to, &expected);
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: found %s, which has not as many elements as %s (the batch comes first)",
                   emit->layer->name, text_of(&found), text_of(&expected));
        text_free(&found);
        text_free(&expected);
        return -1;
    }
    return draft_view(emit->draft, emit->inputs[0], to);
}

/* The tensor with its axes from `at` on, `before` of them, exchanged with the `after` ones behind
 * these. */
static int32_t exchange(struct layer_emit *emit, int32_t x, int32_t at, int32_t before,
                        int32_t after)
{
    struct shape from = *draft_shape(emit->draft, x), to = from;
    struct shape blocks = SHAPE(1, 1, 1, 1); /* n, a, b, c of the op */
    for (int32_t i = 0; i < from.rank; i++) {
        int32_t block = i < at ? 0 : i < at + before ? 1 : i < at + before + after ? 2 : 3;
        blocks.dim[block] *= from.dim[i];
    }
    for (int32_t i = 0; i < before + after; i++)
        to.dim[at + i] = from.dim[at + (i < after ? before + i : i - after)];
    int32_t y = layer_output(emit, to);
    struct shape exchanged = SHAPE(blocks.dim[0], blocks.dim[2], blocks.dim[1], blocks.dim[3]);
    draft_op(emit->draft, OP_transpose, IN(layer_view(emit, x, blocks)),
             OUT(layer_view(emit, y, exchanged)));
    return y;
}

/* Axes as the file gives them, behind the batch: wanted[i] is the old place of the new axis i. */
static bool read_order(struct layer_emit *emit, int32_t rank, int32_t *wanted)
{
    const struct layer_list *axes = &emit->layer->lists[0];
    bool seen[SHAPE_MOST] = {true}, sound = axes->count == rank - 1;
    for (int32_t i = 0; sound && i < axes->count; i++) {
        int64_t axis = axes->items[i];
        sound = axis >= 1 && axis < rank && !seen[axis];
        if (!sound)
            break;
        seen[axis] = true;
        wanted[i + 1] = (int32_t)axis;
    }
    if (!sound)
        draft_fail(emit->draft, STATUS_INPUT, "%s: expected each of the axes 1 to %d once",
                   emit->layer->name, rank - 1);
    return sound;
}

/* Any order is made by exchanging neighbouring blocks of axes: from the front on, the block that
 * belongs there is brought forward. */
int32_t emit_transpose(struct layer_emit *emit)
{
    int32_t x = emit->inputs[0], rank = draft_shape(emit->draft, x)->rank;
    int32_t wanted[SHAPE_MOST] = {0}, order[SHAPE_MOST];
    if (!read_order(emit, rank, wanted))
        return -1;
    for (int32_t i = 0; i < rank; i++)
        order[i] = i;
    for (int32_t at = 1; at < rank; at++) {
        int32_t found = at, length = 1;
        while (order[found] != wanted[at])
            found++;
        if (found == at)
            continue;
        while (found + length < rank && order[found + length] == wanted[at + length])
            length++;
        x = exchange(emit, x, at, found - at, length);
        for (int32_t i = found - 1; i >= at; i--)
            order[i + length] = order[i];
        for (int32_t i = 0; i < length; i++)
            order[at + i] = wanted[at + i];
    }
    return x;
}

int32_t emit_slice(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    const double *values = emit->layer->values; /* size, from, axis */
    struct shape shape = *draft_shape(draft, emit->inputs[0]);
    int32_t axis = layer_axis(emit, &shape, values[2]);
    if (!(values[1] >= 0 && values[1] + values[0] <= (double)shape.dim[axis]) ||
        values[1] > INT32_MAX || values[1] != (double)(int32_t)values[1])
        draft_fail(draft, STATUS_INPUT, "%s: found %lld places, expected those from %g to below %g",
                   emit->layer->name, (long long)shape.dim[axis], values[1], values[1] + values[0]);
    if (draft->status != STATUS_OK)
        return -1;
    int32_t x = layer_view(emit, emit->inputs[0], layer_along(&shape, axis));
    shape.dim[axis] = (int64_t)values[0];
    int32_t y = layer_output(emit, shape);
    draft_op(draft, OP_slice, IN(x), OUT(layer_view(emit, y, layer_along(&shape, axis))))
        ->attr.slice.from = (int32_t)values[1];
    return y;
}

/* Do two shapes agree but for this axis? */
static bool agree(const struct shape *a, const struct shape *b, int32_t axis)
{
    struct shape like = *b;
    if (a->rank == b->rank)
        like.dim[axis] = a->dim[axis];
    return shape_equal(a, &like);
}

int32_t emit_concat(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]);
    int32_t axis = layer_axis(emit, &shape, emit->layer->values[0]), parts[LAYER_INPUTS];
    for (int32_t i = 0; i < emit->layer->input_count; i++) {
        const struct shape *part = draft_shape(draft, emit->inputs[i]);
        if (!agree(part, &shape, axis))
            draft_fail(draft, STATUS_INPUT,
                       "%s: its input %d has another shape than the first, beside axis %d",
                       emit->layer->name, i + 1, axis);
        if (i)
            shape.dim[axis] += part->dim[axis];
        parts[i] = layer_view(emit, emit->inputs[i], layer_along(part, axis));
    }
    int32_t y = layer_output(emit, shape);
    draft_op(draft, OP_concat, parts, emit->layer->input_count,
             OUT(layer_view(emit, y, layer_along(&shape, axis))));
    return y;
}

int32_t emit_reduce(struct layer_emit *emit)
{
    struct draft *draft = emit->draft;
    struct shape shape = *draft_shape(draft, emit->inputs[0]), along;
    struct shape kept = {.rank = 1, .dim = {shape.dim[0]}};
    if (emit->layer->values[1] == 0) {
        along = SHAPE(shape.dim[0], shape_count(&shape) / shape.dim[0], 1);
    } else {
        int32_t axis = layer_axis(emit, &shape, emit->layer->values[1]);
        along = layer_along(&shape, axis);
        for (int32_t i = 1; i < shape.rank; i++)
            if (i != axis)
                kept.dim[kept.rank++] = shape.dim[i];
    }
    if (kept.rank == 1) /* a sample is never without a dimension */
        kept.dim[kept.rank++] = 1;
    int32_t x = layer_view(emit, emit->inputs[0], along), y = layer_output(emit, kept);
    draft_op(draft, OP_reduce, IN(x), OUT(layer_view(emit, y, SHAPE(along.dim[0], along.dim[2]))))
        ->attr.reduce.reduction = (int32_t)emit->layer->values[0];
    return y;
}
