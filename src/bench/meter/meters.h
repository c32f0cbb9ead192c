/* meters.h: what a process and its family used while it was timed: CPU time, memory, page faults,
 * context switches.
 *
 * Read from outside the timed samples, at the edges of a slice of them, by the cheapest means that
 * works for other processes too. Nothing here disturbs what is measured. */
#ifndef PRONY_BENCH_METER_METERS_H
#define PRONY_BENCH_METER_METERS_H

#include "bench/meter/family.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { METERS_COUNT = 4 };

/* A zeroed struct is ready. */
struct meters {
    uint64_t wall_ns, cpu_ns, page_faults, context_switches; /* summed over slices */
    struct meters_reading {
        uint64_t wall_ns, cpu_ns, page_faults, context_switches;
    } start;
    bool running; /* between begin and end */
    bool lost;    /* a reading failed: the process is gone, or /proc is not there */
};

void meters_begin(struct meters *meters, const struct family *family);
void meters_end(struct meters *meters, const struct family *family);

/* The rows for the record; call it while the processes live. Texts are static. */
void meters_report(const struct meters *meters, const struct family *family,
                   struct record_meter rows[METERS_COUNT]);

#endif
