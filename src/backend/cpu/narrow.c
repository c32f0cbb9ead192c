/* narrow.c: see narrow.h. */
#include "backend/cpu/narrow.h"

#include "backend/cpu/blocked.h"

#include <assert.h>
#include <string.h>

struct narrow narrow_of(const struct shape *shape, enum dtype dtype, enum narrow_form form)
{
    const int64_t first = shape->dim[0], rest = shape_count(shape) / first;
    const bool along_rest = shape->rank == 4 || form == NARROW_BACKWARD;
    struct narrow narrow = {.depth = along_rest ? rest : first,
                            .lanes = along_rest ? first : rest,
                            .per_word = dtype == DTYPE_I8 ? 4 : 2};
    assert(form == NARROW_FORWARD || (shape->rank == 2 && dtype != DTYPE_I8));
    narrow.kernel = shape->rank == 4 ? shape->dim[2] * shape->dim[3] : 1;
    int64_t channels = narrow.depth / narrow.kernel;
    int64_t words = (channels + narrow.per_word - 1) / narrow.per_word * narrow.kernel;
    narrow.words = blocked_up(words, NARROW_VISIT);
    narrow.panels = (narrow.lanes + NARROW_LANES - 1) / NARROW_LANES;
    narrow.stride = narrow.words | 1;
    return narrow;
}

uint64_t narrow_bytes(const struct shape *shape, enum dtype dtype, enum narrow_form form)
{
    const struct narrow narrow = narrow_of(shape, dtype, form);
    return (uint64_t)(narrow.panels * narrow.stride * NARROW_LINE);
}

static uint32_t word_of(float low, float high)
{
    return (uint32_t)bf16_of(low) | (uint32_t)bf16_of(high) << 16;
}

/* 16 inputs of 16 outputs, of which there are two groups of 8, or one. */
static void pack_forward(const float *const groups[2], uint32_t *to)
{
    for (int w = 0; w < BLOCKED_LANES / 2; w++)
        for (int lane = 0; lane < NARROW_LANES; lane++) {
            const float *group = groups[lane / BLOCKED_ROWS];
            const int at = lane % BLOCKED_ROWS * BLOCKED_LANES + 2 * w;
            to[w * NARROW_LANES + lane] = group ? word_of(group[at], group[at + 1]) : 0;
        }
}

/* 8 outputs of 16 inputs. */
static void pack_backward(const float *group, uint32_t *to)
{
    for (int w = 0; w < BLOCKED_ROWS / 2; w++)
        for (int lane = 0; lane < NARROW_LANES; lane++)
            to[w * NARROW_LANES + lane] = word_of(group[2 * w * BLOCKED_LANES + lane],
                                                  group[(2 * w + 1) * BLOCKED_LANES + lane]);
}

/* 16 outputs of a panel of 32: a word has one tap of two channels. */
static void pack_taps(const float *panel, int64_t taps, int64_t kernel, uint32_t *to)
{
    for (int64_t c = 0; c < taps; c += 2 * kernel)
        for (int64_t k = c; k < c + kernel; k++, to += NARROW_LANES)
            for (int lane = 0; lane < NARROW_LANES; lane++)
                to[lane] =
                    word_of(panel[k * BLOCKED_PANEL + lane],
                            k + kernel < taps ? panel[(k + kernel) * BLOCKED_PANEL + lane] : 0);
}

static void pack_panel(const struct shape *shape, enum narrow_form form, const float *blocked,
                       int64_t p, uint32_t *to)
{
    const int64_t groups = blocked_groups(shape);
    if (shape->rank == 4) {
        const int64_t taps = shape_count(shape) / shape->dim[0];
        pack_taps(blocked + p / 2 * BLOCKED_PANEL * taps + p % 2 * NARROW_LANES, taps,
                  shape->dim[2] * shape->dim[3], to);
    } else if (form == NARROW_FORWARD) {
        for (int64_t i = 0; i < shape->dim[0]; i += BLOCKED_LANES, to += 8 * NARROW_LANES) {
            const float *first = blocked + blocked_place(shape, i, 2 * p);
            const float *second =
                2 * p + 1 < groups ? blocked + blocked_place(shape, i, 2 * p + 1) : NULL;
            pack_forward((const float *const[]){first, second}, to);
        }
    } else {
        for (int64_t g = 0; g < groups; g++, to += 4 * NARROW_LANES)
            pack_backward(blocked + blocked_place(shape, p * NARROW_LANES, g), to);
    }
}

/* A panel of i8, of a dense layer [depth][lanes] or a convolution [lanes][depth]. */
static void pack_bytes(const struct shape *shape, const struct narrow *narrow,
                       const int8_t *weights, int64_t p, int8_t *to)
{
    const int64_t along = shape->rank == 4 ? 1 : narrow->lanes;
    const int64_t across = shape->rank == 4 ? narrow->depth : 1;
    memset(to, 0, (size_t)(narrow->words * NARROW_LINE));
    for (int64_t k = 0; k < narrow->depth; k++) {
        int64_t channel = k / narrow->kernel,
                word = channel / 4 * narrow->kernel + k % narrow->kernel;
        for (int64_t lane = 0; lane < NARROW_LANES && p * NARROW_LANES + lane < narrow->lanes;
             lane++)
            to[(word * NARROW_LANES + lane) * 4 + channel % 4] =
                weights[k * along + (p * NARROW_LANES + lane) * across];
    }
}

void narrow_pack(const struct shape *shape, enum dtype dtype, enum narrow_form form,
                 const void *weights, void *packed, int64_t first, int64_t last)
{
    const struct narrow narrow = narrow_of(shape, dtype, form);
    for (int64_t p = first; p < last; p++) {
        char *panel = (char *)packed + p * narrow.stride * NARROW_LINE;
        if (dtype == DTYPE_I8)
            pack_bytes(shape, &narrow, weights, p, (int8_t *)panel);
        else
            pack_panel(shape, form, weights, p, (uint32_t *)(void *)panel);
    }
}
