/* reference.h: outcomes of the reference, kept between runs: for a large network they take longer
 * than the measurement. They are found by a hash of all that goes in (the program, the parameters
 * it starts from, the data) and the commit that computed them, so that another reference is never
 * mistaken for this one; a build with uncommitted changes keeps none. */
#ifndef PRONY_BENCH_CHECK_REFERENCE_H
#define PRONY_BENCH_CHECK_REFERENCE_H

#include "bench/job/task.h"

/* What computing it takes: FLOP of all steps of the check; seconds at most, of one thread of the
 * fast backend, which also has to go over all operands; and bytes of memory. */
double reference_flop(const struct task *task);
double reference_seconds(const struct task *task);
double reference_bytes(const struct task *task);
/* Is it so much work that its outcome is kept? */
bool reference_is_dear(const struct task *task);
/* Sets task->reference, its draws and task->referred where the outcome is kept, fits the task and
 * is by this referee. What cannot be read is as if it were not there; fails only when memory is
 * out. */
enum status reference_load(struct task *task, const char *by, const char *commit);
/* Keeps the outcome of a task that is referred; a disk that is full or not ours does no harm. */
enum status reference_save(const struct task *task, const char *by, const char *commit);

#endif
