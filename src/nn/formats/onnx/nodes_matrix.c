/* nodes_matrix.c: products of matrices, and normalisation of rows. */
#include "nn/formats/onnx/importer.h"

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

/* Gemm's C: a bias, or where it differs from row to row a sum of its own. */
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
    if (high == 1) {
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
    TRY(line_constant(in, scaled, known->count, known->learnt, SHAPE(high, wide), &other));
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
    TRY(add_c(in, line, x->batch < 0 ? rows : 1, &layer));
    struct value product = {.shape = SHAPE(rows, outputs), .batch = x->batch < 0 ? -1 : 0};
    return line_gives(in, 0, layer, value_sample(&product), product.shape, product.batch);
}

static enum status multiply_two(struct import *in, const struct value *a, const struct value *b)
{
    struct line *line;
    const char *first, *second, *inputs;
    const struct value *sides[] = {a, b};
    int32_t rank = a->shape.rank, batch = a->constant ? b->batch : a->batch;
    struct value parts[2];
    bool sound = rank >= 2 && rank == b->shape.rank && batch < rank - 2;
    for (int32_t d = 0; sound && d < rank - 2; d++)
        sound = a->shape.dim[d] == b->shape.dim[d];
    sound = sound && a->shape.dim[rank - 1] == b->shape.dim[rank - 2];
    for (int i = 0; i < 2; i++) {
        sound = sound && !sides[i]->tokens && (sides[i]->constant || sides[i]->batch == batch);
        parts[i] = *sides[i];
        parts[i].batch = batch;
    }
    if (!sound)
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected two inputs with the same dimensions but the last "
               "two, which fit, and no product over samples");
    TRY(line_of(in, a, value_sample(&parts[0]), &first));
    TRY(line_of(in, b, value_sample(&parts[1]), &second));
    NEED(inputs = arena_format(&in->arena, "%s, %s", first, second));
    TRY(line_add(in, "matmul", inputs, &line, "%s", "none"));
    line->scale = 1;
    struct value product = {.shape = a->shape, .batch = batch};
    product.shape.dim[rank - 1] = b->shape.dim[rank - 1];
    return line_gives(in, 0, line->name, value_sample(&product), product.shape, batch);
}

enum status node_matmul(struct import *in)
{
    const struct value *x = graph_input(in, 0), *w = graph_input(in, 1);
    struct line *line;
    const char *layer;
    int32_t last = x->shape.rank - 1;
    bool dense = !x->constant && w->constant && w->constant->reals && w->shape.rank == 2 &&
                 last >= 1 && x->batch != last && !x->tokens;
    if (!dense)
        return multiply_two(in, x, w);
    if (!w->constant->count || x->shape.dim[last] != w->shape.dim[0])
        REFUSE(in, STATUS_INPUT, "its inputs have %lld and %lld numbers to be multiplied",
               (long long)x->shape.dim[last], (long long)w->shape.dim[0]);
    TRY(line_of_value(in, x, &layer));
    TRY(write_dense(in, layer, w->constant, false, 1, &line));
    struct value product = {.shape = x->shape, .batch = x->batch};
    product.shape.dim[last] = w->shape.dim[1];
    return line_gives(in, 0, line->name, value_sample(&product), product.shape, x->batch);
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
    TRY(line_of(in, x, rows, &layer));
    TRY(line_add(in, "layer_norm", layer, &line, "%.9g", graph_real(in, "epsilon", 1e-5)));
    for (size_t i = 0; i < 2; i++) {
        const struct constant *known;
        float *kept;
        if (!graph_input(in, i + 1)) { /* no shift */
            TRY(line_weights(in, rows.dim[own - 1], &kept));
            TRY(line_give(in, line, parameters[i], kept, rows.dim[own - 1]));
            continue;
        }
        TRY(node_known(in, i + 1, -1, &known));
        if (known->count != rows.dim[own - 1])
            REFUSE(in, STATUS_UNSUPPORTED, "its input %zu has %lld numbers, expected %lld", i + 2,
                   (long long)known->count, (long long)rows.dim[own - 1]);
        TRY(line_weights(in, known->count, &kept));
        memcpy(kept, known->reals, (size_t)known->count * sizeof *kept);
        TRY(line_give(in, line, parameters[i], kept, known->count));
        line_learns(in, !known->held);
    }
    return line_gives(in, 0, line->name, rows, x->shape, x->batch);
}
