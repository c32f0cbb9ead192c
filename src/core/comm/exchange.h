/* exchange.h: what a plan of any backend needs to carry out all_reduce and wait: the comm, what is
 * on its way, the first failure. Kernels return nothing, so a failure is kept here, and run or sync
 * reports it. */
#ifndef PRONY_CORE_COMM_EXCHANGE_H
#define PRONY_CORE_COMM_EXCHANGE_H

#include "base/arena.h"
#include "core/backend.h"
#include "core/comm.h"

struct exchange {
    struct comm *comm;        /* NULL: there is nothing to exchange */
    struct comm *across;      /* of sums across copies of the network; NULL: there are none */
    struct comm_queue *queue; /* of sums across copies where there are such, else of all. NULL: a
                                 sum is complete when the op that begins it is done */
    struct traffic *traffic;  /* or NULL */
    struct sent {
        const void *data;
        uint64_t ticket; /* of the queue; 0: it is complete */
    } * sent;            /* what is on its way */
    int32_t sent_count;
    uint64_t waited_ns, busy_ns; /* since the last end; of the queue, before the first start */
    enum status status;
    char message[500];
};

/* A program that communicates needs a comm, one with sums across copies a second one. */
enum status exchange_open(struct exchange *exchange, const struct program *program,
                          const struct plan_options *options, struct arena *arena);

/* Begins to add up `count` numbers over the ranks; what was begun before at the same place has been
 * waited for. After a failure it does nothing. */
void exchange_start(struct exchange *exchange, void *data, size_t count, enum dtype dtype);
/* The same across the copies of the network. */
void exchange_start_across(struct exchange *exchange, void *data, size_t count, enum dtype dtype);
/* Until what lies at `data` is summed. */
void exchange_wait(struct exchange *exchange, const void *data);
/* A step, or several, are done: adds up what they took; the first failure, if there was one. */
enum status exchange_end(struct exchange *exchange);

#endif
