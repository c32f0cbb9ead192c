/* staging.h: where an iteration's time goes whose samples come from the host: how long threads
 * gather them in page-locked memory, how long they are copied from there, how long the unit
 * computes, and what of it runs beside something else. The steps are watched from outside
 * (core/lanes.h): a plan like the one that is timed runs as many of them at a time. */
#ifndef PRONY_BENCH_METER_STAGING_H
#define PRONY_BENCH_METER_STAGING_H

#include "core/job.h"
#include "core/lanes.h"
#include "core/observer.h"
#include "record/record.h"

#include <stdbool.h>

enum { STAGING_STEPS = 16 /* that are watched together, at most */, STAGING_ROWS = 6 };

/* Of one iteration, in ns; the shares in per cent. All are of the same iterations, so that
 *
 *   iteration = gather × (1 - gather_overlap) + copy × (1 - copy_overlap) + compute + idle */
struct staging {
    double iteration, gather, copy, compute;
    double gather_overlap; /* the share of gathering beside which something is copied or computed */
    double copy_overlap;   /* the share of copying beside which something is computed */
};

/* What was told of the steps of one run, in the order of time within each lane. */
struct staging_seen {
    struct staging_span {
        double from, to;
    } spans[LANE_COUNT][STAGING_STEPS];
    int count[LANE_COUNT];
};
void staging_event(void *context, const struct event *event); /* an observer's; to the seen */
/* False where something is missing. */
bool staging_of(const struct staging_seen *seen, struct staging *out);

/* The staging of a job (job_network.h) of which `per` iterations were timed together: that of the
 * run whose iterations are the median. It is added to a record's meters as metrics.def reads them.
 * *count: rows; none where the backend tells nothing, or a step is of several programs. */
enum status staging_look(struct job *job, int64_t per, struct record_meter rows[STAGING_ROWS],
                         size_t *count);

#endif
