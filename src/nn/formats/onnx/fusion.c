/* fusion.c: what exporters write as several nodes because opset 17 and below have no operator for
 * it: gelu, x · ½ · (1 + erf(x / √2)); and layer normalisation, which came with opset 17. A pattern
 * is followed from its first node on; where all of it is there, one line is written for it and the
 * other nodes are done. */
#include "nn/formats/onnx/importer.h"

#include <math.h>
#include <string.h>

enum { STEPS_MOST = 10 };

/* A pattern as far as it was followed. */
struct trail {
    struct import *in;
    int32_t steps[STEPS_MOST]; /* nodes */
    int32_t count;
    const struct value *at; /* what the last of them gives; NULL: it has left the pattern */
    int32_t rank;           /* of all that it gives on the way */
};

/* Goes on to that operator, which reads it; it is read so many times in all. */
static void step(struct trail *trail, const char *op, int32_t uses)
{
    const struct import *in = trail->in;
    if (!trail->at || trail->at->uses != uses || trail->count == STEPS_MOST) {
        trail->at = NULL;
        return;
    }
    int32_t n = graph_reader(in, trail->at, op);
    trail->at = NULL;
    if (n < 0 || in->graph->node[n]->n_output < 1)
        return;
    trail->steps[trail->count++] = n;
    trail->at = graph_find(in, in->graph->node[n]->output[0]);
}

/* The node that it came to last; NULL where it has left the pattern. */
static const Onnx__NodeProto *last_node(const struct trail *trail)
{
    return trail->at && trail->count ? trail->in->graph->node[trail->steps[trail->count - 1]]
                                     : NULL;
}

/* The other operand of the last node: not what `value` names; NULL where it has no such. */
static const struct value *other_operand(const struct trail *trail, const struct value *value)
{
    const Onnx__NodeProto *node = last_node(trail);
    if (!node || node->n_input != 2)
        return NULL;
    return graph_find(trail->in, node->input[!strcmp(node->input[0], value->name)]);
}

/* Goes on only if the last node takes this one first, as Sub, Div and Pow are not the same the
 * other way round. */
static void expect_first(struct trail *trail, const struct value *value)
{
    const Onnx__NodeProto *node = last_node(trail);
    if (!node || node->n_input != 2 || strcmp(node->input[0], value->name))
        trail->at = NULL;
}

/* Is it one known number, which does not give the result more dimensions? */
static bool is_number(const struct trail *trail, const struct value *value)
{
    return value && value->constant && constant_is_one(value->constant) &&
           value->constant->shape.rank <= trail->rank;
}

/* Is the value this number, as exactly as a float has it? What is only near to it means another
 * function. */
static bool is_this(const struct trail *trail, const struct value *value, double number)
{
    return is_number(trail, value) &&
           fabs(constant_at(value->constant, 0) - number) <= 1e-7 * number;
}

/* Goes on only if the other operand is the number. */
static void expect_number(struct trail *trail, const struct value *before, double number)
{
    if (!is_this(trail, other_operand(trail, before), number))
        trail->at = NULL;
}

/* The nodes behind the first are done, too. */
static enum status finish(struct trail *trail, const char *layer, const struct value *x)
{
    struct import *in = trail->in;
    for (int32_t i = 0; i < trail->count; i++)
        in->needed[trail->steps[i]] = false;
    graph_output(in, 0)->ready = true; /* nobody asks for it any more */
    struct value *to = graph_find(in, trail->at->name);
    to->layer = layer;
    line_gives_value(line_find(in, layer), to);
    TRY(origins_of_trail(in, trail->steps, trail->count, layer));
    to->gives = value_sample(x);
    to->shape = x->shape;
    to->batch = x->batch;
    to->ahead = x->ahead;
    to->ready = true;
    return STATUS_OK;
}

static enum status write_gelu(struct import *in, bool *done)
{
    struct value *x = graph_input(in, 0);
    struct trail trail = {.in = in, .at = graph_output(in, 0), .rank = x ? x->shape.rank : 0};
    const struct value *c = graph_input(in, 1), *before;
    bool over = !strcmp(in->node->op_type, "Div");
    if (!x || x->tokens || !is_this(&trail, c, over ? sqrt(2) : sqrt(0.5)))
        return STATUS_OK;
    step(&trail, "Erf", 1);
    before = trail.at;
    step(&trail, "Add", 1);
    expect_number(&trail, before, 1);
    before = trail.at;
    step(&trail, "Mul", 1);
    if (trail.at && other_operand(&trail, before) != x)
        return STATUS_OK;
    before = trail.at;
    step(&trail, "Mul", 1);
    expect_number(&trail, before, 0.5);
    if (!trail.at)
        return STATUS_OK;
    const char *layer;
    struct line *line;
    TRY(line_known(in, x, in->batch));
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "gelu", layer, &line, "%s", ""));
    *done = true;
    return finish(&trail, line->name, x);
}

