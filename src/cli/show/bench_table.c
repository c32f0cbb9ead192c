/* bench_table.c: see bench_table.h. */
#include "cli/show/bench_table.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_record.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <string.h>

/* Room for what rows will hold, since the columns are chosen before the first one. */
enum {
    TIME_ROOM = 18,
    RATE_ROOM = 9,
    LIMIT_ROOM = 12,
    RESULT_ROOM = 12,
    FIGURE_ROOM = 8,
    BOUND_ROOM = 13
};

struct bench_seen {
    const char *key;
    struct bench_seen *next;
};

/* What an axis without a value is called. */
static const char *shown_value(const struct point *point, int axis, char number[POINT_NUMBER])
{
    const char *value = point_get(point, &axes[axis], number);
    if (value[0] || !point_applies(point, &axes[axis]))
        return value;
    return axis == AXIS_through ? "engine" : axis == AXIS_recompute ? "off" : value;
}

/* How wide the column of an axis will be. `opposed`: it also has what is compared with. */
static size_t axis_room(const struct sweep *sweep, int i, bool opposed)
{
    const struct sweep_list *list = &sweep->lists[i];
    size_t room = wrap_width(axes[i].key);
    if (opposed && wrap_width(sweep->against) > room)
        room = wrap_width(sweep->against);
    for (int j = 0; j < list->count; j++)
        if (wrap_width(list->values[j]) > room)
            room = wrap_width(list->values[j]);
    return room;
}

/* A column for each axis that varies; where they would leave no room for figures, one for all. */
static void add_axes(struct bench_table *table, const struct sweep *sweep,
                     const bool opposed[AXIS_COUNT])
{
    enum { FIGURES_LEAST = 45, JOINED_LEAST = 24 };
    const size_t width = (size_t)table->show.width;
    size_t used = 0;
    for (int i = 0; i < AXIS_COUNT; i++)
        used += table->varies[i] ? axis_room(sweep, i, opposed[i]) + 2 : 0;
    table->joined = used > width - FIGURES_LEAST;
    if (table->joined)
        show_table_column(&table->show, "configuration", SHOW_LEFT, SHOW_ALWAYS,
                          width > FIGURES_LEAST + JOINED_LEAST ? width - FIGURES_LEAST
                                                               : JOINED_LEAST);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (table->varies[i] && !table->joined)
            show_table_column(&table->show, axes[i].key,
                              axes[i].kind == AXIS_INT ? SHOW_RIGHT : SHOW_LEFT, SHOW_ALWAYS,
                              axis_room(sweep, i, opposed[i]));
}

/* The sweep's one value of an axis, or its default; NULL where it has several. */
static const char *only_value(const struct sweep *sweep, enum axis_index axis)
{
    const struct sweep_list *list = &sweep->lists[axis];
    return list->count > 1 ? NULL : list->count ? list->values[0] : axes[axis].otherwise;
}

/* What the time is of. */
static const char *time_heading(const struct sweep *sweep)
{
    const char *scenario = only_value(sweep, AXIS_scenario), *phase = only_value(sweep, AXIS_phase);
    if (!scenario || !phase)
        return "time   ";
    if (strcmp(scenario, "iterate") != 0)
        return strcmp(scenario, "target") == 0 ? "time   " : "time per query   ";
    return strcmp(phase, "training") == 0 ? "time per step   " : "time per batch   ";
}

/* Rows that differ in who computes only have one limit, which the footer tells. */
static bool limits_differ(const struct bench_table *table)
{
    for (int i = 0; i < AXIS_COUNT; i++)
        if (table->varies[i] && i != AXIS_framework && i != AXIS_backend && i != AXIS_through)
            return true;
    return false;
}

static void add_columns(struct bench_table *table, const struct sweep *sweep)
{
    struct show_table *show = &table->show;
    show_table_column(show, time_heading(sweep), SHOW_RIGHT, SHOW_ALWAYS, TIME_ROOM);
    show_table_column(show, "samples/s", SHOW_RIGHT, 90, RATE_ROOM);
    if (table->varies[AXIS_workers])
        show_table_column(show, "speed-up", SHOW_RIGHT, 85, FIGURE_ROOM);
    show_table_column(show, "of the limit", SHOW_RIGHT, 80, LIMIT_ROOM);
    show_table_column(show, "result", SHOW_LEFT, SHOW_ALWAYS, RESULT_ROOM);
    if (limits_differ(table)) {
        show_table_column(show, "limit", SHOW_RIGHT, 60, FIGURE_ROOM);
        show_table_column(show, "set by", SHOW_LEFT, 50, BOUND_ROOM);
    }
    show_table_column(show, "p90", SHOW_RIGHT, 30, FIGURE_ROOM);
    show_table_column(show, "FLOP/s", SHOW_RIGHT, 40, FIGURE_ROOM);
}

