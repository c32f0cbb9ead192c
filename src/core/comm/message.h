/* message.h: what send and receive ops of a plan say to other ranks.
 *
 * A send copies the tensor and begins; the message moves while the comm waits for anything. It is
 * finished before the next one from the same place, or when the plan is synchronised. So two stages
 * that send to each other never wait for each other. */
#ifndef PRONY_CORE_COMM_MESSAGE_H
#define PRONY_CORE_COMM_MESSAGE_H

#include "core/backend.h"

/* All of a plan. */
struct messages {
    struct comm *comm;       /* or NULL */
    struct traffic *traffic; /* is added to; or NULL */
    const int *turn;         /* whose turn it is; NULL: nobody takes turns */
    struct message *list;    /* slots × ops: those of send and receive; NULL: it has none */
    size_t count;
    enum status failed; /* what the first came to that failed: kernels return nothing */
};

/* One op in one slot. */
struct message {
    struct messages *all;
    int peer; /* COMM_TURN: the rank whose turn it is */
    size_t bytes;
    enum dtype dtype;
    char *staged;        /* of a send: its copy */
    int32_t samples, of; /* of a send: what it sends is weighed so; of 0: it is not */
    bool under_way;
    struct comm_transfer transfer;
};

void message_send(struct message *message, const void *data);
void message_receive(struct message *message, void *data);
void message_receive_add(struct message *message, void *data); /* of f32 or f64 */

/* Makes a place for each message of each slot, with room for what a send copies. `counts`: of each
 * operand, the elements as they are stored; NULL: as many as the tensor has. */
enum status messages_make(struct messages *messages, struct arena *arena,
                          const struct program *program, int slots, const int64_t *counts);
/* The peer of a send, a receive or a receive_add. */
int message_peer(const struct op *op);

/* Waits for all sends: nobody else brings them on their way. */
void messages_finish(struct messages *messages);
/* What went wrong first. */
enum status messages_failure(const struct messages *messages);

#endif
