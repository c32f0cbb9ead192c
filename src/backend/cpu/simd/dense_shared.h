/* dense_shared.h: the seam between the loops of the dense family (dense_blocked.c: chunks, tiles,
 * threads, written once) and its kernels (dense_simd.h: compiled once per ISA). */
#ifndef PRONY_BACKEND_CPU_SIMD_DENSE_SHARED_H
#define PRONY_BACKEND_CPU_SIMD_DENSE_SHARED_H

#include <stdint.h>

enum { DENSE_TILE = 12, DENSE_STREAM = 3 };

/* Indexed by the number of samples. Weights point at a group (blocked.h). */
struct dense_kernels {
    /* sums[row][sample] = w · x over the chunk's vectors, 8 rows */
    void (*dot[DENSE_TILE + 1])(const float *w, const float *xs, int64_t vectors, float *sums);
    /* one vector of inputs down `groups` groups that lie group_floats apart: dx += dy·w */
    void (*back[DENSE_TILE + 1])(float *w, int64_t group_floats, int64_t groups, const float *dy,
                                 const float *x, float *dx);
    /* the same, and w -= rate·dy·x */
    void (*step[DENSE_TILE + 1])(float *w, int64_t group_floats, int64_t groups, const float *dy,
                                 const float *x, float *dx, float rate);
    /* one group over all vectors of the chunk, the same */
    void (*stream[DENSE_STREAM + 1])(float *w, int64_t vectors, const float *dy, const float *xs,
                                     float *dxs, float rate);
    /* one vector of inputs of one group over a whole batch; dy is [sample][8 rows] */
    void (*outer_step)(float *w, const float *dy, const float *x, int64_t batch, float scale);
    void (*outer_set)(float *w, const float *dy, const float *x, int64_t batch, float scale);
    void (*outer_add)(float *w, const float *dy, const float *x, int64_t batch, float scale);
    /* y = f(x) for functions without an alpha; x may be y */
    void (*activate)(int32_t function, const float *x, float *y, int64_t count);
};

extern const struct dense_kernels dense_kernels_avx2, dense_kernels_avx512;

#endif
