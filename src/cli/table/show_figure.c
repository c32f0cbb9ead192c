/* show_figure.c: see show_figure.h. */
#include "cli/table/show_figure.h"

#include <math.h>
#include <string.h>

void show_time(struct text *out, double ns)
{
    if (isnan(ns))
        text_add(out, "–");
    else
        text_add_time(out, ns);
}

void show_interval(struct text *out, const struct stats *time)
{
    const double half = 50 * (time->ci_high - time->ci_low) / time->median;
    show_time(out, time->median);
    if (!isnan(half) && !isnan(time->median))
        text_printf(out, half < 0.95 ? " ± %.1f %%" : " ± %.0f %%", half);
}

void show_rate(struct text *out, double per_s)
{
    static const double GROUPED = 1e7;
    if (isnan(per_s))
        text_add(out, "–");
    else if (per_s >= 99.95 && per_s < GROUPED)
        text_add_grouped(out, (uint64_t)llround(per_s));
    else
        text_add_count(out, per_s);
}

void show_share(struct text *out, double percent)
{
    if (isnan(percent))
        text_add(out, "–");
    else if (percent >= 9.95)
        text_printf(out, "%.0f %%", percent);
    else if (percent >= 0.95 || percent <= 0)
        text_printf(out, "%.1f %%", percent);
    else
        text_printf(out, "%.2g %%", percent);
}

void show_scaled(struct text *out, double count, const char *unit)
{
    struct text number = {0};
    text_add_count(&number, count);
    text_add(out, text_of(&number));
    text_printf(out, "%s%s", strchr(text_of(&number), ' ') ? "" : " ", unit);
    out->failed |= number.failed;
    text_free(&number);
}

void show_flop(struct text *out, double flop)
{
    show_scaled(out, flop, "FLOP");
    text_add(out, " = ");
    text_add_count(out, flop < 2000 ? round(flop / 2) : flop / 2);
    text_add(out, " multiply-adds");
}

double show_times_limit(const struct record *record)
{
    return isnan(record->times_now) ? record->times_floor : record->times_now;
}

void show_of_limit(struct text *out, const struct record *record)
{
    show_share(out, 100 / show_times_limit(record));
}

const char *show_bound(const char *bound)
{
    if (!bound)
        return "";
    return strcmp(bound, "flop") == 0    ? "multiply-adds"
           : strcmp(bound, "bytes") == 0 ? "memory"
                                         : "launch latency";
}

const char *show_result(const struct record *record)
{
    static const char *const verdicts[] = {
        [RECORD_UNCHECKED] = "not checked", [RECORD_RIGHT] = "correct", [RECORD_WRONG] = "wrong"};
    if (record->status != RECORD_OK)
        return record_status_name(record->status);
    return verdicts[record->check.verdict];
}
