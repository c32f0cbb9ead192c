/* recurrent_isa.c: what a step of a layer over time does with its sums, compiled once per ISA.
 * ref_lstm.c, ref_gru.c and ref_rnn.c have the formulas. */
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/recurrent/recurrent_shared.h"
#include "backend/cpu/simd/vec.h"
#include "backend/cpu/simd/vec_activate.h"

/* Inference keeps no gates, so they need not be computed one by one. */
static void lstm_state(const struct recurrent_step *s)
{
    for (int64_t k = 0; k < s->units; k += VEC_LANES) {
        const float *z = s->z + k;
        int64_t left = s->units - k;
        vec f = vec_sigmoid(vec_load(z + s->apart));
        vec c = vec_fma(f, vec_load_part(s->c + k, left),
                        vec_gated_tanh(vec_load(z), vec_load(z + 2 * s->apart)));
        vec_store_part(s->c + k, c, left);
        vec_store_part(s->h + k, vec_gated_tanh(vec_load(z + 3 * s->apart), c), left);
    }
}

static void lstm(const struct recurrent_step *s)
{
    if (!s->gates) {
        lstm_state(s);
        return;
    }
    for (int64_t k = 0; k < s->units; k += VEC_LANES) {
        const float *z = s->z + k;
        int64_t left = s->units - k, h = s->hidden;
        vec i = vec_sigmoid(vec_load(z)), f = vec_sigmoid(vec_load(z + s->apart));
        vec g = vec_tanh(vec_load(z + 2 * s->apart)), o = vec_sigmoid(vec_load(z + 3 * s->apart));
        vec c = vec_fma(f, vec_load_part(s->c + k, left), vec_mul(i, g));
        vec_store_part(s->c + k, c, left);
        vec_store_part(s->h + k, vec_mul(o, vec_tanh(c)), left);
        vec_store_part(s->gates + k, i, left);
        vec_store_part(s->gates + h + k, f, left);
        vec_store_part(s->gates + 2 * h + k, g, left);
        vec_store_part(s->gates + 3 * h + k, o, left);
    }
}

/* to += v */
static inline void add_to(float *to, vec v, int64_t left)
{
    vec_store_part(to, vec_add(vec_load_part(to, left), v), left);
}

static inline vec load_or_zero(const float *from, int64_t at, int64_t left)
{
    return from ? vec_load_part(from + at, left) : vec_zero();
}

/* The derivative of a sigmoid or tanh from its value. */
static inline vec sigmoid_derivative(vec y)
{
    return vec_fnma(y, y, y);
}

static inline vec tanh_derivative(vec y)
{
    return vec_fnma(y, y, vec_set(1.0f));
}

static void lstm_back(const struct recurrent_back *b)
{
    for (int64_t k = 0, h = b->hidden; k < h; k += VEC_LANES) {
        int64_t left = h - k;
        vec i = vec_load_part(b->gates + k, left), f = vec_load_part(b->gates + h + k, left);
        vec g = vec_load_part(b->gates + 2 * h + k, left);
        vec o = vec_load_part(b->gates + 3 * h + k, left);
        vec tanh_c = vec_tanh(vec_load_part(b->cells + k, left));
        vec dh = vec_add(vec_load_part(b->dh + k, left), load_or_zero(b->dy, k, left));
        vec d = vec_fma(vec_mul(dh, o), tanh_derivative(tanh_c), vec_load_part(b->dc + k, left));
        vec dz[4] = {
            vec_mul(vec_mul(d, g), sigmoid_derivative(i)),
            vec_mul(vec_mul(d, load_or_zero(b->before, k, left)), sigmoid_derivative(f)),
            vec_mul(vec_mul(d, i), tanh_derivative(g)),
            vec_mul(vec_mul(dh, tanh_c), sigmoid_derivative(o)),
        };
#pragma GCC unroll 4
        for (int gate = 0; gate < 4; gate++) {
            vec_store_part(b->dzx + gate * h + k, dz[gate], left);
            vec_store_part(b->flow + gate * h + k, dz[gate], left);
            add_to(b->sum_x + gate * h + k, dz[gate], left);
        }
        vec_store_part(b->dc + k, vec_mul(d, f), left);
        vec_store_part(b->dh + k, vec_zero(), left);
    }
}

