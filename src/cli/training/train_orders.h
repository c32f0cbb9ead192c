/* train_orders.h: workers that train together do the same at the same time. Worker 0 looks at the
 * clock and at Ctrl-C, and tells the others what is next. */
#ifndef PRONY_CLI_TRAINING_TRAIN_ORDERS_H
#define PRONY_CLI_TRAINING_TRAIN_ORDERS_H

#include "base/status.h"

#include <stdint.h>

struct comm;
struct prony;

enum order {
    ORDER_RUN,    /* so many steps: prony_run */
    ORDER_GATHER, /* what is learnt comes together where it is saved: prony_gather */
    ORDER_TEST,   /* the end of the training, prony_end, and of what is to be done */
    ORDER_STOP,   /* nothing more */
};

/* Worker 0 tells the others, before it does the same; without a comm there are none. */
enum status orders_give(struct comm *comm, enum order order, int64_t steps);
/* What all others do: as they are told, until there is nothing more. */
enum status orders_follow(struct comm *comm, struct prony *network);

#endif
