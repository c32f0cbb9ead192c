/* ref_dense.c: the GEMM family. Every output is a sum in index order. */
#include "backend/cpu/dense_update.h"
#include "backend/cpu/real.h"

/* y[n,o] = f(Σ_i x[n,i]·w[i,o] + b[o]) */
KERNEL(dense)
{
    const real *x = reals(call, AT_dense_x), *w = reals(call, AT_dense_w),
               *b = reals(call, AT_dense_b);
    real *y = reals(call, AT_dense_y);
    int64_t batch = dim(call, AT_dense_x, 0), in = dim(call, AT_dense_w, 0),
            out = dim(call, AT_dense_w, 1);
    for (int64_t n = 0; n < batch; n++) {
        real *row = y + n * out;
        for (int64_t o = 0; o < out; o++)
            row[o] = 0;
        for (int64_t i = 0; i < in; i++)
            for (int64_t o = 0; o < out; o++)
                row[o] += x[n * in + i] * w[i * out + o];
        for (int64_t o = 0; o < out; o++)
            row[o] = activate(call->op->attr.dense.activation, b ? row[o] + b[o] : row[o]);
    }
}

/* y[n,i] = f(Σ_o x[n,o]·w[i,o] + b[i]) */
KERNEL(dense_t)
{
    const real *x = reals(call, AT_dense_t_x), *w = reals(call, AT_dense_t_w),
               *b = reals(call, AT_dense_t_b);
    real *y = reals(call, AT_dense_t_y);
    int64_t batch = dim(call, AT_dense_t_x, 0), in = dim(call, AT_dense_t_w, 0),
            out = dim(call, AT_dense_t_w, 1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < in; i++) {
            real sum = 0;
            for (int64_t o = 0; o < out; o++)
                sum += x[n * out + o] * w[i * out + o];
            y[n * in + i] = activate(call->op->attr.dense_t.activation, b ? sum + b[i] : sum);
        }
}

/* dw[i,o] = scale · Σ_n x[n,i]·dy[n,o], added to what is there when accumulating */
KERNEL(outer)
{
    const real *x = reals(call, AT_outer_x), *dy = reals(call, AT_outer_dy);
    real *dw = reals(call, AT_outer_dw), scale = (real)call->op->attr.outer.scale;
    int64_t batch = dim(call, AT_outer_x, 0), in = dim(call, AT_outer_x, 1),
            out = dim(call, AT_outer_dy, 1);
    for (int64_t i = 0; i < in; i++)
        for (int64_t o = 0; o < out; o++) {
            real sum = 0;
            for (int64_t n = 0; n < batch; n++)
                sum += x[n * in + i] * dy[n * out + o];
            real *d = &dw[i * out + o];
            *d = call->op->attr.outer.accumulate ? *d + scale * sum : scale * sum;
        }
}

/* y[o] = scale · Σ_n x[n,o] */
KERNEL(sum_rows)
{
    const real *x = reals(call, AT_sum_rows_x);
    real *y = reals(call, AT_sum_rows_y), scale = (real)call->op->attr.sum_rows.scale;
    int64_t batch = dim(call, AT_sum_rows_x, 0), out = dim(call, AT_sum_rows_x, 1);
    for (int64_t o = 0; o < out; o++) {
        real sum = 0;
        for (int64_t n = 0; n < batch; n++)
            sum += x[n * out + o];
        y[o] = call->op->attr.sum_rows.accumulate ? y[o] + scale * sum : scale * sum;
    }
}

/* One input's part of dx, [n] with `stride`: Σ_o dy[n,o]·w[o] */
static void back_through(const real *w, int64_t out, const real *dy, int64_t batch, real *dx,
                         int64_t stride)
{
    for (int64_t n = 0; n < batch; n++) {
        real sum = 0;
        for (int64_t o = 0; o < out; o++)
            sum += dy[n * out + o] * w[o];
        dx[n * stride] = sum;
    }
}

/* One weight's gradient: Σ_n x[n,i]·dy[n,o], from its input and its output on. */
static real gradient_of(const real *x, int64_t in, const real *dy, int64_t out, int64_t batch)
{
    real sum = 0;
    for (int64_t n = 0; n < batch; n++)
        sum += x[n * in] * dy[n * out];
    return sum;
}

/* dx[n,i] = Σ_o dy[n,o]·w[i,o] with the old w; then w -= rate·xᵀ·dy and b -= rate·Σ_n dy. */
KERNEL(dense_sgd)
{
    const real *x = reals(call, AT_dense_sgd_x), *dy = reals(call, AT_dense_sgd_dy);
    real *w = reals(call, AT_dense_sgd_w), *b = reals(call, AT_dense_sgd_b),
         rate = *reals(call, AT_dense_sgd_rate), *dx = reals(call, AT_dense_sgd_dx);
    int64_t batch = dim(call, AT_dense_sgd_x, 0), in = dim(call, AT_dense_sgd_w, 0),
            out = dim(call, AT_dense_sgd_w, 1);
    for (int64_t i = 0; i < in; i++) {
        real *row = w + i * out;
        if (dx)
            back_through(row, out, dy, batch, dx + i, in);
        for (int64_t o = 0; o < out; o++)
            row[o] -= rate * gradient_of(x + i, in, dy + o, out, batch);
    }
    for (int64_t o = 0; b && o < out; o++) {
        real sum = 0;
        for (int64_t n = 0; n < batch; n++)
            sum += dy[n * out + o];
        b[o] -= rate * sum;
    }
}

/* The optimiser's own kernel, for some weights and their gradient. */
static void update_weights(const struct call *call)
{
    switch (call->op->kind) {
    case OP_sgd: CALL(sgd)(call); return;
    case OP_momentum: CALL(momentum)(call); return;
    case OP_adagrad: CALL(adagrad)(call); return;
    case OP_rmsprop: CALL(rmsprop)(call); return;
    case OP_adam: CALL(adam)(call); return;
    default: CALL(rprop)(call); return;
    }
}

/* dx[n,i] = Σ_o dy[n,o]·w[i,o] with the old w; then w by the optimiser, whose g is xᵀ·dy. */
KERNEL(dense_update)
{
    enum { AT_ONCE = 64 };
    const real *x = reals(call, AT_dense_update_x), *dy = reals(call, AT_dense_update_dy),
               *w = reals(call, AT_dense_update_w);
    real *dx = reals(call, AT_dense_update_dx), g[AT_ONCE];
    int64_t batch = dim(call, AT_dense_update_x, 0), in = dim(call, AT_dense_update_w, 0),
            out = dim(call, AT_dense_update_w, 1);
    struct dense_update update;
    dense_update_begin(&update, call);
    for (int64_t i = 0; i < in; i++) {
        if (dx)
            back_through(w + i * out, out, dy, batch, dx + i, in);
        for (int64_t from = 0; from < out; from += AT_ONCE) {
            int64_t count = out - from < AT_ONCE ? out - from : AT_ONCE;
            for (int64_t o = 0; o < count; o++)
                g[o] = gradient_of(x + i, in, dy + from + o, out, batch);
            update_weights(dense_update_at(&update, i * out + from, g, count));
        }
    }
}
