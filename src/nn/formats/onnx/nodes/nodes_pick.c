/* nodes_pick.c: operators that take elements from known places, or put them there: of one
 * dimension, or of all elements of a sample one by one. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/fold.h"
#include "nn/formats/onnx/windows.h"

#include <string.h>

node_writer node_gather_nd, node_gather_elements, node_compress, node_reverse, node_scatter,
    node_scatter_nd, node_triangle, node_pad;

/* Known places, each given by its coordinates in the first dimensions of what is one whole, or in
 * those behind the first `batch_dims`, whose own part of the places each of them has. */
static enum status gather_known(struct import *in, const struct value *data,
                                const struct constant *index)
{
    int32_t rank = index->shape.rank, depth = rank ? (int32_t)index->shape.dim[rank - 1] : 0;
    int64_t first = graph_int(in, "batch_dims", 0), *places, rows = 1, parts = 1;
    struct shape shape = index->shape;
    const char *layer;
    if (data->batch >= 0 || !index->wholes || !index->count || first < 0 || first >= rank ||
        depth < 1 || depth > data->shape.rank - first ||
        rank - 1 + data->shape.rank - first - depth > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "expected places of the whole input");
    for (int32_t d = 0; d < first; d++) {
        if (data->shape.dim[d] != index->shape.dim[d])
            REFUSE(in, STATUS_INPUT, "its inputs have different sizes in dimension %d", d);
        parts *= data->shape.dim[d];
    }
    int64_t count = index->count / depth;
    TRY(compose_places(in, count, &places));
    for (int64_t i = 0; i < count; i++) {
        places[i] = i / (count / parts);
        for (int32_t d = 0; d < depth; d++) {
            int64_t place, size = data->shape.dim[first + d];
            TRY(graph_place(in, index->wholes[i * depth + d], size, &place));
            places[i] = places[i] * size + place;
        }
    }
    shape.rank = rank - 1;
    for (int32_t d = 0; d < data->shape.rank; d++)
        if (d < first + depth)
            rows *= data->shape.dim[d];
        else
            shape.dim[shape.rank++] = data->shape.dim[d];
    int64_t behind = shape_count(&data->shape) / rows;
    TRY(line_of(in, data, SHAPE(rows, behind), &layer));
    TRY(line_pick(in, layer, 1, places, count, &layer));
    return line_gives(in, 0, layer, SHAPE(count, behind), shape, -1);
}

/* Rows of each sample's own table, by its own tokens: what the layer `gather` is exported as. */
enum status node_gather_nd(struct import *in)
{
    struct value *table;
    const struct value *index = graph_input(in, 1);
    const char *layer, *tokens;
    TRY(node_data(in, 0, &table));
    if (index->constant)
        return gather_known(in, table, index->constant);
    if (graph_int(in, "batch_dims", 0) != 1 || !value_counts(table, 0) || table->shape.rank != 3 ||
        !index->tokens || !value_counts(index, 0) || index->shape.rank != 3 ||
        index->shape.dim[2] != 1)
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected batch_dims=1, a table for each sample, and the "
               "model's input of whole numbers");
    if (!in->tokens)
        in->tokens = table->shape.dim[1];
    TRY(line_of_value(in, table, &layer));
    TRY(line_of(in, index, SHAPE(index->shape.dim[1]), &tokens));
    TRY(line_pair(in, "gather", layer, tokens, &layer));
    struct shape shape = SHAPE(1, index->shape.dim[1], table->shape.dim[2]);
    return line_gives(in, 0, layer, SHAPE(shape.dim[1], shape.dim[2]), shape, 0);
}

/* Known numbers of places of this value, the same for every sample: where it counts samples they
 * have the size 1. */
static enum status read_places(struct import *in, size_t i, const struct value *x,
                               const struct constant **out)
{
    const struct value *index = graph_input(in, i);
    *out = index ? index->constant : NULL;
    if (!*out || !(*out)->wholes || (*out)->shape.rank != x->shape.rank ||
        (x->batch >= 0 && (*out)->shape.dim[x->batch] != 1) ||
        (x->batch >= 0 && !value_counts(x, x->batch)))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input %zu is not known places of as many dimensions as its first input has, "
               "the same for every sample",
               i + 1);
    return STATUS_OK;
}

