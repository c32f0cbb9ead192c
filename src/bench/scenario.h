/* scenario.h: work that arrives as MLPerf's load generator sends it, in place of iteration after
 * iteration. A query is one batch.
 *
 *   single-stream  the next query when the last is answered, one sample each: latency
 *   multi-stream   the same with several samples a query
 *   resident       the same as single-stream, of any batch, where the unit keeps something running
 *                  that waits for queries: what a call costs without its launch
 *   queued         queries follow each other at once, each a call of its own, and are waited for a
 *                  thousand at a time, or as many as take a tenth of a second: what a call costs
 *                  without the wait
 *   chained        each query needs the answer to the last, as the steps of a controller do: what
 *                  an answer costs by itself. As many are timed together, so that the clock is not
 *                  in it
 *   offline        everything is there at the start: samples a second
 *   server         queries arrive at random (Poisson), whether or not the last is answered: the
 *                  highest rate at which a percentile of the latencies holds a bound
 *
 * A latency counts from the moment at which a query was due, not from when it was begun: what waits
 * in the queue waits for its user too. */
#ifndef PRONY_BENCH_SCENARIO_H
#define PRONY_BENCH_SCENARIO_H

#include "core/backend.h"
#include "core/job.h"

#include <stdbool.h>
#include <stddef.h>

enum scenario {
    SCENARIO_SINGLE_STREAM,
    SCENARIO_MULTI_STREAM,
    SCENARIO_OFFLINE,
    SCENARIO_SERVER,
    SCENARIO_QUEUED,
    SCENARIO_RESIDENT,
    SCENARIO_CHAINED,
    SCENARIO_COUNT,
};
bool scenario_parse(const char *name, enum scenario *out); /* false also for "iterate" */
/* How a backend is to answer in the scenario of this name. */
enum answering scenario_answering(const char *name);
/* Do queries follow each other, so that more of them can be asked later? */
bool scenario_streams(enum scenario scenario);
/* Do queries of the scenario of this name wait for the answer to the last? */
bool scenario_chains(const char *name);

struct scenario_bound {
    double quantile; /* 0.9 or 0.99; 0: there is none */
    double ns;
};
/* "p99=10ms"; units ns, us, ms, s. */
enum status scenario_parse_bound(const char *text, struct scenario_bound *out);

struct scenario_options {
    enum scenario scenario;
    struct scenario_bound bound; /* server */
    uint64_t seed;               /* of the arrivals */
    uint64_t limit_ns;           /* for all of it */
    uint64_t patience_ns;  /* server: if its queries need longer than the limit, so long; whoever
                              takes longer for one query is not asked for another */
    bool (*stopped)(void); /* asked between queries; NULL: never */
};

struct scenario_result {
    double *latencies_ns; /* of queries, in order; freed by scenario_free */
    size_t count, room;
    int64_t per; /* queries in one of them: > 1 offline, queued and chained only */
    double rate; /* queries a second: as measured, or the highest that holds the bound */
    bool behind; /* server: at the end the queue was still growing */
    bool cut;    /* its time was up before it was asked as often as usual */
    bool early;  /* server: patience ended before every rate was tried: a higher one may hold */
};

/* Does the bound's percentile of the latencies hold, and the queue not grow? A hopeless run has too
 * few queries to have one; a short one may end before its queue is as long as the bound. */
enum status scenario_holds(const struct scenario_bound *bound, const struct scenario_result *result,
                           double *percentile, bool *out);

/* Server: STATUS_UNSUPPORTED when not even a query at a time holds the bound, or as many as the
 * percentile needs are beyond patience. On failure too, the result is to be freed. */
enum status scenario_run(const struct scenario_options *options, struct job *job,
                         struct scenario_result *out);
void scenario_free(struct scenario_result *result);

#endif
