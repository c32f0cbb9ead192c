/* mixed_precision.cu: the kernels that are no products and read or write tensors in 16 bits, and
 * the 16-bit copies of parameters. */
#include "backend/cuda/ops/mixed_precision.h"

#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/moving.h"
#include "backend/cuda/plan/kernel_families.h"

static __global__ void cast_each(int64_t count, struct cells from, struct cells to)
{
    for_eights(count, [=](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(from, first, some, values);
        cells_write_some(to, first, some, values);
    });
}

void mixed_cast(struct queue *queue, int64_t count, struct cells from, struct cells to)
{
    enqueue(queue, cast_each, dim3(blocks_of_eights(count)), dim3(THREADS), count, from, to);
}

void mixed_refresh(const struct call *call, struct queue *queue)
{
    for (int32_t i = call->op->inputs; call->mixed && i < call->op->inputs + call->op->outputs;
         i++) {
        if (!call_has(call, i) || call_tensor(call, i)->role != ROLE_PARAM)
            continue;
        mixed_cast(queue, call_count(call, i), call_cells(call, i),
                   mixed_copy(call->mixed, call_tensor(call, i)));
    }
}

static __global__ void activate_each(int64_t count, enum activation function, float alpha,
                                     struct cells x, struct cells y)
{
    allow_next();
    await_last();
    for_eights(count, [=](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(x, first, some, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] = activation_value_alpha(function, alpha, values[i]);
        cells_write_some(y, first, some, values);
    });
}

void mixed_activate(struct queue *queue, int64_t count, enum activation function, float alpha,
                    struct cells x, struct cells y)
{
    enqueue_early(queue, activate_each, dim3(blocks_of_eights(count)), dim3(THREADS), 0, count,
                  function, alpha, x, y);
}

/* A block a row; eight numbers a thread where rows begin at multiples of that. */
static __global__ void MOVING_BOUNDS load_row(int64_t width, const int32_t *rows,
                                              const struct feed *feed, const struct feed_view *view,
                                              struct cells x)
{
    allow_next();
    await_last();
    const int64_t row =
        view->staged ? (int64_t)feed->part * gridDim.x + blockIdx.x : rows[blockIdx.x];
    float *from = (float *)view->data + row * width;
    const int64_t to = (int64_t)blockIdx.x * width;
    if (width % CELLS == 0)
        for (int64_t i = threadIdx.x * CELLS; i < width; i += blockDim.x * CELLS) {
            float values[CELLS];
            cells_read(cells{from, PRECISION_FP32}, i, values);
            cells_write(x, to + i, values);
        }
    else
        for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
            cells_put(x, to + i, from[i]);
}

void launch_load_16bit(const struct call *call, struct queue *queue)
{
    const int64_t rows = call_dim(call, AT_load_rows, 0),
                  width = call_count(call, AT_load_x) / rows;
    const int32_t tensor = op_output(call->program, call->op, 0);
    const int64_t share = width % CELLS == 0 ? width / CELLS : width;
    const unsigned most = moving_threads(queue, rows * share);
    const unsigned threads = share < most ? ((unsigned)share + 31) / 32 * 32 : most;
    enqueue_early(queue, load_row, dim3((unsigned)rows), dim3(threads), 0, width,
                  call_integers(call, AT_load_rows), (const struct feed *)call->feed,
                  (const struct feed_view *)&call->views[tensor], call_cells(call, 1));
}

bool takes_16bit(const struct choice *choice)
{
    return choice_has_16bit(choice, choice->op);
}
