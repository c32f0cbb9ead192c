/* compare.c: see compare.h. */
#include "record/compare.h"

#include "base/memory.h"
#include "record/names.h"

#include <math.h>

static const double confidence = 0.99;
/* Whoever looks again and again, and stops at the first difference, needs more. */
static const double confidence_of_many_looks = 0.999;

const char *const record_comparisons[RECORD_COMPARISONS] = {"can't tell", "faster", "slower",
                                                            "same"};

const char *verdict_name(enum verdict verdict)
{
    return record_comparisons[verdict];
}

static enum verdict verdict_of(double low, double high, double margin)
{
    if (high < 1 - margin)
        return VERDICT_FASTER;
    if (low > 1 + margin)
        return VERDICT_SLOWER;
    if (low >= 1 - COMPARE_SAME && high <= 1 + COMPARE_SAME)
        return VERDICT_SAME;
    return VERDICT_UNKNOWN; /* also where the interval is not a number */
}

/* "Same" does no harm. A difference must hold at the higher confidence, and its size be known. */
static bool is_sure(const struct comparison *found, double *ratios, size_t count, double margin)
{
    double median, low, high;
    stats_median(ratios, count, confidence_of_many_looks, &median, &low, &high);
    return found->verdict == VERDICT_SAME ||
           (found->verdict == verdict_of(low, high, margin) && found->verdict != VERDICT_UNKNOWN &&
            (high - low) / 2 <= COMPARE_SAME * median);
}

/* What an iteration takes in the turns [from, to): of a few samples the mean, in which a drift
 * evens out, of more the lower quartile. NaN when memory is out. */
static double unit_time(const struct turns *turns, size_t from, size_t to)
{
    enum { FEW = 8 };
    size_t first = turns->starts[from];
    size_t end = to < turns->count ? turns->starts[to] : turns->sample_count;
    double sum = 0;
    if (end - first >= FEW)
        return stats_quantile(turns->samples + first, end - first, 0.25);
    for (size_t i = first; i < end; i++)
        sum += turns->samples[i];
    return sum / (double)(end - first);
}

/* The ratio of each unit; how many there are. */
static size_t unit_ratios(const struct turns *a, const struct turns *b, size_t rounds,
                          const size_t *begins, size_t instances, double *ratios)
{
    size_t units = rounds < COMPARE_UNITS ? rounds : COMPARE_UNITS, count = 0;
    bool fresh = instances >= COMPARE_INSTANCES;
    for (size_t i = 0; i < (fresh ? instances : units); i++) {
        size_t from = fresh ? begins[i] : 2 * (rounds * i / units);
        size_t to = !fresh              ? 2 * (rounds * (i + 1) / units)
                    : i + 1 < instances ? begins[i + 1]
                                        : 2 * rounds;
        if (from < to) /* or it had no whole round */
            ratios[count++] = unit_time(a, from, to) / unit_time(b, from, to);
    }
    return count;
}

enum status compare_turns(const struct turns *a, const struct turns *b, const size_t *begins,
                          size_t instances, double margin, struct comparison *out)
{
    size_t rounds = (a->count < b->count ? a->count : b->count) / 2;
    double *ratios;

    *out = (struct comparison){.ratio = (double)NAN,
                               .low = (double)NAN,
                               .high = (double)NAN,
                               .rounds = (int64_t)rounds,
                               .instances = (int64_t)instances};
    if (rounds == 0)
        return STATUS_OK;
    NEED(ratios = mem_array(instances > COMPARE_UNITS ? instances : COMPARE_UNITS, sizeof *ratios));
    size_t count = unit_ratios(a, b, rounds, begins, instances, ratios);
    bool known = true;
    for (size_t i = 0; i < count; i++)
        known = known && isfinite(ratios[i]);
    if (known) {
        stats_median(ratios, count, confidence, &out->ratio, &out->low, &out->high);
        out->verdict = verdict_of(out->low, out->high, margin);
        out->sure = is_sure(out, ratios, count, margin);
    }
    mem_free(ratios);
    if (!known)
        FAIL(STATUS_MEMORY, "out of memory");
    return STATUS_OK;
}

void compare_results(const struct stats *a, const struct stats *b, double margin,
                     struct comparison *out)
{
    *out = (struct comparison){a->median / b->median,
                               a->ci_low / b->ci_high,
                               a->ci_high / b->ci_low,
                               0,
                               0,
                               VERDICT_UNKNOWN,
                               false};
    out->verdict = verdict_of(out->low, out->high, margin);
}
