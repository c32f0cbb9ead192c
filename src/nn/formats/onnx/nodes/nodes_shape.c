/* nodes_shape.c: operators that move elements, take some of them, or add them up. What is only
 * another shape writes no line: a layer that needs it is given a reshape (line_of). */
#include "nn/formats/onnx/compose.h"

#include <string.h>

node_writer node_reshape, node_flatten, node_squeeze, node_transpose, node_slice, node_split,
    node_concat, node_gather, node_tile, node_blocks;

/* How many elements of a sample lie before the first of the next: the batch stands behind these. */
static int64_t batch_place(const struct value *x)
{
    int64_t place;
    return __builtin_mul_overflow(graph_count(&x->shape, x->batch), x->ahead, &place) ? -1 : place;
}

/* Can dimension `batch` of this shape count the samples of x? Then these stay where they are in the
 * order of elements; *ahead says how many of its parts come before. */
static bool keeps_samples(const struct value *x, const struct shape *shape, int32_t batch,
                          int64_t *ahead)
{
    int64_t before = batch < 0 ? -1 : graph_count(shape, batch), place = batch_place(x);
    if (before < 1 || place < 1 || place % before)
        return false;
    *ahead = place / before;
    return shape->dim[batch] % *ahead == 0;
}

/* Another shape of x. */
static enum status give_shape(struct import *in, const struct value *x, struct shape shape,
                              int32_t batch)
{
    int64_t is = graph_count(&x->shape, x->shape.rank), to = graph_count(&shape, shape.rank);
    int64_t ahead = 0;
    if (is != to)
        REFUSE(in, STATUS_INPUT, "found %lld elements of a sample, expected the %lld of its input",
               (long long)to, (long long)is);
    if (x->batch >= 0 && !keeps_samples(x, &shape, batch, &ahead))
        REFUSE(in, STATUS_UNSUPPORTED, "it mixes samples, expected a shape of each");
    TRY(line_gives_same(in, x, shape, batch));
    if (graph_output(in, 0))
        graph_output(in, 0)->ahead = ahead;
    return STATUS_OK;
}

/* Lets dimension d count the samples, and so many parts of each; the open one, where there is one,
 * is what is left. False, and nothing changes, where this is no shape of x. */
static bool try_batch(const struct value *x, int32_t open, int32_t d, int64_t parts,
                      struct shape *to)
{
    struct shape made = *to;
    int64_t sample = graph_count(&x->shape, x->shape.rank), ahead;
    made.dim[d] = parts;
    if (open >= 0)
        made.dim[open] = 1;
    int64_t rest = graph_count(&made, made.rank);
    if (rest < 1 || sample % rest || (open < 0 && rest != sample))
        return false;
    if (open >= 0)
        made.dim[open] = sample / rest;
    if (!keeps_samples(x, &made, d, &ahead))
        return false;
    *to = made;
    return true;
}

/* Which of the new sizes counts the samples: the one that says so; else one that counts nothing
 * else: that is left open, or is what the file says of its input; else one that counts parts of
 * them, too. It and the open one become those of a sample. -1: none. */
static int32_t find_batch(const struct import *in, const struct value *x, int32_t open,
                          struct shape *to)
{
    enum { ALONE, BESIDE_OPEN, OPEN_PARTS, PARTS, PASSES };
    for (int32_t d = 0; d < to->rank; d++)
        if (samples_in(to->dim[d]))
            return try_batch(x, open, d, samples_in(to->dim[d]), to) ? d : -1;
    for (int pass = 0; pass < PASSES; pass++)
        for (int32_t d = 0; d < to->rank; d++) {
            int64_t size = to->dim[d];
            bool named = size > 0 && size == in->samples, fits = false;
            if (pass == ALONE && (d == open || (named && open < 0)))
                fits = try_batch(x, -1, d, 1, to);
            else if (pass == BESIDE_OPEN && named)
                fits = try_batch(x, open, d, 1, to);
            else if (pass == OPEN_PARTS && d == open)
                fits = try_batch(x, open, d, 1, to);
            else if (pass == PARTS && in->samples > 1 && size > 0 && size % in->samples == 0)
                fits = try_batch(x, open, d, size / in->samples, to);
            if (fits)
                return d;
        }
    return -1;
}

