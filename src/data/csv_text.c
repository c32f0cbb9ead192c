/* csv_text.c: from text to cells.
 *
 * Rows of equal length, LF or CRLF; empty lines are passed over. Cells may be in double quotes (""
 * is a quote), and then have separators and new lines inside. Blanks around a cell are no part of
 * it.
 *
 * The separator is the one of , ; tab | with which the first rows have equally many cells, of which
 * as few as possible contain another candidate: "1,5;2,5" are two cells, not three. A first line
 * "sep=;", as Excel writes it, decides. */
#include "data/csv.h"

#include "base/machine/room.h"
#include "base/memory.h"

#include <ctype.h>
#include <string.h>

static const char candidates[] = ",;\t|";
enum { TRIAL_ROWS = 100, TRIAL_BYTES = 1 << 18 };

/* Where the reader is. */
struct scan {
    struct csv *csv;
    char *next, *line_start;
    int64_t line;
    int64_t count; /* cells so far */
    int64_t rows;
};

#define SCAN_REFUSE(scan, at, ...)                                                                 \
    do {                                                                                           \
        status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__);                                \
        status_prefix(STATUS_INPUT, "%s:%lld:%lld", (scan)->csv->name, (long long)(scan)->line,    \
                      (long long)((at) - (scan)->line_start) + 1);                                 \
        return STATUS_INPUT;                                                                       \
    } while (0)

static bool is_blank(const struct csv *csv, char c)
{
    return c == ' ' || (c == '\t' && csv->separator != '\t');
}

static bool ends_cell(const struct csv *csv, const char *at)
{
    return at == csv->end || *at == csv->separator || *at == '\n' ||
           (*at == '\r' && (at + 1 == csv->end || at[1] == '\n'));
}

/* "a comma" */
static const char *separator_name(char separator)
{
    switch (separator) {
    case ';': return "a semicolon";
    case '\t': return "a tab";
    case '|': return "a bar";
    default: return "a comma";
    }
}

/* Reads "…" with its first quote at scan->next; leaves that behind the last one. *end is where the
 * value ends. */
static enum status read_quoted(struct scan *scan, char **begin, char **end)
{
    const struct csv *csv = scan->csv;
    const struct scan opened = *scan;
    char *from = scan->next + 1, *to = from;
    *begin = to;
    for (;; from++) {
        if (from == csv->end)
            SCAN_REFUSE(&opened, opened.next,
                        "found the end of the file, expected a closing quote");
        if (*from == '"') {
            if (from[1] != '"')
                break;
            from++;
        }
        if (*from == '\n') {
            scan->line++;
            scan->line_start = from + 1;
        }
        *to++ = *from;
    }
    scan->next = from + 1;
    while (is_blank(csv, *scan->next))
        scan->next++;
    if (!ends_cell(csv, scan->next))
        SCAN_REFUSE(&opened, opened.next, "found '%.1s' after a closing quote, expected %s",
                    scan->next, separator_name(csv->separator));
    *end = to;
    return STATUS_OK;
}

static void read_plain(struct scan *scan, char **begin, char **end)
{
    *begin = scan->next;
    while (!ends_cell(scan->csv, scan->next))
        scan->next++;
    *end = scan->next;
    while (*end > *begin && is_blank(scan->csv, (*end)[-1]))
        --*end;
}

static void skip_empty_lines(struct scan *scan)
{
    while (scan->next < scan->csv->end && (*scan->next == '\n' || *scan->next == '\r')) {
        if (*scan->next++ == '\n') {
            scan->line++;
            scan->line_start = scan->next;
        }
    }
}

/* Moves from the end of a row to the next line. */
static void end_line(struct scan *scan)
{
    if (*scan->next == '\r')
        scan->next++;
    if (scan->next < scan->csv->end)
        scan->next++;
    scan->line++;
    scan->line_start = scan->next;
}

