/* pool.cu: pooling of images. Every plane (a channel of a sample) is pooled by itself; the window
 * of the place (p, q) begins at (p·stride - pad, q·stride - pad) and what of it lies outside the
 * image counts for nothing. Images may lie either way (nhwc.h); where all of an op's are NHWC a
 * thread has four neighbours. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/ops/pool_window.h"
#include "backend/cuda/plan/kernel_families.h"

/* How many numbers a thread takes: four, where these images lie so. */
static int wide_of(const struct image &a, const struct image &b)
{
    return a.nhwc && b.nhwc ? NHWC_VECTOR : 1;
}

/* Of several largest the first; a NaN is larger than anything. */
template <int WIDE>
static __global__ void max_pool_each(int64_t count, struct pooling pooling, struct image from,
                                     struct image to, bool places_nhwc, const float *x, float *y,
                                     int32_t *places)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<WIDE>(to, index);
        const struct patch patch = patch_at(pooling, (int32_t)at.row, (int32_t)at.column);
        const int32_t first = patch.top * pooling.width + patch.left;
        vector<WIDE> largest = {};
        int32_t best[WIDE] = {};
        for (int32_t row = patch.top; row < patch.bottom; row++)
            for (int32_t column = patch.left; column < patch.right; column++) {
                const int32_t place = row * pooling.width + column;
                const vector<WIDE> value = *(
                    const vector<WIDE> *)(x + from.at(at.sample, (int32_t)at.channel, row, column));
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    if (place == first || value.at[i] > largest.at[i] || isnan(value.at[i])) {
                        best[i] = place;
                        largest.at[i] = value.at[i];
                    }
            }
        *(vector<WIDE> *)(y + index * WIDE) = largest;
        if (!places)
            continue;
        struct image noted = to;
        noted.nhwc = places_nhwc;
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            places[noted.at(at.sample, (int32_t)at.channel + i, (int32_t)at.row,
                            (int32_t)at.column)] = best[i];
    }
}

void launch_max_pool(const struct call *call, struct queue *queue)
{
    const struct image from = image_of(call, 0), to = image_of(call, 1);
    const int wide = wide_of(from, to);
    const int64_t count = call_count(call, AT_max_pool_y) / wide;
    enqueue(queue, wide > 1 ? max_pool_each<NHWC_VECTOR> : max_pool_each<1>,
            dim3(blocks_striding(count)), dim3(THREADS), count, pooling_of(call, 0, 1), from, to,
            call_is_nhwc(call, 2), (const float *)call_reals(call, AT_max_pool_x),
            call_reals(call, AT_max_pool_y), (int32_t *)call_reals(call, AT_max_pool_places));
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

const struct op *pool_of_places(const struct program *program, const struct op *unpool)
{
    const int32_t places = op_input(program, unpool, 1);
    for (int32_t o = 0; o < program->op_count; o++)
        if (program->ops[o].kind == OP_max_pool &&
            op_output(program, &program->ops[o], 1) == places)
            return &program->ops[o];
    return NULL;
}

/* Along one axis, the first of the windows that contain a place (which is counted with the pad). */
static __device__ int32_t first_window(int32_t place, int32_t window, int32_t stride)
{
    return place < window ? 0 : (place - window) / stride + 1;
}

/* An activation's slope, by which the result is multiplied; saved NULL: there is none. */
struct unpool_slope {
    const float *saved;
    enum activation function;
    float alpha;
};

/* Where the windows are known: one thread a pixel looks which of those that contain it chose it, in
 * their order. */
template <int WIDE>
static __global__ void max_unpool_each(int64_t count, struct pooling pooling, struct image pooled,
                                       struct image to, bool places_nhwc, const float *x,
                                       const int32_t *places, struct unpool_slope slope, float *y)
{
    struct image noted = pooled;
    noted.nhwc = places_nhwc;
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<WIDE>(to, index);
        const int32_t row = (int32_t)at.row + pooling.pad_h;
        const int32_t column = (int32_t)at.column + pooling.pad_w;
        const int32_t own = (int32_t)(at.row * (uint32_t)pooling.width + at.column);
        vector<WIDE> sum = {};
        for (int32_t p = first_window(row, pooling.window_h, pooling.stride_h);
             p < pooling.rows && p * pooling.stride_h <= row; p++)
            for (int32_t q = first_window(column, pooling.window_w, pooling.stride_w);
                 q < pooling.columns && q * pooling.stride_w <= column; q++) {
                const int32_t channel = (int32_t)at.channel;
                const vector<WIDE> chosen =
                    *(const vector<WIDE> *)(places + noted.at(at.sample, channel, p, q));
                const vector<WIDE> value =
                    *(const vector<WIDE> *)(x + pooled.at(at.sample, channel, p, q));
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    sum.at[i] += __float_as_int(chosen.at[i]) == own ? value.at[i] : 0.0f;
            }
        if (slope.saved) {
            const vector<WIDE> saved = *(const vector<WIDE> *)(slope.saved + index * WIDE);
#pragma unroll
            for (int i = 0; i < WIDE; i++)
                sum.at[i] *= activation_derivative(slope.function, slope.alpha, saved.at[i]);
        }
        *(vector<WIDE> *)(y + index * WIDE) = sum;
    }
}

