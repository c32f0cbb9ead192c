/* table.c: a grid of cells is made from the records, once; each format prints it in its way. */
#include "record/tables/table.h"
#include "base/arena.h"
#include "record/names.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MOST = 1 + AXIS_COUNT + 4 + METRIC_COUNT + 2 };

/* What becomes of a column in which every cell is the same. */
enum column_kind {
    COLUMN_ALWAYS, /* it stays */
    COLUMN_SAID,   /* left out of tables for people, and its value said above */
    COLUMN_FILLED, /* left out when all its cells are empty */
};

struct column {
    const char *name;
    enum column_kind kind;
    bool right; /* aligned to the right */
    bool hidden;
    size_t width;
};

struct grid {
    struct arena arena;
    struct text scratch;
    struct column columns[COLUMNS_MOST];
    size_t column_count, row_count;
    const char **cells; /* [row_count, COLUMNS_MOST] */
    bool failed;        /* memory ran out for a cell */
};

bool table_format_parse(const char *name, enum table_format *out)
{
    static const char *const names[] = {"table", "csv", "md"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum table_format)i;
            return true;
        }
    }
    return false;
}

/* Cells of one row are added from left to right; the first row also makes the columns. */
struct cursor {
    struct grid *grid;
    size_t row, column;
};

static void add_cell(struct cursor *at, const char *name, enum column_kind kind, bool right,
                     const char *text)
{
    struct grid *grid = at->grid;
    grid->columns[at->column] = (struct column){.name = name, .kind = kind, .right = right};
    const char *copy = arena_text(&grid->arena, text ? text : "");
    grid->failed |= !copy;
    grid->cells[at->row * COLUMNS_MOST + at->column++] = copy ? copy : "";
    grid->column_count = at->column;
}

void table_figure(struct text *out, double value, const char *unit)
{
    if (strcmp(unit, "ns") == 0) {
        text_add_time(out, value);
    } else if (strcmp(unit, "s") == 0) {
        text_add_time(out, value * 1e9);
    } else if (strcmp(unit, "B") == 0 || strcmp(unit, "B/s") == 0) {
        text_add_size(out, value);
        text_add(out, unit + 1);
    } else if (strcmp(unit, "%") == 0) {
        text_printf(out, "%.1f %%", value);
    } else if (strcmp(unit, "x") == 0) {
        text_printf(out, "%.2f", value);
    } else {
        text_add_count(out, value);
        text_printf(out, "%s%s", *unit ? " " : "", unit);
    }
}

void table_csv_heading(const char *key, const char *unit, struct text *out)
{
    static const struct {
        const char *unit, *name;
    } names[] = {{"x", ""},
                 {"", ""},
                 {"%", "percent"},
                 {"B", "bytes"},
                 {"B/s", "bytes_per_s"},
                 {"samples/s", "samples_per_s"},
                 {"FLOP/s", "flop_per_s"},
                 {"1/s", "per_s"}};
    const char *name = unit; /* ns, s, W, Hz, J */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(unit, names[i].unit) == 0)
            name = names[i].name;
    text_printf(out, "%s%s%s", key, *name ? "_" : "", name);
}

/* Of a program's table with its unit, since the figures have none. */
static const char *heading_of(struct grid *grid, const struct metric *metric, bool plain)
{
    struct text heading = {0};
    if (!plain)
        return metric->key;
    table_csv_heading(metric->key, metric->unit, &heading);
    const char *kept = heading.failed ? NULL : arena_text(&grid->arena, text_of(&heading));
    text_free(&heading);
    grid->failed |= !kept;
    return kept ? kept : metric->key;
}

static void add_metric(struct cursor *at, const struct record *record, const struct metric *metric,
                       bool plain)
{
    struct text *text = &at->grid->scratch;
    double value = record_metric(record, metric);
    text_clear(text);
    if (!isnan(value) && plain) {
        struct json_writer writer;
        json_begin(&writer, text);
        json_add_real(&writer, value);
    } else if (!isnan(value) &&
               (metric != &metrics[METRIC_times_now] || record_slow_hour(record))) {
        table_figure(text, value, metric->unit);
    }
    add_cell(at, heading_of(at->grid, metric, plain), COLUMN_FILLED, true, text_of(text));
}

static void add_row(struct grid *grid, size_t row, const struct table_row *from, bool with_id,
                    bool plain)
{
    const struct record *record = from->record;
    struct cursor at = {grid, row, 0};
    char buffer[POINT_NUMBER];
    if (with_id) {
        text_clear(&grid->scratch);
        text_printf(&grid->scratch, "%lld", (long long)from->id);
        add_cell(&at, "id", COLUMN_ALWAYS, true, text_of(&grid->scratch));
    }
    for (size_t i = 0; i < AXIS_COUNT; i++)
        add_cell(&at, axes[i].key, COLUMN_SAID, axes[i].kind == AXIS_INT,
                 point_get(&record->point, &axes[i], buffer));
    add_cell(&at, "status", COLUMN_SAID, false, record_statuses[record->status]);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (plain || metrics[i].shown)
            add_metric(&at, record, &metrics[i], plain);
    add_cell(&at, "check", COLUMN_SAID, false, record_verdicts[record->check.verdict]);
    if (plain) {
        add_cell(&at, "program", COLUMN_FILLED, false, record->program);
        add_cell(&at, "at", COLUMN_FILLED, false, record->at);
    }
    add_cell(&at, "handicap", COLUMN_FILLED, false, record->handicap);
    add_cell(&at, "reason", COLUMN_FILLED, false, record->reason);
}

static const char *cell(const struct grid *grid, size_t row, size_t column)
{
    return grid->cells[row * COLUMNS_MOST + column];
}

