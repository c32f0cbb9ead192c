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

/* Whose logarithms spread to both sides alike: where two are the same but for a factor, nobody
 * could say which of their lucks was whose. */
static enum status ratio_interval(const double *logs, size_t count, double at, double *ratio,
                                  double *low, double *high)
{
    TRY(stats_centre(logs, count, at, ratio, low, high));
    *ratio = exp(*ratio);
    *low = exp(*low);
    *high = exp(*high);
    return STATUS_OK;
}

/* "Same" does no harm. A difference must hold at the higher confidence, and its size be known. */
static enum status judge(const double *logs, size_t count, double margin, struct comparison *out)
{
    double ratio, low, high;
    TRY(ratio_interval(logs, count, confidence, &out->ratio, &out->low, &out->high));
    TRY(ratio_interval(logs, count, confidence_of_many_looks, &ratio, &low, &high));
    out->verdict = verdict_of(out->low, out->high, margin);
    out->sure = out->verdict == VERDICT_SAME ||
                (out->verdict == verdict_of(low, high, margin) && out->verdict != VERDICT_UNKNOWN &&
                 (high - low) / 2 <= COMPARE_SAME * ratio);
    return STATUS_OK;
}

/* What an iteration takes in one turn. NaN when memory is out. */
static double turn_time(const struct turns *turns, size_t turn)
{
    size_t first = turns->starts[turn];
    size_t end = turn + 1 < turns->count ? turns->starts[turn + 1] : turns->sample_count;
    return stats_quantile(turns->samples + first, end - first, 0.25);
}

/* The logarithm of the ratio in the turns [from, to). */
static double unit_ratio(const struct turns *a, const struct turns *b, size_t from, size_t to,
                         double *scratch)
{
    double middle, low, high;
    for (size_t turn = from; turn < to; turn++)
        scratch[turn - from] = log(turn_time(a, turn) / turn_time(b, turn));
    stats_median(scratch, to - from, confidence, &middle, &low, &high);
    return middle;
}

/* The ratio of each unit; how many there are. */
static size_t unit_ratios(const struct turns *a, const struct turns *b, size_t rounds,
                          const size_t *begins, size_t instances, double *logs, double *scratch)
{
    size_t units = rounds < COMPARE_UNITS ? rounds : COMPARE_UNITS, count = 0;
    bool fresh = instances >= COMPARE_INSTANCES;
    for (size_t i = 0; i < (fresh ? instances : units); i++) {
        size_t from = fresh ? begins[i] : 2 * (rounds * i / units);
        size_t to = !fresh              ? 2 * (rounds * (i + 1) / units)
                    : i + 1 < instances ? begins[i + 1]
                                        : 2 * rounds;
        if (from < to) /* or it had no whole round */
            logs[count++] = unit_ratio(a, b, from, to, scratch);
    }
    return count;
}

/* Without the last one where it has only begun: of few rounds little can be said. */
static size_t whole_instances(const size_t *begins, size_t instances, size_t rounds)
{
    size_t last = instances - 1;
    bool begun = last > 0 && 2 * (2 * rounds - begins[last]) < begins[last] - begins[last - 1];
    return begun ? last : instances;
}

enum status compare_turns(const struct turns *a, const struct turns *b, const size_t *begins,
                          size_t instances, double margin, struct comparison *out)
{
    size_t rounds = (a->count < b->count ? a->count : b->count) / 2;
    double *logs;

    *out = (struct comparison){.ratio = (double)NAN,
                               .low = (double)NAN,
                               .high = (double)NAN,
                               .rounds = (int64_t)rounds,
                               .instances = (int64_t)instances};
    if (rounds == 0)
        return STATUS_OK;
    size_t most = instances > COMPARE_UNITS ? instances : COMPARE_UNITS;
    NEED(logs = mem_array(most + 2 * rounds, sizeof *logs));
    size_t whole = whole_instances(begins, instances, rounds);
    size_t count = unit_ratios(a, b, rounds, begins, whole, logs, logs + most);
    if (whole < COMPARE_INSTANCES && margin < COMPARE_LUCK)
        margin = COMPARE_LUCK;
    bool known = true;
    for (size_t i = 0; i < count; i++)
        known = known && isfinite(logs[i]);
    enum status status = known ? judge(logs, count, margin, out)
                               : status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    mem_free(logs);
    return status;
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