void bench_table_start(struct bench_table *table, const struct sweep *sweep, struct text *out)
{
    const bool way = sweep->against && axis_check(&axes[AXIS_through], sweep->against) == STATUS_OK;
    bool opposed[AXIS_COUNT];
    if (table->begun) {
        bench_table_end(table, NULL, NULL, out);
        text_add_char(out, '\n');
    }
    show_table_free(&table->show);
    table->show = (struct show_table){.width = wrap_screen()};
    table->limit = (struct bench_limit){0};
    table->fastest_per_s = table->fastest_most = table->others_most = 0;
    table->results = 0;
    table->noisy = false;
    table->unseen = NULL;
    table->begun = false;
    for (int i = 0; i < AXIS_COUNT; i++) {
        opposed[i] =
            sweep->against && (way ? i == AXIS_through : i == AXIS_framework || i == AXIS_backend);
        table->varies[i] = sweep->lists[i].count > 1 || opposed[i];
    }
    add_axes(table, sweep, opposed);
    add_columns(table, sweep);
}

/* What all rows have in common. A backend belongs to its framework. */
static void add_title(struct bench_table *table, const struct record *record)
{
    bool told[AXIS_COUNT];
    for (int i = 0; i < AXIS_COUNT; i++)
        told[i] = !table->varies[i];
    told[AXIS_backend] &= !table->varies[AXIS_framework];
    show_record_title(record, told, &table->show.title);
}

/* Is it a skip whose like was shown? One row of a peer that cannot start is enough. */
static bool was_skipped(struct bench_table *table, const struct record *record)
{
    struct arena *arena = &table->show.arena;
    if (record->status != RECORD_SKIPPED)
        return false;
    const char *key = arena_format(arena, "%s\n%s\n%s", record->point.framework,
                                   record->point.backend, record->reason ? record->reason : "");
    for (struct bench_seen *seen = table->unseen; key && seen; seen = seen->next)
        if (strcmp(seen->key, key) == 0)
            return true;
    struct bench_seen *seen = arena_alloc(arena, sizeof *seen);
    if (key && seen) {
        *seen = (struct bench_seen){key, table->unseen};
        table->unseen = seen;
    }
    return false;
}

/* "slower than numpy: 1.24 × its time (1.21 … 1.27, 99 %, 80 rounds)" */
static void add_verdict(struct show_table *show, const struct record *record)
{
    const struct comparison *found = &record->against.found;
    static const char *const words[] = {"no verdict beside", "faster than", "slower than",
                                        "the same as"};
    struct text out = {0};
    text_printf(&out, "  %s %s", words[found->verdict], record->against.other);
    if (!isnan(found->ratio))
        text_printf(&out, ": %.3g × its time", found->ratio);
    if (isnan(found->low))
        text_printf(&out, " (%lld rounds are too few)", (long long)found->rounds);
    else
        text_printf(&out, " (%.4g … %.4g, 99 %%, %lld rounds in %lld instance%s)", found->low,
                    found->high, (long long)found->rounds, (long long)found->instances,
                    found->instances == 1 ? "" : "s");
    if (record->against.disturbed)
        text_printf(&out, "; can't tell: disturbed by %s", record->against.disturbed);
    show->failed |= out.failed;
    show_table_line(show, text_of(&out));
    text_free(&out);
}

/* Cells from the time on. The speed-up is that of workers; after the limit stands its bound. */
enum { SPEED_UP = 2, LIMIT = 5, FIGURES = 9 };

/* The figures of a row; `cells` are those from the time on. */
static void fill_figures(struct show_table *show, const struct record *record, struct text *cells)
{
    struct text marks = {0};
    const bool ok = record->status == RECORD_OK;
    if (ok)
        show_record_marks(show, record, &marks);
    show_interval(&cells[0], &record->time_ns);
    show_table_hang(text_of(&marks), &cells[0]);
    show_rate(&cells[1], record->throughput);
    if (!isnan(record_meter(record, "worker_speedup")))
        text_printf(&cells[SPEED_UP], "%.3g ×", record_meter(record, "worker_speedup"));
    show_of_limit(&cells[3], record);
    show_record_result(show, record, &cells[4]);
    if (ok) {
        show_time(&cells[LIMIT], record->time_ns.median / show_times_limit(record));
        text_add(&cells[LIMIT + 1], show_bound(record->bound));
        show_time(&cells[7], record->time_ns.p90);
        if (record->flop > 0)
            text_add_count(&cells[8], record->flop / record_work_ns(record) * 1e9);
    }
    show->failed |= marks.failed;
    text_free(&marks);
}

