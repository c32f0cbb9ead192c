/* counters.h: the CPU's own counters (perf_event_open) over some work, where the system lets us:
 * many virtual machines have none. A pass of its own, so that opening them disturbs nothing. */
#ifndef PRONY_BENCH_COUNTERS_H
#define PRONY_BENCH_COUNTERS_H

#include "core/job.h"

#include <sys/types.h>

enum { COUNTERS = 4 };
extern const char *const counter_names[COUNTERS]; /* "cycles", "instructions" … */

struct counters {
    double per_iteration[COUNTERS]; /* NaN where this one is not available */
};

/* Of all threads that `process` (0: this one) has when it begins. STATUS_UNSUPPORTED, with the
 * reason, when there is not one counter. */
enum status counters_count(struct job *job, pid_t process, int64_t iterations,
                           struct counters *out);

#endif
