/* bench_kernels.h: prony bench --kernels: every kernel by itself, on the cases of core/cases.def
 * that the conformance tests run. */
#ifndef PRONY_CLI_BENCH_KERNELS_H
#define PRONY_CLI_BENCH_KERNELS_H

#include "cli/bench_request.h"

/* The positional arguments are the ops that are wanted; none: all. Rows are printed as they are
 * measured; what was interrupted keeps those. */
enum status bench_kernels(const struct cli *cli, const struct bench_request *request,
                          const struct output_flags *flags);

#endif
