/* nodes_recurrent.c: RNN, GRU and LSTM, in one direction. ONNX has a gate's weights as rows, [gates
 * · units, in], in another order than ours; a layer has them as columns. */
#include "nn/formats/onnx/importer.h"

#include <string.h>

node_writer node_recurrent;

struct recurrent {
    const char *op, *kind;
    int64_t gates;
    int order[4]; /* where ours are in ONNX's */
};

static const struct recurrent kinds[] = {
    {"RNN", "rnn", 1, {0}},
    {"GRU", "gru", 3, {1, 0, 2}},      /* ONNX: z, r, h; ours: r, z, n */
    {"LSTM", "lstm", 4, {0, 2, 3, 1}}, /* ONNX: i, o, f, c; ours: i, f, g, o */
};

/* to [in, gates · units] from rows [gates · units, in] */
static enum status give_weight(struct import *in, const struct line *line, const char *name,
                               const struct constant *from, const struct recurrent *kind,
                               int64_t units)
{
    int64_t inputs = from->shape.dim[2], width = kind->gates * units;
    float *to;
    TRY(line_weights(in, from->count, &to));
    for (int64_t g = 0; g < kind->gates; g++)
        for (int64_t u = 0; u < units; u++)
            for (int64_t i = 0; i < inputs; i++)
                to[i * width + g * units + u] =
                    from->reals[(kind->order[g] * units + u) * inputs + i];
    return line_give(in, line, name, to, from->count);
}

/* Both biases lie in one tensor, that of the input first. */
static enum status give_biases(struct import *in, const struct line *line,
                               const struct constant *from, const struct recurrent *kind,
                               int64_t units)
{
    static const char *const names[] = {"input_bias", "state_bias"};
    for (int which = 0; which < 2; which++) {
        int64_t width = kind->gates * units;
        float *to;
        TRY(line_weights(in, width, &to));
        for (int64_t i = 0; from && i < width; i++)
            to[i] = from->reals[which * width + kind->order[i / units] * units + i % units];
        TRY(line_give(in, line, names[which], to, width));
    }
    return STATUS_OK;
}

/* Zeros that are known say what an absent input says. */
static bool is_absent(const struct import *in, size_t i)
{
    const struct value *value = graph_input(in, i);
    bool zeros = !value || (value->constant && value->constant->reals);
    for (int64_t k = 0; value && zeros && k < value->constant->count; k++)
        zeros = value->constant->reals[k] == 0;
    return zeros;
}

/* With the reset before the product a gru is another, but for one step from a state of 0, where the
 * bias of that product is 0. */
static bool resets_alike(const struct import *in, int64_t time, const struct constant *b,
                         int64_t units)
{
    bool alike = graph_int(in, "linear_before_reset", 0) != 0 || time == 1;
    for (int64_t i = 0; alike && b && !graph_int(in, "linear_before_reset", 0) && i < units; i++)
        alike = b->reals[5 * units + i] == 0;
    return alike;
}

