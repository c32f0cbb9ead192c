/* pool.cu: pooling of images. Every plane (a channel of a sample) is pooled by itself; the window
 * of the place (p, q) begins at (p·stride - pad, q·stride - pad) and what of it lies outside the
 * image counts for nothing. */
#include "backend/cuda/families.h"

struct pooling {
    int32_t height, width; /* of the image */
    int32_t rows, columns; /* of what it is pooled to */
    int32_t window_h, window_w, stride_h, stride_w, pad_h, pad_w;
    __host__ __device__ int64_t plane(void) const
    {
        return (int64_t)height * width;
    }
};

/* The attributes of the pooling ops begin alike. */
static struct pooling pooling_of(const struct call *call, int32_t image, int32_t pooled)
{
    const auto &attr = call->op->attr.max_pool;
    const struct pooling pooling = {(int32_t)call_dim(call, image, 2),
                                    (int32_t)call_dim(call, image, 3),
                                    (int32_t)call_dim(call, pooled, 2),
                                    (int32_t)call_dim(call, pooled, 3),
                                    attr.window_h,
                                    attr.window_w,
                                    attr.stride_h,
                                    attr.stride_w,
                                    attr.pad_h,
                                    attr.pad_w};
    return pooling;
}

/* The part of a window that lies in the image: rows and columns from … to, the last not included.
 * Of the window, `padded` elements lie in the image or its pad, which is as wide behind it as
 * before.
 */
struct patch {
    int32_t top, bottom, left, right;
    int32_t padded;
};

static __device__ struct patch patch_at(const struct pooling &pooling, int32_t p, int32_t q)
{
    const int32_t top = p * pooling.stride_h - pooling.pad_h;
    const int32_t left = q * pooling.stride_w - pooling.pad_w;
    const int32_t bottom = top + pooling.window_h, right = left + pooling.window_w;
    const struct patch patch = {max(top, 0), min(bottom, pooling.height), max(left, 0),
                                min(right, pooling.width),
                                (min(bottom, pooling.height + pooling.pad_h) - top) *
                                    (min(right, pooling.width + pooling.pad_w) - left)};
    return patch;
}

/* The patch of a place that is numbered over all planes, and the plane. */
static __device__ struct patch patch_of(const struct pooling &pooling, int64_t place,
                                        int64_t *plane)
{
    uint32_t row, column;
    const int64_t line = split_number(place, (uint32_t)pooling.columns, &column);
    *plane = split_number(line, (uint32_t)pooling.rows, &row);
    return patch_at(pooling, (int32_t)row, (int32_t)column);
}

/* Of several largest the first; a NaN is larger than anything. */
static __global__ void max_pool_each(int64_t count, struct pooling pooling, const float *x,
                                     float *y, int32_t *places)
{
    FOR_EACH(index, count)
    {
        int64_t plane;
        const struct patch patch = patch_of(pooling, index, &plane);
        const float *image = x + plane * pooling.plane();
        int32_t best = patch.top * pooling.width + patch.left;
        float largest = image[best];
        for (int32_t row = patch.top; row < patch.bottom; row++)
            for (int32_t column = patch.left; column < patch.right; column++) {
                const int32_t place = row * pooling.width + column;
                const float value = image[place];
                if (value > largest || isnan(value)) {
                    best = place;
                    largest = value;
                }
            }
        y[index] = largest;
        if (places)
            places[index] = best;
    }
}

void launch_max_pool(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, 1);
    enqueue(queue, max_pool_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            pooling_of(call, 0, 1), (const float *)call_reals(call, 0), call_reals(call, 1),
            (int32_t *)call_reals(call, 2));
}

/* A block has a plane to itself and takes its elements in order, THREADS at a time. Those that go
 * to one place must be added one after the other: of all that want a place the first one goes, then
 * the next. Who is first is found by a small table, by place; two places that share an entry wait
 * for each other, which changes nothing but the time. */
enum { UNPOOL_TABLE = 1024 };

