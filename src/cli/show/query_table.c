/* query_table.c: see query_table.h. Programs get rows of cells, people a table that fits. */
#include "cli/show/query_table.h"

#include "cli/table/show_figure.h"
#include "cli/table/show_table.h"
#include "cli/table/wrap.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = STORE_GROUPS + 9 };

void query_figure(struct text *out, const struct metric *metric, double value)
{
    if (isnan(value))
        text_add(out, "–");
    else
        table_figure(out, value, metric->unit);
}

/* A row of cells; their text is one after the other in `text`, with a NUL after each. */
struct row {
    struct text text;
    size_t starts[COLUMNS], count;
};

static const char *cell_of(const struct row *row, size_t column)
{
    return text_of(&row->text) + row->starts[column];
}

static void begin_cell(struct row *row)
{
    row->starts[row->count++] = row->text.length;
}

static void end_cell(struct row *row)
{
    text_add_bytes(&row->text, "", 1);
}

static void add_cell(struct row *row, const char *text)
{
    begin_cell(row);
    text_add(&row->text, text);
    end_cell(row);
}

static void add_number(struct row *row, const struct metric *metric, double value, bool plain)
{
    begin_cell(row);
    if (!plain)
        query_figure(&row->text, metric, value);
    else if (!isnan(value))
        text_printf(&row->text, "%.17g", value);
    end_cell(row);
}

/* `plain`: figures have no units, so that their columns say them. */
static void add_heading(struct row *row, const struct store_query *query, bool plain)
{
    const char *unit = plain ? metric_find(query->y)->unit : "";
    const char *const figures[] = {query->y, "low", "high"};
    for (size_t i = 0; i < query->group_count; i++)
        add_cell(row, query->groups[i]);
    add_cell(row, query->x);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        begin_cell(row);
        table_csv_heading(figures[i], unit, &row->text);
        end_cell(row);
    }
    add_cell(row, "results");
    if (query->baseline) {
        add_cell(row, "speedup");
        add_cell(row, "efficiency");
    }
    add_cell(row, "note");
}

/* What one should know of a point: unlike configurations, results that were not checked. */
static void add_note(struct row *row, const struct store_mark *mark)
{
    const char *between = "mixes ";
    begin_cell(row);
    for (size_t i = 0; i < AXIS_COUNT && mark->configurations > 1; i++)
        if (mark->differs & (uint64_t)1 << i) {
            text_printf(&row->text, "%s%s", between, axes[i].key);
            between = ", ";
        }
    if (mark->unchecked)
        text_printf(&row->text, "%s%lld unchecked", mark->configurations > 1 ? "; " : "",
                    (long long)mark->unchecked);
    if (mark->handicap)
        text_printf(&row->text, "%shandicapped: %s",
                    mark->configurations > 1 || mark->unchecked ? "; " : "", mark->handicap);
    end_cell(row);
}

static void add_mark(struct row *row, const struct store_query *query,
                     const struct store_mark *mark, bool plain)
{
    const struct metric *metric = metric_find(query->y);
    static const struct metric ratio = {.unit = "x"};
    for (size_t i = 0; i <= query->group_count; i++)
        add_cell(row, mark->values[i]);
    add_number(row, metric, mark->y, plain);
    bool spread =
        plain || mark->low < mark->high; /* of one result without an interval none is known */
    add_number(row, metric, spread ? mark->low : (double)NAN, plain);
    add_number(row, metric, spread ? mark->high : (double)NAN, plain);
    begin_cell(row);
    text_printf(&row->text, "%lld", (long long)mark->count);
    end_cell(row);
    if (query->baseline) {
        add_number(row, &ratio, mark->speedup, plain);
        add_number(row, &ratio, mark->efficiency, plain);
    }
    add_note(row, mark);
}

static void print_delimited(const struct row *row, enum table_format format, struct text *out)
{
    for (size_t c = 0; c < row->count; c++) {
        const char *cell = cell_of(row, c);
        if (format == TABLE_MARKDOWN) {
            text_add(out, "| ");
            table_markdown_cell(cell, out);
            text_add_char(out, ' ');
        } else {
            text_add(out, c ? "," : "");
            table_csv_cell(cell, out);
        }
    }
    text_add(out, format == TABLE_MARKDOWN ? "|\n" : "\n");
}

static void print_rows(const struct row *rows, size_t count, const struct store_query *query,
                       enum table_format format, struct text *out)
{
    size_t texts = query->group_count + (store_key_kind(query->x) == AXIS_TEXT);
    for (size_t r = 0; r < count; r++) {
        print_delimited(&rows[r], format, out);
        for (size_t c = 0; r == 0 && format == TABLE_MARKDOWN && c < rows[0].count; c++)
            text_add(out, c < texts || c + 1 == rows[0].count ? "|---" : "|---:");
        if (r == 0 && format == TABLE_MARKDOWN)
            text_add(out, "|\n");
    }
}