/* The sizes that a Reshape asks for; those of the batch as multiples of the samples. */
static enum status read_sizes(struct import *in, const struct value *x, struct shape *to,
                              int32_t *open)
{
    const int64_t *sizes;
    int64_t count;
    *open = -1;
    TRY(graph_numbers(in, 1, "shape", &sizes, &count));
    if (count > SHAPE_MOST || count < 0)
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld sizes, expected at most %d", (long long)count,
               SHAPE_MOST);
    for (int32_t d = 0; d < count; d++) {
        to->dim[d] = sizes[d];
        if (sizes[d] == 0 && graph_int(in, "allowzero", 0))
            REFUSE(in, STATUS_UNSUPPORTED, "it asks for a size of 0, of which nothing comes");
        if (sizes[d] == 0 && d < x->shape.rank)
            to->dim[d] = d == x->batch ? samples_times(x->shape.dim[d]) : x->shape.dim[d];
        if ((to->dim[d] < -1 && !samples_in(to->dim[d])) || (to->dim[d] == -1 && *open >= 0))
            REFUSE(in, STATUS_INPUT, "found the size %lld, or -1 twice", (long long)to->dim[d]);
        if (to->dim[d] == -1)
            *open = d;
    }
    to->rank = (int32_t)count;
    return STATUS_OK;
}

enum status node_reshape(struct import *in)
{
    const struct value *x = graph_input(in, 0);
    struct shape to = {0};
    int32_t open, batch = -1;
    TRY(read_sizes(in, x, &to, &open));
    if (x->batch >= 0) {
        batch = find_batch(in, x, open, &to);
        if (batch < 0)
            REFUSE(in, STATUS_UNSUPPORTED, "it mixes samples, expected a shape of each");
    } else if (open >= 0) {
        to.dim[open] = 1;
        int64_t rest = graph_count(&to, to.rank);
        to.dim[open] = rest > 0 ? graph_count(&x->shape, x->shape.rank) / rest : -1;
    }
    return give_shape(in, x, to, batch);
}

enum status node_flatten(struct import *in)
{
    const struct value *x = graph_input(in, 0);
    int64_t given = graph_int(in, "axis", 1);
    int32_t axis = x->shape.rank;
    if (given != axis)
        TRY(graph_axis(in, given, x->shape.rank, &axis));
    struct shape behind = {.rank = x->shape.rank - axis};
    memcpy(behind.dim, x->shape.dim + axis, (size_t)behind.rank * sizeof *behind.dim);
    struct shape to = SHAPE(graph_count(&x->shape, axis), graph_count(&behind, behind.rank));
    return give_shape(in, x, to, x->batch < 0 ? -1 : x->batch >= axis);
}

/* Squeeze and Unsqueeze: which dimensions of 1 go or come. */
enum status node_squeeze(struct import *in)
{
    const struct value *x = graph_input(in, 0);
    bool add = !strcmp(in->node->op_type, "Unsqueeze"), chosen[SHAPE_MOST] = {false};
    const int64_t *axes;
    int64_t count;
    struct shape to = {0};
    int32_t batch = -1, from = 0;
    TRY(graph_numbers(in, 1, "axes", &axes, &count));
    int32_t rank = x->shape.rank + (add && count > 0 ? (int32_t)(count & 15) : 0);
    if (count > SHAPE_MOST || rank > SHAPE_MOST || (add && count < 1))
        REFUSE(in, STATUS_UNSUPPORTED,
               "found %lld axes, expected them known and at most %d "
               "dimensions",
               (long long)count, SHAPE_MOST);
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        TRY(graph_axis(in, axes[i], rank, &axis));
        if (chosen[axis] || (!add && (x->shape.dim[axis] != 1 || axis == x->batch)))
            REFUSE(in, STATUS_UNSUPPORTED, "found the axis %d twice, or more than one place in it",
                   axis);
        chosen[axis] = true;
    }
    for (int32_t d = 0; d < rank; d++) {
        bool gone = !add && (count < 0 ? x->shape.dim[d] == 1 && d != x->batch : chosen[d]);
        if (!chosen[d] && !gone && from == x->batch)
            batch = to.rank;
        if (!gone)
            to.dim[to.rank++] = chosen[d] ? 1 : x->shape.dim[from];
        from += !add || !chosen[d];
    }
    return give_shape(in, x, to, batch);
}