static void unpool_known(const struct call *call, struct queue *queue, const struct op *pool,
                         const struct unpool_slope &slope, float *y)
{
    const auto &attr = pool->attr.max_pool;
    const struct image pooled = image_of(call, 0), to = image_of(call, 2);
    const struct pooling pooling = {to.rows,       to.columns,    pooled.rows,   pooled.columns,
                                    attr.window_h, attr.window_w, attr.stride_h, attr.stride_w,
                                    attr.pad_h,    attr.pad_w};
    const int wide = call_is_nhwc(call, 1) ? wide_of(pooled, to) : 1;
    const int64_t count = call_count(call, AT_max_unpool_y) / wide;
    enqueue(queue, wide > 1 ? max_unpool_each<NHWC_VECTOR> : max_unpool_each<1>,
            dim3(blocks_striding(count)), dim3(THREADS), count, pooling, pooled, to,
            call_is_nhwc(call, 1), (const float *)call_reals(call, AT_max_unpool_x),
            call_integers(call, AT_max_unpool_places), slope, y);
}

void launch_max_unpool(const struct call *call, struct queue *queue)
{
    const int64_t planes = call_dim(call, AT_max_unpool_x, 0) * call_dim(call, AT_max_unpool_x, 1);
    const struct op *pool = pool_of_places(call->program, call->op);
    if (pool)
        unpool_known(call, queue, pool, unpool_slope{}, call_reals(call, AT_max_unpool_y));
    else
        enqueue(queue, max_unpool_plane, dim3((unsigned)planes), dim3(THREADS),
                call_count(call, AT_max_unpool_x) / planes,
                call_count(call, AT_max_unpool_y) / planes,
                (const float *)call_reals(call, AT_max_unpool_x),
                call_integers(call, AT_max_unpool_places), call_reals(call, AT_max_unpool_y));
}

/* The op is the activation_grad behind a max_unpool. */
void launch_max_unpool_activate_grad(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.activate_grad;
    const struct call unpool = fusion_call(call, call->op - 1);
    unpool_known(
        &unpool, queue, pool_of_places(call->program, unpool.op),
        unpool_slope{call_reals(call, AT_max_unpool_x), (enum activation)attr.function, attr.alpha},
        call_reals(call, AT_max_unpool_y));
}

/* What the max_unpool reads must still be there when the result is written. */
bool takes_max_unpool_activate_grad(const struct choice *choice)
{
    const struct program *program = choice->program;
    const struct op *unpool = choice->op, *grad = unpool + 1;
    if (choice_has_16bit(choice, grad) ||
        op_input(program, grad, 1) != op_output(program, unpool, 0) ||
        !pool_of_places(program, unpool) || !fusion_passes(program, unpool))
        return false;
    for (int32_t i = 0; i < unpool->inputs; i++)
        if (fusion_meets(program, op_output(program, grad, 0), op_input(program, unpool, i)))
            return false;
    return true;
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
    const int64_t planes =
        call_dim(call, AT_max_unpool_grad_dy, 0) * call_dim(call, AT_max_unpool_grad_dy, 1);
    const int64_t count = call_count(call, AT_max_unpool_grad_dx);
    enqueue(queue, max_unpool_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            count / planes, call_count(call, AT_max_unpool_grad_dy) / planes,
            (const float *)call_reals(call, AT_max_unpool_grad_dy),
            call_integers(call, AT_max_unpool_grad_places),
            call_reals(call, AT_max_unpool_grad_dx));
}

