/* compare.c: see compare.h. */
#include "record/compare.h"

#include "base/memory.h"
#include "record/names.h"

#include <math.h>

static const double confidence = 0.99;

const char *const record_comparisons[RECORD_COMPARISONS] = {"can't tell", "faster", "slower",
                                                            "same"};

const char *verdict_name(enum verdict verdict)
{
    return record_comparisons[verdict];
}

static enum verdict verdict_of(const struct comparison *found, double margin)
{
    if (found->high < 1 - margin)
        return VERDICT_FASTER;
    if (found->low > 1 + margin)
        return VERDICT_SLOWER;
    if (found->low >= 1 - COMPARE_SAME && found->high <= 1 + COMPARE_SAME)
        return VERDICT_SAME;
    return VERDICT_UNKNOWN; /* also where the interval is not a number */
}

enum status compare_rounds(const double *a, const double *b, size_t rounds, double margin,
                           struct comparison *out)
{
    size_t count = rounds / 2;
    double *ratios;

    *out = (struct comparison){NAN, NAN, NAN, (int64_t)count, VERDICT_UNKNOWN};
    if (count == 0)
        return STATUS_OK;
    NEED(ratios = mem_array(count, sizeof *ratios));
    for (size_t i = 0; i < count; i++)
        ratios[i] = (a[2 * i] + a[2 * i + 1]) / (b[2 * i] + b[2 * i + 1]);
    stats_median(ratios, count, confidence, &out->ratio, &out->low, &out->high);
    mem_free(ratios);
    out->verdict = verdict_of(out, margin);
    return STATUS_OK;
}

void compare_results(const struct stats *a, const struct stats *b, double margin,
                     struct comparison *out)
{
    *out = (struct comparison){a->median / b->median, a->ci_low / b->ci_high,
                               a->ci_high / b->ci_low, 0, VERDICT_UNKNOWN};
    out->verdict = verdict_of(out, margin);
}
