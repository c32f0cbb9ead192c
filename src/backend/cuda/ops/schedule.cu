/* schedule.cu: schedule, clip (all gradients together), tick (counts the step). */
#include "backend/cuda/device/host_device.h"
#include "backend/cuda/device/reduce.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"
#include "core/schedule.h"

struct square {
    const float *data;
    __device__ float at(int64_t index) const
    {
        return data[index] * data[index];
    }
};

/* One thread: there are few tensors. */
static __global__ void clip_factor(int32_t tensors, const float *squares, float limit,
                                   const struct loss_scale *loss_scale, float *factor)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < tensors; i++)
        sum += squares[i];
    float norm = sqrtf(sum) * loss_scale_down(loss_scale);
    *factor = norm > limit ? limit / norm : 1.0f;
}

static __global__ void clip_scale(int64_t count, float *g, const float *factor)
{
    FOR_EACH(index, count)
    g[index] *= *factor;
}

/* Workspace: partial sums of one tensor at a time, the sum of each, the factor for all. */
uint64_t workspace_clip(const struct program *, const struct op *op)
{
    return (REDUCE_BLOCKS + (uint64_t)op->inputs + 1) * sizeof(float);
}

void launch_clip(const struct call *call, struct queue *queue)
{
    const int32_t tensors = call->op->inputs;
    float *partial = (float *)call->workspace, *squares = partial + REDUCE_BLOCKS;
    float *factor = squares + tensors;

    for (int32_t i = 0; i < tensors; i++)
        reduce(queue, call_count(call, i), square{call_reals(call, i)}, 1.0f, partial, squares + i);
    enqueue(queue, clip_factor, dim3(1), dim3(1), tensors, (const float *)squares,
            call->op->attr.clip.limit, call_loss_scale(call), factor);
    for (int32_t i = 0; i < tensors; i++)
        enqueue(queue, clip_scale, dim3(blocks_striding(call_count(call, i))), dim3(THREADS),
                call_count(call, i), call_reals(call, i), (const float *)factor);
}

static __global__ void schedule_once(const int32_t *count, const struct control *control,
                                     int32_t kind, int32_t warmup, int32_t period, float factor,
                                     float scale, float *rate)
{
    double value = schedule_factor(kind, warmup, period, (double)factor, *count);
    *rate = (float)(control->rate * (double)scale * value);
}

void launch_schedule(const struct call *call, struct queue *queue)
{
    const auto &attr = call->op->attr.schedule;
    enqueue(queue, schedule_once, dim3(1), dim3(1), call_integers(call, AT_schedule_count),
            (const struct control *)call->control, attr.kind, attr.warmup, attr.period, attr.factor,
            attr.scale, call_reals(call, AT_schedule_rate));
}

static __global__ void tick_once(int32_t *count, struct control *control)
{
    ++*count;
    control->step++;
}

void launch_tick(const struct call *call, struct queue *queue)
{
    enqueue(queue, tick_once, dim3(1), dim3(1), (int32_t *)call_reals(call, AT_tick_count_out),
            call->control);
}
