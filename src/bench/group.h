/* group.h: configurations that are measured against each other, from points to records.
 *
 * The points of a group differ only in who computes (framework, backend, threads, isa …): one task,
 * one run, everyone in turn. Whoever cannot take part is recorded as skipped or failed, with the
 * reason, and the others go on. */
#ifndef PRONY_BENCH_GROUP_H
#define PRONY_BENCH_GROUP_H

#include "bench/done.h"
#include "bench/measure.h"
#include "core/registry.h"
#include "estimate/calibrate.h"
#include "record/facts.h"
#include "record/sink.h"

/* What a whole run of the bench shares. */
struct bench {
    const struct registry *registry;
    const char *peers; /* the folder with the peers */
    struct measure_options measure;
    uint64_t patience_ns;    /* what takes longer is measured once, and not checked */
    const struct done *done; /* what is not to be measured again, or NULL */
    struct sink sink;
    struct facts facts;
    const struct json *machine, *software; /* facts as trees */
    struct calibration calibration;
    int ok, skipped, failed; /* records written so far */
};

/* Writes one record for each point. Fails only when a record cannot be written, memory is out, or
 * the user stopped it (what was measured by then is recorded). */
enum status group_run(struct bench *bench, const struct point *points, int count);

#endif
