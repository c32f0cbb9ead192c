/* dense_isa.c: the dense family over blocked weights (blocked.h), compiled once per ISA.
 * dense_shared.h says how operands lie.
 *
 *   dot      rows × samples accumulators, lanes along the inputs: the weights are read once for up
 *            to 12 samples. Bound by the weights' bytes up to about 8 samples, then by FMA.
 *   lanes    many samples: 8 rows × 3 vectors of samples, a weight broadcast. Bound by FMA: 11
 *            loads for 24 of them.
 *   stream   up to 3 samples backward and update, one group after the other: bound by bytes.
 *   step     up to 12 samples backward and update, x and dx of one vector in registers: 2 FMA a
 *            weight and sample.
 *   back     8 samples × 3 vectors of dx in registers, dy broadcast: 11 loads for 24 FMA.
 *   outer    8 rows × 3 vectors of dw in registers over the batch: the same.
 *
 * In L1 `lanes` and `outer` reach 99 % of the peak. back and outer are given what they
 * need one by one: a struct that is copied and changed for each call is read before its stores are
 * done, and to gcc any vector that is stored might change it.
 *
 * dx always uses the weight from before the update. A gradient is summed before it is given to the
 * weight, so that the weight is rounded once; x is scaled by the rate when it is packed, so that
 * giving it is an addition, which does not take an FMA's turn. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/dense/dense_shared.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_lanes.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    HALVES = BLOCKED_LANES / VEC_LANES,
    BLOCK = BLOCKED_ROWS * BLOCKED_LANES, /* floats of one vector of inputs in a group */
    AHEAD = 6144,                         /* floats that a prefetch runs ahead: about two groups */

};

/* Where the column is: `column` counts vectors of VEC_LANES; `vector` is the stride of 16 inputs.
 */
#define COLUMN(column, vector) ((column) / HALVES * (vector) + (column) % HALVES * VEC_LANES)

/* sums[row][sample] = Σ over the chunk, for R rows and B samples. Of 3 to 5 samples each reads the
 * weights again (vec_fma_at): 8 to 13 % less time. Of more the loads would be what it waits for, as
 * they would with half as long vectors. */
