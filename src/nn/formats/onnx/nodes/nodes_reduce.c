/* nodes_reduce.c: operators over whole dimensions: sums and the like, which leave one place of
 * them, and those that use such a one for every place: normalisation, sums so far. */
#include "nn/formats/onnx/compose.h"

#include "nn/layer.h"

#include <float.h>
#include <string.h>

node_writer node_reduce, node_norm, node_cumulate, node_instance_norm, node_mean_variance;

/* Which dimensions a Reduce goes over: all where nothing is said. */
static enum status read_reduced(struct import *in, const struct value *x, bool out[SHAPE_MOST])
{
    const int64_t *axes;
    int64_t count;
    TRY(graph_numbers(in, 1, "axes", &axes, &count));
    if (count <= 0 && graph_int(in, "noop_with_empty_axes", 0))
        return STATUS_OK;
    for (int32_t d = 0; count <= 0 && d < x->shape.rank; d++)
        out[d] = true;
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        TRY(graph_axis(in, axes[i], x->shape.rank, &axis));
        out[axis] = true;
    }
    return STATUS_OK;
}

/* Means and largest of images, height and width at once, are pooling. */
static bool is_pooling(const struct value *x, const bool axes[SHAPE_MOST])
{
    return x->shape.rank == 4 && value_counts(x, 0) && !axes[0] && !axes[1] && axes[2] && axes[3];
}

static enum status reduce_plainly(struct import *in, const char *function,
                                  const bool axes[SHAPE_MOST], struct value *x)
{
    if (!is_pooling(x, axes) || !strcmp(function, "sum"))
        return compose_reduce(in, function, axes, x);
    int64_t channels = x->shape.dim[1];
    TRY(compose_apply(in, x, !strcmp(function, "max") ? "global_max_pool" : "global_average_pool",
                      "%s", ""));
    x->shape.dim[2] = x->shape.dim[3] = 1;
    x->gives = SHAPE(channels);
    return STATUS_OK;
}

/* Products of the first half with the second, until one place is left. */
static enum status multiply_out(struct import *in, const bool axes[SHAPE_MOST], struct value *x)
{
    for (int32_t d = 0; d < x->shape.rank; d++) {
        int32_t own = 0;
        if (axes[d])
            TRY(value_axis(in, x, d, &own));
        while (axes[d] && x->shape.dim[d] > 1) {
            int64_t size = x->shape.dim[d], half = size / 2;
            const char *layer, *parts[2];
            TRY(line_of_value(in, x, &layer));
            TRY(line_slice(in, layer, own, 0, half, &parts[0]));
            TRY(line_slice(in, layer, own, half, half, &parts[1]));
            TRY(line_pair(in, "multiply", parts[0], parts[1], &parts[0]));
            if (size % 2) {
                TRY(line_slice(in, layer, own, size - 1, 1, &parts[1]));
                TRY(line_join(in, parts, 2, own, &parts[0]));
            }
            x->layer = parts[0];
            x->shape.dim[d] = size - half;
            x->gives = value_sample(x);
        }
    }
    return STATUS_OK;
}

/* ln Σ e^x: the largest comes out of the sum, so that none is infinite. */
static enum status log_sum_exp(struct import *in, const bool axes[SHAPE_MOST], struct value *x)
{
    struct value most = *x, minus;
    TRY(compose_reduce(in, "max", axes, &most));
    minus = most;
    TRY(compose_affine(in, &minus, -1, 0));
    TRY(node_combine(in, "add", x, &minus, x));
    TRY(compose_apply(in, x, "exp", "%s", ""));
    TRY(compose_reduce(in, "sum", axes, x));
    TRY(compose_apply(in, x, "log", "%s", ""));
    return node_combine(in, "add", x, &most, x);
}

static enum status reduce(struct import *in, const char *what, const bool axes[SHAPE_MOST],
                          struct value *x)
{
    bool squares = !strcmp(what, "L2") || !strcmp(what, "SumSquare");
    if (!strcmp(what, "Mean") || !strcmp(what, "Max"))
        return reduce_plainly(in, !strcmp(what, "Mean") ? "mean" : "max", axes, x);
    if (!strcmp(what, "Prod"))
        return multiply_out(in, axes, x);
    if (!strcmp(what, "LogSumExp"))
        return log_sum_exp(in, axes, x);
    if (!strcmp(what, "Min")) {
        TRY(compose_affine(in, x, -1, 0));
        TRY(reduce_plainly(in, "max", axes, x));
        return compose_affine(in, x, -1, 0);
    }
    if (!strcmp(what, "L1"))
        TRY(compose_absolute(in, x));
    if (squares)
        TRY(node_combine(in, "multiply", x, x, x));
    TRY(compose_reduce(in, "sum", axes, x));
    if (!strcmp(what, "L2"))
        TRY(compose_apply(in, x, "sqrt", "%s", ""));
    if (!strcmp(what, "LogSum"))
        TRY(compose_apply(in, x, "log", "%s", ""));
    return STATUS_OK;
}

enum status node_reduce(struct import *in)
{
    struct value *x;
    bool reduced[SHAPE_MOST] = {false}, keep = graph_int(in, "keepdims", 1) != 0;
    TRY(node_data(in, 0, &x));
    TRY(read_reduced(in, x, reduced));
    struct value y = *x;
    TRY(reduce(in, in->node->op_type + strlen("Reduce"), reduced, &y));
    struct shape shape = {0};
    int32_t batch = -1;
    for (int32_t d = 0; d < x->shape.rank; d++) {
        if (d == x->batch)
            batch = shape.rank;
        if (!reduced[d] || keep)
            shape.dim[shape.rank++] = y.shape.dim[d];
    }
    y.shape = shape;
    y.batch = batch;
    return compose_give(in, &y);
}