/* Where in `shape` the element lies whose place in `index` is `i`, but along the axis at the place
 * that `index` says. */
static enum status place_along(struct import *in, const struct constant *index, int64_t i,
                               int32_t axis, const struct shape *shape, int64_t *out)
{
    int64_t step = 1, left = i;
    *out = 0;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        int64_t at = left % index->shape.dim[d];
        left /= index->shape.dim[d];
        if (d == axis)
            TRY(graph_place(in, index->wholes[i], shape->dim[d], &at));
        else if (at >= shape->dim[d])
            REFUSE(in, STATUS_INPUT, "found place %lld of %lld", (long long)at,
                   (long long)shape->dim[d]);
        *out += at * step;
        step *= shape->dim[d];
    }
    return STATUS_OK;
}

enum status node_gather_elements(struct import *in)
{
    struct value *x;
    const struct constant *index;
    int32_t axis;
    int64_t *places;
    TRY(node_data(in, 0, &x));
    TRY(read_places(in, 1, x, &index));
    TRY(graph_axis_of(in, "axis", 0, x->shape.rank, &axis));
    if (axis == x->batch)
        REFUSE(in, STATUS_UNSUPPORTED, "it works along the dimension that counts the samples");
    TRY(compose_places(in, index->count, &places));
    for (int64_t i = 0; i < index->count; i++)
        TRY(place_along(in, index, i, axis, &x->shape, &places[i]));
    struct value y = *x;
    TRY(compose_pick(in, places, index->shape, &y));
    return compose_give(in, &y);
}

/* The places of an axis where the condition is so; without one, of all elements as a row. */
enum status node_compress(struct import *in)
{
    struct value *x;
    const struct value *given = graph_input(in, 1);
    const struct constant *condition = given ? given->constant : NULL;
    bool flat = !graph_attribute(in, "axis");
    int32_t axis = 0;
    int64_t *places, count = 0;
    TRY(node_data(in, 0, &x));
    if (!condition || !condition->wholes || condition->shape.rank != 1 || (flat && x->batch >= 0))
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected a known condition, and an axis that does not count the samples");
    if (!flat)
        TRY(graph_axis_of(in, "axis", 0, x->shape.rank, &axis));
    int64_t size = flat ? shape_count(&x->shape) : x->shape.dim[axis];
    if (condition->count > size)
        REFUSE(in, STATUS_INPUT, "its condition has %lld places, expected at most %lld",
               (long long)condition->count, (long long)size);
    TRY(compose_places(in, condition->count, &places));
    for (int64_t i = 0; i < condition->count; i++)
        if (condition->wholes[i])
            places[count++] = i;
    struct value y = *x;
    if (flat)
        TRY(compose_pick(in, places, SHAPE(count), &y));
    else
        TRY(compose_pick_axis(in, axis, places, count, &y));
    return compose_give(in, &y);
}

/* The first steps of each sequence backwards, as many as its length; the lengths are known, so that
 * all is one whole. */
enum status node_reverse(struct import *in)
{
    struct value *x;
    const struct value *given = graph_input(in, 1);
    const struct constant *lengths = given ? given->constant : NULL;
    int64_t time = graph_int(in, "time_axis", 0), batch = graph_int(in, "batch_axis", 1), *places;
    TRY(node_data(in, 0, &x));
    if (!lengths || !lengths->wholes || x->batch >= 0 || x->shape.rank < 2 || time < 0 ||
        time > 1 || batch != 1 - time || lengths->count != x->shape.dim[batch])
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected known lengths, and time and sequences in the first two dimensions");
    int64_t count = shape_count(&x->shape), second = x->shape.dim[1];
    int64_t behind = count / x->shape.dim[0] / second;
    TRY(compose_places(in, count, &places));
    for (int64_t i = 0; i < count; i++) {
        int64_t at[2] = {i / behind / second, i / behind % second};
        int64_t length = lengths->wholes[at[batch]];
        if (length < 0 || length > x->shape.dim[time])
            REFUSE(in, STATUS_INPUT, "found a length of %lld", (long long)length);
        at[time] = at[time] < length ? length - 1 - at[time] : at[time];
        places[i] = (at[0] * second + at[1]) * behind + i % behind;
    }
    struct value y = *x;
    TRY(compose_pick(in, places, x->shape, &y));
    return compose_give(in, &y);
}

