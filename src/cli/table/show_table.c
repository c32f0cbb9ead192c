/* show_table.c: see show_table.h. */
#include "cli/table/show_table.h"

#include "base/plain.h"
#include "cli/table/wrap.h"

#include <string.h>

enum { GAP = 2, NARROW = 8 };

struct show_row {
    const char **cells; /* NULL: a line */
    const char *line;
    struct show_row *next;
};

/* The text on one line, in the table's arena. */
static const char *keep_text(struct show_table *table, const char *text)
{
    struct text plain = {0};
    size_t length = text ? strlen(text) : 0;
    for (size_t at = 0; at < length;) {
        char shown[PLAIN_MOST];
        at += plain_show(text + at, length - at, true, shown);
        text_add(&plain, *shown == '\n' || *shown == '\t' ? " " : shown);
    }
    const char *kept = plain.failed ? NULL : arena_text(&table->arena, text_of(&plain));
    table->failed |= !kept;
    text_free(&plain);
    return kept ? kept : "";
}

int show_table_column(struct show_table *table, const char *heading, enum show_align align,
                      int importance, size_t room)
{
    if (table->column_count == SHOW_COLUMNS) {
        table->failed = true;
        return SHOW_COLUMNS - 1;
    }
    table->columns[table->column_count] = (struct show_column){
        .heading = heading, .align = align, .importance = importance, .width = room};
    return table->column_count++;
}

void show_table_flex(struct show_table *table, int column, size_t least)
{
    table->columns[column].least = least;
}

static struct show_row *add_row(struct show_table *table)
{
    struct show_row *row = arena_alloc(&table->arena, sizeof *row);
    table->failed |= !row;
    if (!row)
        return NULL;
    if (table->last)
        table->last->next = row;
    else
        table->first = row;
    table->last = row;
    return row;
}

void show_table_row(struct show_table *table, const char *const *cells)
{
    struct show_row *row = add_row(table);
    if (!row)
        return;
    row->cells = arena_array(&table->arena, SHOW_COLUMNS, sizeof *row->cells);
    table->failed |= !row->cells;
    row->line = "";
    for (int c = 0; row->cells && c < table->column_count; c++)
        row->cells[c] = keep_text(table, cells[c]);
}

void show_table_spend(struct show_table *table, struct text *texts, int count)
{
    for (int i = 0; i < count; i++) {
        table->failed |= texts[i].failed;
        text_free(&texts[i]);
    }
}

void show_table_texts(struct show_table *table, struct text *cells, int count)
{
    const char *row[SHOW_COLUMNS] = {NULL};
    for (int i = 0; i < count; i++)
        row[i] = text_of(&cells[i]);
    show_table_row(table, row);
    show_table_spend(table, cells, count);
}

void show_table_line(struct show_table *table, const char *line)
{
    struct show_row *row = add_row(table);
    if (row)
        row->line = keep_text(table, line);
}

void show_table_foot(struct show_table *table, const char *line)
{
    wrap_add(&table->footer, "", keep_text(table, line), table->width);
}

void show_table_foot_command(struct show_table *table, const char *command)
{
    wrap_add_command(&table->footer, "", keep_text(table, command), table->width);
}

/* As wide as its heading and its cells. Where all cells are there and empty it is left out. */
static void measure_column(struct show_table *table, int c)
{
    struct show_column *column = &table->columns[c];
    bool filled = !table->first;
    size_t heading = wrap_width(column->heading);
    column->width = heading > column->width ? heading : column->width;
    for (const struct show_row *row = table->first; row; row = row->next) {
        size_t width = row->cells ? wrap_width(row->cells[c]) : 0;
        filled |= width > 0;
        column->width = width > column->width ? width : column->width;
    }
    column->hidden = !filled && column->importance < SHOW_ALWAYS;
}

static size_t least_width(const struct show_column *column)
{
    return column->least && column->least < column->width ? column->least : column->width;
}

/* Of the columns that are shown, as they are or as narrow as they may be. */
static size_t total_width(const struct show_table *table, bool narrow)
{
    size_t total = (size_t)table->indent, shown = 0;
    for (int c = 0; c < table->column_count; c++) {
        const struct show_column *column = &table->columns[c];
        if (!column->hidden)
            total += (narrow ? least_width(column) : column->width) + (shown++ ? GAP : 0);
    }
    return total;
}

/* The least important column that may be left out, the last of several; or NULL. */
static struct show_column *find_least(struct show_table *table)
{
    struct show_column *least = NULL;
    for (int c = 0; c < table->column_count; c++) {
        struct show_column *column = &table->columns[c];
        if (!column->hidden && column->importance < SHOW_ALWAYS &&
            (!least || column->importance <= least->importance))
            least = column;
    }
    return least;
}

