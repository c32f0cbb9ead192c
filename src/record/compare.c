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

/* Puts the median of each instance's ratios in the place of the ratios; how many there are. */
static size_t fold_instances(double *ratios, size_t count, const size_t *starts, size_t instances)
{
    size_t folded = 0;
    for (size_t i = 0; i < instances; i++) {
        size_t from = starts[i] / 2, to = i + 1 < instances ? starts[i + 1] / 2 : count;
        double median, low, high;
        if (from >= to)
            continue; /* it had no whole round */
        stats_median(ratios + from, to - from, confidence, &median, &low, &high);
        ratios[folded++] = median;
    }
    return folded;
}

enum status compare_rounds(const double *a, const double *b, size_t rounds, const size_t *starts,
                           size_t instances, double margin, struct comparison *out)
{
    size_t count = rounds / 2;
    double *ratios;

    *out = (struct comparison){NAN,  NAN, NAN, (int64_t)count, (int64_t)instances, VERDICT_UNKNOWN,
                               false};
    if (count == 0)
        return STATUS_OK;
    NEED(ratios = mem_array(count, sizeof *ratios));
    for (size_t i = 0; i < count; i++)
        ratios[i] = (a[2 * i] + a[2 * i + 1]) / (b[2 * i] + b[2 * i + 1]);
    if (instances >= COMPARE_INSTANCES)
        count = fold_instances(ratios, count, starts, instances);
    stats_median(ratios, count, confidence, &out->ratio, &out->low, &out->high);
    out->verdict = verdict_of(out->low, out->high, margin);
    out->sure = is_sure(out, ratios, count, margin);
    mem_free(ratios);
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
