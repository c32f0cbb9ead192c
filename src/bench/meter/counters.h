/* counters.h: the CPU's own counters (perf_event_open) over some work, where the system lets us:
 * many virtual machines have none. A pass of its own, so that opening them disturbs nothing. */
#ifndef PRONY_BENCH_METER_COUNTERS_H
#define PRONY_BENCH_METER_COUNTERS_H

#include "bench/meter/family.h"
#include "core/job.h"

enum { COUNTERS = 4 };
extern const char *const counter_names[COUNTERS]; /* "cycles", "instructions" … */

struct counters {
    double per_iteration[COUNTERS]; /* NaN where this one is not available */
};

/* Of all threads that the family has when it begins. STATUS_UNSUPPORTED, with the
 * reason, when there is not one counter. */
enum status counters_count(struct job *job, const struct family *family, int64_t iterations,
                           struct counters *out);

#endif
