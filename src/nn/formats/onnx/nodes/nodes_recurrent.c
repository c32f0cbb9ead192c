/* nodes_recurrent.c: RNN, GRU and LSTM. ONNX has a gate's weights as rows, [gates · units, in], in
 * another order than ours; a layer has them as columns.
 *
 * A direction is a layer over the sequence, or over the sequence turned around. What the layer
 * cannot do (a state to begin with, peepholes, the reset before the product, other functions, the
 * cells of the last step as an output) is written step by step in unroll.c. */
#include "nn/formats/onnx/unroll.h"

#include <string.h>

node_writer node_recurrent;

static const struct recurrent_kind kinds[] = {
    {"RNN", "rnn", 1, {0}, {"Tanh"}},
    {"GRU", "gru", 3, {1, 0, 2}, {"Sigmoid", "Tanh"}}, /* ONNX: z, r, h; ours: r, z, n */
    {"LSTM", "lstm", 4, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"}}, /* i, o, f, c; i, f, g, o */
};

/* to [in, gates · units] from rows [gates · units, in] of that direction */
static enum status give_weight(struct import *in, const struct line *line, const char *name,
                               const struct constant *from, const struct recurrent *r)
{
    const struct recurrent_kind *kind = r->kind;
    int64_t inputs = from->shape.dim[2], width = kind->gates * r->units, count = width * inputs;
    const float *rows = from->reals + r->direction * count;
    float *to;
    TRY(line_weights(in, count, &to));
    for (int64_t g = 0; g < kind->gates; g++)
        for (int64_t u = 0; u < r->units; u++)
            for (int64_t i = 0; i < inputs; i++)
                to[i * width + g * r->units + u] =
                    rows[(kind->order[g] * r->units + u) * inputs + i];
    TRY(line_give(in, line, name, to, count));
    line_learns(in, !from->held);
    return STATUS_OK;
}

/* Both biases lie in one tensor, that of the input first; where there is none they stay 0. */
static enum status give_biases(struct import *in, const struct line *line,
                               const struct recurrent *r)
{
    static const char *const names[] = {"input_bias", "state_bias"};
    for (int which = 0; which < 2; which++) {
        int64_t width = r->kind->gates * r->units;
        const float *from = r->b ? r->b->reals + (2 * r->direction + which) * width : NULL;
        float *to;
        TRY(line_weights(in, width, &to));
        for (int64_t i = 0; from && i < width; i++)
            to[i] = from[r->kind->order[i / r->units] * r->units + i % r->units];
        TRY(line_give(in, line, names[which], to, width));
        line_learns(in, r->b && !r->b->held);
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

/* The functions of the gates, where they are named: those of each direction. */
static enum status read_functions(struct import *in, struct recurrent *r, bool *usual)
{
    const Onnx__AttributeProto *names = graph_attribute(in, "activations");
    size_t each = r->kind->gates == 1 ? 1 : (size_t)r->kind->gates - 1;
    size_t first = (size_t)r->direction * each;
    *usual = true;
    memcpy(r->functions, r->kind->functions, sizeof r->functions);
    if (!names || !names->n_strings)
        return STATUS_OK;
    if (names->n_strings < first + each)
        REFUSE(in, STATUS_INPUT, "found %zu activations, expected %zu for each direction",
               names->n_strings, each);
    for (size_t i = 0; i < each; i++) {
        static const char *const known[] = {"Sigmoid", "Tanh", "Relu"};
        const ProtobufCBinaryData *name = &names->strings[first + i];
        const char *found = NULL;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (name->len == strlen(known[k]) && !memcmp(name->data, known[k], name->len))
                found = known[k];
        if (!found)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "found the activation '%.*s', expected Sigmoid, Tanh or Relu",
                   (int)(name->len < 40 ? name->len : 40), (const char *)name->data);
        r->functions[i] = found;
        *usual = *usual && !strcmp(found, r->kind->functions[i]);
    }
    return STATUS_OK;
}

static enum status check_lengths(struct import *in, int64_t time)
{
    const struct value *lengths = graph_input(in, 4);
    bool all = !lengths || (lengths->constant && lengths->constant->wholes);
    for (int64_t i = 0; lengths && all && i < lengths->constant->count; i++)
        all = lengths->constant->wholes[i] == time;
    if (!all)
        REFUSE(in, STATUS_UNSUPPORTED, "it has lengths, expected sequences of %lld steps",
               (long long)time);
    return STATUS_OK;
}

static enum status check(struct import *in, const struct recurrent *r, int32_t directions)
{
    const struct recurrent_kind *kind = r->kind;
    const struct constant *w = r->w, *s = r->r, *b = r->b;
    int32_t batch = r->first ? 0 : 1;
    if (graph_attribute(in, "clip") || graph_int(in, "input_forget", 0))
        REFUSE(in, STATUS_UNSUPPORTED, "it has clip or input_forget");
    in->misplaced = r->x->shape.rank == 3 && !value_counts(r->x, batch);
    if (r->x->shape.rank != 3 || in->misplaced)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input should be a sequence, the samples in dimension %d", batch);
    if (r->units < 1 || w->shape.dim[0] != directions || s->shape.dim[0] != directions ||
        s->shape.dim[2] != r->units || w->shape.dim[1] != kind->gates * r->units ||
        s->shape.dim[1] != kind->gates * r->units || w->shape.dim[2] != r->x->shape.dim[2] ||
        (b && b->count != 2 * directions * kind->gates * r->units))
        REFUSE(in, STATUS_INPUT, "its weights are not those of %lld units over %lld features",
               (long long)r->units, (long long)r->x->shape.dim[2]);
    return check_lengths(in, r->time);
}

/* May a layer do it? A gru with the reset before the product is another, but for one step from a
 * state of 0 where the bias of that product is 0. */
static bool fits_layer(const struct import *in, const struct recurrent *r, bool usual)
{
    bool relu = r->kind->gates == 1 && !strcmp(r->functions[0], "Relu");
    bool fits =
        (usual || relu) && is_absent(in, 5) && is_absent(in, 6) && is_absent(in, 7) && !r->cells;
    if (r->kind->gates != 3 || graph_int(in, "linear_before_reset", 0))
        return fits;
    fits = fits && r->time == 1;
    const float *b = r->b ? r->b->reals + (6 * r->direction + 5) * r->units : NULL;
    for (int64_t i = 0; fits && b && i < r->units; i++)
        fits = b[i] == 0;
    return fits;
}

static enum status write_layer(struct import *in, const struct recurrent *r, const char *x,
                               struct recurrent_layers *out)
{
    struct line *line;
    TRY(line_add(in, r->kind->layer, x, &line, "%lld%s%s", (long long)r->units,
                 r->every ? "" : " output=last",
                 r->kind->gates == 1 && !strcmp(r->functions[0], "Relu") ? " function=relu" : ""));
    TRY(give_weight(in, line, "input_weight", r->w, r));
    TRY(give_weight(in, line, "state_weight", r->r, r));
    TRY(give_biases(in, line, r));
    out->every = out->last = line->name;
    return r->every && r->state ? line_slice(in, line->name, 1, r->time - 1, 1, &out->last)
                                : STATUS_OK;
}

/* The steps of a layer from the last to the first. */
static enum status turn_around(struct import *in, int64_t time, const char **layer)
{
    int64_t *places = arena_array(&in->arena, (size_t)time, sizeof *places);
    NEED(places);
    for (int64_t t = 0; t < time; t++)
        places[t] = time - 1 - t;
    return line_pick(in, *layer, 1, places, time, layer);
}

static enum status write_direction(struct import *in, struct recurrent *r, const char *x,
                                   bool backwards, struct recurrent_layers *out)
{
    bool usual;
    TRY(read_functions(in, r, &usual));
    if (backwards)
        TRY(turn_around(in, r->time, &x));
    if (fits_layer(in, r, usual))
        TRY(write_layer(in, r, x, out));
    else
        TRY(unroll(in, r, x, out));
    if (backwards && r->every)
        TRY(turn_around(in, r->time, &out->every));
    if (r->state)
        TRY(line_shape(in, out->last, SHAPE(r->units), &out->last));
    return r->cells ? line_shape(in, out->cells, SHAPE(r->units), &out->cells) : STATUS_OK;
}

/* Every step, the last one's state and its cells, those of both directions side by side. */
static enum status give_outputs(struct import *in, const struct recurrent *r,
                                const struct recurrent_layers layers[2], int32_t directions)
{
    const char *every[] = {layers[0].every, layers[1].every};
    const char *states[2][2] = {{layers[0].last, layers[1].last},
                                {layers[0].cells, layers[1].cells}};
    int64_t both = directions * r->units;
    const char *joined;
    struct shape steps = r->first ? SHAPE(1, r->time, directions, r->units)
                                  : SHAPE(r->time, directions, 1, r->units);
    struct shape state = r->first ? SHAPE(1, directions, r->units) : SHAPE(directions, 1, r->units);
    if (r->every) {
        TRY(line_join(in, every, directions, 2, &joined));
        TRY(line_gives(in, 0, joined, SHAPE(r->time, both), steps, r->first ? 0 : 2));
    }
    for (size_t i = 0; i < 2; i++) {
        if (!(i ? r->cells : r->state))
            continue;
        TRY(line_join(in, states[i], directions, 1, &joined));
        TRY(line_gives(in, i + 1, joined, SHAPE(both), state, r->first ? 0 : 1));
    }
    return STATUS_OK;
}

static bool is_read(const struct import *in, size_t output)
{
    const struct value *value = graph_output(in, output);
    return value && value->uses;
}

enum status node_recurrent(struct import *in)
{
    struct recurrent r = {.kind = kinds, .first = graph_int(in, "layout", 0) != 0};
    struct recurrent_layers layers[2] = {0};
    struct value *x;
    const char *layer;
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    int direction;
    TRY(graph_choice(in, "direction", directions, 3, &direction));
    bool backwards = direction == 1, both = direction == 2;
    while (strcmp(r.kind->op, in->node->op_type))
        r.kind++;
    if (in->batch >= 0)
        TRY(line_known(in, graph_input(in, 0), r.first ? 0 : 1));
    TRY(node_data(in, 0, &x));
    TRY(node_known(in, 1, 3, &r.w));
    TRY(node_known(in, 2, 3, &r.r));
    if (graph_input(in, 3))
        TRY(node_known(in, 3, 2, &r.b));
    r.x = x;
    r.every = is_read(in, 0);
    r.state = is_read(in, 1);
    r.cells = r.kind->gates == 4 && is_read(in, 2);
    r.units = graph_int(in, "hidden_size", r.r->shape.dim[2]);
    r.time = x->shape.rank == 3 ? x->shape.dim[r.first] : 0;
    TRY(check(in, &r, both ? 2 : 1));
    TRY(line_of_value(in, x, &layer));
    for (r.direction = 0; r.direction < (both ? 2 : 1); r.direction++)
        TRY(write_direction(in, &r, layer, backwards || r.direction == 1, &layers[r.direction]));
    return give_outputs(in, &r, layers, both ? 2 : 1);
}
