/* loss.cu: softmax, losses (means over the batch), their gradients, and counts of right answers. */
#include "backend/cuda/device/activation.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/plan/kernel_families.h"

uint64_t workspace_loss(const struct program *, const struct op *)
{
    return REDUCE_BLOCKS * sizeof(float);
}

struct squared_error {
    const float *y, *target;
    __device__ float at(int64_t index) const
    {
        float difference = y[index] - target[index];
        return difference * difference;
    }
};

void launch_mse(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_mse_y);
    reduce(queue, count, squared_error{call_reals(call, AT_mse_y), call_reals(call, AT_mse_target)},
           1.0f / (float)count, (float *)call->workspace, call_reals(call, AT_mse_loss));
}

static __global__ void mse_grad_each(int64_t count, float factor, const float *y,
                                     const float *target, float *dy)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    dy[index] = factor * (y[index] - target[index]);
}

void launch_mse_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_mse_grad_y);
    enqueue_early(queue, mse_grad_each, dim3(blocks_striding(count)), dim3(THREADS), 0, count,
                  call->op->attr.mse_grad.scale * 2.0f / (float)count,
                  (const float *)call_reals(call, AT_mse_grad_y),
                  (const float *)call_reals(call, AT_mse_grad_target),
                  call_reals(call, AT_mse_grad_dy));
}

/* One block a row: its softmax, where causal over as much of it as row t of [t, t] sees: the rest
 * is 0. `losses`, where there is one, gets the sample's loss, ln Σexp(x - max) - (x[label] - max).
 */
static __global__ void __launch_bounds__(THREADS)
    softmax_row(int64_t k, bool causal, const float *x, float *p, const int32_t *label,
                float *losses)
{
    allow_next();
    await_last();
    const int64_t seen = causal ? blockIdx.x % k + 1 : k;
    const float *row = x + (int64_t)blockIdx.x * k;
    float *out = p + (int64_t)blockIdx.x * k;
    float most = -INFINITY, sum = 0.0f;
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < seen; j += THREADS)
        most = fmaxf(most, row[j]);
    most = block_max(most);
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < seen; j += THREADS)
        sum += expf(row[j] - most);
    sum = block_sum(sum);
#pragma unroll 4
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) /* again: quicker than to keep them */
        out[j] = expf(row[j] - most) / sum;
    for (int64_t j = seen + threadIdx.x; j < k; j += THREADS)
        out[j] = 0.0f;
    if (losses && threadIdx.x == 0)
        losses[blockIdx.x] = logf(sum) - (row[label[blockIdx.x]] - most);
}

/* … of rows of at most 32 numbers: a warp a row. */
enum { FEW_CLASSES = 32 };

static __global__ void __launch_bounds__(THREADS)
    softmax_few(int64_t n, int k, const float *x, float *p, const int32_t *label, float *losses)
{
    allow_next();
    await_last();
    const int64_t sample = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    const int lane = (int)threadIdx.x % 32;
    if (sample >= n)
        return;
    const float value = lane < k ? x[sample * k + lane] : -INFINITY;
    float most = value;
    for (int half = 16; half > 0; half /= 2)
        most = fmaxf(most, __shfl_xor_sync(UINT32_MAX, most, half));
    const float power = lane < k ? expf(value - most) : 0.0f;
    float sum = power;
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_xor_sync(UINT32_MAX, sum, half);
    if (lane < k)
        p[sample * k + lane] = power / sum;
    if (lane == label[sample])
        losses[sample] = logf(sum) - (value - most);
}

void launch_softmax(const struct call *call, struct queue *queue)
{
    enqueue(queue, softmax_row, dim3((unsigned)call_dim(call, AT_softmax_x, 0)), dim3(THREADS),
            call_dim(call, AT_softmax_x, 1), false, (const float *)call_reals(call, AT_softmax_x),
            call_reals(call, AT_softmax_y), (const int32_t *)NULL, (float *)NULL);
}

void launch_softmax_causal(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_softmax_causal_x, 0),
                  t = call_dim(call, AT_softmax_causal_x, 1);
    enqueue(queue, softmax_row, dim3((unsigned)(n * t)), dim3(THREADS), t, true,
            (const float *)call_reals(call, AT_softmax_causal_x),
            call_reals(call, AT_softmax_causal_y), (const int32_t *)NULL, (float *)NULL);
}

