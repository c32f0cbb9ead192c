/* entry.h: may this point be measured? What cannot be yet is STATUS_UNSUPPORTED, with the reason:
 * a recorded skip. */
#ifndef PRONY_BENCH_SWEEP_ENTRY_H
#define PRONY_BENCH_SWEEP_ENTRY_H

#include "bench/job/job_network.h"
#include "bench/sweep/group.h"

enum status entry_check(const struct bench *bench, const struct point *point);

/* Is the library asked, not the backend itself? */
bool entry_through_library(const struct point *point);

/* What computes a point of prony's own, and how it is opened. */
enum status entry_device(const struct bench *bench, const struct point *point,
                         const struct backend **backend, struct device_options *device);

/* Is what computes a point of prony's own there? Opens nothing. */
enum status entry_probe(const struct bench *bench, const struct point *point);

/* Where its samples lie, and how they reach the unit. */
enum status entry_samples(const struct point *point, struct network_options *options);

/* Are they read from a disk, of whichever kind? */
bool entry_on_disk(const struct point *point);
/* Says in the point which kind of disk it is; "": nobody tells, NULL: there is none. Where another
 * kind was asked for: STATUS_UNSUPPORTED. */
enum status entry_name_storage(struct point *point, const char *kind);

#endif
