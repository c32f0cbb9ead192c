/* ref_lstm.c: one layer of LSTM over a whole sequence.
 *
 * For each step t of a sample, with h and c the state before it:
 *     [i f g o] = x_t·wx + bx + h·wh + bh;   i, f, o through sigmoid, g through tanh
 *     c' = f·c + i·g;   h' = o·tanh(c');   y_t = h'
 * Beyond the sample's length y_t is 0 and the state stands still. Samples are independent, so each
 * is done alone, time inside. */
#include "backend/cpu/ref/real.h"

#include <string.h>

struct sizes {
    int64_t batch, time, in, hidden, gates; /* gates = 4 hidden */
};

static struct sizes sizes_of(const struct call *call)
{
    return (struct sizes){
        .batch = dim(call, 0, 0),
        .time = dim(call, 0, 1),
        .in = dim(call, 0, 2),
        .hidden = dim(call, 2, 0),
        .gates = dim(call, 2, 1),
    };
}

static int64_t length_of(const int32_t *lengths, int64_t n, int64_t time)
{
    return !lengths || lengths[n] > time ? time : lengths[n];
}

/* z += v·w for w [rows, columns] */
static void add_product(real *z, const real *v, const real *w, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            z[k] += v[r] * w[r * columns + k];
}

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
    const real *x = reals(call, 0), *wx = reals(call, 1), *wh = reals(call, 2);
    const real *bx = reals(call, 3), *bh = reals(call, 4), *h0 = reals(call, 5);
    const real *c0 = reals(call, 6);
    const int32_t *lengths = integers(call, 7);
    real *y = reals(call, 8), *gates = reals(call, 12), *cells = reals(call, 13);
    size_t state_bytes = (size_t)s.hidden * sizeof(real);
    for (int64_t n = 0; n < s.batch; n++) {
        real *h = reals(call, 9) + n * s.hidden, *c = reals(call, 10) + n * s.hidden;
        for (int64_t k = 0; k < s.hidden; k++) {
            h[k] = h0 ? h0[n * s.hidden + k] : 0;
            c[k] = c0 ? c0[n * s.hidden + k] : 0;
        }
        int64_t length = length_of(lengths, n, s.time);
        for (int64_t t = 0; t < s.time; t++) {
            int64_t at = n * s.time + t;
            real *row = y + at * s.hidden;
            if (t >= length) {
                memset(row, 0, state_bytes);
                continue;
            }
            real *z = gates ? gates + at * s.gates : reals(call, 11) + n * s.gates;
            for (int64_t k = 0; k < s.gates; k++)
                z[k] = bx[k] + bh[k];
            add_product(z, x + at * s.in, wx, s.in, s.gates);
            add_product(z, h, wh, s.hidden, s.gates);
            step(z, h, c, s.hidden);
            memcpy(row, h, state_bytes);
            if (cells)
                memcpy(cells + at * s.hidden, c, state_bytes);
        }
    }
}

/* What flows back through one step: dh and dc of the state after it become those of the state
 * before it, and dz of the gate sums. `c` and `before` are the cells after and before the step. */
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
    }
}

/* dw += vᵀ·dz for one sample and step */
static void add_outer(real *dw, const real *v, const real *dz, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            dw[r * columns + k] += v[r] * dz[k];
}

/* v[r] = Σ_k dz[k]·w[r,k] */
static void product_t(real *v, const real *dz, const real *w, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        real sum = 0;
        for (int64_t k = 0; k < columns; k++)
            sum += dz[k] * w[r * columns + k];
        v[r] = sum;
    }
}

/* Operands, as ops.def numbers them. */
enum { X, WX, WH, Y, GATES, CELLS, H0, C0, LENGTHS, DY, DHN, DCN };
enum { DX = 12, DWX, DWH, DBX, DBH, DH0, DC0, DGATES };

/* One sample, from its last step to its first. dh and dc hold the state's gradient; they are the
 * caller's, [hidden] each. */
static void sample_back(const struct call *call, const struct sizes *s, int64_t n, real *dh,
                        real *dc)
{
    const real *x = reals(call, X), *y = reals(call, Y), *dy = reals(call, DY);
    const real *h0 = reals(call, H0), *c0 = reals(call, C0);
    real *dx = reals(call, DX), *dgates = reals(call, DGATES);
    int64_t length = length_of(integers(call, LENGTHS), n, s->time);
    for (int64_t t = s->time - 1; t >= 0; t--) {
        int64_t at = n * s->time + t;
        real *dz = dgates + at * s->gates;
        if (t >= length) {
            memset(dz, 0, (size_t)s->gates * sizeof(real));
            if (dx)
                memset(dx + at * s->in, 0, (size_t)s->in * sizeof(real));
            continue;
        }
        for (int64_t k = 0; dy && k < s->hidden; k++)
            dh[k] += dy[at * s->hidden + k];
        const real *c = reals(call, CELLS) + at * s->hidden;
        const real *c_before = t ? c - s->hidden : c0 ? c0 + n * s->hidden : NULL;
        const real *h_before = t ? y + (at - 1) * s->hidden : h0 ? h0 + n * s->hidden : NULL;
        step_back(reals(call, GATES) + at * s->gates, c, c_before, dh, dc, dz, s->hidden);
        add_outer(reals(call, DWX), x + at * s->in, dz, s->in, s->gates);
        if (h_before)
            add_outer(reals(call, DWH), h_before, dz, s->hidden, s->gates);
        for (int64_t k = 0; k < s->gates; k++) {
            reals(call, DBX)[k] += dz[k];
            reals(call, DBH)[k] += dz[k];
        }
        product_t(dh, dz, reals(call, WH), s->hidden, s->gates);
        if (dx)
            product_t(dx + at * s->in, dz, reals(call, WX), s->in, s->gates);
    }
}

KERNEL(lstm_grad)
{
    struct sizes s = sizes_of(call);
    static const int grads[] = {DWX, DWH, DBX, DBH};
    for (size_t g = 0; g < sizeof grads / sizeof *grads; g++)
        if (!call->op->attr.lstm_grad.accumulate)
            memset(call->data[grads[g]], 0, (size_t)call->tensors[grads[g]]->bytes);
    const real *dhn = reals(call, DHN), *dcn = reals(call, DCN);
    for (int64_t n = 0; n < s.batch; n++) {
        /* dh0 and dc0 are where the state's gradient ends up, so it is carried there. */
        real *dh = reals(call, DH0) + n * s.hidden, *dc = reals(call, DC0) + n * s.hidden;
        for (int64_t k = 0; k < s.hidden; k++) {
            dh[k] = dhn ? dhn[n * s.hidden + k] : 0;
            dc[k] = dcn ? dcn[n * s.hidden + k] : 0;
        }
        sample_back(call, &s, n, dh, dc);
    }
}
