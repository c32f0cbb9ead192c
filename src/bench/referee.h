/* referee.h: who says what is right, for everyone who takes part in a comparison: the reference;
 * for what would take it minutes the fast backend on all cores, with the least instructions it has
 * kernels for and nothing fused, which the conformance tests hold against the reference. */
#ifndef PRONY_BENCH_REFEREE_H
#define PRONY_BENCH_REFEREE_H

#include "bench/group.h"
#include "bench/job_network.h"

struct referee {
    const char *name;               /* "ref", … */
    struct network_options options; /* … and how it is run */
    char missing[300];              /* why it says nothing; "" when it does */
};

/* Finds out what is right: task->reference. What is dear is kept, and looked for first. Fails only
 * when memory is out. */
enum status referee_begin(struct referee *referee, const struct bench *bench, struct task *task);

/* Says that a check would take longer than bench->patience_ns; `about`: " (146 GFLOP)", or "". */
enum status referee_refuse(const struct bench *bench, double check_ns, const char *about);

/* Is what the job computes right? As job_kind.check; a wrong answer is judged again by how far off
 * the reference itself would be, had it rounded as much (judge.h). */
enum status referee_judge(const struct referee *referee, const struct bench *bench,
                          struct task *task, struct job *job, double *error);

#endif
