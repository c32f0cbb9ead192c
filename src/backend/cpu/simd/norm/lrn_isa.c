/* lrn_isa.c: local response normalisation and its gradient, compiled once per ISA.
 *
 * A few vectors of all channels of a sample are one piece of work, so that what neighbouring
 * channels share is in L1 or L2. beta = 3/4, which everybody has, is two roots; another is the
 * reference's. Bound by the roots and the division: about 60 cycles a vector. */
#include "backend/cpu/kernel.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_span.h"
#include "backend/cpu/simd/workspace.h"
#include "backend/cpu/team.h"

enum { PIECE = 64 }; /* elements of each channel */

/* A piece: `width` elements of all channels of one sample, the first at `at`. */
struct piece {
    int64_t at, width;
    int64_t channels, inner; /* from a channel to the next */
};

static int64_t pieces_of(int64_t inner)
{
    return (inner + PIECE - 1) / PIECE;
}

static int64_t inner_of(const struct call *call)
{
    return call->counts[0] /
           (call->tensors[AT_lrn_x]->shape.dim[0] * call->tensors[AT_lrn_x]->shape.dim[1]);
}

static struct piece piece_at(const struct call *call, int64_t number)
{
    struct piece piece = {.channels = call->tensors[AT_lrn_x]->shape.dim[1],
                          .inner = inner_of(call)};
    int64_t sample = number / pieces_of(piece.inner), from = number % pieces_of(piece.inner);
    piece.at = sample * piece.channels * piece.inner + from * PIECE;
    piece.width = piece.inner - from * PIECE < PIECE ? piece.inner - from * PIECE : PIECE;
    return piece;
}

/* base^(-3/4) */
static inline vec shrink_of(vec base)
{
    vec root = vec_sqrt(base);
    return vec_div(vec_set(1), vec_mul(root, vec_sqrt(root)));
}

/* Σ over the channels from c - before to c + after of t at element i, where its rows are `lead`
 * apart; of its squares with `square`. */
static inline vec sum_around(const float *t, int64_t lead, struct piece piece, int64_t c,
                             int64_t before, int64_t after, int64_t i, bool square)
{
    int64_t from = c < before ? 0 : c - before;
    int64_t to = c + after < piece.channels ? c + after + 1 : piece.channels;
    vec sum = vec_zero();
    for (int64_t j = from; j < to; j++) {
        vec value = vec_load_part(t + j * lead + i, piece.width - i);
        sum = square ? vec_fma(value, value, sum) : vec_add(sum, value);
    }
    return sum;
}

static void lrn_member(void *context, int member, int members)
{
    const struct call *call = context;
    int64_t size = call->op->attr.lrn.size;
    vec factor = vec_set(call->op->attr.lrn.alpha / (float)size);
    vec k = vec_set(call->op->attr.lrn.k);
    long number, last;
    pool_share(call->tensors[AT_lrn_x]->shape.dim[0] * pieces_of(inner_of(call)), 1, member,
               members, &number, &last);
    for (; number < last; number++) {
        struct piece piece = piece_at(call, number);
        const float *x = floats(call, AT_lrn_x) + piece.at;
        for (int64_t c = 0; c < piece.channels; c++)
            for (int64_t i = 0; i < piece.width; i += VEC_LANES) {
                int64_t place = c * piece.inner + i, left = piece.width - i;
                vec sum = sum_around(x, piece.inner, piece, c, size / 2, (size - 1) / 2, i, true);
                vec base = vec_fma(factor, sum, k);
                vec y = vec_mul(vec_load_part(x + place, left), shrink_of(base));
                vec_store_part(floats(call, AT_lrn_y) + piece.at + place, y, left);
                if (call->data[AT_lrn_base])
                    vec_store_part(floats(call, AT_lrn_base) + piece.at + place, base, left);
            }
    }
}

/* dx = dy·base^-beta - 2·alpha·beta/size · x · Σ dy·x·base^(-beta-1); the summands go to the
 * workspace first. */
static void lrn_grad_member(void *context, int member, int members)
{
    const struct call *call = context;
    int64_t size = call->op->attr.lrn_grad.size;
    const float alpha = call->op->attr.lrn_grad.alpha, beta = call->op->attr.lrn_grad.beta;
    vec factor = vec_set(2 * alpha * beta / (float)size);
    float *t =
        (float *)call->workspace + member * call->tensors[AT_lrn_grad_x]->shape.dim[1] * PIECE;
    long number, last;
    pool_share(call->tensors[AT_lrn_grad_x]->shape.dim[0] * pieces_of(inner_of(call)), 1, member,
               members, &number, &last);
    for (; number < last; number++) {
        struct piece piece = piece_at(call, number);
        const float *x = floats(call, AT_lrn_grad_x) + piece.at,
                    *base = floats(call, AT_lrn_grad_base) + piece.at;
        const float *dy = floats(call, AT_lrn_grad_dy) + piece.at;
        float *dx = floats(call, AT_lrn_grad_dx) + piece.at;
        for (int64_t c = 0; c < piece.channels; c++)
            for (int64_t i = 0; i < piece.width; i += VEC_LANES) {
                int64_t place = c * piece.inner + i, left = piece.width - i;
                vec b = vec_load_part(base + place, left);
                vec scaled = vec_mul(vec_load_part(dy + place, left), shrink_of(b));
                vec_store_part(dx + place, scaled, left);
                scaled = vec_div(vec_mul(scaled, vec_load_part(x + place, left)), b);
                vec_store_part(t + c * PIECE + i, scaled, left);
            }
        for (int64_t c = 0; c < piece.channels; c++)
            for (int64_t i = 0; i < piece.width; i += VEC_LANES) {
                int64_t place = c * piece.inner + i, left = piece.width - i;
                vec sum = sum_around(t, PIECE, piece, c, (size - 1) / 2, size / 2, i, false);
                vec part = vec_mul(vec_mul(factor, vec_load_part(x + place, left)), sum);
                vec_store_part(dx + place, vec_sub(vec_load_part(dx + place, left), part), left);
            }
    }
}

static void run_pieces(const struct call *call, pool_task *task)
{
    int64_t bytes = 8 * call->counts[0] * (int64_t)sizeof(float);
    int64_t pieces = call->tensors[AT_lrn_x]->shape.dim[0] * pieces_of(inner_of(call));
    pool_run(call->pool, team_for_bytes(call->pool, bytes, pieces), task, (void *)call);
}

static void run_lrn(const struct call *call)
{
    run_pieces(call, lrn_member);
}

static void run_lrn_grad(const struct call *call)
{
    run_pieces(call, lrn_grad_member);
}

static bool is_usual(const struct program *program, const struct op *op)
{
    (void)program;
    float beta = op->kind == OP_lrn ? op->attr.lrn.beta : op->attr.lrn_grad.beta;
    return beta >= 0.75f && beta <= 0.75f;
}

static uint64_t lrn_grad_workspace(const struct program *program, const struct op *op, int threads)
{
    int64_t channels = program->tensors[op_input(program, op, 0)].shape.dim[1];
    uint64_t used = 0;
    workspace_take(NULL, &used, threads * channels * PIECE, sizeof(float));
    return used;
}

#define ROOTS .takes = is_usual, .why = "beta is 3/4, so the power is two roots"
static const struct kernel rows[] = {
    {ROW(lrn), ROOTS},
    {ROW(lrn_grad), ROOTS, .workspace = lrn_grad_workspace},
};

const struct kernel_list ISA(lrn_list) = KERNEL_LIST(rows);
