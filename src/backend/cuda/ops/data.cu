/* data.cu: data in and out: rows, load, store. The bound data lies on the device, and so does the
 * place in it: a step needs nothing from the host. Of staged data (intake.cu) the step's own rows
 * do. Elements are moved as four-byte words, whatever they mean. */
#include "backend/cuda/ops/moving.h"
#include "backend/cuda/plan/kernel_families.h"

enum { MOVING_BLOCKS = 128, MOVING_ROUNDS = 16 }; /* of one warp, at most */

unsigned moving_threads(const struct queue *queue, int64_t pieces)
{
    const bool few = pieces <= MOVING_BLOCKS * 32 * MOVING_ROUNDS;
    return queue->beside && few ? 32 : THREADS;
}

static dim3 moving_blocks(int64_t pieces, unsigned threads)
{
    const unsigned blocks = blocks_striding(pieces), most = MOVING_BLOCKS;
    return dim3(threads == THREADS || blocks < most ? blocks : most);
}

/* Rows are moved by four words at a time where all begin at multiples of that. */
static bool moves_four(int64_t width)
{
    return width % 4 == 0;
}

/* One block, so that the place moves after all have read it. */
enum { ROWS_THREADS = 1024 };

static __global__ void __launch_bounds__(ROWS_THREADS, 2)
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
    const int64_t n = call_dim(call, AT_rows_rows, 0);
    const unsigned usual = n <= THREADS ? (unsigned)THREADS : (unsigned)ROWS_THREADS;
    const bool slight = moving_threads(queue, n * MOVING_BLOCKS) < THREADS;
    enqueue_early(queue, rows_next, dim3(1), dim3(slight ? 32 : usual), 0, n, call->feed,
                  (int32_t *)call_reals(call, AT_rows_rows));
}

/* `count` and `width` in pieces of so many words. */
template <int WORDS>
static __global__ void MOVING_BOUNDS load_each(int64_t count, int64_t width, const int32_t *rows,
                                               const struct feed *feed,
                                               const struct feed_view *view, float *x)
{
    allow_next();
    await_last();
    const bool staged = view->staged;
    const auto *data = (const vector<WORDS> *)view->data + (staged ? feed->part * count : 0);
    auto *out = (vector<WORDS> *)x;
    FOR_EACH(index, count)
    {
        uint32_t column;
        const int64_t sample = split_number(index, (uint32_t)width, &column);
        out[index] = data[staged ? index : rows[sample] * width + column];
    }
}

template <int WORDS>
static void load_rows(const struct call *call, struct queue *queue, int64_t width)
{
    const int64_t count = call_dim(call, AT_load_rows, 0) * width;
    const int32_t tensor = op_output(call->program, call->op, 0);
    const unsigned threads = moving_threads(queue, count);
    enqueue_early(queue, load_each<WORDS>, moving_blocks(count, threads), dim3(threads), 0, count,
                  width, call_integers(call, AT_load_rows), (const struct feed *)call->feed,
                  (const struct feed_view *)&call->views[tensor], call_reals(call, AT_load_x));
}

void launch_load(const struct call *call, struct queue *queue)
{
    const int64_t width = call_count(call, AT_load_x) / call_dim(call, AT_load_rows, 0);
    if (moves_four(width))
        load_rows<4>(call, queue, width / 4);
    else
        load_rows<1>(call, queue, width);
}

template <int WORDS>
static __global__ void MOVING_BOUNDS store_each(int64_t count, int64_t width, const int32_t *rows,
                                                const float *x, const struct feed_view *view)
{
    allow_next();
    await_last();
    if (!view->data)
        return;
    FOR_EACH(index, count)
    {
        uint32_t column;
        const int32_t row = rows[split_number(index, (uint32_t)width, &column)];
        ((vector<WORDS> *)view->data)[row * width + column] = ((const vector<WORDS> *)x)[index];
        view->written[row] = 1;
    }
}

template <int WORDS>
static void store_rows(const struct call *call, struct queue *queue, int64_t width)
{
    const int64_t count = call_dim(call, AT_store_rows, 0) * width;
    const unsigned threads = moving_threads(queue, count);
    enqueue_early(queue, store_each<WORDS>, moving_blocks(count, threads), dim3(threads), 0, count,
                  width, call_integers(call, AT_store_rows),
                  (const float *)call_reals(call, AT_store_x),
                  (const struct feed_view *)&call->views[op_input(call->program, call->op, 0)]);
}

/* The whole tensor is one row of the view. One block, as in rows_next. */
static __global__ void MOVING_BOUNDS store_next(int64_t count, const uint32_t *x,
                                                struct feed_view *view)
{
    allow_next();
    await_last();
    if (!view->data)
        return;
    const uint64_t stored = view->stored, row = stored % view->rows;
    for (int64_t index = threadIdx.x; index < count; index += blockDim.x)
        view->data[(int64_t)row * count + index] = x[index];
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    view->written[row] = 1;
    view->stored = stored + 1;
}

void launch_store(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_store_x);
    const int64_t width =
        call_has(call, AT_store_rows) ? count / call_dim(call, AT_store_rows, 0) : count;
    if (!call_has(call, AT_store_rows))
        enqueue_early(queue, store_next, dim3(1), dim3(THREADS), 0, count,
                      (const uint32_t *)call_reals(call, AT_store_x),
                      &call->views[op_input(call->program, call->op, 0)]);
    else if (moves_four(width))
        store_rows<4>(call, queue, width / 4);
    else
        store_rows<1>(call, queue, width);
}
