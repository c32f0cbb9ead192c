/* conv_patches.h: where the patches of a convolution are found.
 *
 * Target pixels that are neighbours in a row meet, with one tap, source pixels that are neighbours
 * too, or `move` apart. So the pixels of a panel are a short list of pieces, each at most a vector,
 * with a mask where a tap meets padding; the list is the same for every channel. */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_CONV_PATCHES_H
#define PRONY_BACKEND_CPU_SIMD_CONV_CONV_PATCHES_H

#include "backend/cpu/conv_relation.h"
#include "backend/cpu/simd/conv/conv_shared.h"

enum { PATCH_PIXELS = 192 }; /* that one list of pieces may cover */

/* A tap in a channel: rows and columns from the pixel's, and its place in the weights. */
struct patch_tap {
    int64_t down, across, place;
};

/* One phase of the target (conv_relation.h). */
struct patch_phase {
    int64_t down, across;
    int64_t rows, columns; /* of its pixels */
    int64_t first, count;  /* its taps in a channel, in the list of all phases' */
};

/* Neighbouring pixels of one sample. */
struct patch_run {
    int64_t at, length; /* in the panel */
    int64_t sample, row, column;
};

/* The same convolution with the rows of an image one behind the other, where no tap minds. */
struct conv_relation patch_flat(const struct conv_relation *relation);

int64_t patch_phases(const struct conv_relation *relation);
/* Fills phases [patch_phases] and taps [kernel height · width]. */
void patch_list(const struct conv_relation *relation, struct patch_phase *phases,
                struct patch_tap *taps);

/* `count` pixels from number `first` of all samples on, in runs of at most `most`; returns how many
 * runs there are. */
int64_t patch_runs(int64_t rows, int64_t columns, int64_t first, int64_t count, int64_t most,
                   struct patch_run *runs);

/* The pieces [tap][piece] of these pixels; returns how many each tap has. Columns behind the last
 * pixel, up to `width`, are 0. */
int64_t patch_pieces(const struct conv_relation *relation, const struct patch_phase *phase,
                     const struct patch_tap *taps, int64_t lanes, int64_t first, int64_t count,
                     int64_t width, struct conv_piece *pieces);

#endif
