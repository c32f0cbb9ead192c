/* train_orders.c: see train_orders.h. */
#include "cli/training/train_orders.h"

#include "core/comm.h"
#include "library/prony_workers.h"
#include "prony.h"

/* As it is sent. */
struct message {
    int64_t order, steps;
};

enum status orders_give(struct comm *comm, enum order order, int64_t steps)
{
    struct message message = {order, steps};
    return comm ? comm_broadcast(comm, 0, &message, sizeof message) : STATUS_OK;
}

enum status orders_follow(struct comm *comm, struct prony *network)
{
    struct prony_progress progress;
    struct message message;
    for (;;) {
        TRY(comm_broadcast(comm, 0, &message, sizeof message));
        switch ((enum order)message.order) {
        case ORDER_RUN: TRY((enum status)prony_run(network, message.steps, &progress)); break;
        case ORDER_GATHER: TRY((enum status)prony_gather(network)); break;
        case ORDER_TEST: return (enum status)prony_end(network, NULL);
        case ORDER_STOP: return STATUS_OK;
        }
    }
}
