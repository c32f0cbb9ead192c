/* comm_inside.h: what the files of core/comm/ and the transports share. */
#ifndef PRONY_CORE_COMM_COMM_INSIDE_H
#define PRONY_CORE_COMM_COMM_INSIDE_H

#include "core/comm.h"

/* A receive whose bytes are numbers that are added to those in `data`. */
void comm_begin_add(struct comm *comm, int from, void *data, size_t bytes, enum dtype dtype,
                    struct comm_transfer *transfer);
/* The comm has failed with this thread's last message; all later calls give it, too. */
enum status comm_break(struct comm *comm, enum status code);
/* comm->scratch has room for so many bytes. */
enum status comm_need_scratch(struct comm *comm, size_t bytes);

/* to[i] = to[i] + from[i] over so many bytes of numbers. */
void comm_add(enum dtype dtype, void *to, const void *from, size_t bytes);
/* A received piece: copied, or added, to where it belongs. */
void comm_apply(struct comm_transfer *transfer, const void *piece, size_t bytes);

/* The threads of the system. */
extern const struct comm_crew comm_threads_crew;
static inline const struct comm_crew *comm_crew(const struct comm *comm)
{
    return comm->transport->crew ? comm->transport->crew : &comm_threads_crew;
}

#endif
