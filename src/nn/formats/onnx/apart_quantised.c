/* apart_quantised.c: operators that compute in 8 bits become those that convert, and their own kind
 * over reals between them. That is what ONNX says they give, but for the rounding of sums: a sum of
 * more than 258 products of 8 bits may not fit the 24 bits of fp32.
 *
 *   QLinearConv, QLinearMatMul   QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w)))
 *   ConvInteger, MatMulInteger   Conv(DequantizeLinear(x, 1, zero), DequantizeLinear(w, 1, zero))
 *   DynamicQuantizeLinear        its range by ReduceMax and ReduceMin: over all samples, so that
 *                                the whole input has to be one */
#include "nn/formats/onnx/importer.h"

#include <string.h>

enum { INPUTS_MOST = 4 };

struct taking {
    struct arena *arena;
    Onnx__NodeProto **nodes;
    size_t count;
    const Onnx__NodeProto *from; /* being taken apart */
    int32_t parts;
    bool failed; /* out of memory */
};

static void *take(struct taking *to, size_t count, size_t bytes)
{
    static char nothing[sizeof(Onnx__NodeProto)];
    void *made = arena_array(to->arena, count, bytes);
    to->failed |= !made;
    return made ? made : nothing;
}

/* A node of that operator; NULL for its output: a name of its own, which is returned. */
static char *add(struct taking *to, const char *op, char *const *inputs, size_t count, char *output)
{
    Onnx__NodeProto *node = take(to, 1, sizeof *node);
    char **names = take(to, INPUTS_MOST + 1, sizeof *names);
    if (!output)
        output = arena_format(to->arena, "%s/%s/%d", to->from->output[0], op, ++to->parts);
    to->failed |= !output;
    if (to->failed)
        return output;
    onnx__node_proto__init(node);
    node->name = to->from->name && *to->from->name ? to->from->name : to->from->output[0];
    node->op_type = (char *)(uintptr_t)op;
    if (count)
        memcpy(names, inputs, count * sizeof *names);
    names[INPUTS_MOST] = output;
    node->input = names;
    node->n_input = count;
    while (node->n_input && !node->input[node->n_input - 1])
        node->n_input--;
    node->output = names + INPUTS_MOST;
    node->n_output = 1;
    to->nodes[to->count++] = node;
    return output;
}

#define ADD(to, op, output, ...)                                                                   \
    add(to, op, (char *[]){__VA_ARGS__}, sizeof((char *[]){__VA_ARGS__}) / sizeof(char *), output)

/* The node added last has this attribute. */
static void set(struct taking *to, const char *name, bool whole, int64_t number, float real)
{
    Onnx__AttributeProto *attribute = take(to, 1, sizeof *attribute), **list;
    list = take(to, 1, sizeof *list);
    if (to->failed)
        return;
    onnx__attribute_proto__init(attribute);
    attribute->name = (char *)(uintptr_t)name;
    attribute->has_i = whole;
    attribute->i = number;
    attribute->has_f = !whole;
    attribute->f = real;
    *list = attribute;
    to->nodes[to->count - 1]->attribute = list;
    to->nodes[to->count - 1]->n_attribute = 1;
}

static char *number(struct taking *to, float real)
{
    char *name = add(to, "Constant", NULL, 0, NULL);
    set(to, "value_float", false, 0, real);
    return name;
}

/* Input `i`; NULL: there is none. */
static char *input_of(const struct taking *to, size_t i)
{
    return i < to->from->n_input && *to->from->input[i] ? to->from->input[i] : NULL;
}

static char *dequantised(struct taking *to, char *x, char *scale, char *zero, int64_t axis)
{
    char *name = ADD(to, "DequantizeLinear", NULL, x, scale, zero);
    set(to, "axis", true, axis, 0);
    return name;
}

/* The operator over reals, with the settings of this one. */
static char *multiplied(struct taking *to, bool conv, char *x, char *w, char *b, char *output)
{
    char *name = ADD(to, conv ? "Conv" : "MatMul", output, x, w, b);
    if (!to->failed) {
        to->nodes[to->count - 1]->attribute = to->from->attribute;
        to->nodes[to->count - 1]->n_attribute = to->from->n_attribute;
    }
    return name;
}

static void take_linear(struct taking *to, bool conv)
{
    char *x_scale = input_of(to, 1), *w_scale = input_of(to, 4), *bias = input_of(to, 8);
    char *x = dequantised(to, input_of(to, 0), x_scale, input_of(to, 2), 1);
    char *w = dequantised(to, input_of(to, 3), w_scale, input_of(to, 5), conv ? 0 : -1);
    if (conv && bias)
        bias = dequantised(to, bias, ADD(to, "Mul", NULL, x_scale, w_scale), NULL, 0);
    char *y = multiplied(to, conv, x, w, conv ? bias : NULL, NULL);
    ADD(to, "QuantizeLinear", to->from->output[0], y, input_of(to, 6), input_of(to, 7));
}

