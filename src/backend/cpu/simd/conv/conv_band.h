/* conv_band.h: patches that need not be copied for every tap.
 *
 * Where a block of pixels is some whole rows of the target, all its taps find their pixels in a
 * band of the source: a few rows, with the padding around them. With a step of s between pixels
 * each row is s rows, of every s-th column, so that neighbouring pixels are neighbours there for
 * every tap. So a band is copied once per channel, as the patches of taps that stand for its rows
 * (conv_patches.h), and a tap is an offset into it: 3 × 3 taps of two rows of 56 pixels are 16
 * vectors a channel instead of 72. */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_CONV_BAND_H
#define PRONY_BACKEND_CPU_SIMD_CONV_CONV_BAND_H

#include "backend/cpu/simd/conv/conv_patches.h"

struct conv_band {
    int64_t rows;     /* of the target, in a block; 0: bands do not suit */
    int64_t channels; /* taken together */
    int64_t lead;     /* from a row of the band to the next … */
    int64_t down;     /* … and from what one row of pixels meets to what the next meets */
    struct patch_phase source; /* the band's rows as taps … */
    struct patch_tap *taps;    /* … [source.count] */
    int64_t *offsets;          /* [channels][tap]: where a tap finds the first pixel */
};

/* The geometry of bands for blocks of at most `pixels` pixels, at most `taps` taps and `floats`
 * floats at a time, in tiles of at most `tile` pixels. */
struct conv_band band_of(const struct conv_relation *relation, int64_t pixels, int64_t taps,
                         int64_t floats, int64_t tile);

/* The same where the pixels of all rows are taken as one run, from the first to the last, with what
 * lies between two rows: a row follows the one before it at once, and `pixels` counts the run. */
struct conv_band band_flat(const struct conv_relation *relation, int64_t pixels, int64_t taps,
                           int64_t floats);
int64_t band_run(const struct conv_band *band, int64_t rows, int64_t columns);

/* Fills taps and offsets; `list` has the taps of the convolution. */
void band_list(const struct conv_relation *relation, const struct patch_tap *list,
               struct conv_band *band);

#endif
