/* ref_shape.c: elements moved, picked and added up. Along an axis of k places, a tensor is
 * [n, k, c]: n times, k places of c elements each. */
#include "backend/cpu/real.h"

#include <string.h>

static size_t bytes_of(int64_t elements)
{
    return (size_t)elements * sizeof(real);
}

KERNEL(multiply)
{
    const real *a = reals(call, 0), *b = reals(call, 1);
    real *y = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2); i < n; i++)
        y[i] = a[i] * b[i];
}

KERNEL(divide)
{
    const real *a = reals(call, 0), *b = reals(call, 1);
    real *y = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2); i < n; i++)
        y[i] = a[i] / b[i];
}

KERNEL(divide_grad)
{
    const real *b = reals(call, 0), *y = reals(call, 1), *dy = reals(call, 2);
    real *db = reals(call, 3);
    for (int64_t i = 0, n = count(call, 3); i < n; i++)
        db[i] = -dy[i] * (y[i] / b[i]);
}

KERNEL(mask)
{
    const real *x = reals(call, 0), *keep = reals(call, 1);
    real *y = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2), width = count(call, 1); i < n; i++)
        y[i] = keep[i % width] > 0 ? x[i] : 0;
}

/* y[n,…] = x[n,…] + b[…] */
KERNEL(add_rows)
{
    const real *x = reals(call, 0), *b = reals(call, 1);
    real *y = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2), width = count(call, 1); i < n; i++)
        y[i] = x[i] + b[i % width];
}

/* y[n,k,c] = x[n,c] */
KERNEL(expand)
{
    int64_t times = dim(call, 1, 1), width = dim(call, 0, 1);
    real *y = reals(call, 1);
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        for (int64_t k = 0; k < times; k++, y += width)
            memcpy(y, reals(call, 0) + n * width, bytes_of(width));
}

/* y[n,b,a,c] = x[n,a,b,c] */
KERNEL(transpose)
{
    const real *x = reals(call, 0);
    real *y = reals(call, 1);
    int64_t first = dim(call, 0, 1), second = dim(call, 0, 2), inner = dim(call, 0, 3);
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        for (int64_t a = 0; a < first; a++)
            for (int64_t b = 0; b < second; b++)
                memcpy(y + ((n * second + b) * first + a) * inner,
                       x + ((n * first + a) * second + b) * inner, bytes_of(inner));
}

KERNEL(concat)
{
    int parts = call->op->inputs;
    real *y = reals(call, parts);
    for (int64_t n = 0; n < dim(call, parts, 0); n++)
        for (int part = 0; part < parts; part++) {
            int64_t width = dim(call, part, 1) * dim(call, part, 2);
            memcpy(y, reals(call, part) + n * width, bytes_of(width));
            y += width;
        }
}

/* y[n,m,c] = x[n,from + m,c] */
KERNEL(slice)
{
    int64_t from = call->op->attr.slice.from * dim(call, 0, 2);
    int64_t width = dim(call, 0, 1) * dim(call, 0, 2), taken = dim(call, 1, 1) * dim(call, 1, 2);
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        memcpy(reals(call, 1) + n * taken, reals(call, 0) + n * width + from, bytes_of(taken));
}

KERNEL(slice_grad)
{
    int64_t from = call->op->attr.slice_grad.from * dim(call, 0, 2);
    int64_t width = dim(call, 1, 1) * dim(call, 1, 2), taken = dim(call, 0, 1) * dim(call, 0, 2);
    memset(call->data[1], 0, bytes_of(count(call, 1)));
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        memcpy(reals(call, 1) + n * width + from, reals(call, 0) + n * taken, bytes_of(taken));
}

/* y[n,m,…] = table[n,index[n,m],…] */
KERNEL(gather)
{
    const int32_t *index = integers(call, 1);
    real *y = reals(call, 2);
    int64_t rows = dim(call, 0, 1), width = dim(call, 0, 2), picks = dim(call, 1, 1);
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        for (int64_t m = 0; m < picks; m++, y += width) {
            int32_t row = index[n * picks + m];
            bool there = row >= 0 && row < rows;
            for (int64_t d = 0; d < width; d++)
                y[d] = there ? reals(call, 0)[(n * rows + row) * width + d] : (real)NAN;
        }
}

/* dtable[n,index[n,m],…] += dy[n,m,…], for m in order */
KERNEL(scatter)
{
    const int32_t *index = integers(call, 0);
    const real *dy = reals(call, 1);
    real *dtable = reals(call, 2);
    int64_t rows = dim(call, 2, 1), width = dim(call, 2, 2), picks = dim(call, 0, 1);
    if (!call->op->attr.scatter.accumulate)
        memset(dtable, 0, bytes_of(count(call, 2)));
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        for (int64_t m = 0; m < picks; m++, dy += width) {
            int32_t row = index[n * picks + m];
            bool there = row >= 0 && row < rows;
            for (int64_t d = 0; there && d < width; d++)
                dtable[(n * rows + row) * width + d] += dy[d];
        }
}

/* The place of the largest of `places` elements that are `step` apart; of equals the first. */
static int64_t largest(const real *x, int64_t places, int64_t step)
{
    int64_t best = 0;
    for (int64_t k = 1; k < places; k++)
        if (x[k * step] > x[best * step])
            best = k;
    return best;
}

KERNEL(reduce)
{
    int64_t places = dim(call, 0, 1), inner = dim(call, 0, 2);
    int32_t reduction = call->op->attr.reduce.reduction;
    for (int64_t n = 0; n < dim(call, 0, 0); n++)
        for (int64_t c = 0; c < inner; c++) {
            const real *x = reals(call, 0) + n * places * inner + c;
            real sum = 0;
            for (int64_t k = 0; k < places; k++)
                sum += x[k * inner];
            if (reduction == REDUCTION_MEAN)
                sum /= (real)places;
            if (reduction == REDUCTION_MAX)
                sum = x[largest(x, places, inner) * inner];
            reals(call, 1)[n * inner + c] = sum;
        }
}

KERNEL(reduce_grad)
{
    const real *x = reals(call, 0), *dy = reals(call, 1);
    real *dx = reals(call, 2);
    int64_t places = dim(call, 2, 1), inner = dim(call, 2, 2);
    int32_t reduction = call->op->attr.reduce_grad.reduction;
    real share = reduction == REDUCTION_MEAN ? 1 / (real)places : 1;
    for (int64_t n = 0; n < dim(call, 2, 0); n++)
        for (int64_t c = 0; c < inner; c++) {
            int64_t at = n * places * inner + c;
            int64_t best = reduction == REDUCTION_MAX ? largest(x + at, places, inner) : -1;
            for (int64_t k = 0; k < places; k++)
                dx[at + k * inner] = best < 0 || best == k ? dy[n * inner + c] * share : 0;
        }
}
