/* reduce_bench.h: how long an all-reduce takes, by each way that a transport has.
 *
 * The ways take turns, round by round, together with a plain copy of as many bytes on all ranks at
 * once. The copy gives the bound: an all-reduce moves 2 (P − 1) ÷ P of its bytes in and out of each
 * rank, at the rate of a copy at best. A round's time is the slowest rank's. */
#ifndef PRONY_BENCH_COMM_REDUCE_BENCH_H
#define PRONY_BENCH_COMM_REDUCE_BENCH_H

#include "core/comm.h"

enum { REDUCE_SIZES = 16, REDUCE_ROWS = 1024 };

struct reduce_request {
    size_t sizes[REDUCE_SIZES]; /* bytes of f32 */
    int size_count;
    double seconds; /* for each size */
    bool (*stopped)(void);
};

struct reduce_row {
    char transport[16], way[16];
    int ranks;
    size_t bytes;
    bool chosen;                       /* what comm_all_reduce takes */
    bool right;                        /* the sum was what it must be, on every rank */
    double min_ns, median_ns, mean_ns; /* of an all-reduce */
    double bound_ns;                   /* from the median of the copies */
    int64_t rounds;
};

struct reduce_rows {
    int count;
    struct reduce_row rows[REDUCE_ROWS];
};

/* Called by all ranks; rank 0 adds the rows to its `out`, which others do not touch. */
enum status reduce_bench(struct comm *comm, const struct reduce_request *request,
                         struct reduce_rows *out);

#endif
