/* ref_gru.c: one layer of gated recurrent units over a whole sequence.
 *
 * For each step t of a sample, with h the state before it:
 *     r = σ(x_t·wx_r + bx_r + h·wh_r + bh_r);   z likewise
 *     s = h·wh_n + bh_n;   m = tanh(x_t·wx_n + bx_n + r·s)
 *     h' = (1 - z)·m + z·h;   y_t = h'
 * The reset r comes after the product, as in PyTorch and in ONNX with linear_before_reset=1. Beyond
 * the sample's length y_t is 0 and the state stands still. */
#include "backend/cpu/ref/ref_recurrent.h"

/* The sums of one step, v [4 hidden]: those of r and z, then the two parts of m. */
static void step_sums(const struct call *call, const struct sizes *s, int64_t at, const real *h,
                      real *v)
{
    const real *bx = reals(call, AT_gru_bx), *bh = reals(call, AT_gru_bh),
               *wh = reals(call, AT_gru_wh);
    for (int64_t k = 0; k < s->hidden; k++) {
        v[k] = bx[k] + bh[k];
        v[s->hidden + k] = bx[s->hidden + k] + bh[s->hidden + k];
        v[2 * s->hidden + k] = bx[2 * s->hidden + k];
        v[3 * s->hidden + k] = bh[2 * s->hidden + k];
    }
    add_product(v, reals(call, AT_gru_x) + at * s->in, reals(call, AT_gru_wx), s->in, s->gates, 0,
                s->gates);
    add_product(v, h, wh, s->hidden, s->gates, 0, 2 * s->hidden);
    add_product(v + 3 * s->hidden, h, wh, s->hidden, s->gates, 2 * s->hidden, s->hidden);
}

/* Sums become r, z, m and s; the state h moves on. */
static void step(real *v, real *h, int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k++) {
        real r = sigmoid(v[k]), z = sigmoid(v[hidden + k]);
        real m = real_tanh(v[2 * hidden + k] + r * v[3 * hidden + k]);
        v[k] = r, v[hidden + k] = z, v[2 * hidden + k] = m;
        h[k] = (1 - z) * m + z * h[k];
    }
}

KERNEL(gru)
{
    struct sizes s = sizes_of(call);
    real *y = reals(call, AT_gru_y), *gates = reals(call, AT_gru_gates);
    size_t state_bytes = (size_t)s.hidden * sizeof(real);
    for (int64_t n = 0; n < s.batch; n++) {
        real *h = reals(call, AT_gru_hn) + n * s.hidden;
        state_begin(h, reals(call, AT_gru_h0), n, s.hidden);
        int64_t length = length_of(integers(call, AT_gru_lengths), n, s.time);
        for (int64_t t = 0; t < s.time; t++) {
            int64_t at = n * s.time + t;
            if (t >= length) {
                memset(y + at * s.hidden, 0, state_bytes);
                continue;
            }
            real *v =
                gates ? gates + at * 4 * s.hidden : reals(call, AT_gru_sums) + n * 4 * s.hidden;
            step_sums(call, &s, at, h, v);
            step(v, h, s.hidden);
            memcpy(y + at * s.hidden, h, state_bytes);
        }
    }
}

/* dh of the state after the step becomes what reaches the state before it other than through the
 * sums; dzx and dzh are those of the sums with x and with h, which differ by the reset in m. */
static void step_back(const real *v, const real *before, real *dh, real *dzx, real *dzh,
                      int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k++) {
        real r = v[k], z = v[hidden + k], m = v[2 * hidden + k], s = v[3 * hidden + k];
        real dm = dh[k] * (1 - z) * (1 - m * m);
        dzx[k] = dzh[k] = dm * s * r * (1 - r);
        dzx[hidden + k] = dzh[hidden + k] = dh[k] * ((before ? before[k] : 0) - m) * z * (1 - z);
        dzx[2 * hidden + k] = dm;
        dzh[2 * hidden + k] = dm * r;
        dh[k] *= z;
    }
}

KERNEL(gru_grad)
{
    struct sizes s = sizes_of(call);
    const struct sources sources = sources_of(call, call->op->attr.gru_grad.accumulate);
    const real *y = reals(call, AT_gru_grad_y), *h0 = reals(call, AT_gru_grad_h0);
    real *dgates = reals(call, AT_gru_grad_dgates), *dsums = reals(call, AT_gru_grad_dsums);
    for (int64_t n = 0; n < s.batch; n++) {
        real *dh = reals(call, AT_gru_grad_dh0) + n * s.hidden; /* where it ends up */
        state_begin(dh, reals(call, AT_gru_grad_dhn), n, s.hidden);
        int64_t length = length_of(integers(call, AT_gru_grad_lengths), n, s.time);
        for (int64_t t = s.time - 1; t >= 0; t--) {
            int64_t at = n * s.time + t;
            if (t >= length) {
                step_unused(&sources, &s, at, dgates);
                step_unused(&sources, &s, at, dsums);
                continue;
            }
            const real *before = state_before(y, h0, n, t, &s);
            real *dzx = dgates + at * s.gates, *dzh = dsums + at * s.gates;
            add_output_grad(dh, reals(call, AT_gru_grad_dy), at, s.hidden);
            step_back(reals(call, AT_gru_grad_gates) + at * 4 * s.hidden, before, dh, dzx, dzh,
                      s.hidden);
            sums_back(&sources, &s, at, before, dzx, dzh, dh);
        }
    }
}
