/* ref_norm.c: normalising channels: batch-norm over all but the channel, lrn over its neighbours. x
 * is [n, channels, inner…]. */
#include "backend/cpu/real.h"

struct extent {
    int64_t batch, channels, inner;
};

static struct extent extent_of(const struct call *call)
{
    struct extent e = {.batch = dim(call, AT_batch_norm_x, 0),
                       .channels = dim(call, AT_batch_norm_x, 1)};
    e.inner = count(call, AT_batch_norm_x) / (e.batch * e.channels);
    return e;
}

/* Where the inner elements of sample n, channel c begin. */
static int64_t at(struct extent e, int64_t n, int64_t c)
{
    return (n * e.channels + c) * e.inner;
}

static real channel_mean(const real *x, struct extent e, int64_t c)
{
    real sum = 0;
    for (int64_t n = 0; n < e.batch; n++)
        for (int64_t i = 0; i < e.inner; i++)
            sum += x[at(e, n, c) + i];
    return sum / (real)(e.batch * e.inner);
}

/* Around its mean, divided by the count: the biased variance. */
static real channel_variance(const real *x, struct extent e, int64_t c, real mean)
{
    real sum = 0;
    for (int64_t n = 0; n < e.batch; n++)
        for (int64_t i = 0; i < e.inner; i++) {
            real d = x[at(e, n, c) + i] - mean;
            sum += d * d;
        }
    return sum / (real)(e.batch * e.inner);
}

static void normalise(const real *x, real *y, struct extent e, int64_t c, real mean, real scale,
                      real shift)
{
    for (int64_t n = 0; n < e.batch; n++)
        for (int64_t i = 0; i < e.inner; i++)
            y[at(e, n, c) + i] = (x[at(e, n, c) + i] - mean) * scale + shift;
}

/* The running variance takes the unbiased one, as PyTorch does. */
KERNEL(batch_norm)
{
    const real *x = reals(call, AT_batch_norm_x), *gamma = reals(call, AT_batch_norm_gamma),
               *beta = reals(call, AT_batch_norm_beta);
    real *y = reals(call, AT_batch_norm_y), *saved_mean = reals(call, AT_batch_norm_saved_mean),
         *saved_scale = reals(call, AT_batch_norm_saved_scale);
    real *running_mean = reals(call, AT_batch_norm_mean_out),
         *running_variance = reals(call, AT_batch_norm_variance_out);
    real epsilon = (real)call->op->attr.batch_norm.epsilon;
    real momentum = (real)call->op->attr.batch_norm.momentum;
    struct extent e = extent_of(call);
    real size = (real)(e.batch * e.inner);
    for (int64_t c = 0; c < e.channels; c++) {
        real mean = channel_mean(x, e, c), variance = channel_variance(x, e, c, mean);
        real scale = 1 / real_sqrt(variance + epsilon);
        saved_mean[c] = mean;
        saved_scale[c] = scale;
        real unbiased = size > 1 ? variance * size / (size - 1) : variance;
        running_mean[c] += momentum * (mean - running_mean[c]);
        running_variance[c] += momentum * (unbiased - running_variance[c]);
        normalise(x, y, e, c, mean, gamma[c] * scale, beta[c]);
    }
}

/* The same in steps, between which ranks add up what they have of each channel. No other kernels do
 * this, so that these add up in double. */
KERNEL(channel_mean)
{
    const real *x = reals(call, AT_channel_mean_x);
    struct extent e = extent_of(call);
    for (int64_t c = 0; c < e.channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++)
                sum += (double)x[i];
        reals(call, AT_channel_mean_batch_mean)[c] = (real)(sum / (double)(e.batch * e.inner));
    }
}

KERNEL(channel_variance)
{
    const real *x = reals(call, AT_channel_variance_x);
    struct extent e = extent_of(call);
    for (int64_t c = 0; c < e.channels; c++) {
        const double mean = (double)reals(call, AT_channel_variance_batch_mean)[c];
        double sum = 0;
        for (int64_t n = 0; n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++)
                sum += ((double)x[i] - mean) * ((double)x[i] - mean);
        reals(call, AT_channel_variance_batch_variance)[c] =
            (real)(sum / (double)(e.batch * e.inner));
    }
}

