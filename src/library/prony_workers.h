/* prony_workers.h: for the commands of prony: a network that several processes train together. */
#ifndef PRONY_LIBRARY_PRONY_WORKERS_H
#define PRONY_LIBRARY_PRONY_WORKERS_H

#include <stdbool.h>

struct prony;
struct sharing;

/* From the next prony_begin on, its trainings are those of all that the comm reaches: prony_begin,
 * prony_run, prony_gather and prony_end are called by all of them. The comm outlives these. */
void prony_share(struct prony *network, const struct sharing *sharing);
/* Brings what all of them have learnt into the network of the first, before that is saved on the
 * way. */
int prony_gather(struct prony *network);
/* Of an asynchronous server: how many updates had been done, from when a worker took the parameters
 * until its gradient was applied: the mean and the maximum of all updates so far. False: none are
 * known. */
bool prony_staleness(const struct prony *network, double *mean, double *most);
/* Micro-batches of a step. */
int prony_micros(const struct prony *network);

#endif
