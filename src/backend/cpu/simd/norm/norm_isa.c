/* norm_isa.c: softmax and cross-entropy, layer-norm and batch-norm, compiled once per ISA.
 *
 * The bound is bytes: a row is read from memory once and stays in L1 for the passes over it.
 * Threads share rows, or channels; each sum is one thread's, so the bits do not depend on their
 * number. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/sums.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_softmax.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"

#include <math.h>
#include <string.h>

/* Σ (x - mean)² */
static float spread_span(const float *x, int64_t count, float mean)
{
    vec sum = vec_zero(), middle = vec_set(mean);
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) {
        vec d = vec_sub(vec_load_any(x + i), middle);
        sum = vec_fma(d, d, sum);
    }
    float rest = vec_sum(sum);
    for (; i < count; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    return rest;
}

static void softmax_member(void *context, int member, int members)
{
    const struct call *call = context;
    int64_t width = call->tensors[AT_softmax_x]->shape.dim[1];
    long n, last;
    pool_share(call->tensors[AT_softmax_x]->shape.dim[0], 1, member, members, &n, &last);
    for (; n < last; n++)
        softmax_row(floats(call, AT_softmax_x) + n * width, floats(call, AT_softmax_y) + n * width,
                    width);
}

/* Query t sees the keys 0 to t. */
static void softmax_causal_member(void *context, int member, int members)
{
    const struct call *call = context;
    const int64_t *dim = call->tensors[AT_softmax_causal_x]->shape.dim, time = dim[1];
    long r, last;
    pool_share(dim[0] * time, 1, member, members, &r, &last);
    for (; r < last; r++) {
        float *y = floats(call, AT_softmax_causal_y) + r * time;
        int64_t seen = r % time + 1;
        softmax_row(floats(call, AT_softmax_causal_x) + r * time, y, seen);
        memset(y + seen, 0, (size_t)(time - seen) * sizeof *y);
    }
}

/* dx = y·(dy - Σ dy·y) */
static void softmax_grad_member(void *context, int member, int members)
{
    const struct call *call = context;
    int64_t width = call->tensors[AT_softmax_grad_y]->shape.dim[1];
    long n, last;
    pool_share(call->tensors[AT_softmax_grad_y]->shape.dim[0], 1, member, members, &n, &last);
    for (; n < last; n++) {
        const float *y = floats(call, AT_softmax_grad_y) + n * width,
                    *dy = floats(call, AT_softmax_grad_dy) + n * width;
        float *dx = floats(call, AT_softmax_grad_dx) + n * width;
        vec sum = vec_zero();
        for (int64_t k = 0; k < width; k += VEC_LANES)
            sum = vec_fma(vec_load_part(y + k, width - k), vec_load_part(dy + k, width - k), sum);
        vec mean = vec_set(vec_sum(sum));
        for (int64_t k = 0; k < width; k += VEC_LANES) {
            vec d = vec_sub(vec_load_part(dy + k, width - k), mean);
            vec_store_part(dx + k, vec_mul(vec_load_part(y + k, width - k), d), width - k);
        }
    }
}

static void layer_norm_member(void *context, int member, int members)
{
    const struct call *call = context;
    const float *gamma = floats(call, AT_layer_norm_gamma),
                *beta = floats(call, AT_layer_norm_beta);
    int64_t width = call->tensors[AT_layer_norm_x]->shape.dim[1];
    long n, last;
    pool_share(call->tensors[AT_layer_norm_x]->shape.dim[0], 1, member, members, &n, &last);
    for (; n < last; n++) {
        const float *x = floats(call, AT_layer_norm_x) + n * width;
        float *y = floats(call, AT_layer_norm_y) + n * width,
              mean = sum_span(x, width) / (float)width;
        float variance = spread_span(x, width, mean) / (float)width;
        float scale = 1 / sqrtf(variance + call->op->attr.layer_norm.epsilon);
        vec middle = vec_set(mean), factor = vec_set(scale);
        for (int64_t k = 0; k < width; k += VEC_LANES) {
            int64_t left = width - k;
            vec z = vec_mul(vec_sub(vec_load_part(x + k, left), middle), factor);
            z = vec_fma(z, vec_load_part(gamma + k, left), vec_load_part(beta + k, left));
            vec_store_part(y + k, z, left);
        }
        floats(call, AT_layer_norm_saved_mean)[n] = mean;
        floats(call, AT_layer_norm_saved_scale)[n] = scale;
    }
}