KERNEL(batch_norm_given)
{
    const real *gamma = reals(call, AT_batch_norm_given_gamma),
               *beta = reals(call, AT_batch_norm_given_beta),
               *mean = reals(call, AT_batch_norm_given_batch_mean),
               *variance = reals(call, AT_batch_norm_given_batch_variance);
    real *running_mean = reals(call, AT_batch_norm_given_mean_out),
         *running_variance = reals(call, AT_batch_norm_given_variance_out);
    const real epsilon = (real)call->op->attr.batch_norm_given.epsilon,
               momentum = (real)call->op->attr.batch_norm_given.momentum;
    const int32_t of = call->op->attr.batch_norm_given.of;
    struct extent e = extent_of(call);
    const real size = (real)((of ? of : e.batch) * e.inner);
    for (int64_t c = 0; c < e.channels; c++) {
        real scale = 1 / real_sqrt(variance[c] + epsilon);
        real unbiased = size > 1 ? variance[c] * size / (size - 1) : variance[c];
        reals(call, AT_batch_norm_given_saved_scale)[c] = scale;
        running_mean[c] += momentum * (mean[c] - running_mean[c]);
        running_variance[c] += momentum * (unbiased - running_variance[c]);
        normalise(reals(call, AT_batch_norm_given_x), reals(call, AT_batch_norm_given_y), e, c,
                  mean[c], gamma[c] * scale, beta[c]);
    }
}

KERNEL(batch_norm_sums)
{
    const real *x = reals(call, AT_batch_norm_sums_x), *dy = reals(call, AT_batch_norm_sums_dy),
               *mean = reals(call, AT_batch_norm_sums_saved_mean),
               *scale = reals(call, AT_batch_norm_sums_saved_scale);
    struct extent e = extent_of(call);
    for (int64_t c = 0; c < e.channels; c++) {
        double sum = 0, sum_z = 0;
        for (int64_t n = 0; n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++) {
                sum += (double)dy[i];
                sum_z += (double)dy[i] * (((double)x[i] - (double)mean[c]) * (double)scale[c]);
            }
        reals(call, AT_batch_norm_sums_dgamma)[c] = (real)sum_z;
        reals(call, AT_batch_norm_sums_dbeta)[c] = (real)sum;
    }
}

KERNEL(batch_norm_given_grad)
{
    const real *x = reals(call, AT_batch_norm_given_grad_x),
               *dy = reals(call, AT_batch_norm_given_grad_dy),
               *mean = reals(call, AT_batch_norm_given_grad_saved_mean),
               *scale = reals(call, AT_batch_norm_given_grad_saved_scale);
    const int32_t samples = call->op->attr.batch_norm_given_grad.samples;
    struct extent e = extent_of(call);
    const real size = (real)((samples ? samples : e.batch) * e.inner);
    for (int64_t c = 0; c < e.channels; c++) {
        const real factor = reals(call, AT_batch_norm_given_grad_gamma)[c] * scale[c],
                   sum = reals(call, AT_batch_norm_given_grad_dbeta)[c] / size,
                   sum_z = reals(call, AT_batch_norm_given_grad_dgamma)[c] / size;
        for (int64_t n = 0; n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++)
                reals(call, AT_batch_norm_given_grad_dx)[i] =
                    factor * (dy[i] - sum - (x[i] - mean[c]) * scale[c] * sum_z);
    }
}

KERNEL(batch_norm_fixed)
{
    const real *x = reals(call, AT_batch_norm_fixed_x),
               *gamma = reals(call, AT_batch_norm_fixed_gamma),
               *beta = reals(call, AT_batch_norm_fixed_beta);
    const real *mean = reals(call, AT_batch_norm_fixed_mean),
               *variance = reals(call, AT_batch_norm_fixed_variance);
    real *y = reals(call, AT_batch_norm_fixed_y),
         epsilon = (real)call->op->attr.batch_norm_fixed.epsilon;
    struct extent e = extent_of(call);
    for (int64_t c = 0; c < e.channels; c++)
        normalise(x, y, e, c, mean[c], gamma[c] / real_sqrt(variance[c] + epsilon), beta[c]);
}

/* With z = (x - mean)·scale: dgamma = Σ dy·z, dbeta = Σ dy,
 * dx = gamma·scale · (dy - dbeta/m - z·dgamma/m) over the m elements of the channel. */
