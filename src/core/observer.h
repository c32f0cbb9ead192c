/* observer.h: how a run is watched. Observation is asked for at prepare and costs nothing when it
 * is not: the timed plan and the observed plan are two plans, and records say so. */
#ifndef PRONY_CORE_OBSERVER_H
#define PRONY_CORE_OBSERVER_H

#include <stdint.h>

enum observe { OBSERVE_NOTHING, OBSERVE_PARTS, OBSERVE_OPS };

struct event {
    int32_t op;         /* index in the program; -1 for a whole part */
    int32_t part;       /* enum part */
    const char *kernel; /* valid while the plan lives; "" for a part */
    int32_t lane;       /* thread, stream or multiprocessor; of staged steps enum lane (lanes.h) */
    uint64_t start_ns, end_ns; /* one clock within a plan; its zero is arbitrary */
};

struct observer {
    enum observe level;
    void (*event)(void *context, const struct event *event); /* called from run or sync */
    void *context;
};

#endif
