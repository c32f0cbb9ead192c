/* judge.h: is what somebody computed right?
 *
 * An outcome is held against the reference's: outputs against their typical size, the loss against
 * itself, parameters against how far parameters typically moved, and those of each entry against
 * how far these moved: gradients vanish towards the input, and a first layer might not learn at all
 * and pass.
 *
 * How far off may it be? As far as rounding takes the reference itself. For most work that is known
 * beforehand (task->tolerance). In a deep network of low precision it is not: rounding turns relus
 * on and off, and behind many of them it decides where a step goes, in every framework. What it
 * does there is tried: the reference runs a second time from weights each of which is off by what
 * the precision rounds away ("shaken"). Each entry may be a few times as far from the reference as
 * that is. Where a shaken step goes elsewhere altogether, its direction says nothing about anybody,
 * but how far it goes still does: a gradient that is missing or of the wrong size is never right.
 */
#ifndef PRONY_BENCH_JUDGE_H
#define PRONY_BENCH_JUDGE_H

#include "bench/task.h"

/* Is it the reference's? STATUS_WRONG with what differs most; STATUS_UNSUPPORTED without a
 * reference. *error is the largest relative difference (of coarse tasks their mean square): of
 * outputs and loss to their own size, of parameters to how far parameters moved, beyond what
 * rounding explains. */
enum status judge_outcome(const struct task *task, const struct outcome *found, double *error);

/* The most that *error may be. */
double judge_tolerance(const struct task *task);

/* Might what is wrong be right once the reference was shaken (job_network_shake)? */
bool judge_may_shake(const struct task *task);

#endif
