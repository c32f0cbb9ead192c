/* job_network.h: a job that is a network's training or inference on one of our backends. */
#ifndef PRONY_BENCH_JOB_JOB_NETWORK_H
#define PRONY_BENCH_JOB_JOB_NETWORK_H

#include "bench/job/samples.h"
#include "core/backend.h"
#include "core/job.h"

struct network_options {
    const struct backend *backend;
    struct device_options device;
    bool fusion;
    bool recompute; /* a training drops activations and computes them again */
    enum samples_place place;
    enum ingestion ingestion;
    enum answering answering;
    bool chained; /* each call needs the answer to the last; inputs are real numbers in memory */
    bool (*stopped)(void); /* asked between the steps of a check; NULL: never */
    bool long_steps;       /* … and between the ops of job_network_answer */
};

/* The task must outlive the job. Opens nothing yet. */
enum status job_network_open(struct task *task, const struct network_options *options,
                             struct job **out);

/* A watched run: plans of its own, which are a little slower than those that are timed, step by
 * step (or some at a time) for `limit_ns` and at most `steps` times after a first one to warm up.
 * `after` is told the end of each, the first being 0. */
struct watching {
    const struct observer *observers; /* one for each program of job_network_step */
    void (*after)(void *context, int step);
    void *context;
    int steps;
    int together; /* steps that are run before they are waited for; 0: one. Of samples on the disk
                     at most as many as are read from there */
    uint64_t limit_ns;
};
/* The plans live until job_network_unwatch: events name their kernels. The job is one of this kind,
 * prepared. */
enum status job_network_watch(struct job *job, const struct watching *watching);
void job_network_unwatch(struct job *job);
/* What the job runs: the task's programs, or what fusion made of them. */
const struct recipe_step *job_network_step(const struct job *job);

/* How long each part of an iteration takes: medians of a watched run, in which one follows the
 * other. NaN for what the backend does not tell or the program does not have. Being watched costs
 * every part of a tiny network about as much as it takes: what they say is how they share the
 * iteration, which took `step_ns` unwatched. So is a step that one kernel does: watched, others do
 * it. *scaled is what they were multiplied by, or NaN. The way of samples that come from the host
 * is no part of them (bench/meter/staging.h). */
enum status job_network_parts(struct job *job, double step_ns, double parts_ns[PART_COUNT],
                              double *scaled);

/* The share of an iteration that converts between fp32 and 8 bits, in a watched run; NaN: the
 * backend does not tell. */
enum status job_network_conversions(struct job *job, double *share);

/* From the initial parameters and the first batch again, whatever ran before: the task's check. The
 * job is one of this kind, prepared. */
enum status job_network_outcome(struct job *job, struct outcome *out);

/* The same of a job that is opened for this alone. */
enum status job_network_answer(struct task *task, const struct network_options *options,
                               struct outcome *out);

#endif