INLINE void dot_rows(const float *w, const float *xs, int64_t vectors, const int R, const int B,
                     float *sums)
{
    const bool again = HALVES == 1 && B >= 3 && B <= 5;
    vec sum[VEC_MOST];
#pragma GCC unroll 24
    for (int k = 0; k < R * B; k++)
        sum[k] = vec_zero();
    for (int64_t v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int h = 0; h < HALVES; h++) {
            const float *row = w + v * BLOCK + h * VEC_LANES;
            const float *x = xs + v * B * BLOCKED_LANES + h * VEC_LANES;
            vec weight[BLOCKED_ROWS];
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                weight[r] = again ? vec_zero() : vec_load(row + r * BLOCKED_LANES);
                if (h == 0)
                    vec_prefetch(row + r * BLOCKED_LANES + AHEAD);
            }
#pragma GCC unroll 12
            for (int b = 0; b < B; b++) {
                vec value = vec_load(x + b * BLOCKED_LANES);
                vec_pin(value);
#pragma GCC unroll 8
                for (int r = 0; r < R; r++)
                    if (again)
                        vec_fma_at(sum[r * B + b], value, row + r * BLOCKED_LANES);
                    else
                        sum[r * B + b] = vec_fma(weight[r], value, sum[r * B + b]);
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

/* So few samples are bound by memory alone. Several chunks of P parts of the outputs at once are
 * several streams, each fetched from near by: that reads 49 MB at 60 GB/s where one stream reads
 * them at 40. Between groups there is little to do, or the streams would stand still. */
INLINE void dot_streams(const struct dense_strip *strip, int64_t groups, float *sums, const int B,
                        const int P)
{
    enum { MOST = BLOCKED_ROWS * DENSE_FEW }; /* DENSE_PARTS of one sample are as many */
    const int near = B == 1 ? 2 * BLOCK : BLOCK, count = P * BLOCKED_ROWS * B;
    const int64_t chunks = strip->chunks, vectors = strip->vectors, last = strip->last;
    for (int64_t g = 0; g < groups; g++, sums += BLOCKED_ROWS * B) {
        vec sum[MOST];
#pragma GCC unroll 16
        for (int k = 0; k < count; k++)
            sum[k] = vec_zero();
        for (int64_t v = 0; v < vectors; v++)
            for (int64_t c = 0; c < chunks - (v >= last); c++)
#pragma GCC unroll 2
                for (int h = 0; h < HALVES; h++) {
                    const float *x =
                        strip->xs + (c * vectors + v) * B * BLOCKED_LANES + h * VEC_LANES;
                    const int64_t at =
                        (g * (c + 1 < chunks ? vectors : last) + v) * BLOCK + h * VEC_LANES;
                    vec value[DENSE_FEW];
#pragma GCC unroll 2
                    for (int b = 0; b < B; b++) {
                        value[b] = vec_load(x + b * BLOCKED_LANES);
                        vec_pin(value[b]);
                    }
#pragma GCC unroll 16
                    for (int k = 0; k < P * BLOCKED_ROWS; k++) {
                        const float *row =
                            strip->w[k / BLOCKED_ROWS][c] + at + k % BLOCKED_ROWS * BLOCKED_LANES;
                        vec weight = vec_load(row);
                        vec_pin(weight);
                        if (h == 0)
                            vec_prefetch(row + near);
#pragma GCC unroll 2
                        for (int b = 0; b < B; b++)
                            sum[k * B + b] = vec_fma(weight, value[b], sum[k * B + b]);
                    }
                }
#pragma GCC unroll 4
        for (int k = 0; k < count; k += 4) {
            float more[4], *to = sums + k / (BLOCKED_ROWS * B) * groups * BLOCKED_ROWS * B +
                                 k % (BLOCKED_ROWS * B);
            vec_sum4(sum[k], sum[k + 1], sum[k + 2], sum[k + 3], more);
            for (int r = 0; r < 4; r++)
                to[r] += more[r];
        }
    }
}

/* R rows of ys[row][T vectors of samples]. */
INLINE void lanes_rows(const float *w, const float *xt, int64_t vectors, const float *start,
                       float *ys, const int R, const int T)
{
    vec sum[VEC_MOST];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 3
        for (int t = 0; t < T; t++)
            sum[r * T + t] = start ? vec_set(start[r]) : vec_load(ys + (r * T + t) * VEC_LANES);
    for (int64_t v = 0; v < vectors; v++, w += BLOCK) {
#pragma GCC unroll 4
        for (int k = 0; k < BLOCKED_LANES; k++, xt += T * VEC_LANES) {
            if (k % (BLOCKED_LANES / R) == 0) /* the R rows' lines, one after the other */
                vec_prefetch(w + k * R + AHEAD);
            vec value[DENSE_LANES];
#pragma GCC unroll 3
            for (int t = 0; t < T; t++) {
                value[t] = vec_load(xt + t * VEC_LANES);
                vec_pin(value[t]);
            }
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                vec weight = vec_set(w[r * BLOCKED_LANES + k]);
#pragma GCC unroll 3
                for (int t = 0; t < T; t++)
                    sum[r * T + t] = vec_fma(weight, value[t], sum[r * T + t]);
            }
        }
    }
#pragma GCC unroll 24
    for (int k = 0; k < R * T; k++)
        vec_store(ys + k * VEC_LANES, sum[k]);
}

INLINE void lanes_group(const float *w, const float *xt, int64_t vectors, const float *start,
                        float *ys, const int T)
{
    enum { R = VEC_MOST / DENSE_LANES };
    for (int r = 0; r < BLOCKED_ROWS; r += R)
        lanes_rows(w + r * BLOCKED_LANES, xt, vectors, start ? start + r : start,
                   ys + r * T * VEC_LANES, R, T);
}

/* Up to 3 samples: one group, so that the weights are one stream. The groups come in descending
 * order: what the forward pass read last is still in the cache. */
INLINE void stream_group(const struct dense_piece *piece, int64_t vectors, const int B)
{
    vec factor[BLOCKED_ROWS * DENSE_STREAM], shrink = vec_set(-piece->shrink);
#pragma GCC unroll 24
    for (int k = 0; k < BLOCKED_ROWS * B; k++)
        factor[k] = vec_set(piece->dy[k]);
    for (int64_t v = 0; v < vectors; v++)
#pragma GCC unroll 2
        for (int h = 0; h < HALVES; h++) {
            float *row = piece->w + v * BLOCK + h * VEC_LANES;
            const float *x = piece->x + v * B * BLOCKED_LANES + h * VEC_LANES;
            float *dx = piece->dx + v * B * BLOCKED_LANES + h * VEC_LANES;
            vec value[DENSE_STREAM], sum[DENSE_STREAM];
#pragma GCC unroll 3
            for (int b = 0; b < B; b++) {
                value[b] = vec_load(x + b * BLOCKED_LANES);
                sum[b] = vec_load(dx + b * BLOCKED_LANES);
            }
#pragma GCC unroll 8
            for (int r = 0; r < BLOCKED_ROWS; r++) {
                vec weight = vec_load(row + r * BLOCKED_LANES);
                vec gradient = vec_fma(factor[r], value[0], vec_mul(shrink, weight));
                if (h == 0)
                    vec_prefetch(row + r * BLOCKED_LANES - piece->group_floats);
#pragma GCC unroll 3
                for (int b = 0; b < B; b++) {
                    sum[b] = vec_fma(factor[b * BLOCKED_ROWS + r], weight, sum[b]);
                    if (b)
                        gradient = vec_fma(factor[b * BLOCKED_ROWS + r], value[b], gradient);
                }
                vec_store(row + r * BLOCKED_LANES, vec_add(weight, gradient));
            }
#pragma GCC unroll 3
            for (int b = 0; b < B; b++)
                vec_store(dx + b * BLOCKED_LANES, sum[b]);
        }
}

/* One vector of inputs down the groups, with the update. Prefetches what lies one piece below. */
INLINE void step_vector(const struct dense_piece *piece, const int B)
{
#pragma GCC unroll 2
    for (int h = 0; h < HALVES; h++) {
        const float *x = piece->x + h * VEC_LANES, *dy = piece->dy;
        float *dx = piece->dx + h * VEC_LANES, *row = piece->w + h * VEC_LANES;
        vec value[DENSE_TILE], sum[DENSE_TILE];
#pragma GCC unroll 12
        for (int b = 0; b < B; b++) {
            value[b] = vec_load(x + b * BLOCKED_LANES);
            sum[b] = vec_load(dx + b * BLOCKED_LANES);
        }
        for (int64_t g = 0; g < piece->groups; g++) {
            const float *next = row - piece->groups * piece->group_floats;
            for (int r = 0; r < BLOCKED_ROWS; r++) {
                vec weight = vec_load(row + r * BLOCKED_LANES), gradient = vec_zero();
                if (h == 0)
                    vec_prefetch(next + r * BLOCKED_LANES);
#pragma GCC unroll 12
                for (int b = 0; b < B; b++) {
                    vec factor = vec_set(dy[b * BLOCKED_ROWS + r]);
                    sum[b] = vec_fma(factor, weight, sum[b]);
                    gradient = vec_fma(factor, value[b], gradient);
                }
                vec_store(row + r * BLOCKED_LANES, vec_add(weight, gradient));
            }
            row += piece->group_floats;
            dy += piece->batch * BLOCKED_ROWS;
        }
#pragma GCC unroll 12
        for (int b = 0; b < B; b++)
            vec_store(dx + b * BLOCKED_LANES, sum[b]);
    }
}

/* B samples and C columns from `column` on, down the groups. */
INLINE void back_columns(const float *w, int64_t group_floats, int64_t groups, const float *dy,
                         float *dx, int64_t batch, const float *fetch, int column, const int B,
                         const int C)
{
    const int64_t vector = batch * BLOCKED_LANES;
    const float *from[DENSE_LANES];
    float *to[DENSE_LANES];
    vec sum[VEC_MOST];
#pragma GCC unroll 3
    for (int c = 0; c < C; c++) {
        from[c] = w + COLUMN(column + c, BLOCK);
        to[c] = dx + COLUMN(column + c, vector);
#pragma GCC unroll 8
        for (int b = 0; b < B; b++)
            sum[b * C + c] = vec_load(to[c] + b * BLOCKED_LANES);
    }
    for (int64_t g = 0; g < groups; g++, dy += batch * BLOCKED_ROWS) {
#pragma GCC unroll 2
        for (int r = 0; r < BLOCKED_ROWS; r++, fetch += BLOCKED_LANES) {
            vec weight[DENSE_LANES];
            vec_prefetch(fetch);
#pragma GCC unroll 3
            for (int c = 0; c < C; c++) {
                weight[c] = vec_load(from[c] + r * BLOCKED_LANES);
                vec_pin(weight[c]);
            }
#pragma GCC unroll 8
            for (int b = 0; b < B; b++) {
                vec factor = vec_set(dy[b * BLOCKED_ROWS + r]);
#pragma GCC unroll 3
                for (int c = 0; c < C; c++)
                    sum[b * C + c] = vec_fma(factor, weight[c], sum[b * C + c]);
            }
        }
#pragma GCC unroll 3
        for (int c = 0; c < C; c++)
            from[c] += group_floats;
    }
#pragma GCC unroll 3
    for (int c = 0; c < C; c++)
#pragma GCC unroll 8
        for (int b = 0; b < B; b++)
            vec_store(to[c] + b * BLOCKED_LANES, sum[b * C + c]);
}

/* Columns, of all that there are, that are taken at once; and samples or rows beside them. */
#define AT_ONCE(all) ((all) % DENSE_LANES == 0 ? DENSE_LANES : (all) % 2 == 0 ? 2 : 1)
enum { BESIDE = VEC_MOST / DENSE_LANES };

INLINE void back_vectors(const float *w, int64_t group_floats, int64_t groups, const float *dy,
                         float *dx, int64_t batch, const float *fetch, const int B,
                         const int vectors)
{
    const int all = vectors * HALVES;
#pragma GCC unroll 2
    for (int b = 0; b < B; b += BESIDE)
#pragma GCC unroll 2
        for (int column = 0; column < all; column += AT_ONCE(all))
            back_columns(w, group_floats, groups, dy + b * BLOCKED_ROWS, dx + b * BLOCKED_LANES,
                         batch, fetch, column, B - b < BESIDE ? B - b : BESIDE, AT_ONCE(all));
}

/* C columns of BESIDE rows of a group over the batch. */
INLINE void outer_columns(float *w, int64_t below, const float *dy, const float *x, int64_t batch,
                          int column, const int C, const bool add)
{
    const float *from[DENSE_LANES];
    vec sum[VEC_MOST];
#pragma GCC unroll 24
    for (int k = 0; k < BESIDE * C; k++)
        sum[k] = vec_zero();
#pragma GCC unroll 3
    for (int c = 0; c < C; c++)
        from[c] = x + COLUMN(column + c, batch * BLOCKED_LANES);
    for (int64_t n = 0; n < batch; n++, dy += BLOCKED_ROWS) {
        vec value[DENSE_LANES];
#pragma GCC unroll 3
        for (int c = 0; c < C; c++) {
            value[c] = vec_load(from[c]);
            vec_pin(value[c]);
            from[c] += BLOCKED_LANES;
        }
#pragma GCC unroll 8
        for (int r = 0; r < BESIDE; r++) {
            vec factor = vec_set(dy[r]);
#pragma GCC unroll 3
            for (int c = 0; c < C; c++)
                sum[r * C + c] = vec_fma(factor, value[c], sum[r * C + c]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < BESIDE; r++)
#pragma GCC unroll 3
        for (int c = 0; c < C; c++) {
            float *row = w + COLUMN(column + c, BLOCK) + r * BLOCKED_LANES;
            vec_prefetch(row - below);
            vec_store(row, add ? vec_add(vec_load(row), sum[r * C + c]) : sum[r * C + c]);
        }
}

INLINE void outer_vectors(float *w, int64_t below, const float *dy, const float *x, int64_t batch,
                          const int vectors, const bool add)
{
    const int all = vectors * HALVES;
#pragma GCC unroll 2
    for (int r = 0; r < BLOCKED_ROWS; r += BESIDE)
#pragma GCC unroll 2
        for (int column = 0; column < all; column += AT_ONCE(all))
            outer_columns(w + r * BLOCKED_LANES, below, dy + r, x, batch, column, AT_ONCE(all),
                          add);
}

static void transpose_narrow(const float *from, int64_t from_stride, int64_t rows, int64_t columns,
                             float *to, int64_t to_stride)
{
    int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
    for (int64_t r = 0; r < whole_rows; r += 8)
        for (int64_t c = 0; c < whole_columns; c += 8)
            transpose_8x8(from + r * from_stride + c, from_stride, to + c * to_stride + r,
                          to_stride);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            to[c * to_stride + r] = from[r * from_stride + c];
}

/* Whole squares of VEC_LANES, then what is left at the right and below. */
static void transpose(const float *from, int64_t from_stride, int64_t rows, int64_t columns,
                      float *to, int64_t to_stride)
{
    int64_t high = rows / VEC_LANES * VEC_LANES, wide = columns / VEC_LANES * VEC_LANES;
    for (int64_t r = 0; r < high; r += VEC_LANES)
        for (int64_t c = 0; c < wide; c += VEC_LANES) {
            vec square[VEC_LANES];
#pragma GCC unroll 16
            for (int i = 0; i < VEC_LANES; i++)
                square[i] = vec_load_any(from + (r + i) * from_stride + c);
            vec_transpose(square);
#pragma GCC unroll 16
            for (int i = 0; i < VEC_LANES; i++)
                vec_store_any(to + (c + i) * to_stride + r, square[i]);
        }
    transpose_narrow(from + wide, from_stride, high, columns - wide, to + wide * to_stride,
                     to_stride);
    transpose_narrow(from + high * from_stride, from_stride, rows - high, columns, to + high,
                     to_stride);
}

/* The kernels by number of samples, 1 to DENSE_TILE. */
#define BY_SAMPLES(EACH)                                                                           \
    EACH(1)                                                                                        \
    EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11) EACH(12)
#define DEFINE(B)                                                                                  \
    static void dot_##B(const float *w, const float *xs, int64_t vectors, float *sums)             \
    {                                                                                              \
        dot_group(w, xs, vectors, B, sums);                                                        \
    }                                                                                              \
    static void step_##B(const struct dense_piece *piece)                                          \
    {                                                                                              \
        step_vector(piece, B);                                                                     \
    }
BY_SAMPLES(DEFINE)

/* And 1 to DENSE_SAMPLES. */
#define BY_TILE_SAMPLES(EACH) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8)
#define DEFINE_BACK(B, vectors)                                                                    \
    static void back_##vectors##_##B(const float *w, int64_t group_floats, int64_t groups,         \
                                     const float *dy, float *dx, int64_t batch,                    \
                                     const float *fetch)                                           \
    {                                                                                              \
        back_vectors(w, group_floats, groups, dy, dx, batch, fetch, B, vectors);                   \
    }
#define DEFINE_BACKS(B) DEFINE_BACK(B, 1) DEFINE_BACK(B, 2) DEFINE_BACK(B, 3)
BY_TILE_SAMPLES(DEFINE_BACKS)

/* And those of which there are up to three. */
#define DEFINE_FEW(K)                                                                              \
    static void stream_##K(const struct dense_piece *piece, int64_t vectors)                       \
    {                                                                                              \
        stream_group(piece, vectors, K);                                                           \
    }                                                                                              \
    static void lanes_##K(const float *w, const float *xt, int64_t vectors, const float *start,    \
                          float *ys)                                                               \
    {                                                                                              \
        lanes_group(w, xt, vectors, start, ys, K);                                                 \
    }
