/* ref_conv.c: convolution of images, one sum per result, in index order.
 *
 * All three ops are about one relation of an image x, weights w and a smaller image y: the pixel
 * (row, column) of x meets the weight (ky, kx) at the place (p, q) of y when
 *     row = p·stride + ky·dilation - pad,
 * and likewise for columns. Channels are in groups: output o of y sees the `inner` channels of its
 * group in x, and nothing else. */
#include "backend/cpu/ref/ref_window.h"

/* Σ over the window at (p, q): x is the first plane of the group, w the output's weights. */
static real window_sum(const struct conv *c, const real *x, const real *w, int64_t p, int64_t q)
{
    real sum = 0;
    for (int64_t i = 0; i < c->inner; i++)
        for (int64_t ky = 0; ky < c->kernel_h; ky++)
            for (int64_t kx = 0; kx < c->kernel_w; kx++) {
                int64_t row = p * c->stride_h + ky * c->dilation_h - c->pad_h;
                int64_t column = q * c->stride_w + kx * c->dilation_w - c->pad_w;
                if (row >= 0 && row < c->height && column >= 0 && column < c->width)
                    sum += x[(i * c->height + row) * c->width + column] *
                           w[(i * c->kernel_h + ky) * c->kernel_w + kx];
            }
    return sum;
}

/* y[n,o,p,q] = Σ_{i,ky,kx} x[n,i,row,column]·w[o,i,ky,kx] + b[o] */
KERNEL(conv)
{
    const real *x = reals(call, AT_conv_x), *w = reals(call, AT_conv_w),
               *b = reals(call, AT_conv_b);
    real *y = reals(call, AT_conv_y);
    struct conv c = conv_of(call, 0, 1, 3);
    for (int64_t n = 0; n < c.batch; n++)
        for (int64_t o = 0; o < c.out; o++) {
            const real *planes = x + (n * c.in + o / c.group * c.inner) * c.height * c.width;
            const real *weights = w + o * c.inner * c.kernel_h * c.kernel_w;
            for (int64_t p = 0; p < c.rows; p++)
                for (int64_t q = 0; q < c.columns; q++) {
                    real sum = window_sum(&c, planes, weights, p, q);
                    *y++ = b ? sum + b[o] : sum;
                }
        }
}

/* One result of conv_fused from its sum; o is its output. */
static real finish(const struct call *call, real sum, int64_t o, int64_t place)
{
    const real *b = reals(call, AT_conv_fused_b), *gamma = reals(call, AT_conv_fused_gamma),
               *beta = reals(call, AT_conv_fused_beta);
    const real *mean = reals(call, AT_conv_fused_mean),
               *variance = reals(call, AT_conv_fused_variance),
               *add = reals(call, AT_conv_fused_add);
    sum = b ? sum + b[o] : sum;
    if (gamma) {
        real epsilon = (real)call->op->attr.conv_fused.epsilon;
        sum = (sum - mean[o]) * (gamma[o] / real_sqrt(variance[o] + epsilon)) + beta[o];
    }
    real y = activate(call->op->attr.conv_fused.activation, add ? sum + add[place] : sum);
    real low = (real)call->op->attr.conv_fused.low, high = (real)call->op->attr.conv_fused.high;
    return low < high ? bounded(y, low, high) : y;
}

/* y = f(batch_norm_fixed(conv(x, w, b)) + add), bounded */
KERNEL(conv_fused)
{
    const real *x = reals(call, AT_conv_fused_x), *w = reals(call, AT_conv_fused_w);
    real *y = reals(call, AT_conv_fused_y);
    struct conv c = conv_of(call, 0, 1, 8);
    for (int64_t i = 0; i < count(call, AT_conv_fused_y); i++) {
        int64_t q = i % c.columns, p = i / c.columns % c.rows, o = i / (c.columns * c.rows) % c.out;
        int64_t n = i / (c.columns * c.rows * c.out);
        const real *planes = x + (n * c.in + o / c.group * c.inner) * c.height * c.width;
        const real *weights = w + o * c.inner * c.kernel_h * c.kernel_w;
        y[i] = finish(call, window_sum(&c, planes, weights, p, q), o, i);
    }
}

