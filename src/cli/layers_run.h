/* layers_run.h: prony profile --framework: a network timed in several frameworks in turns, as the
 * bench does it, then watched in each, layer by layer. */
#ifndef PRONY_CLI_LAYERS_RUN_H
#define PRONY_CLI_LAYERS_RUN_H

#include "bench/sweep/request.h"
#include "cli/commands.h"

/* The request names one network and one value of each axis but framework. Prints a report, or with
 * `json` one object. */
enum status layers_run(const struct cli *cli, struct bench_request *request, bool json);

#endif
