/* conv_band.c: see conv_band.h. */
#include "backend/cpu/simd/conv_band.h"

enum { LINE = 16 }; /* floats of a cache line */

/* Pixels that a row of the band holds besides those of the target's row. */
static int64_t reach_of(const struct conv_axis *across)
{
    return (across->high - across->low) / across->move;
}

struct conv_band band_of(const struct conv_relation *relation, int64_t pixels, int64_t taps,
                         int64_t floats, int64_t tile)
{
    const struct conv_axis *down = &relation->down, *across = &relation->across;
    struct conv_band band = {0};
    int64_t kernel = down->kernel * across->kernel, columns = across->steps;
    /* Rows are cut into tiles: short ones would make small tiles. */
    if (patch_phases(relation) > 1 || kernel == 1 || kernel > taps || columns > pixels ||
        columns < 2 * tile / 3)
        return band;
    int64_t most = pixels / columns, blocks = (down->steps + most - 1) / most;
    int64_t rows = (down->steps + blocks - 1) / blocks;
    band.source = (struct patch_phase){
        .rows = down->steps,
        .columns = columns + reach_of(across),
        .count = ((rows - 1) * down->move + down->high - down->low + 1) * across->move,
    };
    /* An odd number of lines, so that the rows of all channels do not meet in a few sets of L1. */
    band.lead = ((band.source.columns + LINE - 1) / LINE | 1) * LINE;
    band.down = down->move * across->move * band.lead;
    band.channels = taps / kernel < relation->in_group ? taps / kernel : relation->in_group;
    if (band.channels * band.source.count * band.lead <= floats)
        band.rows = rows;
    return band;
}

void band_list(const struct conv_relation *relation, const struct patch_tap *list,
               struct conv_band *band)
{
    const struct conv_axis *down = &relation->down, *across = &relation->across;
    int64_t kernel = down->kernel * across->kernel, move = across->move;
    for (int64_t i = 0; i < band->source.count; i++)
        band->taps[i] =
            (struct patch_tap){.down = down->low + i / move, .across = across->low + i % move};
    for (int64_t k = 0; k < band->channels * kernel; k++) {
        const struct patch_tap *tap = &list[k % kernel];
        int64_t column = tap->across - across->low;
        int64_t row = (tap->down - down->low) * move + column % move;
        band->offsets[k] = (k / kernel * band->source.count + row) * band->lead + column / move;
    }
}
