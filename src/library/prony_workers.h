/* prony_workers.h: for the commands of prony: a network that several processes train together. */
#ifndef PRONY_LIBRARY_PRONY_WORKERS_H
#define PRONY_LIBRARY_PRONY_WORKERS_H

struct prony;
struct sharing;

/* From the next prony_begin on, its trainings are those of all that the comm reaches: prony_begin,
 * prony_run, prony_gather and prony_end are called by all of them. The comm outlives these. */
void prony_share(struct prony *network, const struct sharing *sharing);
/* Brings what all of them have learnt into the network of the first, before that is saved on the
 * way. */
int prony_gather(struct prony *network);
/* Micro-batches of a step. */
int prony_micros(const struct prony *network);

#endif
