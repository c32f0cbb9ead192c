/* norm.cu: batch-norm over all but the channel. One block a channel: its n × inner values are
 * summed in a fixed order. */
#include "backend/cuda/families.h"
#include "backend/cuda/reduce.h"

/* The values of one channel of x[n, c, inner], numbered 0 … n·inner - 1. */
struct channel {
    int64_t n, channels, inner;
    __device__ int64_t count() const
    {
        return n * inner;
    }
    __device__ int64_t index(int64_t value) const
    {
        return (value / inner * channels + blockIdx.x) * inner + value % inner;
    }
};

static struct channel channel_of(const struct call *call)
{
    const int64_t n = call_dim(call, 0, 0), channels = call_dim(call, 0, 1);
    const struct channel channel = {n, channels, call_count(call, 0) / n / channels};
    return channel;
}

#define FOR_CHANNEL(value, channel)                                                                \
    for (int64_t value = threadIdx.x; value < (channel).count(); value += THREADS)

struct norm_training {
    const float *x, *gamma, *beta;
    float *y, *saved_mean, *saved_scale, *mean, *variance;
    float epsilon, momentum;
};

/* The variance is Σ(x - mean)² in a second pass: no cancellation. The running variance takes the
 * unbiased one. */
static __global__ void __launch_bounds__(THREADS)
    batch_norm_channel(struct channel channel, struct norm_training norm)
{
    const unsigned c = blockIdx.x;
    const float count = (float)channel.count();
    float sum = 0.0f, squares = 0.0f;
    FOR_CHANNEL(value, channel)
    sum += norm.x[channel.index(value)];
    const float mean = block_sum(sum) / count;
    FOR_CHANNEL(value, channel)
    {
        float difference = norm.x[channel.index(value)] - mean;
        squares += difference * difference;
    }
    squares = block_sum(squares);
    const float variance = squares / count, scale = 1.0f / sqrtf(variance + norm.epsilon);
    FOR_CHANNEL(value, channel)
    {
        int64_t index = channel.index(value);
        norm.y[index] = (norm.x[index] - mean) * (norm.gamma[c] * scale) + norm.beta[c];
    }
    if (threadIdx.x > 0)
        return;
    const float unbiased = count > 1.0f ? squares / (count - 1.0f) : variance;
    norm.saved_mean[c] = mean;
    norm.saved_scale[c] = scale;
    norm.mean[c] += norm.momentum * (mean - norm.mean[c]);
    norm.variance[c] += norm.momentum * (unbiased - norm.variance[c]);
}

void launch_batch_norm(const struct call *call, struct queue *queue)
{
    const struct channel channel = channel_of(call);
    const struct norm_training norm = {call_reals(call, 0),
                                       call_reals(call, 1),
                                       call_reals(call, 2),
                                       call_reals(call, 5),
                                       call_reals(call, 6),
                                       call_reals(call, 7),
                                       call_reals(call, 8),
                                       call_reals(call, 9),
                                       call->op->attr.batch_norm.epsilon,
                                       call->op->attr.batch_norm.momentum};
    enqueue(queue, batch_norm_channel, dim3((unsigned)channel.channels), dim3(THREADS), channel,
            norm);
}

static __global__ void __launch_bounds__(THREADS)
    batch_norm_fixed_channel(struct channel channel, const float *x, const float *gamma,
                             const float *beta, const float *mean, const float *variance,
                             float epsilon, float *y)
{
    const unsigned c = blockIdx.x;
    const float scale = gamma[c] / sqrtf(variance[c] + epsilon);
    FOR_CHANNEL(value, channel)
    {
        int64_t index = channel.index(value);
        y[index] = (x[index] - mean[c]) * scale + beta[c];
    }
}

void launch_batch_norm_fixed(const struct call *call, struct queue *queue)
{
    const struct channel channel = channel_of(call);
    enqueue(queue, batch_norm_fixed_channel, dim3((unsigned)channel.channels), dim3(THREADS),
            channel, (const float *)call_reals(call, 0), (const float *)call_reals(call, 1),
            (const float *)call_reals(call, 2), (const float *)call_reals(call, 3),
            (const float *)call_reals(call, 4), call->op->attr.batch_norm_fixed.epsilon,
            call_reals(call, 5));
}

struct norm_gradient {
    const float *x, *gamma, *saved_mean, *saved_scale, *dy;
    float *dx, *dgamma, *dbeta; /* dx may be NULL */
    bool accumulate;
};

/* dbeta = Σdy, dgamma = Σdy·x̂, dx = gamma·scale·(dy - dbeta/count - x̂·dgamma/count). */
static __global__ void __launch_bounds__(THREADS)
    batch_norm_grad_channel(struct channel channel, struct norm_gradient norm)
{
    const unsigned c = blockIdx.x;
    const float count = (float)channel.count();
    const float mean = norm.saved_mean[c], scale = norm.saved_scale[c];
    float dbeta = 0.0f, dgamma = 0.0f;
    FOR_CHANNEL(value, channel)
    {
        int64_t index = channel.index(value);
        dbeta += norm.dy[index];
        dgamma += norm.dy[index] * ((norm.x[index] - mean) * scale);
    }
    dbeta = block_sum(dbeta);
    dgamma = block_sum(dgamma);
    if (norm.dx)
        FOR_CHANNEL(value, channel)
        {
            int64_t index = channel.index(value);
            float centred = (norm.x[index] - mean) * scale;
            norm.dx[index] = norm.gamma[c] * scale *
                             (norm.dy[index] - dbeta / count - centred * (dgamma / count));
        }
    if (threadIdx.x > 0)
        return;
    norm.dgamma[c] = norm.accumulate ? norm.dgamma[c] + dgamma : dgamma;
    norm.dbeta[c] = norm.accumulate ? norm.dbeta[c] + dbeta : dbeta;
}

void launch_batch_norm_grad(const struct call *call, struct queue *queue)
{
    const struct channel channel = channel_of(call);
    const struct norm_gradient norm = {
        call_reals(call, 0), call_reals(call, 1), call_reals(call, 2),
        call_reals(call, 3), call_reals(call, 4), call_reals(call, 5),
        call_reals(call, 6), call_reals(call, 7), call->op->attr.batch_norm_grad.accumulate != 0};
    enqueue(queue, batch_norm_grad_channel, dim3((unsigned)channel.channels), dim3(THREADS),
            channel, norm);
}
