/* pin.h: ties a process to one CPU, so that two that are compared run on the same one: CPUs differ,
 * by what else runs on them, or by what the host of a virtual machine has put beside them. */
#ifndef PRONY_BENCH_PIN_H
#define PRONY_BENCH_PIN_H

#include <sys/types.h>

enum { PIN_CPUS = 1024 };

/* The CPUs that may be used, found before anything is pinned. */
struct pins {
    int cpus[PIN_CPUS];
    int count; /* 0: the system does not say, and nothing is pinned */
};

void pins_find(struct pins *pins);
/* Every thread of the process (0: the calling thread) runs on cpus[index mod count] from now on.
 * What the system refuses is left as it is: only noise. */
void pins_set(const struct pins *pins, pid_t process, long index);
/* … on all of them again. */
void pins_release(const struct pins *pins, pid_t process);

#endif
