/* elementwise.cu: one thread an element: activations, bounds, sums, products and quotients of
 * tensors, fill, and everything random. Random numbers are a function of (seed, stream, step, row
 * of the data set, element): base/rng.h. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/host_device.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"

#include "base/rng.h"

void launch_activate(const struct call *call, struct queue *queue)
{
    mixed_activate(queue, call_count(call, AT_activate_x),
                   (enum activation)call->op->attr.activate.function, call->op->attr.activate.alpha,
                   call_cells(call, 0), call_cells(call, 1));
}

static __global__ void activate_grad_each(int64_t count, enum activation function, float alpha,
                                          struct cells saved, struct cells dy, struct cells dx)
{
    allow_next();
    await_last();
    for_eights(count, [=](int64_t first, int some) {
        float slopes[CELLS], values[CELLS];
        cells_read_some(saved, first, some, slopes);
        cells_read_some(dy, first, some, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] *= activation_derivative(function, alpha, slopes[i]);
        cells_write_some(dx, first, some, values);
    });
}

void launch_activate_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_activate_grad_saved);
    enqueue_early(queue, activate_grad_each, dim3(blocks_of_eights(count)), dim3(THREADS), 0, count,
                  (enum activation)call->op->attr.activate_grad.function,
                  call->op->attr.activate_grad.alpha, call_cells(call, 0), call_cells(call, 1),
                  call_cells(call, 2));
}

static __global__ void bound_each(int64_t count, float low, float high, struct cells x,
                                  struct cells y)
{
    for_eights(count, [=](int64_t first, int some) {
        float values[CELLS];
        cells_read_some(x, first, some, values);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            values[i] = bounded(values[i], low, high);
        cells_write_some(y, first, some, values);
    });
}

void launch_bound(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_bound_x);
    enqueue(queue, bound_each, dim3(blocks_of_eights(count)), dim3(THREADS), count,
            call->op->attr.bound.low, call->op->attr.bound.high, call_cells(call, 0),
            call_cells(call, 1));
}

/* y = f(a, b), element by element; y may lie where a or b does. */
template <typename Function>
static __global__ void map_each(int64_t count, Function function, struct cells a, struct cells b,
                                struct cells y)
{
    for_eights(count, [=](int64_t first, int some) {
        float left[CELLS], right[CELLS];
        cells_read_some(a, first, some, left);
        cells_read_some(b, first, some, right);
#pragma unroll
        for (int i = 0; i < CELLS; i++)
            left[i] = function.of(left[i], right[i]);
        cells_write_some(y, first, some, left);
    });
}

template <typename Function>
static void map(const struct call *call, struct queue *queue, Function function)
{
    const int64_t count = call_count(call, AT_activate_x);
    enqueue(queue, map_each<Function>, dim3(blocks_of_eights(count)), dim3(THREADS), count,
            function, call_cells(call, 0), call_cells(call, 1), call_cells(call, 2));
}

struct sum_of {
    __device__ float of(float a, float b) const
    {
        return a + b;
    }
};

void launch_add(const struct call *call, struct queue *queue)
{
    map(call, queue, sum_of{});
}

struct product_of {
    __device__ float of(float a, float b) const
    {
        return a * b;
    }
};

void launch_multiply(const struct call *call, struct queue *queue)
{
    map(call, queue, product_of{});
}

struct quotient_of {
    __device__ float of(float a, float b) const
    {
        return a / b;
    }
};

void launch_divide(const struct call *call, struct queue *queue)
{
    map(call, queue, quotient_of{});
}

static __global__ void divide_grad_each(int64_t count, const float *b, const float *y,
                                        const float *dy, float *db)
{
    FOR_EACH(index, count)
    db[index] = -dy[index] * (y[index] / b[index]);
}

void launch_divide_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_divide_grad_b);
    enqueue(queue, divide_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            (const float *)call_reals(call, AT_divide_grad_b),
            (const float *)call_reals(call, AT_divide_grad_y),
            (const float *)call_reals(call, AT_divide_grad_dy),
            call_reals(call, AT_divide_grad_db));
}

