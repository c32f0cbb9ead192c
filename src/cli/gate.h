/* gate.h: --fail-if-slower SHARE of `bench --against` and `compare`: what ends them with status 1.
 * So a build server stops a change that makes something slower. */
#ifndef PRONY_CLI_GATE_H
#define PRONY_CLI_GATE_H

#include "base/args.h"
#include "record/record.h"

/* The row of the flag; `type` has a double `share`. */
#define GATE_ARG(type)                                                                             \
    .name = "fail-if-slower", .kind = ARG_SHARE, ARG_PLACE(type, share), "SHARE",                  \
    "end with status 1 when a result is slower by more than this (5%), failed, is missing, or "    \
    "cannot be judged"

/* How many pairs there were of each kind. */
struct gate {
    double share; /* INFINITY: nothing fails, however slow */
    size_t pairs, slower, failed;
    size_t once;      /* slower by more than the share, but measured too few times to tell */
    size_t disturbed; /* no verdict, because the machine was disturbed */
};

/* Counts one pair that was measured on both sides. `disturbed`: by what, or "". */
void gate_count(struct gate *gate, const struct comparison *found, const char *disturbed);

/* STATUS_WRONG, with what to do, where something must stop. */
enum status gate_judge(const struct gate *gate);

#endif
