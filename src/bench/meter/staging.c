/* staging.c: see staging.h. */
#include "bench/meter/staging.h"

#include "bench/job/job_network.h"

#include <math.h>
#include <stdlib.h>

enum { RUNS = 9 };
static const uint64_t RUNS_NS = 300000000; /* for looking at them */

void staging_event(void *context, const struct event *event)
{
    struct staging_seen *seen = context;
    int *count = &seen->count[event->lane];
    if (*count < STAGING_STEPS)
        seen->spans[event->lane][(*count)++] =
            (struct staging_span){(double)event->start_ns, (double)event->end_ns};
}

static double lane_ns(const struct staging_seen *seen, enum lane lane)
{
    double sum = 0;
    for (int i = 0; i < seen->count[lane]; i++)
        sum += seen->spans[lane][i].to - seen->spans[lane][i].from;
    return sum;
}

/* How long [from, to] has something of the lane beside it. */
static double beside_ns(const struct staging_seen *seen, enum lane lane, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < seen->count[lane]; i++)
        sum += fmax(fmin(to, seen->spans[lane][i].to) - fmax(from, seen->spans[lane][i].from), 0);
    return sum;
}

/* How long [from, to] has copying and computing beside it at once. */
static double beside_both_ns(const struct staging_seen *seen, double from, double to)
{
    double sum = 0;
    for (int i = 0; i < seen->count[LANE_COPY]; i++) {
        const struct staging_span *copy = &seen->spans[LANE_COPY][i];
        sum += beside_ns(seen, LANE_COMPUTE, fmax(from, copy->from), fmin(to, copy->to));
    }
    return sum;
}

bool staging_of(const struct staging_seen *seen, struct staging *out)
{
    const int steps = seen->count[LANE_COMPUTE];
    double copied = 0, gathered = 0;
    if (!steps || seen->count[LANE_COPY] != steps || seen->count[LANE_ALL] != 1)
        return false;
    for (int i = 0; i < seen->count[LANE_COPY]; i++) {
        const struct staging_span *copy = &seen->spans[LANE_COPY][i];
        copied += beside_ns(seen, LANE_COMPUTE, copy->from, copy->to);
    }
    for (int i = 0; i < seen->count[LANE_GATHER]; i++) {
        const struct staging_span *gather = &seen->spans[LANE_GATHER][i];
        gathered += beside_ns(seen, LANE_COPY, gather->from, gather->to) +
                    beside_ns(seen, LANE_COMPUTE, gather->from, gather->to) -
                    beside_both_ns(seen, gather->from, gather->to);
    }
    const double gather = lane_ns(seen, LANE_GATHER), copy = lane_ns(seen, LANE_COPY);
    *out = (struct staging){.iteration = lane_ns(seen, LANE_ALL) / steps,
                            .gather = gather / steps,
                            .copy = copy / steps,
                            .compute = lane_ns(seen, LANE_COMPUTE) / steps,
                            .gather_overlap = gather > 0 ? 100 * gathered / gather : 0,
                            .copy_overlap = copy > 0 ? 100 * copied / copy : 0};
    return true;
}

struct runs {
    struct staging_seen seen; /* of the one that is running */
    struct staging list[RUNS];
    int count;
};

static void runs_after(void *context, int run)
{
    struct runs *runs = context;
    if (run > 0 && staging_of(&runs->seen, &runs->list[runs->count])) /* the first warmed up */
        runs->count++;
    runs->seen = (struct staging_seen){0};
}

static int by_iteration(const void *a, const void *b)
{
    const struct staging *left = a, *right = b;
    return (left->iteration > right->iteration) - (left->iteration < right->iteration);
}

enum status staging_look(struct job *job, int64_t per, struct record_meter rows[STAGING_ROWS],
                         size_t *count)
{
    struct runs runs = {.count = 0};
    const struct observer observer = {OBSERVE_NOTHING, staging_event, &runs.seen};
    const struct watching watching = {.observers = &observer,
                                      .after = runs_after,
                                      .context = &runs,
                                      .steps = RUNS,
                                      .together = per < STAGING_STEPS ? (int)per : STAGING_STEPS,
                                      .limit_ns = RUNS_NS};
    *count = 0;
    if (job_network_step(job)->count != 1)
        return STATUS_OK;
    enum status status = job_network_watch(job, &watching);
    job_network_unwatch(job);
    if (status != STATUS_OK || !runs.count)
        return status;
    qsort(runs.list, (size_t)runs.count, sizeof *runs.list, by_iteration);
    const struct staging *found = &runs.list[(runs.count - 1) / 2];
    rows[(*count)++] = (struct record_meter){"staged_iteration", found->iteration, NULL};
    rows[(*count)++] = (struct record_meter){"gather", found->gather, NULL};
    rows[(*count)++] = (struct record_meter){"copy", found->copy, NULL};
    rows[(*count)++] = (struct record_meter){"compute", found->compute, NULL};
    rows[(*count)++] = (struct record_meter){"gather_overlap", found->gather_overlap, NULL};
    rows[(*count)++] = (struct record_meter){"copy_overlap", found->copy_overlap, NULL};
    return STATUS_OK;
}
