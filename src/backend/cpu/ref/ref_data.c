/* ref_data.c: rows, load, store: the plan's place in its data; and fill, add. */
#include "backend/cpu/real.h"
#include "core/comm/message.h"

#include <string.h>

/* rows[i] is the data row of the i-th sample of this batch; the place moves on. */
KERNEL(rows)
{
    struct cursor *cursor = call->cursor;
    int32_t *rows = call->data[AT_rows_rows]; /* [n] */
    int64_t n = dim(call, AT_rows_rows, 0);
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
    const int32_t *rows = integers(call, AT_load_rows);
    char *x = call->data[AT_load_x]; /* [n, …] */
    int64_t n = dim(call, AT_load_x, 0);
    size_t row_bytes = (size_t)(call->tensors[AT_load_x]->bytes / (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        memcpy(x + (size_t)i * row_bytes, call->bound->data + (size_t)rows[i] * row_bytes,
               row_bytes);
}

/* With rows: one row a sample, to its own place. Without: the whole tensor is one row of a ring. */
KERNEL(store)
{
    struct bound *bound = call->bound;
    const char *x = call->data[AT_store_x];
    const int32_t *rows = integers(call, AT_store_rows);
    size_t bytes = (size_t)call->tensors[AT_store_x]->bytes;
    if (!bound->data)
        return;
    if (!rows) {
        memcpy(bound->data + (size_t)(bound->stored % (uint64_t)bound->rows) * bytes, x, bytes);
        bound->stored++;
        return;
    }
    int64_t n = dim(call, AT_store_x, 0);
    size_t row_bytes = bytes / (size_t)n;
    for (int64_t i = 0; i < n; i++)
        memcpy(bound->data + (size_t)rows[i] * row_bytes, x + (size_t)i * row_bytes, row_bytes);
}

KERNEL(fill)
{
    real *y = reals(call, AT_fill_y);
    for (int64_t i = 0, n = count(call, AT_fill_y); i < n; i++)
        y[i] = (real)call->op->attr.fill.value;
}

KERNEL(add)
{
    const real *a = reals(call, AT_add_a), *b = reals(call, AT_add_b);
    real *y = reals(call, AT_add_y);
    for (int64_t i = 0, n = count(call, AT_add_y); i < n; i++)
        y[i] = a[i] + b[i];
}

KERNEL(send)
{
    message_send(call->message, call->data[AT_send_x]);
}

KERNEL(receive)
{
    message_receive(call->message, call->data[AT_receive_x]);
}

KERNEL(receive_add)
{
    message_receive_add(call->message, call->data[AT_receive_add_x]);
}
