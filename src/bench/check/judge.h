/* judge.h: is what somebody computed right?
 *
 * An outcome is held against the reference's, parameter by parameter (outputs are one of them). How
 * far off may it be? As far as rounding takes the reference itself: it ran again in the precision
 * that is judged, or from weights that are off by its rounding (task->draws, referee.h). Three
 * figures are compared with what these draws show:
 *
 *   scale     the way of a parameter along the reference's, less one: a gradient that is 1.01 times
 *             too long shows here even where rounding moves every single number
 *   distance  from the reference, by the root of the mean square
 *   worst     the farthest single number
 *
 * each as a share of how far the parameter moved. Where a draw is as far off as nothing at all
 * would be, rounding alone moves the parameter, as the bias before a batch norm, and that figure is
 * not judged. */
#ifndef PRONY_BENCH_CHECK_JUDGE_H
#define PRONY_BENCH_CHECK_JUDGE_H

#include "bench/job/task.h"

/* Is it the reference's? STATUS_WRONG with what differs most; STATUS_UNSUPPORTED without a
 * finite reference, or where rounding alone decides everything. *error is the figure that comes
 * closest to what is allowed, or is furthest beyond it; task->tolerance is what is allowed. */
enum status judge_outcome(struct task *task, const struct outcome *found, double *error);

#endif
