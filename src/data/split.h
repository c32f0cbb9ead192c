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
 * shares of 0 are empty. The rows of a share are random; where every row has one label, each class
 * has the same share, as far as rows can be divided. A data set that came with test rows of its own
 * has them for its test, whatever the share. */
struct split_options {
    double validate_share, test_share; /* together below 1 */
    int64_t first; /* > 0: that many come first of the training rows, of every class its share */
    uint64_t seed;
};
enum status split_make(const struct dataset *dataset, const struct split_options *options,
                       struct split *out);
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

/* What becomes of features before a network gets them: x ↦ (x - mean) × scale, so that the training
 * rows have mean 0 and variance 1: column by column, or for samples that have a shape (images) all
 * columns together, so that a pixel that is nearly always dark is not blown up; or so that they lie
 * between 0 and 1, where values of other rows that are beyond become 0 or 1: no chance lies
 * outside, and a loss of chances would be without bound. But tokens stay what they are, and become
 * i32 in place. */
struct scaling {
    bool unit;      /* between 0 and 1 */
    int32_t tokens; /* > 0: features are whole numbers below that, and nothing is scaled */
    int32_t columns;
    float *mean, *scale; /* one allocation, `mean` */
};

/* As out->unit says. A constant column is only shifted. Does nothing when out->tokens says so. */
enum status scaling_make(struct dataset *dataset, const uint32_t *rows, int64_t count,
                         struct scaling *out);
enum status scaling_alloc(int32_t columns, struct scaling *out);
void scaling_free(struct scaling *scaling);          /* tokens and unit stay */
bool scaling_changes(const struct scaling *scaling); /* does it any number? */
/* Back to what it was, a row that a network made of such features. */
void scaling_undo_row(const struct scaling *scaling, float *features);
/* One row of the data set, in place; a value that is no token is refused. */
enum status scaling_apply_row(const struct scaling *scaling, const struct dataset *dataset,
                              int64_t row, float *features);
/* To all rows, now or, when they are streamed, whenever they are fetched: the scaling must live as
 * long as they are. Once is enough; data that another scaling was applied to is refused. */
enum status scaling_apply(const struct scaling *scaling, struct dataset *dataset);

#endif