KERNEL(batch_norm_grad)
{
    const real *x = reals(call, AT_batch_norm_grad_x),
               *gamma = reals(call, AT_batch_norm_grad_gamma),
               *mean = reals(call, AT_batch_norm_grad_saved_mean);
    const real *scale = reals(call, AT_batch_norm_grad_saved_scale),
               *dy = reals(call, AT_batch_norm_grad_dy);
    real *dx = reals(call, AT_batch_norm_grad_dx), *dgamma = reals(call, AT_batch_norm_grad_dgamma),
         *dbeta = reals(call, AT_batch_norm_grad_dbeta);
    bool accumulate = call->op->attr.batch_norm_grad.accumulate;
    struct extent e = extent_of(call);
    real size = (real)(e.batch * e.inner);
    for (int64_t c = 0; c < e.channels; c++) {
        real sum = 0, sum_z = 0;
        for (int64_t n = 0; n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++) {
                sum += dy[i];
                sum_z += dy[i] * ((x[i] - mean[c]) * scale[c]);
            }
        for (int64_t n = 0; dx && n < e.batch; n++)
            for (int64_t i = at(e, n, c); i < at(e, n, c) + e.inner; i++) {
                real z = (x[i] - mean[c]) * scale[c];
                dx[i] = gamma[c] * scale[c] * (dy[i] - sum / size - z * (sum_z / size));
            }
        dgamma[c] = accumulate ? dgamma[c] + sum_z : sum_z;
        dbeta[c] = accumulate ? dbeta[c] + sum : sum;
    }
}

/* The channels that an lrn of this size takes into account at channel c, the last not included. */
struct reach {
    int64_t from, to;
};

static struct reach reach_of(struct extent e, int64_t c, int64_t before, int64_t after)
{
    return (struct reach){
        .from = c < before ? 0 : c - before,
        .to = c + after + 1 > e.channels ? e.channels : c + after + 1,
    };
}

/* y = x·base^-beta with base = k + alpha/size · Σ x² over the channels around it */
KERNEL(lrn)
{
    const real *x = reals(call, AT_lrn_x);
    real *y = reals(call, AT_lrn_y), *base = reals(call, AT_lrn_base);
    int64_t size = call->op->attr.lrn.size;
    real alpha = (real)call->op->attr.lrn.alpha, beta = (real)call->op->attr.lrn.beta;
    real k = (real)call->op->attr.lrn.k;
    struct extent e = extent_of(call);
    for (int64_t n = 0; n < e.batch; n++)
        for (int64_t c = 0; c < e.channels; c++)
            for (int64_t i = 0; i < e.inner; i++) {
                struct reach reach = reach_of(e, c, size / 2, (size - 1) / 2);
                real sum = 0;
                for (int64_t j = reach.from; j < reach.to; j++)
                    sum += x[at(e, n, j) + i] * x[at(e, n, j) + i];
                real b = k + alpha / (real)size * sum;
                y[at(e, n, c) + i] = x[at(e, n, c) + i] * real_pow(b, -beta);
                if (base)
                    base[at(e, n, c) + i] = b;
            }
}

/* dx = dy·base^-beta - 2·alpha·beta/size · x · Σ dy·x·base^(-beta-1) over the channels that took
 * this one into account */
KERNEL(lrn_grad)
{
    const real *x = reals(call, AT_lrn_grad_x), *base = reals(call, AT_lrn_grad_base),
               *dy = reals(call, AT_lrn_grad_dy);
    real *dx = reals(call, AT_lrn_grad_dx);
    int64_t size = call->op->attr.lrn_grad.size;
    real alpha = (real)call->op->attr.lrn_grad.alpha, beta = (real)call->op->attr.lrn_grad.beta;
    struct extent e = extent_of(call);
    for (int64_t n = 0; n < e.batch; n++)
        for (int64_t c = 0; c < e.channels; c++)
            for (int64_t i = 0; i < e.inner; i++) {
                struct reach reach = reach_of(e, c, (size - 1) / 2, size / 2);
                real sum = 0;
                for (int64_t j = reach.from; j < reach.to; j++) {
                    int64_t m = at(e, n, j) + i;
                    sum += dy[m] * x[m] * real_pow(base[m], -beta - 1);
                }
                int64_t here = at(e, n, c) + i;
                dx[here] = dy[here] * real_pow(base[here], -beta) -
                           2 * alpha * beta / (real)size * x[here] * sum;
            }
}
