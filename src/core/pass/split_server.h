/* split_server.h: a parameter server: a program → the programs of ranks that work and of ranks that
 * serve. */
#ifndef PRONY_CORE_PASS_SPLIT_SERVER_H
#define PRONY_CORE_PASS_SPLIT_SERVER_H

#include "core/pass/split_ranks.h"

struct server_options {
    int32_t ranks, servers; /* the last `servers` of the ranks serve, the others work */
    int32_t own;            /* this rank's parameters have values; -1: none have */
    int32_t samples, of;    /* of a batch: this worker's, which may be none, and those of all */
    bool alone;             /* asynchronous: every worker's gradient is an update of its own */
};

/* A worker has all parameters, and computes gradients of its own samples, for which `program` was
 * compiled. It sends each to the server of that parameter as soon as it is complete, and ends the
 * step with the new values. A server has some of the parameters and all that the optimiser keeps of
 * them. It adds up the gradients in the order of the workers, each weighed by its samples, and
 * updates. So the step is that of the whole batch.
 *
 * Where each is alone, a server is told between runs who sends (COMM_TURN), and updates by that
 * gradient; a worker says before that it comes, by a message of four bytes.
 *
 * Running statistics go the same way: their mean, or the last one's. Parameters are given to the
 * servers whole, so that bytes are balanced.
 *
 * `program` is not fused. Refused: more servers than parameters, and updates that need more than
 * one server has, as clipping by the norm of all gradients by several. */
enum status split_server(const struct program *program, const struct params *params,
                         const struct server_options *options, struct split_ranks *out);

#endif
