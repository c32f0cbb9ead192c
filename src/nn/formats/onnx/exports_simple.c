/* exports_simple.c: layers that work element by element, move elements or multiply matrices, as
 * ONNX has them. */
#include "nn/formats/onnx/exporter.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { WHOLE = 7, TRUTH = 9 }; /* how ONNX counts the types int64 and bool */

export_writer export_dense, export_activation, export_gelu, export_dropout, export_layer_norm,
    export_reshape_layer, export_transpose, export_slice, export_concat, export_reduce, export_pair,
    export_clip, export_mask, export_matmul, export_softmax, export_embedding, export_position,
    export_parameter, export_gather;

enum status export_dense(struct export *ex)
{
    const char *x = export_input(ex, 0), *w = export_param(ex, "weight", NULL);
    const char *b = export_value(ex, "bias") != 0 ? export_param(ex, "bias", NULL) : NULL;
    if (export_shape(ex, 0).rank == 2) {
        const char *const inputs[] = {x, w, b};
        export_node(ex, "Gemm", ex->output, inputs, b ? 3 : 2);
        return STATUS_OK;
    }
    const char *product =
        export_node(ex, "MatMul", b ? export_part(ex) : ex->output, EXPORT_INPUTS(x, w));
    if (b)
        export_node(ex, "Add", ex->output, EXPORT_INPUTS(product, b));
    return STATUS_OK;
}

enum status export_activation(struct export *ex)
{
    static const char *const ops[][2] = {
        {"sigmoid", "Sigmoid"},       {"tanh", "Tanh"}, {"relu", "Relu"}, {"softplus", "Softplus"},
        {"leaky_relu", "LeakyRelu"},  {"elu", "Elu"},   {"erf", "Erf"},   {"sqrt", "Sqrt"},
        {"reciprocal", "Reciprocal"}, {"exp", "Exp"},   {"log", "Log"},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i][0], ex->layer->kind->name))
            export_node(ex, ops[i][1], ex->output, EXPORT_INPUTS(export_input(ex, 0)));
    if (*ex->layer->kind->arguments)
        export_real(ex, "alpha", (float)ex->layer->values[0]);
    return STATUS_OK;
}

/* What is no bound is left out. */
enum status export_clip(struct export *ex)
{
    const char *bounds[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const float bound = (float)ex->layer->values[i];
        if (fabs(ex->layer->values[i]) < BOUND_NONE)
            bounds[i] = export_constant(ex, &bound, (struct shape){0});
    }
    export_node(ex, "Clip", ex->output, EXPORT_INPUTS(export_input(ex, 0), bounds[0], bounds[1]));
    return STATUS_OK;
}

/* Opset 17 has none: x · (1 + erf(x / √2)) · ½. */
enum status export_gelu(struct export *ex)
{
    const float numbers[] = {(float)sqrt(2), 1, 0.5f};
    const struct shape one = {0};
    const char *x = export_input(ex, 0);
    const char *root = export_constant(ex, &numbers[0], one);
    const char *unit = export_constant(ex, &numbers[1], one);
    const char *half = export_constant(ex, &numbers[2], one);
    const char *at = export_node(ex, "Div", export_part(ex), EXPORT_INPUTS(x, root));
    at = export_node(ex, "Erf", export_part(ex), EXPORT_INPUTS(at));
    at = export_node(ex, "Add", export_part(ex), EXPORT_INPUTS(at, unit));
    at = export_node(ex, "Mul", export_part(ex), EXPORT_INPUTS(x, at));
    export_node(ex, "Mul", ex->output, EXPORT_INPUTS(at, half));
    return STATUS_OK;
}

enum status export_dropout(struct export *ex)
{
    const float rate = (float)export_value(ex, "rate");
    const char *ratio = export_constant(ex, &rate, (struct shape){0});
    export_node(ex, "Dropout", ex->output, EXPORT_INPUTS(export_input(ex, 0), ratio));
    return STATUS_OK;
}

enum status export_layer_norm(struct export *ex)
{
    export_node(ex, "LayerNormalization", ex->output,
                EXPORT_INPUTS(export_input(ex, 0), export_param(ex, "scale", NULL),
                              export_param(ex, "shift", NULL)));
    export_int(ex, "axis", -1);
    export_real(ex, "epsilon", (float)export_value(ex, "epsilon"));
    return STATUS_OK;
}

