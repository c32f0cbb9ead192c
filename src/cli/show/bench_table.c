/* bench_table.c: see bench_table.h. */
#include "cli/show/bench_table.h"
#include "record/tables/table.h"

#include <math.h>
#include <string.h>

enum { TIME_WIDTH = 10, SPREAD_WIDTH = 7, RATE_WIDTH = 11, FLOOR_WIDTH = 11, CHECK_WIDTH = 6 };

static void add_left(struct text *out, const char *value, int width)
{
    text_printf(out, "%s%*s  ", value,
                width > (int)table_width(value) ? width - (int)table_width(value) : 0, "");
}

static void add_right(struct text *out, const char *value, int width)
{
    text_printf(out, "%*s%s  ",
                width > (int)table_width(value) ? width - (int)table_width(value) : 0, "", value);
}

void bench_table_start(struct bench_table *table, const struct sweep *sweep)
{
    *table = (struct bench_table){0};
    for (int i = 0; i < AXIS_COUNT; i++) {
        const struct sweep_list *list = &sweep->lists[i];
        bool way = sweep->against && axis_check(&axes[AXIS_through], sweep->against) == STATUS_OK;
        bool opposed =
            sweep->against && (way ? i == AXIS_through : i == AXIS_framework || i == AXIS_backend);
        table->shown[i] = list->count > 1 || opposed;
        table->width[i] = (int)table_width(axes[i].key);
        for (int j = 0; j < list->count; j++)
            if ((int)table_width(list->values[j]) > table->width[i])
                table->width[i] = (int)table_width(list->values[j]);
        if (opposed && (int)table_width(sweep->against) > table->width[i])
            table->width[i] = (int)table_width(sweep->against);
    }
}

static void add_common(const struct bench_table *table, const struct record *record,
                       enum axis_index i, struct text *out)
{
    char number[POINT_NUMBER];
    const char *value = point_get(&record->point, &axes[i], number);
    bool varies = table->shown[i] || (i == AXIS_backend && table->shown[AXIS_framework]);
    if (!varies && value[0])
        text_printf(out, "%s %s · ", axes[i].key, value);
}

/* What all rows have in common: what a benchmark is told by, and what is not as usual. Then the
 * names of the columns. */
static void add_heading(const struct bench_table *table, const struct record *record,
                        struct text *out)
{
    static const enum axis_index always[] = {AXIS_model,     AXIS_phase,   AXIS_batch,
                                             AXIS_framework, AXIS_backend, AXIS_threads};
    bool told[AXIS_COUNT] = {false};
    char number[POINT_NUMBER];
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        add_common(table, record, always[i], out);
        told[always[i]] = true;
    }
    for (int i = 0; i < AXIS_COUNT; i++) {
        const char *usual = axes[i].otherwise;
        if (!told[i] && usual[0] && strcmp(point_get(&record->point, &axes[i], number), usual) != 0)
            add_common(table, record, (enum axis_index)i, out);
    }
    text_printf(out, "%s\n", record->point.server);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (table->shown[i])
            add_left(out, axes[i].key, table->width[i]);
    add_right(out, "time", TIME_WIDTH);
    add_right(out, "±", SPREAD_WIDTH);
    add_right(out, "samples/s", RATE_WIDTH);
    add_right(out, "× floor", FLOOR_WIDTH);
    add_left(out, "check", CHECK_WIDTH);
    text_add(out, "note\n");
}

static void add_figures(const struct record *record, struct text *out)
{
    struct text cell = {0};
    const struct stats *time = &record->time_ns;

    text_add_time(&cell, time->median);
    add_right(out, text_of(&cell), TIME_WIDTH);
    text_clear(&cell);
    if (isnan(time->ci_high))
        text_add(&cell, "–");
    else
        text_printf(&cell, "%.1f %%", 50 * (time->ci_high - time->ci_low) / time->median);
    add_right(out, text_of(&cell), SPREAD_WIDTH);
    text_clear(&cell);
    text_add_count(&cell, record->throughput);
    add_right(out, text_of(&cell), RATE_WIDTH);
    text_clear(&cell);
    if (isnan(record->times_floor))
        text_add(&cell, "–");
    else
        text_printf(&cell, record->times_floor < 100 ? "%.2f" : "%.0f", record->times_floor);
    if (record_slow_hour(record)) /* the note says why */
        text_printf(&cell, record->times_now < 100 ? " (%.2f)" : " (%.0f)", record->times_now);
    add_right(out, text_of(&cell), FLOOR_WIDTH);
    add_left(out, record->check.verdict == RECORD_RIGHT ? "right" : "none", CHECK_WIDTH);
    if (cell.failed)
        out->failed = true;
    text_free(&cell);
}

/* "slower than numpy: 1.24 × its time (1.21 … 1.27, 99 %, 80 rounds)" */
static void add_verdict(const struct record *record, struct text *out)
{
    const struct comparison *found = &record->against.found;
    static const char *const words[] = {"no verdict beside", "faster than", "slower than",
                                        "the same as"};
    text_printf(out, "  %s %s", words[found->verdict], record->against.other);
    if (!isnan(found->ratio))
        text_printf(out, ": %.3g × its time", found->ratio);
    if (isnan(found->low))
        text_printf(out, " (%lld rounds are too few)\n", (long long)found->rounds);
    else
        text_printf(out, " (%.4g … %.4g, 99 %%, %lld rounds in %lld instance%s)\n", found->low,
                    found->high, (long long)found->rounds, (long long)found->instances,
                    found->instances == 1 ? "" : "s");
}

/* What a peer gave as its reason may be anything: one line, and nothing that moves the cursor. */
static void add_line(struct text *out, const char *line)
{
    for (; *line; line++)
        text_add_char(out, (unsigned char)*line < ' ' || *line == 0x7f ? ' ' : *line);
    text_add_char(out, '\n');
}

/* What no record says is said here. */
static const char *shown_value(const struct point *point, int axis, char number[POINT_NUMBER])
{
    const char *value = point_get(point, &axes[axis], number);
    bool engine = axis == AXIS_through && !value[0] && point_applies(point, &axes[axis]);
    return engine ? "engine" : value;
}

void bench_table_row(struct bench_table *table, const struct record *record, struct text *out)
{
    char number[POINT_NUMBER];

    if (!table->begun)
        add_heading(table, record, out);
    table->begun = true;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (table->shown[i])
            add_left(out, shown_value(&record->point, i, number), table->width[i]);
    if (record->status == RECORD_OK)
        add_figures(record, out);
    else
        text_printf(out, "%s: ", record_status_name(record->status));
    if (record->status == RECORD_OK && record->check.verdict == RECORD_UNCHECKED &&
        record->check.reason)
        text_printf(out, "unchecked: %s%s", record->check.reason, record->reason ? "; " : "");
    if (record->handicap)
        text_printf(out, "† %s%s", record->handicap, record->reason ? "; " : "");
    add_line(out, record->reason ? record->reason : "");
    if (record->handicap && !table->explained)
        text_add(out, "  † handicapped: it does not run as its users run it, and nothing is "
                      "concluded from it\n");
    table->explained |= record->handicap != NULL;
    if (record->against.other)
        add_verdict(record, out);
}