/* Room for one more row; the first one, whose length is not known yet, grows as it is read. */
static enum status make_room(struct scan *scan)
{
    struct csv *csv = scan->csv;
    if (scan->rows < csv->row_room)
        return STATUS_OK;
    int64_t room = csv->row_room ? 2 * csv->row_room : 64;
    size_t row_bytes = (size_t)csv->columns * sizeof *csv->all_cells;
    uint32_t *cells;
    struct csv_row *lines;
    if (csv_bytes(csv, scan->rows) > csv->memory)
        FAIL(STATUS_INPUT,
             "%s:%lld: found rows that take more than the %zu bytes that data may take, expected "
             "fewer; NPY files are streamed, --memory allows more",
             csv->name, (long long)scan->line, csv->memory);
    TRY(room_check((double)csv_bytes(csv, room), "%s:%lld: rows so far take %.1f MB", csv->name,
                   (long long)scan->line, (double)csv_bytes(csv, scan->rows) / 1e6));
    NEED(cells = mem_grow(csv->all_cells, (size_t)room, row_bytes));
    csv->all_cells = cells;
    NEED(lines = mem_grow(csv->all_lines, (size_t)room, sizeof *lines));
    csv->all_lines = lines;
    csv->row_room = room;
    return STATUS_OK;
}

/* "1,5", "-12,25": a number whose decimals follow a comma. */
static bool is_comma_number(const char *at, const char *end)
{
    int commas = 0, digits = 0;
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; at < end; at++) {
        commas += *at == ',';
        digits += isdigit((unsigned char)*at) != 0;
        if (*at != ',' && !isdigit((unsigned char)*at))
            return false;
    }
    return commas == 1 && digits > 1;
}

/* How well a separator fits the first rows. */
struct trial {
    int64_t cells, sound; /* sound: without another candidate inside */
    int64_t rows, alike;  /* alike: with as many cells as the first row */
    int64_t width;        /* of the first row */
};

static const char *try_cell(const struct csv *csv, char separator, const char *at,
                            struct trial *trial)
{
    const char *begin = at;
    bool sound = true;
    if (*at == '"') {
        for (at++; at < csv->end && (*at != '"' || at[1] == '"'); at++)
            at += *at == '"';
        begin = at;
    }
    for (; at < csv->end && *at != separator && *at != '\n'; at++)
        sound = sound && (*at == '\t' || !strchr(candidates, *at));
    const char *end = at > begin && at[-1] == '\r' ? at - 1 : at;
    trial->cells++;
    trial->sound += sound || (separator != ',' && is_comma_number(begin, end));
    return at;
}

/* How many cells the row at scan->next has. */
static int64_t count_cells(const struct scan *scan)
{
    const struct csv *csv = scan->csv;
    struct trial trial = {0};
    const char *at = scan->next;
    for (;; at++) {
        while (is_blank(csv, *at))
            at++;
        at = try_cell(csv, csv->separator, at, &trial);
        if (at == csv->end || *at == '\n')
            return trial.cells;
    }
}

/* The next cell of the row; *last: it ends the line. */
static enum status read_cell(struct scan *scan, int64_t index, bool *last)
{
    struct csv *csv = scan->csv;
    char *begin, *end;
    while (is_blank(csv, *scan->next))
        scan->next++;
    if (index == csv->columns) {
        int64_t found = index + count_cells(scan);
        SCAN_REFUSE(scan, scan->next,
                    "found %lld values in the row, expected %d; a value with %s inside must be in "
                    "quotes",
                    (long long)found, csv->columns, separator_name(csv->separator));
    }
    if (*scan->next == '"')
        TRY(read_quoted(scan, &begin, &end));
    else
        read_plain(scan, &begin, &end);
    csv->all_cells[scan->rows * csv->columns + index] = (uint32_t)(begin - csv->text);
    *last = *scan->next != csv->separator;
    if (*last)
        end_line(scan);
    else
        scan->next++;
    *end = 0; /* only now: it may overwrite what ended the cell */
    return STATUS_OK;
}

