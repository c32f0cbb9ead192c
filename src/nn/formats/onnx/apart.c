/* apart.c: pooling and convolution that no layer does in one, taken apart into layers. See
 * windows.h.
 *
 * Pooling goes axis by axis, which gives the same: the elements that a window has at its first,
 * second, … place lie side by side, as rows of which the largest or the sum is taken.
 *
 * A volume is convolved as an image. Its planes lie one below the other with so many rows of 0
 * between them that no window sees two; what belongs to one window along the depth is channels. */
#include "nn/formats/onnx/windows.h"

#include <float.h>
#include <string.h>

/* Volumes on their way: [channels, size…], whatever the layer's own shape. */
struct volume {
    const char *layer;
    int64_t channels, size[AXES];
};

static int64_t product(const int64_t *sizes, int from, int to)
{
    int64_t all = 1;
    for (int i = from; i < to; i++)
        all *= sizes[i];
    return all;
}

/* The volume as [before, axis, behind]. */
static enum status along(struct import *in, struct volume *volume, int axis, struct shape *out)
{
    *out = SHAPE(volume->channels * product(volume->size, 0, axis), volume->size[axis],
                 product(volume->size, axis + 1, AXES));
    return line_shape(in, volume->layer, *out, &volume->layer);
}

static enum status pad(struct import *in, struct volume *volume, int axis, int64_t before,
                       int64_t behind, float number)
{
    struct shape shape;
    if (before <= 0 && behind <= 0)
        return STATUS_OK;
    TRY(along(in, volume, axis, &shape));
    TRY(line_pad(in, 2, before, behind > 0 ? behind : 0, number, &shape, &volume->layer));
    volume->size[axis] = shape.dim[1];
    return STATUS_OK;
}

static enum status cut(struct import *in, struct volume *volume, int axis, int64_t from,
                       int64_t size)
{
    struct shape shape;
    if (from == 0 && size == volume->size[axis])
        return STATUS_OK;
    TRY(along(in, volume, axis, &shape));
    volume->size[axis] = size;
    return line_slice(in, volume->layer, 2, from, size, &volume->layer);
}

/* What windows have at their place `at` along an axis that is padded. */
static enum status take_places(struct import *in, const char *x, const struct slide *slide,
                               int64_t at, const char **out)
{
    int64_t *places;
    if (slide->places > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "it has %lld places, expected at most %d",
               (long long)slide->places, PICKS_MOST);
    NEED(places = arena_array(&in->arena, (size_t)slide->places, sizeof *places));
    for (int64_t i = 0; i < slide->places; i++)
        places[i] = at * slide->dilation + i * slide->stride;
    return line_pick(in, x, 2, places, slide->places, out);
}

/* Takes windows apart along an axis: `parts`, each [before, places, behind]. */
static enum status open_windows(struct import *in, struct volume *volume, int axis,
                                const struct slide *slide, float number, const char ***parts,
                                struct shape *shape)
{
    int64_t room = (slide->places - 1) * slide->stride + window_extent(slide);
    if (slide->window > PICKS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "its window is %lld, expected at most %d",
               (long long)slide->window, PICKS_MOST);
    TRY(pad(in, volume, axis, slide->before, room - slide->before - volume->size[axis], number));
    TRY(along(in, volume, axis, shape));
    NEED(*parts = arena_array(&in->arena, (size_t)slide->window, sizeof **parts));
    for (int64_t k = 0; k < slide->window; k++)
        TRY(take_places(in, volume->layer, slide, k, &(*parts)[k]));
    shape->dim[1] = volume->size[axis] = slide->places;
    return STATUS_OK;
}

/* The sums of windows become means: over the elements that count. */
static enum status divide(struct import *in, const struct slide *slide, int64_t size,
                          bool count_pad, const char **layer)
{
    struct constant *shares;
    const char *number;
    TRY(constant_new(in, SHAPE(slide->places), false, &shares));
    for (int64_t i = 0; i < slide->places; i++) {
        int64_t counted = 0;
        for (int64_t k = 0; k < slide->window; k++) {
            int64_t at = i * slide->stride + k * slide->dilation - slide->before;
            counted += count_pad ? at < size + slide->behind : at >= 0 && at < size;
        }
        if (!counted)
            REFUSE(in, STATUS_UNSUPPORTED, "one of its windows has nothing to take the mean of");
        shares->reals[i] = 1 / (float)counted;
    }
    TRY(line_constant(in, shares->reals, shares->count, false, SHAPE(1, slide->places, 1),
                      &number));
    return line_pair(in, "multiply", *layer, number, layer);
}

