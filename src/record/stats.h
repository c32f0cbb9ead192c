/* stats.h: what a list of times says, and no more than it can say.
 *
 * A sample is the time of one iteration, or the mean over a group of `per` iterations run together
 * because one is too short for the clock. NaN stands for "these samples do not support it" and is
 * null in JSON. */
#ifndef PRONY_RECORD_STATS_H
#define PRONY_RECORD_STATS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct stats {
    double min, median, mean;
    double p90, p99;        /* NaN when per > 1 or the count is below stats_needed */
    double ci_low, ci_high; /* 95 % interval of the median, ± 0.25 % of it at least; NaN below 6 */
    int64_t count;          /* samples */
    int64_t per;            /* iterations in one sample */
};

/* How many samples a percentile (0 < quantile < 1) needs, so that with this confidence at least two
 * lie beyond it. With fewer, the figure is one outlier's. 64 for p90 and 662 for p99 at 0.99. */
int64_t stats_needed(double quantile, double confidence);

/* Samples in the order in which they were taken (the interval looks at neighbours); per ≥ 1. An
 * empty list gives NaN everywhere. Fails when memory is out or a sample is not finite. */
enum status stats_compute(const double *samples, size_t count, int64_t per, struct stats *out);

/* The median of any numbers and its interval, by ranks; the interval is NaN where the count does
 * not support the confidence. Sorts `values`, of which there is at least one. */
void stats_median(double *values, size_t count, double confidence, double *median, double *low,
                  double *high);

/* The middle of numbers that spread to both sides alike: the median of the means of all pairs, each
 * number with itself too (Hodges and Lehmann). Its interval by signed ranks (Wilcoxon) is narrower
 * than the median's. NaN where the count does not support the confidence; count ≥ 1. Takes memory
 * and time with the square and the cube of the count: meant for dozens. */
enum status stats_centre(const double *values, size_t count, double confidence, double *centre,
                         double *low, double *high);

/* The least of these numbers that `quantile` (0 … 1) of them do not exceed, by its rank; NaN when
 * there are none or memory is out. */
double stats_quantile(const double *values, size_t count, double quantile);

/* A stats that says nothing. */
struct stats stats_nothing(void);

/* Copies at most `most` samples, evenly spread in time, to `out`; returns how many. */
size_t stats_thin(const double *samples, size_t count, double *out, size_t most);

#endif
