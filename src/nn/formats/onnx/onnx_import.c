/* onnx_import.c: from the bytes of a file to a network. See importer.h. */
#include "nn/formats/onnx.h"
#include "nn/formats/onnx/importer.h"
#include "nn/formats/onnx/integers.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { OPSET_LEAST = 1, OPSET_MOST = 20, BROADCASTS_ITSELF = 7 };

#define NODE(op, inputs, writer) node_writer node_##writer;
#include "nn/formats/onnx/nodes.def"
#undef NODE

static const struct {
    const char *op;
    size_t inputs;
    node_writer *write;
} rows[] = {
#define NODE(op, inputs, writer) {#op, inputs, node_##writer},
#include "nn/formats/onnx/nodes.def"
#undef NODE
};

static enum status read_dimension(struct import *in, const Onnx__ValueInfoProto *info,
                                  int32_t place, struct shape *shape)
{
    const Onnx__DimensionProto *dim = info->type->tensor_type->shape->dim[place];
    char made[SIZES_NAME];
    const char *name = sizes_name(info, (size_t)place, made);
    int64_t size = dim->has_dim_value ? dim->dim_value : 0, said = 0;
    if (*name)
        TRY(sizes_find(in, name, &said));
    size = said ? said : size;
    if (place == in->batch && size >= -1 && size <= 1000000000) { /* 0 and -1: left open */
        in->samples = size > 0 ? size : 0;
        size = 1;
    } else if ((size == 0 || size == -1) && *name) {
        return sizes_refuse_open(in);
    }
    if (size < 1 || size > 1000000000)
        REFUSE(in, STATUS_INPUT, "dimension %d of its input is %lld, expected 1 to 1000000000",
               place, (long long)size);
    shape->dim[shape->rank++] = size;
    return STATUS_OK;
}

static enum status read_input(struct import *in, const Onnx__ValueInfoProto *info)
{
    const Onnx__TensorTypeProto *type = info->type ? info->type->tensor_type : NULL;
    struct value *value;
    if (!type || !type->shape || type->shape->n_dim > SHAPE_MOST || !type->shape->n_dim)
        REFUSE(in, STATUS_UNSUPPORTED, "its input '%.60s' has no shape, or more than %d dimensions",
               info->name, SHAPE_MOST);
    if (in->batch >= (int32_t)type->shape->n_dim)
        REFUSE(in, STATUS_UNSUPPORTED, "its input '%.60s' has no dimension %d", info->name,
               in->batch);
    TRY(graph_add(in, info->name, &value));
    value->tokens = type->elem_type == ELEMENT_INT32 || type->elem_type == ELEMENT_INT64;
    bool levels = type->elem_type == ELEMENT_UINT8 || type->elem_type == ELEMENT_INT8;
    if (!value->tokens && !levels && !element_is_real(type->elem_type))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input '%.60s' is of type %d, expected float, int64 or 8 bits", info->name,
               type->elem_type);
    in->doubles = in->doubles || type->elem_type == ELEMENT_DOUBLE;
    for (size_t d = 0; d < type->shape->n_dim; d++)
        TRY(read_dimension(in, info, (int32_t)d, &value->shape));
    value->batch = in->batch;
    value->ahead = 1;
    value->gives = value_sample(value);
    if (value->gives.rank >= SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "its input '%.60s' has more than %d dimensions", info->name,
               SHAPE_MOST - 1);
    int64_t count = shape_count(&value->gives);
    if (count < 1 || count > ELEMENTS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input '%.60s' is too large, expected at most %lld elements of a sample",
               info->name, (long long)ELEMENTS_MOST);
    value->layer = "input";
    value->ready = true;
    in->inputs[in->input_count++] = value;
    return STATUS_OK;
}

/* Several inputs are parts of one row, in the file's order. */
static enum status join_inputs(struct import *in)
{
    int64_t from = 0;
    in->sample = in->inputs[0]->gives;
    for (int32_t i = 0; in->input_count > 1 && i < in->input_count; i++) {
        struct value *value = in->inputs[i];
        int64_t count = shape_count(&value->gives);
        if (value->tokens)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "its input '%.60s' is whole numbers beside %d others, expected real ones",
                   value->name, in->input_count - 1);
        in->reading = value->name;
        if (value->uses)
            TRY(line_slice(in, "input", 1, from, count, &value->layer));
        value->gives = SHAPE(count);
        from += count;
        in->sample = SHAPE(from);
    }
    in->reading = NULL;
    return STATUS_OK;
}

