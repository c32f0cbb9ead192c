/* ref_int8_image.c: convolution and pooling of numbers of 8 bits (docs/quantisation.md). */
#include "backend/cpu/ref/ref_window.h"
#include "core/requantise.h"

/* Σ over the window at (p, q): what lies outside the image is `zero`. */
static int32_t window_sum(const struct conv *c, const uint8_t *x, const int8_t *w, int64_t p,
                          int64_t q, int32_t zero)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < c->inner; i++)
        for (int64_t ky = 0; ky < c->kernel_h; ky++)
            for (int64_t kx = 0; kx < c->kernel_w; kx++) {
                int64_t row = p * c->stride_h + ky * c->dilation_h - c->pad_h;
                int64_t column = q * c->stride_w + kx * c->dilation_w - c->pad_w;
                bool inside = row >= 0 && row < c->height && column >= 0 && column < c->width;
                int32_t pixel = inside ? x[(i * c->height + row) * c->width + column] : zero;
                sum += pixel * w[(i * c->kernel_h + ky) * c->kernel_w + kx];
            }
    return sum;
}

/* y[n,o,p,q] = f(b[o] + Σ_{i,ky,kx} x[n,i,row,column]·w[o,i,ky,kx]) */
KERNEL(conv_int8)
{
    const uint8_t *x = call->data[AT_conv_int8_x], *table = call->data[AT_conv_int8_table];
    const int8_t *w = call->data[AT_conv_int8_w];
    const int32_t *b = integers(call, AT_conv_int8_b),
                  *multiplier = integers(call, AT_conv_int8_multiplier),
                  *shift = integers(call, AT_conv_int8_shift);
    int32_t zero_x = call->op->attr.conv_int8.zero_x, zero = call->op->attr.conv_int8.zero,
            low = call->op->attr.conv_int8.low, high = call->op->attr.conv_int8.high;
    struct conv c = conv_of(call, AT_conv_int8_x, AT_conv_int8_w, AT_conv_int8_y);
    for (int64_t i = 0; i < count(call, AT_conv_int8_y); i++) {
        int64_t q = i % c.columns, p = i / c.columns % c.rows, o = i / (c.columns * c.rows) % c.out;
        int64_t n = i / (c.columns * c.rows * c.out);
        const uint8_t *planes = x + (n * c.in + o / c.group * c.inner) * c.height * c.width;
        const int8_t *weights = w + o * c.inner * c.kernel_h * c.kernel_w;
        int32_t sum = b[o] + window_sum(&c, planes, weights, p, q, zero_x);
        if (!multiplier) {
            ((int32_t *)call->data[AT_conv_int8_y])[i] = sum;
            continue;
        }
        uint8_t y = requantise(sum, multiplier[o], shift[o], zero, low, high);
        ((uint8_t *)call->data[AT_conv_int8_y])[i] = table ? table[y] : y;
    }
}

static uint8_t largest(const struct pooling *pooling, const uint8_t *plane, struct patch patch)
{
    uint8_t most = 0;
    for (int64_t row = patch.top; row < patch.bottom; row++)
        for (int64_t column = patch.left; column < patch.right; column++)
            if (plane[row * pooling->width + column] > most)
                most = plane[row * pooling->width + column];
    return most;
}

KERNEL(max_pool_int8)
{
    const uint8_t *x = call->data[AT_max_pool_int8_x];
    uint8_t *y = call->data[AT_max_pool_int8_y];
    struct pooling pooling = pooling_of(call, AT_max_pool_int8_x, AT_max_pool_int8_y);
    for (int64_t plane = 0; plane < pooling.planes; plane++, x += pooling.height * pooling.width)
        for (int64_t p = 0; p < pooling.rows; p++)
            for (int64_t q = 0; q < pooling.columns; q++)
                *y++ = largest(&pooling, x, patch_at(&pooling, p, q));
}

/* The mean of a patch, or with the pad as `zero` of the padded one, a half rounded up. */
static uint8_t mean(const struct pooling *pooling, const uint8_t *plane, struct patch patch,
                    bool include_pad, int32_t zero)
{
    int64_t sum = 0, inside = (patch.bottom - patch.top) * (patch.right - patch.left);
    int64_t elements = include_pad ? patch.padded : inside;
    for (int64_t row = patch.top; row < patch.bottom; row++)
        for (int64_t column = patch.left; column < patch.right; column++)
            sum += plane[row * pooling->width + column];
    sum += (elements - inside) * zero;
    return (uint8_t)((2 * sum + elements) / (2 * elements));
}

KERNEL(average_pool_int8)
{
    const uint8_t *x = call->data[AT_average_pool_int8_x];
    uint8_t *y = call->data[AT_average_pool_int8_y];
    bool include_pad = call->op->attr.average_pool_int8.include_pad;
    int32_t zero = call->op->attr.average_pool_int8.zero;
    struct pooling pooling = pooling_of(call, AT_average_pool_int8_x, AT_average_pool_int8_y);
    for (int64_t plane = 0; plane < pooling.planes; plane++, x += pooling.height * pooling.width)
        for (int64_t p = 0; p < pooling.rows; p++)
            for (int64_t q = 0; q < pooling.columns; q++)
                *y++ = mean(&pooling, x, patch_at(&pooling, p, q), include_pad, zero);
}
