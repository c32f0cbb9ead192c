/* split.h: which rows are learnt from, in which order, and on which scale.
 *
 * All of it is a function of the seed and drawn from counter-based random numbers, so a split and a
 * shuffle have the same bits everywhere, also after a resume. */
#ifndef PRONY_DATA_SPLIT_H
#define PRONY_DATA_SPLIT_H

#include "base/status.h"
#include "data/dataset.h"

#include <stdint.h>

/* Rows of a data set: those for training, then those that are held out while training to see how
 * it goes, then those kept for the test. */
struct split {
    uint32_t *rows;
    int64_t train_count, validate_count, test_count;
};

/* The shares are of all rows, rounded; a share above 0 is one row at least, and so is the training;
 * shares of 0 are empty. The rows of a share are random; but with test_rows > 0 the test is just
 * the last so many rows, whatever its share. */
struct split_options {
    double validate_share, test_share; /* together below 1 */
    int64_t test_rows;
    uint64_t seed;
};
enum status split_make(int64_t rows, const struct split_options *options, struct split *out);
void split_free(struct split *split);
static inline const uint32_t *split_validate(const struct split *split)
{
    return split->rows + split->train_count;
}
static inline const uint32_t *split_test(const struct split *split)
{
    return split->rows + split->train_count + split->validate_count;
}

/* Puts the rows into the order of one epoch (Fisher–Yates). The order depends on what the rows were
 * in before, so an epoch starts from the split's own order. */
void split_shuffle(uint32_t *rows, int64_t count, uint64_t seed, uint64_t epoch);

/* x ↦ (x - mean) × scale, so that the training rows have mean 0 and variance 1: column by column,
 * or for samples that have a shape (images) all columns together, so that a pixel that is nearly
 * always dark is not blown up. */
struct scaling {
    int32_t columns;
    float *mean, *scale; /* one allocation, `mean` */
};

/* A constant column is only shifted. */
enum status scaling_make(struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out);
enum status scaling_alloc(int32_t columns, struct scaling *out);
void scaling_free(struct scaling *scaling);
void scaling_apply_row(const struct scaling *scaling, float *row); /* [columns] */
/* To all rows, now or, when they are streamed, whenever they are fetched: the scaling must live as
 * long as they are. */
void scaling_apply(const struct scaling *scaling, struct dataset *dataset);

#endif