/* The functions of its gates, where they are named. */
static enum status read_functions(struct import *in, const struct recurrent *kind, bool *relu)
{
    static const char *const usual[][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const Onnx__AttributeProto *names = graph_attribute(in, "activations");
    const char *const *expected = usual[kind - kinds];
    *relu = false;
    for (size_t i = 0; names && i < names->n_strings; i++) {
        const ProtobufCBinaryData *name = &names->strings[i];
        bool same = i < 3 && expected[i] && name->len == strlen(expected[i]) &&
                    !memcmp(name->data, expected[i], name->len);
        *relu =
            !same && kind == kinds && i == 0 && name->len == 4 && !memcmp(name->data, "Relu", 4);
        if (!same && !*relu)
            REFUSE(in, STATUS_UNSUPPORTED, "found the activation '%.*s', expected the usual ones",
                   (int)(name->len < 40 ? name->len : 40), (const char *)name->data);
    }
    return STATUS_OK;
}

/* What both kinds of output are of: every step, and the last one's state. */
static enum status give_outputs(struct import *in, const char *all, const char *last,
                                const struct value *x, int64_t units)
{
    bool first = graph_int(in, "layout", 0) != 0;
    int64_t time = x->shape.dim[first];
    struct shape every = first ? SHAPE(1, time, 1, units) : SHAPE(time, 1, 1, units);
    struct shape state = SHAPE(1, 1, units);
    if (all)
        TRY(line_gives(in, 0, all, SHAPE(time, units), every, first ? 0 : 2));
    return last ? line_gives(in, 1, last, SHAPE(units), state, first ? 0 : 1) : STATUS_OK;
}

static enum status check(struct import *in, const struct recurrent *kind, const struct value *x,
                         const struct constant *w, const struct constant *r,
                         const struct constant *b)
{
    int64_t units = graph_int(in, "hidden_size", r->shape.dim[2]);
    int32_t batch = graph_int(in, "layout", 0) ? 0 : 1;
    if (x->shape.rank != 3 || x->batch != batch)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input should be a sequence, the samples in dimension %d", batch);
    if (!graph_text_is(in, "direction", "forward", "forward"))
        REFUSE(in, STATUS_UNSUPPORTED, "its direction is not 'forward'");
    if (units < 1 || w->shape.dim[0] != 1 || r->shape.dim[0] != 1 || r->shape.dim[2] != units ||
        w->shape.dim[1] != kind->gates * units || r->shape.dim[1] != kind->gates * units ||
        w->shape.dim[2] != x->shape.dim[2] || (b && b->count != 2 * kind->gates * units))
        REFUSE(in, STATUS_INPUT, "its weights are not those of %lld units over %lld features",
               (long long)units, (long long)x->shape.dim[2]);
    if (!is_absent(in, 5) || !is_absent(in, 6) || !is_absent(in, 7) || graph_input(in, 4))
        REFUSE(in, STATUS_UNSUPPORTED, "it has lengths, a state to begin with, or peepholes");
    if (graph_attribute(in, "clip") || graph_int(in, "input_forget", 0))
        REFUSE(in, STATUS_UNSUPPORTED, "it has clip or input_forget");
    if (kind->gates == 3 && !resets_alike(in, x->shape.dim[!batch], b, units))
        REFUSE(in, STATUS_UNSUPPORTED, "linear_before_reset is 0, expected 1");
    return STATUS_OK;
}

enum status node_recurrent(struct import *in)
{
    const struct recurrent *kind = kinds;
    const struct constant *w, *r, *b = NULL;
    const struct value *all = graph_output(in, 0), *last = graph_output(in, 1);
    struct value *x;
    struct line *line;
    const char *layer;
    bool relu, every = all && all->uses, state = last && last->uses;
    while (strcmp(kind->op, in->node->op_type))
        kind++;
    if (in->batch >= 0)
        TRY(line_known(in, graph_input(in, 0), graph_int(in, "layout", 0) ? 0 : 1));
    TRY(node_data(in, 0, &x));
    TRY(node_known(in, 1, 3, &w));
    TRY(node_known(in, 2, 3, &r));
    if (graph_input(in, 3))
        TRY(node_known(in, 3, 2, &b));
    TRY(check(in, kind, x, w, r, b));
    TRY(read_functions(in, kind, &relu));
    int64_t units = r->shape.dim[2], time = x->shape.dim[graph_int(in, "layout", 0) != 0];
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, kind->kind, layer, &line, "%lld%s%s", (long long)units,
                 every ? "" : " output=last", relu ? " function=relu" : ""));
    TRY(give_weight(in, line, "input_weight", w, kind, units));
    TRY(give_weight(in, line, "state_weight", r, kind, units));
    TRY(give_biases(in, line, b, kind, units));
    layer = line->name;
    if (every && state) /* the last of every */
        TRY(line_slice(in, line->name, 1, time - 1, 1, &layer));
    return give_outputs(in, every ? line->name : NULL, state ? layer : NULL, x, units);
}
