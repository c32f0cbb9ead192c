/* onnx_hand.h: models of ONNX written by hand, message by message. Its messages' header comes first
 * in the file that includes this one. */
#ifndef PRONY_TESTS_ONNX_HAND_H
#define PRONY_TESTS_ONNX_HAND_H

#include "onnx.pb-c.h"

#include "base/memory.h"
#include "check.h"
#include "nn/formats/onnx.h"
#include "nn/network.h"

#include <string.h>

enum { NODES = 14 };

/* A model written by hand: one input "x" of floats [dims], nodes, numbers. */
struct hand {
    Onnx__NodeProto nodes[NODES];
    const char *inputs[NODES][5], *outputs[NODES][2];
    Onnx__AttributeProto attributes[NODES][6], *lists[NODES][6];
    Onnx__TensorProto tensor;
    Onnx__StringStringEntryProto location, length, *entries[2];
    int64_t tensor_dims[4];
    Onnx__DimensionProto dims[4];
    size_t node_count, dim_count;
    bool has_tensor;
    int32_t type; /* of the input; 0: float */
    bool two;     /* inputs, the other called "z"; outputs, the other called "a" */
    char hollow;  /* this character is a byte 0 in the file */
};

static inline void hand_node(struct hand *hand, const char *op, const char *a, const char *b,
                             const char *output)
{
    size_t n = hand->node_count++;
    Onnx__NodeProto *node = &hand->nodes[n];
    onnx__node_proto__init(node);
    hand->inputs[n][0] = a;
    hand->inputs[n][1] = b;
    hand->outputs[n][0] = output;
    node->op_type = (char *)(uintptr_t)op;
    node->name = (char *)(uintptr_t)output;
    node->input = (char **)(uintptr_t)hand->inputs[n];
    node->n_input = b ? 2 : 1;
    node->output = (char **)(uintptr_t)hand->outputs[n];
    node->n_output = 1;
}

/* An attribute of node `n`. */
static inline Onnx__AttributeProto *hand_attribute(struct hand *hand, size_t n, const char *name)
{
    Onnx__NodeProto *node = &hand->nodes[n];
    Onnx__AttributeProto *attribute = &hand->attributes[n][node->n_attribute];
    onnx__attribute_proto__init(attribute);
    attribute->name = (char *)(uintptr_t)name;
    hand->lists[n][node->n_attribute++] = attribute;
    node->attribute = hand->lists[n];
    return attribute;
}

static inline void hand_ints(struct hand *hand, size_t n, const char *name, const int64_t *numbers,
                             size_t count)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, n, name);
    attribute->ints = (int64_t *)(uintptr_t)numbers;
    attribute->n_ints = count;
}

static inline void hand_text(struct hand *hand, size_t n, const char *name, const char *text)
{
    Onnx__AttributeProto *attribute = hand_attribute(hand, n, name);
    attribute->has_s = true;
    attribute->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

/* A node that gives one number. */
static inline void hand_number(struct hand *hand, const char *output, float number)
{
    hand_node(hand, "Constant", "", NULL, output);
    hand->nodes[hand->node_count - 1].n_input = 0;
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, "value_float");
    attribute->has_f = true;
    attribute->f = number;
}

/* A node that gives a row of numbers. */
static inline void hand_row(struct hand *hand, const char *output, const float *numbers,
                            size_t count)
{
    hand_node(hand, "Constant", "", NULL, output);
    hand->nodes[hand->node_count - 1].n_input = 0;
    Onnx__AttributeProto *attribute = hand_attribute(hand, hand->node_count - 1, "value_floats");
    attribute->floats = (float *)(uintptr_t)numbers;
    attribute->n_floats = count;
}

static inline void hand_dim(struct hand *hand, int64_t size, const char *name)
{
    Onnx__DimensionProto *dim = &hand->dims[hand->dim_count++];
    onnx__dimension_proto__init(dim);
    dim->has_dim_value = !name;
    dim->dim_value = size;
    dim->dim_param = (char *)(uintptr_t)name;
}

/* Begins a model over two samples of three features. */
static inline void hand_features(struct hand *hand)
{
    *hand = (struct hand){0};
    hand_dim(hand, 2, NULL);
    hand_dim(hand, 3, NULL);
}

/* Numbers called "w", of `count` places; where they lie, or NULL: in 8 bytes of the file. */
static inline void hand_tensor(struct hand *hand, int64_t count, const char *location)
{
    static char key[] = "location";
    static uint8_t bytes[8];
    onnx__tensor_proto__init(&hand->tensor);
    onnx__string_string_entry_proto__init(&hand->location);
    hand->has_tensor = true;
    hand->tensor_dims[0] = count;
    hand->tensor.name = (char *)(uintptr_t) "w";
    hand->tensor.dims = hand->tensor_dims;
    hand->tensor.n_dims = 1;
    hand->tensor.has_data_type = true;
    hand->tensor.data_type = 1;
    hand->tensor.has_raw_data = !location;
    hand->tensor.raw_data = (ProtobufCBinaryData){8, bytes};
    if (!location)
        return;
    hand->location.key = key;
    hand->location.value = (char *)(uintptr_t)location;
    hand->entries[0] = &hand->location;
    hand->tensor.external_data = hand->entries;
    hand->tensor.n_external_data = 1;
    hand->tensor.has_data_location = true;
    hand->tensor.data_location = 1;
}

