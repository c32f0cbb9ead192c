/* probe.h: the floor of the hour: what memory gives while something is timed.
 *
 * Ceilings are the best ever seen (calibrate.h). On a machine that others share, an hour may give
 * less, and the same program is then further from its floor though nothing about it changed. A
 * probe is a job whose every iteration is one burst a pattern, with the threads, pages and working
 * set of whoever is timed: run in turn with them, its median is what they could have got. A burst
 * that beats the best ever seen raises it, as any other does. */
#ifndef PRONY_ESTIMATE_PROBE_H
#define PRONY_ESTIMATE_PROBE_H

#include "core/job.h"
#include "estimate/floor.h"

/* Bursts of reading where `floor` has forward bound by bytes, of updating where it has backward.
 * Sets beyond 128 MB, where all is memory, are probed at 128 MB. The yardstick's calibration must
 * outlive the job, which can only be run and closed. STATUS_UNSUPPORTED when nothing is bound by
 * bytes, or nothing can be calibrated. */
enum status probe_open(const struct yardstick *yardstick, uint64_t set_bytes,
                       const struct floor *floor, struct job **out);

/* Does it probe for these, too? */
bool probe_fits(const struct job *probe, const struct yardstick *yardstick);

/* What was seen so far. */
struct probe_seen {
    struct ceilings
        now;            /* `best` with the bandwidths of the bursts' medians, where they are less */
    double per_s, best; /* of the pattern that lost most: what it gave, and its best ever */
};
/* `best` are the ceilings of the same yardstick and set; they are raised to what the bursts showed.
 * STATUS_UNSUPPORTED before the first burst, when bursts failed, and where other programs took the
 * CPUs of all of them. */
enum status probe_read(const struct job *probe, struct ceilings *best, struct probe_seen *out);

#endif