static __global__ void __launch_bounds__(THREADS)
    max_unpool_plane(int64_t pooled, int64_t image, const float *x, const int32_t *places, float *y)
{
    __shared__ int first[UNPOOL_TABLE];
    const int thread = (int)threadIdx.x;
    y += blockIdx.x * image;
    for (int64_t place = thread; place < image; place += THREADS)
        y[place] = 0.0f;
    for (int64_t from = 0; from < pooled; from += THREADS) {
        const int64_t index = blockIdx.x * pooled + from + thread;
        bool waiting = from + thread < pooled;
        const int32_t place = waiting ? places[index] : 0;
        int *entry = &first[place % UNPOOL_TABLE];
        while (__syncthreads_or(waiting)) {
            if (waiting)
                *entry = THREADS;
            __syncthreads();
            if (waiting)
                atomicMin(entry, thread);
            __syncthreads();
            if (waiting && *entry == thread) {
                y[place] += x[index];
                waiting = false;
            }
        }
    }
}

void launch_max_unpool(const struct call *call, struct queue *queue)
{
    const int64_t planes = call_dim(call, 0, 0) * call_dim(call, 0, 1);
    enqueue(queue, max_unpool_plane, dim3((unsigned)planes), dim3(THREADS),
            call_count(call, 0) / planes, call_count(call, 2) / planes,
            (const float *)call_reals(call, 0), call_integers(call, 1), call_reals(call, 2));
}

static __global__ void max_unpool_grad_each(int64_t count, int64_t pooled, int64_t image,
                                            const float *dy, const int32_t *places, float *dx)
{
    FOR_EACH(index, count)
    {
        uint32_t rest;
        dx[index] = dy[split_number(index, (uint32_t)pooled, &rest) * image + places[index]];
    }
}

void launch_max_unpool_grad(const struct call *call, struct queue *queue)
{
    const int64_t planes = call_dim(call, 0, 0) * call_dim(call, 0, 1);
    const int64_t count = call_count(call, 2);
    enqueue(queue, max_unpool_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            count / planes, call_count(call, 0) / planes, (const float *)call_reals(call, 0),
            call_integers(call, 1), call_reals(call, 2));
}

/* What the sum over a patch is divided by. */
static __device__ float divisor(const struct patch &patch, bool include_pad)
{
    return include_pad ? (float)patch.padded
                       : (float)((patch.bottom - patch.top) * (patch.right - patch.left));
}

static __global__ void average_pool_each(int64_t count, struct pooling pooling, bool include_pad,
                                         const float *x, float *y)
{
    FOR_EACH(index, count)
    {
        int64_t plane;
        const struct patch patch = patch_of(pooling, index, &plane);
        const float *image = x + plane * pooling.plane();
        float sum = 0.0f;
        for (int32_t row = patch.top; row < patch.bottom; row++)
            for (int32_t column = patch.left; column < patch.right; column++)
                sum += image[row * pooling.width + column];
        y[index] = sum / divisor(patch, include_pad);
    }
}

void launch_average_pool(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, 1);
    enqueue(queue, average_pool_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            pooling_of(call, 0, 1), call->op->attr.average_pool.include_pad != 0,
            (const float *)call_reals(call, 0), call_reals(call, 1));
}

/* Along one axis, the first of the windows that contain a place (which is counted with the pad). */
static __device__ int32_t first_window(int32_t place, int32_t window, int32_t stride)
{
    return place < window ? 0 : (place - window) / stride + 1;
}

/* One thread a pixel: the shares of all windows that contain it, in their order. */
static __global__ void average_pool_grad_each(int64_t count, struct pooling pooling,
                                              bool include_pad, const float *dy, float *dx)
{
    FOR_EACH(index, count)
    {
        uint32_t within_row, within;
        const int64_t line = split_number(index, (uint32_t)pooling.width, &within_row);
        const int64_t plane = split_number(line, (uint32_t)pooling.height, &within);
        const int32_t row = (int32_t)within + pooling.pad_h;
        const int32_t column = (int32_t)within_row + pooling.pad_w;
        const float *pooled = dy + plane * pooling.rows * pooling.columns;
        float sum = 0.0f;
        for (int32_t p = first_window(row, pooling.window_h, pooling.stride_h);
             p < pooling.rows && p * pooling.stride_h <= row; p++)
            for (int32_t q = first_window(column, pooling.window_w, pooling.stride_w);
                 q < pooling.columns && q * pooling.stride_w <= column; q++)
                sum +=
                    pooled[p * pooling.columns + q] / divisor(patch_at(pooling, p, q), include_pad);
        dx[index] = sum;
    }
}

void launch_average_pool_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, 1);
    enqueue(queue, average_pool_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            pooling_of(call, 1, 0), call->op->attr.average_pool_grad.include_pad != 0,
            (const float *)call_reals(call, 0), call_reals(call, 1));
}
