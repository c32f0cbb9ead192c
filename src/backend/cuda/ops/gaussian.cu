/* gaussian.cu: codes that are drawn from a normal distribution, and how far that is from the
 * standard one. moments is [n, 2, k]: means, then logarithms of variances. */
#include "backend/cuda/device/host_device.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/plan/kernel_families.h"
#include "base/rng.h"

/* Where the mean of element `index` of z stands; the log variance is `width` behind it. */
static __device__ int64_t mean_of(int64_t index, int64_t width)
{
    return index + index / width * width;
}

static __global__ void draw_each(int64_t count, int64_t width, const struct control *control,
                                 uint32_t stream, const int32_t *rows, const float *moments,
                                 float *z)
{
    const struct rng_key key = {control->seed, stream, control->step};
    FOR_EACH(index, count)
    {
        const int64_t mean = mean_of(index, width);
        const float deviate =
            rng_normal(key, (uint32_t)rows[index / width], (uint32_t)(index % width));
        z[index] = moments[mean] + expf(moments[mean + width] * 0.5f) * deviate;
    }
}

void launch_draw_normal(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_draw_normal_z);
    enqueue(queue, draw_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_draw_normal_z, 1), (const struct control *)call->control,
            (uint32_t)call->op->attr.draw_normal.stream, call_integers(call, AT_draw_normal_rows),
            (const float *)call_reals(call, AT_draw_normal_moments),
            call_reals(call, AT_draw_normal_z));
}

static __global__ void draw_grad_each(int64_t count, int64_t width, const float *moments,
                                      const float *z, const float *dz, float *dmoments)
{
    FOR_EACH(index, count)
    {
        const int64_t mean = mean_of(index, width);
        dmoments[mean] = dz[index];
        dmoments[mean + width] = dz[index] * (z[index] - moments[mean]) * 0.5f;
    }
}

void launch_draw_normal_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_draw_normal_grad_z);
    enqueue(queue, draw_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_draw_normal_grad_z, 1),
            (const float *)call_reals(call, AT_draw_normal_grad_moments),
            (const float *)call_reals(call, AT_draw_normal_grad_z),
            (const float *)call_reals(call, AT_draw_normal_grad_dz),
            call_reals(call, AT_draw_normal_grad_dmoments));
}

/* What one number of a code adds to the divergence, twice. */
struct code_distance {
    const float *moments;
    int64_t width;
    __device__ float at(int64_t index) const
    {
        const int64_t place = mean_of(index, width);
        const float mean = moments[place], log = moments[place + width];
        return mean * mean + expf(log) - 1.0f - log;
    }
};

void launch_divergence(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_divergence_moments) / 2,
                  batch = call_dim(call, AT_divergence_moments, 0);
    reduce(queue, count,
           code_distance{call_reals(call, AT_divergence_moments),
                         call_dim(call, AT_divergence_moments, 2)},
           0.5f / (float)batch, (float *)call->workspace, call_reals(call, AT_divergence_loss));
}

static __global__ void divergence_grad_each(int64_t count, int64_t width, float scale,
                                            const float *moments, float *dmoments)
{
    FOR_EACH(index, count)
    {
        const int64_t mean = mean_of(index, width);
        dmoments[mean] = scale * moments[mean];
        dmoments[mean + width] = scale * (expf(moments[mean + width]) - 1.0f) * 0.5f;
    }
}

void launch_divergence_grad(const struct call *call, struct queue *queue)
{
    const int64_t count = call_count(call, AT_divergence_grad_moments) / 2;
    enqueue(queue, divergence_grad_each, dim3(blocks_striding(count)), dim3(THREADS), count,
            call_dim(call, AT_divergence_grad_moments, 2),
            call->op->attr.divergence_grad.scale /
                (float)call_dim(call, AT_divergence_grad_moments, 0),
            (const float *)call_reals(call, AT_divergence_grad_moments),
            call_reals(call, AT_divergence_grad_dmoments));
}