/* The numbers of an operand, one for each place of a row, and the node that has it. */
struct row {
    const char *name; /* of the parameter that they become */
    const struct constant *numbers;
    const Onnx__NodeProto *node;
};

/* Those of the last node's operand that is not `before`. */
static void find_row(struct trail *trail, const struct value *before, int64_t width,
                     struct row *out)
{
    const struct value *value = trail->at ? other_operand(trail, before) : NULL;
    const struct constant *row = value ? value->constant : NULL;
    if (row && row->reals && row->count == width && row->shape.rank >= 1 &&
        row->shape.rank <= trail->rank && row->shape.dim[row->shape.rank - 1] == width) {
        out->numbers = row;
        out->node = last_node(trail);
    } else {
        trail->at = NULL;
    }
}

static enum status give_row(struct import *in, const struct line *line, const struct row *row)
{
    const struct constant *numbers = row->numbers;
    float *kept;
    TRY(line_weights(in, numbers->count, &kept));
    memcpy(kept, numbers->reals, (size_t)numbers->count * sizeof *kept);
    TRY(line_give(in, line, row->name, kept, numbers->count));
    line_learns(in, !numbers->held);
    if (!numbers->held && !numbers->learnt)
        TRY(import_untrainable(in,
                               "it cannot be trained: the numbers of the node '%.80s' (%.40s) are "
                               "worked out, expected initializers as they stand in the file",
                               row->node->output[0], row->node->op_type));
    return import_learns(in, row->node, numbers);
}

/* Does the ReduceMean go over the last dimension, which stays as 1? */
static bool means_rows(const Onnx__NodeProto *node, int32_t rank)
{
    const struct import at = {.node = node};
    int64_t count;
    const int64_t *axes = graph_ints(&at, "axes", &count);
    return count == 1 && (axes[0] == -1 || axes[0] == rank - 1) && graph_int(&at, "keepdims", 1);
}

static enum status write_norm(struct import *in, bool *done)
{
    struct value *x = graph_input(in, 0);
    int32_t rank = x ? x->shape.rank : 0;
    struct trail trail = {.in = in, .at = graph_output(in, 0), .rank = rank};
    if (rank < 2 || x->tokens || x->batch == rank - 1 || !means_rows(in->node, rank))
        return STATUS_OK;
    int64_t width = x->shape.dim[rank - 1];
    step(&trail, "Sub", 1);
    expect_first(&trail, x);
    const struct value *centred = trail.at;
    if (!centred || other_operand(&trail, graph_output(in, 0)) != x)
        return STATUS_OK;
    step(&trail, "Pow", 2);
    expect_first(&trail, centred);
    expect_number(&trail, centred, 2);
    step(&trail, "ReduceMean", 1);
    if (!trail.at || !means_rows(last_node(&trail), rank))
        return STATUS_OK;
    const struct value *before = trail.at;
    step(&trail, "Add", 1);
    const struct value *epsilon = trail.at ? other_operand(&trail, before) : NULL;
    step(&trail, "Sqrt", 1);
    before = trail.at;
    step(&trail, "Div", 1);
    expect_first(&trail, centred);
    if (!trail.at || other_operand(&trail, centred) != before || !is_number(&trail, epsilon))
        return STATUS_OK;
    before = trail.at;
    step(&trail, "Mul", 1);
    struct row rows[2] = {{.name = "scale"}, {.name = "shift"}};
    find_row(&trail, before, width, &rows[0]);
    before = trail.at;
    step(&trail, "Add", 1);
    find_row(&trail, before, width, &rows[1]);
    if (!trail.at)
        return STATUS_OK;
    const char *layer;
    struct line *line;
    TRY(line_known(in, x, in->batch));
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "layer_norm", layer, &line, "%.9g", constant_at(epsilon->constant, 0)));
    for (int i = 0; i < 2; i++)
        TRY(give_row(in, line, &rows[i]));
    *done = true;
    return finish(&trail, line->name, x);
}

enum status fusion_write(struct import *in, bool *done)
{
    const char *op = in->node->op_type;
    *done = false;
    if (in->node->n_input == 2 && (!strcmp(op, "Div") || !strcmp(op, "Mul")))
        return write_gelu(in, done);
    if (!strcmp(op, "ReduceMean"))
        return write_norm(in, done);
    return STATUS_OK;
}
