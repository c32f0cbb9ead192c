/* worker.h: one simulated worker's step. */
#ifndef PRONY_SIMULATE_WORKER_H
#define PRONY_SIMULATE_WORKER_H

#include "comm/simulator.h"
#include "simulate/actions.h"
#include "simulate/simulate.h"

/* What all workers share; the sums are over them, since they take turns in one thread. */
struct work_plan {
    const struct simulator *simulator;
    const struct simulate_request *request;
    enum parallelism parallelism; /* one worker shares out nothing: data */
    struct actions *lists; /* of the workers; in data parallelism of those with most and least … */
    int32_t list_count, most; /* … samples: so many workers have the first */
    int32_t micros;
    double feed_bytes; /* of a worker's samples; 0: nothing limits them */
    void *data;        /* what is summed: addresses that nobody touches */
    struct simulate_result sum;
};

/* As comm_main; the context is a struct work_plan. */
enum status worker_main(struct comm *comm, void *context);

#endif
