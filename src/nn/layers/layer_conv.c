/* layer_conv.c: convolution and transposed convolution of images, with PyTorch's sizes. Weights are
 * [out][in/groups][h][w], of the transposed one [in][out/groups][h][w]. Weights and biases start
 * uniform in ±1/√(second dimension · h · w), as PyTorch's do. */
#include "nn/layers/layer_image.h"

#include <math.h>

layer_emitter emit_conv, emit_conv_transpose;

enum { CHANNELS, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS, OUTPUT_PAD };

/* What both kinds are told. */
struct conv {
    struct shape x; /* [batch, in, height, width] */
    int64_t in, out, groups;
    struct slide slide;
};

/* Both numbers of channels must divide into the groups. */
static bool read_groups(struct layer_emit *emit, struct conv *conv)
{
    double value = emit->layer->values[GROUPS];
    conv->groups = value >= 1 && value <= (double)conv->in ? (int64_t)value : 0;
    if (conv->groups && (double)conv->groups == value && conv->in % conv->groups == 0 &&
        conv->out % conv->groups == 0)
        return true;
    draft_fail(emit->draft, STATUS_INPUT,
               "%s: groups is %g, expected a divisor of its %lld input and %lld output channels",
               emit->layer->name, value, (long long)conv->in, (long long)conv->out);
    return false;
}

static bool read_conv(struct layer_emit *emit, struct conv *conv)
{
    struct slide *slide = &conv->slide;
    if (!image_input(emit, &conv->x))
        return false;
    slide->ceil = false;
    conv->in = conv->x.dim[1];
    conv->out = (int64_t)emit->layer->values[CHANNELS];
    return image_pair(emit, KERNEL, "kernel", 1, &slide->window) &&
           image_pair(emit, STRIDE, "stride", 1, &slide->stride) &&
           image_pair(emit, PAD, "pad", 0, &slide->pad) &&
           image_pair(emit, DILATION, "dilation", 1, &slide->dilation) && read_groups(emit, conv);
}

/* The op, with weights [first][second][h][w], and what it gives: images of this size. */
static int32_t write_conv(struct layer_emit *emit, enum op_kind kind, const struct conv *conv,
                          int64_t first, int64_t second, struct pair size)
{
    const struct slide *slide = &conv->slide;
    int64_t window = slide->window.h * slide->window.w;
    struct init usual = {INIT_UNIFORM, 1.0f / sqrtf((float)second * (float)window)};
    struct shape shape = SHAPE(first, second, slide->window.h, slide->window.w);
    struct init init = layer_init(emit, usual, second * window, first * window);
    int32_t w = kind == OP_conv && conv->groups == 1 ? layer_matrix(emit, "weight", shape, init)
                                                     : layer_param(emit, "weight", shape, init);
    int32_t b = -1;
    if (emit->layer->values[BIAS] != 0)
        b = layer_param(emit, "bias", SHAPE(conv->out), usual);
    int32_t y = layer_output(emit, SHAPE(conv->x.dim[0], conv->out, size.h, size.w));
    int32_t x = emit->inputs[0];
    if (kind == OP_conv) {
        x = layer_rounded_input(emit, x);
        w = layer_rounded_weight(emit, w, second * window, first);
    }
    struct op *op = draft_op(emit->draft, kind, IN(x, w, b), OUT(y));
    op->attr.conv.stride_h = (int32_t)slide->stride.h; /* those of conv_t are the same */
    op->attr.conv.stride_w = (int32_t)slide->stride.w;
    op->attr.conv.pad_h = (int32_t)slide->pad.h;
    op->attr.conv.pad_w = (int32_t)slide->pad.w;
    op->attr.conv.dilation_h = (int32_t)slide->dilation.h;
    op->attr.conv.dilation_w = (int32_t)slide->dilation.w;
    return y;
}

int32_t emit_conv(struct layer_emit *emit)
{
    struct conv conv;
    struct pair size;
    if (!read_conv(emit, &conv) || !image_places(emit, &conv.x, &conv.slide, &size))
        return -1;
    return write_conv(emit, OP_conv, &conv, conv.out, conv.in / conv.groups, size);
}

/* The size of the image of which a convolution would make the input; output_pad says which of the
 * several that it would. */
static bool transposed_size(struct layer_emit *emit, const struct conv *conv, struct pair *out)
{
    const struct slide *slide = &conv->slide;
    struct pair extent = image_extent(slide), more;
    if (!image_pair(emit, OUTPUT_PAD, "output_pad", 0, &more))
        return false;
    out->h = (conv->x.dim[2] - 1) * slide->stride.h - 2 * slide->pad.h + extent.h + more.h;
    out->w = (conv->x.dim[3] - 1) * slide->stride.w - 2 * slide->pad.w + extent.w + more.w;
    bool fits_h = more.h < slide->stride.h || more.h < slide->dilation.h;
    bool fits_w = more.w < slide->stride.w || more.w < slide->dilation.w;
    if (!fits_h || !fits_w)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: output_pad is %lldx%lld, expected less than the stride or the dilation",
                   emit->layer->name, (long long)more.h, (long long)more.w);
    else if (out->h < 1 || out->w < 1)
        draft_fail(emit->draft, STATUS_INPUT,
                   "%s: its output would be %lldx%lld, expected 1x1 or more; pad is too large",
                   emit->layer->name, (long long)out->h, (long long)out->w);
    return emit->draft->status == STATUS_OK;
}

int32_t emit_conv_transpose(struct layer_emit *emit)
{
    struct conv conv;
    struct pair size;
    if (!read_conv(emit, &conv) || !transposed_size(emit, &conv, &size))
        return -1;
    return write_conv(emit, OP_conv_t, &conv, conv.in, conv.out / conv.groups, size);
}
