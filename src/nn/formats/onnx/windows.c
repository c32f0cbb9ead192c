/* windows.c: how windows move over images. See windows.h.
 *
 * Layers pad alike on both sides, ONNX need not: a wider pad is taken, whole strides wider before
 * the first place, and the places that ONNX does not have are cut off. */
#include "nn/formats/onnx/windows.h"

enum status window_open(struct import *in, struct image *out)
{
    struct value *value;
    TRY(node_data(in, 0, &value));
    int32_t rank = value->shape.rank;
    bool single = value->batch < 0 && rank > 0 && value->shape.dim[0] == 1;
    if (value->batch == 0 && value->shape.dim[0] > 1)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its first dimension counts %lld images of each sample, expected one",
               (long long)value->shape.dim[0]);
    in->misplaced = value->batch > 0;
    if (rank < 3 || rank > 2 + AXES || (!value_counts(value, 0) && !single))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input has %d dimensions, expected samples, channels and one to %d more", rank,
               AXES);
    *out = (struct image){.value = value, .channels = value->shape.dim[1], .axes = rank - 2};
    for (int32_t i = 0; i < AXES; i++)
        out->size[i] = i < AXES - out->axes ? 1 : value->shape.dim[rank - AXES + i];
    struct value plain = *value;
    plain.padded = false; /* whoever reads an image takes care of its pad, or refuses it */
    return line_of(in, &plain, SHAPE(out->channels, out->size[0] * out->size[1], out->size[2]),
                   &out->layer);
}

enum status window_flat(struct import *in, const struct image *image)
{
    if (image->axes > 2)
        REFUSE(in, STATUS_UNSUPPORTED, "its input has %d axes, expected at most 2", image->axes);
    return STATUS_OK;
}

enum status window_give(struct import *in, const struct image *image, const char *layer,
                        int64_t channels, const int64_t size[AXES])
{
    struct shape shape = image->value->shape;
    shape.dim[1] = channels;
    for (int32_t i = AXES - image->axes; i < AXES; i++)
        shape.dim[shape.rank - AXES + i] = size[i];
    return line_gives(in, 0, layer, SHAPE(channels, size[0] * size[1], size[2]), shape,
                      image->value->batch);
}

enum status window_sizes(struct import *in, const char *name, int32_t axes, int64_t usual,
                         int64_t least, int64_t out[AXES])
{
    int64_t count;
    const int64_t *given = graph_ints(in, name, &count);
    if (count >= 0 && count != axes)
        REFUSE(in, STATUS_INPUT, "%s has %lld numbers, expected %d", name, (long long)count, axes);
    for (int32_t i = 0; i < AXES; i++)
        out[i] = i < AXES - axes ? least : usual;
    for (int32_t i = 0; i < count; i++) {
        if (given[i] < least || given[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "%s has %lld in it, expected %lld to %d", name,
                   (long long)given[i], (long long)least, SIZE_MOST);
        out[AXES - axes + i] = given[i];
    }
    return STATUS_OK;
}

int64_t window_extent(const struct slide *slide)
{
    return (slide->window - 1) * slide->dilation + 1;
}

enum status window_auto_pad(struct import *in, enum auto_pad *out)
{
    static const char *const words[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    int which;
    TRY(graph_choice(in, "auto_pad", words, 4, &which));
    *out = (enum auto_pad)which;
    return STATUS_OK;
}

/* auto_pad, or pads: those before all axes, then those behind. */
static enum status read_pads(struct import *in, const struct image *image,
                             struct slide slides[AXES])
{
    int64_t count;
    const int64_t *pads = graph_ints(in, "pads", &count);
    enum auto_pad given;
    TRY(window_auto_pad(in, &given));
    bool lower = given == AUTO_PAD_SAME_LOWER;
    if (lower || given == AUTO_PAD_SAME_UPPER) {
        for (int i = 0; i < AXES; i++) {
            struct slide *s = &slides[i];
            int64_t places = (image->size[i] - 1) / s->stride + 1;
            int64_t all = (places - 1) * s->stride + window_extent(s) - image->size[i];
            all = all < 0 ? 0 : all;
            s->before = lower ? all - all / 2 : all / 2;
            s->behind = all - s->before;
        }
        return STATUS_OK;
    }
    if (count < 0 || given == AUTO_PAD_VALID)
        return STATUS_OK;
    if (count != 2 * image->axes)
        REFUSE(in, STATUS_INPUT, "pads has %lld numbers, expected %d", (long long)count,
               2 * image->axes);
    for (int32_t i = 0; i < 2 * image->axes; i++)
        if (pads[i] < 0 || pads[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "pads has %lld in it, expected 0 to %d",
                   (long long)pads[i], SIZE_MOST);
    for (int32_t i = 0; i < image->axes; i++) {
        slides[AXES - image->axes + i].before = pads[i];
        slides[AXES - image->axes + i].behind = pads[image->axes + i];
    }
    return STATUS_OK;
}

enum status window_read(struct import *in, const struct image *image,
                        const struct constant *weights, struct slide slides[AXES])
{
    int64_t window[AXES], stride[AXES], dilation[AXES];
    TRY(window_sizes(in, "kernel_shape", image->axes, 1, 1, window));
    TRY(window_sizes(in, "strides", image->axes, 1, 1, stride));
    TRY(window_sizes(in, "dilations", image->axes, 1, 1, dilation));
    for (int i = 0; i < AXES; i++) {
        int64_t own = !weights                 ? window[i]
                      : i < AXES - image->axes ? 1
                                               : weights->shape.dim[weights->shape.rank - AXES + i];
        if (own != window[i] && graph_attribute(in, "kernel_shape"))
            REFUSE(in, STATUS_INPUT,
                   "kernel_shape has %lld in it, expected the %lld of its weights",
                   (long long)window[i], (long long)own);
        window[i] = own;
        slides[i] =
            (struct slide){.window = window[i], .stride = stride[i], .dilation = dilation[i]};
        if (window[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "its window is %lld, expected at most %d",
                   (long long)window[i], SIZE_MOST);
    }
    return read_pads(in, image, slides);
}

enum status window_count(struct import *in, int64_t size, bool ceil, struct slide *slide)
{
    int64_t room = size + slide->before + slide->behind - window_extent(slide);
    if (room < 0)
        REFUSE(in, STATUS_INPUT,
               "its window covers %lld, expected at most the %lld of its padded "
               "input",
               (long long)window_extent(slide), (long long)(room + window_extent(slide)));
    slide->places = (room + (ceil ? slide->stride - 1 : 0)) / slide->stride + 1;
    if (ceil && (slide->places - 1) * slide->stride >= size + slide->before)
        slide->places--; /* it would begin behind the image */
    slide->reach =
        (slide->places - 1) * slide->stride + window_extent(slide) - size - slide->before;
    int64_t more = slide->reach - slide->before;
    slide->from = more > 0 ? (more - 1) / slide->stride + 1 : 0;
    slide->pad = slide->before + slide->from * slide->stride;
    return STATUS_OK;
}

enum status window_cut(struct import *in, const struct image *image,
                       const struct slide slides[AXES], const char **layer)
{
    for (int i = 1; i < AXES; i++) {
        const struct slide *s = &slides[i];
        int64_t places = (image->size[i] + 2 * s->pad - window_extent(s)) / s->stride + 1;
        if (places != s->places)
            TRY(line_slice(in, *layer, i + 1, s->from, s->places, layer));
    }
    return STATUS_OK;
}
