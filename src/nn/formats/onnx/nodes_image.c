/* nodes_image.c: convolution, pooling and what belongs to it, over images [channels, height, width]
 * and, as images of one row, over [channels, length].
 *
 * Layers pad alike on both sides, ONNX need not: a wider pad is taken, whole strides wider before
 * the first place, and the places that ONNX does not have are cut off. */
#include "nn/formats/onnx/importer.h"

#include <math.h>
#include <string.h>

node_writer node_conv, node_conv_transpose, node_pool, node_global_pool, node_max_unpool,
    node_batch_norm, node_lrn, node_pad;

enum { SIZE_MOST = 1 << 24 };

/* An input as a layer of images. */
struct image {
    const struct value *value;
    const char *layer;
    int64_t channels, size[2]; /* height, width */
    int32_t axes;              /* 2, or 1: it has no height */
};

/* How a window moves along one axis. */
struct slide {
    int64_t window, stride, dilation, before, behind; /* pads */
    int64_t places;                                   /* as ONNX counts them */
    int64_t pad, from; /* the layer's, and which of its places is the first of ONNX */
};

static enum status open_image(struct import *in, struct image *out)
{
    struct value *value;
    TRY(node_data(in, 0, &value));
    int32_t rank = value->shape.rank;
    bool single = value->batch < 0 && rank > 0 && value->shape.dim[0] == 1;
    if ((rank != 3 && rank != 4) || (value->batch != 0 && !single))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its input has %d dimensions, expected samples, channels and "
               "one or two more",
               rank);
    *out = (struct image){.value = value, .channels = value->shape.dim[1], .axes = rank - 2};
    out->size[0] = rank == 4 ? value->shape.dim[2] : 1;
    out->size[1] = value->shape.dim[rank - 1];
    struct value plain = *value;
    plain.padded = false; /* whoever reads an image takes care of its pad, or refuses it */
    return line_of(in, &plain, SHAPE(out->channels, out->size[0], out->size[1]), &out->layer);
}

/* Says what the output is: images of that many channels and that size. */
static enum status give_image(struct import *in, const struct image *image, const char *layer,
                              int64_t channels, int64_t height, int64_t width)
{
    struct shape gives = SHAPE(channels, height, width), shape = image->value->shape;
    shape.dim[1] = channels;
    shape.dim[2] = height;
    shape.dim[shape.rank - 1] = width;
    return line_gives(in, 0, layer, gives, shape, image->value->batch);
}