/* What the sum over a patch is divided by. */
static __device__ float divisor(const struct patch &patch, bool include_pad)
{
    return include_pad ? (float)patch.padded
                       : (float)((patch.bottom - patch.top) * (patch.right - patch.left));
}

template <int WIDE>
static __global__ void average_pool_each(int64_t count, struct pooling pooling, struct image from,
                                         struct image to, bool include_pad, const float *x,
                                         float *y)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<WIDE>(to, index);
        const struct patch patch = patch_at(pooling, (int32_t)at.row, (int32_t)at.column);
        const float by = divisor(patch, include_pad);
        vector<WIDE> sum = {};
        for (int32_t row = patch.top; row < patch.bottom; row++)
            for (int32_t column = patch.left; column < patch.right; column++) {
                const vector<WIDE> value = *(
                    const vector<WIDE> *)(x + from.at(at.sample, (int32_t)at.channel, row, column));
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    sum.at[i] += value.at[i];
            }
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            sum.at[i] /= by;
        *(vector<WIDE> *)(y + index * WIDE) = sum;
    }
}

void launch_average_pool(const struct call *call, struct queue *queue)
{
    const struct image from = image_of(call, 0), to = image_of(call, 1);
    const int wide = wide_of(from, to);
    const int64_t count = call_count(call, AT_average_pool_y) / wide;
    enqueue(queue, wide > 1 ? average_pool_each<NHWC_VECTOR> : average_pool_each<1>,
            dim3(blocks_striding(count)), dim3(THREADS), count, pooling_of(call, 0, 1), from, to,
            call->op->attr.average_pool.include_pad != 0,
            (const float *)call_reals(call, AT_average_pool_x),
            call_reals(call, AT_average_pool_y));
}

/* One thread a pixel: the shares of all windows that contain it, in their order. */
template <int WIDE>
static __global__ void average_pool_grad_each(int64_t count, struct pooling pooling,
                                              struct image pooled, struct image to,
                                              bool include_pad, const float *dy, float *dx)
{
    FOR_EACH(index, count)
    {
        const struct pixel at = pixel_of<WIDE>(to, index);
        const int32_t row = (int32_t)at.row + pooling.pad_h;
        const int32_t column = (int32_t)at.column + pooling.pad_w;
        vector<WIDE> sum = {};
        for (int32_t p = first_window(row, pooling.window_h, pooling.stride_h);
             p < pooling.rows && p * pooling.stride_h <= row; p++)
            for (int32_t q = first_window(column, pooling.window_w, pooling.stride_w);
                 q < pooling.columns && q * pooling.stride_w <= column; q++) {
                const float by = divisor(patch_at(pooling, p, q), include_pad);
                const vector<WIDE> value =
                    *(const vector<WIDE> *)(dy + pooled.at(at.sample, (int32_t)at.channel, p, q));
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    sum.at[i] += value.at[i] / by;
            }
        *(vector<WIDE> *)(dx + index * WIDE) = sum;
    }
}

void launch_average_pool_grad(const struct call *call, struct queue *queue)
{
    const struct image pooled = image_of(call, 0), to = image_of(call, 1);
    const int wide = wide_of(pooled, to);
    const int64_t count = call_count(call, AT_average_pool_grad_dx) / wide;
    enqueue(queue, wide > 1 ? average_pool_grad_each<NHWC_VECTOR> : average_pool_grad_each<1>,
            dim3(blocks_striding(count)), dim3(THREADS), count, pooling_of(call, 1, 0), pooled, to,
            call->op->attr.average_pool_grad.include_pad != 0,
            (const float *)call_reals(call, AT_average_pool_grad_dy),
            call_reals(call, AT_average_pool_grad_dx));
}