DEFINE_FEW(1)
DEFINE_FEW(2)
DEFINE_FEW(3)

#define DEFINE_DOT(name, samples, parts)                                                           \
    static void name(const struct dense_strip *strip, int64_t groups, float *sums)                 \
    {                                                                                              \
        dot_streams(strip, groups, sums, samples, parts);                                          \
    }
DEFINE_DOT(dot_one, 1, 1)
#if VEC_MOST == 24
DEFINE_DOT(dot_one_pair, 1, 2)
DEFINE_DOT(dot_two, 2, 1)
#define DOT_FEW .dot_few = {NULL, dot_one, dot_two}, .dot_pair = dot_one_pair,
#else
#define DOT_FEW .dot_few = {NULL, dot_one},
#endif

#define DEFINE_OUTER(name, vectors, add)                                                           \
    static void name##_##vectors(float *w, int64_t below, const float *dy, const float *x,         \
                                 int64_t batch)                                                    \
    {                                                                                              \
        outer_vectors(w, below, dy, x, batch, vectors, add);                                       \
    }
DEFINE_OUTER(outer_set, 1, false)
DEFINE_OUTER(outer_set, 2, false)
DEFINE_OUTER(outer_set, 3, false)
DEFINE_OUTER(outer_add, 1, true)
DEFINE_OUTER(outer_add, 2, true)
DEFINE_OUTER(outer_add, 3, true)

#define DOT(B) [B] = dot_##B,
#define STEP(B) [B] = step_##B,
#define BACK_1(B) [B] = back_1_##B,
#define BACK_2(B) [B] = back_2_##B,
#define BACK_3(B) [B] = back_3_##B,
const struct dense_kernels ISA(dense_kernels) = {
    .lanes_width = VEC_LANES,
    .dot = {BY_SAMPLES(DOT)},
    DOT_FEW.lanes = {[1] = lanes_1, [2] = lanes_2, [3] = lanes_3},
    .stream = {[1] = stream_1, [2] = stream_2, [3] = stream_3},
    .step = {BY_SAMPLES(STEP)},
    .back = {[1] = {BY_TILE_SAMPLES(BACK_1)},
             [2] = {BY_TILE_SAMPLES(BACK_2)},
             [3] = {BY_TILE_SAMPLES(BACK_3)}},
    .outer_set = {NULL, outer_set_1, outer_set_2, outer_set_3},
    .outer_add = {NULL, outer_add_1, outer_add_2, outer_add_3},
    .transpose = transpose,
    .activate = activate_span,
    .update = ISA(update_span),
};
