/* exports_image.c: layers over images, and those over time, as ONNX has them. */
#include "nn/formats/onnx/exporter.h"

#include "base/memory.h"

#include <string.h>

export_writer export_conv, export_pool, export_global_pool, export_max_unpool, export_batch_norm,
    export_lrn, export_recurrent;

/* HxW, or one number for both. */
static void read_pair(const struct export *ex, const char *argument, int64_t out[2])
{
    const struct layer_list *list = export_list(ex, argument);
    out[0] = list->items[0];
    out[1] = list->items[list->count - 1];
}

static void write_pads(struct export *ex, const int64_t before[2], const int64_t behind[2])
{
    export_ints(ex, "pads", (int64_t[]){before[0], before[1], behind[0], behind[1]}, 4);
}

enum status export_conv(struct export *ex)
{
    int64_t kernel[2], stride[2], pad[2], dilation[2], more[2];
    bool transposed = !strcmp(ex->layer->kind->name, "conv_transpose");
    const char *bias = export_value(ex, "bias") != 0 ? export_param(ex, "bias", NULL) : NULL;
    read_pair(ex, "kernel", kernel);
    read_pair(ex, "stride", stride);
    read_pair(ex, "pad", pad);
    read_pair(ex, "dilation", dilation);
    const char *const inputs[] = {export_input(ex, 0), export_param(ex, "weight", NULL), bias};
    export_node(ex, transposed ? "ConvTranspose" : "Conv", ex->output, inputs, bias ? 3 : 2);
    export_ints(ex, "kernel_shape", kernel, 2);
    export_ints(ex, "strides", stride, 2);
    export_ints(ex, "dilations", dilation, 2);
    write_pads(ex, pad, pad);
    export_int(ex, "group", (int64_t)export_value(ex, "groups"));
    if (transposed) {
        read_pair(ex, "output_pad", more);
        export_ints(ex, "output_padding", more, 2);
    }
    return STATUS_OK;
}

/* Windows that end beyond the image are given a wider pad behind it: ceil_mode means this in one
 * program and that in another. Only where the pad counts must it be ceil_mode. */
enum status export_pool(struct export *ex)
{
    int64_t window[2], stride[2], pad[2], behind[2];
    bool max = !strcmp(ex->layer->kind->name, "max_pool"), wider = false;
    struct shape in = export_shape(ex, 0), out = export_gives(ex);
    read_pair(ex, "window", window);
    read_pair(ex, "stride", stride);
    read_pair(ex, "pad", pad);
    bool count_pad = !max && export_value(ex, "count_pad") != 0;
    for (int i = 0; i < 2; i++) {
        stride[i] = stride[i] ? stride[i] : window[i];
        int64_t needed = (out.dim[i + 2] - 1) * stride[i] + window[i] - in.dim[i + 2] - pad[i];
        behind[i] = needed > pad[i] ? needed : pad[i];
        wider |= needed > pad[i];
    }
    export_node(ex, max ? "MaxPool" : "AveragePool", ex->output,
                EXPORT_INPUTS(export_input(ex, 0)));
    export_ints(ex, "kernel_shape", window, 2);
    export_ints(ex, "strides", stride, 2);
    write_pads(ex, pad, wider && count_pad ? pad : behind);
    if (wider && count_pad)
        export_int(ex, "ceil_mode", 1);
    if (count_pad)
        export_int(ex, "count_include_pad", 1);
    return STATUS_OK;
}

enum status export_global_pool(struct export *ex)
{
    bool max = !strcmp(ex->layer->kind->name, "global_max_pool");
    const char *pooled = export_node(ex, max ? "GlobalMaxPool" : "GlobalAveragePool",
                                     export_part(ex), EXPORT_INPUTS(export_input(ex, 0)));
    export_reshape(ex, pooled, export_gives(ex), ex->output);
    return STATUS_OK;
}

/* The places are a second output of the pooling node, which was written before. */
enum status export_max_unpool(struct export *ex)
{
    const struct layer *layer = ex->layer, *pool = &ex->network->layers[layer->inputs[1]];
    int64_t window[2], stride[2], pad[2], behind[2];
    const char *places = export_name(ex, arena_format(&ex->arena, "%s/places", pool->name));
    ex->layer = pool;
    read_pair(ex, "window", window);
    read_pair(ex, "stride", stride);
    read_pair(ex, "pad", pad);
    const char *image = export_input(ex, 0);
    struct shape in = export_shape(ex, 0), out = export_gives(ex);
    ex->layer = layer;
    for (int i = 0; i < 2; i++) {
        stride[i] = stride[i] ? stride[i] : window[i];
        int64_t beyond = (out.dim[i + 2] - 1) * stride[i] + window[i] - in.dim[i + 2] - pad[i];
        behind[i] = beyond > 0 ? beyond : 0;
        if (stride[i] < window[i])
            FAIL(STATUS_UNSUPPORTED, "windows of '%s' overlap: ONNX does not add up what meets",
                 pool->name);
    }
    export_second(ex, pool->name, places);
    const char *size = export_node(ex, "Shape", export_part(ex), EXPORT_INPUTS(image));
    export_node(ex, "MaxUnpool", ex->output, EXPORT_INPUTS(export_input(ex, 0), places, size));
    export_ints(ex, "kernel_shape", window, 2);
    export_ints(ex, "strides", stride, 2);
    write_pads(ex, pad, behind);
    return STATUS_OK;
}

