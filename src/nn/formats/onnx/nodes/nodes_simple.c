/* nodes_simple.c: operators that work element by element. */
#include "nn/formats/onnx/compose.h"

#include <math.h>
#include <string.h>

node_writer node_softmax, node_same, node_cast, node_dropout, node_negate, node_pair, node_sum,
    node_expand;

enum status node_data(struct import *in, size_t i, struct value **out)
{
    *out = graph_input(in, i);
    if (!*out || (*out)->constant)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input %zu is missing or known numbers, expected one "
               "that depends on the model's input",
               i + 1);
    if ((*out)->tokens)
        REFUSE(in, STATUS_UNSUPPORTED, "its input %zu is whole numbers, expected real ones", i + 1);
    return STATUS_OK;
}

enum status node_known(struct import *in, size_t i, int32_t rank, const struct constant **out)
{
    const struct value *value = graph_input(in, i);
    *out = value ? value->constant : NULL;
    if (!*out || !(*out)->reals || (rank >= 0 && (*out)->shape.rank != rank))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input %zu is not known real numbers of the dimensions it should have", i + 1);
    return STATUS_OK;
}

/* x minus what the other one is. */
static enum status subtract(struct import *in, struct value other, struct value *x)
{
    TRY(compose_affine(in, &other, -1, 0));
    return node_combine(in, "add", x, &other, x);
}

/* z - ln Σ e^z over the last dimension, where z = x - max x, so that no e^z is too large and their
 * sum is not 0. */
static enum status log_softmax(struct import *in, const bool *last, struct value *x)
{
    struct value most = *x, sum;
    TRY(compose_reduce(in, "max", last, &most));
    TRY(subtract(in, most, x));
    sum = *x;
    TRY(compose_apply(in, &sum, "exp", "%s", ""));
    TRY(compose_reduce(in, "sum", last, &sum));
    TRY(compose_apply(in, &sum, "log", "%s", ""));
    return subtract(in, sum, x);
}

/* 1 at the first of the largest, else 0: at those that are the largest and have none before them,
 * which a product with a triangle of ones counts. */
static enum status hardmax(struct import *in, const bool *last, struct value *x)
{
    int32_t axis = x->shape.rank - 1;
    int64_t width = x->shape.dim[axis];
    struct value most = *x, before;
    struct constant *triangle;
    TRY(compose_reduce(in, "max", last, &most));
    TRY(subtract(in, most, x));
    TRY(compose_affine(in, x, -1, 0));
    TRY(compose_step(in, x, 0));
    TRY(compose_affine(in, x, -1, 1));
    before = *x;
    TRY(constant_new(in, SHAPE(width, width), false, &triangle));
    for (int64_t i = 0; i < triangle->count; i++)
        triangle->reals[i] = i / width < i % width ? 1 : 0;
    TRY(compose_matrix(in, axis, triangle, &before));
    TRY(compose_apply(in, &before, "clip", "0 1"));
    TRY(compose_affine(in, &before, -1, 1));
    return node_combine(in, "multiply", x, &before, x);
}

/* Over the last dimension of `rows`, which the layer gives. */
static enum status softmax_rows(struct import *in, struct shape rows, const char **layer)
{
    struct value x = {.name = "rows", .shape = rows, .batch = -1, .layer = *layer, .gives = rows};
    bool last[SHAPE_MOST] = {false};
    last[rows.rank - 1] = true;
    if (!strcmp(in->node->op_type, "Softmax"))
        TRY(compose_apply(in, &x, "softmax", "%s", ""));
    else if (!strcmp(in->node->op_type, "LogSoftmax"))
        TRY(log_softmax(in, last, &x));
    else
        TRY(hardmax(in, last, &x));
    *layer = x.layer;
    return STATUS_OK;
}

/* Before opset 13 over all dimensions from the axis on, since then over the axis alone. */
enum status node_softmax(struct import *in)
{
    struct value *x;
    struct line *line;
    const char *layer, *exchange;
    int32_t axis, own;
    bool flattens = in->opset < 13;
    TRY(node_data(in, 0, &x));
    TRY(graph_axis_of(in, "axis", flattens ? 1 : -1, x->shape.rank, &axis));
    struct shape sample = value_sample(x), rows = sample;
    TRY(value_axis(in, x, axis, &own));
    if (flattens) {
        if (x->batch > axis)
            REFUSE(in, STATUS_UNSUPPORTED, "it goes over the dimension that counts the samples");
        for (int32_t d = own; d < sample.rank; d++)
            rows.dim[own - 1] *= sample.dim[d];
        rows.rank = own;
    }
    if (own == rows.rank) {
        TRY(line_of(in, x, rows, &layer));
        TRY(softmax_rows(in, rows, &layer));
        return line_gives(in, 0, layer, rows, x->shape, x->batch);
    }
    TRY(compose_exchange(in, sample.rank, own, &exchange)); /* the axis last, and back */
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "transpose", layer, &line, "%s", exchange));
    layer = line->name;
    rows.dim[own - 1] = sample.dim[sample.rank - 1];
    rows.dim[sample.rank - 1] = sample.dim[own - 1];
    TRY(softmax_rows(in, rows, &layer));
    TRY(line_add(in, "transpose", layer, &line, "%s", exchange));
    return line_gives_like(in, line->name, x);
}