static enum status pool_axis(struct import *in, struct volume *volume, int axis,
                             const struct slide *slide, bool max, bool count_pad)
{
    int64_t size = volume->size[axis];
    const char **parts;
    struct shape shape;
    struct line *line;
    if (slide->window == 1 && slide->stride == 1 && slide->places == size)
        return STATUS_OK;
    TRY(open_windows(in, volume, axis, slide, max ? -FLT_MAX : 0, &parts, &shape));
    for (int64_t k = 0; k < slide->window; k++)
        TRY(line_shape(in, parts[k], SHAPE(1, shape_count(&shape)), &parts[k]));
    TRY(line_join(in, parts, slide->window, 1, &volume->layer));
    TRY(line_add(in, "reduce", volume->layer, &line, "%s axis=1", max ? "max" : "sum"));
    TRY(line_shape(in, line->name, shape, &volume->layer));
    return max ? STATUS_OK : divide(in, slide, size, count_pad, &volume->layer);
}

/* The output is this volume. */
static enum status give(struct import *in, const struct image *image, struct volume *volume)
{
    const int64_t *size = volume->size;
    TRY(line_shape(in, volume->layer, SHAPE(volume->channels, size[0] * size[1], size[2]),
                   &volume->layer));
    return window_give(in, image, volume->layer, volume->channels, size);
}

static struct volume volume_of(const struct image *image)
{
    struct volume volume = {.layer = image->layer, .channels = image->channels};
    memcpy(volume.size, image->size, sizeof volume.size);
    return volume;
}

enum status apart_pool(struct import *in, const struct image *image,
                       const struct slide slides[AXES], bool max, bool count_pad)
{
    struct volume volume = volume_of(image);
    for (int i = 0; i < AXES; i++)
        TRY(pool_axis(in, &volume, i, &slides[i], max, count_pad));
    return give(in, image, &volume);
}

/* Sizes of what unpooling gives: `inner`, in which places count, and the whole, which may go on
 * behind it. */
static enum status unpooled_sizes(struct import *in, const struct image *image, int64_t inner[AXES],
                                  int64_t whole[AXES])
{
    struct slide slides[AXES];
    const struct value *wanted = graph_input(in, 2);
    const struct constant *sizes = wanted ? wanted->constant : NULL;
    int32_t rank = image->value->shape.rank;
    if (wanted && (!sizes || !sizes->wholes || sizes->count != rank))
        REFUSE(in, STATUS_UNSUPPORTED, "the size of its output is not known");
    TRY(window_read(in, image, NULL, slides));
    for (int i = 0; i < AXES; i++) {
        const struct slide *s = &slides[i];
        inner[i] = (image->size[i] - 1) * s->stride + s->window - s->before - s->behind;
        whole[i] = i < AXES - image->axes || !sizes ? inner[i] : sizes->wholes[rank - AXES + i];
        if (inner[i] < 1 || whole[i] < inner[i] || whole[i] > SIZE_MOST)
            REFUSE(in, STATUS_UNSUPPORTED, "found %lld places of %lld in its output",
                   (long long)whole[i], (long long)inner[i]);
    }
    return STATUS_OK;
}

