/* nodes_matrix.c: products of matrices, and normalisation of rows. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/fold.h"

#include <string.h>

node_writer node_gemm, node_matmul, node_layer_norm;

/* A dense layer: y = x·W + b over the last dimension of `sample`. w is [in, out], or the other way
 * round; its numbers are multiplied with alpha. */
static enum status write_dense(struct import *in, const char *x, const struct constant *w,
                               bool turned, double alpha, struct line **out)
{
    int64_t inputs = w->shape.dim[turned], outputs = w->shape.dim[!turned];
    struct line *line;
    TRY(line_add(in, "dense", x, &line, "%lld", (long long)outputs));
    TRY(line_weights(in, w->count, &line->weight));
    for (int64_t i = 0; i < inputs; i++)
        for (int64_t o = 0; o < outputs; o++) {
            float number = w->reals[turned ? o * inputs + i : i * outputs + o];
            line->weight[i * outputs + o] = alpha == 1 ? number : (float)((double)number * alpha);
        }
    line->has_bias = true;
    line->weights = w->count;
    line->channels = outputs;
    line->run = 1;
    *out = line;
    TRY(line_give(in, line, "weight", line->weight, w->count));
    line_learns(in, !w->held);
    return STATUS_OK;
}

/* Gemm's C: a bias, or where it differs from row to row, or is one number for all columns that may
 * learn, a sum of its own. `rows` is 0 where a row is a sample. */
static enum status add_c(struct import *in, struct line *line, int64_t rows, const char **layer)
{
    const struct value *c = graph_input(in, 2);
    double beta = graph_real(in, "beta", 1);
    const char *other;
    if (!c)
        return STATUS_OK;
    const struct constant *known;
    TRY(node_known(in, 2, -1, &known));
    int32_t rank = known->shape.rank;
    int64_t wide = rank ? known->shape.dim[rank - 1] : 1;
    int64_t high = rank > 1 ? known->shape.dim[rank - 2] : 1;
    if (rank > 2 || (wide != 1 && wide != line->channels) || (high != 1 && high != rows))
        REFUSE(in, STATUS_UNSUPPORTED, "its third input has another shape than its output");
    if (high == 1 && (wide == line->channels || known->held)) {
        TRY(line_weights(in, line->channels, &line->shift));
        for (int64_t i = 0; i < line->channels; i++)
            line->shift[i] = (float)(beta * (double)known->reals[wide == 1 ? 0 : i]);
        line->bias = true;
        TRY(line_give(in, line, "bias", line->shift, line->channels));
        line_learns(in, !known->held);
        return STATUS_OK;
    }
    float *scaled = arena_array(&in->arena, (size_t)known->count, sizeof *scaled);
    NEED(scaled);
    for (int64_t i = 0; i < known->count; i++)
        scaled[i] = (float)(beta * (double)known->reals[i]);
    struct shape sample = rows ? SHAPE(high, wide) : SHAPE(wide);
    TRY(line_constant(in, scaled, known->count, known->learnt, sample, &other));
    return line_pair(in, "add", *layer, other, layer);
}

/* What alpha and beta are multiplied with here would learn at another pace. */
static enum status check_factors(struct import *in)
{
    static const char *const factors[] = {"alpha", "beta"};
    for (size_t i = 0; i < 2; i++) {
        const struct value *numbers = graph_input(in, i + 1);
        double factor = graph_real(in, factors[i], 1);
        if (factor != 1 && numbers && numbers->constant && !numbers->constant->held)
            TRY(import_untrainable(in,
                                   "it cannot be trained: %s of the node '%.80s' (Gemm) is %g, "
                                   "expected 1, or the numbers that it multiplies in a Constant",
                                   factors[i], in->node->output[0], factor));
    }
    return STATUS_OK;
}

/* The first factor is the data; where samples are its columns, a transposed one is rows of them. */
enum status node_gemm(struct import *in)
{
    struct value *x;
    const struct constant *w;
    struct line *line;
    const char *layer;
    bool turned = graph_int(in, "transB", 0) != 0, from_columns = graph_int(in, "transA", 0) != 0;
    TRY(node_data(in, 0, &x));
    TRY(node_known(in, 1, 2, &w));
    if (x->shape.rank != 2 || (x->batch >= 0 && x->batch != from_columns) ||
        (from_columns && !value_counts(x, 1)))
        REFUSE(in, STATUS_UNSUPPORTED, "its first input should be a row for each sample");
    if (!w->count || x->shape.dim[!from_columns] != w->shape.dim[turned])
        REFUSE(in, STATUS_INPUT, "its inputs have %lld and %lld numbers to be multiplied",
               (long long)x->shape.dim[!from_columns], (long long)w->shape.dim[turned]);
    TRY(check_factors(in));
    TRY(line_of_value(in, x, &layer));
    TRY(write_dense(in, layer, w, turned, graph_real(in, "alpha", 1), &line));
    layer = line->name;
    int64_t rows = from_columns ? 1 : x->shape.dim[0], outputs = w->shape.dim[!turned];
    TRY(add_c(in, line, x->batch < 0 ? rows : 0, &layer));
    struct value product = {.shape = SHAPE(rows, outputs), .batch = x->batch < 0 ? -1 : 0};
    return line_gives(in, 0, layer, value_sample(&product), product.shape, product.batch);
}

