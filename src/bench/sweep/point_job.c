/* point_job.c: see point_job.h. */
#include "bench/sweep/point_job.h"

#include "bench/sweep/entry.h"

#include <string.h>

static enum status open_job(const struct registry *registry, const struct point *point,
                            struct point_job *out)
{
    const struct bench bench = {.registry = registry};
    struct network_options options = {.fusion = point_is(point, CHOICE_fusion_on),
                                      .recompute = point_is(point, CHOICE_recompute_on)};
    TRY(entry_check(&bench, point));
    TRY(entry_device(&bench, point, &options.backend, &options.device));
    TRY(entry_samples(point, &options));
    TRY(workload_open(point, &out->workload));
    TRY(task_fill(out->workload.task, strcmp(point->unit, "gpu") != 0));
    TRY(job_network_open(out->workload.task, &options, &out->job));
    return out->job->kind->prepare(out->job);
}

enum status point_job_open(const struct registry *registry, const struct point *point,
                           struct point_job *out)
{
    *out = (struct point_job){0};
    enum status status = open_job(registry, point, out);
    if (status != STATUS_OK)
        point_job_close(out);
    return status;
}

void point_job_close(struct point_job *job)
{
    if (job->job)
        job->job->kind->close(job->job);
    workload_close(&job->workload);
    *job = (struct point_job){0};
}
