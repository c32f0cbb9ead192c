/* group.h: configurations that are measured against each other, from points to records.
 *
 * The points of a group differ only in who computes (framework, backend, threads, isa …) and where
 * the samples come from: one task, one run, everyone in turn. Whoever cannot take part is recorded
 * as skipped or failed, with the reason, and the others go on. */
#ifndef PRONY_BENCH_SWEEP_GROUP_H
#define PRONY_BENCH_SWEEP_GROUP_H

#include "bench/sweep/workload.h"

/* Writes one record for each point, all of this workload. Fails only when a record cannot be
 * written, memory is out, or the user stopped it: then nothing of the group is finished, and none
 * of it is recorded. */
enum status group_run(struct bench *bench, struct workload *workload, const struct point *points,
                      int count);

#endif