/* (x - mean)·scale of row n */
static inline vec normal_at(const struct call *call, int64_t n, int64_t width, int64_t k)
{
    vec d = vec_sub(vec_load_part(floats(call, AT_layer_norm_grad_x) + n * width + k, width - k),
                    vec_set(floats(call, AT_layer_norm_grad_saved_mean)[n]));
    return vec_mul(d, vec_set(floats(call, AT_layer_norm_grad_saved_scale)[n]));
}

/* dx of each row: scale · (g - Σg/k - z·Σ(g·z)/k) with g = dy·gamma. */
static void layer_norm_dx_member(void *context, int member, int members)
{
    const struct call *call = context;
    const float *gamma = floats(call, AT_layer_norm_grad_gamma);
    int64_t width = call->tensors[AT_layer_norm_grad_x]->shape.dim[1];
    long n, last;
    pool_share(call->tensors[AT_layer_norm_grad_x]->shape.dim[0], 1, member, members, &n, &last);
    for (; n < last; n++) {
        const float *dy = floats(call, AT_layer_norm_grad_dy) + n * width;
        float *dx = floats(call, AT_layer_norm_grad_dx) + n * width;
        vec sum = vec_zero(), sum_z = vec_zero();
        for (int64_t k = 0; k < width; k += VEC_LANES) {
            vec g = vec_mul(vec_load_part(dy + k, width - k), vec_load_part(gamma + k, width - k));
            sum = vec_add(sum, g);
            sum_z = vec_fma(g, normal_at(call, n, width, k), sum_z);
        }
        vec mean = vec_set(vec_sum(sum) / (float)width);
        vec mean_z = vec_set(vec_sum(sum_z) / (float)width),
            scale = vec_set(floats(call, AT_layer_norm_grad_saved_scale)[n]);
        for (int64_t k = 0; k < width; k += VEC_LANES) {
            vec g = vec_mul(vec_load_part(dy + k, width - k), vec_load_part(gamma + k, width - k));
            g = vec_fnma(normal_at(call, n, width, k), mean_z, vec_sub(g, mean));
            vec_store_part(dx + k, vec_mul(scale, g), width - k);
        }
    }
}

/* dgamma = Σ dy·z and dbeta = Σ dy down the rows, a vector of columns at a time. */
static void layer_norm_dw_member(void *context, int member, int members)
{
    const struct call *call = context;
    const int64_t *dim = call->tensors[AT_layer_norm_grad_x]->shape.dim, width = dim[1];
    float *dgamma = floats(call, AT_layer_norm_grad_dgamma),
          *dbeta = floats(call, AT_layer_norm_grad_dbeta);
    bool add = call->op->attr.layer_norm_grad.accumulate;
    long first, last;
    pool_share(width, VEC_LANES, member, members, &first, &last);
    for (int64_t k = first; k < last; k += VEC_LANES) {
        vec sum = add ? vec_load_part(dbeta + k, width - k) : vec_zero();
        vec sum_z = add ? vec_load_part(dgamma + k, width - k) : vec_zero();
        for (int64_t n = 0; n < dim[0]; n++) {
            vec dy = vec_load_part(floats(call, AT_layer_norm_grad_dy) + n * width + k, width - k);
            sum = vec_add(sum, dy);
            sum_z = vec_fma(dy, normal_at(call, n, width, k), sum_z);
        }
        vec_store_part(dbeta + k, sum, width - k);
        vec_store_part(dgamma + k, sum_z, width - k);
    }
}

/* x is [batch, channels, inner …]. */
struct extent {
    int64_t batch, channels, inner;
};

static struct extent extent_of(const struct call *call)
{
    const int64_t *dim = call->tensors[AT_batch_norm_x]->shape.dim;
    return (struct extent){dim[0], dim[1], call->counts[0] / (dim[0] * dim[1])};
}

static const float *plane_at(const struct call *call, int operand, struct extent e, int64_t n,
                             int64_t c)
{
    return floats(call, operand) + (n * e.channels + c) * e.inner;
}

