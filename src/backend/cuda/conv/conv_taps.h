/* conv_taps.h: which pixels of the source a pixel of the result meets, and where they lie: what the
 * kernels that go from x to y, or back, share.
 *
 * On the backward pass with a stride, only every stride-th pixel meets a given weight. So the
 * pixels are taken in phases, (row mod stride, column mod stride), each a product of its own over
 * the weights that it meets: none of the work is with zeros. */
#ifndef PRONY_BACKEND_CUDA_CONV_TAPS_H
#define PRONY_BACKEND_CUDA_CONV_TAPS_H

#include "backend/cuda/conv/conv.h"
#include "backend/cuda/device/activation.h"

/* Along one axis, in one phase: which weights are met, and where. Weight first + i·every lies shift
 * + i·turn pixels of the source away from source_step · (number of the result's pixel). */
struct walk {
    int32_t first, every, count;
    int32_t shift, turn, source_step;
    int32_t places;             /* pixels of the result … */
    int32_t begin, result_step; /* … at begin + number · result_step */
};

static inline __host__ __device__ struct walk walk_of(const struct conv_axis &axis, bool back,
                                                      int32_t phase)
{
    if (!back) {
        const struct walk walk = {0,           1,      axis.kernel, -axis.pad, axis.dilation,
                                  axis.stride, axis.y, 0,           1};
        return walk;
    }
    int32_t every = 1, first = 0;
    while (every * axis.dilation % axis.stride)
        every++;
    while (first < every && (phase + axis.pad - first * axis.dilation) % axis.stride)
        first++;
    const bool met = first < every && first < axis.kernel;
    const struct walk walk = {first,
                              every,
                              met ? (axis.kernel - first + every - 1) / every : 0,
                              (phase + axis.pad - first * axis.dilation) / axis.stride,
                              -(every * axis.dilation / axis.stride),
                              1,
                              (axis.x - phase + axis.stride - 1) / axis.stride,
                              phase,
                              axis.stride};
    return walk;
}

static inline __host__ __device__ int32_t phases_across(const struct conv &conv, bool back)
{
    return back ? conv.across.stride : 1;
}

static inline int32_t phases_of(const struct conv &conv, bool back)
{
    return back ? conv.down.stride * conv.across.stride : 1;
}

static inline __host__ __device__ int32_t tall_of(const struct conv &conv, bool back)
{
    return back ? conv.inner : conv.outer;
}

static inline __host__ __device__ int32_t source_of(const struct conv &conv, bool back)
{
    return back ? conv.outer : conv.inner;
}

struct gather {
    struct conv conv;
    bool back;
    bool points;  /* every pixel meets itself alone: four neighbours are brought at once */
    int32_t room; /* depths of a row of w */
    const float *from, *w;
    float *to;
    struct conv_ending ending;
};

/* A product of one group and phase. */
struct section {
    struct walk down, across;
    int32_t depths;
    int32_t source_rows, source_columns, source_channels, source_first; /* channels: of the group */
    int64_t source_sample;                                              /* floats of a sample */
    int32_t result_columns, result_plane;
    int64_t result_sample;
};

static inline __device__ struct section section_of(const struct gather &gather, int32_t which)
{
    const struct conv &conv = gather.conv;
    const bool back = gather.back;
    const int32_t wide = phases_across(conv, back), tall = back ? conv.down.stride : 1;
    const int32_t group = which / wide / tall;
    struct section section;
    section.down = walk_of(conv.down, back, which / wide % tall);
    section.across = walk_of(conv.across, back, which % wide);
    section.source_channels = source_of(conv, back);
    section.depths = section.source_channels * section.down.count * section.across.count;
    section.source_rows = back ? conv.down.y : conv.down.x;
    section.source_columns = back ? conv.across.y : conv.across.x;
    section.source_first = group * section.source_channels;
    section.source_sample =
        (int64_t)section.source_rows * section.source_columns * (back ? conv.out : conv.in);
    section.result_columns = back ? conv.across.x : conv.across.y;
    section.result_plane = section.result_columns * (back ? conv.down.x : conv.down.y);
    section.result_sample = (int64_t)section.result_plane * (back ? conv.in : conv.out);
    return section;
}

/* The column of the tile that this thread brings. */
struct column {
    const float *from;
    int32_t row, column; /* of the source */
    bool inside;
};

static inline __device__ struct column column_of(const struct gather &gather,
                                                 const struct section &section, int64_t pixel,
                                                 int64_t *result)
{
    const uint32_t places = (uint32_t)(section.down.places * section.across.places);
    const int64_t sample = places ? pixel / places : gather.conv.samples;
    const uint32_t within = (uint32_t)(pixel - sample * places);
    const int32_t row = (int32_t)(within / (uint32_t)section.across.places);
    const int32_t across = (int32_t)(within % (uint32_t)section.across.places);
    struct column column = {gather.from, row * section.down.source_step,
                            across * section.across.source_step, sample < gather.conv.samples};
    *result = -1;
    if (!column.inside)
        return column;
    column.from += sample * section.source_sample +
                   ((int64_t)section.source_first * section.source_rows + column.row) *
                       section.source_columns +
                   column.column;
    *result = sample * section.result_sample +
              (section.down.begin + row * section.down.result_step) * section.result_columns +
              section.across.begin + across * section.across.result_step;
    return column;
}

static inline __device__ float conv_activation(const struct conv_ending &ending, float x)
{
    if (ending.activation == ACTIVATION_RELU)
        x = relu(x);
    else if (ending.activation != ACTIVATION_NONE)
        x = rare_activation(ending.activation, x);
    return ending.low < ending.high ? bounded(x, ending.low, ending.high) : x;
}

#endif
