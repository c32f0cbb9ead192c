/* actions.h: what a simulated worker does in a step: the ops of its program, as seconds that it
 * computes and as calls of core/comm. Ops that follow each other without a message are one action.
 *
 * An op takes a share of its part's time: as much as its FLOP and bytes are of the part's
 * (split_cost). */
#ifndef PRONY_SIMULATE_ACTIONS_H
#define PRONY_SIMULATE_ACTIONS_H

#include "core/program.h"

struct action {
    enum { ACTION_COMPUTE, ACTION_REDUCE, ACTION_WAIT, ACTION_SEND, ACTION_RECEIVE } kind;
    double seconds;    /* of COMPUTE */
    size_t bytes;      /* of the others */
    int32_t peer;      /* of SEND and RECEIVE */
    int32_t reduction; /* of REDUCE and WAIT: which, from 0 */
};

struct actions {
    int32_t count, room;
    int32_t sealed; /* how many no computation is added to any more */
    struct action *list;
    struct {
        int32_t from, to;
    } parts[PART_COUNT]; /* of the program that was added last */
    int32_t reductions;
    double seconds; /* computed, in all parts, each once */
    uint64_t reduced_bytes;
};

/* How long a part of a program takes per unit of split_cost. */
struct pace_of_parts {
    double seconds[PART_COUNT];
};
/* So that the program takes `seconds` in all, of them a share in each part; NaN: as its cost is. */
struct pace_of_parts actions_pace(const struct program *program, double seconds,
                                  const double shares[PART_COUNT]);

/* Appends the ops of a program; the list is freed by actions_free. */
enum status actions_add(struct actions *actions, const struct program *program,
                        const struct pace_of_parts *pace);
void actions_free(struct actions *actions);

#endif
