/* ranging.c: see ranging.h. */
#include "train/ranging.h"

#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double OUTSIDE = 1e-4; /* of all numbers, where the range is a percentile */

bool ranging_parse(const char *name, enum ranging *out)
{
    static const char *const names[] = {"mse", "minmax", "percentile"};
    for (int i = 0; i < 3; i++)
        if (text_equal(name, names[i])) {
            *out = (enum ranging)i;
            return true;
        }
    return false;
}

static void add_channel(struct seen *seen, int64_t channel, float value)
{
    seen->sums[channel] += (double)value;
    seen->peaks[channel] = fmaxf(seen->peaks[channel], fabsf(value));
}

void seen_add(struct seen *seen, const float *values, int64_t count, int64_t inner)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            seen->strange++;
            continue;
        }
        seen->low = fminf(seen->low, values[i]);
        seen->high = fmaxf(seen->high, values[i]);
        if (seen->channels)
            add_channel(seen, i / inner % seen->channels, values[i]);
    }
    if (seen->channels)
        seen->count += count / seen->channels;
}

/* Where a number lies between the ends, in bins. */
static double bin_of(const struct seen *seen, double value)
{
    double low = (double)seen->low, width = (double)seen->high - low;
    return width > 0 ? (value - low) / width * SEEN_BINS : 0;
}

void seen_count(struct seen *seen, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double bin = bin_of(seen, (double)values[i]);
        if (bin >= 0)
            seen->bins[bin < SEEN_BINS ? (int)bin : SEEN_BINS - 1]++;
    }
}

static double bin_middle(const struct seen *seen, int bin)
{
    double low = (double)seen->low, width = (double)seen->high - low;
    return low + (bin + 0.5) * width / SEEN_BINS;
}

static int64_t all_of(const struct seen *seen)
{
    int64_t all = 0;
    for (int i = 0; i < SEEN_BINS; i++)
        all += seen->bins[i];
    return all;
}

static struct range percentile(const struct seen *seen)
{
    double left = OUTSIDE / 2 * (double)all_of(seen), below = 0, above = 0;
    int first = 0, last = SEEN_BINS - 1;
    while (first < last && (below += (double)seen->bins[first]) <= left)
        first++;
    while (last > first && (above += (double)seen->bins[last]) <= left)
        last--;
    double half = ((double)seen->high - (double)seen->low) / SEEN_BINS / 2;
    return (struct range){(float)(bin_middle(seen, first) - half),
                          (float)(bin_middle(seen, last) + half)};
}

/* The mean square of what becomes of the numbers on this scale. */
static double squares(const struct seen *seen, const struct scale *scale)
{
    double sum = 0;
    for (int i = 0; i < SEEN_BINS; i++) {
        if (!seen->bins[i])
            continue;
        double value = bin_middle(seen, i);
        double level = (double)scale->scale * (scale_level(scale, value) - scale->zero);
        sum += (double)seen->bins[i] * (level - value) * (level - value);
    }
    return sum;
}

static struct range least_squares(const struct seen *seen, bool plain)
{
    struct range best = {seen->low, seen->high};
    double least = HUGE_VAL;
    for (int share = 100; share >= 20; share -= 2) {
        struct range range = {seen->low * (float)share / 100, seen->high * (float)share / 100};
        struct scale scale = scale_of(&range, plain);
        double sum = squares(seen, &scale);
        if (sum < least) {
            least = sum;
            best = range;
        }
    }
    return best;
}

struct range seen_range(const struct seen *seen, enum ranging ranging, bool plain)
{
    if (ranging == RANGING_MINMAX || !(seen->low < seen->high) || !seen->bins)
        return (struct range){seen->low, seen->high};
    return ranging == RANGING_PERCENTILE ? percentile(seen) : least_squares(seen, plain);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double seen_outlier(const struct seen *seen, int64_t *channel)
{
    enum { FEW = 4 }; /* of so few channels none is usual */
    *channel = 0;
    if (seen->channels < FEW)
        return 1;
    float *sorted = mem_array((size_t)seen->channels, sizeof *sorted);
    if (!sorted)
        return 1;
    memcpy(sorted, seen->peaks, (size_t)seen->channels * sizeof *sorted);
    qsort(sorted, (size_t)seen->channels, sizeof *sorted, by_size);
    float middle = sorted[seen->channels / 2];
    mem_free(sorted);
    for (int64_t i = 1; i < seen->channels; i++)
        if (seen->peaks[i] > seen->peaks[*channel])
            *channel = i;
    return middle > 0 ? (double)seen->peaks[*channel] / (double)middle : 1;
}
