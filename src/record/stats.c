/* stats.c: summaries of samples, with order statistics and the binomial distribution only: nothing
 * is assumed about the shape of the times, which have long tails and often two humps. */
#include "record/stats.h"

#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Times drift: neighbours are alike, and 10,000 of them say less than 10,000 independent ones.
     * With enough samples the interval therefore spans the medians of this many parts of the run,
     * each of PART_LEAST consecutive samples or more. Were the parts independent, it would hold the
     * median 127 times of 128; what is beyond 95 % is for parts that are alike, too, and for
     * looking again and again until it is narrow. More parts would be shorter, and more alike. */
    PARTS = 8,
    PART_LEAST = 4,
};
/* Reading the clock and calling what is timed may cost half a per cent: no median is known to less
 * than this much of itself, to either side. */
static const double RESOLUTION = 0.0025;
static const double interval_confidence = 0.95, percentile_confidence = 0.99;

int64_t stats_needed(double quantile, double confidence)
{
    assert(quantile > 0 && quantile < 1 && confidence > 0 && confidence < 1);
    /* n samples of which each lies beyond the quantile with probability 1 - quantile: none does
     * with q^n, exactly one with n q^(n-1) (1 - q). */
    for (int64_t n = 2;; n++) {
        double none = pow(quantile, (double)n);
        double one = (double)n * pow(quantile, (double)(n - 1)) * (1 - quantile);
        if (1 - none - one >= confidence)
            return n;
    }
}

static int order_of(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double median_of(const double *sorted, size_t count)
{
    size_t middle = count / 2;
    return count % 2 ? sorted[middle] : 0.5 * sorted[middle - 1] + 0.5 * sorted[middle];
}

double stats_quantile(const double *values, size_t count, double quantile)
{
    double *sorted = count ? mem_array(count, sizeof *sorted) : NULL;
    if (!sorted)
        return NAN;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, order_of);
    size_t rank = (size_t)ceil(quantile * (double)count);
    double found = sorted[rank ? rank - 1 : 0];
    mem_free(sorted);
    return found;
}

/* The nearest rank: always a time that was seen. */
static double percentile(const double *sorted, size_t count, int64_t per, double quantile)
{
    if (per > 1 || (int64_t)count < stats_needed(quantile, percentile_confidence))
        return NAN;
    double rank = ceil(quantile * (double)count);
    return sorted[(size_t)rank - 1];
}

/* How many of n sorted samples to leave out at either end so that what remains still holds the
 * median with the confidence; -1 when even all of them do not. The median lies below the sorted
 * sample r (from 0) with the probability that at most r of n fair coins show heads. Where there are
 * so many that 2^-n is near underflow, the coins are as good as normally distributed. */
static int64_t left_out(size_t n, double confidence)
{
    enum { EXACT_MOST = 500 };
    if (n > EXACT_MOST) {
        /* deviations that hold 99.9 %, 99 % or 95 % */
        double away = confidence > 0.995 ? 3.291 : confidence > 0.96 ? 2.576 : 1.96;
        return (int64_t)(0.5 * (double)n - away * 0.5 * sqrt((double)n)) - 1;
    }
    double term = pow(0.5, (double)n), below = 0;
    int64_t out = -1;
    for (size_t r = 0; r < n / 2; r++) {
        below += term;
        if (2 * below > 1 - confidence)
            break;
        out = (int64_t)r;
        term *= (double)(n - r) / (double)(r + 1);
    }
    return out;
}

static void interval_from(const double *sorted, size_t count, double confidence, double *low,
                          double *high)
{
    int64_t leave = left_out(count, confidence);
    if (leave < 0)
        return;
    *low = sorted[leave];
    *high = sorted[count - 1 - (size_t)leave];
}

void stats_median(double *values, size_t count, double confidence, double *median, double *low,
                  double *high)
{
    assert(count > 0);
    qsort(values, count, sizeof *values, order_of);
    *median = median_of(values, count);
    *low = *high = NAN;
    interval_from(values, count, confidence, low, high);
}