enum status node_transpose(struct import *in)
{
    struct value *x;
    struct line *line;
    TRY(node_data(in, 0, &x));
    int32_t rank = x->shape.rank, batch = -1, own, before = 0;
    int64_t count;
    const int64_t *perm = graph_ints(in, "perm", &count);
    bool moved = false, seen[SHAPE_MOST] = {false};
    struct shape to = {.rank = rank};
    struct text order = {0};
    if (count >= 0 && count != rank)
        REFUSE(in, STATUS_INPUT, "found %lld dimensions to order, expected %d", (long long)count,
               rank);
    for (int32_t d = 0; d < rank; d++) {
        int64_t from = count < 0 ? rank - 1 - d : perm[d];
        if (from < 0 || from >= rank || seen[from]) {
            text_free(&order);
            REFUSE(in, STATUS_INPUT, "expected each dimension once among those to order");
        }
        seen[from] = true;
        to.dim[d] = x->shape.dim[from];
        if (from == x->batch)
            batch = d;
        if (value_counts(x, (int32_t)from))
            continue;
        own = value_place(x, (int32_t)from);
        text_printf(&order, "%s%d", before ? "," : "", own);
        moved |= own != ++before;
    }
    const char *axes = arena_text(&in->arena, text_of(&order)), *layer;
    text_free(&order);
    NEED(axes);
    if (!moved)
        return line_gives_same(in, x, to, batch);
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "transpose", layer, &line, "%s", axes));
    struct value turned = {.shape = to, .batch = batch};
    return line_gives(in, 0, line->name, value_sample(&turned), to, batch);
}

static enum status take_range(struct import *in, int32_t axis, int64_t size,
                              const struct range *range, const char **layer)
{
    int64_t *places;
    if (range->by == 1)
        return range->count == size
                   ? STATUS_OK
                   : line_slice(in, *layer, axis, range->from, range->count, layer);
    if (range->count > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it takes %lld places in steps, expected at most %d",
               (long long)range->count, PICKS_MOST);
    NEED(places = arena_array(&in->arena, (size_t)range->count, sizeof *places));
    for (int64_t i = 0; i < range->count; i++)
        places[i] = range->from + i * range->by;
    return line_pick(in, *layer, axis, places, range->count, layer);
}

enum status node_slice(struct import *in)
{
    struct value *x;
    struct slices slices;
    const char *layer;
    TRY(node_data(in, 0, &x));
    TRY(graph_slices(in, x->shape.rank, &slices));
    TRY(line_of_value(in, x, &layer));
    struct shape shape = x->shape;
    for (int64_t i = 0; i < slices.count; i++) {
        int32_t axis = slices.axis[i], own;
        int64_t size = shape.dim[axis];
        if (axis == x->batch && slices_take_samples(&slices, i, size))
            continue;
        struct range range;
        TRY(graph_range(in, size, slices.from[i], slices.to[i], slices.by[i], &range));
        if (!range.count)
            REFUSE(in, STATUS_UNSUPPORTED, "it takes nothing of %lld places", (long long)size);
        TRY(value_axis(in, x, axis, &own));
        shape.dim[axis] = range.count;
        TRY(take_range(in, own, size, &range, &layer));
    }
    if (layer == x->layer)
        return line_gives_same(in, x, shape, x->batch);
    struct value taken = {.shape = shape, .batch = x->batch};
    return line_gives(in, 0, layer, value_sample(&taken), shape, x->batch);
}

