/* ref_recurrent.h: what layers over time share: the sample's length, products with the weights, and
 * the way back from a step's sums to all that made them. Samples are independent, so each is done
 * alone, time inside. */
#ifndef PRONY_BACKEND_CPU_REF_REF_RECURRENT_H
#define PRONY_BACKEND_CPU_REF_REF_RECURRENT_H

#include "backend/cpu/real.h"

#include <string.h>

/* x [batch, time, in], wx [in, gates], wh [hidden, gates]: operands 0, 1, 2 of all these ops. */
struct sizes {
    int64_t batch, time, in, hidden, gates;
};

static inline struct sizes sizes_of(const struct call *call)
{
    return (struct sizes){
        .batch = dim(call, AT_rnn_x, 0),
        .time = dim(call, AT_rnn_x, 1),
        .in = dim(call, AT_rnn_x, 2),
        .hidden = dim(call, AT_rnn_wh, 0),
        .gates = dim(call, AT_rnn_wh, 1),
    };
}

static inline int64_t length_of(const int32_t *lengths, int64_t n, int64_t time)
{
    return !lengths || lengths[n] > time ? time : lengths[n];
}

/* to [hidden] = row n of from [batch, hidden], or 0 where there is none */
static inline void state_begin(real *to, const real *from, int64_t n, int64_t hidden)
{
    for (int64_t k = 0; k < hidden; k++)
        to[k] = from ? from[n * hidden + k] : 0;
}

/* The state before step t: the output of the step before, or h0, or NULL: zeros. */
static inline const real *state_before(const real *y, const real *h0, int64_t n, int64_t t,
                                       const struct sizes *s)
{
    if (t)
        return y + (n * s->time + t - 1) * s->hidden;
    return h0 ? h0 + n * s->hidden : NULL;
}

/* z += v·w for `count` columns of w [rows, columns], from column `first` on */
static inline void add_product(real *z, const real *v, const real *w, int64_t rows, int64_t columns,
                               int64_t first, int64_t count)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++)
            z[k] += v[r] * w[r * columns + first + k];
}

/* dw += vᵀ·dz for one sample and step */
static inline void add_outer(real *dw, const real *v, const real *dz, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            dw[r * columns + k] += v[r] * dz[k];
}

/* v[r] += Σ_k dz[k]·w[r,k] */
static inline void add_product_t(real *v, const real *dz, const real *w, int64_t rows,
                                 int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        real sum = 0;
        for (int64_t k = 0; k < columns; k++)
            sum += dz[k] * w[r * columns + k];
        v[r] += sum;
    }
}

/* What made the sums of a step, x·wx + bx and h·wh + bh, and where their gradients go. */
struct sources {
    const real *x, *wx, *wh;
    real *dx, *dwx, *dwh, *dbx, *dbh; /* dx may be NULL */
};

/* The outputs of these ops begin dx, dwx, dwh, dbx, dbh. Those of the weights start at 0 unless
 * they add to what is there. */
static inline struct sources sources_of(const struct call *call, bool accumulate)
{
    const int out = call->op->inputs;
    for (int i = out + 1; !accumulate && i < out + 5; i++)
        memset(call->data[i], 0, (size_t)call->tensors[i]->bytes);
    return (struct sources){
        .x = reals(call, AT_rnn_grad_x),
        .wx = reals(call, AT_rnn_grad_wx),
        .wh = reals(call, AT_rnn_grad_wh),
        .dx = reals(call, out),
        .dwx = reals(call, out + 1),
        .dwh = reals(call, out + 2),
        .dbx = reals(call, out + 3),
        .dbh = reals(call, out + 4),
    };
}

/* Back through the sums of step `at`: dzx and dzh are their gradients, one and the same where the
 * sums are only ever added up. dh gets what flows to the state before the step, h. */
static inline void sums_back(const struct sources *to, const struct sizes *s, int64_t at,
                             const real *h, const real *dzx, const real *dzh, real *dh)
{
    add_outer(to->dwx, to->x + at * s->in, dzx, s->in, s->gates);
    if (h)
        add_outer(to->dwh, h, dzh, s->hidden, s->gates);
    for (int64_t k = 0; k < s->gates; k++) {
        to->dbx[k] += dzx[k];
        to->dbh[k] += dzh[k];
    }
    add_product_t(dh, dzh, to->wh, s->hidden, s->gates);
    if (!to->dx)
        return;
    memset(to->dx + at * s->in, 0, (size_t)s->in * sizeof(real));
    add_product_t(to->dx + at * s->in, dzx, to->wx, s->in, s->gates);
}

/* A step beyond the sample's length: nothing flows through it. */
static inline void step_unused(const struct sources *to, const struct sizes *s, int64_t at,
                               real *dz)
{
    memset(dz + at * s->gates, 0, (size_t)s->gates * sizeof(real));
    if (to->dx)
        memset(to->dx + at * s->in, 0, (size_t)s->in * sizeof(real));
}

/* dh += the gradient of this step's output, where there is one */
static inline void add_output_grad(real *dh, const real *dy, int64_t at, int64_t hidden)
{
    for (int64_t k = 0; dy && k < hidden; k++)
        dh[k] += dy[at * hidden + k];
}

#endif
