/* outcome.h: what came of a check, and whether it is right.
 *
 * An outcome is compared with the reference's, parameter by parameter (outputs count as one). How
 * far off may it be? As far as rounding takes the reference itself: it ran again in the precision
 * of the contender, or from weights that are off by its rounding (task->draws, reference.h). Three
 * figures are compared with what these draws show:
 *
 *   scale     the way of a parameter along the reference's, less one: a gradient that is 1.01 times
 *             too long shows here even where rounding moves every single number
 *   distance  from the reference, by the root of the mean square
 *   worst     the farthest single number
 *
 * each as a share of how far the parameter moved. Where a draw is as far off as nothing at all
 * would be, rounding alone moves the parameter, as the bias before a batch norm, and that figure
 * does not count. */
#ifndef PRONY_BENCH_CHECK_OUTCOME_H
#define PRONY_BENCH_CHECK_OUTCOME_H

#include "base/arena.h"
#include "base/status.h"

struct task;

/* Outputs; or, of a training, the loss and the parameters at the task's places after the first
 * step, where rounding has done the least, and after the last, where a weight that was not read
 * again shows. */
enum { OUTCOME_STAGES = 2 };
struct outcome {
    double loss[OUTCOME_STAGES]; /* training: of the stage's last step */
    double *values;              /* value_count for each stage */
};

/* Room for an outcome of the task, in the arena. */
enum status outcome_make(const struct task *task, struct arena *arena, struct outcome *out);

/* Is it the reference's? STATUS_WRONG with what differs most; STATUS_UNSUPPORTED without a
 * finite reference, or where rounding alone decides everything. *error is the figure that comes
 * closest to what is allowed, or is furthest beyond it; task->tolerance is what is allowed. */
enum status outcome_check(struct task *task, const struct outcome *found, double *error);

/* The same of another framework, which in 8 bits may round the sums of each layer to the next
 * level: its outputs are right within 1/128 of the largest for each. */
enum status outcome_check_near(struct task *task, const struct outcome *found, double *error);

#endif
