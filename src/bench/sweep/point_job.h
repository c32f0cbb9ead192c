/* point_job.h: one configuration of ours as a job that is ready, for whoever times it by itself. */
#ifndef PRONY_BENCH_SWEEP_POINT_JOB_H
#define PRONY_BENCH_SWEEP_POINT_JOB_H

#include "bench/sweep/workload.h"

/* A zeroed struct is closed. */
struct point_job {
    struct workload workload;
    struct job *job;
};

/* Opens and prepares it. STATUS_UNSUPPORTED, with the reason, where it cannot run here. */
enum status point_job_open(const struct registry *registry, const struct point *point,
                           struct point_job *out);
void point_job_close(struct point_job *job);

#endif
