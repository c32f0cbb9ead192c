/* ref_pool.c: pooling of images. Every plane (a channel of a sample) is pooled by itself; the
 * window of the place (p, q) begins at (p·stride - pad, q·stride - pad) and what of it lies outside
 * the image counts for nothing. */
#include "backend/cpu/real.h"

struct pooling {
    int64_t planes;
    int64_t height, width; /* of the image */
    int64_t rows, columns; /* of what it is pooled to */
    int64_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
};

/* The attributes of the pooling ops begin alike. */
static struct pooling pooling_of(const struct call *call, int image, int pooled)
{
    const union attributes *attr = &call->op->attr;
    return (struct pooling){
        .planes = dim(call, image, 0) * dim(call, image, 1),
        .height = dim(call, image, 2),
        .width = dim(call, image, 3),
        .rows = dim(call, pooled, 2),
        .columns = dim(call, pooled, 3),
        .window_h = attr->max_pool.window_h,
        .window_w = attr->max_pool.window_w,
        .stride_h = attr->max_pool.stride_h,
        .stride_w = attr->max_pool.stride_w,
        .pad_h = attr->max_pool.pad_h,
        .pad_w = attr->max_pool.pad_w,
    };
}

/* The part of a window that lies in the image: rows and columns from … to, the last not included.
 * Of the window, `padded` elements lie in the image or its pad, which is as wide behind it as
 * before.
 */
struct patch {
    int64_t top, bottom, left, right;
    int64_t padded;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct patch patch_at(const struct pooling *pooling, int64_t p, int64_t q)
{
    int64_t top = p * pooling->stride_h - pooling->pad_h;
    int64_t left = q * pooling->stride_w - pooling->pad_w;
    int64_t bottom = top + pooling->window_h, right = left + pooling->window_w;
    return (struct patch){
        .top = top < 0 ? 0 : top,
        .bottom = smaller(bottom, pooling->height),
        .left = left < 0 ? 0 : left,
        .right = smaller(right, pooling->width),
        .padded = (smaller(bottom, pooling->height + pooling->pad_h) - top) *
                  (smaller(right, pooling->width + pooling->pad_w) - left),
    };
}

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
