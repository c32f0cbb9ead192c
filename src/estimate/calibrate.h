/* calibrate.h: what this machine's CPU can do at best: the ceilings that floors are made of.
 *
 * The best of short bursts, for a number of threads and a working set: FP32 multiply-adds in
 * registers; reading; reading and writing back. Memory is on 2 MB pages where the system gives
 * them. A burst takes well under a second and is remembered, so that every record of a run refers
 * to the same ceilings. */
#ifndef PRONY_ESTIMATE_CALIBRATE_H
#define PRONY_ESTIMATE_CALIBRATE_H

#include "base/cpu.h"
#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

struct ceilings {
    int threads;
    uint64_t set_bytes; /* the working set it was measured with */
    enum isa isa;
    double flop_per_s;
    double read_per_s;   /* bytes read */
    double update_per_s; /* bytes read plus bytes written, in place */
};

enum { CALIBRATION_MOST = 64 };

/* What was measured so far; a zeroed struct is ready. One thread at a time. */
struct calibration {
    int count;
    struct ceilings list[CALIBRATION_MOST];
};

/* Measures, or remembers. `set_bytes` is taken within 16 KB … 1 GB and rounded down a little, which
 * can only raise the ceiling. STATUS_UNSUPPORTED in a build that is not optimised. */
enum status calibrate(struct calibration *calibration, int threads, uint64_t set_bytes,
                      const struct ceilings **out);

/* Everything measured so far, as an object. */
void calibration_write(const struct calibration *calibration, struct json_writer *writer);

#endif