static enum status read_row(struct scan *scan)
{
    struct csv *csv = scan->csv;
    int64_t line = scan->line, count = 0;
    const char *start = scan->line_start, *last_cell = scan->next;
    TRY(make_room(scan));
    csv->all_lines[scan->rows] = (struct csv_row){(uint32_t)(start - csv->text), (uint32_t)line};
    for (bool last = false; !last;) {
        last_cell = scan->next;
        TRY(read_cell(scan, count++, &last));
    }
    if (count < csv->columns) {
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "found %lld values in the row, expected %d",
                    (long long)count, csv->columns);
        return status_prefix(STATUS_INPUT, "%s:%lld:%lld", csv->name, (long long)line,
                             (long long)(last_cell - start) + 1);
    }
    if (++scan->rows > DATASET_ROWS_MOST)
        SCAN_REFUSE(scan, scan->next, "found more than %d rows", DATASET_ROWS_MOST);
    return STATUS_OK;
}

static double try_separator(const struct csv *csv, char separator)
{
    struct trial trial = {0};
    const char *at = csv->text;
    while (at < csv->end && trial.rows < TRIAL_ROWS && at - csv->text < TRIAL_BYTES) {
        int64_t width = 0;
        if (*at == '\n' || *at == '\r') {
            at++;
            continue;
        }
        for (bool last = false; !last; width++) {
            while (*at == ' ')
                at++;
            at = try_cell(csv, separator, at, &trial);
            last = at == csv->end || *at == '\n';
            at += at < csv->end;
        }
        trial.width = trial.rows ? trial.width : width;
        trial.alike += width == trial.width;
        trial.rows++;
    }
    if (trial.width < 2)
        return 0;
    return (double)trial.sound / (double)trial.cells * (double)trial.alike / (double)trial.rows;
}

static void choose_separator(struct csv *csv)
{
    double best = 0;
    csv->separator = ',';
    for (const char *candidate = candidates; *candidate; candidate++) {
        double fit = try_separator(csv, *candidate);
        if (fit > best) {
            best = fit;
            csv->separator = *candidate;
        }
    }
}

/* Old line ends, a byte-order mark, "sep=;". */
static void begin_text(struct scan *scan)
{
    struct csv *csv = scan->csv;
    if (text_starts(csv->text, "\xEF\xBB\xBF"))
        csv->text += 3;
    if (!memchr(csv->text, '\n', (size_t)(csv->end - csv->text)))
        for (char *at = csv->text; at < csv->end; at++)
            *at = *at == '\r' ? '\n' : *at;
    scan->next = scan->line_start = csv->text;
    scan->line = 1;
    if (text_starts(csv->text, "sep=") && csv->text[4] && strchr(candidates, csv->text[4]) &&
        (csv->text[5] == '\n' || csv->text[5] == '\r')) {
        csv->separator = csv->text[4];
        scan->next += 5;
        end_line(scan);
    } else {
        choose_separator(csv);
    }
}

enum status csv_read_cells(struct csv *csv)
{
    struct scan scan = {.csv = csv};
    begin_text(&scan);
    skip_empty_lines(&scan);
    if (scan.next == csv->end) {
        scan.line = 1;
        SCAN_REFUSE(&scan, scan.line_start,
                    "found nothing, expected rows of comma-separated numbers");
    }
    int64_t columns = count_cells(&scan);
    if (columns > DATASET_COLUMNS_MOST)
        SCAN_REFUSE(&scan, scan.next, "found more than %d columns", DATASET_COLUMNS_MOST);
    csv->columns = (int32_t)columns;
    while (scan.next < csv->end) {
        TRY(read_row(&scan));
        skip_empty_lines(&scan);
    }
    csv->rows = scan.rows;
    csv->cells = csv->all_cells;
    csv->lines = csv->all_lines;
    return STATUS_OK;
}
