/* nodes_quantised.c: QuantizeLinear and DequantizeLinear. A value of 8 bits is its levels, as whole
 * numbers among the reals: QuantizeLinear rounds to them, DequantizeLinear takes the zero point off
 * and multiplies with the scale, each rounded to fp32 as ONNX Runtime does. A pair of both is one
 * layer. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/fold.h"

#include <math.h>
#include <string.h>

node_writer node_quantise, node_dequantise;

enum { SCALE = 1, ZERO = 2 }; /* inputs */

static enum status refuse_training(struct import *in)
{
    return import_untrainable(in,
                              "it cannot be trained: the node '%.80s' (%.40s) computes in 8 bits, "
                              "expected the model before it was quantised",
                              in->node->n_output ? in->node->output[0] : "", in->node->op_type);
}

/* The levels that a type has; what stands for 0 says which type it is. */
static enum status find_levels(struct import *in, const struct constant *zero, int64_t *low,
                               int64_t *high)
{
    *low = 0;
    *high = 255;
    if (zero && (!zero->wholes ||
                 (zero->type && zero->type != ELEMENT_UINT8 && zero->type != ELEMENT_INT8)))
        REFUSE(in, STATUS_UNSUPPORTED, "its zero point is of type %lld, expected int8 or uint8",
               (long long)zero->type);
    if (zero && zero->type == ELEMENT_INT8) {
        *low = -128;
        *high = 127;
    }
    for (int64_t i = 0; zero && i < zero->count; i++)
        if (zero->wholes[i] < *low || zero->wholes[i] > *high)
            REFUSE(in, STATUS_INPUT, "found the zero point %lld, expected %lld to %lld",
                   (long long)zero->wholes[i], (long long)*low, (long long)*high);
    return STATUS_OK;
}

static enum status check_scale(struct import *in, double scale)
{
    if (!(scale > 0) || !isfinite(scale))
        REFUSE(in, STATUS_INPUT, "found a scale of %g, expected one above 0", scale);
    return STATUS_OK;
}

enum status node_quantise(struct import *in)
{
    struct value *x, *y = graph_output(in, 0);
    const struct value *zeros = graph_input(in, ZERO);
    const char *layer;
    struct line *line;
    double scale, zero;
    int64_t low, high;
    TRY(node_data(in, 0, &x));
    TRY(graph_number(in, SCALE, 1, &scale));
    TRY(graph_number(in, ZERO, 0, &zero));
    TRY(check_scale(in, scale));
    TRY(find_levels(in, zeros ? zeros->constant : NULL, &low, &high));
    TRY(refuse_training(in));
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "quantise", layer, &line, "%.9g low=%lld high=%lld levels=1", scale,
                 (long long)low - (long long)zero, (long long)high - (long long)zero));
    struct value levels = *x;
    levels.layer = line->name;
    levels.gives = value_sample(x);
    if (zero != 0)
        TRY(compose_affine(in, &levels, 1, zero));
    TRY(line_gives_like(in, levels.layer, x));
    if (y) {
        y->quantised = layer;
        y->scale = scale;
        y->zero = zero;
    }
    return STATUS_OK;
}

/* The levels that were just made, on the same scale: one layer does both. */
static enum status write_pair(struct import *in, const struct value *x)
{
    const struct value *zeros = graph_input(in, ZERO);
    struct line *line;
    int64_t low, high;
    TRY(find_levels(in, zeros ? zeros->constant : NULL, &low, &high));
    TRY(line_add(in, "quantise", x->quantised, &line, "%.9g low=%lld high=%lld", x->scale,
                 (long long)low - (long long)x->zero, (long long)high - (long long)x->zero));
    return line_gives_like(in, line->name, x);
}

static bool is_one(const struct value *value)
{
    return !value || (value->constant && constant_is_one(value->constant));
}

/* Known numbers, one for each place of the axis, as they stand beside x. */
static enum status along_axis(struct import *in, const struct value *x, const struct value *known,
                              double times, struct value *out)
{
    const struct constant *from = known->constant;
    struct constant *numbers;
    struct shape shape = {.rank = 1, .dim = {from->count}};
    int32_t axis;
    TRY(graph_axis_of(in, "axis", 1, x->shape.rank, &axis));
    if (from->count != x->shape.dim[axis] || from->batch >= 0)
        REFUSE(in, STATUS_INPUT, "found %lld numbers for %lld channels", (long long)from->count,
               (long long)x->shape.dim[axis]);
    for (int32_t d = axis + 1; d < x->shape.rank; d++)
        shape.dim[shape.rank++] = 1;
    TRY(constant_new(in, shape, false, &numbers));
    for (int64_t i = 0; i < from->count; i++)
        numbers->reals[i] = (float)(times * constant_at(from, i));
    *out = (struct value){.name = known->name, .constant = numbers, .shape = shape, .batch = -1};
    return STATUS_OK;
}

/* x with the number put to it: known, one for each channel, or of the data, as of a
 * DynamicQuantizeLinear. */
static enum status put(struct import *in, const char *kind, const struct value *number,
                       double times, struct value *x)
{
    struct value other = *number;
    if (number->constant)
        TRY(along_axis(in, x, number, times, &other));
    else
        TRY(compose_affine(in, &other, times, 0));
    return node_combine(in, kind, x, &other, x);
}

/* Whole numbers of 8 bits times one scale, as an input of that type: to round them to just these
 * changes nothing, and says that they are in 8 bits. */
