/* compare.h: which of two is faster, and whether that can be said at all.
 *
 * Both are timed within a moment, forth and back, so that whatever the machine does hits both
 * alike. Each such turn gives a ratio: of the lower quartiles of its samples, because what disturbs
 * only ever adds, and adds much, to some. Some rounds in a row, each forth and back, are a unit:
 * the median of its ratios. From the units come the centre and its 99 % interval, by signed ranks:
 * nothing is assumed of how times are distributed, but that luck is the same for both. The verdict
 * leaves a margin, because where code happens to lie in memory is worth a per cent.
 *
 * Where memory lies is worth more, and stays the same for as long as a process or a plan lives:
 * rounds do not average it out. So both are started afresh every now and then, and with enough such
 * instances each of them is a unit. With fewer, a difference that luck alone can make is none. */
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
#define COMPARE_LUCK 0.10 /* the margin of fewer than COMPARE_INSTANCES instances, at least */

struct comparison {
    double ratio, low, high; /* time of the first ÷ time of the second; NaN when unknown */
    int64_t rounds, instances;
    enum verdict verdict;
    bool sure; /* it may be said before the time is up: however often one looks, it is seldom wrong
                */
};

enum { COMPARE_INSTANCES = 8 }; /* with fewer, the rounds are shared out among so many units: */
enum { COMPARE_UNITS = 32 };

/* The samples of one, turn after turn: forth (even) and back (odd), a round has both. */
struct turns {
    const double *samples;
    size_t sample_count;
    const size_t *starts; /* of each turn, its first sample; ascending */
    size_t count;
};

/* `begins` (ascending, even, the first 0) says with which turn each instance began. */
enum status compare_turns(const struct turns *a, const struct turns *b, const size_t *begins,
                          size_t instances, double margin, struct comparison *out);

/* Two results from two runs, of which only the summaries can be compared: the interval is as wide
 * as both together. */
void compare_results(const struct stats *a, const struct stats *b, double margin,
                     struct comparison *out);

const char *verdict_name(enum verdict verdict); /* "faster", "slower", "same", "can't tell" */

#endif
