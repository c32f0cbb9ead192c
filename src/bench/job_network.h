/* job_network.h: a job that is a network's training or inference on one of our backends. */
#ifndef PRONY_BENCH_JOB_NETWORK_H
#define PRONY_BENCH_JOB_NETWORK_H

#include "bench/task.h"
#include "core/backend.h"
#include "core/job.h"

struct network_options {
    const struct backend *backend;
    struct device_options device;
    bool fusion;
};

/* The task must outlive the job. Opens nothing yet. */
enum status job_network_open(struct task *task, const struct network_options *options,
                             struct job **out);

/* From the initial parameters and the first batch again, whatever ran before: the task's check. The
 * job is one of this kind, prepared. */
enum status job_network_outcome(struct job *job, struct outcome *out);

/* Runs the task's check on `backend` (the reference) and keeps the outcome in the task; once.
 * STATUS_UNSUPPORTED when that would take too long. */
enum status job_network_refer(struct task *task, const struct backend *backend);

#endif