/* All values the file names: numbers, the input, what nodes give. */
static enum status declare(struct import *in)
{
    const Onnx__GraphProto *graph = in->graph;
    struct value *value;
    NEED(in->inputs = arena_array(&in->arena, graph->n_input + 1, sizeof *in->inputs));
    TRY(sizes_check(in));
    for (size_t i = 0; i < graph->n_initializer; i++) {
        char **name = &graph->initializer[i]->name;
        TRY(graph_add(in, *name ? *name : "", &value));
        value->ready = true;
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        if (!graph->input[i]->name)
            REFUSE(in, STATUS_INPUT, "found an input without a name");
        if (!graph_find(in, graph->input[i]->name))
            TRY(read_input(in, graph->input[i]));
    }
    if (!in->input_count)
        REFUSE(in, STATUS_UNSUPPORTED, "found no input, expected one");
    for (size_t n = 0; n < graph->n_node; n++) {
        in->node = graph->node[n];
        if (!in->node->op_type)
            REFUSE(in, STATUS_INPUT, "found a node without an operator");
        for (size_t i = 0; i < in->node->n_output; i++)
            if (*in->node->output[i])
                TRY(graph_add(in, in->node->output[i], &value));
    }
    in->node = NULL;
    return STATUS_OK;
}

/* The output that is wanted: the first, where none is named. */
static enum status find_output(const struct import *in, struct value **out)
{
    const Onnx__GraphProto *graph = in->graph;
    size_t length = 0;
    const char *wanted = sizes_output(in, &length), *name = NULL;
    for (size_t i = 0; i < graph->n_output && !name; i++) {
        const char *own = graph->output[i]->name;
        if (own && (!wanted || (strlen(own) == length && !strncmp(own, wanted, length))))
            name = own;
    }
    if (!name && wanted)
        REFUSE(in, STATUS_INPUT, "it has no output '%.*s'", (int)length, wanted);
    if (!name)
        REFUSE(in, STATUS_INPUT, "found no output");
    if (!(*out = graph_find(in, name)))
        REFUSE(in, STATUS_INPUT, "its output '%.80s' comes from no node", name);
    return STATUS_OK;
}

/* Which nodes the output comes from, and how often and by whom each value is used. */
static enum status mark(struct import *in, struct value **output)
{
    const Onnx__GraphProto *graph = in->graph;
    TRY(find_output(in, output));
    (*output)->pending = ++(*output)->uses;
    NEED(in->needed = arena_array(&in->arena, graph->n_node + 1, sizeof *in->needed));
    for (size_t n = graph->n_node; n-- > 0;) {
        const Onnx__NodeProto *node = graph->node[n];
        for (size_t i = 0; i < node->n_output && !in->needed[n]; i++)
            in->needed[n] = *node->output[i] && graph_find(in, node->output[i])->uses;
        for (size_t i = 0; in->needed[n] && i < node->n_input; i++) {
            struct value *value = *node->input[i] ? graph_find(in, node->input[i]) : NULL;
            in->node = node;
            if (*node->input[i] && !value)
                REFUSE(in, STATUS_INPUT, "its input '%.80s' comes from no node", node->input[i]);
            if (!value)
                continue;
            value->pending = ++value->uses;
            value->readers[1] = value->readers[0];
            value->readers[0] = (int32_t)n;
        }
    }
    in->node = NULL;
    return STATUS_OK;
}

/* The numbers that are used; the others may be large. */
static enum status read_numbers(struct import *in)
{
    for (size_t i = 0; i < in->graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = in->graph->initializer[i];
        struct value *value = graph_find(in, tensor->name ? tensor->name : "");
        if (!value->uses)
            continue;
        TRY(constant_read(in, tensor, &value->constant));
        value->constant->learnt = value->constant->reals != NULL;
        value->constant->held = !value->constant->learnt;
        value->constant->origins[0] = value->name;
        value->constant->origin_count = 1;
        value->shape = value->constant->shape;
    }
    return STATUS_OK;
}

