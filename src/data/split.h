/* split.h: which rows are learnt from, in which order, and on which scale.
 *
 * All of it is a function of the seed and drawn from counter-based random numbers, so a split and a
 * shuffle have the same bits everywhere, also after a resume. */
#ifndef PRONY_DATA_SPLIT_H
#define PRONY_DATA_SPLIT_H

#include "base/status.h"
#include "data/dataset.h"

#include <stdint.h>

/* Rows of a data set: those for training, then those kept for the test. */
struct split {
    uint32_t *rows;
    int64_t train_count, test_count;
};

/* A random `test_share` of the rows (rounded) is kept for the test; at least one row is left on
 * either side, unless the share is 0: then all are for training and the test is empty. */
enum status split_make(int64_t rows, double test_share, uint64_t seed, struct split *out);
void split_free(struct split *split);
static inline const uint32_t *split_test(const struct split *split)
{
    return split->rows + split->train_count;
}

/* Puts the rows into the order of one epoch (Fisher–Yates). The order depends on what the rows were
 * in before, so an epoch starts from the split's own order. */
void split_shuffle(uint32_t *rows, int64_t count, uint64_t seed, uint64_t epoch);

/* x ↦ (x - mean) × scale, column by column: mean 0 and variance 1 over the training rows. */
struct scaling {
    int32_t columns;
    float *mean, *scale; /* one allocation, `mean` */
};

/* A constant column is only shifted. */
enum status scaling_make(const struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out);
enum status scaling_alloc(int32_t columns, struct scaling *out);
void scaling_free(struct scaling *scaling);
void scaling_apply(const struct scaling *scaling, struct dataset *dataset); /* all its rows */

#endif
