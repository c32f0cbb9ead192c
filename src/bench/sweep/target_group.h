/* target_group.h: points whose scenario is `target`, from a training to a record each. */
#ifndef PRONY_BENCH_SWEEP_TARGET_GROUP_H
#define PRONY_BENCH_SWEEP_TARGET_GROUP_H

#include "bench/sweep/group.h"

/* As group_run. A sample is one seed's time for an iteration, looking at the held-out rows
 * included; the meters target_time (seconds), target_epochs (both: the median of those that got
 * there), reached (their share), accuracy and loss (medians) say the rest. */
enum status target_group(struct bench *bench, const struct task *task, const struct point *points,
                         int count);

#endif