/* An attribute of a number for each axis; `usual` where it is absent. */
static enum status read_sizes(struct import *in, const char *name, int32_t axes, int64_t usual,
                              int64_t least, int64_t out[2])
{
    int64_t count;
    const int64_t *given = graph_ints(in, name, &count);
    out[0] = axes == 2 ? usual : least;
    out[1] = usual;
    if (count >= 0 && count != axes)
        REFUSE(in, STATUS_INPUT, "%s has %lld numbers, expected %d", name, (long long)count, axes);
    for (int32_t i = 0; i < count; i++) {
        if (given[i] < least || given[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "%s has %lld in it, expected %lld to %d", name,
                   (long long)given[i], (long long)least, SIZE_MOST);
        out[2 - axes + i] = given[i];
    }
    return STATUS_OK;
}

static int64_t extent(const struct slide *slide)
{
    return (slide->window - 1) * slide->dilation + 1;
}

/* auto_pad, or pads: those before all axes, then those behind. */
static enum status read_pads(struct import *in, const struct image *image, struct slide slides[2])
{
    int64_t count;
    const int64_t *pads = graph_ints(in, "pads", &count);
    bool lower = graph_text_is(in, "auto_pad", "NOTSET", "SAME_LOWER");
    if (lower || graph_text_is(in, "auto_pad", "NOTSET", "SAME_UPPER")) {
        for (int i = 0; i < 2; i++) {
            struct slide *s = &slides[i];
            int64_t places = (image->size[i] - 1) / s->stride + 1;
            int64_t all = (places - 1) * s->stride + extent(s) - image->size[i];
            all = all < 0 ? 0 : all;
            s->before = lower ? all - all / 2 : all / 2;
            s->behind = all - s->before;
        }
        return STATUS_OK;
    }
    if (count < 0 || graph_text_is(in, "auto_pad", "NOTSET", "VALID"))
        return STATUS_OK;
    if (count != 2 * image->axes)
        REFUSE(in, STATUS_INPUT, "pads has %lld numbers, expected %d", (long long)count,
               2 * image->axes);
    for (int32_t i = 0; i < 2 * image->axes; i++)
        if (pads[i] < 0 || pads[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "pads has %lld in it, expected 0 to %d",
                   (long long)pads[i], SIZE_MOST);
    for (int32_t i = 0; i < image->axes; i++) {
        slides[2 - image->axes + i].before = pads[i];
        slides[2 - image->axes + i].behind = pads[image->axes + i];
    }
    return STATUS_OK;
}

/* The window comes from the attribute, or where it is absent from the weights. */
static enum status read_slides(struct import *in, const struct image *image,
                               const struct constant *weights, struct slide slides[2])
{
    int64_t window[2], stride[2], dilation[2];
    TRY(read_sizes(in, "kernel_shape", image->axes, 1, 1, window));
    TRY(read_sizes(in, "strides", image->axes, 1, 1, stride));
    TRY(read_sizes(in, "dilations", image->axes, 1, 1, dilation));
    for (int i = 0; i < 2; i++) {
        if (weights)
            window[i] = i >= 2 - image->axes ? weights->shape.dim[i + image->axes] : 1;
        slides[i] =
            (struct slide){.window = window[i], .stride = stride[i], .dilation = dilation[i]};
        if (window[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "its window is %lld, expected at most %d",
                   (long long)window[i], SIZE_MOST);
    }
    return read_pads(in, image, slides);
}

static enum status count_places(struct import *in, int64_t size, bool ceil, struct slide *slide)
{
    int64_t room = size + slide->before + slide->behind - extent(slide);
    if (room < 0)
        REFUSE(in, STATUS_INPUT,
               "its window covers %lld, expected at most the %lld of its padded "
               "input",
               (long long)extent(slide), (long long)(room + extent(slide)));
    slide->places = (room + (ceil ? slide->stride - 1 : 0)) / slide->stride + 1;
    if (ceil) /* as a wider pad behind */
        slide->behind = (slide->places - 1) * slide->stride + extent(slide) - size - slide->before;
    if (slide->behind < 0)
        slide->behind = 0;
    int64_t more = slide->behind - slide->before;
    slide->from = more > 0 ? (more - 1) / slide->stride + 1 : 0;
    slide->pad = slide->before + slide->from * slide->stride;
    return STATUS_OK;
}

/* Cuts off what the layer has before and behind the places of ONNX. */
static enum status cut(struct import *in, const struct image *image, const struct slide slides[2],
                       const char **layer)
{
    for (int i = 0; i < 2; i++) {
        const struct slide *s = &slides[i];
        int64_t places = (image->size[i] + 2 * s->pad - extent(s)) / s->stride + 1;
        if (places != s->places)
            TRY(line_slice(in, *layer, i + 2, s->from, s->places, layer));
    }
    return STATUS_OK;
}

/* The weights and the bias of both convolutions, which are the line's to change. */
static enum status take_weights(struct import *in, struct line *line, const struct constant *w,
                                int64_t channels)
{
    const struct constant *b;
    TRY(line_weights(in, w->count, &line->weight));
    memcpy(line->weight, w->reals, (size_t)w->count * sizeof *line->weight);
    TRY(line_give(in, line, "weight", line->weight, w->count));
    line->weights = w->count;
    line->channels = channels;
    line->has_bias = true;
    if (!graph_input(in, 2))
        return STATUS_OK;
    TRY(node_known(in, 2, 1, &b));
    if (b->count != channels)
        REFUSE(in, STATUS_INPUT, "its bias has %lld numbers, expected %lld", (long long)b->count,
               (long long)channels);
    TRY(line_weights(in, channels, &line->shift));
    memcpy(line->shift, b->reals, (size_t)channels * sizeof *line->shift);
    line->bias = true;
    return line_give(in, line, "bias", line->shift, channels);
}

static enum status read_weights(struct import *in, const struct image *image, bool transposed,
                                const struct constant **out, int64_t *groups)
{
    TRY(node_known(in, 1, image->axes + 2, out));
    const int64_t *dim = (*out)->shape.dim;
    *groups = graph_int(in, "group", 1);
    bool sound = (*out)->count > 0 && *groups >= 1 && *groups <= image->channels &&
                 image->channels % *groups == 0;
    if (sound)
        sound = transposed ? dim[0] == image->channels
                           : dim[1] == image->channels / *groups && dim[0] % *groups == 0;
    if (!sound)
        REFUSE(in, STATUS_INPUT, "its weights are for other than %lld channels in %lld groups",
               (long long)image->channels, (long long)*groups);
    return STATUS_OK;
}

enum status node_conv(struct import *in)
{
    struct image image;
    struct slide slides[2];
    const struct constant *w;
    struct line *line;
    int64_t groups;
    TRY(open_image(in, &image));
    TRY(read_weights(in, &image, false, &w, &groups));
    TRY(read_slides(in, &image, w, slides));
    for (int i = 0; i < 2; i++) {
        slides[i].before += image.value->padded ? image.value->pad[i][0] : 0;
        slides[i].behind += image.value->padded ? image.value->pad[i][1] : 0;
        TRY(count_places(in, image.size[i], false, &slides[i]));
    }
    const struct slide *h = &slides[0], *v = &slides[1];
    TRY(line_add(in, "conv", image.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld pad=%lldx%lld dilation=%lldx%lld groups=%lld",
                 (long long)w->shape.dim[0], (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->pad, (long long)v->pad,
                 (long long)h->dilation, (long long)v->dilation, (long long)groups));
    TRY(take_weights(in, line, w, w->shape.dim[0]));
    line->run = w->count / w->shape.dim[0];
    const char *layer = line->name;
    TRY(cut(in, &image, slides, &layer));
    return give_image(in, &image, layer, w->shape.dim[0], h->places, v->places);
}

/* Without pads its output is so large; output_shape says the pads that are left of it. */
static enum status pads_of_output(struct import *in, const struct image *image, int64_t more[2],
                                  int64_t whole[2], struct slide slides[2])
{
    int64_t count, wanted;
    const int64_t *shape = graph_ints(in, "output_shape", &count);
    bool upper = graph_text_is(in, "auto_pad", "NOTSET", "SAME_UPPER");
    bool same = upper || graph_text_is(in, "auto_pad", "NOTSET", "SAME_LOWER");
    if (count >= 0 && count < image->axes)
        REFUSE(in, STATUS_INPUT, "output_shape has %lld numbers, expected %d", (long long)count,
               image->axes);
    for (int i = 0; i < 2; i++) {
        struct slide *s = &slides[i];
        if (count < 0 && !same)
            continue;
        if (i < 2 - image->axes)
            continue;
        wanted = count >= 0 ? shape[count - image->axes + i - (2 - image->axes)]
                            : image->size[i] * s->stride;
        int64_t all = whole[i] - wanted;
        if (all < 0) { /* wider than it would be: at its end */
            more[i] -= all;
            whole[i] = wanted;
            all = 0;
        }
        if (wanted < 1 || wanted > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "its output should be %lld of %lld places",
                   (long long)wanted, (long long)whole[i]);
        s->before = upper ? all / 2 : all - all / 2;
        s->behind = all - s->before;
    }
    return STATUS_OK;
}

enum status node_conv_transpose(struct import *in)
{
    struct image image;
    struct slide slides[2];
    const struct constant *w;
    struct line *line;
    int64_t groups, more[2], whole[2], size[2];
    TRY(open_image(in, &image));
    TRY(read_weights(in, &image, true, &w, &groups));
    TRY(read_slides(in, &image, w, slides));
    TRY(read_sizes(in, "output_padding", image.axes, 0, 0, more));
    for (int i = 0; i < 2; i++) {
        struct slide *s = &slides[i];
        whole[i] = (image.size[i] - 1) * s->stride + extent(s) + more[i];
    }
    TRY(pads_of_output(in, &image, more, whole, slides));
    for (int i = 0; i < 2; i++) {
        slides[i].pad = slides[i].before == slides[i].behind ? slides[i].before : 0;
        size[i] = whole[i] - slides[i].before - slides[i].behind;
        if (size[i] < 1)
            REFUSE(in, STATUS_INPUT, "its output has %lld places", (long long)size[i]);
    }
    const struct slide *h = &slides[0], *v = &slides[1];
    int64_t channels = w->shape.dim[1] * groups;
    TRY(line_add(in, "conv_transpose", image.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld pad=%lldx%lld dilation=%lldx%lld groups=%lld "
                 "output_pad=%lldx%lld",
                 (long long)channels, (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->pad, (long long)v->pad,
                 (long long)h->dilation, (long long)v->dilation, (long long)groups,
                 (long long)more[0], (long long)more[1]));
    TRY(take_weights(in, line, w, channels));
    line->run = groups == 1 ? h->window * v->window : 0;
    const char *layer = line->name;
    for (int i = 0; i < 2; i++)
        if (slides[i].before != slides[i].behind)
            TRY(line_slice(in, layer, i + 2, slides[i].before, size[i], &layer));
    return give_image(in, &image, layer, channels, size[0], size[1]);
}

/* How many places the layer has with ceil=1 and the pad of ONNX before the first. */
static int64_t ceil_places(int64_t size, const struct slide *slide)
{
    int64_t room = size + 2 * slide->before - slide->window;
    int64_t places = (room + slide->stride - 1) / slide->stride + 1;
    return (places - 1) * slide->stride >= size + slide->before ? places - 1 : places;
}

/* MaxPool and AveragePool. A window that ends behind the image is the layer's ceil=1 where that has
 * the same places, else a wider pad. */
enum status node_pool(struct import *in)
{
    struct image image;
    struct slide slides[2];
    struct line *line;
    bool max = !strcmp(in->node->op_type, "MaxPool"), ceil = graph_int(in, "ceil_mode", 0) != 0;
    bool count_pad = graph_int(in, "count_include_pad", 0) != 0;
    bool even = true, alike = true, fits = true; /* of the pads; of the places of ceil=1 */
    TRY(open_image(in, &image));
    TRY(read_slides(in, &image, NULL, slides));
    for (int i = 0; i < 2; i++) {
        struct slide *s = &slides[i];
        int64_t behind = s->behind;
        if (s->dilation != 1)
            REFUSE(in, STATUS_UNSUPPORTED, "dilations is %lld, expected 1", (long long)s->dilation);
        TRY(count_places(in, image.size[i], ceil, s));
        even = even && s->before >= s->behind && s->from == 0;
        alike = alike && s->before == behind;
        fits = fits && ceil_places(image.size[i], s) == s->places;
    }
    bool round_up = !even && fits && (max || !count_pad || alike);
    if (ceil && !even && count_pad && !round_up)
        REFUSE(in, STATUS_UNSUPPORTED, "it counts the pad of windows that end behind it");
    for (int i = 0; i < 2; i++) {
        if (round_up) {
            slides[i].pad = slides[i].before;
            slides[i].from = 0;
        }
        if (slides[i].pad >= slides[i].window || image.value->padded)
            REFUSE(in, STATUS_UNSUPPORTED, "its pads are as wide as its window, expected less");
    }
    const struct slide *h = &slides[0], *v = &slides[1];
    TRY(line_add(in, max ? "max_pool" : "average_pool", image.layer, &line,
                 "%lldx%lld stride=%lldx%lld pad=%lldx%lld ceil=%d%s", (long long)h->window,
                 (long long)v->window, (long long)h->stride, (long long)v->stride,
                 (long long)h->pad, (long long)v->pad, round_up,
                 max || count_pad ? "" : " count_pad=0"));
    const char *layer = line->name;
    if (!round_up)
        TRY(cut(in, &image, slides, &layer));
    struct value *places = graph_output(in, 1);
    if (places && layer == line->name && !graph_int(in, "storage_order", 0)) {
        places->pool = line->name;
        places->ready = true;
    }
    return give_image(in, &image, layer, image.channels, h->places, v->places);
}

enum status node_global_pool(struct import *in)
{
    struct image image;
    struct line *line;
    bool max = !strcmp(in->node->op_type, "GlobalMaxPool");
    TRY(open_image(in, &image));
    if (image.value->padded)
        REFUSE(in, STATUS_UNSUPPORTED, "its input was padded, expected that only before Conv");
    TRY(line_add(in, max ? "global_max_pool" : "global_average_pool", image.layer, &line, "%s",
                 ""));
    struct shape shape = image.value->shape;
    for (int32_t d = 2; d < shape.rank; d++)
        shape.dim[d] = 1;
    return line_gives(in, 0, line->name, SHAPE(image.channels), shape, image.value->batch);
}

/* Where its places come from a MaxPool; it gives images of the size that one took. */
enum status node_max_unpool(struct import *in)
{
    const struct value *places = graph_input(in, 1);
    struct image image;
    struct line *line;
    const char *inputs;
    TRY(open_image(in, &image));
    if (!places->pool || !graph_input(in, 2) || !graph_input(in, 2)->constant ||
        !graph_input(in, 2)->constant->wholes || image.axes != 2 ||
        graph_input(in, 2)->constant->count != 4 || image.value->padded)
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected the second output of a MaxPool, and the size of "
               "the images it took");
    NEED(inputs = arena_format(&in->arena, "%s, %s", image.layer, places->pool));
    TRY(line_add(in, "max_unpool", inputs, &line, "%s", ""));
    const int64_t *size = graph_input(in, 2)->constant->wholes;
    return give_image(in, &image, line->name, image.channels, size[2], size[3]);
}

/* Into the weights and the bias of the line before it. */
static enum status fold_norm(struct import *in, struct line *line,
                             const struct constant *const c[4], double epsilon)
{
    if (!line->bias) {
        TRY(line_weights(in, line->channels, &line->shift));
        TRY(line_give(in, line, "bias", line->shift, line->channels));
        line->bias = true;
    }
    for (int64_t k = 0; k < line->channels; k++) {
        double scale = (double)c[0]->reals[k] / sqrt((double)c[3]->reals[k] + epsilon);
        line->shift[k] = (float)(((double)line->shift[k] - (double)c[2]->reals[k]) * scale +
                                 (double)c[1]->reals[k]);
    }
    for (int64_t i = 0; i < line->weights; i++) {
        int64_t k = i / line->run % line->channels;
        double scale = (double)c[0]->reals[k] / sqrt((double)c[3]->reals[k] + epsilon);
        line->weight[i] = (float)((double)line->weight[i] * scale);
    }
    return STATUS_OK;
}

enum status node_batch_norm(struct import *in)
{
    static const char *const parameters[] = {"scale", "shift", "mean", "variance"};
    const struct constant *c[4];
    struct value *x;
    struct line *line;
    const char *layer;
    double epsilon = graph_real(in, "epsilon", 1e-5);
    TRY(node_data(in, 0, &x));
    if (graph_int(in, "training_mode", 0))
        REFUSE(in, STATUS_UNSUPPORTED, "training_mode is set, expected a model that predicts");
    if (x->batch != 0 || x->shape.rank < 2)
        REFUSE(in, STATUS_UNSUPPORTED, "its input should be samples, channels and what is theirs");
    for (size_t i = 0; i < 4; i++) {
        TRY(node_known(in, i + 1, 1, &c[i]));
        if (c[i]->count != x->shape.dim[1])
            REFUSE(in, STATUS_INPUT,
                   "its input %zu has %lld numbers, expected one for each of "
                   "%lld channels",
                   i + 2, (long long)c[i]->count, (long long)x->shape.dim[1]);
    }
    line = x->line;
    bool image = line && text_starts(line->kind, "conv");
    if (line && x->uses == 1 && line->run && line->channels == x->shape.dim[1] &&
        (image || x->shape.rank == 2)) {
        TRY(fold_norm(in, line, c, epsilon));
        return line_gives_same(in, x, x->shape, x->batch);
    }
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "batch_norm", layer, &line, "epsilon=%.9g momentum=%.9g", epsilon,
                 1 - graph_real(in, "momentum", 0.9)));
    for (size_t i = 0; i < 4; i++) {
        float *kept;
        TRY(line_weights(in, c[i]->count, &kept));
        memcpy(kept, c[i]->reals, (size_t)c[i]->count * sizeof *kept);
        TRY(line_give(in, line, parameters[i], kept, c[i]->count));
    }
    return line_gives_like(in, line->name, x);
}

enum status node_lrn(struct import *in)
{
    struct value *x;
    struct line *line;
    const char *layer;
    int64_t size = graph_int(in, "size", 0);
    TRY(node_data(in, 0, &x));
    if (x->batch != 0 || x->shape.rank < 2 || size < 1 || size > SIZE_MOST || size % 2 == 0)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its size is %lld, expected an odd one, over samples and "
               "channels",
               (long long)size);
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "lrn", layer, &line, "%lld alpha=%.9g beta=%.9g k=%.9g", (long long)size,
                 graph_real(in, "alpha", 1e-4), graph_real(in, "beta", 0.75),
                 graph_real(in, "bias", 1)));
    return line_gives_like(in, line->name, x);
}