enum status export_reshape_layer(struct export *ex)
{
    export_reshape(ex, export_input(ex, 0), export_gives(ex), ex->output);
    return STATUS_OK;
}

enum status export_transpose(struct export *ex)
{
    const struct layer_list *axes = export_list(ex, "axes");
    int64_t perm[SHAPE_MOST] = {0};
    memcpy(perm + 1, axes->items, (size_t)axes->count * sizeof *perm);
    export_node(ex, "Transpose", ex->output, EXPORT_INPUTS(export_input(ex, 0)));
    export_ints(ex, "perm", perm, (size_t)axes->count + 1);
    return STATUS_OK;
}

/* An axis as the text has it: -1 is the last. */
static int64_t axis_of(const struct export *ex)
{
    int64_t axis = (int64_t)export_value(ex, "axis");
    return axis < 0 ? axis + export_shape(ex, 0).rank : axis;
}

enum status export_slice(struct export *ex)
{
    const int64_t from = (int64_t)export_value(ex, "from");
    const int64_t to = from + (int64_t)export_value(ex, "size"), axis = axis_of(ex);
    const char *starts = export_wholes(ex, &from, 1), *ends = export_wholes(ex, &to, 1);
    const char *axes = export_wholes(ex, &axis, 1);
    export_node(ex, "Slice", ex->output, EXPORT_INPUTS(export_input(ex, 0), starts, ends, axes));
    return STATUS_OK;
}

enum status export_concat(struct export *ex)
{
    const char *inputs[LAYER_INPUTS];
    for (int32_t i = 0; i < ex->layer->input_count; i++)
        inputs[i] = export_input(ex, i);
    export_node(ex, "Concat", ex->output, inputs, (size_t)ex->layer->input_count);
    export_int(ex, "axis", axis_of(ex));
    return STATUS_OK;
}

enum status export_reduce(struct export *ex)
{
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    int function = (int)export_value(ex, "function");
    int64_t axes[SHAPE_MOST], axis = axis_of(ex);
    size_t count = 0;
    struct shape in = export_shape(ex, 0);
    for (int64_t d = 1; d < in.rank; d++)
        if (axis == 0 || d == axis)
            axes[count++] = d;
    const char *x = export_input(ex, 0), *reduced = export_part(ex);
    if (function ==
        REDUCTION_SUM) { /* its axes are an input since opset 13, those of the others not */
        export_node(ex, ops[function], reduced,
                    EXPORT_INPUTS(x, export_wholes(ex, axes, (int64_t)count)));
    } else {
        export_node(ex, ops[function], reduced, EXPORT_INPUTS(x));
        export_ints(ex, "axes", axes, count);
    }
    export_reshape(ex, reduced, export_gives(ex), ex->output);
    return STATUS_OK;
}

enum status export_pair(struct export *ex)
{
    const char *kind = ex->layer->kind->name;
    const char *op = !strcmp(kind, "add") ? "Add" : !strcmp(kind, "divide") ? "Div" : "Mul";
    export_node(ex, op, ex->output, EXPORT_INPUTS(export_input(ex, 0), export_input(ex, 1)));
    return STATUS_OK;
}

