/* split_data.h: the program of one rank in data parallelism. */
#ifndef PRONY_CORE_PASS_SPLIT_DATA_H
#define PRONY_CORE_PASS_SPLIT_DATA_H

#include "core/pass/split_ranks.h"

enum { SPLIT_BUCKET_BYTES = 4 << 20 };

/* What a rank has of a batch. */
struct data_share {
    int32_t samples, of; /* its own, which may be none, and those of all ranks together */
    bool whole_norm; /* batch-norm computes with the mean and variance of the batch of all ranks,
                        not of the rank's own samples */
    int32_t bucket_bytes; /* gradients are reduced in pieces of about that many; 0: as usual */
    bool across;      /* the program is a rank's, of several that share a copy of the network: sums
                         are over the copies */
    bool accumulated; /* gradients add up over several runs of the backward part: they are summed
                         before the update */
};

/* The samples of `count` that rank `rank` of `ranks` takes: [*from, *to), in the order of the
 * ranks. Shares differ by at most one, and no rank has more of a smaller batch. */
static inline void data_share_range(int64_t count, int rank, int ranks, int64_t *from, int64_t *to)
{
    const int64_t each = count / ranks, more = count % ranks;
    *from = rank * each + (rank < more ? rank : more);
    *to = *from + each + (rank < more);
}

/* Makes a new program of one that was compiled for the rank's own samples; the old one stays. The
 * gradients of all ranks are averaged, each by its share of the samples, which gives the update of
 * the whole batch. A bucket's sum starts when its last gradient is there; its first use waits for
 * it. Running statistics are averaged likewise: batch-norm computes with the rank's own samples
 * unless whole_norm is set, and what it remembers is the same on all ranks. A program that updates
 * nothing is copied as it is. To be done before fuse, which then leaves these gradients alone. */
enum status split_data(const struct program *program, const struct data_share *share,
                       struct program **out);

/* The same of a rank's program, in its place: of one of several that share a copy of the network.
 */
enum status split_rank_share(struct split_rank *rank, const struct data_share *share);

#endif
