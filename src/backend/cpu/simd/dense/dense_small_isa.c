/* dense_small_isa.c: the dense family where the weights are too few to be kept in blocks (fewer
 * than BLOCKED_LEAST), compiled once per ISA.
 *
 * So few weights are copied to the stack by every call, transposed or not, with rows of whole
 * vectors: whichever of the two dimensions is longer fills the lanes.
 *
 *   along    results in lanes: a few samples' sums in registers, one broadcast a sample and row
 *   across   inputs in lanes: a few dot products a sample
 *
 * The bound is reading x once. Threads share the samples; a sum is always one thread's, so the bits
 * do not depend on their number. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/team.h"

enum {
    /* a matrix with rows of whole vectors: its shorter side has at most 22 rows */
    SMALL_FLOATS = BLOCKED_LEAST + 22 * VEC_LANES,
    ABREAST = 4, /* samples, or results of one, whose sums are in registers */
};

/* y[n, results] = f(x[n, inputs] · m + b) */
struct small {
    const float *x, *b;
    float *y;
    int64_t batch, inputs, results;
    bool along;   /* m is [inputs][results], else [results][inputs] … */
    int64_t lead; /* … with rows of so many floats */
    int32_t function;
    _Alignas(64) float m[SMALL_FLOATS];
};

/* m[row][column] = w[row · down + column · across], and zeros to the end of the row */
static void copy_small(const float *w, int64_t rows, int64_t columns, int64_t down, int64_t across,
                       int64_t lead, float *m)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < lead; c++)
            m[r * lead + c] = c < columns ? w[r * down + c * across] : 0;
}

/* From weights that lie `down` apart for the next input, `across` for the next result. */
static void take_weights(struct small *small, const float *w, int64_t down, int64_t across)
{
    small->along = small->results >= small->inputs;
    small->lead = blocked_up(small->along ? small->results : small->inputs, VEC_LANES);
    if (small->along)
        copy_small(w, small->inputs, small->results, down, across, small->lead, small->m);
    else
        copy_small(w, small->results, small->inputs, across, down, small->lead, small->m);
}

static inline __attribute__((always_inline)) void along_samples(const struct small *small,
                                                                int64_t n, const int count)
{
    const float *x = small->x + n * small->inputs;
    for (int64_t j = 0; j < small->results; j += VEC_LANES) {
        int64_t left = small->results - j;
        vec sum[ABREAST];
#pragma GCC unroll 4
        for (int k = 0; k < count; k++)
            sum[k] = small->b ? vec_load_part(small->b + j, left) : vec_zero();
        for (int64_t i = 0; i < small->inputs; i++) {
            vec weight = vec_load(small->m + i * small->lead + j);
#pragma GCC unroll 4
            for (int k = 0; k < count; k++)
                sum[k] = vec_fma(vec_set(x[k * small->inputs + i]), weight, sum[k]);
        }
#pragma GCC unroll 4
        for (int k = 0; k < count; k++)
            vec_store_part(small->y + (n + k) * small->results + j, sum[k], left);
    }
}

static inline __attribute__((always_inline)) void
across_results(const struct small *small, int64_t n, int64_t j, const int count)
{
    const float *x = small->x + n * small->inputs, *m = small->m + j * small->lead;
    vec sum[ABREAST];
    float sums[ABREAST];
#pragma GCC unroll 4
    for (int k = 0; k < ABREAST; k++)
        sum[k] = vec_zero();
    for (int64_t i = 0; i < small->inputs; i += VEC_LANES) {
        vec value = vec_load_part(x + i, small->inputs - i);
#pragma GCC unroll 4
        for (int k = 0; k < count; k++)
            sum[k] = vec_fma(value, vec_load(m + k * small->lead + i), sum[k]);
    }
    vec_sum4(sum[0], sum[1], sum[2], sum[3], sums);
    for (int k = 0; k < count; k++)
        small->y[n * small->results + j + k] = small->b ? sums[k] + small->b[j + k] : sums[k];
}

