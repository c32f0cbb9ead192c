/* top_costs.h: how `explain` and `profile` end: the three largest costs, a sentence each, and what
 * bounds them. */
#ifndef PRONY_CLI_TOP_COSTS_H
#define PRONY_CLI_TOP_COSTS_H

#include "base/text.h"
#include "core/program.h"

enum { TOP_COSTS = 3 };

struct top_cost {
    const struct program *program;
    const struct op *op;
    double size; /* what is compared: ns, or FLOP */
    double floor_ns;
    const char *bound; /* "flop", "bytes", "latency"; NULL: unknown */
};

struct top_costs {
    struct top_cost list[TOP_COSTS]; /* the largest first */
    int count;
    double all; /* of all that were added */
};

void top_costs_add(struct top_costs *costs, const struct top_cost *cost);

/* Adds the sentence about one of them. */
typedef void top_costs_sentence(const struct top_costs *costs, int index, struct text *out);
/* All of them, numbered, under a heading; nothing where there is none. */
void top_costs_print(const struct top_costs *costs, top_costs_sentence *sentence, struct text *out);

/* "dense3 dense_sgd": its layer and what it does. */
void top_cost_name(const struct top_cost *cost, struct text *out);
/* "memory: 16.6 MB"; "multiply-adds: 8.32 MFLOP = 4.16 M multiply-adds". */
void top_cost_bound(const struct top_cost *cost, struct text *out);

#endif
