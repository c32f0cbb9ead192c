/* conv_panels.h: the product that a convolution is, in panels (conv_gemm.c): what a job of it and a
 * block of its pixels are, the panels of its weights (conv_panels.c) and the sums of a block
 * (conv_panels_sum.c). */
#ifndef PRONY_BACKEND_CPU_SIMD_CONV_CONV_PANELS_H
#define PRONY_BACKEND_CPU_SIMD_CONV_CONV_PANELS_H

#include "backend/cpu/simd/conv/conv_band.h"
#include "backend/cpu/simd/gemm/gemm_packed.h"

/* A panel of patches, or of weights, is read from L1 and L2 (48 KB); the other of them and the sums
 * in L2 (at most 172 + 112 KB). 112 pixels are 8 tiles of 14: images of 7 to 112 pixels a side,
 * whose sizes are often multiples of 14, divide into them evenly. */
enum { PANEL_TAPS = 384, PANEL_PIXELS = 112 };

struct panel_job {
    const struct gemm_kernels *gemm;
    const struct conv_kernels *conv;
    struct conv_relation relation;
    struct conv_after after;
    const float *x, *w;
    float *y;
    int64_t parts; /* that the outputs of a group are divided into */
    bool transposed;
    bool blocked; /* the weights */
    bool few;     /* pixels */
    struct conv_band band;
    /* workspace */
    struct patch_phase *phases;
    struct patch_tap *taps;
    float *weights; /* [group][phase][part] in panels of outputs */
    char *members;
    uint64_t member_bytes;
};

/* What a thread has. */
struct panel_member {
    float *patches; /* [PANEL_TAPS][columns], transposed [PANEL_TAPS][PANEL_PIXELS]; a vector behind
                       it. Or a band of some channels */
    float *sums;    /* [outputs][PANEL_PIXELS], transposed [pixels][outputs] */
    struct conv_piece *pieces; /* of each panel of a block … */
    int64_t *counts;           /* … and how many a tap has there */
    struct patch_run *runs;
};

/* Outputs and pixels of one phase that are computed together. */
struct panel_block {
    const struct patch_phase *phase;
    int64_t group;
    int64_t first, outputs; /* in the group */
    int64_t pixel, pixels;
    bool transposed;
};

/* Must the weights be packed? Blocks are what a transposed product of 32 outputs reads. */
bool panel_packs(const struct panel_job *job);
/* Packs the weights, as a task of a pool: each thread its share of every block's panels. */
void panel_pack(void *job, int index, int members);

/* Outputs of a part: whole panels, but for the last; and those of the part from `first` on. */
int64_t panel_part(const struct panel_job *job);
int64_t panel_part_at(const struct panel_job *job, int64_t first);
/* Of so many outputs, those that are in lanes: of a band all that fill panels. */
int64_t panel_transposed(const struct panel_job *job, int64_t outputs);
/* Where the packed weights of a block are. */
float *panel_weights(const struct panel_job *job, const struct panel_block *block);

/* A block's outputs at its pixels, with what follows, to y. */
void panel_sum(const struct panel_job *job, const struct panel_member *member,
               const struct panel_block *block);

#endif
