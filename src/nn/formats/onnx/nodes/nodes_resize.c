/* nodes_resize.c: Resize, and Upsample, which came before it: along one axis after the other, each
 * new place is the nearest old one, which is repeated or picked, or a sum of a few with known
 * weights: then the axis is multiplied with the matrix of these. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/windows.h"

#include <math.h>
#include <string.h>

node_writer node_resize;

enum mode { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC };
enum coordinate { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, TF_HALF_PIXEL, CROP };
enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_FLOOR, ROUND_CEIL };

enum { TAPS = 4 };

struct resize {
    int mode, coordinate, rounding;
    double bend;            /* cubic_coeff_a */
    bool inside;            /* exclude_outside: only places that there are count */
    double outside;         /* extrapolation_value, of what is cropped beyond the image */
    const float *region;    /* roi: where each axis begins, then where it ends; or NULL */
    const double *scales;   /* of each axis, … */
    const int64_t *lengths; /* … or its new sizes */
};

/* An axis: its size and the new one, which need not be whole where a scale says it. */
struct axis {
    int64_t size, to;
    double scale, length, from, end;
};

static double coordinate_of(const struct resize *resize, const struct axis *axis, int64_t i)
{
    double at = (double)i, last = (double)axis->size - 1;
    switch ((enum coordinate)resize->coordinate) {
    case PYTORCH_HALF_PIXEL: return axis->length > 1 ? (at + 0.5) / axis->scale - 0.5 : 0;
    case ALIGN_CORNERS: return axis->length == 1 ? 0 : at * last / (axis->length - 1);
    case ASYMMETRIC: return at / axis->scale;
    case TF_HALF_PIXEL: return (at + 0.5) / axis->scale;
    case CROP:
        return axis->length > 1
                   ? axis->from * last + at * (axis->end - axis->from) * last / (axis->length - 1)
                   : 0.5 * (axis->from + axis->end) * last;
    case HALF_PIXEL: break;
    }
    return (at + 0.5) / axis->scale - 0.5;
}

static double round_by(int rounding, double at)
{
    return rounding == ROUND_FLOOR         ? floor(at)
           : rounding == ROUND_CEIL        ? ceil(at)
           : rounding == ROUND_PREFER_CEIL ? floor(at + 0.5)
                                           : ceil(at - 0.5);
}

