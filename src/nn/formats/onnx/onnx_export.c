/* onnx_export.c: from a network and its parameters to the bytes of a file. See exporter.h. */
#include "nn/formats/onnx/exporter.h"

#include "base/file.h"
#include "base/memory.h"
#include "nn/formats/onnx.h"
#include "nn/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 17, IR = 8, FLOATS = 1, WHOLES = 7, INTEGERS = 6 };
/* AttributeProto.type */
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TENSOR = 4, TYPE_INTS = 7, TYPE_STRINGS = 8 };

#define EXPORT(kind, writer) export_writer export_##writer;
#include "nn/formats/onnx/exports.def"
#undef EXPORT

static const struct {
    const char *kind;
    export_writer *write;
} rows[] = {
#define EXPORT(kind, writer) {#kind, export_##writer},
#include "nn/formats/onnx/exports.def"
#undef EXPORT
};

/* Memory of the file to be; a failure is said at the end, and until then what is written is scrap.
 */
static void *take(struct export *ex, size_t count, size_t bytes)
{
    static char scrap[4096];
    void *taken = arena_array(&ex->arena, count, bytes);
    ex->failed = ex->failed || !taken;
    return taken ? taken : scrap;
}

static char *copy(struct export *ex, const char *text)
{
    char *to = take(ex, strlen(text) + 1, 1);
    if (!ex->failed)
        memcpy(to, text, strlen(text) + 1);
    return to;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *export_name(struct export *ex, const char *name)
{
    while (name && bsearch(&name, ex->names, (size_t)ex->network->layer_count, sizeof *ex->names,
                           compare_names))
        name = arena_format(&ex->arena, "%s_", name);
    ex->failed = ex->failed || !name;
    return name ? name : "";
}

/* Room for one more pointer of a repeated field. */
static void **grow(struct export *ex, void *list, size_t count, size_t *room)
{
    if (count < *room)
        return list;
    size_t wider = *room ? 2 * *room : 64;
    void **grown = take(ex, wider, sizeof *grown);
    if (count && !ex->failed)
        memcpy(grown, list, count * sizeof *grown);
    *room = ex->failed ? *room : wider;
    return grown;
}

const char *export_node(struct export *ex, const char *op, const char *output,
                        const char *const *inputs, size_t count)
{
    Onnx__NodeProto *node = take(ex, 1, sizeof *node);
    ex->graph.node = (Onnx__NodeProto **)grow(ex, ex->graph.node, ex->graph.n_node, &ex->node_room);
    if (ex->failed)
        return output;
    onnx__node_proto__init(node);
    node->op_type = copy(ex, op);
    node->name = copy(ex, output);
    node->output = take(ex, 2, sizeof *node->output);
    node->output[node->n_output++] = copy(ex, output);
    node->input = take(ex, count + 1, sizeof *node->input);
    for (size_t i = 0; i < count && !ex->failed; i++)
        node->input[node->n_input++] = copy(ex, inputs[i] ? inputs[i] : "");
    node->attribute = take(ex, 8, sizeof *node->attribute);
    ex->graph.node[ex->graph.n_node++] = node;
    return output;
}

static Onnx__AttributeProto *add_attribute(struct export *ex, const char *name, int32_t type)
{
    static Onnx__AttributeProto scrap;
    Onnx__AttributeProto *attribute = take(ex, 1, sizeof *attribute);
    if (ex->failed || !ex->graph.n_node)
        return &scrap;
    Onnx__NodeProto *node = ex->graph.node[ex->graph.n_node - 1];
    onnx__attribute_proto__init(attribute);
    attribute->name = copy(ex, name);
    attribute->has_type = true;
    attribute->type = type;
    node->attribute[node->n_attribute++] = attribute;
    return attribute;
}

void export_int(struct export *ex, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute = add_attribute(ex, name, TYPE_INT);
    attribute->has_i = true;
    attribute->i = value;
}

void export_real(struct export *ex, const char *name, float value)
{
    Onnx__AttributeProto *attribute = add_attribute(ex, name, TYPE_FLOAT);
    attribute->has_f = true;
    attribute->f = value;
}

void export_ints(struct export *ex, const char *name, const int64_t *values, size_t count)
{
    Onnx__AttributeProto *attribute = add_attribute(ex, name, TYPE_INTS);
    int64_t *kept = take(ex, count, sizeof *kept);
    if (ex->failed)
        return;
    memcpy(kept, values, count * sizeof *kept);
    attribute->ints = kept;
    attribute->n_ints = count;
}

void export_words(struct export *ex, const char *name, const char *word)
{
    Onnx__AttributeProto *attribute = add_attribute(ex, name, TYPE_STRINGS);
    ProtobufCBinaryData *words = take(ex, 1, sizeof *words);
    if (ex->failed)
        return;
    words->data = (uint8_t *)copy(ex, word);
    words->len = strlen(word);
    attribute->strings = words;
    attribute->n_strings = 1;
}

void export_second(struct export *ex, const char *first, const char *second)
{
    size_t n = ex->graph.n_node;
    while (n > 0 && strcmp(ex->graph.node[n - 1]->output[0], first))
        n--;
    if (n > 0 && ex->graph.node[n - 1]->n_output == 1)
        ex->graph.node[n - 1]->output[ex->graph.node[n - 1]->n_output++] = copy(ex, second);
}

const char *export_part(struct export *ex)
{
    return export_name(ex, arena_format(&ex->arena, "%s/%d", ex->output, ++ex->parts));
}

const char *export_input(const struct export *ex, int32_t i)
{
    int32_t from = ex->layer->inputs[i];
    return from < 0 ? ex->input : ex->network->layers[from].name;
}

struct shape export_shape(const struct export *ex, int32_t i)
{
    int32_t from = ex->layer->inputs[i];
    if (from >= 0)
        return ex->shapes[from];
    struct shape shape = {.rank = ex->network->input.rank + 1, .dim = {1}};
    memcpy(shape.dim + 1, ex->network->input.dim, sizeof shape.dim - sizeof *shape.dim);
    return shape;
}

struct shape export_gives(const struct export *ex)
{
    return ex->shapes[ex->layer - ex->network->layers];
}

double export_value(const struct export *ex, const char *argument)
{
    return ex->layer->values[arguments_find(ex->layer->kind->arguments, argument)];
}

const struct layer_list *export_list(const struct export *ex, const char *argument)
{
    return &ex->layer->lists[arguments_find(ex->layer->kind->arguments, argument)];
}

/* A tensor over bytes that live as long as the export. */
static Onnx__TensorProto *make_tensor(struct export *ex, int32_t type, const struct shape *shape,
                                      const void *bytes, size_t length)
{
    Onnx__TensorProto *tensor = take(ex, 1, sizeof *tensor);
    if (ex->failed)
        return tensor;
    onnx__tensor_proto__init(tensor);
    tensor->dims = take(ex, SHAPE_MOST, sizeof *tensor->dims);
    tensor->has_data_type = tensor->has_raw_data = true;
    tensor->data_type = type;
    tensor->raw_data.len = length;
    tensor->raw_data.data = (uint8_t *)(uintptr_t)bytes;
    for (int32_t d = 0; d < shape->rank && !ex->failed; d++)
        tensor->dims[tensor->n_dims++] = shape->dim[d];
    return tensor;
}

static const char *add_tensor(struct export *ex, const char *name, int32_t type,
                              const struct shape *shape, const void *bytes, size_t length)
{
    Onnx__TensorProto *tensor = make_tensor(ex, type, shape, bytes, length);
    ex->graph.initializer = (Onnx__TensorProto **)grow(ex, ex->graph.initializer,
                                                       ex->graph.n_initializer, &ex->tensor_room);
    if (ex->failed)
        return name;
    tensor->name = copy(ex, export_name(ex, name));
    ex->graph.initializer[ex->graph.n_initializer++] = tensor;
    return tensor->name;
}

/* The entry of a parameter of the layer, which it has declared. */
static int32_t entry_of(const struct export *ex, const char *name)
{
    char full[200];
    snprintf(full, sizeof full, "%s.%s", ex->layer->name, name);
    return params_find(ex->params, full);
}

const float *export_values(const struct export *ex, const char *name)
{
    return params_data(ex->params, entry_of(ex, name));
}

const char *export_param(struct export *ex, const char *name, const struct shape *shape)
{
    const struct entry *entry = &ex->params->entries[entry_of(ex, name)];
    if (entry->dtype != DTYPE_F32)
        return export_quantised(ex, name, shape);
    return add_tensor(ex, entry->name, FLOATS, shape ? shape : &entry->shape,
                      params_data(ex->params, entry_of(ex, name)), (size_t)entry->bytes);
}

const char *export_reals(struct export *ex, const char *name, const float *values,
                         struct shape shape)
{
    size_t count = (size_t)shape_count(&shape);
    float *kept = take(ex, count, sizeof *kept);
    char full[200];
    if (ex->failed)
        return name;
    memcpy(kept, values, count * sizeof *kept);
    snprintf(full, sizeof full, "%s.%s", ex->layer->name, name);
    return add_tensor(ex, full, FLOATS, &shape, kept, count * sizeof *kept);
}

const char *export_integers(struct export *ex, const char *name, int32_t type, const void *bytes,
                            struct shape shape)
{
    const char *full =
        arena_format(&ex->arena, "%s.%s", ex->layer ? ex->layer->name : "input", name);
    if (!full) {
        ex->failed = true;
        return name;
    }
    return add_tensor(ex, full, type, &shape, bytes,
                      (size_t)shape_count(&shape) * (type == INTEGERS ? 4 : 1));
}

const char *export_constant(struct export *ex, const float *values, struct shape shape)
{
    const char *name = export_node(ex, "Constant", export_part(ex), NULL, 0);
    size_t count = (size_t)shape_count(&shape);
    float *kept = take(ex, count, sizeof *kept);
    if (ex->failed)
        return name;
    memcpy(kept, values, count * sizeof *kept);
    add_attribute(ex, "value", TYPE_TENSOR)->t =
        make_tensor(ex, FLOATS, &shape, kept, count * sizeof *kept);
    return name;
}

const char *export_wholes(struct export *ex, const int64_t *values, int64_t count)
{
    int64_t *kept = take(ex, (size_t)count, sizeof *kept);
    if (ex->failed)
        return "";
    memcpy(kept, values, (size_t)count * sizeof *kept);
    return add_tensor(ex, export_part(ex), WHOLES, &SHAPE(count), kept,
                      (size_t)count * sizeof *kept);
}

const char *export_reshape(struct export *ex, const char *x, struct shape to, const char *output)
{
    to.dim[0] = 0; /* as many samples as there are */
    return export_node(ex, "Reshape", output, EXPORT_INPUTS(x, export_wholes(ex, to.dim, to.rank)));
}

static Onnx__ValueInfoProto *describe(struct export *ex, const char *name, int32_t type,
                                      const struct shape *shape)
{
    Onnx__ValueInfoProto *info = take(ex, 1, sizeof *info);
    Onnx__TypeProto *outer = take(ex, 1, sizeof *outer);
    Onnx__TensorTypeProto *tensor = take(ex, 1, sizeof *tensor);
    Onnx__TensorShapeProto *dims = take(ex, 1, sizeof *dims);
    Onnx__DimensionProto *each = take(ex, SHAPE_MOST, sizeof *each);
    if (ex->failed)
        return info;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(outer);
    onnx__tensor_type_proto__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    info->name = copy(ex, name);
    info->type = outer;
    outer->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = type;
    tensor->shape = dims;
    dims->dim = take(ex, SHAPE_MOST, sizeof *dims->dim);
    for (int32_t d = 0; d < shape->rank && !ex->failed; d++) {
        onnx__dimension_proto__init(&each[d]);
        each[d].has_dim_value = d > 0;
        each[d].dim_value = shape->dim[d];
        each[d].dim_param = d ? NULL : copy(ex, "batch");
        dims->dim[dims->n_dim++] = &each[d];
    }
    return info;
}

/* In 8 bits a norm may be part of the weights before it. */
static bool is_folded(const struct export *ex)
{
    return ex->levels && !strcmp(ex->layer->kind->name, "batch_norm") && entry_of(ex, "scale") < 0;
}

static enum status write_same(struct export *ex)
{
    export_node(ex, "Identity", ex->output, EXPORT_INPUTS(export_input(ex, 0)));
    return STATUS_OK;
}

static enum status write_layers(struct export *ex)
{
    for (int32_t i = 0; i < ex->network->layer_count; i++) {
        size_t row = 0;
        ex->layer = &ex->network->layers[i];
        bool rounds = export_rounds(ex, ex->layer->name);
        ex->parts = 0;
        ex->output = ex->layer->name;
        if (rounds)
            ex->output = export_part(ex);
        while (row < sizeof rows / sizeof *rows && strcmp(rows[row].kind, ex->layer->kind->name))
            row++;
        enum status status = is_folded(ex) ? write_same(ex)
                             : row < sizeof rows / sizeof *rows
                                 ? rows[row].write(ex)
                                 : status_fail(STATUS_UNSUPPORTED, __FILE__, __LINE__,
                                               "ONNX has no operator for it");
        if (status != STATUS_OK)
            return status_prefix(status, "%s: layer '%s' (%s)", ex->path, ex->layer->name,
                                 ex->layer->kind->name);
        if (rounds)
            ex->output = export_rounded(ex, ex->layer->name, ex->output, ex->layer->name);
    }
    return STATUS_OK;
}

/* y ÷ scale + mean, of the shape of what the network gives. */
static const char *write_returns(struct export *ex, const struct onnx_ends *ends, const char *y,
                                 struct shape gives)
{
    const char *scale = export_constant(ex, ends->returns_scale, gives);
    const char *mean = export_constant(ex, ends->returns_mean, gives);
    const char *wide = export_node(ex, "Div", export_part(ex), EXPORT_INPUTS(y, scale));
    return export_node(ex, "Add", export_part(ex), EXPORT_INPUTS(wide, mean));
}

/* What training found of the inputs is done to them first, what the loss says to the outputs last,
 * and what is then in the place of data gets its scale. */
static void write_ends(struct export *ex, const struct onnx_ends *ends)
{
    const struct network *network = ex->network;
    struct shape in = {.rank = network->input.rank + 1, .dim = {1}};
    struct shape gives = export_gives(ex);
    const char *op = ends->loss == LOSS_CROSS_ENTROPY          ? "Softmax"
                     : ends->loss == LOSS_BINARY_CROSS_ENTROPY ? "Sigmoid"
                                                               : NULL;
    const char *output = ex->output;
    memcpy(in.dim + 1, network->input.dim, sizeof in.dim - sizeof *in.dim);
    if (op) {
        output = export_node(ex, op, export_part(ex), EXPORT_INPUTS(output));
        if (ends->loss == LOSS_CROSS_ENTROPY)
            export_int(ex, "axis", -1);
    }
    if (ends->returns_mean)
        output = write_returns(ex, ends, output, gives);
    ex->graph.input = take(ex, 1, sizeof *ex->graph.input);
    ex->graph.output = take(ex, 1, sizeof *ex->graph.output);
    if (ex->failed)
        return;
    ex->graph.input[ex->graph.n_input++] =
        describe(ex, ends->mean ? export_name(ex, "raw") : "input",
                 network->tokens ? INTEGERS : FLOATS, &in);
    ex->graph.output[ex->graph.n_output++] = describe(ex, output, FLOATS, &gives);
}

/* (x - mean) · scale, the samples' own shape; between 0 and 1 where these are chances. */
static void write_scaling(struct export *ex, const struct onnx_ends *ends)
{
    struct shape sample = {.rank = ex->network->input.rank + 1, .dim = {1}};
    memcpy(sample.dim + 1, ex->network->input.dim, sizeof sample.dim - sizeof *sample.dim);
    if (!ends->mean)
        return;
    ex->output = "input";
    const char *mean = export_constant(ex, ends->mean, sample);
    const char *scale = export_constant(ex, ends->scale, sample);
    const char *raw = export_name(ex, "raw");
    const char *centred = export_node(ex, "Sub", export_part(ex), EXPORT_INPUTS(raw, mean));
    if (!ends->unit) {
        export_node(ex, "Mul", "input", EXPORT_INPUTS(centred, scale));
        return;
    }
    const char *least = export_constant(ex, &(float){0}, (struct shape){0});
    const char *most = export_constant(ex, &(float){1}, (struct shape){0});
    const char *chance = export_node(ex, "Mul", export_part(ex), EXPORT_INPUTS(centred, scale));
    export_node(ex, "Clip", "input", EXPORT_INPUTS(chance, least, most));
}

static enum status pack(struct export *ex)
{
    Onnx__OperatorSetIdProto opset, *opsets[] = {&opset};
    Onnx__ModelProto model;
    onnx__operator_set_id_proto__init(&opset);
    onnx__model_proto__init(&model);
    char empty[] = "", producer[] = "prony";
    opset.domain = empty;
    opset.has_version = model.has_ir_version = true;
    opset.version = OPSET;
    model.ir_version = IR;
    model.producer_name = producer;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.graph = &ex->graph;
    ex->graph.name = copy(ex, ex->network->name);
    NEED(!ex->failed);
    size_t size = onnx__model_proto__get_packed_size(&model);
    if (size > INT32_MAX)
        FAIL(STATUS_UNSUPPORTED, "%s: the file would have %zu bytes, expected at most 2 GB",
             ex->path, size);
    uint8_t *bytes = mem_alloc(size);
    NEED(bytes);
    onnx__model_proto__pack(&model, bytes);
    enum status status = file_write(ex->path, bytes, size);
    mem_free(bytes);
    return status;
}

static enum status sort_names(struct export *ex)
{
    size_t count = (size_t)ex->network->layer_count;
    NEED(ex->names = arena_array(&ex->arena, count, sizeof *ex->names));
    for (size_t i = 0; i < count; i++)
        ex->names[i] = ex->network->layers[i].name;
    qsort(ex->names, count, sizeof *ex->names, compare_names);
    return STATUS_OK;
}

enum status onnx_write(const char *path, const struct network *network, const struct params *params,
                       const struct onnx_ends *ends)
{
    struct export ex = {.path = path, .network = network, .params = params, .levels = ends->levels};
    enum status status;
    if (network->quantised && !ends->levels)
        FAIL(STATUS_UNSUPPORTED, "%s: found a network in 8 bits, expected one in fp32",
             network->name);
    if (network->part_count)
        FAIL(STATUS_INPUT, "%s: found several networks, expected one of them, as in %s:%s",
             network->name, network->name, network->parts[0].name);
    onnx__graph_proto__init(&ex.graph);
    NEED_OR(done,
            ex.shapes = arena_array(&ex.arena, (size_t)network->layer_count, sizeof *ex.shapes));
    TRY_OR(done, network_shapes(network, ex.shapes));
    TRY_OR(done, sort_names(&ex));
    write_scaling(&ex, ends);
    ex.output = ex.input = "input";
    if (export_rounds(&ex, ""))
        ex.input = export_rounded(&ex, "", "input", export_part(&ex));
    TRY_OR(done, write_layers(&ex));
    write_ends(&ex, ends);
    status = pack(&ex);
done:
    arena_free(&ex.arena);
    return status;
}
