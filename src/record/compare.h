/* compare.h: which of two is faster, and whether that can be said at all.
 *
 * The unit is the round: both are timed within a moment, forth and back, so that whatever the
 * machine does hits both alike, and each round gives one ratio. From these come the median and its
 * 99 % interval, by ranks: nothing is assumed of how times are distributed. The verdict leaves a
 * margin, because where code happens to lie in memory is worth a per cent.
 *
 * Where memory lies is worth more, and stays the same for as long as a process or a plan lives:
 * rounds do not average it out. So both are started afresh every now and then, and with enough such
 * instances each of them, not each round, gives one ratio: the median of its rounds. */
#ifndef PRONY_RECORD_COMPARE_H
#define PRONY_RECORD_COMPARE_H

#include "record/stats.h"

#include <stdbool.h>

enum verdict {
    VERDICT_UNKNOWN, /* can't tell */
    VERDICT_FASTER,  /* the interval lies wholly below 1 - margin */
    VERDICT_SLOWER,  /* … above 1 + margin */
    VERDICT_SAME,    /* … within 1 ± COMPARE_SAME */
};
#define COMPARE_MARGIN 0.01
#define COMPARE_SAME 0.03

struct comparison {
    double ratio, low, high; /* time of the first ÷ time of the second; NaN when unknown */
    int64_t rounds, instances;
    enum verdict verdict;
    bool sure; /* it may be said before the time is up: however often one looks, it is seldom wrong
                */
};

enum { COMPARE_INSTANCES = 8 }; /* with fewer, a round is the unit */

/* a and b: the time of each in every round, forth (even) and back (odd); two make one ratio.
 * `starts` (ascending, even, the first 0) says with which round each instance began. */
enum status compare_rounds(const double *a, const double *b, size_t rounds, const size_t *starts,
                           size_t instances, double margin, struct comparison *out);

/* Two results from two runs, of which only the summaries can be compared: the interval is as wide
 * as both together. */
void compare_results(const struct stats *a, const struct stats *b, double margin,
                     struct comparison *out);

const char *verdict_name(enum verdict verdict); /* "faster", "slower", "same", "can't tell" */

#endif