/* How many of the sorted means of pairs of n numbers to leave out at either end; -1 when even all
 * of them do not hold the centre with the confidence. It lies below r + 1 of them with the
 * probability that the ranks 1 … n for which a fair coin shows heads add up to at most r:
 * `chances`, with room for every sum, is filled with that of each. */
static int64_t pairs_left_out(size_t n, double confidence, double *chances)
{
    size_t sums = n * (n + 1) / 2;
    chances[0] = 1;
    for (size_t sum = 1; sum <= sums; sum++)
        chances[sum] = 0;
    for (size_t rank = 1; rank <= n; rank++)
        for (size_t sum = sums + 1; sum-- > 0;)
            chances[sum] = 0.5 * (chances[sum] + (sum >= rank ? chances[sum - rank] : 0));
    double below = 0;
    int64_t out = -1;
    for (size_t sum = 0; sum < sums / 2; sum++) {
        below += chances[sum];
        if (2 * below > 1 - confidence)
            break;
        out = (int64_t)sum;
    }
    return out;
}

enum status stats_centre(const double *values, size_t count, double confidence, double *centre,
                         double *low, double *high)
{
    assert(count > 0);
    size_t pairs = count * (count + 1) / 2;
    double *means = mem_array(pairs + 1, sizeof *means);
    NEED(means);
    int64_t leave = pairs_left_out(count, confidence, means);
    for (size_t i = 0, at = 0; i < count; i++)
        for (size_t j = i; j < count; j++)
            means[at++] = 0.5 * values[i] + 0.5 * values[j];
    qsort(means, pairs, sizeof *means, order_of);
    *centre = median_of(means, pairs);
    *low = leave < 0 ? (double)NAN : means[leave];
    *high = leave < 0 ? (double)NAN : means[pairs - 1 - (size_t)leave];
    mem_free(means);
    return STATUS_OK;
}

/* `scratch` has room for all samples. Where the run has two humps the median of all may lie beside
 * those of its parts: it is spanned, too. */
static void interval_of_parts(const double *samples, size_t count, double *scratch,
                              struct stats *out)
{
    out->ci_low = out->ci_high = out->median;
    for (size_t part = 0; part < PARTS; part++) {
        size_t from = count * part / PARTS, to = count * (part + 1) / PARTS;
        memcpy(scratch, samples + from, (to - from) * sizeof *scratch);
        qsort(scratch, to - from, sizeof *scratch, order_of);
        double median = median_of(scratch, to - from);
        out->ci_low = fmin(out->ci_low, median);
        out->ci_high = fmax(out->ci_high, median);
    }
}

struct stats stats_nothing(void)
{
    return (struct stats){NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, 1};
}

enum status stats_compute(const double *samples, size_t count, int64_t per, struct stats *out)
{
    assert(per >= 1);
    *out = stats_nothing();
    out->per = per;
    if (count == 0)
        return STATUS_OK;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(samples[i]))
            FAIL(STATUS_INPUT, "sample %zu is not a number", i + 1);
        sum += samples[i];
    }
    double *sorted;
    NEED(sorted = mem_array(count, sizeof *sorted));
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, order_of);
    out->count = (int64_t)count;
    out->min = sorted[0];
    out->median = median_of(sorted, count);
    out->mean = sum / (double)count;
    out->p90 = percentile(sorted, count, per, 0.90);
    out->p99 = percentile(sorted, count, per, 0.99);
    if (count < PARTS * PART_LEAST)
        interval_from(sorted, count, interval_confidence, &out->ci_low, &out->ci_high);
    else
        interval_of_parts(samples, count, sorted, out);
    if (!isnan(out->ci_low)) {
        out->ci_low = fmin(out->ci_low, out->median * (1 - RESOLUTION));
        out->ci_high = fmax(out->ci_high, out->median * (1 + RESOLUTION));
    }
    mem_free(sorted);
    return STATUS_OK;
}

size_t stats_thin(const double *samples, size_t count, double *out, size_t most)
{
    if (count <= most) {
        if (count)
            memcpy(out, samples, count * sizeof *out);
        return count;
    }
    for (size_t i = 0; i < most; i++)
        out[i] = samples[(size_t)((double)i * (double)count / (double)most)];
    return most;
}