static void add_row(struct bench_table *table, const struct record *record)
{
    struct show_table *show = &table->show;
    struct text figures[FIGURES] = {{0}}, joined = {0};
    char numbers[AXIS_COUNT][POINT_NUMBER];
    const char *cells[SHOW_COLUMNS] = {NULL};
    int c = 0;
    show_record_values(&record->point, table->varies, &joined);
    if (table->joined)
        cells[c++] = text_of(&joined);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (table->varies[i] && !table->joined)
            cells[c++] = shown_value(&record->point, i, numbers[i]);
    fill_figures(show, record, figures);
    for (int i = 0; i < FIGURES; i++) {
        show->failed |= figures[i].failed;
        const bool limit = i == LIMIT || i == LIMIT + 1;
        if ((i != SPEED_UP || table->varies[AXIS_workers]) && (!limit || limits_differ(table)))
            cells[c++] = text_of(&figures[i]);
    }
    show_table_row(show, cells);
    show->failed |= joined.failed;
    text_free(&joined);
    for (int i = 0; i < FIGURES; i++)
        text_free(&figures[i]);
}

/* Keeps the fastest that was found right, for the line that is pasted elsewhere, and whether it may
 * be called so: nothing was noisy, and its interval is beyond those of the others. */
static void note_fastest(struct bench_table *table, const struct record *record)
{
    struct text *out = &table->fastest;
    if (record->status != RECORD_OK || record->check.verdict != RECORD_RIGHT || record->handicap ||
        isnan(record->throughput))
        return;
    const struct stats *time = &record->time_ns;
    const double least = record->throughput * time->median / time->ci_high,
                 most = record->throughput * time->median / time->ci_low;
    table->results++;
    table->noisy |= *record_disturbed(record) || isnan(least) || isnan(most);
    if (record->throughput <= table->fastest_per_s) {
        table->others_most = fmax(table->others_most, most);
        return;
    }
    table->others_most = fmax(table->others_most, table->fastest_most);
    table->fastest_per_s = record->throughput;
    table->fastest_least = least;
    table->fastest_most = most;
    text_clear(out);
    show_record_values(&record->point, table->varies, out);
    text_add(out, out->length ? ", " : "");
    show_interval(out, &record->time_ns);
    text_add(out, ", ");
    show_rate(out, record->throughput);
    text_add(out, " samples/s");
    if (!isnan(show_times_limit(record))) {
        text_add(out, ", ");
        show_of_limit(out, record);
        text_add(out, " of the limit");
    }
}

/* Is the fastest compared with its like, and beyond what is noise? */
static bool has_fastest(const struct bench_table *table)
{
    static const enum axis_index alike[] = {AXIS_model, AXIS_phase, AXIS_batch, AXIS_scenario};
    bool found = table->results > 1 && !table->noisy && table->fastest_least > table->others_most;
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        found &= !table->varies[alike[i]];
    return found;
}

/* "in short: large, training, batch 64; fastest of 4: prony, 48.7 ms ± 2 %, … (prony 0.1.0)" */
static void foot_summary(struct bench_table *table)
{
    struct text line = {0};
    text_printf(&line, "in short: %s", text_of(&table->show.title));
    if (has_fastest(table))
        text_printf(&line, "; fastest of %d: %s", table->results, text_of(&table->fastest));
    else if (table->results > 1)
        text_printf(&line, "; %d results", table->results);
    else if (table->results == 1)
        text_printf(&line, "; %s", text_of(&table->fastest));
    if (table->software.length)
        text_printf(&line, " (%s)", text_of(&table->software));
    show_table_foot(&table->show, text_of(&line));
    table->show.failed |= line.failed || table->fastest.failed || table->software.failed;
    text_free(&line);
}

enum status bench_table_row(struct bench_table *table, const struct record *record,
                            struct text *out)
{
    struct show_table *show = &table->show;
    if (!table->begun) {
        add_title(table, record);
        show_table_begin(show, out);
    }
    table->begun = true;
    show_record_software(record, &table->software);
    if (was_skipped(table, record)) {
        show_record_repeat(show, record);
        return show_table_done(show);
    }
    bench_limit_add(&table->limit, record);
    note_fastest(table, record);
    add_row(table, record);
    if (record->against.other)
        add_verdict(show, record);
    show_table_flush(show, out);
    TRY(show_table_done(show));
    return text_done(out);
}

enum status bench_table_end(struct bench_table *table, const struct json *calibration,
                            const char *command, struct text *out)
{
    struct text line = {0};
    if (!table->begun)
        return STATUS_OK;
    bench_limit_print(&table->limit, calibration, &line);
    if (line.length)
        show_table_foot(&table->show, text_of(&line));
    if (command) {
        foot_summary(table);
        show_table_foot_command(&table->show, command);
    }
    table->show.failed |= line.failed;
    text_free(&line);
    show_table_end(&table->show, out);
    table->begun = false;
    TRY(show_table_done(&table->show));
    return text_done(out);
}

void bench_table_free(struct bench_table *table)
{
    show_table_free(&table->show);
    text_free(&table->software);
    text_free(&table->fastest);
}
