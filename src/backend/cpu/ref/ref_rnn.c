/* ref_rnn.c: one plain recurrent layer over a whole sequence: h' = f(x_t·wx + bx + h·wh + bh), y_t
 * = h', f being tanh or relu. Beyond the sample's length y_t is 0 and the state stands still. */
#include "backend/cpu/ref/ref_recurrent.h"

KERNEL(rnn)
{
    struct sizes s = sizes_of(call);
    const real *x = reals(call, AT_rnn_x), *wx = reals(call, AT_rnn_wx),
               *wh = reals(call, AT_rnn_wh);
    const real *bx = reals(call, AT_rnn_bx), *bh = reals(call, AT_rnn_bh);
    size_t state_bytes = (size_t)s.hidden * sizeof(real);
    for (int64_t n = 0; n < s.batch; n++) {
        real *h = reals(call, AT_rnn_hn) + n * s.hidden;
        state_begin(h, reals(call, AT_rnn_h0), n, s.hidden);
        int64_t length = length_of(integers(call, AT_rnn_lengths), n, s.time);
        for (int64_t t = 0; t < s.time; t++) {
            int64_t at = n * s.time + t;
            real *z = reals(call, AT_rnn_y) + at * s.hidden; /* the sums, then the state, in y */
            if (t >= length) {
                memset(z, 0, state_bytes);
                continue;
            }
            for (int64_t k = 0; k < s.hidden; k++)
                z[k] = bx[k] + bh[k];
            add_product(z, x + at * s.in, wx, s.in, s.hidden, 0, s.hidden);
            add_product(z, h, wh, s.hidden, s.hidden, 0, s.hidden);
            for (int64_t k = 0; k < s.hidden; k++)
                h[k] = z[k] = activate(call->op->attr.rnn.function, z[k]);
        }
    }
}

/* The derivative of f where its value is y. */
static real derivative(int32_t function, real y)
{
    if (function == ACTIVATION_RELU)
        return y > 0;
    return 1 - y * y;
}

KERNEL(rnn_grad)
{
    struct sizes s = sizes_of(call);
    const struct sources sources = sources_of(call, call->op->attr.rnn_grad.accumulate);
    const real *y = reals(call, AT_rnn_grad_y), *h0 = reals(call, AT_rnn_grad_h0);
    real *dgates = reals(call, AT_rnn_grad_dgates);
    for (int64_t n = 0; n < s.batch; n++) {
        real *dh = reals(call, AT_rnn_grad_dh0) + n * s.hidden; /* where it ends up */
        state_begin(dh, reals(call, AT_rnn_grad_dhn), n, s.hidden);
        int64_t length = length_of(integers(call, AT_rnn_grad_lengths), n, s.time);
        for (int64_t t = s.time - 1; t >= 0; t--) {
            int64_t at = n * s.time + t;
            if (t >= length) {
                step_unused(&sources, &s, at, dgates);
                continue;
            }
            real *dz = dgates + at * s.hidden;
            add_output_grad(dh, reals(call, AT_rnn_grad_dy), at, s.hidden);
            for (int64_t k = 0; k < s.hidden; k++) {
                dz[k] = dh[k] * derivative(call->op->attr.rnn_grad.function, y[at * s.hidden + k]);
                dh[k] = 0;
            }
            sums_back(&sources, &s, at, state_before(y, h0, n, t, &s), dz, dz, dh);
        }
    }
}
