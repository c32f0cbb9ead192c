/* sweep.h: lists of values for the axes, and their product as measured records.
 *
 * Points that a rule of `skip` names are left out. Points that differ only in who computes
 * (framework, backend, through, threads, affinity, isa, fusion) or where the same samples come from
 * (data, ingestion) are measured in turns in one run (group.h); the rest of the product is run one
 * after another. A group of which every point is done already (done.h) is passed over; those of it
 * that were skipped are tried again. */
#ifndef PRONY_BENCH_SWEEP_SWEEP_H
#define PRONY_BENCH_SWEEP_SWEEP_H

#include "bench/sweep/group.h"

struct sweep_list {
    const char *const *values;
    int count; /* 0: the axis keeps its default */
};

/* One `axis=values` of a rule; a rule is the terms up to one that ends it, and all must hold. */
struct sweep_term {
    const struct axis *axis;
    struct sweep_list values;
    bool ends;
};

struct sweep {
    struct sweep_list lists[AXIS_COUNT];
    const char *against; /* a backend, a peer or an executable that each point is compared with, or
                            NULL */
    const struct sweep_term *skip;
    int skip_count;
    /* Told before each group: its points, and how many seconds are planned for it. */
    void (*progress)(void *context, const struct point *points, int count, double seconds);
    void *context;
};

/* "1,2,4", and for numbers also "1-8" and "16-256*2"; each value is checked against the axis and
 * taken once. The commas in FILE.onnx:NAME=N,NAME=N are its own. The texts are in the arena. */
enum status sweep_split(const struct axis *axis, const char *text, struct arena *arena,
                        struct sweep_list *out);

bool sweep_has(const struct sweep_list *list, const char *value);

/* "framework=python-list model=large; batch=64-256*2": rules with a ';' between them. */
enum status sweep_parse_skip(struct sweep *sweep, const char *text, struct arena *arena);

/* Does everything that is named exist? Networks, frameworks, backends: before anything is run. */
enum status sweep_check(const struct sweep *sweep, const struct bench *bench);

/* How many points there are to be measured, without those left out or done, and about how many
 * seconds that takes (pace.h), for which programs are compiled; `seconds` may be NULL. */
enum status sweep_count(const struct sweep *sweep, struct bench *bench, int *points,
                        double *seconds);

/* Runs the product; the records go to bench->sink. */
enum status sweep_run(const struct sweep *sweep, struct bench *bench);

#endif
