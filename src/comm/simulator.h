/* simulator.h: ranks that are simulated: what the plugin comm_simgrid.so gives beside a comm.
 *
 * All ranks run in one thread of this process, in turns, and in simulated time. Their messages have
 * a size and no bytes: what a rank gives to a collective is never read or written. Everything else
 * of core/comm is as ever: the collectives, the order of messages, the queue beside the
 * computation. */
#ifndef PRONY_COMM_SIMULATOR_H
#define PRONY_COMM_SIMULATOR_H

#include "core/comm.h"

struct simulation {
    const char *platform; /* a file of SimGrid's: hosts, links, routes */
    int ranks;
    /* The host of a rank; the text lives until the next call. NULL: the platform's first one has
     * the first rank, in the order of their names. */
    const char *(*host)(void *context, int rank);
    comm_main *main; /* what each rank does */
    void *context;
};

struct simulated_work;

struct simulator {
    /* Until all ranks have ended; once in a process. SimGrid ends the process where it cannot read
     * the platform, and says why on standard error. */
    enum status (*run)(const struct simulation *simulation);

    /* Called by ranks. */
    double (*now_s)(void);
    void (*compute)(double seconds);
    /* Work on a host, which shares it out evenly among all that it has at once, while the rank goes
     * on; its end waits for it. `amount` is in what the platform counts the host's speed in. */
    enum status (*begin_work)(const char *host, double amount, struct simulated_work **out);
    void (*end_work)(struct simulated_work *work);
};

#endif