enum status node_split(struct import *in)
{
    struct value *x;
    const int64_t *sizes;
    int64_t count, from = 0, outputs = (int64_t)in->node->n_output;
    const char *layer;
    int32_t axis, own;
    TRY(node_data(in, 0, &x));
    TRY(graph_numbers(in, 1, "split", &sizes, &count));
    TRY(graph_axis_of(in, "axis", 0, x->shape.rank, &axis));
    TRY(value_axis(in, x, axis, &own));
    TRY(line_of_value(in, x, &layer));
    int64_t whole = x->shape.dim[axis];
    if ((count >= 0 && count != outputs) || (count < 0 && whole % outputs))
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld places for %lld outputs", (long long)whole,
               (long long)outputs);
    for (int64_t i = 0; i < outputs; i++) {
        int64_t size = count < 0 ? whole / outputs : sizes[i];
        struct shape shape = x->shape;
        const char *part;
        if (size < 1 || size > whole - from)
            REFUSE(in, STATUS_UNSUPPORTED, "found a part of %lld of %lld places", (long long)size,
                   (long long)whole);
        shape.dim[axis] = size;
        struct value taken = {.shape = shape, .batch = x->batch};
        if (graph_output(in, (size_t)i) && graph_output(in, (size_t)i)->uses) {
            TRY(line_slice(in, layer, own, from, size, &part));
            TRY(line_gives(in, (size_t)i, part, value_sample(&taken), shape, x->batch));
        }
        from += size;
    }
    return STATUS_OK;
}

enum status node_concat(struct import *in)
{
    const struct value *like = NULL;
    size_t count = in->node->n_input;
    const char **layers = arena_array(&in->arena, count, sizeof *layers), *layer;
    int32_t axis, own;
    NEED(layers);
    for (size_t i = 0; i < count; i++)
        if (graph_input(in, i) && !graph_input(in, i)->constant && !like)
            like = graph_input(in, i);
    TRY(graph_axis_of(in, "axis", 1, like->shape.rank, &axis));
    TRY(value_axis(in, like, axis, &own));
    struct shape shape = like->shape;
    shape.dim[axis] = 0;
    for (size_t i = 0; i < count; i++) {
        const struct value *x = graph_input(in, i);
        struct shape same = x ? x->shape : (struct shape){0};
        if (x && same.rank == shape.rank)
            same.dim[axis] = like->shape.dim[axis];
        if (!x || x->tokens || (!x->constant && x->batch != like->batch) ||
            !shape_equal(&same, &like->shape))
            REFUSE(in, STATUS_UNSUPPORTED, "its input %zu has another shape than the others",
                   i + 1);
        struct value part = *x;
        part.batch = like->batch;
        TRY(line_of(in, x, value_sample(&part), &layers[i]));
        if (__builtin_add_overflow(shape.dim[axis], x->shape.dim[axis], &shape.dim[axis]))
            REFUSE(in, STATUS_INPUT, "its output is too large");
    }
    TRY(line_join(in, layers, (int64_t)count, own, &layer));
    struct value joined = {.shape = shape, .batch = like->batch};
    return line_gives(in, 0, layer, value_sample(&joined), shape, like->batch);
}

/* A table of weights by the tokens of the input. */
static enum status gather_tokens(struct import *in, const struct constant *table,
                                 const struct value *tokens)
{
    struct line *line;
    float *kept;
    struct shape shape = tokens->shape, gives = tokens->gives;
    if (!table->reals || table->shape.rank != 2 || graph_int(in, "axis", 0) || !table->count ||
        table->shape.dim[0] > 1000000000 || shape.rank >= SHAPE_MOST - 1)
        REFUSE(in, STATUS_UNSUPPORTED, "expected a table of two dimensions, and axis 0");
    if (in->tokens && in->tokens != table->shape.dim[0])
        REFUSE(in, STATUS_UNSUPPORTED, "found tables of %lld and %lld rows for the same input",
               (long long)in->tokens, (long long)table->shape.dim[0]);
    in->tokens = table->shape.dim[0];
    TRY(line_add(in, "embedding", tokens->layer, &line, "%lld", (long long)table->shape.dim[1]));
    TRY(line_weights(in, table->count, &kept));
    memcpy(kept, table->reals, (size_t)table->count * sizeof *kept);
    TRY(line_give(in, line, "weight", kept, table->count));
    shape.dim[shape.rank++] = gives.dim[gives.rank++] = table->shape.dim[1];
    return line_gives(in, 0, line->name, gives, shape, tokens->batch);
}