static void take_integer(struct taking *to, bool conv)
{
    char *one = number(to, 1);
    char *x = dequantised(to, input_of(to, 0), one, input_of(to, 2), 1);
    char *w = input_of(to, 1), *zero = input_of(to, 3);
    w = dequantised(to, w, one, zero, conv ? 0 : -1);
    multiplied(to, conv, x, w, NULL, to->from->output[0]);
}

/* A level of a number that is not below 0. */
static char *rounded(struct taking *to, char *x)
{
    return ADD(to, "QuantizeLinear", NULL, x, number(to, 1));
}

/* Rounded away from both sides of 0, as rounding to even is the same on both. */
static void take_dynamic(struct taking *to)
{
    char *x = input_of(to, 0), *zero = NULL, *scale = NULL;
    if (to->from->n_output > 1 && *to->from->output[1])
        scale = to->from->output[1];
    if (to->from->n_output > 2 && *to->from->output[2])
        zero = to->from->output[2];
    char *high = ADD(to, "ReduceMax", NULL, x);
    set(to, "keepdims", true, 0, 0);
    char *low = ADD(to, "ReduceMin", NULL, x);
    set(to, "keepdims", true, 0, 0);
    high = ADD(to, "Relu", NULL, high);
    low = ADD(to, "Relu", NULL, ADD(to, "Neg", NULL, low)); /* minus the least */
    char *range = ADD(to, "Add", NULL, high, low);
    scale = ADD(to, "Div", scale, range, number(to, 255));
    zero = ADD(to, "QuantizeLinear", zero, ADD(to, "Div", NULL, low, scale), number(to, 1));
    char *steps = ADD(to, "Div", NULL, x, scale);
    char *above = rounded(to, ADD(to, "Relu", NULL, steps));
    char *below = rounded(to, ADD(to, "Relu", NULL, ADD(to, "Neg", NULL, steps)));
    char *level = ADD(to, "Add", NULL, ADD(to, "Sub", NULL, above, below), zero);
    ADD(to, "Clip", to->from->output[0], level, number(to, 0), number(to, 255));
}

static const struct {
    const char *op;
    size_t inputs;
} ops[] = {{"QLinearConv", 8},
           {"QLinearMatMul", 8},
           {"ConvInteger", 2},
           {"MatMulInteger", 2},
           {"DynamicQuantizeLinear", 1}};
enum { OPS = sizeof ops / sizeof *ops, NODES_MOST = 24 };

/* Which of them it is; OPS: none, or one that lacks inputs, which is refused by its name. */
static size_t find_op(const Onnx__NodeProto *node)
{
    size_t o = 0;
    while (o < OPS && !text_equal(node->op_type, ops[o].op))
        o++;
    if (o == OPS || node->n_input < ops[o].inputs || !node->n_output || !*node->output[0])
        return OPS;
    for (size_t i = 0; i < ops[o].inputs; i++)
        if (!*node->input[i] && i != 2 && i != 5 && i != 7)
            return OPS;
    return o;
}

static void take_node(struct taking *to, size_t op)
{
    to->parts = 0;
    switch (op) {
    case 0: take_linear(to, true); break;
    case 1: take_linear(to, false); break;
    case 2: take_integer(to, true); break;
    case 3: take_integer(to, false); break;
    default: take_dynamic(to); break;
    }
}

enum status apart_quantised(const Onnx__GraphProto *graph, struct arena *arena,
                            Onnx__GraphProto *room, const Onnx__GraphProto **out)
{
    struct taking to = {.arena = arena};
    size_t found = 0;
    for (size_t n = 0; n < graph->n_node; n++)
        found += find_op(graph->node[n]) < OPS;
    *out = graph;
    if (!found)
        return STATUS_OK;
    NEED(to.nodes = arena_array(arena, graph->n_node + NODES_MOST * found, sizeof *to.nodes));
    for (size_t n = 0; n < graph->n_node; n++) {
        size_t op = find_op(graph->node[n]);
        to.from = graph->node[n];
        if (op < OPS)
            take_node(&to, op);
        else
            to.nodes[to.count++] = graph->node[n];
        NEED(!to.failed);
    }
    *room = *graph;
    room->node = to.nodes;
    room->n_node = to.count;
    *out = room;
    return STATUS_OK;
}