static enum status make_grid(struct grid *grid, const struct table_row *rows, size_t count,
                             bool with_id, bool plain)
{
    grid->row_count = count;
    NEED(grid->cells = arena_array(&grid->arena, count, COLUMNS_MOST * sizeof *grid->cells));
    for (size_t i = 0; i < count; i++)
        add_row(grid, i, &rows[i], with_id, plain);
    TRY(text_done(&grid->scratch));
    if (grid->failed)
        FAIL(STATUS_MEMORY, "out of memory");
    return STATUS_OK;
}

static void free_grid(struct grid *grid)
{
    text_free(&grid->scratch);
    arena_free(&grid->arena);
}

size_t table_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* Decides which columns are shown and how wide they are; says the others' values. */
static void arrange(struct grid *grid, struct text *out)
{
    bool said = false;
    for (size_t c = 0; c < grid->column_count; c++) {
        struct column *column = &grid->columns[c];
        bool varies = false;
        column->width = table_width(column->name);
        for (size_t r = 0; r < grid->row_count; r++) {
            size_t width = table_width(cell(grid, r, c));
            varies |= strcmp(cell(grid, r, c), cell(grid, 0, c)) != 0;
            column->width = width > column->width ? width : column->width;
        }
        bool empty = !cell(grid, 0, c)[0];
        column->hidden =
            !varies && (column->kind == COLUMN_SAID || (column->kind == COLUMN_FILLED && empty));
        if (column->hidden && !empty) {
            text_printf(out, "%s%s %s", said ? ", " : "", column->name, cell(grid, 0, c));
            said = true;
        }
    }
    if (said)
        text_add(out, "\n\n");
}

static void pad(struct text *out, size_t width)
{
    for (size_t i = 0; i < width; i++)
        text_add_char(out, ' ');
}

/* `row` is the number of a row plus one; 0 is the heading. */
static void print_aligned_row(const struct grid *grid, size_t row, struct text *out)
{
    bool first = true;
    for (size_t c = 0; c < grid->column_count; c++) {
        const struct column *column = &grid->columns[c];
        if (column->hidden)
            continue;
        const char *text = row ? cell(grid, row - 1, c) : column->name;
        size_t room = column->width - table_width(text);
        text_add(out, first ? "" : "  ");
        pad(out, column->right ? room : 0);
        text_add(out, text);
        pad(out, column->right ? 0 : room);
        first = false;
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
    text_add_char(out, '\n');
}

void table_markdown_cell(const char *text, struct text *out)
{
    for (; *text; text++) {
        if (*text == '|')
            text_add_char(out, '\\');
        text_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void csv_quote(const char *text, struct text *out)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        text_add(out, text);
        return;
    }
    text_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            text_add_char(out, '"');
        text_add_char(out, *text);
    }
    text_add_char(out, '"');
}

/* A spreadsheet computes what begins like this, which may call programs or send what is in other
 * cells away; behind an apostrophe it is text. Numbers stay numbers. */
static bool is_formula(const char *text)
{
    double number;
    return *text && strchr("=+-@\t\r", *text) && !text_to_real(text, &number);
}

void table_csv_cell(const char *text, struct text *out)
{
    struct text plain = {0};
    if (is_formula(text)) {
        text_printf(&plain, "'%s", text);
        csv_quote(text_of(&plain), out);
        out->failed |= plain.failed;
        text_free(&plain);
        return;
    }
    csv_quote(text, out);
}

static void print_markdown_row(const struct grid *grid, size_t row, struct text *out)
{
    for (size_t c = 0; c < grid->column_count; c++) {
        if (grid->columns[c].hidden)
            continue;
        const char *text = row ? cell(grid, row - 1, c) : grid->columns[c].name;
        text_add(out, "| ");
        table_markdown_cell(text, out);
        text_add_char(out, ' ');
    }
    text_add(out, "|\n");
    if (row)
        return;
    for (size_t c = 0; c < grid->column_count; c++)
        if (!grid->columns[c].hidden)
            text_add(out, grid->columns[c].right ? "|---:" : "|---");
    text_add(out, "|\n");
}

static void print_csv_row(const struct grid *grid, size_t row, struct text *out)
{
    for (size_t c = 0; c < grid->column_count; c++) {
        const char *text = row ? cell(grid, row - 1, c) : grid->columns[c].name;
        text_add(out, c ? "," : "");
        table_csv_cell(text, out);
    }
    text_add_char(out, '\n');
}

enum status table_csv(const struct table_row *row, bool with_id, bool heading, struct text *out)
{
    struct grid grid = {0};
    enum status status = make_grid(&grid, row, 1, with_id, true);
    if (status == STATUS_OK) {
        if (heading)
            print_csv_row(&grid, 0, out);
        print_csv_row(&grid, 1, out);
        status = text_done(out);
    }
    free_grid(&grid);
    return status;
}

enum status table_print(const struct table_row *rows, size_t count, enum table_format format,
                        struct text *out)
{
    bool with_id = false;
    for (size_t i = 0; i < count; i++)
        with_id |= rows[i].id != 0;
    for (size_t i = 0; i < count && format == TABLE_CSV; i++)
        TRY(table_csv(&rows[i], with_id, i == 0, out));
    if (count == 0 || format == TABLE_CSV)
        return STATUS_OK;
    struct grid grid = {0};
    enum status status = make_grid(&grid, rows, count, with_id, false);
    if (status == STATUS_OK) {
        arrange(&grid, out);
        for (size_t row = 0; row <= count; row++) {
            if (format == TABLE_ALIGNED)
                print_aligned_row(&grid, row, out);
            else
                print_markdown_row(&grid, row, out);
        }
        status = text_done(out);
    }
    free_grid(&grid);
    return status;
}
