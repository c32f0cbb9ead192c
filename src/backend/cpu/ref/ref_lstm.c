/* ref_lstm.c: one layer of LSTM over a whole sequence.
 *
 * For each step t of a sample, with h and c the state before it:
 *     [i f g o] = x_t·wx + bx + h·wh + bh;   i, f, o through sigmoid, g through tanh
 *     c' = f·c + i·g;   h' = o·tanh(c');   y_t = h'
 * Beyond the sample's length y_t is 0 and the state stands still. */
#include "backend/cpu/ref/ref_recurrent.h"

/* One step: gate sums in z become gate values; the state h, c moves on. */
static void step(real *z, real *h, real *c, int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k++) {
        real i = sigmoid(z[k]), f = sigmoid(z[hidden + k]);
        real g = real_tanh(z[2 * hidden + k]), o = sigmoid(z[3 * hidden + k]);
        z[k] = i, z[hidden + k] = f, z[2 * hidden + k] = g, z[3 * hidden + k] = o;
        c[k] = f * c[k] + i * g;
        h[k] = o * real_tanh(c[k]);
    }
}

KERNEL(lstm)
{
    struct sizes s = sizes_of(call);
    const real *x = reals(call, AT_lstm_x), *wx = reals(call, AT_lstm_wx),
               *wh = reals(call, AT_lstm_wh);
    const real *bx = reals(call, AT_lstm_bx), *bh = reals(call, AT_lstm_bh);
    real *y = reals(call, AT_lstm_y), *gates = reals(call, AT_lstm_gates),
         *cells = reals(call, AT_lstm_cells);
    size_t state_bytes = (size_t)s.hidden * sizeof(real);
    for (int64_t n = 0; n < s.batch; n++) {
        real *h = reals(call, AT_lstm_hn) + n * s.hidden,
             *c = reals(call, AT_lstm_cn) + n * s.hidden;
        state_begin(h, reals(call, AT_lstm_h0), n, s.hidden);
        state_begin(c, reals(call, AT_lstm_c0), n, s.hidden);
        int64_t length = length_of(integers(call, AT_lstm_lengths), n, s.time);
        for (int64_t t = 0; t < s.time; t++) {
            int64_t at = n * s.time + t;
            real *row = y + at * s.hidden;
            if (t >= length) {
                memset(row, 0, state_bytes);
                continue;
            }
            real *z = gates ? gates + at * s.gates : reals(call, AT_lstm_sums) + n * s.gates;
            for (int64_t k = 0; k < s.gates; k++)
                z[k] = bx[k] + bh[k];
            add_product(z, x + at * s.in, wx, s.in, s.gates, 0, s.gates);
            add_product(z, h, wh, s.hidden, s.gates, 0, s.gates);
            step(z, h, c, s.hidden);
            memcpy(row, h, state_bytes);
            if (cells)
                memcpy(cells + at * s.hidden, c, state_bytes);
        }
    }
}

/* What flows back through one step: dh and dc of the state after it become what reaches the state
 * before it other than through the sums, and dz that of the sums. `c` and `before` are the cells
 * after and before the step. */
static void step_back(const real *gates, const real *c, const real *before, real *dh, real *dc,
                      real *dz, int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k++) {
        real i = gates[k], f = gates[hidden + k], g = gates[2 * hidden + k];
        real o = gates[3 * hidden + k], tanh_c = real_tanh(c[k]);
        real d = dc[k] + dh[k] * o * (1 - tanh_c * tanh_c);
        dz[k] = d * g * i * (1 - i);
        dz[hidden + k] = d * (before ? before[k] : 0) * f * (1 - f);
        dz[2 * hidden + k] = d * i * (1 - g * g);
        dz[3 * hidden + k] = dh[k] * tanh_c * o * (1 - o);
        dc[k] = d * f;
        dh[k] = 0;
    }
}

KERNEL(lstm_grad)
{
    struct sizes s = sizes_of(call);
    const struct sources sources = sources_of(call, call->op->attr.lstm_grad.accumulate);
    const real *y = reals(call, AT_lstm_grad_y), *h0 = reals(call, AT_lstm_grad_h0);
    real *dgates = reals(call, AT_lstm_grad_dgates);
    for (int64_t n = 0; n < s.batch; n++) {
        /* dh0 and dc0 are where the state's gradient ends up, so it is carried there. */
        real *dh = reals(call, AT_lstm_grad_dh0) + n * s.hidden,
             *dc = reals(call, AT_lstm_grad_dc0) + n * s.hidden;
        state_begin(dh, reals(call, AT_lstm_grad_dhn), n, s.hidden);
        state_begin(dc, reals(call, AT_lstm_grad_dcn), n, s.hidden);
        int64_t length = length_of(integers(call, AT_lstm_grad_lengths), n, s.time);
        for (int64_t t = s.time - 1; t >= 0; t--) {
            int64_t at = n * s.time + t;
            if (t >= length) {
                step_unused(&sources, &s, at, dgates);
                continue;
            }
            real *dz = dgates + at * s.gates;
            const real *before = state_before(reals(call, AT_lstm_grad_cells),
                                              reals(call, AT_lstm_grad_c0), n, t, &s);
            add_output_grad(dh, reals(call, AT_lstm_grad_dy), at, s.hidden);
            step_back(reals(call, AT_lstm_grad_gates) + at * s.gates,
                      reals(call, AT_lstm_grad_cells) + at * s.hidden, before, dh, dc, dz,
                      s.hidden);
            sums_back(&sources, &s, at, state_before(y, h0, n, t, &s), dz, dz, dh);
        }
    }
}