static enum status print_delimited_rows(const struct store_query *query,
                                        const struct store_chart *chart, enum table_format format,
                                        struct text *out)
{
    struct arena arena = {0};
    struct row *rows;
    enum status status = STATUS_OK;
    NEED(rows = arena_array(&arena, chart->count + 1, sizeof *rows));
    add_heading(&rows[0], query, format == TABLE_CSV);
    for (size_t i = 0; i < chart->count; i++)
        add_mark(&rows[i + 1], query, &chart->marks[i], format == TABLE_CSV);
    for (size_t i = 0; i <= chart->count && status == STATUS_OK; i++)
        status = text_done(&rows[i].text);
    if (status == STATUS_OK && chart->count)
        print_rows(rows, chart->count + 1, query, format, out);
    for (size_t i = 0; i <= chart->count; i++)
        text_free(&rows[i].text);
    arena_free(&arena);
    return status;
}

/* Samples a second are read by thousands, under a heading that says what they are. */
static bool counts_samples(const struct metric *metric)
{
    return strcmp(metric->unit, "samples/s") == 0;
}

static void add_columns(struct show_table *table, const struct store_query *query,
                        const struct metric *metric)
{
    const enum show_align side = store_key_kind(query->x) == AXIS_TEXT ? SHOW_LEFT : SHOW_RIGHT;
    for (size_t i = 0; i < query->group_count; i++)
        show_table_column(table, query->groups[i],
                          store_key_kind(query->groups[i]) == AXIS_TEXT ? SHOW_LEFT : SHOW_RIGHT,
                          SHOW_ALWAYS, 0);
    show_table_column(table, query->x, side, SHOW_ALWAYS, 0);
    show_table_column(table, counts_samples(metric) ? "samples/s   " : query->y, SHOW_RIGHT,
                      SHOW_ALWAYS, 0);
    show_table_column(table, "from", SHOW_RIGHT, 60, 0);
    show_table_column(table, "to", SHOW_RIGHT, 60, 0);
    show_table_column(table, "results", SHOW_RIGHT, 50, 0);
    if (query->baseline) {
        show_table_column(table, "speed-up", SHOW_RIGHT, 80, 0);
        show_table_column(table, "efficiency", SHOW_RIGHT, 70, 0);
    }
}

static void add_shown(struct text *cell, const struct metric *metric, double value)
{
    if (counts_samples(metric))
        show_rate(cell, value);
    else
        query_figure(cell, metric, value);
}

static void add_point(struct show_table *table, const struct store_query *query,
                      const struct metric *metric, const struct store_mark *mark)
{
    enum { FIGURES = 6 };
    struct text figures[FIGURES] = {{0}}, marks = {0};
    const char *cells[SHOW_COLUMNS] = {NULL};
    struct row note = {0};
    size_t c = 0;
    for (; c <= query->group_count; c++)
        cells[c] = mark->values[c];
    add_note(&note, mark);
    show_table_marks(table, cell_of(&note, 0), &marks);
    add_shown(&figures[0], metric, mark->y);
    show_table_hang(text_of(&marks), &figures[0]);
    if (mark->low < mark->high) { /* of one result without an interval none is known */
        add_shown(&figures[1], metric, mark->low);
        add_shown(&figures[2], metric, mark->high);
    }
    text_printf(&figures[3], "%lld", (long long)mark->count);
    if (query->baseline) {
        text_printf(&figures[4], isnan(mark->speedup) ? "–" : "%.2f ×", mark->speedup);
        show_share(&figures[5], 100 * mark->efficiency);
    }
    for (int i = 0; i < (query->baseline ? FIGURES : FIGURES - 2); i++)
        cells[c++] = text_of(&figures[i]);
    show_table_row(table, cells);
    show_table_spend(table, figures, FIGURES);
    table->failed |= note.text.failed || marks.failed;
    text_free(&note.text);
    text_free(&marks);
}

/* For people: no wider than the screen. */
static enum status print_shown(const struct store_query *query, const struct store_chart *chart,
                               struct text *out)
{
    struct show_table table = {.width = wrap_screen()};
    const struct metric *metric = metric_find(query->y);
    if (chart->count == 0)
        return STATUS_OK;
    add_columns(&table, query, metric);
    for (size_t i = 0; i < chart->count; i++)
        add_point(&table, query, metric, &chart->marks[i]);
    show_table_print(&table, out);
    enum status status = show_table_done(&table);
    show_table_free(&table);
    return status;
}

enum status query_table(const struct store_query *query, const struct store_chart *chart,
                        enum table_format format, struct text *out)
{
    return format == TABLE_ALIGNED ? print_shown(query, chart, out)
                                   : print_delimited_rows(query, chart, format, out);
}
