/* passes.h: meters that would disturb what is timed. Each has a pass of its own over a few
 * iterations, after the timing; what it counts in one iteration goes with the time of the timed
 * ones. */
#ifndef PRONY_BENCH_METER_PASSES_H
#define PRONY_BENCH_METER_PASSES_H

#include "base/arena.h"
#include "bench/meter/family.h"
#include "core/job.h"
#include "record/record.h"

#include <stdbool.h>

enum { PASSES_CALLS = 8 /* named, at most */, PASSES_ROWS = 24 };

struct passes {
    struct job *job;
    const struct family *family; /* that does the work */
    bool gpu;                    /* … on a GPU */
    bool cold;                   /* it was timed with cold caches, which it does not find here */
    double iteration_ns;
    double patience_ns; /* a longer iteration is not run again */
    int64_t batch;
    const char *powercap; /* the folder of RAPL's counters; NULL: the system's */
};

/* Rows for the record: system_calls and system_calls.NAME of the most frequent ones (a second),
 * cycles, instructions, cache_misses, branch_misses (an iteration), energy (joules a sample); on a
 * GPU gpu_power, gpu_utilisation, gpu_clock, gpu_memory_clock and gpu_memory. What is not available
 * says why, also because the work broke. Fails only when memory is out. Texts are in the arena. */
enum status passes_run(const struct passes *passes, struct arena *arena,
                       struct record_meter rows[PASSES_ROWS], size_t *count);

/* The same for work that does nothing: which of them this machine has. */
enum status passes_try(struct arena *arena, struct record_meter rows[PASSES_ROWS], size_t *count);

#endif
