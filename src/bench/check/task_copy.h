/* task_copy.h: the same work in another type of numbers, or from numbers that are perturbed. */
#ifndef PRONY_BENCH_CHECK_TASK_COPY_H
#define PRONY_BENCH_CHECK_TASK_COPY_H

#include "bench/job/task.h"

/* The same work from the same numbers, computed in `real`; of inference `batch` may be smaller: the
 * first samples of it. It must not outlive `like`. */
enum status task_copy(const struct task *like, enum dtype real, int32_t batch, struct task **out);

/* Gives a copy the weights and the data of `like`, each number larger or smaller, at random, by
 * that share of it. */
void task_perturb(struct task *copy, const struct task *like, double rounding, uint32_t draw);

#endif
