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

/* How long each part of an iteration takes: medians of a few steps of a plan of its own, which is
 * watched and therefore a little slower than the one that is timed. NaN for what the backend does
 * not tell or the program does not have. The job is one of this kind, prepared. */
enum status job_network_parts(struct job *job, double parts_ns[PART_COUNT]);

/* From the initial parameters and the first batch again, whatever ran before: the task's check. The
 * job is one of this kind, prepared. */
enum status job_network_outcome(struct job *job, struct outcome *out);

/* Runs the task's check on `backend` (the reference) and keeps the outcome in the task; once.
 * STATUS_UNSUPPORTED when that would take too long. */
enum status job_network_refer(struct task *task, const struct backend *backend);

#endif
