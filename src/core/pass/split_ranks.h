/* split_ranks.h: what a split makes of one program: the programs of several ranks, and which part
 * of the network's parameters each of them has.
 *
 * A rank's parameters have the names that the network gives them; an entry is the whole of the
 * network's, or a slice of it along one axis. So a file is the same whatever trained it: ranks take
 * their slices from it, and give them back to it. */
#ifndef PRONY_CORE_PASS_SPLIT_RANKS_H
#define PRONY_CORE_PASS_SPLIT_RANKS_H

#include "core/params.h"
#include "core/program.h"

/* Which part of the network's entry an entry of a rank is. */
struct rank_slice {
    int32_t entry; /* of the network's parameters */
    int32_t axis;  /* -1: all of it */
    int64_t from;  /* the first place on the axis; how many says the entry's shape */
};

struct split_rank {
    struct program *program;
    struct params params;      /* bare, unless values were asked for (own) */
    struct rank_slice *slices; /* per entry of `params` */
    bool copies;               /* others have all of it, and newer: it gives nothing back */
};

struct split_ranks {
    struct arena arena;
    int32_t count;
    struct split_rank *ranks;
};

void split_ranks_free(struct split_ranks *split); /* zeroed is fine */

/* Gives a rank's entries the values they start from, as the network's would be filled: by the seed
 * of its control block. `whole` has the network's entries and may be bare. */
enum status split_rank_fill(struct split_rank *rank, const struct params *whole, uint64_t seed);
/* Copies the rank's slices out of the network's parameters, and the control block. */
void split_rank_take(struct split_rank *rank, const struct params *whole);
/* Copies the values of one of the rank's entries back. */
void split_rank_give_entry(const struct split_rank *rank, int32_t entry, void *values,
                           struct params *whole);
/* Copies all of them back, and the control block. */
void split_rank_give(const struct split_rank *rank, struct params *whole);

/* Is every entry of the network's some rank's? Then ranks need no other place for its values. */
bool split_ranks_cover(const struct split_ranks *split, const struct params *whole);

/* Bytes that the rank's program sends in one run of these parts. */
uint64_t split_rank_sends(const struct split_rank *rank, unsigned parts);

/* Some places of one axis of a tensor. */
struct tensor_slice {
    int32_t axis;
    int64_t from, count;
};

/* For passes: a rank's program being written from the ops of `from`. */
struct rank_writer {
    const struct program *from;
    const struct params *whole;
    struct split_rank *rank;
    struct draft draft;
    int32_t *tensors; /* per tensor of `from`: its index here + 1, or 0: it is not here yet */
    /* Which part of a tensor the rank has; false, or NULL: all of it. */
    bool (*slice)(const void *context, int32_t tensor, struct tensor_slice *out);
    const void *context;
};

/* Makes room for `count` ranks. */
enum status split_ranks_begin(struct split_ranks *split, int32_t count, const struct params *whole,
                              int32_t own);
/* Begins the program of a rank, under this name. */
enum status rank_writer_begin(struct rank_writer *writer, struct split_ranks *split, int32_t rank,
                              const struct program *from, const struct params *whole,
                              const char *name);
/* The rank's tensor for one of `from`; kept ones are declared. -1 once the draft failed. */
int32_t rank_tensor(struct rank_writer *writer, int32_t tensor);
/* Appends an op of `from` over the rank's tensors. */
struct op *rank_op(struct rank_writer *writer, const struct op *op);
enum status rank_writer_finish(struct rank_writer *writer);

#endif
