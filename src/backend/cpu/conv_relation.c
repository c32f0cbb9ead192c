/* conv_relation.c: see conv_relation.h. */
#include "backend/cpu/conv_relation.h"

bool conv_axis_tap(const struct conv_axis *axis, int64_t phase, int64_t k, int64_t *offset)
{
    if (!axis->transposed) {
        *offset = k * axis->dilation - axis->pad;
        return true;
    }
    int64_t distance = phase + axis->pad - k * axis->dilation;
    *offset = distance / axis->every;
    return distance % axis->every == 0;
}

void conv_axis_reach(const struct conv_axis *axis, int64_t phase, int64_t a, int64_t pixels,
                     int64_t *first, int64_t *count)
{
    int64_t number = 0, offset;
    *first = *count = 0;
    for (int64_t k = 0; k < axis->kernel; k++) {
        if (!conv_axis_tap(axis, phase, k, &offset))
            continue;
        int64_t from = a * axis->move + offset, to = from + (pixels - 1) * axis->move;
        if (to >= 0 && from < axis->in && (*count)++ == 0)
            *first = number;
        number++;
    }
}

static struct conv_axis axis_of(bool transposed, int64_t larger, int64_t smaller, int64_t kernel,
                                int64_t stride, int64_t pad, int64_t dilation)
{
    struct conv_axis axis = {
        .transposed = transposed,
        .in = transposed ? smaller : larger,
        .out = transposed ? larger : smaller,
        .kernel = kernel,
        .stride = stride,
        .pad = pad,
        .dilation = dilation,
        .every = transposed ? stride : 1,
        .move = transposed ? 1 : stride,
    };
    axis.steps = conv_axis_places(&axis, 0);
    for (int64_t phase = 0; phase < axis.every; phase++)
        for (int64_t k = 0; k < kernel; k++) {
            int64_t offset;
            if (!conv_axis_tap(&axis, phase, k, &offset))
                continue;
            axis.low = offset < axis.low ? offset : axis.low;
            axis.high = offset > axis.high ? offset : axis.high;
        }
    return axis;
}

struct conv_relation conv_relation_of(const struct shape *x, const struct shape *w,
                                      const struct shape *y, const union attributes *attr,
                                      bool transposed)
{
    int64_t groups = x->dim[1] / w->dim[1];
    struct conv_relation relation = {
        .transposed = transposed,
        .batch = x->dim[0],
        .in = transposed ? y->dim[1] : x->dim[1],
        .out = transposed ? x->dim[1] : y->dim[1],
        .groups = groups,
        .down = axis_of(transposed, x->dim[2], y->dim[2], w->dim[2], attr->conv.stride_h,
                        attr->conv.pad_h, attr->conv.dilation_h),
        .across = axis_of(transposed, x->dim[3], y->dim[3], w->dim[3], attr->conv.stride_w,
                          attr->conv.pad_w, attr->conv.dilation_w),
    };
    relation.in_group = relation.in / groups;
    relation.out_group = relation.out / groups;
    relation.taps = relation.in_group * w->dim[2] * w->dim[3];
    return relation;
}