/* y = (x - mean)·scale + shift for one channel */
static void normalise(const struct call *call, struct extent e, int64_t c, float mean, float scale,
                      float shift)
{
    vec middle = vec_set(mean), factor = vec_set(scale), offset = vec_set(shift);
    for (int64_t n = 0; n < e.batch; n++) {
        const float *x = plane_at(call, 0, e, n, c);
        float *y = floats(call, AT_batch_norm_y) + (n * e.channels + c) * e.inner;
        for (int64_t i = 0; i < e.inner; i += VEC_LANES) {
            vec d = vec_sub(vec_load_part(x + i, e.inner - i), middle);
            vec_store_part(y + i, vec_fma(d, factor, offset), e.inner - i);
        }
    }
}

static void batch_norm_member(void *context, int member, int members)
{
    const struct call *call = context;
    struct extent e = extent_of(call);
    float size = (float)(e.batch * e.inner), momentum = call->op->attr.batch_norm.momentum;
    long c, last;
    pool_share(e.channels, 1, member, members, &c, &last);
    for (; c < last; c++) {
        float mean = 0, variance = 0;
        for (int64_t n = 0; n < e.batch; n++)
            mean += sum_span(plane_at(call, 0, e, n, c), e.inner);
        mean /= size;
        for (int64_t n = 0; n < e.batch; n++)
            variance += spread_span(plane_at(call, 0, e, n, c), e.inner, mean);
        variance /= size;
        float scale = 1 / sqrtf(variance + call->op->attr.batch_norm.epsilon);
        float unbiased = size > 1 ? variance * size / (size - 1) : variance;
        floats(call, AT_batch_norm_saved_mean)[c] = mean;
        floats(call, AT_batch_norm_saved_scale)[c] = scale;
        floats(call, AT_batch_norm_mean_out)[c] +=
            momentum * (mean - floats(call, AT_batch_norm_mean_out)[c]);
        floats(call, AT_batch_norm_variance_out)[c] +=
            momentum * (unbiased - floats(call, AT_batch_norm_variance_out)[c]);
        normalise(call, e, c, mean, floats(call, AT_batch_norm_gamma)[c] * scale,
                  floats(call, AT_batch_norm_beta)[c]);
    }
}

static void batch_norm_fixed_member(void *context, int member, int members)
{
    const struct call *call = context;
    struct extent e = extent_of(call);
    float epsilon = call->op->attr.batch_norm_fixed.epsilon;
    long c, last;
    pool_share(e.channels, 1, member, members, &c, &last);
    for (; c < last; c++)
        normalise(call, e, c, floats(call, AT_batch_norm_fixed_mean)[c],
                  floats(call, AT_batch_norm_fixed_gamma)[c] /
                      sqrtf(floats(call, AT_batch_norm_fixed_variance)[c] + epsilon),
                  floats(call, AT_batch_norm_fixed_beta)[c]);
}

/* dx = gamma·scale · (dy - dbeta/m - z·dgamma/m) for one channel */
static void channel_back(const struct call *call, struct extent e, int64_t c, float mean_dy,
                         float mean_z)
{
    float scale = floats(call, AT_batch_norm_grad_saved_scale)[c];
    vec middle = vec_set(floats(call, AT_batch_norm_grad_saved_mean)[c]),
        factor = vec_set(floats(call, AT_batch_norm_grad_gamma)[c] * scale);
    vec even = vec_set(mean_dy), slant = vec_set(mean_z * scale);
    for (int64_t n = 0; n < e.batch; n++) {
        const float *x = plane_at(call, 0, e, n, c), *dy = plane_at(call, 4, e, n, c);
        float *dx = floats(call, AT_batch_norm_grad_dx) + (n * e.channels + c) * e.inner;
        for (int64_t i = 0; i < e.inner; i += VEC_LANES) {
            vec d = vec_sub(vec_load_part(x + i, e.inner - i), middle);
            vec g = vec_sub(vec_load_part(dy + i, e.inner - i), even);
            vec_store_part(dx + i, vec_mul(factor, vec_fnma(d, slant, g)), e.inner - i);
        }
    }
}

