/* prony_workers.h: for the commands of prony: a network that several processes train together. */
#ifndef PRONY_LIBRARY_PRONY_WORKERS_H
#define PRONY_LIBRARY_PRONY_WORKERS_H

#include <stdbool.h>

struct comm;
struct prony;

/* From the next prony_begin on, its trainings are those of all that the comm reaches: prony_begin,
 * prony_run and prony_end are called by all of them. The comm outlives these. NULL: alone.
 * sync_norm: batch-norm sees the batch of all of them. */
void prony_set_comm(struct prony *network, struct comm *comm, bool sync_norm);

#endif
