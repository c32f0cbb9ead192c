/* group.h: configurations that are measured against each other, from points to records.
 *
 * The points of a group differ only in who computes (framework, backend, threads, isa …) and where
 * the samples come from: one task, one run, everyone in turn. Whoever cannot take part is recorded
 * as skipped or failed, with the reason, and the others go on. */
#ifndef PRONY_BENCH_GROUP_H
#define PRONY_BENCH_GROUP_H

#include "bench/done.h"
#include "bench/job_peer.h"
#include "bench/measure.h"
#include "bench/scenario.h"
#include "core/registry.h"
#include "estimate/calibrate.h"
#include "record/facts.h"
#include "record/sink.h"

/* What a whole run of the bench shares. */
struct bench {
    const struct registry *registry;
    const char *peers;        /* the folder with the peers */
    struct peer_bank waiting; /* those that computed on a GPU, for more of it */
    struct measure_options measure;
    uint64_t patience_ns;    /* what takes longer is measured once, and not checked */
    const struct done *done; /* what is not to be measured again, or NULL */
    struct sink sink;
    bool unread; /* nobody will see what passes of their own count (passes.h): they are left out */
    struct facts facts;
    const struct json *machine, *software; /* facts as trees */
    struct calibration calibration;
    struct scenario_bound bound; /* of the scenario server */
    uint64_t seed;               /* of arrivals, and the first of `until` */
    struct {
        const char *dataset;
        double accuracy, loss; /* the one that is not 0 */
        int64_t seeds;
    } until;                 /* of the scenario target */
    int ok, skipped, failed; /* records written so far */
};

/* Hands a record to the sink, and counts it. */
enum status bench_write(struct bench *bench, const struct record *record);
/* Everything of a record that is known beforehand: point, machine, software, when. Texts are in the
 * arena. */
enum status bench_start_record(const struct bench *bench, const struct point *point,
                               struct arena *arena, struct record *record);

/* Writes one record for each point. Fails only when a record cannot be written, memory is out, or
 * the user stopped it (what was measured by then is recorded). */
enum status group_run(struct bench *bench, const struct point *points, int count);

#endif