/* dx = y·(dy - Σ dy·y), one block a row. */
static __global__ void __launch_bounds__(THREADS)
    softmax_grad_row(int64_t k, const float *y, const float *dy, float *dx)
{
    const int64_t row = (int64_t)blockIdx.x * k;
    float sum = 0.0f;
    for (int64_t j = threadIdx.x; j < k; j += THREADS)
        sum += dy[row + j] * y[row + j];
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < k; j += THREADS)
        dx[row + j] = y[row + j] * (dy[row + j] - sum);
}

void launch_softmax_grad(const struct call *call, struct queue *queue)
{
    enqueue(queue, softmax_grad_row, dim3((unsigned)call_dim(call, AT_softmax_grad_y, 0)),
            dim3(THREADS), call_dim(call, AT_softmax_grad_y, 1),
            (const float *)call_reals(call, AT_softmax_grad_y),
            (const float *)call_reals(call, AT_softmax_grad_dy),
            call_reals(call, AT_softmax_grad_dx));
}

/* Workspace: partial sums, then the loss of each sample. */
uint64_t workspace_cross_entropy(const struct program *program, const struct op *op)
{
    const struct tensor *x = &program->tensors[op_input(program, op, 0)];
    return (REDUCE_BLOCKS + (uint64_t)x->shape.dim[0]) * sizeof(float);
}

void launch_cross_entropy(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_cross_entropy_x, 0),
                  k = call_dim(call, AT_cross_entropy_x, 1);
    float *partial = (float *)call->workspace, *losses = partial + REDUCE_BLOCKS;
    if (k <= FEW_CLASSES)
        enqueue_early(queue, softmax_few, dim3(blocks_for(n * 32, THREADS)), dim3(THREADS), 0, n,
                      (int)k, (const float *)call_reals(call, AT_cross_entropy_x),
                      call_reals(call, AT_cross_entropy_p),
                      call_integers(call, AT_cross_entropy_label), losses);
    else
        enqueue_early(queue, softmax_row, dim3((unsigned)n), dim3(THREADS), 0, k, false,
                      (const float *)call_reals(call, AT_cross_entropy_x),
                      call_reals(call, AT_cross_entropy_p),
                      call_integers(call, AT_cross_entropy_label), losses);
    reduce(queue, n, reduce_value{losses}, 1.0f / (float)n, partial,
           call_reals(call, AT_cross_entropy_loss));
}

static __global__ void cross_entropy_grad_each(int64_t count, int64_t k, float factor,
                                               const float *p, const int32_t *label, float *dx)
{
    allow_next();
    await_last();
    FOR_EACH(index, count)
    {
        uint32_t column;
        const int64_t sample = split_number(index, (uint32_t)k, &column);
        dx[index] = factor * (p[index] - ((int64_t)column == label[sample] ? 1.0f : 0.0f));
    }
}

void launch_cross_entropy_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_cross_entropy_grad_p),
                  n = call_dim(call, AT_cross_entropy_grad_p, 0),
                  k = call_dim(call, AT_cross_entropy_grad_p, 1);
    enqueue_early(queue, cross_entropy_grad_each, dim3(blocks_striding(count)), dim3(THREADS), 0,
                  count, k, call->op->attr.cross_entropy_grad.scale / (float)n,
                  (const float *)call_reals(call, AT_cross_entropy_grad_p),
                  call_integers(call, AT_cross_entropy_grad_label),
                  call_reals(call, AT_cross_entropy_grad_dx));
}

/* Of logits: max(x, 0) - x·target + ln(1 + exp(-|x|)), which never overflows. */
struct binary_error {
    const float *x, *target;
    __device__ float at(int64_t index) const
    {
        float value = x[index];
        return fmaxf(value, 0.0f) - value * target[index] + log1pf(expf(-fabsf(value)));
    }
};

