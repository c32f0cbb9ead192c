/* split_place.h: where model parallelism puts tensors: what split_model.c finds out op by op.
 *
 * A tensor that is shared out is outer × units × block elements, in any shape in which it is
 * viewed. A unit stays together (a channel, a head), and a rank has some units of each of the
 * `outer`. */
#ifndef PRONY_CORE_PASS_SPLIT_PLACE_H
#define PRONY_CORE_PASS_SPLIT_PLACE_H

#include "core/pass/split_ranks.h"

enum place_kind {
    PLACE_UNKNOWN, /* no op touched it yet */
    PLACE_WHOLE,   /* all ranks have all of it */
    PLACE_SHARED,  /* each has some of its units */
    PLACE_PARTIAL, /* each has a summand of it */
};

struct place {
    enum place_kind kind;
    int32_t group;        /* of SHARED: whose units */
    int64_t outer, block; /* of SHARED */
};

/* Tensors that are shared out together: from where they begin to where they are added up. */
struct place_group {
    int64_t units;
};

/* A pass over all ops. */
struct placing {
    struct arena arena;
    const struct program *program;
    int32_t ranks, group_count;
    struct place_group *groups;
    int32_t *begins;       /* per op: the group that begins with its result, + 1; 0: none */
    struct place *tensors; /* per root that is not kept */
    struct place *entries; /* per entry of the parameters: those, their gradients */
    bool *summed;          /* per op: its result is a part of a sum */
    int32_t *reduced;      /* per root: the op before which its parts are added up, + 1; 0: none */
    /* Where the pass failed. */
    int32_t wanted;       /* the root that would have to be shared out too; -1: nothing helps */
    int64_t wanted_units; /* the units would have to be so many; 0: they need not */
};

enum status placing_begin(struct placing *placing, const struct program *program, int32_t entries,
                          int32_t ranks);
/* Places everything, by the groups there are. False: it cannot be. */
bool placing_run(struct placing *placing);
void placing_free(struct placing *placing);

/* The symbol by which a group can begin with such an op: of its result, or of the rows of its
 * table; NULL: none can. */
const char *place_begin(const struct placing *placing, int32_t op);
/* The units of a group that begins with this op: the places of that dimension. */
int64_t place_units(const struct placing *placing, int32_t op);

/* Of a tensor, in its own shape: its place and the axis that is shared out, -1: none is. */
const struct place *place_of(const struct placing *placing, int32_t tensor, int32_t *axis);
/* The places of an axis that a rank has: [*from, *from + *count). */
void place_range(const struct placing *placing, const struct place *place,
                 const struct shape *shape, int32_t axis, int32_t rank, int64_t *from,
                 int64_t *count);
#endif