/* The shape that both sides of a product have together, but for the last two dimensions. */
static enum status join_front(struct import *in, const struct value side[2], struct shape *out)
{
    int32_t rank = side[side[0].shape.rank < side[1].shape.rank].shape.rank;
    *out = (struct shape){.rank = rank};
    for (int32_t d = 0; d < rank - 2; d++) {
        int64_t size[2];
        for (int i = 0; i < 2; i++) {
            int32_t own = d - rank + side[i].shape.rank;
            size[i] = own < 0 ? 1 : side[i].shape.dim[own];
        }
        if (size[0] != size[1] && size[0] != 1 && size[1] != 1)
            REFUSE(in, STATUS_INPUT, "its inputs have %lld and %lld in dimension %d",
                   (long long)size[0], (long long)size[1], d);
        out->dim[d] = size[0] == 1 ? size[1] : size[0];
    }
    return STATUS_OK;
}

/* One side as a layer that gives a sample of `front` and its own last two dimensions. */
static enum status side_layer(struct import *in, struct shape front, int32_t batch,
                              struct value side, const char **out)
{
    int32_t rank = front.rank, own = side.shape.rank;
    struct value whole = {.shape = front, .batch = batch};
    memcpy(whole.shape.dim + rank - 2, side.shape.dim + own - 2, 2 * sizeof *front.dim);
    if (side.constant && side.constant->reals) {
        struct constant *wide = side.constant;
        if (shape_count(&wide->shape) != shape_count(&whole.shape)) {
            TRY(fold_spread(in, side.constant, whole.shape, &wide));
            TRY(import_repeats(in, side.constant, wide->count));
        }
        return line_constant(in, wide->reals, wide->count, side.constant->learnt,
                             value_sample(&whole), out);
    }
    struct shape spread = whole.shape;
    if (side.batch >= 0)
        spread.dim[batch] = 1; /* in which both are alike */
    TRY(compose_spread(in, spread, &side));
    return line_of(in, &side, value_sample(&whole), out);
}

/* A vector is a matrix of one row, or one column, which the product then has not; what a side has
 * once is repeated for all the other one has. */
static enum status multiply_two(struct import *in, const struct value *a, const struct value *b)
{
    struct value side[2] = {*a, *b};
    bool vector[2];
    struct line *line;
    const char *layers[2], *inputs;
    int32_t batch = -1;
    struct shape front;
    for (int i = 0; i < 2; i++) {
        struct value *s = &side[i];
        vector[i] = s->shape.rank == 1;
        if (s->tokens || !s->shape.rank || s->batch >= (vector[i] ? 0 : s->shape.rank - 2))
            REFUSE(in, STATUS_UNSUPPORTED,
                   "expected real inputs of a dimension or more, and no product over samples");
        if (vector[i])
            s->shape = i ? SHAPE(s->shape.dim[0], 1) : SHAPE(1, s->shape.dim[0]);
    }
    TRY(join_front(in, side, &front));
    for (int i = 0; i < 2; i++) {
        if (side[i].batch < 0)
            continue;
        int32_t own = side[i].batch + front.rank - side[i].shape.rank;
        if ((batch >= 0 && batch != own) || front.dim[own] != side[i].shape.dim[side[i].batch])
            REFUSE(in, STATUS_UNSUPPORTED, "its inputs count the samples differently");
        batch = own;
    }
    int64_t inner = side[0].shape.dim[side[0].shape.rank - 1];
    if (inner != side[1].shape.dim[side[1].shape.rank - 2])
        REFUSE(in, STATUS_INPUT, "its inputs have %lld and %lld numbers to be multiplied",
               (long long)inner, (long long)side[1].shape.dim[side[1].shape.rank - 2]);
    for (int i = 0; i < 2; i++)
        TRY(side_layer(in, front, batch, side[i], &layers[i]));
    NEED(inputs = arena_format(&in->arena, "%s, %s", layers[0], layers[1]));
    TRY(line_add(in, "matmul", inputs, &line, "%s", "none"));
    line->scale = 1;
    struct value product = {.shape = front, .batch = batch};
    product.shape.dim[front.rank - 2] = side[0].shape.dim[side[0].shape.rank - 2];
    product.shape.dim[front.rank - 1] = side[1].shape.dim[side[1].shape.rank - 1];
    struct shape gives = value_sample(&product);
    if (vector[1])
        product.shape.rank--;
    if (vector[0]) {
        product.shape.dim[product.shape.rank - 2 + vector[1]] =
            product.shape.dim[product.shape.rank - 1 + vector[1]];
        product.shape.rank--;
    }
    return line_gives(in, 0, line->name, gives, product.shape, batch);
}

