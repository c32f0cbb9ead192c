/* test_onnx_nodes.c: the ONNX project's own tests of operators (Debian: libonnx-testdata), those
 * over float or double of operators that there are here: each is a model of one node with inputs
 * and the outputs they must give. All inputs but the first become known numbers of the model, as
 * weights are; of Range, whose inputs say how large its output is, all, and what the model is
 * given, a zero, is added. What has no element is left out: it compares nothing. All must come out
 * right but those that are named below, which must be refused. */
#include "onnx.pb-c.h"

#include "base/file.h"
#include "base/memory.h"
#include "nn/formats/onnx.h"
#include "rig.h"

#include <dirent.h>

#define FOLDER "/usr/share/libonnx-testdata/data/node"

enum {
    FLOATS = 1,
    BYTES = 2,
    SIGNED_BYTES = 3,
    WHOLES = 6,
    DOUBLES = 11,
    PATH = 600,
    PASS_LEAST = 491
};

/* Operators that become layers, and those that are worked out when a file is read. */
static const char *const operators[] = {
#define NODE(op, inputs, writer) #op,
#include "nn/formats/onnx/nodes.def"
#undef NODE
    "Constant",
    "ConstantOfShape",
    "Equal",
    "Range",
    "Shape",
    "Size",
    "QLinearConv",
    "QLinearMatMul",
    "ConvInteger",
    "MatMulInteger",
    "DynamicQuantizeLinear",
};

/* Refused: one rounds each channel of the data on a scale of its own; two have 7 dimensions, of
 * which a tensor has at most 6 here; the others compare with one drawing of NumPy's random numbers,
 * which ONNX does not define. */
static const char *const refused[] = {
    "test_nllloss_NCd1d2d3d4d5_mean_weight_expanded",
    "test_nllloss_NCd1d2d3d4d5_none_no_weight_expanded",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
    "test_quantizelinear_axis",
};

struct trial {
    Onnx__ModelProto *model;
    struct text bytes;
    Onnx__TensorProto *inputs[16], *output;
    size_t input_count;
};

static bool read_tensor(const char *test, const char *which, size_t i, Onnx__TensorProto **out)
{
    char path[PATH];
    struct text bytes = {0};
    *out = NULL;
    snprintf(path, sizeof path, FOLDER "/%s/test_data_set_0/%s_%zu.pb", test, which, i);
    if (file_exists(path) && file_read(path, 1 << 26, &bytes) == STATUS_OK)
        *out = onnx__tensor_proto__unpack(NULL, bytes.length, (const uint8_t *)text_of(&bytes));
    text_free(&bytes);
    return *out != NULL;
}

static int64_t elements(const Onnx__TensorProto *tensor)
{
    int64_t count = 1;
    for (size_t d = 0; d < tensor->n_dims; d++)
        count *= tensor->dims[d];
    return count;
}

static bool is_real(const Onnx__TensorProto *tensor)
{
    return tensor && (tensor->data_type == FLOATS || tensor->data_type == DOUBLES);
}

/* Whole numbers of what computes in 8 bits. */
static bool is_level(const Onnx__TensorProto *tensor)
{
    return tensor && (tensor->data_type == BYTES || tensor->data_type == SIGNED_BYTES ||
                      tensor->data_type == WHOLES);
}

static bool computes_in_8_bits(const Onnx__GraphProto *graph)
{
    const char *op = graph->node[0]->op_type;
    return graph->n_node == 1 && (strstr(op, "Linear") || strstr(op, "Integer"));
}

/* Is it a model that there should be here, over real numbers, with one to compare? */
static bool concerns(const struct trial *trial)
{
    const Onnx__GraphProto *graph = trial->model->graph;
    for (size_t n = 0; n < graph->n_node; n++) {
        bool known = false;
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
            known |= !strcmp(operators[i], graph->node[n]->op_type);
        if (!known || (graph->node[n]->domain && *graph->node[n]->domain))
            return false;
    }
    return trial->input_count && graph->n_input && graph->input[0]->type->tensor_type &&
           (is_real(trial->inputs[0]) ||
            (is_level(trial->inputs[0]) && computes_in_8_bits(graph))) &&
           (is_real(trial->output) || (is_level(trial->output) && computes_in_8_bits(graph))) &&
           elements(trial->output) > 0;
}

