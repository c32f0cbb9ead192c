/* reference_file.h: outcomes of the reference, kept between runs: for a large network they take
 * longer than the measurement. They are found by a hash of all that goes in (the program, the
 * parameters it starts from, the data) and the commit that computed them, so that another reference
 * is never mistaken for this one; a build with uncommitted changes keeps none. */
#ifndef PRONY_BENCH_CHECK_REFERENCE_FILE_H
#define PRONY_BENCH_CHECK_REFERENCE_FILE_H

#include "bench/job/task.h"

/* Sets task->reference, its draws and task->has_reference where the outcome is kept, fits the task
 * and was computed by `by`. What cannot be read is as if it were not there; fails only when memory
 * is out. */
enum status reference_load(struct task *task, const char *by, const char *commit);
/* Keeps the outcome of a task that has its reference; a disk that is full or not ours does no harm.
 */
enum status reference_save(const struct task *task, const char *by, const char *commit);

#endif