/* Known places of one dimension. */
enum status node_gather(struct import *in)
{
    const struct value *data = graph_input(in, 0), *index = graph_input(in, 1);
    const char *layer;
    int64_t *places;
    struct shape shape = {0};
    int32_t axis, own, batch = -1;
    if (data->constant && index->tokens)
        return gather_tokens(in, data->constant, index);
    const struct constant *picks = index->constant;
    if (data->constant || data->tokens || !picks || !picks->wholes || picks->count < 1 ||
        picks->count > PICKS_MOST || data->shape.rank + picks->shape.rank - 1 > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected known places, at most %d, of real numbers; or "
               "known rows by the model's input of whole numbers",
               PICKS_MOST);
    TRY(graph_axis_of(in, "axis", 0, data->shape.rank, &axis));
    TRY(value_axis(in, data, axis, &own));
    TRY(line_of_value(in, data, &layer));
    NEED(places = arena_array(&in->arena, (size_t)picks->count, sizeof *places));
    for (int64_t i = 0; i < picks->count; i++)
        TRY(graph_place(in, picks->wholes[i], data->shape.dim[axis], &places[i]));
    TRY(line_pick(in, layer, own, places, picks->count, &layer));
    for (int32_t d = 0; d < data->shape.rank; d++) {
        if (d == data->batch)
            batch = shape.rank;
        if (d != axis)
            shape.dim[shape.rank++] = data->shape.dim[d];
        for (int32_t k = 0; d == axis && k < picks->shape.rank; k++)
            shape.dim[shape.rank++] = picks->shape.dim[k];
    }
    struct shape gives = value_sample(data);
    gives.dim[own - 1] = picks->count;
    return line_gives(in, 0, layer, gives, shape, batch);
}

/* So many times along each dimension. */
enum status node_tile(struct import *in)
{
    struct value *x;
    const int64_t *times;
    int64_t count;
    TRY(node_data(in, 0, &x));
    TRY(graph_numbers(in, 1, "repeats", &times, &count));
    if (count != x->shape.rank)
        REFUSE(in, STATUS_INPUT, "found %lld repeats, expected %d", (long long)count,
               x->shape.rank);
    struct value y = *x;
    for (int32_t d = 0; d < x->shape.rank; d++)
        TRY(compose_tile(in, d, times[d], false, &y));
    return compose_give(in, &y);
}

/* DepthToSpace and SpaceToDepth: blocks of places go from channels to rows and columns, or back.
 * The block's own dimensions are the first of the channels, with mode CRD the last. */
enum status node_blocks(struct import *in)
{
    struct value *x;
    struct line *line;
    const char *layer;
    int64_t block = graph_int(in, "blocksize", 0);
    bool back = !strcmp(in->node->op_type, "SpaceToDepth");
    bool last = !back && graph_text_is(in, "mode", "DCR", "CRD");
    TRY(node_data(in, 0, &x));
    if (x->shape.rank != 4 || !value_counts(x, 0) || block < 1 || block > INT16_MAX)
        REFUSE(in, STATUS_UNSUPPORTED, "expected images, and a blocksize");
    int64_t c = x->shape.dim[1], h = x->shape.dim[2], w = x->shape.dim[3];
    if (back ? h % block || w % block : c % (block * block))
        REFUSE(in, STATUS_INPUT, "a block is %lld, of which the image is no multiple",
               (long long)block);
    struct shape apart = SHAPE(c, h / block, block, w / block, block), to = x->shape;
    if (!back)
        apart = last ? SHAPE(c / (block * block), block, block, h, w)
                     : SHAPE(block, block, c / (block * block), h, w);
    TRY(line_of(in, x, apart, &layer));
    TRY(line_add(in, "transpose", layer, &line, "%s",
                 back   ? "3,5,1,2,4"
                 : last ? "1,4,2,5,3"
                        : "3,4,1,5,2"));
    to.dim[1] = back ? c * block * block : c / (block * block);
    to.dim[2] = back ? h / block : h * block;
    to.dim[3] = back ? w / block : w * block;
    struct value y = {.shape = to, .batch = 0};
    struct shape sample = value_sample(&y);
    TRY(line_shape(in, line->name, sample, &layer));
    return line_gives(in, 0, layer, sample, to, 0);
}
