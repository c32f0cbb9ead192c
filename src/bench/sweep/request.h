/* request.h: the arguments of one `prony bench`, from the command line or a line of a suite, and
 * the run of a list of them. */
#ifndef PRONY_BENCH_REQUEST_H
#define PRONY_BENCH_REQUEST_H

#include "base/args.h"
#include "bench/sweep/sweep.h"

/* Filled by its flags. */
struct bench_request {
    const char *axis_text[AXIS_COUNT];
    const char *skip;
    const char *against;
    double seconds; /* 0 until bench_request_sweep: as long as what is asked for needs */
    double patience, margin;
    const char *bound, *until, *dataset, *accurate;
    int64_t seed, seeds;
    struct scenario_bound holds; /* what bound and until say */
    double accuracy, loss;
    bool all;                      /* --precision all */
    bool sheet;                    /* precisions are compared, also by what they cost */
    const char *place;             /* "FILE:LINE" of a suite, or NULL */
    const struct args *args;       /* what it was read by, and … */
    const struct args_found *said; /* … what was said; or NULL */
    struct sweep sweep;
};
extern const struct arg request_flags[];

/* The defaults of the flags. */
void bench_request_start(struct bench_request *request);
/* From texts to the sweep; the arena owns what it holds. */
enum status bench_request_sweep(struct bench_request *request, const char *const *models,
                                int model_count, struct arena *arena);

/* Where prony alone is asked, leaves out the precisions that no backend here computes in, with a
 * warning each; where none is left, that is the error. */
enum status bench_request_precisions(struct bench_request *request, const struct registry *registry,
                                     struct arena *arena);

/* Is there what its sweep names? bench_request_run asks the same before it runs anything. */
enum status bench_request_check(const struct bench_request *request,
                                const struct registry *registry, const char *peers);

/* How far a run is, before each group. */
struct bench_stage {
    const struct point *points; /* of the group */
    int count;
    int done, total;       /* points of the run: before this group, and all */
    double seconds, after; /* that the group takes, and all groups after it: guesses */
};

/* Who is told how a run goes. */
struct bench_watcher {
    void (*plan)(void *context, int points, double seconds); /* once, before all of them */
    void (*begin)(void *context, const struct sweep *sweep); /* before each request */
    void (*tell)(void *context, const struct bench_stage *stage);
    void *context;
};

/* How many points these requests have, and about how many seconds they take. */
enum status bench_request_plan(struct bench *bench, struct bench_request *const *requests,
                               int count, int *points, double *seconds);

/* Runs them one after another; the records go to bench->sink, at the end one of the machine. Finds
 * out the machine's facts, and keeps the calibration. */
enum status bench_request_run(struct bench *bench, struct bench_request *const *requests, int count,
                              const struct bench_watcher *watcher);

#endif