/* The input and as many zeros, of which each place of the output takes its own. */
enum status apart_unpool(struct import *in, const struct image *image)
{
    const struct constant *places = graph_input(in, 1)->constant;
    int64_t inner[AXES], whole[AXES], count = image->channels * product(image->size, 0, AXES);
    struct constant *from;
    struct shape sample = SHAPE(count);
    struct volume volume = volume_of(image);
    TRY(unpooled_sizes(in, image, inner, whole));
    if (!places->wholes || !shape_equal(&places->shape, &image->value->shape) ||
        image->value->padded)
        REFUSE(in, STATUS_UNSUPPORTED, "expected a place for each element of a sample");
    TRY(constant_new(in, SHAPE(image->channels, whole[0], whole[1], whole[2]), true, &from));
    for (int64_t i = 0; i < from->count; i++)
        from->wholes[i] = count + i;
    for (int64_t i = 0; i < count; i++) {
        int64_t left = places->wholes[i], to = 0, step = 1;
        if (left < 0 || left >= image->channels * product(inner, 0, AXES))
            REFUSE(in, STATUS_INPUT, "found the place %lld", (long long)left);
        for (int d = AXES - 1; d >= 0; d--) {
            to += left % inner[d] * step;
            left /= inner[d];
            step *= whole[d];
        }
        from->wholes[to + left * step] = i;
    }
    TRY(line_shape(in, volume.layer, sample, &volume.layer));
    TRY(line_pad(in, 1, 0, from->count, 0, &sample, &volume.layer));
    TRY(line_pick(in, volume.layer, 1, from->wholes, from->count, &volume.layer));
    memcpy(volume.size, whole, sizeof whole);
    return give(in, image, &volume);
}

/* The weights as those of an image: [first, second, d, h, w] becomes [first, d, second, h, w] or,
 * where the places along the depth belong to the outputs, the same. */
static enum status give_weights(struct import *in, struct line *line, const struct constant *w)
{
    const int64_t *dim = w->shape.dim;
    int64_t plane = dim[3] * dim[4];
    float *to;
    TRY(line_weights(in, w->count, &to));
    for (int64_t i = 0; i < w->count / plane; i++) {
        int64_t first = i / dim[2] / dim[1], second = i / dim[2] % dim[1], k = i % dim[2];
        memcpy(to + ((first * dim[2] + k) * dim[1] + second) * plane, w->reals + i * plane,
               (size_t)plane * sizeof *to);
    }
    TRY(line_give(in, line, "weight", to, w->count));
    line_learns(in, !w->held);
    return STATUS_OK;
}

static enum status add_bias(struct import *in, struct volume *volume)
{
    const struct constant *b;
    const char *number;
    int64_t places = product(volume->size, 0, AXES);
    if (!graph_input(in, 2))
        return STATUS_OK;
    TRY(node_known(in, 2, 1, &b));
    if (b->count != volume->channels)
        REFUSE(in, STATUS_INPUT, "its bias has %lld numbers, expected %lld", (long long)b->count,
               (long long)volume->channels);
    TRY(line_shape(in, volume->layer, SHAPE(volume->channels, places), &volume->layer));
    TRY(line_constant(in, b->reals, b->count, b->learnt, SHAPE(b->count, 1), &number));
    return line_pair(in, "add", volume->layer, number, &volume->layer);
}

static enum status refuse_groups(struct import *in)
{
    if (graph_int(in, "group", 1) != 1)
        REFUSE(in, STATUS_UNSUPPORTED, "it has groups of channels, expected them of images only");
    return STATUS_OK;
}