static bool trial_open(struct trial *trial, const char *test)
{
    char path[PATH];
    *trial = (struct trial){0};
    snprintf(path, sizeof path, FOLDER "/%s/model.onnx", test);
    if (!file_exists(path) || !CHECK_OK(file_read(path, 1 << 26, &trial->bytes)))
        return false;
    trial->model = onnx__model_proto__unpack(NULL, trial->bytes.length,
                                             (const uint8_t *)text_of(&trial->bytes));
    if (!CHECK(trial->model))
        return false;
    while (trial->input_count < 16 &&
           read_tensor(test, "input", trial->input_count, &trial->inputs[trial->input_count]))
        trial->input_count++;
    read_tensor(test, "output", 0, &trial->output);
    return true;
}

static void trial_close(struct trial *trial)
{
    for (size_t i = 0; i < trial->input_count; i++)
        onnx__tensor_proto__free_unpacked(trial->inputs[i], NULL);
    if (trial->output)
        onnx__tensor_proto__free_unpacked(trial->output, NULL);
    if (trial->model)
        onnx__model_proto__free_unpacked(trial->model, NULL);
    text_free(&trial->bytes);
}

/* Makes all inputs numbers of the graph, which is given one of its own, and adds that. */
struct added {
    Onnx__NodeProto add, *nodes[2];
    Onnx__ValueInfoProto x, y, *xs[1], *ys[1];
    Onnx__TypeProto type;
    Onnx__TensorTypeProto tensor;
    Onnx__TensorShapeProto shape;
    Onnx__DimensionProto one, *dims[1];
    char *inputs[2], *outputs[1];
};

static void add_input(struct added *added, Onnx__GraphProto *graph)
{
    static char number[] = "number", sum[] = "sum", op[] = "Add";
    onnx__dimension_proto__init(&added->one);
    added->one.has_dim_value = true;
    added->one.dim_value = 1;
    added->dims[0] = &added->one;
    onnx__tensor_shape_proto__init(&added->shape);
    added->shape.dim = added->dims;
    added->shape.n_dim = 1;
    added->tensor = *graph->input[0]->type->tensor_type;
    added->tensor.shape = &added->shape;
    onnx__type_proto__init(&added->type);
    added->type.tensor_type = &added->tensor;
    added->x = *graph->input[0];
    added->x.type = &added->type;
    added->x.name = added->inputs[0] = number;
    added->y = *graph->output[0];
    added->inputs[1] = added->y.name;
    added->y.name = added->outputs[0] = sum;
    onnx__node_proto__init(&added->add);
    added->add.op_type = op;
    added->add.input = added->inputs;
    added->add.n_input = 2;
    added->add.output = added->outputs;
    added->add.n_output = 1;
    added->nodes[0] = graph->node[0];
    added->nodes[1] = &added->add;
    added->xs[0] = &added->x;
    added->ys[0] = &added->y;
    graph->node = added->nodes;
    graph->n_node = 2;
    graph->input = added->xs;
    graph->output = added->ys;
    graph->n_input = graph->n_output = 1;
}

/* The model's bytes with all inputs but the first as numbers in it. */
static void fix_inputs(struct trial *trial)
{
    Onnx__GraphProto graph = *trial->model->graph;
    Onnx__ModelProto model = *trial->model;
    Onnx__TensorProto *known[16], copies[16];
    struct added added;
    bool all = !strcmp(graph.node[0]->op_type, "Range");
    size_t count = 0;
    for (size_t i = !all; i < trial->input_count && i < graph.n_input; i++) {
        copies[count] = *trial->inputs[i];
        copies[count].name = graph.input[i]->name;
        known[count] = &copies[count];
        count++;
    }
    graph.initializer = known;
    graph.n_initializer = count;
    if (all)
        add_input(&added, &graph);
    model.graph = &graph;
    size_t size = onnx__model_proto__get_packed_size(&model);
    uint8_t *packed = mem_alloc(size);
    onnx__model_proto__pack(&model, packed);
    text_clear(&trial->bytes);
    text_add_bytes(&trial->bytes, packed, size);
    mem_free(packed);
    if (all)
        memset(trial->inputs[0]->raw_data.data, 0, trial->inputs[0]->raw_data.len);
}

