/* bench_request.h: the arguments of one `prony bench`, from the command line or a line of a suite,
 * and what runs a list of them. */
#ifndef PRONY_CLI_BENCH_REQUEST_H
#define PRONY_CLI_BENCH_REQUEST_H

#include "bench/sweep/sweep.h"
#include "cli/commands.h"
#include "cli/show/bench_output.h"

/* Filled by its flags. */
struct bench_request {
    const char *axis_text[AXIS_COUNT];
    const char *skip;
    const char *against;
    double seconds; /* 0 until bench_request_sweep: as long as what is asked for needs */
    double patience, margin;
    const char *bound, *until, *dataset;
    int64_t seed, seeds;
    struct scenario_bound holds; /* what bound and until say */
    double accuracy, loss;
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

/* Is there what its sweep names? bench_request_run asks the same before it runs anything. */
enum status bench_request_check(const struct cli *cli, const struct bench_request *request);

/* Runs them one after another. With `resume`, without what the output has already. */
enum status bench_request_run(const struct cli *cli, struct bench_request *const *requests,
                              int count, struct bench_output *output, bool resume);

#endif