/* Which of the operators takes the number of samples among its known numbers, and follows it? */
static bool follows_samples(const char *op)
{
    static const char *const ops[] = {"Reshape", "Slice",    "Expand",
                                      "Resize",  "Upsample", "MaxUnpool"};
    bool follows = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        follows = follows || !strcmp(op, ops[i]);
    return follows;
}

/* Known numbers of which there are as many as samples become a layer; where they are whole, and
 * where the number of samples is one of them, few operators can take them. */
static enum status check_samples(struct import *in)
{
    const char *op = in->node->op_type;
    for (size_t i = 0; i < in->node->n_input; i++) {
        struct value *value = graph_input(in, i);
        const struct constant *known = value ? value->constant : NULL;
        bool counted = false;
        for (int64_t k = 0; known && known->wholes && k < known->count; k++)
            counted = counted || samples_in(known->wholes[k]);
        if (counted && !follows_samples(op))
            REFUSE(in, STATUS_UNSUPPORTED,
                   "its input %zu has the number of samples in it, which is not known", i + 1);
        bool chooses = !strcmp(op, "Where") && i == 0;
        if (known && known->batch >= 0 && !chooses)
            TRY(line_known(in, value, known->batch));
    }
    return STATUS_OK;
}

static enum status write_node(struct import *in)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (strcmp(rows[r].op, in->node->op_type))
            continue;
        for (size_t i = 0; i < rows[r].inputs; i++)
            if (!graph_input(in, i))
                REFUSE(in, STATUS_INPUT, "its input %zu is not there, expected %zu inputs", i + 1,
                       rows[r].inputs);
        if (!in->node->n_output)
            REFUSE(in, STATUS_INPUT, "found no output");
        bool all_known = true;
        for (size_t i = 0; i < in->node->n_input; i++)
            all_known = all_known && (!graph_input(in, i) || graph_input(in, i)->constant);
        if (all_known && rows[r].write != node_recurrent) /* whose samples are elsewhere */
            TRY(line_known(in, graph_input(in, 0), in->batch));
        if (rows[r].write != node_recurrent)
            TRY(check_samples(in));
        if (in->opset < BROADCASTS_ITSELF && graph_attribute(in, "broadcast"))
            REFUSE(in, STATUS_UNSUPPORTED, "it broadcasts as before opset 7");
        return rows[r].write(in);
    }
    REFUSE(in, STATUS_UNSUPPORTED,
           "prony has no such operator for values that depend on the input; docs/onnx.md lists the "
           "operators");
}

/* Where a MaxPool found its numbers is known to a MaxUnpool only: no layer gives it. */
static enum status check_places(struct import *in)
{
    bool unpool = !strcmp(in->node->op_type, "MaxUnpool");
    for (size_t i = 0; i < in->node->n_input; i++) {
        const struct value *value = graph_input(in, i);
        if (value && value->pool && !(unpool && i == 1))
            REFUSE(in, STATUS_UNSUPPORTED,
                   "'%.80s' is the places of a MaxPool, expected them as the second input of "
                   "MaxUnpool only",
                   value->name);
    }
    return STATUS_OK;
}

static enum status do_node(struct import *in)
{
    bool done;
    for (size_t i = 0; i < in->node->n_input; i++)
        if (*in->node->input[i] && !graph_input(in, i)->ready)
            REFUSE(in, STATUS_INPUT,
                   "its input '%.80s' comes from a node behind it: they are not in order, or go in "
                   "a circle",
                   in->node->input[i]);
    if (in->node->domain && *in->node->domain && strcmp(in->node->domain, "ai.onnx"))
        REFUSE(in, STATUS_UNSUPPORTED, "it is an operator of '%.60s', expected one of ONNX itself",
               in->node->domain);
    TRY(check_places(in));
    int32_t given = in->given_count;
    TRY(fusion_write(in, &done));
    if (!done)
        TRY(fold_node(in, &done));
    if (!done)
        TRY(write_node(in));
    TRY(import_check_learning(in, given));
    for (size_t i = 0; i < in->node->n_input; i++)
        if (graph_input(in, i) && graph_input(in, i)->known)
            line_known_again(graph_input(in, i));
    for (size_t i = 0; i < in->node->n_output; i++) {
        const struct value *value = graph_output(in, i);
        if (value && value->uses && !value->ready)
            REFUSE(in, STATUS_UNSUPPORTED, "its output '%.80s' is used, expected only the first",
                   value->name);
    }
    return STATUS_OK;
}

