/* reference.h: what should come of a task, for every contender of a comparison. It is computed by
 *
 *   ref f64             the reference kernels in double, for up to half a GFLOP
 *   simd/avx2, unfused  beyond that: the fast backend on all cores, with the least instructions it
 * has kernels for and nothing fused, which the conformance tests hold against the reference. Where
 * --patience is too short for all of it: one step of a training, some samples of an inference
 *
 * The same kernels say what rounding does (task->draws): they run again from weights that are off
 * by what the precision rounds away, of fp32 by sixteen times as much, so that two draws meet what
 * happens seldom: a relu or a maximum that flips. In fp32 `ref` also runs in fp32 itself. */
#ifndef PRONY_BENCH_CHECK_REFERENCE_H
#define PRONY_BENCH_CHECK_REFERENCE_H

#include "bench/bench.h"
#include "bench/job/job_network.h"

struct reference {
    char name[64];                  /* "ref f64", …; "": not chosen yet */
    struct network_options options; /* … and how it is run */
    enum dtype real;
    int32_t batch;     /* samples of an iteration that are checked */
    bool begun;        /* reference_begin was called */
    char missing[300]; /* why there is none; "" when there is */
};

/* Chooses what computes it, and cuts the task's check to what is looked at; computes nothing. */
void reference_choose(struct reference *reference, const struct bench *bench, struct task *task);

/* Sets task->reference and its draws. */
enum status reference_compute(const struct reference *reference, struct task *task);

/* Computes it, or takes what was kept; once. Fails only when memory is out or the user stopped it.
 */
enum status reference_begin(struct reference *reference, const struct bench *bench,
                            struct task *task);

/* Is what the job computes right? As job_kind.check. */
enum status reference_check(const struct reference *reference, struct job *job, double *error);

/* Says that a check would take longer than bench->patience_ns; `about`: " (146 GFLOP)", or "". */
enum status reference_refuse(const struct bench *bench, double check_ns, const char *about);

#endif
