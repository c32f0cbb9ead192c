/* dense_simd.h: the dense family over blocked weights (blocked.h), compiled once per ISA by
 * dense_avx2.c and dense_avx512.c, which define ISA(name).
 *
 * A batch is taken in tiles of at most TILE samples. Activations of one chunk of inputs are packed
 * into vectors of 16, zero-padded: xs[vector][sample][16]; they stay in L1 while weights stream.
 *
 *   forward    dot products: rows × samples accumulators, weights read once per tile; the bound is
 *              the weights' bytes up to about 8 samples, then FMA
 *   backward   dx += dy·w down the rows, with x and dx of one vector in registers; in the fused
 * form w -= rate·Σ dy·x in the same pass: the weights are read and written once outer      dw = Σ
 * dy·x, 8 rows × 2 vectors in registers over the batch
 *
 * Threads take ranges of output groups; each sums its own dx, and the sums are added in the order
 * of the threads. With one thread count the bits are always the same. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/activate_simd.h"
#include "backend/cpu/simd/blocked.h"
#include "backend/cpu/simd/dense_shared.h"
#include "backend/cpu/simd/vec.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    TILE = 12,
    HALVES = BLOCKED_LANES / VEC_LANES,
    AHEAD = 4096 /* floats that a prefetch runs ahead: two groups */
};

/* sums[row][sample] = Σ over the chunk, for R rows and B samples. */
INLINE void dot_rows(const float *w, const float *xs, int64_t vectors, const int R, const int B,
                     float *sums)
{
    vec sum[VEC_MOST];
#pragma GCC unroll 24
    for (int k = 0; k < R * B; k++)
        sum[k] = vec_zero();
    for (int64_t v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int h = 0; h < HALVES; h++) {
            const float *row = w + v * BLOCKED_ROWS * BLOCKED_LANES + h * VEC_LANES;
            const float *x = xs + v * B * BLOCKED_LANES + h * VEC_LANES;
            vec weights[BLOCKED_ROWS];
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                weights[r] = vec_load(row + r * BLOCKED_LANES);
                if (h == 0 &&
                    B > 1) /* one sample alone is a plain stream: the CPU sees it coming */
                    vec_prefetch(row + r * BLOCKED_LANES + AHEAD);
            }
#pragma GCC unroll 12
            for (int b = 0; b < B; b++) {
                vec value = vec_load(x + b * BLOCKED_LANES);
                vec_pin(value);
#pragma GCC unroll 8
                for (int r = 0; r < R; r++)
                    sum[r * B + b] = vec_fma(weights[r], value, sum[r * B + b]);
            }
        }
#pragma GCC unroll 6
    for (int k = 0; k + 4 <= R * B; k += 4)
        vec_sum4(sum[k], sum[k + 1], sum[k + 2], sum[k + 3], sums + k);
#pragma GCC unroll 3
    for (int k = R * B / 4 * 4; k < R * B; k++)
        sums[k] = vec_sum(sum[k]);
}

/* All 8 rows of a group, R at a time. */
INLINE void dot_group(const float *w, const float *xs, int64_t vectors, const int B, float *sums)
{
    const int R = B * 8 <= VEC_MOST ? 8 : B * 4 <= VEC_MOST ? 4 : B * 2 <= VEC_MOST ? 2 : 1;
    for (int r = 0; r < BLOCKED_ROWS; r += R)
        dot_rows(w + r * BLOCKED_LANES, xs, vectors, R, B, sums + r * B);
}

/* One vector of inputs down the rows of some groups: dx += dy·w, and with `update` w -= rate·dy·x.
 * dy is [row][sample]; x and dx are [sample][16]. */
INLINE void back_vector(float *w, int64_t group_floats, int64_t groups, const float *dy,
                        const float *x, float *dx, const int B, const bool update, float rate)
{
    vec rates = vec_set(rate);
#pragma GCC unroll 2
    for (int h = 0; h < HALVES; h++) {
        vec value[TILE], slope[TILE];
#pragma GCC unroll 12
        for (int b = 0; b < B; b++) {
            value[b] = vec_load(x + b * BLOCKED_LANES + h * VEC_LANES);
            slope[b] = vec_load(dx + b * BLOCKED_LANES + h * VEC_LANES);
        }
        const float *factor = dy;
        for (int64_t g = 0; g < groups; g++) {
            float *row = w + g * group_floats + h * VEC_LANES;
            for (int r = 0; r < BLOCKED_ROWS; r++, row += BLOCKED_LANES, factor += B) {
                vec weight = vec_load(row), gradient = vec_zero();
#pragma GCC unroll 12
                for (int b = 0; b < B; b++) {
                    vec d = vec_set(factor[b]);
                    slope[b] = vec_fma(d, weight, slope[b]);
                    if (update)
                        gradient = vec_fma(d, value[b], gradient);
                }
                if (update)
                    vec_store(row, vec_fnma(rates, gradient, weight));
            }
        }
#pragma GCC unroll 12
        for (int b = 0; b < B; b++)
            vec_store(dx + b * BLOCKED_LANES + h * VEC_LANES, slope[b]);
    }
}