static void small_member(void *context, int member, int members)
{
    const struct small *small = context;
    long first, last;
    pool_share(small->batch, ABREAST, member, members, &first, &last);
    int64_t n = first, j;
    for (; small->along && n + ABREAST <= last; n += ABREAST)
        along_samples(small, n, ABREAST);
    for (; small->along && n < last; n++)
        along_samples(small, n, 1);
    for (; n < last; n++) {
        for (j = 0; j + ABREAST <= small->results; j += ABREAST)
            across_results(small, n, j, ABREAST);
        for (; j + 2 <= small->results; j += 2)
            across_results(small, n, j, 2);
        if (j < small->results)
            across_results(small, n, j, 1);
    }
    float *y = small->y + first * small->results;
    if (small->function != ACTIVATION_NONE)
        activate_span(small->function, y, y, (last - first) * small->results);
}

static void run_small(const struct call *call, struct small *small)
{
    int64_t flop = 2 * small->batch * small->inputs * small->results;
    pool_run(call->pool, team_for_flop(call->pool, flop, small->batch / ABREAST), small_member,
             small);
}

/* y = f(x·W + b) or f(x·Wᵀ + b): weights of inputs lie `down` apart, those of results `across`. */
static void run_forward(const struct call *call, int64_t inputs, int64_t results, int64_t down,
                        int64_t across, int32_t function)
{
    struct small small = {
        .x = floats(call, AT_dense_x),
        .b = floats(call, AT_dense_b),
        .y = floats(call, AT_dense_y),
        .batch = call->tensors[AT_dense_x]->shape.dim[0],
        .inputs = inputs,
        .results = results,
        .function = function,
    };
    take_weights(&small, floats(call, AT_dense_w), down, across);
    run_small(call, &small);
}

static void run_dense(const struct call *call)
{
    const int64_t *dim = call->tensors[AT_dense_w]->shape.dim, in = dim[0], out = dim[1];
    run_forward(call, in, out, out, 1, call->op->attr.dense.activation);
}

static void run_dense_t(const struct call *call)
{
    const int64_t *dim = call->tensors[AT_dense_t_w]->shape.dim, in = dim[0], out = dim[1];
    run_forward(call, out, in, 1, out, call->op->attr.dense_t.activation);
}

/* t[f][g] = Σ_n few[n][f] · many[n][g], rows of t being whole vectors. */
static void sum_products(const float *few, int64_t count, const float *many, int64_t lanes,
                         int64_t batch, float *t)
{
    int64_t lead = blocked_up(lanes, VEC_LANES);
    for (int64_t g = 0; g < lanes; g += VEC_LANES)
        for (int64_t f = 0; f < count; f += ABREAST) {
            int64_t width = count - f < ABREAST ? count - f : ABREAST;
            const float *factor = few + f;
            vec sum[ABREAST];
            for (int k = 0; k < ABREAST; k++)
                sum[k] = vec_zero();
            for (int64_t n = 0; n < batch; n++, factor += count) {
                vec value = vec_load_part(many + n * lanes + g, lanes - g);
#pragma GCC unroll 4
                for (int k = 0; k < ABREAST; k++) /* those beyond the last are not kept */
                    sum[k] = vec_fma(vec_set(factor[k < width ? k : 0]), value, sum[k]);
            }
            for (int64_t k = 0; k < width; k++)
                vec_store(t + (f + k) * lead + g, sum[k]);
        }
}

/* dw[in, out] = scale · xᵀ·dy, or that is added to it */
static void wgrad(const float *x, int64_t in, const float *dy, int64_t out, int64_t batch,
                  float scale, bool add, float *dw)
{
    _Alignas(64) float t[SMALL_FLOATS];
    bool lanes_out = out >= in;
    int64_t lead = blocked_up(lanes_out ? out : in, VEC_LANES);
    if (lanes_out)
        sum_products(x, in, dy, out, batch, t);
    else
        sum_products(dy, out, x, in, batch, t);
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++) {
            float sum = scale * (lanes_out ? t[i * lead + o] : t[o * lead + i]);
            dw[i * out + o] = add ? dw[i * out + o] + sum : sum;
        }
}

