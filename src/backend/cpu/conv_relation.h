/* conv_relation.h: what a convolution is, for the kernels: each pixel of a target image is a sum
 * over taps into a source image. conv and conv_t are the same thing in two directions:
 *
 *     target row = every·a + phase, source row = move·a + offset of the tap
 *
 * conv has every = 1, one phase, and move = stride; conv_t has every = stride, as many phases, and
 * move = 1, each tap of the weights belonging to the one phase at which it meets whole rows. */
#ifndef PRONY_BACKEND_CPU_CONV_RELATION_H
#define PRONY_BACKEND_CPU_CONV_RELATION_H

#include "core/program.h"

/* One direction, down or across. */
struct conv_axis {
    bool transposed;
    int64_t in, out; /* sizes of source and target */
    int64_t kernel, stride, pad, dilation;
    int64_t every, move;
    int64_t low, high; /* the least and the largest offset of a tap, low ≤ 0 ≤ high */
    int64_t steps;     /* values of a: ⌈out / every⌉ */
};

struct conv_relation {
    bool transposed;
    int64_t batch;
    int64_t in, out;                     /* channels of source and target */
    int64_t groups, in_group, out_group; /* and of a group */
    struct conv_axis down, across;
    int64_t taps; /* per target pixel, all phases: in_group · kernel_h · kernel_w */
};

/* The ops' attributes begin alike. x is the larger image [n, c, h, w], y the smaller. */
struct conv_relation conv_relation_of(const struct shape *x, const struct shape *w,
                                      const struct shape *y, const union attributes *attr,
                                      bool transposed);

/* Does the tap k of the weights belong to this phase, and what is its offset there? */
bool conv_axis_tap(const struct conv_axis *axis, int64_t phase, int64_t k, int64_t *offset);

/* The taps of a phase along the axis whose source, for `pixels` target pixels from step `a` on, is
 * not all padding: *count of them, the first being number *first of the phase's. */
void conv_axis_reach(const struct conv_axis *axis, int64_t phase, int64_t a, int64_t pixels,
                     int64_t *first, int64_t *count);

/* Target pixels of a phase along the axis. */
static inline int64_t conv_axis_places(const struct conv_axis *axis, int64_t phase)
{
    return phase < axis->out ? (axis->out - phase + axis->every - 1) / axis->every : 0;
}

#endif
