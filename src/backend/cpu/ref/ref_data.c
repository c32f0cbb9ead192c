/* ref_data.c: rows, load, store: the plan's place in its data; and fill, add. */
#include "backend/cpu/real.h"

#include <string.h>

/* rows[i] is the data row of the i-th sample of this batch; the place moves on. */
KERNEL(rows)
{
    struct cursor *cursor = call->cursor;
    int32_t *rows = call->data[0]; /* [n] */
    int64_t n = dim(call, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        uint64_t k = cursor->start + cursor->place + (uint64_t)i;
        if (cursor->count)
            k %= cursor->count;
        rows[i] = (int32_t)(cursor->order ? cursor->order[k] : (uint32_t)(k & INT32_MAX));
    }
    cursor->place += (uint64_t)n;
}

KERNEL(load)
{
    const int32_t *rows = integers(call, 0);
    char *x = call->data[1]; /* [n, …] */
    int64_t n = dim(call, 1, 0);
    size_t row_bytes = (size_t)(call->tensors[1]->bytes / (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        memcpy(x + (size_t)i * row_bytes, call->bound->data + (size_t)rows[i] * row_bytes,
               row_bytes);
}

/* With rows: one row a sample, to its own place. Without: the whole tensor is one row of a ring. */
KERNEL(store)
{
    struct bound *bound = call->bound;
    const char *x = call->data[0];
    const int32_t *rows = integers(call, 1);
    size_t bytes = (size_t)call->tensors[0]->bytes;
    if (!bound->data)
        return;
    if (!rows) {
        memcpy(bound->data + (size_t)(bound->stored % (uint64_t)bound->rows) * bytes, x, bytes);
        bound->stored++;
        return;
    }
    int64_t n = dim(call, 0, 0);
    size_t row_bytes = bytes / (size_t)n;
    for (int64_t i = 0; i < n; i++)
        memcpy(bound->data + (size_t)rows[i] * row_bytes, x + (size_t)i * row_bytes, row_bytes);
}

KERNEL(fill)
{
    real *y = reals(call, 0);
    for (int64_t i = 0, n = count(call, 0); i < n; i++)
        y[i] = (real)call->op->attr.fill.value;
}

KERNEL(add)
{
    const real *a = reals(call, 0), *b = reals(call, 1);
    real *y = reals(call, 2);
    for (int64_t i = 0, n = count(call, 2); i < n; i++)
        y[i] = a[i] + b[i];
}