/* The weights of the places floor(at) - 1 to floor(at) + 2. */
static void weigh(const struct resize *resize, double at, double weights[TAPS])
{
    double r = at - floor(at), a = resize->bend;
    memset(weights, 0, TAPS * sizeof *weights);
    if (resize->mode == MODE_LINEAR) {
        weights[1] = 1 - r;
        weights[2] = r;
        return;
    }
    weights[0] = ((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a;
    weights[1] = ((a + 2) * r - (a + 3)) * r * r + 1;
    weights[2] = ((a + 2) * (1 - r) - (a + 3)) * (1 - r) * (1 - r) + 1;
    weights[3] = ((a * (2 - r) - 5 * a) * (2 - r) + 8 * a) * (2 - r) - 4 * a;
}

/* Column i of the matrix [size, to]: nothing where the place is not of the image. */
static void fill_column(const struct resize *resize, const struct axis *axis, int64_t i,
                        struct constant *matrix)
{
    double at = coordinate_of(resize, axis, i), last = (double)axis->size - 1, sum = 0;
    double weights[TAPS] = {0, 1};
    if (resize->mode == MODE_NEAREST)
        at = fmin(fmax(round_by(resize->rounding, at), 0), last);
    else
        weigh(resize, at, weights);
    for (int k = 0; k < TAPS; k++) {
        double place = floor(at) - 1 + k;
        if (resize->inside && (place < 0 || place > last))
            weights[k] = 0;
        sum += weights[k];
    }
    for (int k = 0; k < TAPS; k++) {
        int64_t place = (int64_t)fmin(fmax(floor(at) - 1 + k, 0), last);
        matrix->reals[place * axis->to + i] += (float)(weights[k] / (resize->inside ? sum : 1));
    }
}

static bool is_outside(const struct resize *resize, const struct axis *axis, int64_t i)
{
    double at = coordinate_of(resize, axis, i);
    return resize->coordinate == CROP && !(at >= 0 && at <= (double)axis->size - 1);
}

/* Each new place is the nearest old one. */
static enum status pick_nearest(struct import *in, const struct resize *resize, int32_t d,
                                const struct axis *axis, struct value *x)
{
    int64_t *places, times = axis->to % axis->size == 0 ? axis->to / axis->size : 0;
    double last = (double)axis->size - 1;
    TRY(compose_places(in, axis->to, &places));
    for (int64_t i = 0; i < axis->to; i++) {
        double at = round_by(resize->rounding, coordinate_of(resize, axis, i));
        places[i] = (int64_t)fmin(fmax(at, 0), last);
        times = times && places[i] == i / times ? times : 0;
    }
    return times ? compose_tile(in, d, times, true, x)
                 : compose_pick_axis(in, d, places, axis->to, x);
}

static enum status resize_axis(struct import *in, const struct resize *resize, int32_t d,
                               const struct axis *axis, struct value *x)
{
    struct constant *matrix;
    struct value outside;
    struct shape shape = {.rank = x->shape.rank - d, .dim = {axis->to, 1, 1, 1, 1, 1}};
    if (resize->mode == MODE_NEAREST && resize->coordinate != CROP)
        return pick_nearest(in, resize, d, axis, x);
    TRY(constant_new(in, SHAPE(axis->size, axis->to), false, &matrix));
    TRY(compose_known(in, shape, 0, &outside));
    for (int64_t i = 0; i < axis->to; i++)
        if (is_outside(resize, axis, i))
            outside.constant->reals[i] = (float)resize->outside;
        else
            fill_column(resize, axis, i, matrix);
    TRY(compose_matrix(in, d, matrix, x));
    return resize->coordinate == CROP ? node_combine(in, "add", x, &outside, x) : STATUS_OK;
}

/* Scales or sizes, one for each dimension, and a region: inputs; of old opsets an attribute. */
static enum status read_numbers(struct import *in, const struct value *x, struct resize *out)
{
    bool old = !strcmp(in->node->op_type, "Upsample") || in->opset < 11;
    const struct value *scales = graph_input(in, old ? 1 : 2), *region = graph_input(in, 1);
    const Onnx__AttributeProto *given = graph_attribute(in, "scales");
    double *numbers;
    int64_t count;
    TRY(graph_numbers(in, old ? SIZE_MAX : 3, "sizes", &out->lengths, &count));
    if (out->lengths && count != x->shape.rank)
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld sizes, expected %d", (long long)count,
               x->shape.rank);
    if (!out->lengths) {
        const struct constant *known = scales ? scales->constant : NULL;
        size_t found = known ? (size_t)known->count : given ? given->n_floats : 0;
        if ((scales && (!known || !known->reals)) || found != (size_t)x->shape.rank)
            REFUSE(in, STATUS_UNSUPPORTED, "its scales are not known numbers, one a dimension");
        NEED(numbers = arena_array(&in->arena, found, sizeof *numbers));
        for (size_t i = 0; i < found; i++)
            numbers[i] = known ? (double)known->reals[i] : (double)given->floats[i];
        out->scales = numbers;
    }
    if (out->coordinate != CROP)
        return STATUS_OK;
    const struct constant *known = region ? region->constant : NULL;
    if (!known || !known->reals || known->count != 2 * x->shape.rank)
        REFUSE(in, STATUS_UNSUPPORTED, "its region is not known numbers, two a dimension");
    out->region = known->reals;
    return STATUS_OK;
}

static enum status read_resize(struct import *in, const struct value *x, struct resize *out)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel",           "pytorch_half_pixel",
                                              "align_corners",        "asymmetric",
                                              "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    if (graph_int(in, "antialias", 0) || graph_attribute(in, "axes") ||
        !graph_text_is(in, "keep_aspect_ratio_policy", "stretch", "stretch"))
        REFUSE(in, STATUS_UNSUPPORTED,
               "it has antialias, axes or keep_aspect_ratio_policy, expected none of them");
    TRY(graph_choice(in, "mode", modes, 3, &out->mode));
    TRY(graph_choice(in, "coordinate_transformation_mode", coordinates, 6, &out->coordinate));
    TRY(graph_choice(in, "nearest_mode", roundings, 4, &out->rounding));
    if (!strcmp(in->node->op_type, "Upsample") || in->opset < 11) {
        out->coordinate = ASYMMETRIC;
        out->rounding = ROUND_FLOOR;
    }
    out->bend = graph_real(in, "cubic_coeff_a", -0.75);
    out->inside = graph_int(in, "exclude_outside", 0) != 0;
    out->outside = graph_real(in, "extrapolation_value", 0);
    return read_numbers(in, x, out);
}

/* Dimension `d` of x; *same where nothing becomes of it. */
static enum status read_axis(struct import *in, const struct resize *resize, const struct value *x,
                             int32_t d, struct axis *out, bool *same)
{
    int32_t rank = x->shape.rank;
    int64_t size = x->shape.dim[d], to = resize->lengths ? resize->lengths[d] : 0;
    double scale = resize->scales ? resize->scales[d] : (double)to / (double)size;
    if (d == x->batch) {
        *same = resize->lengths ? samples_in(to) == size || to == in->samples : scale == 1;
        if (!*same)
            REFUSE(in, STATUS_UNSUPPORTED, "it works along the dimension that counts the samples");
        return STATUS_OK;
    }
    /* as floats, so that 5/3 of 3 places is 5 */
    double length = resize->scales ? (double)((float)scale * (float)size) : (double)to;
    if (!(scale > 0 && length >= 1 && length <= SIZE_MOST))
        REFUSE(in, STATUS_UNSUPPORTED, "it makes %g places of %lld", length, (long long)size);
    *out = (struct axis){.size = size,
                         .to = (int64_t)floor(length),
                         .scale = scale,
                         .length = length,
                         .from = resize->region ? (double)resize->region[d] : 0,
                         .end = resize->region ? (double)resize->region[rank + d] : 1};
    *same = size == out->to && scale == 1 && out->from == 0 && out->end == 1 &&
            resize->coordinate != TF_HALF_PIXEL;
    return STATUS_OK;
}

enum status node_resize(struct import *in)
{
    struct value *x;
    struct resize resize = {0};
    TRY(node_data(in, 0, &x));
    TRY(read_resize(in, x, &resize));
    struct value y = *x;
    for (int32_t d = 0; d < x->shape.rank; d++) {
        struct axis axis = {0};
        bool same = true;
        TRY(read_axis(in, &resize, x, d, &axis, &same));
        if (!same)
            TRY(resize_axis(in, &resize, d, &axis, &y));
    }
    return compose_give(in, &y);
}
