/* measure.h: times any number of jobs against each other in one run.
 *
 * The contenders take turns round by round (A B C, C B A, …), so that whatever the machine does
 * meanwhile hits all of them alike. For each of them:
 *   group    short iterations are run in groups, so large that reading the clock, calling the job
 *            and (for a peer) waking it up cost less than about 1 % of a sample; what runs on while
 *            the host goes ahead (a GPU, samples on their way to it) in groups as a training loop
 *            has them
 *   warm-up  the first iteration is never a sample; slices are thrown away until they stop getting
 *            faster
 *   stop     when the 95 % interval of the median is within the target, and it was timed for the
 *            least time, or its time is up and there are samples enough for an interval; in a
 *            comparison, when the 99 % interval of the ratio is
 * Two that are compared and have one thread each are tied to the same CPU, another one in every
 * round (pin.h).
 * Whoever can be started afresh in little time is, several times (job.h: renew): a comparison is
 * made of instances, not of rounds only. After a switch from one contender to another the first
 * sample is thrown away: it pays for the caches, branch predictors and sleeping threads that the
 * other left behind. All samples are kept, in the order taken. A contender that fails drops out;
 * the others go on.
 * Probes (estimate/probe.h) have turns of their own between rounds, for a tenth of the time: what
 * they see is what the machine gave meanwhile.
 *
 * It knows nothing of networks, and does not prepare or check: it is given jobs that are ready. */
#ifndef PRONY_BENCH_MEASURE_H
#define PRONY_BENCH_MEASURE_H

#include "bench/timing.h"

#include <stdbool.h>
#include <stddef.h>

struct measure_options {
    double target;     /* half the interval ÷ the median: 0.01 */
    bool compare;      /* the first with the second: stop when their ratio is known */
    double margin;     /* of the comparison: COMPARE_MARGIN */
    uint64_t least_ns; /* how long each is timed though its interval is tight: a moment of
                          milliseconds is one mood of the machine */
    uint64_t limit_ns; /* wall time for each contender, all included; least_ns gives way to it */
    bool (*stopped)(void);     /* asked between samples; NULL: never */
    struct job *const *probes; /* run one iteration at a time; one that fails remembers it */
    int probe_count;
};

/* Long enough to see what else the machine does (watch.h); half of the time where that is short. */
uint64_t measure_usual_least(uint64_t limit_ns);

/* STATUS_OK whatever the contenders' own results are; STATUS_INTERRUPTED, with the samples so far,
 * when `stopped` said so. */
enum status measure(const struct measure_options *options, struct timing *list, int count);

/* Of two that were measured together. */
enum status measure_compare(const struct measure_options *options, const struct timing *a,
                            const struct timing *b, struct comparison *out);

#endif