/* The node has read its inputs. */
static void count_read(const struct import *in)
{
    for (size_t i = 0; i < in->node->n_input; i++) {
        struct value *value = graph_input(in, i);
        if (!value)
            continue;
        value->pending--;
        if (value->line)
            value->line->pending--;
    }
}

/* Numbers first: patterns of nodes look for those that stand further down. */
static enum status do_nodes(struct import *in)
{
    const Onnx__GraphProto *graph = in->graph;
    for (int pass = 0; pass < 2; pass++)
        for (size_t n = 0; n < graph->n_node; n++) {
            in->node = graph->node[n];
            if (!in->needed[n] || (!pass && strcmp(in->node->op_type, "Constant")))
                continue;
            const int32_t lines = in->line_count;
            TRY(do_node(in));
            TRY(origins_of_node(in, (int32_t)n, lines));
            count_read(in);
            in->needed[n] = false;
            in->done++;
        }
    in->node = NULL;
    return STATUS_OK;
}

/* Parses the text and checks it, layer by layer. */
static enum status make_network(struct import *in, const char *name, const struct text *text,
                                struct network **out)
{
    struct network *network;
    TRY(network_parse(name, text_of(text), text->length, &network));
    network->given = in->given;
    network->given_count = in->given_count;
    network->weights = in->weights;
    network->untrainable =
        in->settles ? "it was settled for inference, and cannot be trained" : in->untrainable;
    network->ends_in_softmax = in->softmax_last;
    network->rounded = in->doubles ? "its doubles are rounded to fp32" : NULL;
    in->weights = (struct arena){0};
    struct shape *shapes = arena_array(&in->arena, (size_t)network->layer_count, sizeof *shapes);
    enum status status;
    NEED_OR(fail, shapes);
    TRY_OR(fail, network_shapes(network, shapes));
    TRY_OR(fail, origins_keep(in, network));
    *out = network;
    return STATUS_OK;
fail:
    network_free(network);
    return status;
}

static enum status import(struct import *in, const char *name, struct network **out,
                          struct onnx_batch *batch)
{
    struct value *output = NULL;
    struct text text = {0};
    size_t length;
    int64_t size;
    TRY(sizes_find(in, NULL, &size));
    TRY(declare(in));
    TRY(mark(in, &output));
    TRY(read_numbers(in));
    TRY(join_inputs(in));
    TRY(do_nodes(in));
    enum status status = import_write(in, output, &text);
    if (status == STATUS_OK)
        status = make_network(in, name, &text, out);
    text_free(&text);
    if (status == STATUS_OK)
        (*out)->onnx_batch = (struct onnx_batch){.input = in->batch, .output = output->batch};
    if (status != STATUS_OK || in->settles)
        return status;
    if (in->graph->n_output > 1 && !sizes_output(in, &length)) {
        char taken[61];
        snprintf(taken, sizeof taken, "%s", output->name);
        names_clean(taken);
        log_warning("%s: it has %zu outputs, of which '%s' is taken; %s:output=NAME takes another",
                    in->path, in->graph->n_output, taken, in->path);
    }
    if ((*out)->rounded)
        log_warning("%s: %s", in->path, (*out)->rounded);
    if (in->batch > 0)
        log_info("%s: dimension %d of its input counts the samples, counted from 0", in->path,
                 in->batch);
    else if (in->batch < 0)
        log_info("%s: no dimension of its input counts samples: the whole is one", in->path);
    if (batch)
        *batch = (*out)->onnx_batch;
    return STATUS_OK;
}

/* Reads the file again for inference alone, where that makes fewer layers of it, or integers. */
static enum status import_settled(const struct import *model, const char *name, int32_t batch,
                                  struct network **network)
{
    struct import in = *model;
    in.batch = batch;
    in.settles = true;
    enum status status = import(&in, name, &(*network)->settled, NULL);
    arena_free(&in.arena);
    arena_free(&in.weights);
    if (status == STATUS_OK && integers_wanted(*network))
        status = integers_settle((*network)->settled);
    if (status != STATUS_OK) {
        network_free(*network);
        *network = NULL;
    }
    return status;
}