/* z: the sums of r and z, then the two parts of m; kept as r, z, m and the state's part. */
static void gru(const struct recurrent_step *s)
{
    for (int64_t k = 0; k < s->units; k += VEC_LANES) {
        int64_t left = s->units - k, h = s->hidden;
        vec r = vec_sigmoid(vec_load(s->z + k)), z = vec_sigmoid(vec_load(s->z + s->apart + k));
        vec part = vec_load(s->z + 3 * s->apart + k);
        vec m = vec_tanh(vec_fma(r, part, vec_load(s->z + 2 * s->apart + k)));
        vec y = vec_fma(z, vec_sub(vec_load_part(s->h + k, left), m), m);
        vec_store_part(s->h + k, y, left);
        if (!s->gates)
            continue;
        vec_store_part(s->gates + k, r, left);
        vec_store_part(s->gates + h + k, z, left);
        vec_store_part(s->gates + 2 * h + k, m, left);
        vec_store_part(s->gates + 3 * h + k, part, left);
    }
}

static void gru_back(const struct recurrent_back *b)
{
    for (int64_t k = 0, h = b->hidden; k < h; k += VEC_LANES) {
        int64_t left = h - k;
        vec r = vec_load_part(b->gates + k, left), z = vec_load_part(b->gates + h + k, left);
        vec m = vec_load_part(b->gates + 2 * h + k, left);
        vec part = vec_load_part(b->gates + 3 * h + k, left);
        vec dh = vec_add(vec_load_part(b->dh + k, left), load_or_zero(b->dy, k, left));
        vec dm = vec_mul(vec_mul(dh, vec_sub(vec_set(1.0f), z)), tanh_derivative(m));
        vec dr = vec_mul(vec_mul(dm, part), sigmoid_derivative(r));
        vec before = load_or_zero(b->before, k, left);
        vec dz = vec_mul(vec_mul(dh, vec_sub(before, m)), sigmoid_derivative(z));
        const vec dzx[3] = {dr, dz, dm}, dzh[3] = {dr, dz, vec_mul(dm, r)};
#pragma GCC unroll 3
        for (int gate = 0; gate < 3; gate++) {
            vec_store_part(b->dzx + gate * h + k, dzx[gate], left);
            vec_store_part(b->dzh + gate * h + k, dzh[gate], left);
            vec_store_part(b->flow + gate * h + k, dzh[gate], left);
            add_to(b->sum_x + gate * h + k, dzx[gate], left);
            add_to(b->sum_h + gate * h + k, dzh[gate], left);
        }
        vec_store_part(b->dh + k, vec_mul(dh, z), left);
    }
}

static void rnn(const struct recurrent_step *s)
{
    for (int64_t k = 0; k < s->units; k += VEC_LANES) {
        int64_t left = s->units - k;
        vec_store_part(s->h + k, vec_activate(s->function, vec_load(s->z + k)), left);
    }
}

static void rnn_back(const struct recurrent_back *b)
{
    for (int64_t k = 0, h = b->hidden; k < h; k += VEC_LANES) {
        int64_t left = h - k;
        vec dh = vec_add(vec_load_part(b->dh + k, left), load_or_zero(b->dy, k, left));
        vec dz = vec_mul(dh, vec_derivative(b->function, vec_load_part(b->y + k, left), 0));
        vec_store_part(b->dzx + k, dz, left);
        vec_store_part(b->flow + k, dz, left);
        add_to(b->sum_x + k, dz, left);
        vec_store_part(b->dh + k, vec_zero(), left);
    }
}

const struct recurrent_kernels ISA(recurrent_kernels) = {
    .lstm = lstm,
    .gru = gru,
    .rnn = rnn,
    .lstm_back = lstm_back,
    .gru_back = gru_back,
    .rnn_back = rnn_back,
};

static uint64_t workspace(const struct program *program, const struct op *op, int threads)
{
    return recurrent_workspace(program, op, threads, &ISA(gemm_kernels));
}

#define BY_OP(EACH)                                                                                \
    EACH(lstm)                                                                                     \
    EACH(lstm_grad)                                                                                \
    EACH(gru)                                                                                      \
    EACH(gru_grad)                                                                                 \
    EACH(rnn)                                                                                      \
    EACH(rnn_grad)
#define DEFINE(kind)                                                                               \
    static void run_##kind(const struct call *call)                                                \
    {                                                                                              \
        recurrent_##kind(call, &ISA(gemm_kernels), &ISA(recurrent_kernels));                       \
    }
BY_OP(DEFINE)

#define RECURRENT_ROW(kind) {ROW(kind), .workspace = workspace},
static const struct kernel rows[] = {BY_OP(RECURRENT_ROW)};

const struct kernel_list ISA(recurrent_list) = KERNEL_LIST(rows);
