/* workload.c: see workload.h. */
#include "bench/sweep/workload.h"

#include <string.h>

enum status workload_open(const struct point *point, struct workload *out)
{
    const struct task_options options = {
        .model = point->model,
        .phase = point_is(point, CHOICE_phase_training) ? PHASE_TRAINING : PHASE_INFERENCE,
        .batch = (int32_t)point->batch,
        .optimiser = point->optimiser,
        .precision = point->precision};
    *out = (struct workload){0};
    return task_begin(&options, &out->task);
}

enum status workload_fill(struct workload *workload, const struct bench *bench, bool host)
{
    TRY(task_fill(workload->task, host));
    if (!workload->reference.name[0])
        reference_choose(&workload->reference, bench, workload->task);
    return STATUS_OK;
}

void workload_close(struct workload *workload)
{
    task_close(workload->task);
    *workload = (struct workload){0};
}