/* Of those whose cells can be wrapped: figures are not. `flexible`: only those that say so. */
static struct show_column *find_widest(struct show_table *table, bool flexible)
{
    struct show_column *widest = NULL;
    for (int c = 0; c < table->column_count; c++) {
        struct show_column *column = &table->columns[c];
        size_t least = flexible ? least_width(column) : NARROW;
        if (!column->hidden && column->align == SHOW_LEFT && column->width > least &&
            (!widest || column->width > widest->width))
            widest = column;
    }
    return widest;
}

static void narrow_columns(struct show_table *table, bool flexible)
{
    const size_t room = (size_t)table->width;
    struct show_column *column;
    while (total_width(table, false) > room && (column = find_widest(table, flexible))) {
        size_t over = total_width(table, false) - room;
        size_t least = flexible ? least_width(column) : NARROW;
        column->width = column->width > over + least ? column->width - over : least;
    }
}

/* A wide column was left out last: narrower ones, less important, may fit beside the rest. */
static void show_again(struct show_table *table)
{
    for (int importance = SHOW_ALWAYS; importance >= 0; importance--)
        for (int c = 0; c < table->column_count; c++) {
            struct show_column *column = &table->columns[c];
            if (!column->dropped || !column->hidden || column->importance != importance)
                continue;
            column->hidden = false;
            column->hidden = total_width(table, true) > (size_t)table->width;
        }
}

static void arrange(struct show_table *table)
{
    struct show_column *column;
    for (int c = 0; c < table->column_count; c++)
        measure_column(table, c);
    while (total_width(table, true) > (size_t)table->width && (column = find_least(table)))
        column->hidden = column->dropped = true;
    show_again(table);
    narrow_columns(table, true);
    narrow_columns(table, false);
}

bool show_table_has(const struct show_table *table, int column)
{
    return !table->columns[column].hidden;
}

static void trim(struct text *out, size_t from)
{
    while (out->length > from && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

/* One line of a row: of each cell what fits. Moves the cells on; is anything left of them? */
static bool print_line(const struct show_table *table, const char **cells, struct text *out)
{
    const size_t from = out->length;
    bool more = false, first = true;
    wrap_pad(out, (size_t)table->indent);
    for (int c = 0; c < table->column_count; c++) {
        const struct show_column *column = &table->columns[c];
        struct text piece = {0};
        size_t skip = 0;
        if (column->hidden)
            continue;
        size_t taken = column->align == SHOW_RIGHT ? strlen(cells[c])
                                                   : wrap_take(cells[c], column->width, &skip);
        text_add_bytes(&piece, cells[c], taken);
        cells[c] += taken + (cells[c][taken + skip] ? skip : 0);
        size_t width = wrap_width(text_of(&piece));
        size_t room = column->width > width ? column->width - width : 0;
        wrap_pad(out, first ? 0 : GAP);
        wrap_pad(out, column->align == SHOW_RIGHT ? room : 0);
        text_add(out, text_of(&piece));
        wrap_pad(out, column->align == SHOW_LEFT ? room : 0);
        out->failed |= piece.failed;
        more |= cells[c][strspn(cells[c], " ")] != '\0';
        text_free(&piece);
        first = false;
    }
    trim(out, from);
    text_add_char(out, '\n');
    return more;
}

static void print_cells(const struct show_table *table, const char *const *cells, struct text *out)
{
    const char *left[SHOW_COLUMNS];
    for (int c = 0; c < table->column_count; c++)
        left[c] = cells[c];
    while (print_line(table, left, out)) {
    }
}

void show_table_begin(struct show_table *table, struct text *out)
{
    const char *headings[SHOW_COLUMNS];
    bool named = false;
    arrange(table);
    if (table->title.length) {
        wrap_add(out, "", keep_text(table, text_of(&table->title)), table->width);
        text_add_char(out, '\n');
    }
    for (int c = 0; c < table->column_count; c++) {
        headings[c] = table->columns[c].heading;
        named |= headings[c][0] != '\0';
    }
    if (named)
        print_cells(table, headings, out);
}

/* What begins with blanks goes on under its first word. */
static void print_row_line(const struct show_table *table, const char *line, struct text *out)
{
    const size_t blanks = strspn(line, " ");
    struct text lead = {0};
    wrap_pad(&lead, blanks);
    wrap_add(out, text_of(&lead), line + blanks, table->width);
    out->failed |= lead.failed;
    text_free(&lead);
}

void show_table_flush(struct show_table *table, struct text *out)
{
    for (const struct show_row *row = table->first; row; row = row->next) {
        if (row->cells)
            print_cells(table, row->cells, out);
        else
            print_row_line(table, row->line, out);
    }
    table->first = table->last = NULL;
}

void show_table_print(struct show_table *table, struct text *out)
{
    show_table_begin(table, out);
    show_table_flush(table, out);
    show_table_end(table, out);
}

enum status show_table_done(struct show_table *table)
{
    if (table->failed || table->title.failed || table->footer.failed)
        FAIL(STATUS_MEMORY, "out of memory for a table");
    return STATUS_OK;
}

void show_table_free(struct show_table *table)
{
    text_free(&table->title);
    text_free(&table->footer);
    arena_free(&table->arena);
    *table = (struct show_table){0};
}