/* Known numbers that are one matrix, whatever dimensions of 1 stand before it, or a vector. */
static enum status find_matrix(struct import *in, const struct value *x, const struct value *w,
                               const struct constant **out)
{
    struct constant *view;
    int32_t rank = w->shape.rank;
    *out = NULL;
    if (!w->constant || !w->constant->reals || !w->constant->count || w->batch >= 0 || rank < 1 ||
        rank > x->shape.rank)
        return STATUS_OK;
    struct shape shape = SHAPE(w->shape.dim[0], 1);
    if (rank > 1)
        shape = SHAPE(w->shape.dim[rank - 2], w->shape.dim[rank - 1]);
    if (shape_count(&shape) != w->constant->count)
        return STATUS_OK;
    TRY(constant_view(in, w->constant, shape, &view));
    *out = view;
    return STATUS_OK;
}

enum status node_matmul(struct import *in)
{
    const struct value *x = graph_input(in, 0), *w = graph_input(in, 1);
    const struct constant *matrix;
    struct line *line;
    const char *layer;
    int32_t last = x->shape.rank - 1;
    TRY(find_matrix(in, x, w, &matrix));
    if (!matrix || x->constant || x->tokens || last < 1 || x->batch == last)
        return multiply_two(in, x, w);
    if (x->shape.dim[last] != matrix->shape.dim[0])
        REFUSE(in, STATUS_INPUT, "its inputs have %lld and %lld numbers to be multiplied",
               (long long)x->shape.dim[last], (long long)matrix->shape.dim[0]);
    TRY(line_of_value(in, x, &layer));
    TRY(write_dense(in, layer, matrix, false, 1, &line));
    struct value product = {.shape = x->shape, .batch = x->batch};
    product.shape.dim[last] = matrix->shape.dim[1];
    struct shape gives = value_sample(&product);
    product.shape.rank -= w->shape.rank == 1;
    return line_gives(in, 0, line->name, gives, product.shape, x->batch);
}

/* A scale or a shift that is not one number a place is multiplied with, or added, as it is. */
static enum status norm_apart(struct import *in, const struct value *x, struct shape rows)
{
    struct value y = *x;
    y.shape = rows;
    y.batch = -1;
    TRY(line_of(in, x, rows, &y.layer));
    y.gives = rows;
    TRY(compose_normalise(in, graph_real(in, "epsilon", 1e-5), &y));
    y.shape = x->shape;
    y.batch = x->batch;
    for (size_t i = 1; i < 3; i++)
        if (graph_input(in, i))
            TRY(node_combine(in, i == 1 ? "multiply" : "add", &y, graph_input(in, i), &y));
    if (!shape_equal(&y.shape, &x->shape))
        REFUSE(in, STATUS_INPUT, "its scale or shift has more dimensions than its input");
    return compose_give(in, &y);
}

/* Over all dimensions from the axis on, which become one. */
enum status node_layer_norm(struct import *in)
{
    static const char *const parameters[] = {"scale", "shift"};
    struct value *x;
    struct line *line;
    const char *layer;
    int32_t axis, own;
    TRY(node_data(in, 0, &x));
    TRY(graph_axis_of(in, "axis", -1, x->shape.rank, &axis));
    TRY(value_axis(in, x, axis, &own));
    struct shape sample = value_sample(x), rows = sample;
    for (int32_t d = own; d < sample.rank; d++)
        rows.dim[own - 1] *= sample.dim[d];
    rows.rank = own;
    if (x->batch > axis)
        REFUSE(in, STATUS_UNSUPPORTED, "it goes over the dimension that counts the samples");
    for (size_t i = 1; i < 3; i++) {
        const struct value *known = graph_input(in, i);
        if (known && (!known->constant || known->constant->count != rows.dim[own - 1]))
            return norm_apart(in, x, rows);
    }
    TRY(line_of(in, x, rows, &layer));
    TRY(line_add(in, "layer_norm", layer, &line, "%.9g", graph_real(in, "epsilon", 1e-5)));
    for (size_t i = 0; i < 2; i++) {
        const struct constant *known;
        float *kept;
        if (!graph_input(in, i + 1)) { /* no shift */
            TRY(line_weights(in, rows.dim[own - 1], &kept));
            TRY(line_give(in, line, parameters[i], kept, rows.dim[own - 1]));
            line_learns(in, false);
            continue;
        }
        TRY(node_known(in, i + 1, -1, &known));
        TRY(line_weights(in, known->count, &kept));
        memcpy(kept, known->reals, (size_t)known->count * sizeof *kept);
        TRY(line_give(in, line, parameters[i], kept, known->count));
        line_learns(in, !known->held);
    }
    return line_gives(in, 0, line->name, rows, x->shape, x->batch);
}
