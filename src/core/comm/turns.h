/* turns.h: whose turn it is at a rank that serves others as they come: a parameter server.
 *
 * Each of the ranks that work comes a known number of times, and says so by four bytes. The server
 * takes the next one that has come, and begins behind the last one, so that none waits for ever. It
 * serves it alone, then takes the next. How stale a rank's gradient is, is known here: the turns
 * that others have had since its own last one. */
#ifndef PRONY_CORE_COMM_TURNS_H
#define PRONY_CORE_COMM_TURNS_H

#include "core/comm.h"

/* Of gradients: how many updates there had been since their worker took the parameters. */
struct staleness {
    double updates, sum, most; /* of all updates; the mean is sum / updates */
};

struct turns {
    struct comm *comm;
    int now;   /* whose turn it is: of messages to COMM_TURN */
    int ranks; /* [0, ranks) work */
    struct turn *of;
    int64_t taken;
    struct staleness stale;
};

enum status turns_open(struct turns *turns, struct comm *comm, int ranks);
/* The rank will come so many times more. */
void turns_expect(struct turns *turns, int rank, int64_t times);
/* Waits for the next rank, which is `now`; *any is false when none will come any more. */
enum status turns_take(struct turns *turns, bool *any);
void turns_close(struct turns *turns); /* zeroed is fine */

#endif
