/* record_list.c: see record_list.h. */
#include "cli/show/record_list.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_record.h"
#include "cli/table/wrap.h"

#include <stdio.h>
#include <string.h>

enum { FIGURES = 6, AXIS_USUAL = 60, AXIS_LEAST = 10 };

/* How soon an axis is left out where there is no room; others have AXIS_USUAL. */
static const struct {
    enum axis_index axis;
    int importance;
} importances[] = {{AXIS_model, SHOW_ALWAYS},
                   {AXIS_batch, 97},
                   {AXIS_framework, 96},
                   {AXIS_phase, 95},
                   {AXIS_backend, 86},
                   {AXIS_threads, 84},
                   {AXIS_unit, 82},
                   {AXIS_precision, 78},
                   {AXIS_server, 50},
                   {AXIS_unit_name, 40},
                   {AXIS_software, AXIS_LEAST},
                   {AXIS_tuning, AXIS_LEAST}};

static int importance_of(int axis)
{
    for (size_t i = 0; i < sizeof importances / sizeof *importances; i++)
        if (importances[i].axis == (enum axis_index)axis)
            return importances[i].importance;
    return AXIS_USUAL;
}

static bool axis_varies(const struct table_row *rows, size_t count, int axis)
{
    char first[POINT_NUMBER], other[POINT_NUMBER];
    const char *value = point_get(&rows[0].record->point, &axes[axis], first);
    for (size_t i = 1; i < count; i++)
        if (strcmp(value, point_get(&rows[i].record->point, &axes[axis], other)) != 0)
            return true;
    return false;
}

static void add_columns(struct show_table *table, const bool varies[AXIS_COUNT])
{
    show_table_column(table, "id", SHOW_RIGHT, SHOW_ALWAYS, 0);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (varies[i])
            show_table_column(table, axes[i].key, axes[i].kind == AXIS_INT ? SHOW_RIGHT : SHOW_LEFT,
                              importance_of(i), 0);
    show_table_column(table, "time   ", SHOW_RIGHT, SHOW_ALWAYS, 0);
    show_table_column(table, "samples/s", SHOW_RIGHT, 90, 0);
    show_table_column(table, "of the limit", SHOW_RIGHT, 88, 0);
    show_table_column(table, "result", SHOW_LEFT, SHOW_ALWAYS, 0);
    show_table_column(table, "set by", SHOW_LEFT, 30, 0);
    show_table_column(table, "measured", SHOW_LEFT, 45, 0);
}

static void add_row(struct show_table *table, const struct table_row *row,
                    const bool varies[AXIS_COUNT])
{
    const struct record *record = row->record;
    struct text figures[FIGURES] = {{0}}, marks = {0};
    char numbers[AXIS_COUNT][POINT_NUMBER], id[POINT_NUMBER];
    const char *cells[SHOW_COLUMNS] = {id};
    int c = 1;
    snprintf(id, sizeof id, "%lld", (long long)row->id);
    for (int i = 0; i < AXIS_COUNT; i++)
        if (varies[i])
            cells[c++] = point_get(&record->point, &axes[i], numbers[i]);
    if (record->status == RECORD_OK)
        show_record_marks(table, record, &marks);
    show_interval(&figures[0], &record->time_ns);
    show_table_hang(text_of(&marks), &figures[0]);
    show_rate(&figures[1], record->throughput);
    show_of_limit(&figures[2], record);
    show_record_result(table, record, &figures[3]);
    text_add(&figures[4], show_bound(record->bound));
    text_printf(&figures[5], "%.10s", record->at ? record->at : "");
    for (int i = 0; i < FIGURES; i++) {
        table->failed |= figures[i].failed;
        cells[c++] = text_of(&figures[i]);
    }
    show_table_row(table, cells);
    for (int i = 0; i < FIGURES; i++)
        text_free(&figures[i]);
    table->failed |= marks.failed;
    text_free(&marks);
}

/* Which axes there was no room for: rows that look alike may differ in them. */
static void tell_hidden(struct show_table *table, const bool varies[AXIS_COUNT])
{
    struct text line = {0};
    int column = 1;
    for (int i = 0; i < AXIS_COUNT; i++)
        if (varies[i] && !show_table_has(table, column++))
            text_printf(&line, "%s%s", line.length ? ", " : "no room for ", axes[i].key);
    if (line.length) {
        text_add(&line, ": a wider terminal shows more, --format csv has all");
        show_table_foot(table, text_of(&line));
    }
    table->failed |= line.failed;
    text_free(&line);
}

enum status record_list_print(const struct table_row *rows, size_t count, struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    bool varies[AXIS_COUNT], told[AXIS_COUNT];
    if (count == 0)
        return STATUS_OK;
    for (int i = 0; i < AXIS_COUNT; i++) {
        varies[i] = axis_varies(rows, count, i);
        told[i] = !varies[i];
    }
    show_record_title(rows[0].record, told, &table.title);
    add_columns(&table, varies);
    for (size_t i = 0; i < count; i++)
        add_row(&table, &rows[i], varies);
    show_table_begin(&table, out);
    tell_hidden(&table, varies);
    show_table_flush(&table, out);
    show_table_end(&table, out);
    enum status status = show_table_done(&table);
    show_table_free(&table);
    return status == STATUS_OK ? text_done(out) : status;
}