/* The elements, those of a sample together: `batch` is the dimension that counts samples, or -1. */
static float *by_sample(const Onnx__TensorProto *tensor, int32_t batch, int64_t *samples,
                        int64_t *count)
{
    int64_t before = 1, behind = 1;
    *samples = 1;
    for (size_t d = 0; d < tensor->n_dims; d++)
        *((int32_t)d < batch    ? &before
          : (int32_t)d == batch ? samples
                                : &behind) *= tensor->dims[d];
    *count = before * *samples * behind;
    float *to = mem_array((size_t)*count + 1, sizeof *to);
    for (int64_t i = 0; i < *count; i++) {
        int64_t from = (i / behind % before * *samples + i / behind / before) * behind + i % behind;
        double number;
        int32_t whole;
        if (is_level(tensor)) {
            const uint8_t *raw = tensor->raw_data.data;
            if (tensor->data_type == WHOLES && tensor->has_raw_data)
                memcpy(&whole, raw + 4 * from, 4);
            else if (!tensor->has_raw_data)
                whole = tensor->int32_data[from];
            else
                whole = tensor->data_type == BYTES ? raw[from] : (int8_t)raw[from];
            to[i] = (float)whole;
        } else if (tensor->has_raw_data && tensor->data_type == DOUBLES) {
            memcpy(&number, tensor->raw_data.data + 8 * from, 8);
            to[i] = (float)number;
        } else if (tensor->has_raw_data) {
            memcpy(&to[i], tensor->raw_data.data + 4 * from, 4);
        } else {
            to[i] = tensor->data_type == DOUBLES ? (float)tensor->double_data[from]
                                                 : tensor->float_data[from];
        }
    }
    return to;
}

static bool is_refused(const char *test)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(test, refused[i]))
            return true;
    return false;
}

/* Does the network give the output, as near as the ONNX project asks? */
static bool run(struct rig *rig, const struct network *network, struct onnx_batch batch,
                const struct trial *trial)
{
    struct params params;
    struct program *program = NULL;
    struct ready ready = {0};
    int64_t samples, inputs, rows, outputs;
    float *x = by_sample(trial->inputs[0], batch.input, &samples, &inputs);
    float *expected = by_sample(trial->output, batch.output, &rows, &outputs);
    float *y = mem_array((size_t)outputs + 1, sizeof *y);
    struct compile_options options = {.batch = (int32_t)samples};
    params_init(&params, DTYPE_F32);
    bool right = false;
    if (CHECK_OK(network_compile(network, &params, &options, &program)) &&
        CHECK_OK(params_fill(&params, 1)) && ready_open(&ready, rig, &params, program) &&
        CHECK_EQUAL_INT(
            shape_count(&program->tensors[program_find(program, ROLE_OUTPUT, "y")].shape),
            outputs) &&
        ready_bind(&ready, program, (const char *[]){"x", "y"}, (void *[]){x, y},
                   (int64_t[]){samples, samples}, 2, NULL, 0, 0) &&
        ready_run(&ready, PARTS_ALL, 0, 1)) {
        right = true;
        for (int64_t i = 0; i < outputs; i++)
            right &=
                fabs((double)y[i] - (double)expected[i]) <= 1e-7 + 1e-3 * fabs((double)expected[i]);
    }
    ready_close(&ready);
    program_free(program);
    params_free(&params);
    mem_free(x);
    mem_free(expected);
    mem_free(y);
    return right;
}

static void try(struct rig *rig, const char *test, int *passed, int *not_here)
{
    struct trial trial;
    struct network *network = NULL;
    struct onnx_batch batch;
    if (trial_open(&trial, test) && concerns(&trial)) {
        fix_inputs(&trial);
        enum status status =
            onnx_parse(test, text_of(&trial.bytes), trial.bytes.length, NULL, &network, &batch);
        if (status == STATUS_OK && CHECK(!is_refused(test))) {
            bool right = run(rig, network, batch, &trial);
            *passed += right;
            if (!CHECK(right))
                printf("    %s:\n%s", test, network->text);
        } else if (status != STATUS_OK) {
            ++*not_here;
            if (!CHECK(status == STATUS_UNSUPPORTED && is_refused(test)))
                printf("    %s\n", status_message());
        }
    }
    network_free(network);
    trial_close(&trial);
}

ON_BACKENDS(operators_give_what_the_onnx_project_says)
{
    struct dirent **entries;
    int passed = 0, not_here = 0;
    int count = scandir(FOLDER, &entries, NULL, alphasort);
    if (count < 0) {
        check_skip("no " FOLDER " (Debian: libonnx-testdata)");
        return;
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.')
            try(rig, entries[i]->d_name, &passed, &not_here);
        free(entries[i]);
    }
    free(entries);
    printf("    %d pass, %d are refused\n", passed, not_here);
    CHECK(passed >= PASS_LEAST); /* of libonnx-testdata 1.12; newer ones have more */
}

CHECK_MAIN