/* Elements of `updates` come to known places of x, in their order: where[i] is the place of the
 * i-th. What is added to x, or multiplied with it, must be known. */
static enum status put(struct import *in, const int64_t *where, const struct value *updates,
                       struct value *x)
{
    static const char *const words[] = {"none", "add", "mul"};
    int64_t count = shape_count(&x->shape), more = shape_count(&updates->shape), *places;
    const char *parts[2];
    int how;
    TRY(graph_choice(in, "reduction", words, 3, &how));
    if (how) {
        struct value numbers;
        if (!updates->constant || !updates->constant->reals)
            REFUSE(in, STATUS_UNSUPPORTED, "its updates depend on the data, expected constants");
        TRY(compose_known(in, x->shape, how == 1 ? 0 : 1, &numbers));
        for (int64_t i = 0; i < more; i++) {
            float *to = &numbers.constant->reals[where[i]], by = updates->constant->reals[i];
            *to = how == 1 ? *to + by : *to * by;
        }
        return node_combine(in, how == 1 ? "add" : "multiply", x, &numbers, x);
    }
    TRY(compose_places(in, count, &places));
    for (int64_t i = 0; i < count; i++)
        places[i] = i;
    for (int64_t i = 0; i < more; i++)
        places[where[i]] = count + i;
    struct value both = *x;
    TRY(line_of(in, x, SHAPE(count), &parts[0]));
    TRY(line_of(in, updates, SHAPE(more), &parts[1]));
    TRY(line_join(in, parts, 2, 1, &both.layer));
    both.shape = both.gives = SHAPE(count + more);
    both.batch = -1;
    TRY(compose_pick(in, places, x->shape, &both));
    both.batch = x->batch;
    *x = both;
    return STATUS_OK;
}

/* What is put, and into what; one of them is known or not, and both are of a sample. */
static enum status open_scatter(struct import *in, struct value *x, struct value *updates)
{
    *x = *graph_input(in, 0);
    *updates = *graph_input(in, 2);
    if (x->constant)
        x->batch = updates->batch;
    bool real = !x->tokens && !updates->tokens && (!x->constant || x->constant->reals) &&
                (!updates->constant || updates->constant->reals);
    bool alike = updates->constant || updates->batch == x->batch;
    if (!real || !alike || (x->batch >= 0 && x->shape.dim[x->batch] != 1))
        REFUSE(in, STATUS_UNSUPPORTED, "expected real values that count samples alike");
    return STATUS_OK;
}

/* Scatter and ScatterElements. */
enum status node_scatter(struct import *in)
{
    struct value x, updates;
    const struct constant *index;
    int32_t axis;
    int64_t *where;
    TRY(open_scatter(in, &x, &updates));
    struct value like = x;
    like.constant = NULL;
    TRY(read_places(in, 1, &like, &index));
    TRY(graph_axis_of(in, "axis", 0, x.shape.rank, &axis));
    if (axis == x.batch || !shape_equal(&index->shape, &updates.shape))
        REFUSE(in, STATUS_UNSUPPORTED, "expected one index for each update, within a sample");
    TRY(compose_places(in, index->count, &where));
    for (int64_t i = 0; i < index->count; i++)
        TRY(place_along(in, index, i, axis, &x.shape, &where[i]));
    TRY(put(in, where, &updates, &x));
    return compose_give(in, &x);
}

