/* layer_conv.c: convolution and transposed convolution of images, with PyTorch's sizes. Weights are
 * [out][in/groups][h][w], of the transposed one [in][out/groups][h][w]. Weights and biases start
 * uniform in ±1/√(second dimension · h · w), as PyTorch's do. */
#include "nn/layers/layer_image.h"

#include <math.h>

layer_emitter emit_conv, emit_conv_transpose;

/* The groups both numbers of channels must divide into; 0 after a mistake. */
static int64_t read_groups(struct layer_emit *emit, int argument, int64_t in, int64_t out)
{
    double value = emit->layer->values[argument];
    int64_t groups = value >= 1 && value <= (double)in ? (int64_t)value : 0;
    if (groups && (double)groups == value && in % groups == 0 && out % groups == 0)
        return groups;
    draft_fail(emit->draft, STATUS_INPUT,
               "%s: groups is %g, expected a divisor of its %lld input and %lld output channels",
               emit->layer->name, value, (long long)in, (long long)out);
    return 0;
}

struct weights {
    int32_t w, b;
};

static struct weights declare(struct layer_emit *emit, struct shape shape, int64_t channels,
                              bool bias)
{
    float fan_in = (float)shape.dim[1] * (float)shape.dim[2] * (float)shape.dim[3];
    struct init init = {INIT_UNIFORM, 1.0f / sqrtf(fan_in)};
    struct weights weights = {.w = layer_param(emit, "weight", shape, init), .b = -1};
    if (bias)
        weights.b = layer_param(emit, "bias", SHAPE(channels), init);
    return weights;
}

static void set_slide(struct op *op, const struct slide *slide)
{
    op->attr.conv.stride_h = (int32_t)slide->stride.h;
    op->attr.conv.stride_w = (int32_t)slide->stride.w;
    op->attr.conv.pad_h = (int32_t)slide->pad.h;
    op->attr.conv.pad_w = (int32_t)slide->pad.w;
    op->attr.conv.dilation_h = (int32_t)slide->dilation.h;
    op->attr.conv.dilation_w = (int32_t)slide->dilation.w;
}

int32_t emit_conv(struct layer_emit *emit)
{
    enum { CHANNELS, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS };
    struct shape x;
    struct slide slide;
    struct pair size;
    int64_t out = (int64_t)emit->layer->values[CHANNELS];
    if (!image_input(emit, &x) || !image_pair(emit, KERNEL, "kernel", 1, &slide.window) ||
        !image_pair(emit, STRIDE, "stride", 1, &slide.stride) ||
        !image_pair(emit, PAD, "pad", 0, &slide.pad) ||
        !image_pair(emit, DILATION, "dilation", 1, &slide.dilation) ||
        !image_places(emit, &x, &slide, &size))
        return -1;
    int64_t groups = read_groups(emit, GROUPS, x.dim[1], out);
    if (!groups)
        return -1;
    struct weights weights =
        declare(emit, SHAPE(out, x.dim[1] / groups, slide.window.h, slide.window.w), out,
                emit->layer->values[BIAS] != 0);
    int32_t y = layer_output(emit, SHAPE(x.dim[0], out, size.h, size.w));
    set_slide(draft_op(emit->draft, OP_conv, IN(emit->inputs[0], weights.w, weights.b), OUT(y)),
              &slide);
    return y;
}

/* The size of the image of which a convolution would make the input; output_pad says which of the
 * several that it would. */
static bool transposed_size(struct layer_emit *emit, const struct shape *x,
                            const struct slide *slide, struct pair output_pad, struct pair *out)
{
    struct pair extent = image_extent(slide);
    out->h = (x->dim[2] - 1) * slide->stride.h - 2 * slide->pad.h + extent.h + output_pad.h;
    out->w = (x->dim[3] - 1) * slide->stride.w - 2 * slide->pad.w + extent.w + output_pad.w;
    bool fits_h = output_pad.h < slide->stride.h || output_pad.h < slide->dilation.h;
    bool fits_w = output_pad.w < slide->stride.w || output_pad.w < slide->dilation.w;
    if (!fits_h || !fits_w)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: output_pad is %lldx%lld, expected less than the stride or the dilation",
                   emit->layer->name, (long long)output_pad.h, (long long)output_pad.w);
    else if (out->h < 1 || out->w < 1)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: its output would be %lldx%lld, expected 1x1 or more; pad is too large",
                   emit->layer->name, (long long)out->h, (long long)out->w);
    return emit->draft->status == STATUS_OK;
}

int32_t emit_conv_transpose(struct layer_emit *emit)
{
    enum { CHANNELS, KERNEL, STRIDE, PAD, OUTPUT_PAD, DILATION, GROUPS, BIAS };
    struct shape x;
    struct slide slide;
    struct pair output_pad, size;
    int64_t out = (int64_t)emit->layer->values[CHANNELS];
    if (!image_input(emit, &x) || !image_pair(emit, KERNEL, "kernel", 1, &slide.window) ||
        !image_pair(emit, STRIDE, "stride", 1, &slide.stride) ||
        !image_pair(emit, PAD, "pad", 0, &slide.pad) ||
        !image_pair(emit, OUTPUT_PAD, "output_pad", 0, &output_pad) ||
        !image_pair(emit, DILATION, "dilation", 1, &slide.dilation) ||
        !transposed_size(emit, &x, &slide, output_pad, &size))
        return -1;
    int64_t groups = read_groups(emit, GROUPS, x.dim[1], out);
    if (!groups)
        return -1;
    struct weights weights =
        declare(emit, SHAPE(x.dim[1], out / groups, slide.window.h, slide.window.w), out,
                emit->layer->values[BIAS] != 0);
    int32_t y = layer_output(emit, SHAPE(x.dim[0], out, size.h, size.w));
    set_slide(draft_op(emit->draft, OP_conv_t, IN(emit->inputs[0], weights.w, weights.b), OUT(y)),
              &slide);
    return y;
}