enum norm_part { WHOLE, SUB, POW, TWO, DIV, AXIS, COLUMN, NORM_PARTS };

/* Layer normalisation as opset 13 has it: a pattern of nodes, of which one may be another. Node 10
 * has the scale "w", node 11 the shift "w"; "known" would be a Constant. */
static inline void hand_norm(struct hand *hand, enum norm_part at)
{
    static const int64_t last[] = {-1}, first[] = {1};
    static const float ones[] = {1, 1};
    *hand = (struct hand){0};
    for (int d = 0; d < 3; d++)
        hand_dim(hand, d ? 2 : 1, NULL);
    hand_tensor(hand, 2, NULL);
    hand->tensor_dims[1] = 1;
    hand->tensor.n_dims = at == COLUMN ? 2 : 1;
    hand_number(hand, "two", at == TWO ? 2.00005f : 2);
    hand_number(hand, "small", 1e-5f);
    hand_row(hand, "known", ones, 2);
    hand_node(hand, "ReduceMean", "x", NULL, "mean");
    hand_node(hand, "Sub", at == SUB ? "mean" : "x", at == SUB ? "x" : "mean", "c");
    hand_node(hand, "Pow", at == POW ? "two" : "c", at == POW ? "c" : "two", "square");
    hand_node(hand, "ReduceMean", "square", NULL, "variance");
    hand_node(hand, "Add", "variance", "small", "more");
    hand_node(hand, "Sqrt", "more", NULL, "root");
    hand_node(hand, "Div", at == DIV ? "root" : "c", at == DIV ? "c" : "root", "norm");
    hand_node(hand, "Mul", "norm", "w", "scaled");
    hand_node(hand, "Add", "scaled", "w", "y");
    hand_ints(hand, 3, "axes", last, 1);
    hand_ints(hand, 6, "axes", at == AXIS ? first : last, 1);
}

/* Reads it as the file `path`, whose output is "y". */
static inline enum status hand_read(struct hand *hand, const char *path, const char *shapes,
                                    struct network **network)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    Onnx__TensorTypeProto tensor = ONNX__TENSOR_TYPE_PROTO__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__ValueInfoProto x = ONNX__VALUE_INFO_PROTO__INIT, y = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__ValueInfoProto z = ONNX__VALUE_INFO_PROTO__INIT, a = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__ValueInfoProto *xs[] = {&x, &z}, *ys[] = {&y, &a};
    Onnx__NodeProto *nodes[NODES];
    Onnx__TensorProto *tensors[] = {&hand->tensor};
    Onnx__DimensionProto *dims[4];
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = &hand->nodes[i];
    for (size_t i = 0; i < 4; i++)
        dims[i] = &hand->dims[i];
    shape.dim = dims;
    shape.n_dim = hand->dim_count;
    tensor.has_elem_type = opset.has_version = true;
    tensor.elem_type = hand->type ? hand->type : 1;
    tensor.shape = &shape;
    type.tensor_type = &tensor;
    x.name = (char *)(uintptr_t) "x";
    x.type = z.type = &type;
    y.name = (char *)(uintptr_t) "y";
    z.name = (char *)(uintptr_t) "z";
    a.name = (char *)(uintptr_t) "a";
    graph.node = nodes;
    graph.n_node = hand->node_count;
    graph.input = xs;
    graph.output = ys;
    graph.n_input = graph.n_output = hand->two ? 2 : 1;
    graph.initializer = tensors;
    graph.n_initializer = hand->has_tensor;
    opset.version = 13;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.graph = &graph;
    size_t size = onnx__model_proto__get_packed_size(&model);
    uint8_t *bytes = mem_alloc(size);
    onnx__model_proto__pack(&model, bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = hand->hollow && bytes[i] == hand->hollow ? 0 : bytes[i];
    *network = NULL;
    enum status status = onnx_parse(path, bytes, size, shapes, network, NULL);
    mem_free(bytes);
    return status;
}

/* It is refused, and the message has this in it. */
static inline void check_refused(struct hand *hand, const char *path, const char *shapes,
                                 const char *said)
{
    struct network *network;
    CHECK(hand_read(hand, path, shapes, &network) != STATUS_OK);
    if (!CHECK(strstr(status_message(), said)))
        printf("    %s\n", status_message());
    network_free(network);
}

#endif
