/* conv_isa.c: the kernels of convolution, compiled once per ISA. With samples in lanes:
 *
 *   sum      outputs × pixels accumulators; per tap as many loads as pixels and as many broadcast
 *            weights as outputs. The bound is FMA from about 2 × 4 on.
 *   wgrad    outputs × taps accumulators over all pixels of a band; per pixel as many loads as
 *            outputs and taps together.
 *
 * With pixels in lanes the sums are gemm_isa.c's; here are its patches (gather) and what is done
 * to its sums (finish). Of a depthwise convolution the sums are here too:
 *
 *   flat_sum, flat_wgrad    8 vectors of pixels, or 8 taps, in registers; a load for each FMA, most
 *                           of them across two lines, is the bound. */
#include "backend/cpu/simd/conv/conv_shared.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_lanes.h"
#include "backend/cpu/simd/vec_pick.h"

#define INLINE static inline __attribute__((always_inline))

INLINE void sum_block(const struct conv_sum *s, const int O, const int Q)
{
    vec sum[VEC_MOST];
    int64_t step = s->step;
#pragma GCC unroll 8
    for (int o = 0; o < O; o++)
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++)
            sum[o * Q + q] = vec_zero();
    for (int64_t row = 0; row < s->rows; row++) {
        const int64_t *offset = s->offsets + row * s->row_taps, *end = offset + s->taps;
        const float *w = s->w + row * s->row_taps * O;
        for (; offset < end; offset++, w += O) {
            const float *x = s->x + *offset;
            vec value[CONV_PIXELS];
#pragma GCC unroll 4
            for (int q = 0; q < Q; q++) {
                value[q] = vec_load(x + q * step);
                vec_pin(value[q]);
            }
#pragma GCC unroll 8
            for (int o = 0; o < O; o++) {
                vec weight = vec_set(w[o]);
                vec_pin(weight);
#pragma GCC unroll 4
                for (int q = 0; q < Q; q++)
                    sum[o * Q + q] = vec_fma(weight, value[q], sum[o * Q + q]);
            }
        }
    }
#pragma GCC unroll 8
    for (int o = 0; o < O; o++)
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++)
            vec_store(s->y + o * s->plane + q * s->place, sum[o * Q + q]);
}

INLINE void wgrad_block(const struct conv_wgrad *g, const int O, const int T)
{
    vec sum[VEC_MOST];
    int64_t offset[CONV_PIXELS], step = g->step, plane = g->plane;
#pragma GCC unroll 24
    for (int k = 0; k < O * T; k++)
        sum[k] = vec_zero();
#pragma GCC unroll 4
    for (int t = 0; t < T; t++)
        offset[t] = g->offsets[t];
    const float *dy = g->dy;
    for (int64_t row = 0; row < g->rows; row++) {
        const float *x = g->x + row * g->row_step;
        for (int64_t column = 0; column < g->columns; column++, x += step, dy += VEC_LANES) {
            vec value[CONV_PIXELS];
#pragma GCC unroll 4
            for (int t = 0; t < T; t++) {
                value[t] = vec_load(x + offset[t]);
                vec_pin(value[t]);
            }
#pragma GCC unroll 8
            for (int o = 0; o < O; o++) {
                vec gradient = vec_load(dy + o * plane);
                vec_pin(gradient);
#pragma GCC unroll 4
                for (int t = 0; t < T; t++)
                    sum[o * T + t] = vec_fma(gradient, value[t], sum[o * T + t]);
            }
        }
    }
#pragma GCC unroll 8
    for (int o = 0; o < O; o++) {
        float sums[4];
        vec *of = sum + o * T, none = vec_zero();
        vec_sum4(of[0], T > 1 ? of[1] : none, T > 2 ? of[2] : none, T > 3 ? of[3] : none, sums);
#pragma GCC unroll 4
        for (int t = 0; t < T; t++)
            g->dw[o * g->stride + t] += sums[t];
    }
}