enum status apart_conv(struct import *in, const struct image *image, const struct constant *w,
                       const struct slide slides[AXES])
{
    const struct slide *d = &slides[0], *h = &slides[1], *v = &slides[2];
    struct volume volume = volume_of(image);
    const char **parts;
    struct shape shape;
    struct line *line;
    TRY(refuse_groups(in));
    TRY(open_windows(in, &volume, 0, d, 0, &parts, &shape));
    TRY(line_join(in, parts, d->window, 1, &volume.layer));
    volume.channels *= d->window;
    int64_t rows = volume.size[1] + h->before + h->behind;
    rows = (rows + h->stride - 1) / h->stride * h->stride;
    TRY(pad(in, &volume, 1, h->before, rows - h->before - volume.size[1], 0));
    TRY(pad(in, &volume, 2, v->before, v->behind, 0));
    int64_t more = window_extent(h) > h->stride ? window_extent(h) - h->stride : 0;
    struct volume image_of = volume; /* its planes one below the other, and what the last lacks */
    image_of.size[0] = 1;
    image_of.size[1] = d->places * rows;
    TRY(pad(in, &image_of, 1, 0, more, 0));
    TRY(line_shape(in, image_of.layer, SHAPE(volume.channels, image_of.size[1], volume.size[2]),
                   &image_of.layer));
    TRY(line_add(in, "conv", image_of.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld dilation=%lldx%lld bias=0",
                 (long long)w->shape.dim[0], (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->dilation,
                 (long long)v->dilation));
    TRY(give_weights(in, line, w));
    volume = (struct volume){.layer = line->name,
                             .channels = w->shape.dim[0],
                             .size = {d->places, rows / h->stride, v->places}};
    TRY(cut(in, &volume, 1, 0, h->places));
    TRY(add_bias(in, &volume));
    return give(in, image, &volume);
}

/* What each place of the window along the depth gives, `stride` apart, added up. */
static enum status add_depth(struct import *in, struct volume *volume, const struct slide *slide,
                             int64_t more)
{
    int64_t planes = volume->size[0], channels = volume->channels / slide->window;
    int64_t whole = (planes - 1) * slide->stride + window_extent(slide) + more;
    int64_t each = channels * product(volume->size, 0, AXES);
    const char *sum = NULL, *all;
    TRY(line_shape(in, volume->layer, SHAPE(slide->window, each), &all));
    for (int64_t k = 0; k < slide->window; k++) {
        struct volume part = {.channels = channels * planes,
                              .size = {1, volume->size[1], volume->size[2]}};
        int64_t from = k * slide->dilation;
        TRY(line_slice(in, all, 1, k, 1, &part.layer));
        TRY(pad(in, &part, 0, 0, slide->stride - 1, 0));
        part.channels = channels;
        part.size[0] = planes * slide->stride;
        TRY(cut(in, &part, 0, 0, (planes - 1) * slide->stride + 1));
        TRY(pad(in, &part, 0, from, whole - from - part.size[0], 0));
        struct shape shape;
        TRY(along(in, &part, 0, &shape));
        if (sum)
            TRY(line_pair(in, "add", sum, part.layer, &sum));
        else
            sum = part.layer;
    }
    volume->layer = sum;
    volume->channels = channels;
    volume->size[0] = whole;
    return STATUS_OK;
}

enum status apart_conv_transpose(struct import *in, const struct image *image,
                                 const struct constant *w, const struct slide slides[AXES],
                                 const int64_t more[AXES])
{
    const struct slide *d = &slides[0], *h = &slides[1], *v = &slides[2];
    struct volume volume = volume_of(image);
    struct line *line;
    TRY(refuse_groups(in));
    int64_t planes = volume.size[0], channels = w->shape.dim[1];
    int64_t height = (volume.size[1] - 1) * h->stride + window_extent(h) + more[1];
    int64_t width = (volume.size[2] - 1) * v->stride + window_extent(v) + more[2];
    int64_t rows = (height - 1) / h->stride + 1; /* of a plane, so that the next begins behind */
    int64_t depth = (planes - 1) * d->stride + window_extent(d) + more[0];
    int64_t count = shape_count(&SHAPE(d->window * channels, depth, rows * h->stride, width));
    if (count < 0 || count > ELEMENTS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "its output is too large");
    TRY(pad(in, &volume, 1, 0, rows - volume.size[1], 0));
    int64_t end = window_extent(h) < h->stride ? h->stride - window_extent(h) : 0;
    TRY(line_shape(in, volume.layer, SHAPE(volume.channels, planes * rows, volume.size[2]),
                   &volume.layer));
    TRY(line_add(in, "conv_transpose", volume.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld dilation=%lldx%lld output_pad=%lldx%lld bias=0",
                 (long long)(d->window * channels), (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->dilation,
                 (long long)v->dilation, (long long)end, (long long)more[2]));
    TRY(give_weights(in, line, w));
    volume = (struct volume){
        .layer = line->name,
        .channels = d->window * channels,
        .size = {1, (planes * rows - 1) * h->stride + window_extent(h) + end, width}};
    TRY(cut(in, &volume, 1, 0, planes * rows * h->stride));
    volume.size[0] = planes;
    volume.size[1] = rows * h->stride;
    TRY(cut(in, &volume, 1, 0, height));
    TRY(add_depth(in, &volume, d, more[0]));
    for (int i = 0; i < AXES; i++)
        TRY(cut(in, &volume, i, slides[i].before,
                volume.size[i] - slides[i].before - slides[i].behind));
    TRY(add_bias(in, &volume));
    return give(in, image, &volume);
}