/* LpNormalization, by the norm of each row along an axis, and GlobalLpPool, which is the norm of
 * each channel. What is all 0 stays so: its norm is taken as the least that there is. */
enum status node_norm(struct import *in)
{
    struct value *x;
    bool pool = !strcmp(in->node->op_type, "GlobalLpPool"), axes[SHAPE_MOST] = {false};
    int64_t power = graph_int(in, "p", 2);
    TRY(node_data(in, 0, &x));
    if (power != 1 && power != 2)
        REFUSE(in, STATUS_UNSUPPORTED, "p is %lld, expected 1 or 2", (long long)power);
    struct value norm = *x;
    int32_t axis = 0;
    if (!pool)
        TRY(graph_axis_of(in, "axis", -1, x->shape.rank, &axis));
    for (int32_t d = 0; d < x->shape.rank; d++)
        axes[d] = pool ? d >= 2 : d == axis;
    TRY(reduce(in, power == 1 ? "L1" : "L2", axes, &norm));
    if (pool)
        return compose_give(in, &norm);
    TRY(compose_apply(in, &norm, "clip", "%.9g %.9g", (double)FLT_MIN, BOUND_NONE));
    TRY(node_combine(in, "divide", x, &norm, &norm));
    return compose_give(in, &norm);
}

/* Sums of all places before, the own among them or not: the product with a triangle of ones. */
enum status node_cumulate(struct import *in)
{
    struct value *x;
    double given;
    int32_t axis;
    bool reverse = graph_int(in, "reverse", 0) != 0, exclusive = graph_int(in, "exclusive", 0) != 0;
    struct constant *triangle;
    TRY(node_data(in, 0, &x));
    TRY(graph_number(in, 1, 0, &given));
    TRY(graph_axis(in, (int64_t)given, x->shape.rank, &axis));
    int64_t size = x->shape.dim[axis];
    if (size > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it adds up %lld places, expected at most %d",
               (long long)size, PICKS_MOST);
    TRY(constant_new(in, SHAPE(size, size), false, &triangle));
    for (int64_t i = 0; i < triangle->count; i++) {
        int64_t from = i / size, to = i % size;
        bool before = reverse ? from > to : from < to;
        triangle->reals[i] = before || (from == to && !exclusive) ? 1 : 0;
    }
    struct value y = *x;
    TRY(compose_matrix(in, axis, triangle, &y));
    return compose_give(in, &y);
}

/* Each channel of a sample becomes a row that is normalised, then scaled and shifted. */
enum status node_instance_norm(struct import *in)
{
    struct value *x;
    const struct constant *numbers;
    const char *layer, *other;
    TRY(node_data(in, 0, &x));
    if (!value_counts(x, 0) || x->shape.rank < 3)
        REFUSE(in, STATUS_UNSUPPORTED, "its input should be samples, channels and what is theirs");
    struct shape sample = value_sample(x);
    int64_t channels = sample.dim[0], rest = shape_count(&sample) / channels;
    struct value rows = *x;
    rows.shape = SHAPE(1, channels, rest);
    TRY(compose_normalise(in, graph_real(in, "epsilon", 1e-5), &rows));
    layer = rows.layer;
    for (size_t i = 1; i < 3; i++) {
        TRY(node_known(in, i, 1, &numbers));
        if (numbers->count != channels)
            REFUSE(in, STATUS_INPUT, "its input %zu has %lld numbers, expected %lld", i + 1,
                   (long long)numbers->count, (long long)channels);
        TRY(line_constant(in, numbers->reals, channels, numbers->learnt, SHAPE(channels, 1),
                          &other));
        TRY(line_pair(in, i == 1 ? "multiply" : "add", layer, other, &layer));
    }
    return line_gives(in, 0, layer, SHAPE(channels, rest), x->shape, x->batch);
}

/* (x - mean) / (√variance + 1e-9) over some dimensions: samples, rows and columns where nothing is
 * said. */
enum status node_mean_variance(struct import *in)
{
    static const int64_t usual[] = {0, 2, 3};
    struct value *x;
    int64_t count;
    const int64_t *axes = graph_ints(in, "axes", &count);
    bool reduced[SHAPE_MOST] = {false};
    TRY(node_data(in, 0, &x));
    for (int64_t i = 0; i < (count < 0 ? 3 : count); i++) {
        int32_t axis;
        TRY(graph_axis(in, count < 0 ? usual[i] : axes[i], x->shape.rank, &axis));
        reduced[axis] = true;
    }
    struct value y = *x, mean = *x, spread;
    TRY(compose_reduce(in, "mean", reduced, &mean));
    TRY(compose_affine(in, &mean, -1, 0));
    TRY(node_combine(in, "add", &y, &mean, &y));
    TRY(node_combine(in, "multiply", &y, &y, &spread));
    TRY(compose_reduce(in, "mean", reduced, &spread));
    TRY(compose_apply(in, &spread, "sqrt", "%s", ""));
    TRY(compose_affine(in, &spread, 1, 1e-9));
    TRY(node_combine(in, "divide", &y, &spread, &y));
    return compose_give(in, &y);
}
