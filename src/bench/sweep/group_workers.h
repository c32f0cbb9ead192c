/* group_workers.h: what is different where contenders are several workers: they may have more
 * samples than one has, they communicate, and they are held against one worker. */
#ifndef PRONY_BENCH_SWEEP_GROUP_WORKERS_H
#define PRONY_BENCH_SWEEP_GROUP_WORKERS_H

#include "bench/sweep/group_result.h"

static inline int64_t point_workers(const struct point *point)
{
    return point->workers > 1 ? point->workers : 1;
}

/* May so many share the work so? Else STATUS_UNSUPPORTED, with the reason. */
enum status group_workers_check(const struct point *point);

/* Gives each contender its workload: the group's, or one of its own where workers have a batch each
 * (weak scaling). Their records are begun. */
enum status group_workers_open(struct group *group);
/* Makes the numbers of each. One that cannot be made is the refusal of those that have it, but
 * peers may open a file that prony cannot import. */
enum status group_workers_fill(struct group *group);
void group_workers_close(struct group *group);

/* Why what they compute has no reference that one worker computes; NULL: it has. */
const char *group_workers_differ(const struct contender *contender);

/* Adds rows of what communication took. */
size_t group_workers_meters(struct contender *contender, struct record_meter *rows);
/* … and of what they bring, where one worker took turns with them. */
void group_workers_compare(struct group *group);

#endif
