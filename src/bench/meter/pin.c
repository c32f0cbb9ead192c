/* pin.c: see pin.h. */
#include "bench/meter/pin.h"

#include "base/machine/cpu.h"

#include <math.h>
#include <sched.h>

void pins_find(struct pins *pins)
{
    pins->count = cpu_list(true, pins->cpus, PIN_CPUS);
}

/* A share beyond the least that is somebody else's work, and what is left of it with every round
 * that goes elsewhere: half of the time is forgotten after 15. */
static const double OTHERS = 0.1, FORGETS = 0.9;

int pins_choose(struct pins *pins, int64_t round)
{
    if (pins->count == 0)
        return 0;
    double least = (double)INFINITY;
    for (int i = 0; i < pins->count; i++) {
        pins->waits[i] *= FORGETS;
        least = fmin(least, pins->waits[i]);
    }
    int index = (int)(round % pins->count);
    while (pins->waits[index] > least + OTHERS)
        index = (index + 1) % pins->count;
    return index;
}

void pins_note(struct pins *pins, int index, uint64_t cpu_ns, uint64_t wall_ns)
{
    if (wall_ns > 0)
        pins->waits[index] = 1 - fmin(1, (double)cpu_ns / (double)wall_ns);
}

static void apply(const struct family *family, const cpu_set_t *set)
{
    pid_t threads[FAMILY_THREADS];
    if (!family->count) {
        sched_setaffinity(0, sizeof *set, set);
        return;
    }
    for (int i = family_threads(family, threads) - 1; i >= 0; i--)
        sched_setaffinity(threads[i], sizeof *set, set);
}

void pins_set(const struct pins *pins, const struct family *family, int index)
{
    cpu_set_t set;
    if (pins->count < 2)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)pins->cpus[index], &set);
    apply(family, &set);
}

void pins_release(const struct pins *pins, const struct family *family)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < pins->count; i++)
        CPU_SET((size_t)pins->cpus[i], &set);
    if (pins->count >= 2)
        apply(family, &set);
}
