/* ranging.h: what a tensor holds while a network runs over data, and the range of it that is worth
 * levels. Two runs: the first finds the ends, the second counts what lies between them. */
#ifndef PRONY_TRAIN_RANGING_H
#define PRONY_TRAIN_RANGING_H

#include "base/status.h"
#include "core/pass/quantise_numbers.h"

enum ranging {
    RANGING_MSE,        /* the range with the least mean square of what rounding and cutting move */
    RANGING_MINMAX,     /* all that was seen */
    RANGING_PERCENTILE, /* all but one number in ten thousand */
};
bool ranging_parse(const char *name, enum ranging *out);

enum { SEEN_BINS = 2048 };

/* Of one tensor, whose channels are its dimension 1. */
struct seen {
    float low, high;  /* low > high: nothing yet */
    int64_t strange;  /* numbers that are none, or infinite */
    int64_t channels; /* 0: it is not looked at by channels */
    double *sums;     /* [channels] */
    float *peaks;     /* [channels]: the largest size of a number */
    int64_t count;    /* of numbers of each channel */
    int64_t *bins;    /* [SEEN_BINS] between low and high; NULL: not yet */
};

/* `inner` numbers of a channel follow each other. */
void seen_add(struct seen *seen, const float *values, int64_t count, int64_t inner);
void seen_count(struct seen *seen, const float *values, int64_t count);
struct range seen_range(const struct seen *seen, enum ranging ranging, bool plain);
/* The largest peak of a channel against the middle one; 1 where that is not known. */
double seen_outlier(const struct seen *seen, int64_t *channel);

#endif