enum status export_batch_norm(struct export *ex)
{
    export_node(ex, "BatchNormalization", ex->output,
                EXPORT_INPUTS(export_input(ex, 0), export_param(ex, "scale", NULL),
                              export_param(ex, "shift", NULL), export_param(ex, "mean", NULL),
                              export_param(ex, "variance", NULL)));
    export_real(ex, "epsilon", (float)export_value(ex, "epsilon"));
    export_real(ex, "momentum", (float)(1 - export_value(ex, "momentum")));
    return STATUS_OK;
}

enum status export_lrn(struct export *ex)
{
    if ((int64_t)export_value(ex, "size") % 2 == 0)
        FAIL(STATUS_UNSUPPORTED, "its size is even: ONNX puts the middle elsewhere");
    export_node(ex, "LRN", ex->output, EXPORT_INPUTS(export_input(ex, 0)));
    export_int(ex, "size", (int64_t)export_value(ex, "size"));
    export_real(ex, "alpha", (float)export_value(ex, "alpha"));
    export_real(ex, "beta", (float)export_value(ex, "beta"));
    export_real(ex, "bias", (float)export_value(ex, "k"));
    return STATUS_OK;
}

/* Gates in ONNX's order, their weights as rows: [1, gates · units, in]; both biases in one. */
struct gates {
    const char *op;
    int64_t count;
    int order[4]; /* where ONNX's are in ours */
};

static enum status turn_weight(struct export *ex, const struct gates *gates, const char *from,
                               const char *name, int64_t units, int64_t inputs, const char **out)
{
    const float *w = export_values(ex, from);
    int64_t width = gates->count * units;
    float *turned = mem_array((size_t)(width * inputs), sizeof *turned);
    NEED(turned);
    for (int64_t row = 0; row < width; row++)
        for (int64_t i = 0; i < inputs; i++)
            turned[row * inputs + i] =
                w[i * width + gates->order[row / units] * units + row % units];
    *out = export_reals(ex, name, turned, SHAPE(1, width, inputs));
    mem_free(turned);
    return STATUS_OK;
}

static enum status turn_biases(struct export *ex, const struct gates *gates, int64_t units,
                               const char **out)
{
    int64_t width = gates->count * units;
    float *both = mem_array((size_t)(2 * width), sizeof *both);
    NEED(both);
    for (int64_t i = 0; i < 2 * width; i++) {
        const float *from = export_values(ex, i < width ? "input_bias" : "state_bias");
        int64_t row = i % width;
        both[i] = from[gates->order[row / units] * units + row % units];
    }
    *out = export_reals(ex, "B", both, SHAPE(1, 2 * width));
    mem_free(both);
    return STATUS_OK;
}

/* Time is ONNX's first dimension. */
enum status export_recurrent(struct export *ex)
{
    static const struct gates kinds[] = {
        {"RNN", 1, {0}}, {"GRU", 3, {1, 0, 2}}, {"LSTM", 4, {0, 3, 1, 2}}};
    const char *kind = ex->layer->kind->name, *w = NULL, *r = NULL, *b = NULL;
    const struct gates *gates = &kinds[!strcmp(kind, "rnn") ? 0 : !strcmp(kind, "gru") ? 1 : 2];
    struct shape in = export_shape(ex, 0);
    int64_t units = (int64_t)export_value(ex, "units");
    bool last = export_value(ex, "output") != 0;
    TRY(turn_weight(ex, gates, "input_weight", "W", units, in.dim[2], &w));
    TRY(turn_weight(ex, gates, "state_weight", "R", units, units, &r));
    TRY(turn_biases(ex, gates, units, &b));
    const int64_t turn[] = {1, 0, 2};
    const char *x =
        export_node(ex, "Transpose", export_part(ex), EXPORT_INPUTS(export_input(ex, 0)));
    export_ints(ex, "perm", turn, 3);
    const char *y = export_part(ex);
    export_node(ex, gates->op, last ? "" : y, EXPORT_INPUTS(x, w, r, b));
    if (last)
        export_second(ex, "", y);
    export_int(ex, "hidden_size", units);
    if (gates->count == 3)
        export_int(ex, "linear_before_reset", 1);
    if (gates->count == 1 && export_value(ex, "function") != 0)
        export_words(ex, "activations", "Relu");
    const int64_t axis[] = {last ? 0 : 1};
    const char *axes = export_wholes(ex, axis, 1);
    if (last) {
        export_node(ex, "Squeeze", ex->output, EXPORT_INPUTS(y, axes));
        return STATUS_OK;
    }
    const char *steps = export_node(ex, "Squeeze", export_part(ex), EXPORT_INPUTS(y, axes));
    export_node(ex, "Transpose", ex->output, EXPORT_INPUTS(steps));
    export_ints(ex, "perm", turn, 3);
    return STATUS_OK;
}
