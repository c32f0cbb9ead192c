/* job.h: the bench times jobs: a network's training or inference, a recipe, one kernel case, a peer
 * process, a burst of calibration. measure and --against know nothing else. */
#ifndef PRONY_CORE_JOB_H
#define PRONY_CORE_JOB_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "core/device_info.h"

#include <stdint.h>

struct job;

/* A job's description of itself. What it does not tell is 0, NULL or "". */
struct job_info {
    struct device_info device;
    const char *const *kernels; /* that ran, each once; in the caller's arena */
    size_t kernel_count;
    int64_t launches;            /* of an iteration */
    const char *storage;         /* that its samples are read from: "nvme"; "": nobody tells */
    const struct json *software; /* of a peer: its own words, valid while the job lives */
    const struct json *tuning;   /* … the settings that it chose; NULL: none */
    const char *unit_name;       /* … what it computes on; NULL: it does not say */
    const char *handicap;        /* … why it cannot run as its users run it */
};

struct job_kind {
    const char *name;
    /* Everything slow; called once, before run. */
    enum status (*prepare)(struct job *job);
    /* Runs `iterations` and waits for them; *elapsed_ns is their time by the job's own clock: a
     * peer's excludes the pipe. */
    enum status (*run)(struct job *job, int64_t iterations, uint64_t *elapsed_ns);
    /* Takes memory and processes anew, as a second start would. Their place in memory is luck that
     * is worth per cents, and only several draws average it out. *process is set where the work is
     * done by another process. NULL: it cannot. */
    enum status (*renew)(struct job *job, int *process);
    /* Is the result right? STATUS_WRONG with what differs; STATUS_UNSUPPORTED, with why, when there
     * is no verdict. *error is the largest relative difference found. */
    enum status (*check)(struct job *job, double *error);
    enum status (*describe)(struct job *job, struct arena *arena, struct job_info *out);
    void (*close)(struct job *job);
};

/* The first member of every job's own struct. */
struct job {
    const struct job_kind *kind;
};

#endif
