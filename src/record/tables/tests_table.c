/* tests_table.c: see tests_table.h. */
#include "record/tables/tests_table.h"

#include <math.h>
#include <string.h>

static bool same_task(const struct point *a, const struct point *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->phase, b->phase) == 0 &&
           a->batch == b->batch && strcmp(a->unit, b->unit) == 0;
}

/* prony's best time for the same task on the same unit; NaN when there is none. */
static double our_time(const struct table_row *rows, size_t count, const struct point *point)
{
    double best = (double)NAN;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = rows[i].record;
        if (record->status == RECORD_OK && strcmp(record->point.framework, "prony") == 0 &&
            same_task(&record->point, point))
            best = fmin(best, record->time_ns.median);
    }
    return best;
}

/* " NAME=VALUEunit", where there is a value. */
static void add_meter(struct text *out, const struct record *record, const char *meter,
                      const char *name, const char *unit)
{
    double value = record_meter(record, meter);
    if (!isnan(value))
        text_printf(out, " %s=%.0f%s", name, value, unit);
}

/* "189 ns ± 2%"; what was measured once has no spread, and says so. */
static void add_time(struct text *out, const struct stats *time)
{
    text_add_time(out, time->median);
    if (!isnan(time->ci_high))
        text_printf(out, " ± %.1f%%", 50 * (time->ci_high - time->ci_low) / time->median);
    else if (time->count == 1)
        text_add(out, " (measured once)");
}

/* What ToyNeuralNet timed: so many passes over the rows of Iris that it learnt from. */
enum { EPOCHS = 80, ROWS = 120 };

static bool is_theirs(const struct point *point)
{
    return strcmp(point->model, "small") == 0 || strcmp(point->model, "large") == 0;
}

/* "1.2 ms: 80 epochs of 120 rows, an iteration 378 ns ± 2%": the whole, from the time of one. */
static void add_whole(struct text *out, const struct record *record)
{
    const struct point *point = &record->point;
    const int64_t batch = point->batch > 0 ? point->batch : 1;
    const double iterations = (double)(EPOCHS * ((ROWS + batch - 1) / batch));
    if (is_theirs(point)) {
        text_add_time(out, iterations * record->time_ns.median);
        text_printf(out, ": %d epochs of %d rows, an iteration ", EPOCHS, ROWS);
    }
    add_time(out, &record->time_ns);
}

/* What was learnt, and when: a training until a goal. Is it one? */
static bool add_learnt(struct text *out, const struct record *record)
{
    const double seconds = record_meter(record, "target_time");
    const double accuracy = record_meter(record, "accuracy");
    if (isnan(seconds))
        return false;
    text_add(out, "time taken for training=");
    text_add_time(out, 1e9 * seconds);
    if (!isnan(accuracy))
        text_printf(out, ", accuracy %.1f%%", 100 * accuracy);
    text_add(out, ": ");
    table_markdown_cell(record->reason ? record->reason : "", out);
    text_add(out, " |\n");
    return true;
}

static void add_row(struct text *out, const struct table_row *rows, size_t count, size_t index)
{
    const struct record *record = rows[index].record;
    const struct point *point = &record->point;

    text_printf(out, "| %zu | %s, %s, batch %lld: %s", index + 1, point->model, point->phase,
                (long long)point->batch, point->framework);
    if (strcmp(point->framework, "prony") == 0 && point->backend[0])
        text_printf(out, " %s", point->backend);
    text_printf(out, " on %s | ", strcmp(point->unit, "gpu") == 0 ? "GPU" : "CPU");
    if (record->status != RECORD_OK) {
        text_printf(out, "%s: ", record_status_name(record->status));
        table_markdown_cell(record->reason ? record->reason : "", out);
        text_add(out, " |\n");
        return;
    }
    if (add_learnt(out, record))
        return;
    text_printf(out, "time taken for %s=", point->phase);
    add_whole(out, record);
    add_meter(out, record, "cpu_utilisation", "cpu utilization", "%");
    add_meter(out, record, "gpu_utilisation", "gpu", "%");
    add_meter(out, record, "system_calls", "system calls", "/s");
    const double times_ours = record->time_ns.median / our_time(rows, count, point);
    if (!isnan(times_ours) && strcmp(point->framework, "prony") != 0)
        text_printf(out, ", %.*f × prony's time", times_ours < 10 ? 1 : 0, times_ours);
    text_add(out, record->check.verdict == RECORD_RIGHT ? ", right |\n" : ", unchecked |\n");
}

enum status tests_table_print(const struct table_row *rows, size_t count, struct text *out)
{
    text_add(out, "| Test-no | Description | Result |\n|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        add_row(out, rows, count, i);
    return text_done(out);
}
