/* kernel_bench.h: prony bench --kernels: every kernel by itself, on the cases of core/cases.def
 * that the conformance tests run. */
#ifndef PRONY_BENCH_KERNEL_BENCH_H
#define PRONY_BENCH_KERNEL_BENCH_H

#include "core/registry.h"

#include <stdbool.h>

struct kernel_request {
    const struct registry *registry;
    const char *const *ops;                /* that are wanted … */
    int op_count;                          /* … 0: all */
    const char *backends, *threads, *isas; /* lists, as of a sweep; NULL: the usual ones */
    const char *format;                    /* kernel_rows_format */
    int width;                             /* that the table may have; 0: any */
    double seconds;                        /* for each case; 0: the usual time */
    bool (*stopped)(void);
    enum status (*print)(const char *rows); /* takes each row when it is there */
};

enum status kernel_bench(const struct kernel_request *request);

#endif
