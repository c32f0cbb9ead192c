/* sweep.h: lists of values for the axes, and their product as measured records.
 *
 * Points that differ only in who computes (framework, backend, threads, affinity, isa, fusion) are
 * measured in turns in one run (group.h); the rest of the product is run one after another. */
#ifndef PRONY_BENCH_SWEEP_H
#define PRONY_BENCH_SWEEP_H

#include "bench/group.h"

struct sweep_list {
    const char *const *values;
    int count; /* 0: the axis keeps its default */
};

struct sweep {
    struct sweep_list lists[AXIS_COUNT];
    /* Told before each group: what comes next, and how many groups there are. */
    void (*progress)(void *context, const struct point *next, int done, int total);
    void *context;
};

/* Splits "1,2,4" and checks each value against the axis; the texts are in the arena. */
enum status sweep_split(const struct axis *axis, const char *text, struct arena *arena,
                        struct sweep_list *out);

/* Does everything that is named exist? Networks, frameworks, backends: before anything is run. */
enum status sweep_check(const struct sweep *sweep, const struct bench *bench);

/* Runs the product; the records go to bench->sink. */
enum status sweep_run(const struct sweep *sweep, struct bench *bench);

#endif