/* Up to 3 samples: one group after the other, so that the weights are one stream. */
INLINE void back_group(float *w, int64_t vectors, const float *dy, const float *xs, float *dxs,
                       const int B, const bool update, float rate)
{
    vec factor[BLOCKED_ROWS * 3], rates = vec_set(rate);
#pragma GCC unroll 24
    for (int k = 0; k < BLOCKED_ROWS * B; k++)
        factor[k] = vec_set(dy[k]);
    for (int64_t v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int h = 0; h < HALVES; h++) {
            float *row = w + v * BLOCKED_ROWS * BLOCKED_LANES + h * VEC_LANES;
            const float *x = xs + v * B * BLOCKED_LANES + h * VEC_LANES;
            float *dx = dxs + v * B * BLOCKED_LANES + h * VEC_LANES;
            vec value[3], slope[3];
#pragma GCC unroll 3
            for (int b = 0; b < B; b++) {
                value[b] = vec_load(x + b * BLOCKED_LANES);
                slope[b] = vec_load(dx + b * BLOCKED_LANES);
            }
#pragma GCC unroll 8
            for (int r = 0; r < BLOCKED_ROWS; r++) {
                vec weight = vec_load(row + r * BLOCKED_LANES);
                vec gradient = vec_mul(factor[r * B], value[0]);
                if (h == 0)
                    vec_prefetch(row + r * BLOCKED_LANES + AHEAD);
#pragma GCC unroll 3
                for (int b = 0; b < B; b++) {
                    slope[b] = vec_fma(factor[r * B + b], weight, slope[b]);
                    if (update && b)
                        gradient = vec_fma(factor[r * B + b], value[b], gradient);
                }
                if (update)
                    vec_store(row + r * BLOCKED_LANES, vec_fnma(rates, gradient, weight));
            }
#pragma GCC unroll 3
            for (int b = 0; b < B; b++)
                vec_store(dx + b * BLOCKED_LANES, slope[b]);
        }
}

/* A group over one chunk for a batch of any size: gradient[vector][row][16] summed over the batch,
 * then given to w: w -= rate·g, or w = scale·g, or w += scale·g. xs is [vector][sample][16]. */
enum { OUTER_STEP, OUTER_SET, OUTER_ADD };

INLINE void outer_vector(float *w, const float *dy, const float *x, int64_t batch, const int mode,
                         float scale)
{
    vec factor = vec_set(scale);
#pragma GCC unroll 2
    for (int h = 0; h < HALVES; h++) {
        vec sum[BLOCKED_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < BLOCKED_ROWS; r++)
            sum[r] = vec_zero();
        for (int64_t n = 0; n < batch; n++) {
            vec value = vec_load(x + n * BLOCKED_LANES + h * VEC_LANES);
            vec_pin(value);
#pragma GCC unroll 8
            for (int r = 0; r < BLOCKED_ROWS; r++)
                sum[r] = vec_fma(vec_set(dy[n * BLOCKED_ROWS + r]), value, sum[r]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < BLOCKED_ROWS; r++) {
            float *row = w + r * BLOCKED_LANES + h * VEC_LANES;
            vec old = mode == OUTER_SET ? vec_zero() : vec_load(row);
            vec_store(row, mode == OUTER_STEP ? vec_fnma(factor, sum[r], old)
                                              : vec_fma(factor, sum[r], old));
        }
    }
}

static void outer_step(float *w, const float *dy, const float *x, int64_t batch, float scale)
{
    outer_vector(w, dy, x, batch, OUTER_STEP, scale);
}

static void outer_set(float *w, const float *dy, const float *x, int64_t batch, float scale)
{
    outer_vector(w, dy, x, batch, OUTER_SET, scale);
}

static void outer_add(float *w, const float *dy, const float *x, int64_t batch, float scale)
{
    outer_vector(w, dy, x, batch, OUTER_ADD, scale);
}

/* The kernels by number of samples, 1 to TILE. */
#define BY_SAMPLES(EACH)                                                                           \
    EACH(1)                                                                                        \
    EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11) EACH(12)
#define DEFINE(B)                                                                                  \
    static void dot_##B(const float *w, const float *xs, int64_t vectors, float *sums)             \
    {                                                                                              \
        dot_group(w, xs, vectors, B, sums);                                                        \
    }                                                                                              \
    static void back_##B(float *w, int64_t group_floats, int64_t groups, const float *dy,          \
                         const float *x, float *dx)                                                \
    {                                                                                              \
        back_vector(w, group_floats, groups, dy, x, dx, B, false, 0);                              \
    }                                                                                              \
    static void step_##B(float *w, int64_t group_floats, int64_t groups, const float *dy,          \
                         const float *x, float *dx, float rate)                                    \
    {                                                                                              \
        back_vector(w, group_floats, groups, dy, x, dx, B, true, rate);                            \
    }
BY_SAMPLES(DEFINE)
#define DEFINE_STREAM(B)                                                                           \
    static void stream_##B(float *w, int64_t vectors, const float *dy, const float *xs,            \
                           float *dxs, float rate)                                                 \
    {                                                                                              \
        back_group(w, vectors, dy, xs, dxs, B, true, rate);                                        \
    }
DEFINE_STREAM(1)
DEFINE_STREAM(2)
DEFINE_STREAM(3)

#define DOT(B) [B] = dot_##B,
#define BACK(B) [B] = back_##B,
#define STEP(B) [B] = step_##B,
const struct dense_kernels ISA(dense_kernels) = {
    .dot = {BY_SAMPLES(DOT)},
    .back = {BY_SAMPLES(BACK)},
    .step = {BY_SAMPLES(STEP)},
    .stream = {[1] = stream_1, [2] = stream_2, [3] = stream_3},
    .outer_step = outer_step,
    .outer_set = outer_set,
    .outer_add = outer_add,
    .activate = activate_span,
};
