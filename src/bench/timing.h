/* timing.h: one contender by itself: how many iterations a sample has, warm-up, turns. */
#ifndef PRONY_BENCH_TIMING_H
#define PRONY_BENCH_TIMING_H

#include "bench/meter/meters.h"
#include "core/job.h"

#include <stdbool.h>
#include <stddef.h>

struct measure_options; /* measure.h */

enum measure_stop {
    MEASURE_TIGHT,  /* the interval is within the target */
    MEASURE_TIME,   /* the time was up before that */
    MEASURE_FAILED, /* see status and message */
};

enum {
    MEASURE_INSTANCES = 64,
    /* lasts_ns on a GPU, for which a loop that trains does not wait after each step: so long that
     * the wait at the end does not show. */
    MEASURE_GPU_NS = 5000000,
};

/* One contender: its job, how it is to be timed, and its samples. */
struct timing {
    struct job *job;
    struct family family; /* whose resources are metered */
    int64_t threads;      /* that it computes with; 0: not known */
    bool alone;           /* a sample is one iteration, however short */
    int64_t together;     /* iterations that a sample has at least, … */
    uint64_t lasts_ns; /* … and how long it lasts: of what is waited for at its end only; 0: any */
    uint64_t start_ns;          /* what it took to get ready; 0: not known */
    uint64_t first_ns;          /* an iteration that was run already; 0: none was */
    struct meters first_meters; /* … and what it used */
    bool warm; /* … after another: if it is longer than the limit it is the only sample */

    /* Set by measure; all but samples is a plain value. */
    enum measure_stop stop;
    enum status status;
    char message[400];
    bool steady;        /* warm-up ended because it was steady */
    int64_t per;        /* iterations in one sample */
    double *samples_ns; /* of one iteration each; freed by timing_free */
    size_t count, room;
    struct meters meters; /* while the samples were taken */
    size_t *turns;        /* the first sample of each of its turns: what comparisons are made of */
    size_t turn_count, turn_room;
    size_t begins[MEASURE_INSTANCES]; /* the turn with which each instance began */
    size_t instances;

    /* Working state. */
    uint64_t spent_ns;   /* wall time used */
    uint64_t warm_ns;    /* … before the samples that are kept */
    uint64_t renewed_ns; /* … when the instance began */
    uint64_t sample_ns;  /* of one sample, as far as known */
    uint64_t outside_ns; /* … and what passes beside it, outside the job's own clock */
    bool tight, out;
};

/* How many iterations a sample of so long ones has at least. */
int64_t timing_least(const struct timing *contender, double one_ns);
/* Calibration and warm-up, within a quarter of the time. */
enum status timing_warm(const struct measure_options *options, struct timing *contender);
/* Samples of one turn: kept, or only the quickest is told (warm-up). */
enum status timing_slice(const struct measure_options *options, struct timing *contender, bool keep,
                         double *quickest_ns);
/* A turn of one among several; `switched`: its first sample is thrown away. */
enum status timing_turn(const struct measure_options *options, struct timing *contender,
                        bool switched);
void timing_free(struct timing *contender);

#endif
