/* data.cu: data in and out: rows, load, store. The bound data lies on the device, and so does the
 * place in it: a step needs nothing from the host. Of staged data (intake.cu) the step's own rows
 * do. Elements are moved as four-byte words, whatever they mean. */
#include "backend/cuda/families.h"

/* One block, so that the place moves after all have read it. */
enum { ROWS_THREADS = 1024 };

static __global__ void __launch_bounds__(ROWS_THREADS)
    rows_next(int64_t n, struct feed *feed, int32_t *rows)
{
    allow_next();
    await_last();
    const uint64_t place = feed->place, samples = feed->samples;
    const uint64_t first = samples ? place % samples : place;
    const uint32_t *order = feed->order;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        uint64_t sample = first + (uint64_t)i;
        if (samples && sample >= samples)
            sample = sample - samples < samples ? sample - samples : sample % samples;
        rows[i] = (int32_t)(order ? order[sample] : (uint32_t)(sample & INT32_MAX));
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    feed->place = place + (uint64_t)n;
    feed->part = feed->part + 1 < feed->parts ? feed->part + 1 : 0;
}

void launch_rows(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0);
    const unsigned threads = n <= THREADS ? (unsigned)THREADS : (unsigned)ROWS_THREADS;
    enqueue_early(queue, rows_next, dim3(1), dim3(threads), 0, n, call->feed,
                  (int32_t *)call_reals(call, 0));
}

static __global__ void load_each(int64_t count, int64_t width, const int32_t *rows,
                                 const struct feed *feed, const struct feed_view *view, uint32_t *x)
{
    allow_next();
    await_last();
    if (view->staged) {
        const uint32_t *data = view->data + feed->part * count;
        FOR_EACH(index, count)
        x[index] = data[index];
        return;
    }
    FOR_EACH(index, count)
    {
        uint32_t column;
        const int64_t sample = split_number(index, (uint32_t)width, &column);
        x[index] = view->data[rows[sample] * width + column];
    }
}

void launch_load(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, 1), width = count / call_dim(call, 0, 0);
    const int32_t tensor = op_output(call->program, call->op, 0);
    enqueue_early(queue, load_each, dim3(blocks_striding(count)), dim3(THREADS), 0, count, width,
                  call_integers(call, 0), (const struct feed *)call->feed,
                  (const struct feed_view *)&call->views[tensor], (uint32_t *)call_reals(call, 1));
}

static __global__ void store_each(int64_t count, int64_t width, const int32_t *rows,
                                  const uint32_t *x, const struct feed_view *view)
{
    allow_next();
    await_last();
    if (!view->data)
        return;
    FOR_EACH(index, count)
    {
        const int32_t row = rows[index / width];
        view->data[row * width + index % width] = x[index];
        view->written[row] = 1;
    }
}

/* The whole tensor is one row of the view. One block, as in rows_next. */
static __global__ void __launch_bounds__(THREADS)
    store_next(int64_t count, const uint32_t *x, struct feed_view *view)
{
    allow_next();
    await_last();
    if (!view->data)
        return;
    const uint64_t stored = view->stored, row = stored % view->rows;
    for (int64_t index = threadIdx.x; index < count; index += THREADS)
        view->data[(int64_t)row * count + index] = x[index];
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    view->written[row] = 1;
    view->stored = stored + 1;
}

void launch_store(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, 0);
    const uint32_t *x = (const uint32_t *)call_reals(call, 0);
    struct feed_view *view = &call->views[op_input(call->program, call->op, 0)];
    if (call_has(call, 1))
        enqueue_early(queue, store_each, dim3(blocks_striding(count)), dim3(THREADS), 0, count,
                      count / call_dim(call, 1, 0), call_integers(call, 1), x,
                      (const struct feed_view *)view);
    else
        enqueue_early(queue, store_next, dim3(1), dim3(THREADS), 0, count, x, view);
}