/* One axis, by known numbers put before and behind. */
static enum status pad_axis(struct import *in, int32_t axis, int64_t before, int64_t behind,
                            float number, struct shape *sample, const char **layer)
{
    const char *parts[3] = {NULL, *layer, NULL}, *inputs;
    const int64_t sizes[3] = {before, 0, behind};
    struct line *line;
    for (int side = 0; side < 3; side += 2) {
        struct shape shape = *sample;
        shape.dim[axis - 1] = sizes[side];
        if (!sizes[side])
            continue;
        struct constant *fill;
        TRY(constant_new(in, shape, false, &fill));
        for (int64_t i = 0; i < fill->count; i++)
            fill->reals[i] = number;
        TRY(line_constant(in, fill->reals, fill->count, false, shape, &parts[side]));
    }
    NEED(inputs =
             arena_format(&in->arena, "%s%s%s%s%s", parts[0] ? parts[0] : "", parts[0] ? ", " : "",
                          parts[1], parts[2] ? ", " : "", parts[2] ? parts[2] : ""));
    TRY(line_add(in, "concat", inputs, &line, "axis=%d", axis));
    sample->dim[axis - 1] += before + behind;
    *layer = line->name;
    return STATUS_OK;
}

/* Zeros around the images that a convolution takes are its own pad. */
static bool pad_joins(const struct import *in, const struct value *x, const struct value *y,
                      const int64_t *pads, double number)
{
    int32_t place = y->uses == 1 ? graph_reader(in, y, "Conv") : -1;
    const Onnx__NodeProto *reader = place >= 0 ? in->graph->node[place] : NULL;
    bool joins = reader && number == 0 && x->batch == 0 &&
                 (x->shape.rank == 4 || x->shape.rank == 3) && !x->padded &&
                 !strcmp(reader->input[0], y->name);
    for (int32_t d = 0; joins && d < 2; d++)
        joins = pads[d] == 0 && pads[d + x->shape.rank] == 0;
    for (size_t i = 0; joins && i < reader->n_attribute; i++) /* SAME is of the padded image */
        joins = !text_equal(reader->attribute[i]->name, "auto_pad");
    return joins;
}