/* Slices, each put where its coordinates in the first dimensions say. */
enum status node_scatter_nd(struct import *in)
{
    struct value x, updates;
    const struct value *given = graph_input(in, 1);
    const struct constant *index = given->constant;
    int64_t *where, behind = 1;
    TRY(open_scatter(in, &x, &updates));
    int32_t rank = index ? index->shape.rank : 0;
    int64_t depth = rank ? index->shape.dim[rank - 1] : 0;
    if (!index || !index->wholes || !index->count || depth > x.shape.rank || x.batch >= 0)
        REFUSE(in, STATUS_UNSUPPORTED, "expected known places of the whole input");
    for (int32_t d = (int32_t)depth; d < x.shape.rank; d++)
        behind *= x.shape.dim[d];
    int64_t slices = index->count / depth;
    if (shape_count(&updates.shape) != slices * behind)
        REFUSE(in, STATUS_INPUT, "found %lld numbers to put, expected %lld",
               (long long)shape_count(&updates.shape), (long long)(slices * behind));
    TRY(compose_places(in, slices * behind, &where));
    for (int64_t i = 0; i < slices; i++) {
        int64_t at = 0, place;
        for (int64_t d = 0; d < depth; d++) {
            TRY(graph_place(in, index->wholes[i * depth + d], x.shape.dim[d], &place));
            at = at * x.shape.dim[d] + place;
        }
        for (int64_t k = 0; k < behind; k++)
            where[i * behind + k] = at * behind + k;
    }
    TRY(put(in, where, &updates, &x));
    return compose_give(in, &x);
}

/* Trilu: of the last two dimensions what lies above a diagonal, or below it, and on it; else 0. */
enum status node_triangle(struct import *in)
{
    struct value *x;
    double diagonal;
    bool upper = graph_int(in, "upper", 1) != 0;
    TRY(node_data(in, 0, &x));
    TRY(graph_number(in, 1, 0, &diagonal));
    int32_t rank = x->shape.rank;
    if (rank < 2 || x->batch >= rank - 2)
        REFUSE(in, STATUS_UNSUPPORTED, "it goes over the dimension that counts the samples");
    int64_t rows = x->shape.dim[rank - 2], columns = x->shape.dim[rank - 1];
    struct value y = *x;
    struct constant *keep, *wide;
    float *kept;
    TRY(constant_new(in, SHAPE(rows, columns), false, &keep));
    for (int64_t i = 0; i < keep->count; i++) {
        double over = (double)(i % columns - i / columns) - diagonal;
        keep->reals[i] = (upper ? over >= 0 : over <= 0) ? 1 : 0;
    }
    TRY(fold_spread(in, keep, x->shape, &wide));
    TRY(line_weights(in, wide->count, &kept));
    memcpy(kept, wide->reals, (size_t)wide->count * sizeof *kept);
    TRY(compose_apply(in, &y, "mask", "%s", ""));
    TRY(line_give(in, line_find(in, y.layer), "keep", kept, wide->count));
    line_learns(in, false);
    return compose_give(in, &y);
}

/* Zeros around the images that a convolution takes are its own pad. */
static bool pad_joins(const struct import *in, const struct value *x, const struct value *y,
                      const int64_t *pads, double number)
{
    int32_t place = y->uses == 1 ? graph_reader(in, y, "Conv") : -1;
    const Onnx__NodeProto *reader = place >= 0 ? in->graph->node[place] : NULL;
    bool joins = reader && number == 0 && value_counts(x, 0) &&
                 (x->shape.rank == 4 || x->shape.rank == 3) && !x->padded &&
                 !strcmp(reader->input[0], y->name);
    for (int32_t d = 0; joins && d < 2; d++)
        joins = pads[d] == 0 && pads[d + x->shape.rank] == 0;
    for (int32_t d = 2; joins && d < x->shape.rank; d++)
        joins = pads[d] >= 0 && pads[d + x->shape.rank] >= 0;
    for (size_t i = 0; joins && i < reader->n_attribute; i++) /* SAME is of the padded image */
        joins = !text_equal(reader->attribute[i]->name, "auto_pad");
    return joins;
}