/* Σ over the places of y (one sample) whose windows contain the pixel of this channel. */
static real covering_sum(const struct conv *c, const real *y, const real *w, int64_t channel,
                         int64_t row, int64_t column)
{
    real sum = 0;
    int64_t first = channel / c->inner * c->group, i = channel % c->inner;
    for (int64_t o = first; o < first + c->group; o++)
        for (int64_t ky = 0; ky < c->kernel_h; ky++)
            for (int64_t kx = 0; kx < c->kernel_w; kx++) {
                int64_t down = row + c->pad_h - ky * c->dilation_h;
                int64_t right = column + c->pad_w - kx * c->dilation_w;
                if (down < 0 || right < 0 || down % c->stride_h || right % c->stride_w)
                    continue;
                int64_t p = down / c->stride_h, q = right / c->stride_w;
                if (p < c->rows && q < c->columns)
                    sum += y[(o * c->rows + p) * c->columns + q] *
                           w[((o * c->inner + i) * c->kernel_h + ky) * c->kernel_w + kx];
            }
    return sum;
}

/* x[n,i,row,column] = Σ_{o,ky,kx} y[n,o,p,q]·w[o,i,ky,kx] + b[i]: here y is read, x written. */
KERNEL(conv_t)
{
    const real *y = reals(call, AT_conv_t_x), *w = reals(call, AT_conv_t_w),
               *b = reals(call, AT_conv_t_b);
    real *x = reals(call, AT_conv_t_y);
    struct conv c = conv_of(call, 3, 1, 0);
    for (int64_t n = 0; n < c.batch; n++)
        for (int64_t channel = 0; channel < c.in; channel++)
            for (int64_t row = 0; row < c.height; row++)
                for (int64_t column = 0; column < c.width; column++) {
                    const real *sample = y + n * c.out * c.rows * c.columns;
                    real sum = covering_sum(&c, sample, w, channel, row, column);
                    *x++ = b ? sum + b[channel] : sum;
                }
}

/* Σ over the batch and the places at which this weight meets x. */
static real weight_sum(const struct conv *c, const real *x, const real *dy, int64_t o,
                       int64_t channel, int64_t ky, int64_t kx)
{
    real sum = 0;
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t p = 0; p < c->rows; p++)
            for (int64_t q = 0; q < c->columns; q++) {
                int64_t row = p * c->stride_h + ky * c->dilation_h - c->pad_h;
                int64_t column = q * c->stride_w + kx * c->dilation_w - c->pad_w;
                if (row >= 0 && row < c->height && column >= 0 && column < c->width)
                    sum += x[((n * c->in + channel) * c->height + row) * c->width + column] *
                           dy[((n * c->out + o) * c->rows + p) * c->columns + q];
            }
    return sum;
}

/* dw[o,i,ky,kx] = Σ_{n,p,q} x[n,i,row,column]·dy[n,o,p,q] */
KERNEL(conv_dw)
{
    const real *x = reals(call, AT_conv_dw_x), *dy = reals(call, AT_conv_dw_dy);
    real *dw = reals(call, AT_conv_dw_dw);
    struct conv c = conv_of(call, 0, 2, 1);
    for (int64_t o = 0; o < c.out; o++)
        for (int64_t i = 0; i < c.inner; i++)
            for (int64_t ky = 0; ky < c.kernel_h; ky++)
                for (int64_t kx = 0; kx < c.kernel_w; kx++, dw++) {
                    int64_t channel = o / c.group * c.inner + i;
                    real sum = weight_sum(&c, x, dy, o, channel, ky, kx);
                    *dw = call->op->attr.conv_dw.accumulate ? *dw + sum : sum;
                }
}

/* y[c] = Σ_{n,*} x[n,c,*] */
KERNEL(sum_channels)
{
    const real *x = reals(call, AT_sum_channels_x);
    real *y = reals(call, AT_sum_channels_y);
    int64_t batch = dim(call, AT_sum_channels_x, 0), channels = dim(call, AT_sum_channels_x, 1);
    int64_t inner = count(call, AT_sum_channels_x) / (batch * channels);
    for (int64_t c = 0; c < channels; c++) {
        real sum = 0;
        for (int64_t n = 0; n < batch; n++)
            for (int64_t i = 0; i < inner; i++)
                sum += x[(n * channels + c) * inner + i];
        y[c] = call->op->attr.sum_channels.accumulate ? y[c] + sum : sum;
    }
}