/* Where(keep, x, 0) */
enum status export_mask(struct export *ex)
{
    struct shape shape = export_gives(ex);
    shape.dim[0] = 1;
    int64_t count = shape_count(&shape);
    const float *keep = export_values(ex, "keep"), zero = 0;
    float *numbers = mem_array((size_t)count, sizeof *numbers);
    NEED(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = keep[i] > 0 ? 1 : 0;
    const char *known = export_constant(ex, numbers, shape);
    mem_free(numbers);
    const char *condition = export_node(ex, "Cast", export_part(ex), EXPORT_INPUTS(known));
    export_int(ex, "to", TRUTH);
    export_node(ex, "Where", ex->output,
                EXPORT_INPUTS(condition, export_input(ex, 0),
                              export_constant(ex, &zero, (struct shape){0})));
    return STATUS_OK;
}

/* With its last two dimensions exchanged. */
static const char *turn(struct export *ex, const char *x, int32_t rank)
{
    int64_t perm[SHAPE_MOST];
    for (int32_t d = 0; d < rank; d++)
        perm[d] = d == rank - 1 ? rank - 2 : d == rank - 2 ? rank - 1 : d;
    const char *turned = export_node(ex, "Transpose", export_part(ex), EXPORT_INPUTS(x));
    export_ints(ex, "perm", perm, (size_t)rank);
    return turned;
}

enum status export_matmul(struct export *ex)
{
    int transposed = (int)export_value(ex, "transpose"); /* none, first, second */
    const float scale = (float)export_value(ex, "scale");
    int32_t rank = export_shape(ex, 0).rank;
    const char *a = export_input(ex, 0), *b = export_input(ex, 1);
    if (transposed == 1)
        a = turn(ex, a, rank);
    if (transposed == 2)
        b = turn(ex, b, rank);
    if (scale == 1) {
        export_node(ex, "MatMul", ex->output, EXPORT_INPUTS(a, b));
        return STATUS_OK;
    }
    const char *product = export_node(ex, "MatMul", export_part(ex), EXPORT_INPUTS(a, b));
    const char *number = export_constant(ex, &scale, (struct shape){0});
    export_node(ex, "Mul", ex->output, EXPORT_INPUTS(product, number));
    return STATUS_OK;
}

/* Scores that must not be seen are given -infinity first. */
enum status export_softmax(struct export *ex)
{
    const char *x = export_input(ex, 0);
    struct shape shape = export_shape(ex, 0);
    int64_t time = shape.dim[shape.rank - 1];
    if (export_value(ex, "causal") != 0) {
        float *mask = mem_array((size_t)(time * time), sizeof *mask);
        NEED(mask);
        for (int64_t i = 0; i < time * time; i++)
            mask[i] = i % time > i / time ? -HUGE_VALF : 0;
        const char *hidden = export_constant(ex, mask, SHAPE(time, time));
        mem_free(mask);
        x = export_node(ex, "Add", export_part(ex), EXPORT_INPUTS(x, hidden));
    }
    export_node(ex, "Softmax", ex->output, EXPORT_INPUTS(x));
    export_int(ex, "axis", -1);
    return STATUS_OK;
}

enum status export_embedding(struct export *ex)
{
    export_node(ex, "Gather", ex->output,
                EXPORT_INPUTS(export_param(ex, "weight", NULL), export_input(ex, 0)));
    return STATUS_OK;
}

enum status export_position(struct export *ex)
{
    export_node(ex, "Add", ex->output,
                EXPORT_INPUTS(export_input(ex, 0), export_param(ex, "weight", NULL)));
    return STATUS_OK;
}

/* As many times as there are samples: the shape begins with that of the input. */
enum status export_parameter(struct export *ex)
{
    struct shape shape = export_gives(ex);
    const int64_t first = 0;
    const char *numbers = export_value(ex, "learnt") != 0
                              ? export_param(ex, "weight", &shape)
                              : export_constant(ex, export_values(ex, "weight"), shape);
    const char *sizes = export_node(ex, "Shape", export_part(ex), EXPORT_INPUTS("input"));
    sizes = export_node(ex, "Gather", export_part(ex),
                        EXPORT_INPUTS(sizes, export_wholes(ex, &first, 1)));
    sizes = export_node(ex, "Concat", export_part(ex),
                        EXPORT_INPUTS(sizes, export_wholes(ex, shape.dim + 1, shape.rank - 1)));
    export_int(ex, "axis", 0);
    export_node(ex, "Expand", ex->output, EXPORT_INPUTS(numbers, sizes));
    return STATUS_OK;
}

enum status export_gather(struct export *ex)
{
    const int64_t last = 2;
    const char *picks =
        export_node(ex, "Cast", export_part(ex), EXPORT_INPUTS(export_input(ex, 1)));
    export_int(ex, "to", WHOLE); /* no other will do */
    picks = export_node(ex, "Unsqueeze", export_part(ex),
                        EXPORT_INPUTS(picks, export_wholes(ex, &last, 1)));
    export_node(ex, "GatherND", ex->output, EXPORT_INPUTS(export_input(ex, 0), picks));
    export_int(ex, "batch_dims", 1);
    return STATUS_OK;
}
