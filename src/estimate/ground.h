/* ground.h: memory to run bursts (bursts.h) over, the threads that do, and the clock around them.
 */
#ifndef PRONY_ESTIMATE_GROUND_H
#define PRONY_ESTIMATE_GROUND_H

#include "base/pool.h"
#include "estimate/calibrate.h"

struct ground {
    struct cpu cpu;
    struct pool *pool; /* NULL between two teams */
    char *mapped, *data;
    uint64_t mapped_bytes;
};

/* Closed by ground_close, also when opening the team failed. */
enum status ground_open(struct ground *ground, enum pages pages, uint64_t set_bytes);
void ground_close(struct ground *ground);

/* Each thread on a CPU of its own: left to itself the system wakes a thread on the CPU of the one
 * that called it, and two of them take turns for longer than a burst lasts. One alone may go where
 * it is quiet. The caller has its own CPUs back when the team is dismissed. */
enum status ground_team(struct ground *ground, int threads);
void ground_dismiss(struct ground *ground);

struct burst {
    burst_kernel *kernel;
    char *data;
    long bytes, times; /* that a pass has; passes */
    bool apart;        /* every thread has bytes of its own; else all run over the same few */
    float sink[POOL_MOST];
};
enum { BURST_LEAST_NS = 1000000 }; /* shorter ones measure how threads wake up */

/* All of its passes, by every thread of the team. */
uint64_t burst_run_ns(struct pool *pool, struct burst *burst);
/* The shortest time of one pass. Passes per burst double until one is long enough. */
double burst_best_ns(struct pool *pool, struct burst *burst, uint64_t limit_ns);

#endif
