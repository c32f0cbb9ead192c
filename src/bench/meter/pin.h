/* pin.h: ties a process to one CPU, so that two that are compared run on the same one: CPUs differ,
 * by what else runs on them, or by what the host of a virtual machine has put beside them. */
#ifndef PRONY_BENCH_METER_PIN_H
#define PRONY_BENCH_METER_PIN_H

#include "bench/meter/family.h"

#include <stdint.h>

enum { PIN_CPUS = 1024 };

/* The CPUs that may be used, found before anything is pinned. */
struct pins {
    int cpus[PIN_CPUS];
    double waits[PIN_CPUS]; /* the share of its time for which whoever ran there had to wait */
    int count;              /* 0: the system does not say, and nothing is pinned */
};

void pins_find(struct pins *pins);
/* The index of the CPU for the n-th round: one after the other, but not where others run unless
 * they do everywhere; every now and then it looks again. */
int pins_choose(struct pins *pins, int64_t round);
/* What was seen there: CPU time and time. */
void pins_note(struct pins *pins, int index, uint64_t cpu_ns, uint64_t wall_ns);
/* Every thread of the family (of this process the calling thread) runs on cpus[index] from now on.
 * What the system refuses is left as it is: only noise. */
void pins_set(const struct pins *pins, const struct family *family, int index);
/* … on all of them again. */
void pins_release(const struct pins *pins, const struct family *family);

#endif
