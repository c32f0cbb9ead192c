/* ref_update.c: the rate of a step, the norm of its gradients, its count; ref_optimiser.c has the
 * optimisers. */
#include "backend/cpu/real.h"
#include "core/schedule.h"

KERNEL(schedule)
{
    const int32_t warmup = call->op->attr.schedule.warmup, period = call->op->attr.schedule.period;
    double factor =
        schedule_factor(call->op->attr.schedule.kind, warmup, period,
                        (double)call->op->attr.schedule.factor, *integers(call, AT_schedule_count));
    *reals(call, AT_schedule_rate) =
        (real)(call->control->rate * (double)call->op->attr.schedule.scale * factor);
}

/* All gradients together are scaled down to the norm `limit` when theirs is larger. */
KERNEL(clip)
{
    real sum = 0, limit = (real)call->op->attr.clip.limit;
    for (int g = 0; g < call->op->inputs; g++)
        for (int64_t i = 0, n = count(call, g); i < n; i++)
            sum += reals(call, g)[i] * reals(call, g)[i];
    real norm = real_sqrt(sum);
    if (!(norm > limit))
        return;
    for (int g = 0; g < call->op->inputs; g++)
        for (int64_t i = 0, n = count(call, g); i < n; i++)
            reals(call, g)[i] *= limit / norm;
}

/* The step is done: counted for this optimiser, and for everything random on the instance. */
KERNEL(tick)
{
    ++*(int32_t *)call->data[AT_tick_count_out];
    call->control->step++;
}
