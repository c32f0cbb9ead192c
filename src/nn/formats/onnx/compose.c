/* compose.c: see compose.h. */
#include "nn/formats/onnx/compose.h"

#include "nn/layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PLACES_MOST = 1 << 24 };

/* The value is what this layer gives, in its own shape. */
static void stand(struct value *x, const char *layer)
{
    x->layer = layer;
    x->gives = value_sample(x);
}

enum status compose_apply(struct import *in, struct value *x, const char *kind, const char *format,
                          ...)
{
    char arguments[100];
    struct line *line;
    const char *layer;
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, kind, layer, &line, "%s", arguments));
    stand(x, line->name);
    return STATUS_OK;
}

enum status compose_affine(struct import *in, struct value *x, double scale, double shift)
{
    const char *layer;
    TRY(line_of_value(in, x, &layer));
    TRY(line_affine(in, layer, value_sample(x).rank, scale, shift, &layer));
    stand(x, layer);
    return STATUS_OK;
}

enum status compose_above_zero(struct import *in, struct value *x)
{
    return compose_apply(in, x, "relu", "%s", "");
}

enum status compose_below_zero(struct import *in, struct value *x)
{
    return compose_apply(in, x, "clip", "%.9g 0", -BOUND_NONE);
}

enum status compose_absolute(struct import *in, struct value *x)
{
    struct value below = *x;
    TRY(compose_above_zero(in, x));
    TRY(compose_below_zero(in, &below));
    TRY(compose_affine(in, &below, -1, 0));
    return node_combine(in, "add", x, &below, x);
}

/* The difference of unlike floats is never 0: multiplied with 2^127 twice, the least of them is
 * above 1, and the largest is infinite. */
enum status compose_step(struct import *in, struct value *x, double number)
{
    TRY(compose_affine(in, x, 1, -number));
    TRY(compose_affine(in, x, 0x1p127, 0));
    TRY(compose_affine(in, x, 0x1p127, 0));
    return compose_apply(in, x, "clip", "0 1");
}

enum status compose_known(struct import *in, struct shape shape, float number, struct value *out)
{
    *out = (struct value){.name = "numbers", .shape = shape, .batch = -1};
    TRY(constant_new(in, shape, false, &out->constant));
    for (int64_t i = 0; i < out->constant->count; i++)
        out->constant->reals[i] = number;
    return STATUS_OK;
}

/* Times as many ones. */
enum status compose_spread(struct import *in, struct shape shape, struct value *x)
{
    struct value ones;
    bool fits = shape.rank <= x->shape.rank;
    for (int32_t d = 1; fits && d <= shape.rank; d++) {
        int64_t size = shape.dim[shape.rank - d];
        int32_t own = x->shape.rank - d; /* they cannot differ from sample to sample */
        fits = size == 1 || (own != x->batch && size == x->shape.dim[own]);
    }
    if (fits)
        return STATUS_OK;
    TRY(compose_known(in, shape, 1, &ones));
    return node_combine(in, "multiply", x, &ones, x);
}

enum status compose_tile(struct import *in, int32_t axis, int64_t times, bool each, struct value *x)
{
    int32_t own;
    int64_t before = 1;
    const char *layer;
    if (times == 1)
        return STATUS_OK;
    TRY(value_axis(in, x, axis, &own));
    if (times < 1 || times > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it repeats %lld times, expected 1 to %d", (long long)times,
               PICKS_MOST);
    struct shape sample = value_sample(x);
    for (int32_t d = 0; d < own - !each; d++)
        before *= sample.dim[d];
    const char **copies = arena_array(&in->arena, (size_t)times, sizeof *copies);
    NEED(copies);
    TRY(line_of(in, x, SHAPE(before, 1, shape_count(&sample) / before), &layer));
    for (int64_t i = 0; i < times; i++)
        copies[i] = layer;
    TRY(line_join(in, copies, times, 2, &x->layer));
    x->gives = SHAPE(before, times, shape_count(&sample) / before);
    x->shape.dim[axis] *= times;
    return STATUS_OK;
}

/* From the last axis on, so that the places of the others stay. */
enum status compose_reduce(struct import *in, const char *function, const bool axes[SHAPE_MOST],
                           struct value *x)
{
    struct value to = *x;
    struct shape sample = value_sample(x);
    struct line *line;
    const char *layer = NULL;
    for (int32_t d = x->shape.rank - 1; d >= 0; d--) {
        int32_t own;
        if (!axes[d])
            continue;
        TRY(value_axis(in, x, d, &own));
        if (!layer)
            TRY(line_of_value(in, x, &layer));
        TRY(line_add(in, "reduce", layer, &line, "%s axis=%d", function, own));
        layer = line->name;
        for (int32_t k = own; k < sample.rank; k++)
            sample.dim[k - 1] = sample.dim[k];
        if (--sample.rank == 0)
            sample = SHAPE(1);
        to.shape.dim[d] = 1;
        to.layer = layer;
        to.gives = sample;
    }
    *x = to;
    return STATUS_OK;
}

