/* bench_limit.h: the line under a bench's table that says what the limit is, and what sets it:
 * "limit: 40.3 ms, set by multiply-adds (118 GFLOP/s measured on this machine)". */
#ifndef PRONY_CLI_BENCH_LIMIT_H
#define PRONY_CLI_BENCH_LIMIT_H

#include "base/json.h"
#include "record/record.h"

enum { LIMIT_UNITS = 8 };

struct bench_limit {
    double low_ns, high_ns;         /* of all results; 0: none has a limit */
    bool flop, bytes, latency;      /* what sets it */
    double slowest, fastest;        /* bytes a second that memory gave */
    struct limit_unit {             /* what multiplies, each once */
        char name[POINT_TEXT];      /* "": a CPU */
        char precision[POINT_TEXT]; /* "fp32" */
        int64_t threads;
    } units[LIMIT_UNITS];
    int unit_count;
};

void bench_limit_add(struct bench_limit *limit, const struct record *record);
/* Adds the line, without its newline; nothing where no result has a limit. `calibration` has the
 * ceilings, or is NULL. */
void bench_limit_print(const struct bench_limit *limit, const struct json *calibration,
                       struct text *out);

#endif
