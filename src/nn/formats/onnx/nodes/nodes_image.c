/* nodes_image.c: convolution, pooling and what belongs to it, over images [channels, height, width]
 * and, as images of one row, over [channels, length]; of volumes in apart.c. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/windows.h"

#include <math.h>
#include <string.h>

node_writer node_conv, node_conv_transpose, node_pool, node_global_pool, node_max_unpool,
    node_batch_norm, node_lrn;

/* The weights and the bias of both convolutions, which are the line's to change. */
static enum status take_weights(struct import *in, struct line *line, const struct constant *w,
                                int64_t channels)
{
    const struct constant *b;
    TRY(line_weights(in, w->count, &line->weight));
    memcpy(line->weight, w->reals, (size_t)w->count * sizeof *line->weight);
    TRY(line_give(in, line, "weight", line->weight, w->count));
    line_learns(in, !w->held);
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
    TRY(line_give(in, line, "bias", line->shift, channels));
    line_learns(in, !b->held);
    return STATUS_OK;
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
    struct slide slides[AXES];
    const struct constant *w;
    struct line *line;
    int64_t groups;
    TRY(window_open(in, &image));
    TRY(read_weights(in, &image, false, &w, &groups));
    TRY(window_read(in, &image, w, slides));
    for (int i = 0; i < AXES; i++) {
        slides[i].before += image.value->padded ? image.value->pad[i][0] : 0;
        slides[i].behind += image.value->padded ? image.value->pad[i][1] : 0;
        TRY(window_count(in, image.size[i], false, &slides[i]));
    }
    if (image.axes > 2)
        return apart_conv(in, &image, w, slides);
    const struct slide *h = &slides[1], *v = &slides[2];
    TRY(line_add(in, "conv", image.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld pad=%lldx%lld dilation=%lldx%lld groups=%lld",
                 (long long)w->shape.dim[0], (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->pad, (long long)v->pad,
                 (long long)h->dilation, (long long)v->dilation, (long long)groups));
    TRY(take_weights(in, line, w, w->shape.dim[0]));
    line->run = w->count / w->shape.dim[0];
    const char *layer = line->name;
    TRY(window_cut(in, &image, slides, &layer));
    return window_give(in, &image, layer, w->shape.dim[0],
                       (const int64_t[]){1, h->places, v->places});
}

/* Without pads its output is so large; output_shape says the pads that are left of it. */
static enum status pads_of_output(struct import *in, const struct image *image, int64_t more[AXES],
                                  int64_t whole[AXES], struct slide slides[AXES])
{
    int64_t count, wanted;
    const int64_t *shape = graph_ints(in, "output_shape", &count);
    enum auto_pad given;
    TRY(window_auto_pad(in, &given));
    bool upper = given == AUTO_PAD_SAME_UPPER, same = upper || given == AUTO_PAD_SAME_LOWER;
    if (count >= 0 && count < image->axes)
        REFUSE(in, STATUS_INPUT, "output_shape has %lld numbers, expected %d", (long long)count,
               image->axes);
    for (int i = AXES - image->axes; i < AXES; i++) {
        struct slide *s = &slides[i];
        if (count < 0 && !same)
            continue;
        wanted = count >= 0 ? shape[count - AXES + i] : image->size[i] * s->stride;
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
    struct slide slides[AXES];
    const struct constant *w;
    struct line *line;
    int64_t groups, more[AXES], whole[AXES], size[AXES];
    TRY(window_open(in, &image));
    TRY(read_weights(in, &image, true, &w, &groups));
    TRY(window_read(in, &image, w, slides));
    TRY(window_sizes(in, "output_padding", image.axes, 0, 0, more));
    for (int i = 0; i < AXES; i++) {
        struct slide *s = &slides[i];
        whole[i] = (image.size[i] - 1) * s->stride + window_extent(s) + more[i];
    }
    TRY(pads_of_output(in, &image, more, whole, slides));
    for (int i = 0; i < AXES; i++) {
        slides[i].pad = slides[i].before == slides[i].behind ? slides[i].before : 0;
        size[i] = whole[i] - slides[i].before - slides[i].behind;
        if (size[i] < 1)
            REFUSE(in, STATUS_INPUT, "its output has %lld places", (long long)size[i]);
    }
    if (image.axes > 2)
        return apart_conv_transpose(in, &image, w, slides, more);
    const struct slide *h = &slides[1], *v = &slides[2];
    int64_t channels = w->shape.dim[1] * groups;
    TRY(line_add(in, "conv_transpose", image.layer, &line,
                 "%lld %lldx%lld stride=%lldx%lld pad=%lldx%lld dilation=%lldx%lld groups=%lld "
                 "output_pad=%lldx%lld",
                 (long long)channels, (long long)h->window, (long long)v->window,
                 (long long)h->stride, (long long)v->stride, (long long)h->pad, (long long)v->pad,
                 (long long)h->dilation, (long long)v->dilation, (long long)groups,
                 (long long)more[1], (long long)more[2]));
    TRY(take_weights(in, line, w, channels));
    line->run = groups == 1 ? h->window * v->window : 0;
    const char *layer = line->name;
    for (int i = 1; i < AXES; i++)
        if (slides[i].before != slides[i].behind)
            TRY(line_slice(in, layer, i + 1, slides[i].before, size[i], &layer));
    return window_give(in, &image, layer, channels, size);
}

/* How many places the layer has with ceil=1 and the pad of ONNX before the first. */
static int64_t ceil_places(int64_t size, const struct slide *slide)
{
    int64_t room = size + 2 * slide->before - slide->window;
    int64_t places = (room + slide->stride - 1) / slide->stride + 1;
    return (places - 1) * slide->stride >= size + slide->before ? places - 1 : places;
}

/* What layer pools as the file says: one whose pad is wide enough, of which places are cut off; one
 * with ceil=1; or none, and it is taken apart. */
enum pooling { POOL_WIDE, POOL_CEIL, POOL_APART };

/* A mean that counts the pad counts what of the window lies in it: of the wide pad all, with ceil=1
 * that of a pad as wide behind as before. It must be as much of the file's. */
static enum pooling choose_pooling(const struct image *image, const struct slide slides[AXES],
                                   bool count_pad)
{
    bool even = true, wide = true, ceil = true;
    for (int i = 0; i < AXES; i++) {
        const struct slide *s = &slides[i];
        int64_t narrow = s->before < s->behind ? s->before : s->behind;
        even = even && s->from == 0;
        wide = wide && s->pad < s->window && (!count_pad || s->reach <= s->behind);
        ceil = ceil && s->before < s->window && ceil_places(image->size[i], s) == s->places &&
               (!count_pad || s->before == s->behind || s->reach <= narrow);
        if (s->dilation != 1)
            return POOL_APART;
    }
    if (image->axes > 2 || (!wide && !ceil))
        return POOL_APART;
    return wide && (even || !ceil) ? POOL_WIDE : POOL_CEIL;
}

static enum status pool_windows(struct import *in, const struct image *image,
                                struct slide slides[AXES])
{
    bool ceil = graph_int(in, "ceil_mode", 0) != 0;
    TRY(window_read(in, image, NULL, slides));
    for (int i = 0; i < AXES; i++) {
        struct slide *s = &slides[i];
        TRY(window_count(in, image->size[i], ceil, s));
        if (s->before >= window_extent(s) || s->reach >= window_extent(s))
            REFUSE(in, STATUS_UNSUPPORTED, "its pads are as wide as its window, expected less");
    }
    return STATUS_OK;
}

enum status node_pool(struct import *in)
{
    struct image image;
    struct slide slides[AXES];
    struct line *line;
    bool max = !strcmp(in->node->op_type, "MaxPool");
    bool count_pad = !max && graph_int(in, "count_include_pad", 0) != 0;
    TRY(window_open(in, &image));
    TRY(pool_windows(in, &image, slides));
    if (image.value->padded)
        REFUSE(in, STATUS_UNSUPPORTED, "its input was padded, expected that only before Conv");
    enum pooling pooling = choose_pooling(&image, slides, count_pad);
    if (pooling == POOL_APART)
        return apart_pool(in, &image, slides, max, count_pad);
    bool ceil = pooling == POOL_CEIL;
    const struct slide *h = &slides[1], *v = &slides[2];
    TRY(line_add(in, max ? "max_pool" : "average_pool", image.layer, &line,
                 "%lldx%lld stride=%lldx%lld pad=%lldx%lld ceil=%d%s", (long long)h->window,
                 (long long)v->window, (long long)h->stride, (long long)v->stride,
                 (long long)(ceil ? h->before : h->pad), (long long)(ceil ? v->before : v->pad),
                 ceil, max || count_pad ? "" : " count_pad=0"));
    const char *layer = line->name;
    if (!ceil)
        TRY(window_cut(in, &image, slides, &layer));
    TRY(window_give(in, &image, layer, image.channels, (const int64_t[]){1, h->places, v->places}));
    struct value *places = graph_output(in, 1);
    if (places && layer == line->name && !graph_int(in, "storage_order", 0)) {
        places->pool = line->name;
        places->pooled = image.value->shape;
        places->shape = graph_output(in, 0)->shape;
        places->ready = true;
    }
    return STATUS_OK;
}

enum status node_global_pool(struct import *in)
{
    struct image image;
    struct line *line;
    bool max = !strcmp(in->node->op_type, "GlobalMaxPool");
    TRY(window_open(in, &image));
    if (image.value->padded)
        REFUSE(in, STATUS_UNSUPPORTED, "its input was padded, expected that only before Conv");
    TRY(line_add(in, max ? "global_max_pool" : "global_average_pool", image.layer, &line, "%s",
                 ""));
    struct shape shape = image.value->shape;
    for (int32_t d = 2; d < shape.rank; d++)
        shape.dim[d] = 1;
    return line_gives(in, 0, line->name, SHAPE(image.channels), shape, image.value->batch);
}

/* The size of its output, as the file says it: an input, or what its windows span. */
static enum status unpooled_size(struct import *in, const struct image *image, int64_t size[AXES])
{
    const struct value *wanted = graph_input(in, 2);
    const struct constant *sizes = wanted ? wanted->constant : NULL;
    struct slide slides[AXES];
    TRY(window_read(in, image, NULL, slides));
    if (wanted && (!sizes || !sizes->wholes || sizes->count != image->value->shape.rank))
        REFUSE(in, STATUS_UNSUPPORTED, "the size of its output is not known");
    for (int i = 0; i < AXES; i++) {
        const struct slide *s = &slides[i];
        size[i] = (image->size[i] - 1) * s->stride + s->window - s->before - s->behind;
        if (sizes && i >= AXES - image->axes)
            size[i] = sizes->wholes[sizes->count - AXES + i];
    }
    return STATUS_OK;
}

/* Where its places come from a MaxPool; it gives images of the size that one took. */
enum status node_max_unpool(struct import *in)
{
    const struct value *places = graph_input(in, 1);
    struct image image;
    struct line *line;
    const char *inputs;
    int64_t size[AXES];
    TRY(window_open(in, &image));
    if (places->constant)
        return apart_unpool(in, &image);
    if (!places->pool || image.axes != 2 || image.value->padded ||
        !shape_equal(&places->shape, &image.value->shape))
        REFUSE(in, STATUS_UNSUPPORTED,
               "expected images, and the second output of a MaxPool that gave as many numbers");
    TRY(unpooled_size(in, &image, size));
    const int64_t *pooled = places->pooled.dim;
    if (size[1] != pooled[2] || size[2] != pooled[3])
        REFUSE(in, STATUS_UNSUPPORTED,
               "its output is %lldx%lld, expected the %lldx%lld that its MaxPool took",
               (long long)size[1], (long long)size[2], (long long)pooled[2], (long long)pooled[3]);
    NEED(inputs = arena_format(&in->arena, "%s, %s", image.layer, places->pool));
    TRY(line_add(in, "max_unpool", inputs, &line, "%s", ""));
    return window_give(in, &image, line->name, image.channels, size);
}

/* Can it go into the line before it? A convolution takes it along when its program is fused. */
static bool norm_folds(const struct value *x)
{
    const struct line *line = line_alone(x);
    return line && line->run && line->channels == x->shape.dim[1] &&
           (!strcmp(line->kind, "conv_transpose") ||
            (!strcmp(line->kind, "dense") && x->shape.rank == 2));
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

/* Of one step of training: by the mean and variance of the samples themselves, which are one whole
 * here. Each channel's numbers become a row that is normalised, then scaled and shifted. */
static enum status norm_by_itself(struct import *in, const struct value *x,
                                  const struct constant *const c[4], double epsilon)
{
    int64_t samples = x->shape.dim[0], channels = x->shape.dim[1];
    int64_t rest = shape_count(&x->shape) / (samples * channels);
    const char *layer, *number;
    struct line *line;
    TRY(line_of(in, x, SHAPE(samples, channels, rest), &layer));
    TRY(line_add(in, "transpose", layer, &line, "2,1,3"));
    struct value rows = {.name = x->name,
                         .shape = SHAPE(channels, samples * rest),
                         .batch = -1,
                         .layer = line->name,
                         .gives = SHAPE(channels, samples, rest)};
    TRY(compose_normalise(in, epsilon, &rows));
    layer = rows.layer;
    for (int i = 0; i < 2; i++) {
        TRY(line_constant(in, c[i]->reals, channels, c[i]->learnt, SHAPE(channels, 1), &number));
        TRY(line_pair(in, i ? "add" : "multiply", layer, number, &layer));
    }
    TRY(line_shape(in, layer, SHAPE(channels, samples, rest), &layer));
    TRY(line_add(in, "transpose", layer, &line, "2,1,3"));
    return line_gives(in, 0, line->name, SHAPE(samples, channels, rest), x->shape, -1);
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
    bool training = graph_int(in, "training_mode", 0) != 0;
    if ((training ? x->batch >= 0 : !value_counts(x, 0)) || x->shape.rank < 2)
        REFUSE(in, STATUS_UNSUPPORTED,
               training ? "training_mode is set, which mixes samples"
                        : "its input should be samples, channels and what is "
                          "theirs");
    for (size_t i = 0; i < 4; i++) {
        TRY(node_known(in, i + 1, 1, &c[i]));
        if (c[i]->count != x->shape.dim[1])
            REFUSE(in, STATUS_INPUT,
                   "its input %zu has %lld numbers, expected one for each of "
                   "%lld channels",
                   i + 2, (long long)c[i]->count, (long long)x->shape.dim[1]);
    }
    if (training)
        return norm_by_itself(in, x, c, epsilon);
    bool folds = norm_folds(x);
    in->foldable = in->foldable || folds;
    if (folds && in->settles) {
        TRY(fold_norm(in, x->line, c, epsilon));
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
        line_learns(in, !c[i]->held);
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
    if (!value_counts(x, 0) || x->shape.rank < 2 || size < 1 || size > SIZE_MOST || size % 2 == 0)
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
