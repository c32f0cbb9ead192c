/* notes.c: see notes.h. */
#include "bench/sweep/notes.h"

#include "bench/sweep/entry.h"

#include <math.h>
#include <string.h>

/* Of work that waits for nothing one thread computes at any time, at least: less than that is what
 * others took. One iteration at a time, as with cold caches, waits for its pipe. */
static void note_share(const struct record *record, const struct timing *timing, struct text *notes)
{
    static const double SHARE_MATTERS = 0.85;
    const struct point *point = &record->point;
    const struct meters *meters = &timing->meters;
    const double share = (double)meters->cpu_ns / (double)meters->wall_ns; /* NaN: not known */

    if (strcmp(point->unit, "cpu") == 0 && point_is(point, CHOICE_scenario_iterate) &&
        !entry_on_disk(point) && !point_is(point, CHOICE_caches_cold) && !meters->lost &&
        share < SHARE_MATTERS)
        text_printf(notes, "; it had a CPU for %.0f %% of the time", 100 * share);
}

/* As many samples as an interval needs may take longer than was asked for. */
static void note_length(const struct timing *timing, const struct measure_options *options,
                        struct text *notes)
{
    static const double LONGER = 1.5;
    const double took = (double)(timing->spent_ns - timing->warm_ns);
    if (timing->count < 2 || took < LONGER * (double)options->limit_ns)
        return;
    text_printf(notes, "; its %zu samples took ", timing->count);
    text_add_time(notes, took);
}

/* Of queries the slow ones count: single-stream's p90, a server's p99. */
static void note_latencies(const struct record *record, struct text *notes)
{
    const struct stats *time = &record->time_ns;
    const struct {
        const char *name;
        double ns;
    } rows[] = {{"; p90 ", time->p90}, {"; p99 ", time->p99}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!isnan(rows[i].ns)) {
            text_add(notes, rows[i].name);
            text_add_time(notes, rows[i].ns);
        }
}

/* Why × floor is large: the hour's share in it. */
static void note_hour(const struct record *record, struct text *notes)
{
    const double per_s = record_meter(record, "memory_rate");
    const double best = record_meter(record, "memory_best");
    if (record_slow_hour(record))
        text_printf(notes,
                    "; (%.2f) × floor with what memory gives now, %.0f %% less than at its best: "
                    "%.3g of %.3g GB/s",
                    record->times_now, 100 * (1 - per_s / best), per_s * 1e-9, best * 1e-9);
}

void notes_add(const struct record *record, const struct timing *timing, double rate,
               const struct measure_options *options, struct text *notes)
{
    const struct stats *time = &record->time_ns;
    const double known = (time->ci_high - time->ci_low) / (2 * time->median); /* NaN: it is not */

    if (timing->stop == MEASURE_TIME && timing->count == 1)
        text_add(notes, "; measured once, warm: one run takes longer than --seconds");
    else if (timing->stop == MEASURE_TIME && known <= options->target)
        text_add(notes, "; time was up after a short look");
    else if (timing->stop == MEASURE_TIME && !isnan(known))
        text_printf(notes, "; time was up at ± %.1f %%", 100 * known);
    else if (timing->stop == MEASURE_TIME)
        text_add(notes, "; time was up after a few samples");
    note_length(timing, options, notes);
    if (timing->per < timing->together)
        text_printf(notes,
                    "; %lld iteration%s at a time, the first beside nothing: longer --seconds",
                    (long long)timing->per, timing->per == 1 ? "" : "s");
    if (rate > 0 && point_is(&record->point, CHOICE_scenario_server)) {
        text_add(notes, "; ");
        text_add_count(notes, rate);
        text_add(notes, " queries a second hold the bound");
    }
    if (rate > 0)
        note_latencies(record, notes);
    if (!timing->steady && timing->count > 1)
        text_add(notes, "; not steady after the warm-up");
    note_share(record, timing, notes);
    note_hour(record, notes);
    if (record->best_times_floor < 1)
        text_add(notes, "; below its floor: the calibration is too low");
}
