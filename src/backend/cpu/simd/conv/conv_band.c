/* conv_band.c: see conv_band.h. */
#include "backend/cpu/simd/conv/conv_band.h"

enum { LINE = 16 }; /* floats of a cache line */

/* Pixels that a row of the band holds besides those of the target's row. */
static int64_t reach_of(const struct conv_axis *across)
{
    return (across->high - across->low) / across->move;
}

/* Are all taps offsets into one band, and several of them? */
static bool bands_suit(const struct conv_relation *relation, int64_t taps)
{
    int64_t kernel = relation->down.kernel * relation->across.kernel;
    return patch_phases(relation) == 1 && kernel > 1 && kernel <= taps;
}

/* As many rows for each block, but the last, as for the others. */
static int64_t even_rows(const struct conv_axis *down, int64_t most)
{
    int64_t blocks = (down->steps + most - 1) / most;
    return (down->steps + blocks - 1) / blocks;
}

static struct conv_band band_with(const struct conv_relation *relation, int64_t rows, int64_t lead,
                                  int64_t taps, int64_t floats)
{
    const struct conv_axis *down = &relation->down, *across = &relation->across;
    int64_t most = taps / (down->kernel * across->kernel);
    struct conv_band band = {
        .channels = most < relation->in_group ? most : relation->in_group,
        .lead = lead,
        .down = down->move * across->move * lead,
        .source =
            {
                .rows = down->steps,
                .columns = across->steps + reach_of(across),
                .count = ((rows - 1) * down->move + down->high - down->low + 1) * across->move,
            },
    };
    if (band.channels * band.source.count * lead <= floats)
        band.rows = rows;
    return band;
}

struct conv_band band_of(const struct conv_relation *relation, int64_t pixels, int64_t taps,
                         int64_t floats, int64_t tile)
{
    const struct conv_axis *across = &relation->across;
    int64_t columns = across->steps;
    /* Rows are cut into tiles: short ones would make small tiles. */
    if (!bands_suit(relation, taps) || columns > pixels || columns < 2 * tile / 3)
        return (struct conv_band){0};
    /* An odd number of lines, so that the rows of all channels do not meet in a few sets of L1. */
    int64_t lead = ((columns + reach_of(across) + LINE - 1) / LINE | 1) * LINE;
    return band_with(relation, even_rows(&relation->down, pixels / columns), lead, taps, floats);
}

struct conv_band band_flat(const struct conv_relation *relation, int64_t pixels, int64_t taps,
                           int64_t floats)
{
    const struct conv_axis *across = &relation->across;
    int64_t lead = across->steps + reach_of(across);
    if (!bands_suit(relation, taps) || relation->down.move * across->move > 1 || lead > pixels)
        return (struct conv_band){0};
    return band_with(relation, even_rows(&relation->down, pixels / lead), lead, taps, floats);
}

int64_t band_run(const struct conv_band *band, int64_t rows, int64_t columns)
{
    return (rows - 1) * band->lead + columns;
}

void band_list(const struct conv_relation *relation, const struct patch_tap *list,
               struct conv_band *band)
{
    const struct conv_axis *down = &relation->down, *across = &relation->across;
    int64_t kernel = down->kernel * across->kernel, move = across->move;
    for (int64_t i = 0; i < band->source.count; i++)
        band->taps[i] =
            (struct patch_tap){.down = down->low + i / move, .across = across->low + i % move};
    for (int64_t k = 0; k < kernel; k++) {
        const struct patch_tap *tap = &list[k];
        int64_t column = tap->across - across->low;
        int64_t row = (tap->down - down->low) * move + column % move;
        band->offsets[k] = row * band->lead + column / move;
    }
    for (int64_t k = kernel; k < band->channels * kernel; k++)
        band->offsets[k] = band->offsets[k - kernel] + band->source.count * band->lead;
}