/* The samples are counted by the first dimension; where that cannot be, by the second, as in
 * sequences [time, sample, feature]; else by none: the whole input is one sample. Of a file that
 * fits no way, what is said is what is left open, for more cannot be known before; else, as where
 * the first dimension counts something and the second is open, what came up last in it. */
static enum status import_any(const struct import *model, const char *name, struct network **out,
                              struct onnx_batch *batch)
{
    static const int32_t tries[] = {0, 1, -1};
    struct error error = {.code = STATUS_OK};
    int32_t farthest = -1;
    for (int i = 0; i < 3; i++) {
        struct import in = *model;
        in.batch = tries[i];
        enum status status = import(&in, name, out, batch);
        arena_free(&in.arena);
        arena_free(&in.weights);
        if (status == STATUS_OK && (in.foldable || integers_wanted(*out)))
            return import_settled(model, name, in.batch, out);
        if (status != STATUS_INPUT && status != STATUS_UNSUPPORTED)
            return status;
        bool open = in.open && i == 0, alone = in.samples < 2;
        int32_t reached =
            open && alone ? INT32_MAX : 3 * in.done + (in.node && !in.misplaced ? 2 : open);
        if (reached > farthest)
            error = *status_last();
        farthest = reached > farthest ? reached : farthest;
    }
    *status_last() = error;
    return error.code;
}

static enum status check_model(struct import *in, const Onnx__ModelProto *model,
                               struct arena *arena, Onnx__GraphProto *room)
{
    if (!model || !model->graph || !model->graph->n_node)
        FAIL(STATUS_INPUT, "%s: found no graph of nodes in it, expected an ONNX file that is whole",
             in->path);
    TRY(apart_quantised(model->graph, arena, room, &in->graph));
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = model->opset_import[i]->domain;
        if (!domain || !*domain || !strcmp(domain, "ai.onnx"))
            in->opset = model->opset_import[i]->version;
    }
    if (in->opset < OPSET_LEAST || in->opset > OPSET_MOST)
        FAIL(STATUS_UNSUPPORTED, "%s: found opset %lld, expected %d to %d", in->path,
             (long long)in->opset, OPSET_LEAST, OPSET_MOST);
    return STATUS_OK;
}

/* protobuf-c takes its memory from here; it does not say why it gave up. */
static void *message_alloc(void *context, size_t bytes)
{
    bool *failed = context;
    void *taken = mem_alloc(bytes);
    *failed = *failed || !taken;
    return taken;
}

static void message_free(void *context, void *pointer)
{
    (void)context;
    mem_free(pointer);
}

enum status onnx_parse(const char *name, const void *bytes, size_t length, const char *shapes,
                       struct network **out, struct onnx_batch *batch)
{
    bool failed = false;
    struct arena arena = {0};
    Onnx__GraphProto room;
    ProtobufCAllocator allocator = {message_alloc, message_free, &failed};
    struct import in = {.path = name, .shapes = shapes, .memory = mem_total()};
    char path[4096];
    snprintf(path, sizeof path, "%s", name);
    if (shapes && text_ends(path, shapes)) /* the file's own name */
        path[strlen(path) - strlen(shapes) - 1] = 0;
    in.path = path;
    Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, length, bytes);
    enum status status = failed ? status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory")
                                : check_model(&in, model, &arena, &room);
    if (status == STATUS_OK && !names_are_whole(&onnx__model_proto__descriptor, bytes, length))
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found a name with a byte 0 in it, expected text", path);
    if (status == STATUS_OK)
        status = import_any(&in, name, out, batch);
    if (status != STATUS_OK)
        names_clean(status_last()->message);
    onnx__model_proto__free_unpacked(model, &allocator);
    arena_free(&arena);
    return status;
}

enum status onnx_read(const char *spec, struct network **out)
{
    const char *named = network_onnx_end(spec), *end = named ? named : spec + strlen(spec);
    struct text path = {0};
    void *bytes = NULL;
    size_t length = 0;
    text_add_bytes(&path, spec, (size_t)(end - spec));
    enum status status = text_done(&path);
    if (status == STATUS_OK)
        status = file_load(text_of(&path), &bytes, &length);
    if (status == STATUS_OK)
        status = onnx_parse(spec, bytes, length, *end ? end + 1 : NULL, out, NULL);
    mem_free(bytes);
    text_free(&path);
    return status;
}
