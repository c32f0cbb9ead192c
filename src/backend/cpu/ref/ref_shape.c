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
    const real *a = reals(call, AT_multiply_a), *b = reals(call, AT_multiply_b);
    real *y = reals(call, AT_multiply_y);
    for (int64_t i = 0, n = count(call, AT_multiply_y); i < n; i++)
        y[i] = a[i] * b[i];
}

KERNEL(divide)
{
    const real *a = reals(call, AT_divide_a), *b = reals(call, AT_divide_b);
    real *y = reals(call, AT_divide_y);
    for (int64_t i = 0, n = count(call, AT_divide_y); i < n; i++)
        y[i] = a[i] / b[i];
}

KERNEL(divide_grad)
{
    const real *b = reals(call, AT_divide_grad_b), *y = reals(call, AT_divide_grad_y),
               *dy = reals(call, AT_divide_grad_dy);
    real *db = reals(call, AT_divide_grad_db);
    for (int64_t i = 0, n = count(call, AT_divide_grad_db); i < n; i++)
        db[i] = -dy[i] * (y[i] / b[i]);
}

KERNEL(mask)
{
    const real *x = reals(call, AT_mask_x), *keep = reals(call, AT_mask_keep);
    real *y = reals(call, AT_mask_y);
    for (int64_t i = 0, n = count(call, AT_mask_y), width = count(call, AT_mask_keep); i < n; i++)
        y[i] = keep[i % width] > 0 ? x[i] : 0;
}

/* y[n,…] = x[n,…] + b[…] */
KERNEL(add_rows)
{
    const real *x = reals(call, AT_add_rows_x), *b = reals(call, AT_add_rows_b);
    real *y = reals(call, AT_add_rows_y);
    for (int64_t i = 0, n = count(call, AT_add_rows_y), width = count(call, AT_add_rows_b); i < n;
         i++)
        y[i] = x[i] + b[i % width];
}

/* y[n,k,c] = x[n,c] */
KERNEL(expand)
{
    int64_t times = dim(call, AT_expand_y, 1), width = dim(call, AT_expand_x, 1);
    real *y = reals(call, AT_expand_y);
    for (int64_t n = 0; n < dim(call, AT_expand_x, 0); n++)
        for (int64_t k = 0; k < times; k++, y += width)
            memcpy(y, reals(call, AT_expand_x) + n * width, bytes_of(width));
}

/* y[n,b,a,c] = x[n,a,b,c] */
KERNEL(transpose)
{
    const real *x = reals(call, AT_transpose_x);
    real *y = reals(call, AT_transpose_y);
    int64_t first = dim(call, AT_transpose_x, 1), second = dim(call, AT_transpose_x, 2),
            inner = dim(call, AT_transpose_x, 3);
    for (int64_t n = 0; n < dim(call, AT_transpose_x, 0); n++)
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
    int64_t from = call->op->attr.slice.from * dim(call, AT_slice_x, 2);
    int64_t width = dim(call, AT_slice_x, 1) * dim(call, AT_slice_x, 2),
            taken = dim(call, AT_slice_y, 1) * dim(call, AT_slice_y, 2);
    for (int64_t n = 0; n < dim(call, AT_slice_x, 0); n++)
        memcpy(reals(call, AT_slice_y) + n * taken, reals(call, AT_slice_x) + n * width + from,
               bytes_of(taken));
}

KERNEL(slice_grad)
{
    int64_t from = call->op->attr.slice_grad.from * dim(call, AT_slice_grad_dy, 2);
    int64_t width = dim(call, AT_slice_grad_dx, 1) * dim(call, AT_slice_grad_dx, 2),
            taken = dim(call, AT_slice_grad_dy, 1) * dim(call, AT_slice_grad_dy, 2);
    memset(call->data[AT_slice_grad_dx], 0, bytes_of(count(call, AT_slice_grad_dx)));
    for (int64_t n = 0; n < dim(call, AT_slice_grad_dy, 0); n++)
        memcpy(reals(call, AT_slice_grad_dx) + n * width + from,
               reals(call, AT_slice_grad_dy) + n * taken, bytes_of(taken));
}

/* y[n,m,…] = table[n,index[n,m],…] */
KERNEL(gather)
{
    const int32_t *index = integers(call, AT_gather_index);
    real *y = reals(call, AT_gather_y);
    int64_t rows = dim(call, AT_gather_table, 1), width = dim(call, AT_gather_table, 2),
            picks = dim(call, AT_gather_index, 1);
    const int64_t all = call->op->attr.gather.rows ? call->op->attr.gather.rows : rows;
    for (int64_t n = 0; n < dim(call, AT_gather_table, 0); n++)
        for (int64_t m = 0; m < picks; m++, y += width) {
            const int64_t number = index[n * picks + m], row = number - call->op->attr.gather.from;
            const real other = number >= 0 && number < all ? 0 : (real)NAN;
            bool there = row >= 0 && row < rows;
            for (int64_t d = 0; d < width; d++)
                y[d] = there ? reals(call, AT_gather_table)[(n * rows + row) * width + d] : other;
        }
}

/* dtable[n,index[n,m],…] += dy[n,m,…], for m in order */
KERNEL(scatter)
{
    const int32_t *index = integers(call, AT_scatter_index);
    const real *dy = reals(call, AT_scatter_dy);
    real *dtable = reals(call, AT_scatter_dtable);
    int64_t rows = dim(call, AT_scatter_dtable, 1), width = dim(call, AT_scatter_dtable, 2),
            picks = dim(call, AT_scatter_index, 1);
    if (!call->op->attr.scatter.accumulate)
        memset(dtable, 0, bytes_of(count(call, AT_scatter_dtable)));
    for (int64_t n = 0; n < dim(call, AT_scatter_index, 0); n++)
        for (int64_t m = 0; m < picks; m++, dy += width) {
            int64_t row = (int64_t)index[n * picks + m] - call->op->attr.scatter.from;
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
    int64_t places = dim(call, AT_reduce_x, 1), inner = dim(call, AT_reduce_x, 2);
    int32_t reduction = call->op->attr.reduce.reduction;
    for (int64_t n = 0; n < dim(call, AT_reduce_x, 0); n++)
        for (int64_t c = 0; c < inner; c++) {
            const real *x = reals(call, AT_reduce_x) + n * places * inner + c;
            real sum = 0;
            for (int64_t k = 0; k < places; k++)
                sum += x[k * inner];
            if (reduction == REDUCTION_MEAN)
                sum /= (real)places;
            if (reduction == REDUCTION_MAX)
                sum = x[largest(x, places, inner) * inner];
            reals(call, AT_reduce_y)[n * inner + c] = sum;
        }
}

KERNEL(reduce_grad)
{
    const real *x = reals(call, AT_reduce_grad_x), *dy = reals(call, AT_reduce_grad_dy);
    real *dx = reals(call, AT_reduce_grad_dx);
    int64_t places = dim(call, AT_reduce_grad_dx, 1), inner = dim(call, AT_reduce_grad_dx, 2);
    int32_t reduction = call->op->attr.reduce_grad.reduction;
    real share = reduction == REDUCTION_MEAN ? 1 / (real)places : 1;
    for (int64_t n = 0; n < dim(call, AT_reduce_grad_dx, 0); n++)
        for (int64_t c = 0; c < inner; c++) {
            int64_t at = n * places * inner + c;
            int64_t best = reduction == REDUCTION_MAX ? largest(x + at, places, inner) : -1;
            for (int64_t k = 0; k < places; k++)
                dx[at + k * inner] = best < 0 || best == k ? dy[n * inner + c] * share : 0;
        }
}