static void batch_norm_grad_member(void *context, int member, int members)
{
    const struct call *call = context;
    struct extent e = extent_of(call);
    float *dgamma = floats(call, AT_batch_norm_grad_dgamma),
          *dbeta = floats(call, AT_batch_norm_grad_dbeta);
    float size = (float)(e.batch * e.inner);
    bool add = call->op->attr.batch_norm_grad.accumulate;
    long c, last;
    pool_share(e.channels, 1, member, members, &c, &last);
    for (; c < last; c++) {
        vec middle = vec_set(floats(call, AT_batch_norm_grad_saved_mean)[c]);
        float sum = 0, sum_z = 0;
        for (int64_t n = 0; n < e.batch; n++) {
            const float *x = plane_at(call, 0, e, n, c), *dy = plane_at(call, 4, e, n, c);
            vec along = vec_zero(), along_z = vec_zero();
            for (int64_t i = 0; i < e.inner; i += VEC_LANES) {
                vec g = vec_load_part(dy + i, e.inner - i);
                along = vec_add(along, g);
                along_z = vec_fma(g, vec_sub(vec_load_part(x + i, e.inner - i), middle), along_z);
            }
            sum += vec_sum(along);
            sum_z += vec_sum(along_z) * floats(call, AT_batch_norm_grad_saved_scale)[c];
        }
        if (call->data[AT_batch_norm_grad_dx])
            channel_back(call, e, c, sum / size, sum_z / size);
        dgamma[c] = add ? dgamma[c] + sum_z : sum_z;
        dbeta[c] = add ? dbeta[c] + sum : sum;
    }
}

/* ---- batch-norm of rows: a channel is a column, and columns are the lanes ---- */

/* So many vectors of columns go down the rows together: a few lines of every row. */
enum { ABREAST = 4 };

#define DOWN_THE_ROWS                                                                              \
    for (int64_t n = 0, at = k; n < e.batch; n++, at += e.channels)                                \
        for (int v = 0; v < vectors; v++)
#define PLACE (at + v * VEC_LANES)
#define LEFT (e.channels - k - v * VEC_LANES)

/* y = (x - mean)·scale·gamma + beta */
static inline __attribute__((always_inline)) void
columns_normalise(const struct call *call, struct extent e, int64_t k, const int vectors,
                  const vec *mean, const vec *scale)
{
    vec factor[ABREAST], shift[ABREAST];
    for (int v = 0; v < vectors; v++) {
        const int64_t at = k;
        factor[v] =
            vec_mul(vec_load_part(floats(call, AT_batch_norm_gamma) + PLACE, LEFT), scale[v]);
        shift[v] = vec_load_part(floats(call, AT_batch_norm_beta) + PLACE, LEFT);
    }
    DOWN_THE_ROWS
    {
        vec d = vec_sub(vec_load_part(floats(call, AT_batch_norm_x) + PLACE, LEFT), mean[v]);
        vec_store_part(floats(call, AT_batch_norm_y) + PLACE, vec_fma(d, factor[v], shift[v]),
                       LEFT);
    }
}

/* value += momentum·(seen - value) */
static inline void follow(float *value, vec seen, float momentum, int64_t left)
{
    vec old = vec_load_part(value, left);
    vec_store_part(value, vec_fma(vec_set(momentum), vec_sub(seen, old), old), left);
}

static inline __attribute__((always_inline)) void
columns_forward(const struct call *call, struct extent e, int64_t k, const int vectors)
{
    const float momentum = call->op->attr.batch_norm.momentum, size = (float)e.batch;
    const vec epsilon = vec_set(call->op->attr.batch_norm.epsilon), one = vec_set(1.0f);
    vec mean[ABREAST], spread[ABREAST];
    for (int v = 0; v < vectors; v++)
        mean[v] = spread[v] = vec_zero();
    DOWN_THE_ROWS
    mean[v] = vec_add(mean[v], vec_load_part(floats(call, AT_batch_norm_x) + PLACE, LEFT));
    for (int v = 0; v < vectors; v++)
        mean[v] = vec_div(mean[v], vec_set(size));
    DOWN_THE_ROWS
    {
        vec d = vec_sub(vec_load_part(floats(call, AT_batch_norm_x) + PLACE, LEFT), mean[v]);
        spread[v] = vec_fma(d, d, spread[v]);
    }
    for (int v = 0; v < vectors; v++) {
        const int64_t at = k;
        vec variance = vec_div(spread[v], vec_set(size));
        vec unbiased = size > 1 ? vec_div(spread[v], vec_set(size - 1)) : variance;
        follow(floats(call, AT_batch_norm_mean_out) + PLACE, mean[v], momentum, LEFT);
        follow(floats(call, AT_batch_norm_variance_out) + PLACE, unbiased, momentum, LEFT);
        spread[v] = vec_div(one, vec_sqrt(vec_add(variance, epsilon)));
        vec_store_part(floats(call, AT_batch_norm_saved_mean) + PLACE, mean[v], LEFT);
        vec_store_part(floats(call, AT_batch_norm_saved_scale) + PLACE, spread[v], LEFT);
    }
    columns_normalise(call, e, k, vectors, mean, spread);
}