enum status compose_exchange(struct import *in, int32_t rank, int32_t axis, const char **out)
{
    struct text order = {0};
    for (int32_t d = 1; d <= rank; d++)
        text_printf(&order, "%s%d", d > 1 ? "," : "", d == axis ? rank : d == rank ? axis : d);
    *out = arena_text(&in->arena, text_of(&order));
    text_free(&order);
    NEED(*out);
    return STATUS_OK;
}

enum status compose_matrix(struct import *in, int32_t axis, const struct constant *matrix,
                           struct value *x)
{
    int64_t size = matrix->shape.dim[1];
    int32_t own;
    struct line *line;
    const char *layer, *exchange = NULL;
    float *kept;
    TRY(value_axis(in, x, axis, &own));
    TRY(line_of_value(in, x, &layer));
    if (own != value_sample(x).rank) {
        TRY(compose_exchange(in, value_sample(x).rank, own, &exchange));
        TRY(line_add(in, "transpose", layer, &line, "%s", exchange));
        layer = line->name;
    }
    TRY(line_add(in, "dense", layer, &line, "%lld bias=0", (long long)size));
    TRY(line_weights(in, matrix->count, &kept));
    memcpy(kept, matrix->reals, (size_t)matrix->count * sizeof *kept);
    TRY(line_give(in, line, "weight", kept, matrix->count));
    line_learns(in, false);
    if (exchange)
        TRY(line_add(in, "transpose", line->name, &line, "%s", exchange));
    x->shape.dim[axis] = size;
    stand(x, line->name);
    return STATUS_OK;
}

enum status compose_places(struct import *in, int64_t count, int64_t **out)
{
    if (count < 1 || count > PLACES_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it takes %lld places one by one, expected 1 to %d",
               (long long)count, PLACES_MOST);
    NEED(*out = arena_array(&in->arena, (size_t)count, sizeof **out));
    return STATUS_OK;
}

/* A line for each run of neighbours. */
static enum status check_runs(struct import *in, const int64_t *places, int64_t count)
{
    int64_t runs = count > 0;
    for (int64_t i = 1; i < count; i++)
        runs += places[i] != places[i - 1] + 1;
    if (!runs || runs > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it takes %lld places or runs of them, expected 1 to %d",
               (long long)runs, PICKS_MOST);
    return STATUS_OK;
}

enum status compose_pick_axis(struct import *in, int32_t axis, const int64_t *places, int64_t count,
                              struct value *x)
{
    int32_t own;
    const char *layer;
    TRY(value_axis(in, x, axis, &own));
    TRY(check_runs(in, places, count));
    TRY(line_of_value(in, x, &layer));
    TRY(line_pick(in, layer, own, places, count, &layer));
    x->shape.dim[axis] = count;
    stand(x, layer);
    return STATUS_OK;
}

enum status compose_pick(struct import *in, const int64_t *places, struct shape shape,
                         struct value *x)
{
    struct shape sample = value_sample(x);
    const char *layer;
    int64_t count = shape_count(&shape); /* a dimension that counts the samples is 1 */
    TRY(check_runs(in, places, count));
    TRY(line_of(in, x, SHAPE(shape_count(&sample)), &layer));
    TRY(line_pick(in, layer, 1, places, count, &x->layer));
    x->shape = shape;
    x->gives = SHAPE(count);
    return STATUS_OK;
}

enum status compose_normalise(struct import *in, double epsilon, struct value *x)
{
    int64_t width = x->shape.dim[x->shape.rank - 1];
    if (width > PLACES_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it normalises %lld places together, expected at most %d",
               (long long)width, PLACES_MOST);
    TRY(compose_apply(in, x, "layer_norm", "%.9g", epsilon));
    for (int i = 0; i < 2; i++) {
        float *numbers;
        TRY(line_weights(in, width, &numbers));
        for (int64_t k = 0; k < width; k++)
            numbers[k] = i ? 0 : 1;
        TRY(line_give(in, line_find(in, x->layer), i ? "shift" : "scale", numbers, width));
        line_learns(in, false);
    }
    return STATUS_OK;
}

/* The input itself is no line of the node's own, into which others might be folded. */
enum status compose_give(struct import *in, const struct value *x)
{
    const struct value *from = graph_input(in, 0);
    if (from && from->layer == x->layer)
        return line_gives_same(in, from, x->shape, x->batch);
    return line_gives(in, 0, x->layer, x->gives, x->shape, x->batch);
}