static void gather(const struct conv_gather *g, int64_t first, int64_t count)
{
    const float *plane = g->x + first / g->taps * g->plane;
    int64_t tap = first % g->taps;
    float *out = g->out;
    for (int64_t k = 0; k < count; k++, out += g->lead) {
        const struct conv_piece *piece = g->pieces + tap * g->count, *end = piece + g->count;
        if (g->step == 1)
            for (; piece < end; piece++) {
                vec_prefetch(plane + piece->from + g->ahead);
                vec_store_any(out + piece->at, vec_load_mask(plane + piece->from, piece->mask));
            }
        else if (g->step == 2)
            for (; piece < end; piece++) {
                vec_prefetch(plane + piece->from + g->ahead);
                vec_store_any(out + piece->at, pick_second(plane + piece->from, piece->mask));
            }
        else
            for (; piece < end; piece++)
                vec_store_any(out + piece->at,
                              pick_masked(plane + piece->from, (int32_t)g->step, piece->mask));
        if (++tap == g->taps) {
            tap = 0;
            plane += g->plane;
        }
    }
}

INLINE void finish_loop(const struct conv_after *after, int64_t output, const int32_t function,
                        const float *sums, const float *add, int64_t count, float *y)
{
    vec scale = vec_set(after->scale[output]), shift = vec_set(after->shift[output]);
    vec low = vec_set(after->low), high = vec_set(after->high);
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        vec sum = vec_fma(vec_load_part(sums + i, count - i), scale, shift);
        if (add)
            sum = vec_add(sum, vec_load_part(add + i, count - i));
        vec_store_part(y + i, vec_bound(vec_function(function, sum, 0), low, high), count - i);
    }
}