static inline __attribute__((always_inline)) void
columns_fixed(const struct call *call, struct extent e, int64_t k, const int vectors)
{
    const vec epsilon = vec_set(call->op->attr.batch_norm_fixed.epsilon), one = vec_set(1.0f);
    vec mean[ABREAST], scale[ABREAST];
    for (int v = 0; v < vectors; v++) {
        const int64_t at = k;
        mean[v] = vec_load_part(floats(call, AT_batch_norm_fixed_mean) + PLACE, LEFT);
        scale[v] = vec_add(vec_load_part(floats(call, AT_batch_norm_fixed_variance) + PLACE, LEFT),
                           epsilon);
        scale[v] = vec_div(one, vec_sqrt(scale[v]));
    }
    columns_normalise(call, e, k, vectors, mean, scale);
}

/* As batch_norm_grad_member and channel_back. */
static inline __attribute__((always_inline)) void
columns_back(const struct call *call, struct extent e, int64_t k, const int vectors)
{
    const bool add = call->op->attr.batch_norm_grad.accumulate;
    const vec size = vec_set((float)e.batch);
    vec mean[ABREAST], scale[ABREAST], sum[ABREAST], sum_z[ABREAST], factor[ABREAST];
    for (int v = 0; v < vectors; v++) {
        const int64_t at = k;
        mean[v] = vec_load_part(floats(call, AT_batch_norm_grad_saved_mean) + PLACE, LEFT);
        scale[v] = vec_load_part(floats(call, AT_batch_norm_grad_saved_scale) + PLACE, LEFT);
        factor[v] =
            vec_mul(vec_load_part(floats(call, AT_batch_norm_grad_gamma) + PLACE, LEFT), scale[v]);
        sum[v] = sum_z[v] = vec_zero();
    }
    DOWN_THE_ROWS
    {
        vec g = vec_load_part(floats(call, AT_batch_norm_grad_dy) + PLACE, LEFT);
        sum[v] = vec_add(sum[v], g);
        vec d = vec_sub(vec_load_part(floats(call, AT_batch_norm_grad_x) + PLACE, LEFT), mean[v]);
        sum_z[v] = vec_fma(g, d, sum_z[v]);
    }
    for (int v = 0; v < vectors; v++) {
        const int64_t at = k;
        float *dgamma = floats(call, AT_batch_norm_grad_dgamma) + PLACE,
              *dbeta = floats(call, AT_batch_norm_grad_dbeta) + PLACE;
        sum_z[v] = vec_mul(sum_z[v], scale[v]);
        vec_store_part(dgamma, add ? vec_add(vec_load_part(dgamma, LEFT), sum_z[v]) : sum_z[v],
                       LEFT);
        vec_store_part(dbeta, add ? vec_add(vec_load_part(dbeta, LEFT), sum[v]) : sum[v], LEFT);
        sum[v] = vec_div(sum[v], size);
        sum_z[v] = vec_mul(vec_div(sum_z[v], size), scale[v]);
    }
    if (!call->data[AT_batch_norm_grad_dx])
        return;
    DOWN_THE_ROWS
    {
        vec g = vec_sub(vec_load_part(floats(call, AT_batch_norm_grad_dy) + PLACE, LEFT), sum[v]);
        vec d = vec_sub(vec_load_part(floats(call, AT_batch_norm_grad_x) + PLACE, LEFT), mean[v]);
        vec_store_part(floats(call, AT_batch_norm_grad_dx) + PLACE,
                       vec_mul(factor[v], vec_fnma(d, sum_z[v], g)), LEFT);
    }
}
#undef DOWN_THE_ROWS
#undef PLACE
#undef LEFT

