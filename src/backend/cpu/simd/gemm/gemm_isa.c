/* gemm_isa.c: the kernels of gemm_packed.h, compiled once per ISA. A tile is up to 14 × 32
 * (AVX-512) or 6 × 16 (AVX2): 28 or 12 accumulators, two loads of b and as many broadcasts of a as
 * rows per step. A tile of no more columns than a vector has is half of that. */
#include "backend/cpu/simd/gemm/gemm_packed.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_lanes.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS_MOST = VEC_LANES == 16 ? GEMM_ROWS : 6, COLUMNS = 2 * VEC_LANES };

INLINE void store_row(const struct gemm_tile *t, int r, vec left, vec right)
{
    float *c = t->c + r * t->stride;
    vec scale = vec_set(t->scale), start_left = vec_zero(), start_right = vec_zero();
    if (t->add) {
        start_left = vec_load_part(c, t->columns);
        if (t->columns > VEC_LANES)
            start_right = vec_load_part(c + VEC_LANES, t->columns - VEC_LANES);
    } else if (t->start) {
        start_left = vec_load_any(t->start);
        start_right = vec_load_any(t->start + VEC_LANES);
    }
    vec_store_part(c, vec_fma(scale, left, start_left), t->columns);
    if (t->columns > VEC_LANES)
        vec_store_part(c + VEC_LANES, vec_fma(scale, right, start_right), t->columns - VEC_LANES);
}

/* Which of the panels has its rows listed: a's are where `offsets` say, b's where `places` do. */
enum listed { LISTED_NONE, LISTED_A, LISTED_B };

/* The sums of R rows; the left half of the columns alone if the tile is `narrow`. */
INLINE void tile_sums(const struct gemm_tile *t, const int R, const enum listed listed,
                      const bool narrow, vec *left, vec *right)
{
    const float *a = t->a, *b = t->b, *fetch = t->fetch ? t->fetch : b;
    const int64_t lead = t->lead ? t->lead : R;
    for (int64_t k = 0; k < t->inner; k++, b += COLUMNS, fetch += t->fetch_step) {
        if (listed == LISTED_A)
            a = t->a + t->offsets[k];
        if (listed == LISTED_B)
            b = t->b + t->places[k];
        vec b_left = vec_load_any(b), b_right = narrow ? b_left : vec_load_any(b + VEC_LANES);
        vec_pin(b_left);
        if (!narrow)
            vec_pin(b_right);
        vec_prefetch(fetch);
#pragma GCC unroll 14
        for (int r = 0; r < R; r++) {
            vec value = vec_set(a[r]);
            vec_pin(value);
            left[r] = vec_fma(value, b_left, left[r]);
            if (!narrow)
                right[r] = vec_fma(value, b_right, right[r]);
        }
        a += lead;
    }
}

INLINE void tile_halves(const struct gemm_tile *t, const int R, const enum listed listed, vec *left,
                        vec *right)
{
    if (t->columns <= VEC_LANES)
        tile_sums(t, R, listed, true, left, right);
    else
        tile_sums(t, R, listed, false, left, right);
}

INLINE void tile_rows(const struct gemm_tile *t, const int R)
{
    vec left[ROWS_MOST], right[ROWS_MOST];
#pragma GCC unroll 14
    for (int r = 0; r < R; r++)
        left[r] = right[r] = vec_zero();
    if (t->offsets)
        tile_halves(t, R, LISTED_A, left, right);
    else if (t->places)
        tile_halves(t, R, LISTED_B, left, right);
    else
        tile_halves(t, R, LISTED_NONE, left, right);
#pragma GCC unroll 14
    for (int r = 0; r < R; r++)
        store_row(t, r, left[r], right[r]);
}

/* One step of a panel; the last ones must not write over what lies behind it. */
INLINE void put(float *out, vec v, int64_t left, int64_t lead)
{
    if (left * lead >= VEC_LANES)
        vec_store_any(out, v);
    else
        vec_store_part(out, v, lead);
}

/* Where the panel's elements lie side by side they are copied, else transposed in registers. */
static void pack(const float *x, int64_t across, int64_t along, int64_t width, int64_t count,
                 float *out, int64_t lead)
{
    if (across == 1 && width == COLUMNS) {
        for (int64_t k = 0; k < count; k++) {
            vec_store_any(out + k * lead, vec_load_any(x + k * along));
            vec_store_any(out + k * lead + VEC_LANES, vec_load_any(x + k * along + VEC_LANES));
        }
        return;
    }
    if (across == 1) {
        for (int64_t k = 0; k < count; k++)
            put(out + k * lead, vec_load_part(x + k * along, width), count - k, lead);
        return;
    }
    for (int64_t k = 0; k < count; k += VEC_LANES) {
        int64_t depth = count - k < VEC_LANES ? count - k : VEC_LANES;
        vec row[VEC_LANES];
#pragma GCC unroll 16
        for (int i = 0; i < VEC_LANES; i++)
            row[i] = i < width ? vec_load_part(x + i * across + k, depth) : vec_zero();
        vec_transpose(row);
        for (int64_t i = 0; i < depth; i++)
            put(out + (k + i) * lead, row[i], count - k - i, lead);
    }
}

