/* ref_pool.c: pooling of images. Every plane (a channel of a sample) is pooled by itself; the
 * window of the place (p, q) begins at (p·stride - pad, q·stride - pad) and what of it lies outside
 * the image counts for nothing. */
#include "backend/cpu/ref/ref_window.h"

/* Where the largest element of the patch is: the first of several; a NaN is larger than anything.
 */
static int64_t largest(const struct pooling *pooling, const real *plane, struct patch patch)
{
    int64_t best = patch.top * pooling->width + patch.left;
    for (int64_t row = patch.top; row < patch.bottom; row++)
        for (int64_t column = patch.left; column < patch.right; column++) {
            int64_t place = row * pooling->width + column;
            if (plane[place] > plane[best] || isnan(plane[place]))
                best = place;
        }
    return best;
}

KERNEL(max_pool)
{
    const real *x = reals(call, AT_max_pool_x);
    real *y = reals(call, AT_max_pool_y);
    int32_t *places = call->data[AT_max_pool_places];
    struct pooling pooling = pooling_of(call, 0, 1);
    for (int64_t plane = 0; plane < pooling.planes; plane++, x += pooling.height * pooling.width)
        for (int64_t p = 0; p < pooling.rows; p++)
            for (int64_t q = 0; q < pooling.columns; q++) {
                int64_t place = largest(&pooling, x, patch_at(&pooling, p, q));
                *y++ = x[place];
                if (places)
                    *places++ = (int32_t)place;
            }
}

/* y is 0 but where x is put; what is put at one place adds up. */
KERNEL(max_unpool)
{
    const real *x = reals(call, AT_max_unpool_x);
    const int32_t *places = integers(call, AT_max_unpool_places);
    real *y = reals(call, AT_max_unpool_y);
    struct pooling pooling = pooling_of(call, 2, 0);
    int64_t image = pooling.height * pooling.width, pooled = pooling.rows * pooling.columns;
    for (int64_t i = 0; i < pooling.planes * image; i++)
        y[i] = 0;
    for (int64_t plane = 0; plane < pooling.planes; plane++)
        for (int64_t i = 0; i < pooled; i++)
            y[plane * image + places[plane * pooled + i]] += x[plane * pooled + i];
}

KERNEL(max_unpool_grad)
{
    const real *dy = reals(call, AT_max_unpool_grad_dy);
    const int32_t *places = integers(call, AT_max_unpool_grad_places);
    real *dx = reals(call, AT_max_unpool_grad_dx);
    struct pooling pooling = pooling_of(call, 0, 2);
    int64_t image = pooling.height * pooling.width, pooled = pooling.rows * pooling.columns;
    for (int64_t plane = 0; plane < pooling.planes; plane++)
        for (int64_t i = 0; i < pooled; i++)
            dx[plane * pooled + i] = dy[plane * image + places[plane * pooled + i]];
}

/* What the sum over a patch is divided by. */
static real divisor(struct patch patch, bool include_pad)
{
    return include_pad ? (real)patch.padded
                       : (real)((patch.bottom - patch.top) * (patch.right - patch.left));
}

KERNEL(average_pool)
{
    const real *x = reals(call, AT_average_pool_x);
    real *y = reals(call, AT_average_pool_y);
    struct pooling pooling = pooling_of(call, 0, 1);
    for (int64_t plane = 0; plane < pooling.planes; plane++, x += pooling.height * pooling.width)
        for (int64_t p = 0; p < pooling.rows; p++)
            for (int64_t q = 0; q < pooling.columns; q++) {
                struct patch patch = patch_at(&pooling, p, q);
                real sum = 0;
                for (int64_t row = patch.top; row < patch.bottom; row++)
                    for (int64_t column = patch.left; column < patch.right; column++)
                        sum += x[row * pooling.width + column];
                *y++ = sum / divisor(patch, call->op->attr.average_pool.include_pad);
            }
}

KERNEL(average_pool_grad)
{
    const real *dy = reals(call, AT_average_pool_grad_dy);
    real *dx = reals(call, AT_average_pool_grad_dx);
    struct pooling pooling = pooling_of(call, 1, 0);
    bool include_pad = call->op->attr.average_pool_grad.include_pad;
    for (int64_t i = 0; i < count(call, AT_average_pool_grad_dx); i++)
        dx[i] = 0;
    for (int64_t plane = 0; plane < pooling.planes; plane++, dx += pooling.height * pooling.width)
        for (int64_t p = 0; p < pooling.rows; p++)
            for (int64_t q = 0; q < pooling.columns; q++) {
                struct patch patch = patch_at(&pooling, p, q);
                real share = *dy++ / divisor(patch, include_pad);
                for (int64_t row = patch.top; row < patch.bottom; row++)
                    for (int64_t column = patch.left; column < patch.right; column++)
                        dx[row * pooling.width + column] += share;
            }
}
