/* referee.h: who says what is right, for everyone who takes part in a comparison.
 *
 *   ref f64             the reference kernels in double, for up to half a GFLOP
 *   simd/avx2, unfused  beyond that: the fast backend on all cores, with the least instructions it
 * has kernels for and nothing fused, which the conformance tests hold against the reference. Where
 * --patience is too short for all of it: one step of a training, some samples of an inference
 *
 * The same referee says what rounding does (task->draws): it runs again from weights that are off
 * by what the precision rounds away, of fp32 by sixteen times as much, so that two draws meet what
 * happens seldom: a relu or a maximum that turns over. In fp32 `ref` also runs in fp32 itself. */
#ifndef PRONY_BENCH_CHECK_REFEREE_H
#define PRONY_BENCH_CHECK_REFEREE_H

#include "bench/job/job_network.h"
#include "bench/sweep/group.h"

struct referee {
    char name[64];                  /* "ref f64", …; "": not chosen yet */
    struct network_options options; /* … and how it is run */
    enum dtype real;
    int32_t batch;     /* samples of an iteration that it looks at */
    bool begun;        /* referee_begin was called */
    char missing[300]; /* why it says nothing; "" when it does */
};

/* Says who will, and cuts the task's check to what is looked at; computes nothing. */
void referee_choose(struct referee *referee, const struct bench *bench, struct task *task);

/* Asks it: task->reference and its draws. */
enum status referee_refer(const struct referee *referee, struct task *task);

/* Finds out what is right, by asking or from what was kept; once. Fails only when memory is out. */
enum status referee_begin(struct referee *referee, const struct bench *bench, struct task *task);

/* Is what the job computes right? As job_kind.check. */
enum status referee_judge(const struct referee *referee, struct job *job, double *error);

/* Says that a check would take longer than bench->patience_ns; `about`: " (146 GFLOP)", or "". */
enum status referee_refuse(const struct bench *bench, double check_ns, const char *about);

#endif
