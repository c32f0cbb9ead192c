/* watch.h: what else the machine did while something was timed, of which its figures may suffer:
 * the host of a virtual machine took the CPU away, others used it or the GPU, its clock changed. */
#ifndef PRONY_BENCH_METER_WATCH_H
#define PRONY_BENCH_METER_WATCH_H

#include "base/text.h"
#include "bench/meter/energy.h"
#include "bench/meter/family.h"
#include "record/record.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum { WATCH_ROWS = 4, WATCH_PROCESSES = 256 };

/* What the system counts up, and its state at one moment; NaN where it does not tell. */
struct watch_reading {
    uint64_t wall_ns;
    double steal_ns, busy_ns; /* of the CPUs that this process may use */
    double ours_ns;           /* CPU time of this process and of those that are watched with it */
    double ghz, throttled;
    uint64_t at_us;             /* since 1970 */
    double capped_s, hot_s;     /* of the GPU: see energy.h */
    struct gpu_company company; /* there */
};

struct watch {
    pid_t processes[WATCH_PROCESSES]; /* ours beside this one: peers */
    int process_count;
    bool gpu;       /* is the GPU to be watched as well? */
    cpu_set_t cpus; /* that this process may use; none: all of the machine */
    struct watch_reading start, end;
};

/* What happens on CPUs that this process may not use (taskset, Slurm) does not count. Call it
 * before a pool pins the thread to one of them. */
void watch_open(struct watch *watch);

/* What this process does is ours too. What ended meanwhile is counted. */
void watch_family(struct watch *watch, const struct family *family);
void watch_begin(struct watch *watch);
void watch_end(struct watch *watch);

/* Rows for a record: steal (per cent of the time), other_load (cores that others kept busy), and of
 * a GPU gpu_others (processes on it that are none of ours) and gpu_others_busy (per cent: how much
 * one of them computed at most). How many. */
size_t watch_report(const struct watch *watch, struct record_meter rows[WATCH_ROWS]);
/* How many times longer work takes now than with a CPU of its own, because others want it too: 1 on
 * an idle machine of that many cores. Takes up to 0.2 s. */
double watch_crowd(int cores);
/* Appends "; …" for each thing that makes the figures doubtful. */
void watch_note(const struct watch *watch, struct text *notes);

#endif