/* Of what y = bound(x) has become, and dy. */
struct slope_of_bound {
    float low, high;
    __device__ float of(float y, float dy) const
    {
        return y > low && y < high ? dy : 0.0f;
    }
};

void launch_bound_grad(const struct call *call, struct queue *queue)
{
    map(call, queue, slope_of_bound{call->op->attr.bound_grad.low, call->op->attr.bound_grad.high});
}

static __global__ void mask_each(int64_t count, int64_t width, const float *x, const float *keep,
                                 float *y)
{
    FOR_EACH(index, count)
    y[index] = keep[index % width] > 0.0f ? x[index] : 0.0f;
}

void launch_mask(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_mask_x);
    enqueue(queue, mask_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_count(call, AT_mask_keep), (const float *)call_reals(call, AT_mask_x),
            (const float *)call_reals(call, AT_mask_keep), call_reals(call, AT_mask_y));
}

static __global__ void add_rows_each(int64_t count, int64_t width, const float *x, const float *b,
                                     float *y)
{
    FOR_EACH(index, count)
    y[index] = x[index] + b[index % width];
}

void launch_add_rows(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_add_rows_x);
    enqueue(queue, add_rows_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_count(call, AT_add_rows_b), (const float *)call_reals(call, AT_add_rows_x),
            (const float *)call_reals(call, AT_add_rows_b), call_reals(call, AT_add_rows_y));
}

static __global__ void fill_each(int64_t count, float value, float *y)
{
    FOR_EACH(index, count)
    y[index] = value;
}

void launch_fill(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_fill_y);
    enqueue(queue, fill_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call->op->attr.fill.value, call_reals(call, AT_fill_y));
}

/* Where the random numbers of an op come from. */
struct random_source {
    const struct control *control;
    const int32_t *rows; /* [n] */
    int64_t width;       /* elements of one sample */
    uint32_t stream;
    __device__ struct rng_key key() const
    {
        struct rng_key key = {control->seed, stream, control->step};
        return key;
    }
    __device__ float uniform(int64_t index) const
    {
        return rng_uniform(key(), (uint32_t)rows[index / width], (uint32_t)(index % width));
    }
    __device__ float normal(int64_t index) const
    {
        return rng_normal(key(), (uint32_t)rows[index / width], (uint32_t)(index % width));
    }
};

static struct random_source random_of(const struct call *call, int32_t rows, int64_t count,
                                      int32_t stream)
{
    const struct random_source source = {call->control, call_integers(call, rows),
                                         count / call_dim(call, rows, 0), (uint32_t)stream};
    return source;
}

static __global__ void dropout_each(int64_t count, struct random_source source, float rate,
                                    const float *x, float *y)
{
    const float keep = 1.0f / (1.0f - rate);
    FOR_EACH(index, count)
    y[index] = source.uniform(index) >= rate ? x[index] * keep : 0.0f;
}

void launch_dropout(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_dropout_x);
    enqueue(queue, dropout_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            random_of(call, 1, count, call->op->attr.dropout.stream), call->op->attr.dropout.rate,
            (const float *)call_reals(call, AT_dropout_x), call_reals(call, AT_dropout_y));
}

static __global__ void bernoulli_each(int64_t count, struct random_source source, const float *p,
                                      float *y)
{
    FOR_EACH(index, count)
    y[index] = source.uniform(index) < p[index] ? 1.0f : 0.0f;
}

void launch_bernoulli(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_bernoulli_p);
    enqueue(queue, bernoulli_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            random_of(call, 1, count, call->op->attr.bernoulli.stream),
            (const float *)call_reals(call, AT_bernoulli_p), call_reals(call, AT_bernoulli_y));
}

static __global__ void random_each(int64_t count, struct random_source source,
                                   enum distribution distribution, float *y)
{
    FOR_EACH(index, count)
    y[index] = distribution == DISTRIBUTION_NORMAL ? source.normal(index) : source.uniform(index);
}

void launch_random(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_random_y);
    enqueue(queue, random_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            random_of(call, 0, count, call->op->attr.random.stream),
            (enum distribution)call->op->attr.random.distribution, call_reals(call, AT_random_y));
}
