/* loss_isa.c: losses over numbers and the divergence of codes, with its gradient, and counts of
 * right answers; compiled once per ISA.
 *
 * The bound is bytes, each read once; the logarithm and the exponential of the binary cross-entropy
 * are polynomials. Sums are kept in lanes and pieces (sums.h), added up at the end: always in the
 * same order. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/sums.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"
#include "backend/cpu/simd/vec_span.h"

enum { GRAIN = 4096 }; /* elements of a piece, at least */

/* The lanes that there are elements for; the others are 0. */
static inline vec vec_left(vec v, int64_t left)
{
    return left < VEC_LANES ? vec_first(v, left) : v;
}

static float mse_piece(const void *context, int64_t from, int64_t to)
{
    const float *y = floats(context, AT_mse_y), *target = floats(context, AT_mse_target);
    vec sum = vec_zero();
    for (int64_t i = from; i < to; i += VEC_LANES) {
        vec d = vec_sub(vec_load_part(y + i, to - i), vec_load_part(target + i, to - i));
        sum = vec_add(sum, vec_mul(d, d));
    }
    return vec_sum(sum);
}

/* ln(1 + e^x) - x·t on logits */
static float binary_cross_entropy_piece(const void *context, int64_t from, int64_t to)
{
    const float *x = floats(context, AT_binary_cross_entropy_x),
                *target = floats(context, AT_binary_cross_entropy_target);
    vec sum = vec_zero();
    for (int64_t i = from; i < to; i += VEC_LANES) {
        vec logit = vec_load_part(x + i, to - i);
        vec off = vec_mul(logit, vec_load_part(target + i, to - i));
        sum = vec_add(sum, vec_left(vec_sub(vec_softplus(logit), off), to - i));
    }
    return vec_sum(sum);
}

/* The mean over all elements. */
static void run_mean(const struct call *call, sum_piece *piece)
{
    int64_t count = call->counts[0], bytes = 2 * count * (int64_t)sizeof(float);
    *floats(call, AT_mse_loss) =
        sum_pieces(call->pool, piece, call, count, GRAIN, bytes) / (float)count;
}

static void run_mse(const struct call *call)
{
    run_mean(call, mse_piece);
}

static void run_binary_cross_entropy(const struct call *call)
{
    run_mean(call, binary_cross_entropy_piece);
}

/* Is x[label] the first of the largest? As the reference, which goes on to what is larger than the
 * best so far, passes over what is no number, and goes nowhere from there. */
static bool is_right(const float *x, int64_t classes, int64_t label)
{
    if (label < 0 || label >= classes || (label > 0 && x[0] != x[0]))
        return false;
    return (label == 0 || largest_span(x, label) < x[label]) &&
           !(largest_span(x + label + 1, classes - label - 1) > x[label]);
}

static float right_class_piece(const void *context, int64_t from, int64_t to)
{
    const struct call *call = context;
    const int32_t *label = call->data[AT_right_class_label];
    int64_t classes = call->tensors[AT_right_class_x]->shape.dim[1], hits = 0;
    for (int64_t n = from; n < to; n++)
        hits += is_right(floats(call, AT_right_class_x) + n * classes, classes, label[n]);
    return (float)hits;
}

static void run_right_class(const struct call *call)
{
    int64_t bytes = call->counts[0] * (int64_t)sizeof(float);
    *floats(call, AT_right_class_right) =
        sum_pieces(call->pool, right_class_piece, call,
                   call->tensors[AT_right_class_x]->shape.dim[0], 1, bytes);
}

static void run_divergence(const struct call *call)
{
    const float *moments = floats(call, AT_divergence_moments);
    int64_t batch = call->tensors[AT_divergence_moments]->shape.dim[0],
            width = call->tensors[AT_divergence_moments]->shape.dim[2];
    vec sum = vec_zero(), one = vec_set(1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i += VEC_LANES) {
            vec mean = vec_load_part(moments + 2 * n * width + i, width - i);
            vec log = vec_load_part(moments + (2 * n + 1) * width + i, width - i);
            vec spread = vec_sub(vec_sub(vec_exp(log), one), log);
            sum = vec_add(sum, vec_left(vec_add(vec_mul(mean, mean), spread), width - i));
        }
    *floats(call, AT_divergence_loss) = vec_sum(sum) / (float)(2 * batch);
}

static void run_divergence_grad(const struct call *call)
{
    const float *moments = floats(call, AT_divergence_grad_moments);
    float *dmoments = floats(call, AT_divergence_grad_dmoments);
    int64_t batch = call->tensors[AT_divergence_grad_moments]->shape.dim[0],
            width = call->tensors[AT_divergence_grad_moments]->shape.dim[2];
    vec scale = vec_set(call->op->attr.divergence_grad.scale / (float)batch);
    vec half = vec_mul(scale, vec_set(0.5f)), one = vec_set(1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i += VEC_LANES) {
            int64_t at = 2 * n * width + i, left = width - i;
            vec spread = vec_sub(vec_exp(vec_load_part(moments + at + width, left)), one);
            vec_store_part(dmoments + at, vec_mul(scale, vec_load_part(moments + at, left)), left);
            vec_store_part(dmoments + at + width, vec_mul(half, spread), left);
        }
}

static void run_draw_normal_grad(const struct call *call)
{
    const float *moments = floats(call, AT_draw_normal_grad_moments),
                *z = floats(call, AT_draw_normal_grad_z),
                *dz = floats(call, AT_draw_normal_grad_dz);
    float *dmoments = floats(call, AT_draw_normal_grad_dmoments);
    int64_t batch = call->tensors[AT_draw_normal_grad_z]->shape.dim[0],
            width = call->tensors[AT_draw_normal_grad_z]->shape.dim[1];
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < width; i += VEC_LANES) {
            int64_t mean = 2 * n * width + i, at = n * width + i, left = width - i;
            vec flows = vec_load_part(dz + at, left);
            vec off = vec_sub(vec_load_part(z + at, left), vec_load_part(moments + mean, left));
            vec_store_part(dmoments + mean, flows, left);
            vec_store_part(dmoments + mean + width, vec_mul(vec_mul(flows, off), vec_set(0.5f)),
                           left);
        }
}

static const struct kernel rows[] = {
    {ROW(mse)},        {ROW(binary_cross_entropy)}, {ROW(right_class)},
    {ROW(divergence)}, {ROW(divergence_grad)},      {ROW(draw_normal_grad)},
};

const struct kernel_list ISA(loss_list) = KERNEL_LIST(rows);