static enum status round_again(struct import *in, const struct value *reals)
{
    const struct value *zeros = graph_input(in, ZERO), *scales = graph_input(in, SCALE);
    const struct constant *type = zeros ? zeros->constant : NULL;
    const char *layer;
    struct line *line;
    double scale, zero;
    int64_t low, high;
    if (!scales || !type || (type->type != ELEMENT_UINT8 && type->type != ELEMENT_INT8))
        return compose_give(in, reals);
    TRY(graph_number(in, SCALE, 1, &scale));
    TRY(graph_number(in, ZERO, 0, &zero));
    TRY(check_scale(in, scale));
    TRY(find_levels(in, type, &low, &high));
    TRY(line_of_value(in, reals, &layer));
    TRY(line_add(in, "quantise", layer, &line, "%.9g low=%lld high=%lld", scale,
                 (long long)low - (long long)zero, (long long)high - (long long)zero));
    return line_gives_like(in, line->name, reals);
}

static enum status write_any(struct import *in, const struct value *x)
{
    struct value levels = *x;
    const struct value *zeros = graph_input(in, ZERO), *scale = graph_input(in, SCALE);
    double number;
    if (!is_one(zeros))
        TRY(put(in, "add", zeros, -1, &levels));
    else if (zeros) {
        TRY(graph_number(in, ZERO, 0, &number));
        TRY(compose_affine(in, &levels, 1, -number));
    }
    if (!is_one(scale)) {
        TRY(put(in, "multiply", scale, 1, &levels));
    } else {
        TRY(graph_number(in, SCALE, 1, &number));
        TRY(compose_affine(in, &levels, number, 0));
    }
    return is_one(zeros) && is_one(scale) ? round_again(in, &levels) : compose_give(in, &levels);
}

enum status node_dequantise(struct import *in)
{
    struct value *x;
    double scale, zero;
    TRY(node_data(in, 0, &x));
    TRY(refuse_training(in));
    if (!x->quantised || !is_one(graph_input(in, SCALE)) || !is_one(graph_input(in, ZERO)))
        return write_any(in, x);
    TRY(graph_number(in, SCALE, 1, &scale));
    TRY(graph_number(in, ZERO, 0, &zero));
    bool same =
        !(scale < x->scale) && !(scale > x->scale) && !(zero < x->zero) && !(zero > x->zero);
    return same ? write_pair(in, x) : write_any(in, x);
}

/* Of each number of x the place in the scale, and in what stands for 0. */
struct per_channel {
    const struct constant *x, *scale, *zero;
    int64_t inner, channels;
};

static enum status open_channels(struct import *in, struct per_channel *out)
{
    int32_t axis = 0;
    *out = (struct per_channel){.x = fold_known(in, 0),
                                .scale = fold_known(in, SCALE),
                                .zero = fold_known(in, ZERO),
                                .inner = 1,
                                .channels = 1};
    if (!out->scale->reals || (out->zero && out->zero->count != out->scale->count))
        REFUSE(in, STATUS_INPUT, "expected a real scale, and as many zero points");
    if (out->scale->count != 1) {
        TRY(graph_axis_of(in, "axis", 1, out->x->shape.rank, &axis));
        out->channels = out->x->shape.dim[axis];
        for (int32_t d = axis + 1; d < out->x->shape.rank; d++)
            out->inner *= out->x->shape.dim[d];
        if (out->scale->count != out->channels)
            REFUSE(in, STATUS_INPUT, "found %lld scales for %lld channels",
                   (long long)out->scale->count, (long long)out->channels);
    }
    return refuse_training(in);
}

static int64_t channel_of(const struct per_channel *of, int64_t i)
{
    return of->scale->count == 1 ? 0 : i / of->inner % of->channels;
}

enum status fold_dequantise(struct import *in, struct constant **out)
{
    struct per_channel of;
    TRY(open_channels(in, &of));
    if (!of.x->wholes)
        REFUSE(in, STATUS_INPUT, "its first input is real numbers, expected whole ones");
    TRY(constant_new(in, of.x->shape, false, out));
    for (int64_t i = 0; i < of.x->count; i++) {
        int64_t c = channel_of(&of, i);
        (*out)->reals[i] =
            (float)(of.x->wholes[i] - (of.zero ? of.zero->wholes[c] : 0)) * of.scale->reals[c];
    }
    (*out)->batch = of.x->batch;
    return STATUS_OK;
}

enum status fold_quantise(struct import *in, struct constant **out)
{
    struct per_channel of;
    int64_t low, high;
    TRY(open_channels(in, &of));
    TRY(find_levels(in, of.zero, &low, &high));
    TRY(constant_new(in, of.x->shape, true, out));
    (*out)->type = low ? ELEMENT_INT8 : ELEMENT_UINT8;
    (*out)->batch = of.x->batch;
    for (int64_t i = 0; i < of.x->count; i++) {
        int64_t c = channel_of(&of, i);
        float steps = (float)constant_at(of.x, i) / of.scale->reals[c];
        TRY(check_scale(in, (double)of.scale->reals[c]));
        double level = isnan(steps) ? 0 : rint((double)steps);
        level += of.zero ? (double)of.zero->wholes[c] : 0;
        (*out)->wholes[i] = (int64_t)fmin(fmax(level, (double)low), (double)high);
    }
    return STATUS_OK;
}
