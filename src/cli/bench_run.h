/* bench_run.h: what runs a list of requests, for `prony bench`, `suite` and `answer`: where it
 * goes, and how far it is. */
#ifndef PRONY_CLI_BENCH_RUN_H
#define PRONY_CLI_BENCH_RUN_H

#include "bench/sweep/request.h"
#include "cli/commands.h"
#include "cli/show/bench_output.h"

/* Runs them one after another. With `resume`, without what the output has already. */
enum status cli_bench(const struct cli *cli, struct bench_request *const *requests, int count,
                      struct bench_output *output, bool resume);

#endif