enum status node_pad(struct import *in)
{
    struct value *x, *y = graph_output(in, 0);
    const int64_t *pads;
    int64_t count;
    double number;
    const char *layer;
    TRY(node_data(in, 0, &x));
    TRY(graph_numbers(in, 1, "pads", &pads, &count));
    TRY(graph_number(in, 2, graph_real(in, "value", 0), &number));
    int32_t rank = x->shape.rank;
    if (!graph_text_is(in, "mode", "constant", "constant") || count != 2 * rank ||
        graph_input(in, 3))
        REFUSE(in, STATUS_UNSUPPORTED, "expected mode='constant' and %d pads", 2 * rank);
    for (int32_t i = 0; i < 2 * rank; i++)
        if (pads[i] < 0 || pads[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "pads has %lld in it, expected 0 to %d",
                   (long long)pads[i], SIZE_MOST);
    if (y && pad_joins(in, x, y, pads, number)) {
        TRY(line_gives_same(in, x, x->shape, x->batch));
        y->padded = true;
        for (int32_t d = 2; d < rank; d++) {
            y->pad[4 - rank + d - 2][0] = pads[d];
            y->pad[4 - rank + d - 2][1] = pads[d + rank];
        }
        return STATUS_OK;
    }
    struct shape sample = value_sample(x), shape = x->shape;
    TRY(line_of_value(in, x, &layer));
    for (int32_t d = 0; d < rank; d++) {
        int32_t axis;
        if (!pads[d] && !pads[d + rank])
            continue;
        TRY(value_axis(in, x, d, &axis));
        TRY(pad_axis(in, axis, pads[d], pads[d + rank], (float)number, &sample, &layer));
        shape.dim[d] += pads[d] + pads[d + rank];
    }
    if (layer == x->layer)
        return line_gives_same(in, x, x->shape, x->batch);
    return line_gives(in, 0, layer, sample, shape, x->batch);
}
