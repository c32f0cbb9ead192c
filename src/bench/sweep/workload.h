/* workload.h: what the contenders of a group compute, and what should come of it. It is opened once
 * for a group, however many there are, and also where they are compared in pairs. */
#ifndef PRONY_BENCH_SWEEP_WORKLOAD_H
#define PRONY_BENCH_SWEEP_WORKLOAD_H

#include "bench/check/reference.h"

/* A zeroed struct is closed. */
struct workload {
    struct task *task;
    struct reference reference;
};

/* The network and its programs: task_begin. */
enum status workload_open(const struct point *point, struct workload *out);
/* The numbers, and who computes the reference, when the first contender needs them: task_fill. */
enum status workload_fill(struct workload *workload, const struct bench *bench, bool host);
void workload_close(struct workload *workload);

#endif
