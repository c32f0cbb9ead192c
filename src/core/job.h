/* job.h: what the bench times is always a job: a network's training or inference, a recipe, one
 * kernel case, a peer process, a burst of calibration. measure and --against know nothing else. */
#ifndef PRONY_CORE_JOB_H
#define PRONY_CORE_JOB_H

#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

struct job;

struct job_kind {
    const char *name;
    /* Everything slow; called once, before run. */
    enum status (*prepare)(struct job *job);
    /* Runs `iterations` and waits for them; *elapsed_ns is their time by the job's own clock: a
     * peer's excludes the pipe. */
    enum status (*run)(struct job *job, int64_t iterations, uint64_t *elapsed_ns);
    /* Takes memory and processes anew, as a second start would: where these lie is luck, which is
     * worth per cents, and only several draws average it out. *process is set where the work is
     * done by another process. NULL: it cannot. */
    enum status (*renew)(struct job *job, int *process);
    /* Is the result right? STATUS_WRONG with what differs; STATUS_UNSUPPORTED when nothing can be
     * said, with why. *error is the largest relative difference found. */
    enum status (*check)(struct job *job, double *error);
    /* Adds members to the open JSON object: "device", "kernels", "software". */
    void (*describe)(struct job *job, struct json_writer *out);
    void (*close)(struct job *job);
};

/* The first member of every job's own struct. */
struct job {
    const struct job_kind *kind;
};

#endif