enum status node_same(struct import *in)
{
    const struct value *x = graph_input(in, 0);
    return line_gives_same(in, x, x->shape, x->batch);
}

/* Is it read by casts alone? */
static bool is_cast_again(const struct import *in, const struct value *value)
{
    bool again = value && value->uses > 0;
    for (int32_t i = 0; again && i < value->uses && i < 2; i++)
        again =
            value->readers[i] >= 0 && !strcmp(in->graph->node[value->readers[i]]->op_type, "Cast");
    return again;
}

/* Real numbers are all of one type here, and so are whole ones: what a file works out in 16 bits is
 * worked out in more. But one that only rounds says that it should be. */
enum status node_cast(struct import *in)
{
    const struct value *x = graph_input(in, 0);
    int64_t to = graph_int(in, "to", 0);
    bool real = element_is_real(to);
    bool whole = to == ELEMENT_INT32 || to == ELEMENT_INT64;
    in->doubles = in->doubles || to == ELEMENT_DOUBLE;
    if (x->tokens ? !whole : !real)
        REFUSE(in, STATUS_UNSUPPORTED,
               "found a cast to type %lld, expected one that changes "
               "nothing",
               (long long)to);
    if ((to == ELEMENT_HALF || to == ELEMENT_BFLOAT16) && is_cast_again(in, graph_output(in, 0)))
        REFUSE(in, STATUS_UNSUPPORTED,
               "it rounds to 16 bits, and what reads it casts it back: no layer rounds");
    return node_same(in);
}

enum status node_dropout(struct import *in)
{
    struct value *x, *training = graph_input(in, 2);
    struct line *line;
    const char *layer;
    double rate;
    TRY(node_data(in, 0, &x));
    TRY(graph_number(in, 1, graph_real(in, "ratio", 0.5), &rate));
    if (training && rate != 0 && !(training->constant && constant_at(training->constant, 0) == 0))
        REFUSE(in, STATUS_UNSUPPORTED, "training_mode is set, expected a model that predicts");
    if (!(rate >= 0 && rate < 1))
        REFUSE(in, STATUS_INPUT, "the ratio is %g, expected 0 to below 1", rate);
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "dropout", layer, &line, "%.9g", rate));
    return line_gives_like(in, line->name, x);
}

enum status node_negate(struct import *in)
{
    struct value *x;
    TRY(node_data(in, 0, &x));
    struct value y = *x;
    TRY(compose_affine(in, &y, -1, 0));
    return compose_give(in, &y);
}

/* Two operands, the shape they have together, and which dimension of it counts the samples. */
struct pair {
    const struct value *side[2];
    struct shape shape;
    int32_t batch;
};

static int64_t size_at(const struct pair *pair, int side, int32_t d)
{
    int32_t own = d - (pair->shape.rank - pair->side[side]->shape.rank);
    return own < 0 ? 1 : pair->side[side]->shape.dim[own];
}

static enum status pair_up(struct import *in, struct pair *pair)
{
    const struct value *const *side = pair->side;
    pair->batch = -1;
    pair->shape.rank = side[side[0]->shape.rank < side[1]->shape.rank]->shape.rank;
    for (int i = 0; i < 2; i++) {
        if (side[i]->tokens || (side[i]->constant && !side[i]->constant->reals))
            REFUSE(in, STATUS_UNSUPPORTED, "'%.80s' is whole numbers, expected real ones",
                   side[i]->name);
        if (side[i]->batch < 0)
            continue;
        int32_t batch = side[i]->batch + pair->shape.rank - side[i]->shape.rank;
        if (pair->batch >= 0 && pair->batch != batch)
            REFUSE(in, STATUS_UNSUPPORTED, "its inputs count the samples in different dimensions");
        pair->batch = batch;
    }
    for (int32_t d = 0; d < pair->shape.rank; d++) {
        int64_t a = size_at(pair, 0, d), b = size_at(pair, 1, d);
        bool alike = (a == 1 || side[0]->batch >= 0) && (b == 1 || side[1]->batch >= 0) &&
                     (a == b || side[0]->batch < 0 || side[1]->batch < 0);
        if (d == pair->batch && !alike)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "one of its inputs differs from sample to sample, and "
                   "is no input of the model");
        if (a != b && a != 1 && b != 1)
            REFUSE(in, STATUS_INPUT,
                   "its inputs have %lld and %lld in dimension %d, expected the "
                   "same or 1",
                   (long long)a, (long long)b, d);
        pair->shape.dim[d] = a == 1 ? b : a;
    }
    return STATUS_OK;
}