enum padding { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

/* Which of `size` places stands at `at`, which may lie outside: as in a mirror that stands on the
 * last place, the nearest, or from the other end on. */
static int64_t padded_place(enum padding mode, int64_t at, int64_t size)
{
    int64_t period = mode == PAD_WRAP ? size : size > 1 ? 2 * (size - 1) : 1;
    if (mode == PAD_EDGE)
        return at < 0 ? 0 : at < size ? at : size - 1;
    at = (at % period + period) % period;
    return at < size ? at : period - at;
}

/* One axis of x longer, or where a pad is negative shorter, by other places of itself. */
static enum status pad_by_itself(struct import *in, enum padding mode, int32_t axis, int64_t before,
                                 int64_t behind, struct value *x)
{
    int64_t size = x->shape.dim[axis], count = size + before + behind, *places;
    TRY(compose_places(in, count, &places));
    for (int64_t i = 0; i < count; i++)
        places[i] = padded_place(mode, i - before, size);
    return compose_pick_axis(in, axis, places, count, x);
}

static enum status pad_axis(struct import *in, int32_t axis, int64_t before, int64_t behind,
                            float number, struct value *x)
{
    int32_t own;
    const char *layer;
    if (before < 0 || behind < 0) {
        TRY(pad_by_itself(in, PAD_EDGE, axis, before < 0 ? before : 0, behind < 0 ? behind : 0, x));
        before = before < 0 ? 0 : before;
        behind = behind < 0 ? 0 : behind;
    }
    TRY(value_axis(in, x, axis, &own));
    TRY(line_of_value(in, x, &layer));
    x->gives = value_sample(x);
    TRY(line_pad(in, own, before, behind, number, &x->gives, &layer));
    x->layer = layer;
    x->shape.dim[axis] += before + behind;
    return STATUS_OK;
}

/* Its pads, those before all axes, then those behind; from opset 18 on of some axes. */
static enum status read_pads(struct import *in, int32_t rank, int64_t out[2 * SHAPE_MOST])
{
    const int64_t *pads, *axes;
    int64_t count, some;
    TRY(graph_numbers(in, 1, "pads", &pads, &count));
    TRY(graph_numbers(in, 3, "axes", &axes, &some));
    if (count != 2 * (some < 0 ? rank : some) || count > 2 * SHAPE_MOST)
        REFUSE(in, STATUS_INPUT, "found %lld pads, expected %d", (long long)count, 2 * rank);
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        TRY(graph_axis(in, some < 0 ? i % rank : axes[i % some], rank, &axis));
        if (pads[i] < -SIZE_MOST || pads[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "pads has %lld in it, expected at most %d",
                   (long long)pads[i], SIZE_MOST);
        out[axis + (i < count / 2 ? 0 : rank)] = pads[i];
    }
    return STATUS_OK;
}

enum status node_pad(struct import *in)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    struct value *x, *y = graph_output(in, 0);
    int64_t pads[2 * SHAPE_MOST] = {0};
    double number;
    int mode;
    TRY(node_data(in, 0, &x));
    TRY(graph_choice(in, "mode", modes, 4, &mode));
    TRY(graph_number(in, 2, graph_real(in, "value", 0), &number));
    int32_t rank = x->shape.rank;
    TRY(read_pads(in, rank, pads));
    if (y && mode == PAD_CONSTANT && pad_joins(in, x, y, pads, number)) {
        TRY(line_gives_same(in, x, x->shape, x->batch));
        y->padded = true;
        for (int32_t d = 2; d < rank; d++) {
            y->pad[AXES - rank + d][0] = pads[d];
            y->pad[AXES - rank + d][1] = pads[d + rank];
        }
        return STATUS_OK;
    }
    struct value padded = *x;
    for (int32_t d = 0; d < rank; d++) {
        if (!pads[d] && !pads[d + rank])
            continue;
        if (mode == PAD_CONSTANT)
            TRY(pad_axis(in, d, pads[d], pads[d + rank], (float)number, &padded));
        else
            TRY(pad_by_itself(in, (enum padding)mode, d, pads[d], pads[d + rank], &padded));
    }
    return compose_give(in, &padded);
}