static void finish(const struct conv_after *after, int64_t output, int64_t place, const float *sums,
                   int64_t count, float *y)
{
    const float *add = after->add ? after->add + place : NULL;
#define FINISH(name)                                                                               \
    case ACTIVATION_##name:                                                                        \
        finish_loop(after, output, ACTIVATION_##name, sums, add, count, y);                        \
        break;
    switch (after->function) {
        BY_FUSED_FUNCTION(FINISH)
    }
#undef FINISH
}

INLINE void finish_square(const struct conv_after *after, int64_t output, int64_t place,
                          int64_t plane, const int32_t function, const float *sums, int64_t lead,
                          int64_t count, float *y)
{
    vec row[VEC_LANES];
    vec scale = vec_load_any(after->scale + output), shift = vec_load_any(after->shift + output);
    vec low = vec_set(after->low), high = vec_set(after->high);
#pragma GCC unroll 16
    for (int i = 0; i < VEC_LANES; i++)
        row[i] = i < count ? vec_fma(vec_load_any(sums + i * lead), scale, shift) : vec_zero();
    vec_transpose(row);
    for (int i = 0; i < VEC_LANES; i++, place += plane) {
        vec value = row[i];
        vec_prefetch(y + place + VEC_LANES * plane); /* the outputs that come next */
        if (after->add) {
            vec_prefetch(after->add + place + VEC_LANES * plane);
            value = vec_add(value, vec_load_part(after->add + place, count));
        }
        vec_store_part(y + place, vec_bound(vec_function(function, value, 0), low, high), count);
    }
}

static void finish_transposed(const struct conv_after *after, int64_t output, int64_t place,
                              int64_t plane, const float *sums, int64_t lead, int64_t count,
                              float *y)
{
#define FINISH(name)                                                                               \
    case ACTIVATION_##name:                                                                        \
        for (int64_t i = 0; i < count; i += VEC_LANES)                                             \
            finish_square(after, output, place + i, plane, ACTIVATION_##name, sums + i * lead,     \
                          lead, count - i, y);                                                     \
        break;
    switch (after->function) {
        BY_FUSED_FUNCTION(FINISH)
    }
#undef FINISH
}

static void pick_rows(const float *x, int64_t line, int64_t stride, int64_t rows, int64_t count,
                      float *to, int64_t pitch)
{
    for (int64_t r = 0; r < rows; r++, x += line, to += pitch)
        for (int64_t i = 0; i < count; i += VEC_LANES) {
            int64_t part = count - i < VEC_LANES ? count - i : VEC_LANES;
            vec_store_part(to + i, pick_strided(x + i * stride, stride, part), part);
        }
}

INLINE void flat_pixels(const struct conv_flat *f, int64_t at, const int Q)
{
    vec sum[8];
#pragma GCC unroll 8
    for (int q = 0; q < Q; q++)
        sum[q] = vec_zero();
    for (int64_t k = 0; k < f->taps; k++) {
        const float *x = f->x + f->offsets[k] + at;
        vec weight = vec_set(f->w[k]);
#pragma GCC unroll 8
        for (int q = 0; q < Q; q++)
            sum[q] = vec_fma(weight, vec_load_any(x + q * VEC_LANES), sum[q]);
    }
#pragma GCC unroll 8
    for (int q = 0; q < Q; q++)
        vec_store(f->y + at + q * VEC_LANES, sum[q]);
}

static void flat_sum(const struct conv_flat *f)
{
    int64_t at = 0;
    for (; at + 8 * VEC_LANES <= f->count; at += 8 * VEC_LANES)
        flat_pixels(f, at, 8);
    for (; at + 3 * VEC_LANES <= f->count; at += 3 * VEC_LANES)
        flat_pixels(f, at, 3);
    for (; at < f->count; at += VEC_LANES)
        flat_pixels(f, at, 1);
}

INLINE void flat_taps(const struct conv_flat *f, int64_t first, const int T)
{
    vec sum[8];
    int64_t offset[8];
#pragma GCC unroll 8
    for (int k = 0; k < T; k++) {
        sum[k] = vec_zero();
        offset[k] = f->offsets[first + k];
    }
    for (int64_t i = 0; i < f->count; i += VEC_LANES) {
        vec gradient = vec_load(f->y + i);
#pragma GCC unroll 8
        for (int k = 0; k < T; k++)
            sum[k] = vec_fma(gradient, vec_load_any(f->x + offset[k] + i), sum[k]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < T; k++)
        f->w[first + k] += vec_sum(sum[k]);
}

static void flat_wgrad(const struct conv_flat *f)
{
    int64_t k = 0;
    for (; k + 8 <= f->taps; k += 8)
        flat_taps(f, k, 8);
    for (; k + 3 <= f->taps; k += 3)
        flat_taps(f, k, 3);
    for (; k < f->taps; k++)
        flat_taps(f, k, 1);
}

/* Outputs × pixels of every size that the ISA has registers for. */
#define UP_TO_2(EACH, O) EACH(O, 1) EACH(O, 2)
#define UP_TO_3(EACH, O) UP_TO_2(EACH, O) EACH(O, 3)
#define UP_TO_4(EACH, O) UP_TO_3(EACH, O) EACH(O, 4)
#if VEC_MOST == 24
#define BLOCKS(EACH)                                                                               \
    UP_TO_4(EACH, 1)                                                                               \
    UP_TO_4(EACH, 2)                                                                               \
    UP_TO_4(EACH, 3)                                                                               \
    UP_TO_4(EACH, 4)                                                                               \
    UP_TO_4(EACH, 5)                                                                               \
    UP_TO_4(EACH, 6)                                                                               \
    UP_TO_3(EACH, 7)                                                                               \
    UP_TO_3(EACH, 8)
#else
#define BLOCKS(EACH)                                                                               \
    UP_TO_4(EACH, 1)                                                                               \
    UP_TO_4(EACH, 2)                                                                               \
    UP_TO_4(EACH, 3)                                                                               \
    UP_TO_3(EACH, 4)                                                                               \
    UP_TO_2(EACH, 5)                                                                               \
    UP_TO_2(EACH, 6)
#endif

#define DEFINE(O, Q)                                                                               \
    static void sum_##O##x##Q(const struct conv_sum *sum)                                          \
    {                                                                                              \
        sum_block(sum, O, Q);                                                                      \
    }                                                                                              \
    static void wgrad_##O##x##Q(const struct conv_wgrad *wgrad)                                    \
    {                                                                                              \
        wgrad_block(wgrad, O, Q);                                                                  \
    }
BLOCKS(DEFINE)

#define SUM(O, Q) [O][Q] = sum_##O##x##Q,
#define WGRAD(O, Q) [O][Q] = wgrad_##O##x##Q,
const struct conv_kernels ISA(conv_kernels) = {
    .lanes = VEC_LANES,
    .accumulators = VEC_MOST,
    .from_samples = lanes_from_samples,
    .to_samples = lanes_to_samples,
    .gather = gather,
    .finish = finish,
    .finish_transposed = finish_transposed,
    .pick_rows = pick_rows,
    .flat_sum = flat_sum,
    .flat_wgrad = flat_wgrad,
    .sum = {BLOCKS(SUM)},
    .wgrad = {BLOCKS(WGRAD)},
};