static void run_outer(const struct call *call)
{
    wgrad(floats(call, AT_outer_x), call->tensors[AT_outer_x]->shape.dim[1],
          floats(call, AT_outer_dy), call->tensors[AT_outer_dy]->shape.dim[1],
          call->tensors[AT_outer_x]->shape.dim[0], call->op->attr.outer.scale,
          call->op->attr.outer.accumulate, floats(call, AT_outer_dw));
}

/* y[o] = scale · Σ_n x[n,o] for some of the columns, or that is added to it */
static void sum_columns(const float *x, int64_t batch, int64_t out, int64_t from, int64_t to,
                        float scale, bool add, float *y)
{
    for (int64_t o = from; o < to; o += VEC_LANES) {
        int64_t left = to - o;
        vec sum = vec_mul(sum_rows_at(x + o, batch, out, left), vec_set(scale));
        vec_store_part(y + o, add ? vec_add(vec_load_part(y + o, left), sum) : sum, left);
    }
}

static void sum_rows_member(void *context, int member, int members)
{
    const struct call *call = context;
    const int64_t *dim = call->tensors[AT_sum_rows_x]->shape.dim;
    long from, to;
    pool_share(dim[1], VEC_LANES, member, members, &from, &to);
    sum_columns(floats(call, AT_sum_rows_x), dim[0], dim[1], from, to,
                call->op->attr.sum_rows.scale, call->op->attr.sum_rows.accumulate,
                floats(call, AT_sum_rows_y));
}

static void run_sum_rows(const struct call *call)
{
    int64_t bytes = call->counts[0] * (int64_t)sizeof(float);
    int64_t pieces = call->counts[1] / VEC_LANES;
    pool_run(call->pool, team_for_bytes(call->pool, bytes, pieces), sum_rows_member, (void *)call);
}

/* dx = dy·wᵀ with the old w; then w -= rate·xᵀ·dy and b -= rate·Σ_n dy. */
static void run_dense_sgd(const struct call *call)
{
    const int64_t *dim = call->tensors[AT_dense_sgd_w]->shape.dim, in = dim[0], out = dim[1];
    int64_t batch = call->tensors[AT_dense_sgd_x]->shape.dim[0];
    float rate = *floats(call, AT_dense_sgd_rate);
    if (call->data[AT_dense_sgd_dx]) {
        struct small small = {
            .x = floats(call, AT_dense_sgd_dy),
            .y = floats(call, AT_dense_sgd_dx),
            .batch = batch,
            .inputs = out,
            .results = in,
            .function = ACTIVATION_NONE,
        };
        take_weights(&small, floats(call, AT_dense_sgd_w), 1, out);
        run_small(call, &small);
    }
    wgrad(floats(call, AT_dense_sgd_x), in, floats(call, AT_dense_sgd_dy), out, batch, -rate, true,
          floats(call, AT_dense_sgd_w));
    if (call->data[AT_dense_sgd_b])
        sum_columns(floats(call, AT_dense_sgd_dy), batch, out, 0, out, -rate, true,
                    floats(call, AT_dense_sgd_b));
}

/* Weights that are many, and yet not a matrix that may be kept in blocks, are the reference's: no
 * layer has them. */
static bool are_few(const struct program *program, const struct op *op)
{
    int weights = op->kind == OP_dense || op->kind == OP_dense_t ? 1 : 2;
    const struct tensor *w = &program->tensors[program->operands[op->first + weights]];
    return shape_count(&w->shape) < BLOCKED_LEAST;
}

#define FEW .takes = are_few, .why = "the weights are too few to be kept in blocks"
static const struct kernel rows[] = {
    {ROW(dense), FEW},
    {ROW(dense_t), FEW},
    {ROW(outer), FEW},
    {ROW(sum_rows)},
    {ROW(dense_sgd), FEW},
    {.op = OP_dense_update, .why = "for few weights its three ops are faster"},
};

const struct kernel_list ISA(dense_small_list) = KERNEL_LIST(rows);