/* A member's columns: four vectors abreast, what is left one by one. */
#define COLUMNS_MEMBER(way)                                                                        \
    static void way##_member(void *context, int member, int members)                               \
    {                                                                                              \
        const struct call *call = context;                                                         \
        struct extent e = extent_of(call);                                                         \
        long k, last;                                                                              \
        pool_share(e.channels, (long)ABREAST *VEC_LANES, member, members, &k, &last);              \
        for (; k + ABREAST * VEC_LANES <= last; k += ABREAST * VEC_LANES)                          \
            way(call, e, k, ABREAST);                                                              \
        for (; k < last; k += VEC_LANES)                                                           \
            way(call, e, k, 1);                                                                    \
    }
COLUMNS_MEMBER(columns_forward)
COLUMNS_MEMBER(columns_fixed)
COLUMNS_MEMBER(columns_back)

/* `passes` times over the first operand, in `items` pieces. */
static void run_items(const struct call *call, pool_task *task, int64_t passes, int64_t items)
{
    int64_t bytes = passes * call->counts[0] * (int64_t)sizeof(float);
    pool_run(call->pool, team_for_bytes(call->pool, bytes, items), task, (void *)call);
}

static void run_softmax(const struct call *call)
{
    run_items(call, softmax_member, 4, call->tensors[AT_softmax_x]->shape.dim[0]);
}

/* Σ -ln p[label] over rows */
static float cross_entropy_piece(const void *context, int64_t from, int64_t to)
{
    const struct call *call = context;
    const int32_t *label = call->data[AT_cross_entropy_label];
    int64_t classes = call->tensors[AT_cross_entropy_x]->shape.dim[1];
    const float *x = floats(call, AT_cross_entropy_x) + from * classes;
    float sum = 0;
    for (int64_t n = from; n < to; n++, x += classes)
        sum +=
            softmax_row(x, floats(call, AT_cross_entropy_p) + n * classes, classes) - x[label[n]];
    return sum;
}

static void run_cross_entropy(const struct call *call)
{
    int64_t batch = call->tensors[AT_cross_entropy_x]->shape.dim[0];
    int64_t bytes = 4 * call->counts[0] * (int64_t)sizeof(float); /* passes over x, as softmax */
    *floats(call, AT_cross_entropy_loss) =
        sum_pieces(call->pool, cross_entropy_piece, call, batch, 1, bytes) / (float)batch;
}

static void run_softmax_causal(const struct call *call)
{
    run_items(call, softmax_causal_member, 4,
              call->counts[0] / call->tensors[AT_softmax_causal_x]->shape.dim[1]);
}

static void run_softmax_grad(const struct call *call)
{
    run_items(call, softmax_grad_member, 3, call->tensors[AT_softmax_grad_y]->shape.dim[0]);
}

static void run_layer_norm(const struct call *call)
{
    run_items(call, layer_norm_member, 3, call->tensors[AT_layer_norm_x]->shape.dim[0]);
}

static void run_layer_norm_grad(const struct call *call)
{
    const int64_t *dim = call->tensors[AT_layer_norm_grad_x]->shape.dim;
    if (call->data[AT_layer_norm_grad_dx])
        run_items(call, layer_norm_dx_member, 4, dim[0]);
    run_items(call, layer_norm_dw_member, 2, dim[1] / VEC_LANES + 1);
}

static void run_channels(const struct call *call, pool_task *planes, pool_task *columns)
{
    struct extent e = extent_of(call);
    if (e.inner == 1)
        run_items(call, columns, 3, (e.channels - 1) / (ABREAST * VEC_LANES) + 1);
    else
        run_items(call, planes, 3, e.channels);
}

static void run_batch_norm(const struct call *call)
{
    run_channels(call, batch_norm_member, columns_forward_member);
}

static void run_batch_norm_fixed(const struct call *call)
{
    run_channels(call, batch_norm_fixed_member, columns_fixed_member);
}

static void run_batch_norm_grad(const struct call *call)
{
    run_channels(call, batch_norm_grad_member, columns_back_member);
}

static const struct kernel rows[] = {
    {ROW(softmax)},       {ROW(softmax_causal)},   {ROW(softmax_grad)},
    {ROW(cross_entropy)}, {ROW(layer_norm)},       {ROW(layer_norm_grad)},
    {ROW(batch_norm)},    {ROW(batch_norm_fixed)}, {ROW(batch_norm_grad)},
};

const struct kernel_list ISA(norm_list) = KERNEL_LIST(rows);