void launch_binary_cross_entropy(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_binary_cross_entropy_x);
    reduce(queue, count,
           binary_error{call_reals(call, AT_binary_cross_entropy_x),
                        call_reals(call, AT_binary_cross_entropy_target)},
           1.0f / (float)count, (float *)call->workspace,
           call_reals(call, AT_binary_cross_entropy_loss));
}

static __global__ void binary_cross_entropy_grad_each(int64_t count, float factor, const float *x,
                                                      const float *target, float *dx)
{
    FOR_EACH(index, count)
    dx[index] = factor * (sigmoid(x[index]) - target[index]);
}

void launch_binary_cross_entropy_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_binary_cross_entropy_grad_x);
    enqueue(queue, binary_cross_entropy_grad_each, dim3(blocks_striding(count)), dim3(THREADS),
            count, call->op->attr.binary_cross_entropy_grad.scale / (float)count,
            (const float *)call_reals(call, AT_binary_cross_entropy_grad_x),
            (const float *)call_reals(call, AT_binary_cross_entropy_grad_target),
            call_reals(call, AT_binary_cross_entropy_grad_dx));
}

/* The first of equal largest answers counts. */
struct class_is_right {
    const float *x; /* [n, k] */
    const int32_t *label;
    int64_t k;
    __device__ float at(int64_t sample) const
    {
        const float *row = x + sample * k;
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++)
            if (row[j] > row[best])
                best = j;
        return best == label[sample] ? 1.0f : 0.0f;
    }
};

/* An answer and its class; what is no number is passed over. */
struct answer {
    float value;
    int32_t place;
    __device__ void meet(float other, int32_t at)
    {
        if (other > value || (other == value && at < place)) {
            value = other;
            place = at;
        }
    }
};

/* … of many classes: one block a sample. Nothing is larger than a first answer that is no number.
 */
static __global__ void __launch_bounds__(THREADS)
    class_is_right_row(int32_t k, const float *x, const int32_t *label, float *right)
{
    __shared__ struct answer found[THREADS / 32];
    const float *row = x + (int64_t)blockIdx.x * k;
    struct answer best = {-INFINITY, INT32_MAX};
#pragma unroll 8
    for (int32_t j = (int32_t)threadIdx.x; j < k; j += THREADS)
        best.meet(row[j], j);
    for (int half = 16; half > 0; half /= 2)
        best.meet(__shfl_xor_sync(UINT32_MAX, best.value, half),
                  __shfl_xor_sync(UINT32_MAX, best.place, half));
    if (threadIdx.x % 32 == 0)
        found[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int warp = 1; warp < THREADS / 32; warp++)
        best.meet(found[warp].value, found[warp].place);
    const int32_t place = isnan(row[0]) ? 0 : best.place;
    right[blockIdx.x] = place == label[blockIdx.x] ? 1.0f : 0.0f;
}

void launch_right_class(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_right_class_x, 0), k = call_dim(call, AT_right_class_x, 1);
    const float *x = call_reals(call, AT_right_class_x);
    const int32_t *label = call_integers(call, AT_right_class_label);
    float *partial = (float *)call->workspace, *right = partial + REDUCE_BLOCKS;
    if (k <= FEW_CLASSES) {
        reduce(queue, n, class_is_right{x, label, k}, 1.0f, partial,
               call_reals(call, AT_right_class_right));
        return;
    }
    enqueue(queue, class_is_right_row, dim3((unsigned)n), dim3(THREADS), (int32_t)k, x, label,
            right);
    reduce(queue, n, reduce_value{right}, 1.0f, partial, call_reals(call, AT_right_class_right));
}

/* Nearer to its target than half the distance between two levels. */
struct level_is_right {
    const float *y, *target; /* [n, 1] */
    float half;
    __device__ float at(int64_t sample) const
    {
        return fabsf(y[sample] - target[sample]) < half ? 1.0f : 0.0f;
    }
};

void launch_right_level(const struct call *call, struct queue *queue)
{
    const level_is_right term = {call_reals(call, AT_right_level_y),
                                 call_reals(call, AT_right_level_target),
                                 0.5f / (float)(call->op->attr.right_level.classes - 1)};
    reduce(queue, call_dim(call, AT_right_level_y, 0), term, 1.0f, (float *)call->workspace,
           call_reals(call, AT_right_level_right));
}