/* The sample of an operand, with as many dimensions as that of the result. */
static struct shape operand_sample(const struct pair *pair, int side)
{
    struct shape sample = {0};
    for (int32_t d = 0; d < pair->shape.rank; d++)
        if (d != pair->batch || pair->shape.dim[d] != 1)
            sample.dim[sample.rank++] = side < 0 ? pair->shape.dim[d] : size_at(pair, side, d);
    if (!sample.rank)
        sample.dim[sample.rank++] = 1;
    return sample;
}

/* Can it be multiplied with the reciprocals instead? Where the numbers are learnt, these would be,
 * at another pace. */
static bool has_reciprocals(const struct constant *numbers)
{
    if (!numbers || numbers->learnt)
        return false;
    for (int64_t i = 0; i < numbers->count; i++) {
        float number = numbers->reals[i];
        if (number != 0 && isfinite(number) && !isnormal(1 / number))
            return false;
    }
    return true;
}

/* What the operator does to its second operand, so that it is added or multiplied with; a quotient
 * takes it as it is. */
static enum status second_operand(struct import *in, const struct pair *pair, const char *kind,
                                  const char **out)
{
    const struct value *b = pair->side[1];
    bool minus = !strcmp(in->node->op_type, "Sub");
    bool over = !strcmp(in->node->op_type, "Div") && strcmp(kind, "divide");
    struct shape sample = operand_sample(pair, 1);
    if (!minus && !over)
        return line_of(in, b, sample, out);
    if (!b->constant) {
        TRY(line_of(in, b, sample, out));
        return line_affine(in, *out, sample.rank, -1, 0, out);
    }
    struct constant turned = *b->constant;
    NEED(turned.reals = arena_array(&in->arena, (size_t)turned.count + 1, sizeof *turned.reals));
    for (int64_t i = 0; i < turned.count; i++)
        turned.reals[i] = minus ? -b->constant->reals[i] : 1 / b->constant->reals[i];
    return line_constant(in, turned.reals, turned.count, turned.learnt, sample, out);
}

/* A number after a product of matrices, or a bias after a product with weights, goes into it; a
 * number that learns only where nothing is trained. */
static enum status join_before(struct import *in, const struct pair *pair, bool *done)
{
    bool first = pair->side[0]->constant != NULL;
    const struct value *x = pair->side[first], *c = pair->side[!first];
    const char *op = in->node->op_type;
    struct line *line = c->constant ? line_alone(x) : NULL;
    bool same = shape_equal(&x->shape, &pair->shape) && x->batch == pair->batch;
    *done = false;
    if (!line || !same)
        return STATUS_OK;
    if (line->scale != 0 && c->constant->count == 1 &&
        (!strcmp(op, "Mul") || (!strcmp(op, "Div") && !first))) {
        double by = (double)c->constant->reals[0];
        double scale = !strcmp(op, "Mul") ? line->scale * by : line->scale / by;
        bool folds = isnormal((float)scale); /* 0 and infinities are multiplied with */
        in->foldable = in->foldable || (folds && !c->constant->held);
        *done = folds && (c->constant->held || in->settles);
        line->scale = *done ? scale : line->scale;
    }
    if (line->has_bias && !line->bias && !strcmp(line->kind, "dense") && !strcmp(op, "Add") &&
        c->constant->count == line->channels && c->shape.rank > 0 &&
        c->shape.dim[c->shape.rank - 1] == line->channels &&
        x->gives.dim[x->gives.rank - 1] == line->channels &&
        x->shape.dim[x->shape.rank - 1] == line->channels && x->batch != x->shape.rank - 1) {
        TRY(line_weights(in, line->channels, &line->shift));
        memcpy(line->shift, c->constant->reals, (size_t)line->channels * sizeof *line->shift);
        TRY(line_give(in, line, "bias", line->shift, line->channels));
        line_learns(in, !c->constant->held);
        line->bias = *done = true;
    }
    return *done ? line_gives_same(in, x, x->shape, x->batch) : STATUS_OK;
}