/* R rows of a small product: rows of b, where they lie, in lanes. */
INLINE void small_rows(const struct gemm *gemm, int64_t row, const int R)
{
    const struct gemm_side *a = &gemm->a, *b = &gemm->b;
    const float *left = a->data + row * a->down;
    for (int64_t j = 0; j < gemm->columns; j += VEC_LANES) {
        int64_t width = gemm->columns - j;
        vec sum[4];
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            sum[r] = vec_zero();
        for (int64_t k = 0; k < gemm->inner; k++) {
            vec right = vec_load_part(b->data + k * b->down + j, width);
#pragma GCC unroll 4
            for (int r = 0; r < R; r++)
                sum[r] = vec_fma(vec_set(left[r * a->down + k * a->right]), right, sum[r]);
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
            vec_store_part(gemm->c + (row + r) * gemm->stride + j,
                           vec_mul(vec_set(gemm->scale), sum[r]), width);
    }
}

/* The product of a row of a with C columns of b, both along inner; `sums` has room for four. */
INLINE void small_dots(const struct gemm *gemm, const float *left, const float *right, const int C,
                       float *sums)
{
    vec sum[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    for (int64_t k = 0; k < gemm->inner; k += VEC_LANES) {
        vec value = vec_load_part(left + k, gemm->inner - k);
#pragma GCC unroll 4
        for (int c = 0; c < C; c++)
            sum[c] = vec_fma(value, vec_load_part(right + c * gemm->b.right + k, gemm->inner - k),
                             sum[c]);
    }
    vec_sum4(sum[0], sum[1], sum[2], sum[3], sums);
}

/* Where all of b would not fill a vector. */
static void small_sums(const struct gemm *gemm)
{
    const struct gemm_side a = gemm->a, b = gemm->b;
    const int64_t inner = gemm->inner, columns = gemm->columns;
    for (int64_t i = 0; i < gemm->rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += a.data[i * a.down + k * a.right] * b.data[k * b.down + j * b.right];
            gemm->c[i * gemm->stride + j] = gemm->scale * sum;
        }
}

static void small(const struct gemm *gemm)
{
    if (gemm->inner * gemm->columns < VEC_LANES) {
        small_sums(gemm);
        return;
    }
    if (gemm->b.right == 1) {
        int64_t i = 0;
        for (; i + 4 <= gemm->rows; i += 4)
            small_rows(gemm, i, 4);
        for (; i < gemm->rows; i++)
            small_rows(gemm, i, 1);
        return;
    }
    for (int64_t i = 0; i < gemm->rows; i++) {
        const float *left = gemm->a.data + i * gemm->a.down;
        float *c = gemm->c + i * gemm->stride, sums[4];
        int64_t j = 0;
        for (; j + 4 <= gemm->columns; j += 4) {
            small_dots(gemm, left, gemm->b.data + j * gemm->b.right, 4, sums);
            for (int k = 0; k < 4; k++)
                c[j + k] = gemm->scale * sums[k];
        }
        for (; j < gemm->columns; j++) {
            small_dots(gemm, left, gemm->b.data + j * gemm->b.right, 1, sums);
            c[j] = gemm->scale * sums[0];
        }
    }
}

#define BY_6_ROWS(EACH) EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6)
#if VEC_MOST == 24
#define BY_ROWS(EACH)                                                                              \
    BY_6_ROWS(EACH) EACH(7) EACH(8) EACH(9) EACH(10) EACH(11) EACH(12) EACH(13) EACH(14)
#else
#define BY_ROWS(EACH) BY_6_ROWS(EACH)
#endif
#define DEFINE(R)                                                                                  \
    static void tile_##R(const struct gemm_tile *tile)                                             \
    {                                                                                              \
        tile_rows(tile, R);                                                                        \
    }
BY_ROWS(DEFINE)

#define TILE(R) [R] = tile_##R,
const struct gemm_kernels ISA(gemm_kernels) = {
    .rows = ROWS_MOST,
    .columns = COLUMNS,
    .lanes = VEC_LANES,
    .pack = pack,
    .small = small,
    .tile = {BY_ROWS(TILE)},
};
