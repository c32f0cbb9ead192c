/* group_result.h: what a group's contenders have on their way from points to records, and what is
 * made of it once they were timed: floors, parts, meters, verdicts, notes. */
#ifndef PRONY_BENCH_SWEEP_GROUP_RESULT_H
#define PRONY_BENCH_SWEEP_GROUP_RESULT_H

#include "bench/bench.h"
#include "bench/meter/passes.h"
#include "bench/meter/pin.h"
#include "bench/meter/staging.h"
#include "bench/meter/watch.h"
#include "bench/sweep/workload.h"
#include "estimate/probe.h"

/* of a scenario, memory, ingestion, the precision, workers */
enum { MORE_ROWS = 9 + STAGING_ROWS + 6 };
enum { GROUP_PROBES = 8 }; /* one for each number of threads; beyond: no times_now */

/* One point on its way to a record. */
struct contender {
    struct record record;
    struct workload *workload;
    struct job *job, *cold; /* cold: what is timed in its place, or NULL */
    bool is_peer, runs;     /* runs: it is prepared and right, and will be timed */
    bool warm;              /* … which came after another */
    struct family family;   /* of a peer */
    uint64_t first_ns;      /* the first iteration, and what it used */
    struct meters first_meters;
    struct text prepare, checks[OUTCOME_STAGES], notes;
    struct timing *timing;
    struct ceilings ceilings; /* of which its floor is made */
    struct job *probe;        /* the group's, of this floor; NULL: it is not bound by bytes */
    struct probe_seen seen;   /* by the probe; best 0: nothing */
    double rate;              /* queries a second, of a scenario; else 0 */
    struct record_meter meters[METERS_COUNT + WATCH_ROWS + PASSES_ROWS + MORE_ROWS];
};

struct group {
    struct bench *bench;
    struct arena arena;
    struct workload *workload; /* of most contenders, and … */
    struct workload *others;   /* … of those that have another batch */
    int other_count;
    struct contender *contenders;
    struct timing *timings;
    int count, timing_count;
    struct pins cpus; /* before anyone is tied to one */
    struct job *probes[GROUP_PROBES];
    int probe_count;
    struct watch watch;
};

/* The record of a contender that could not run. Absent capability is a skip; anything else failed.
 */
enum status group_refuse(struct group *group, struct contender *contender, enum status status);

/* The task's floor on this machine, for as many threads as the point has. Without one the record
 * says why, and the time is as good as any. */
void group_floor(struct group *group, struct contender *contender);

/* Fills in what was measured. */
enum status group_result(struct group *group, struct contender *contender);

/* Of a pair that ran to the end: which is faster. */
enum status group_compare(struct group *group);

#endif