static enum status write_pair(struct import *in, const struct pair *pair, const char *kind,
                              const char **out)
{
    const char *layers[2];
    bool sum = !strcmp(kind, "add") && strcmp(in->node->op_type, "Sub");
    const struct constant *b = pair->side[1]->constant;
    struct shape first = operand_sample(pair, 0), second = operand_sample(pair, 1);
    struct line *line;
    TRY(line_of(in, pair->side[0], first, &layers[0]));
    if (sum && b && b->learnt && pair->side[1]->uses < 2 && shape_equal(&first, &second)) {
        float *kept;
        TRY(line_add(in, "position", layers[0], &line, "%s", ""));
        TRY(line_weights(in, b->count, &kept));
        memcpy(kept, b->reals, (size_t)b->count * sizeof *kept);
        *out = line->name;
        return line_give(in, line, "weight", kept, b->count);
    }
    TRY(second_operand(in, pair, kind, &layers[1]));
    return line_pair(in, kind, layers[0], layers[1], out);
}

enum status node_pair(struct import *in)
{
    struct pair pair = {.side = {graph_input(in, 0), graph_input(in, 1)}};
    const char *layer, *op = in->node->op_type;
    bool done, over = !strcmp(op, "Div"), product = over || !strcmp(op, "Mul");
    TRY(pair_up(in, &pair));
    TRY(join_before(in, &pair, &done));
    if (done)
        return STATUS_OK;
    TRY(write_pair(in, &pair,
                   over && !has_reciprocals(pair.side[1]->constant) ? "divide"
                   : product                                        ? "multiply"
                                                                    : "add",
                   &layer));
    return line_gives(in, 0, layer, operand_sample(&pair, -1), pair.shape, pair.batch);
}

/* Sum and Mean: one after the other; what was added up so far is a value of its own. */
enum status node_sum(struct import *in)
{
    struct value so_far = *graph_input(in, 0);
    for (size_t i = 1; i < in->node->n_input; i++) {
        struct pair pair = {.side = {&so_far, graph_input(in, i)}};
        const char *layer;
        if (!pair.side[1])
            REFUSE(in, STATUS_INPUT, "its input %zu is missing", i + 1);
        TRY(pair_up(in, &pair));
        TRY(write_pair(in, &pair, "add", &layer));
        so_far = (struct value){.name = so_far.name,
                                .shape = pair.shape,
                                .batch = pair.batch,
                                .layer = layer,
                                .gives = operand_sample(&pair, -1)};
    }
    if (so_far.constant)
        REFUSE(in, STATUS_UNSUPPORTED, "all its inputs are known numbers");
    if (!strcmp(in->node->op_type, "Mean"))
        TRY(compose_affine(in, &so_far, 1 / (double)in->node->n_input, 0));
    return compose_give(in, &so_far);
}

enum status node_combine(struct import *in, const char *kind, const struct value *a,
                         const struct value *b, struct value *out)
{
    struct pair pair = {.side = {a, b}};
    struct value made = {.name = a->name};
    TRY(pair_up(in, &pair));
    TRY(write_pair(in, &pair, kind, &made.layer));
    made.shape = pair.shape;
    made.batch = pair.batch;
    made.gives = operand_sample(&pair, -1);
    *out = made;
    return STATUS_OK;
}

/* Times as many ones: what has the size 1 is repeated. */
enum status node_expand(struct import *in)
{
    struct constant *ones;
    struct value sizes = {.name = "ones", .batch = -1};
    const int64_t *given;
    int64_t count;
    const char *layer;
    TRY(graph_numbers(in, 1, "shape", &given, &count));
    if (count > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld sizes, expected at most %d", (long long)count,
               SHAPE_MOST);
    for (int32_t d = 0; d < count; d++) {
        int64_t times = samples_in(given[d]);
        if (times && sizes.batch >= 0)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "two of its sizes are the number of samples, expected one");
        sizes.batch = times ? d : sizes.batch;
        sizes.shape.dim[sizes.shape.rank++] = times ? times : given[d];
    }
    TRY(constant_new(in, sizes.shape, false, &ones));
    for (int64_t i = 0; i < ones->count; i++)
        ones->reals[i] = 1;
    sizes.constant = ones;
    struct pair pair = {.side = {graph_input(in, 0), &sizes}};
    TRY(pair_up(in, &pair));
    TRY(write_pair(in, &pair, "multiply", &layer));
    return line_gives(in, 0, layer, operand_sample(&pair, -1), pair.shape, pair.batch);
}
