/* csv_column.c: what a cell is, and what is made of a column.
 *
 * A column is numbers when all its cells are, but for missing ones; texts when most are not. A text
 * among numbers is a slip: it is refused with its place, never guessed. So are dates, and numbers
 * with thousands separators or units: there is more than one way to read them.
 *
 * Texts become a 0 or 1 where there are two of them, a column for each where there are few, and
 * else the number of the text in sorted order; where nearly every row has one of its own they are
 * no categories, and refused. */
#include "data/csv.h"

#include "base/memory.h"
#include "base/plain.h"
#include "data/gaps.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Texts of a column: so many become a column each, so many more a code; and what can be asked for.
 */
enum { ONE_HOT_USUAL = 32, CODE_USUAL = 1000, ONE_HOT_MOST = 1024, CODE_MOST = 1 << 16 };
enum { NUMBER_MOST = 64 }; /* characters of a number with a decimal comma */

/* Texts of a column that are none of those that were learnt. */
struct unknown {
    int64_t rows, first;
};

bool csv_is_missing(const char *cell)
{
    static const char *const words[] = {"NA", "N/A", "#N/A", "NaN", "null", "?"};
    if (!*cell)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(cell, words[i]))
            return true;
    return false;
}

static bool read_number(const struct csv *csv, const char *cell, double *out)
{
    char point[NUMBER_MOST];
    const char *comma = csv->decimal_comma ? strchr(cell, ',') : NULL;
    size_t length = comma ? strlen(cell) : 0;
    if (!comma)
        return text_to_real(cell, out);
    if (length >= sizeof point || memchr(cell, '.', length))
        return false;
    memcpy(point, cell, length + 1);
    point[comma - cell] = '.';
    return text_to_real(point, out);
}

enum cell csv_what(const struct csv *csv, const char *cell, double *number)
{
    if (csv_is_missing(cell))
        return CELL_MISSING;
    return read_number(csv, cell, number) ? CELL_NUMBER : CELL_TEXT;
}

/* Does the whole cell look like the pattern: 9 for a digit, 0 for one that may be missing, others
 * as they are? What follows a blank or a T is not looked at (the time of a date). */
static bool looks_like(const char *cell, const char *pattern)
{
    for (; *pattern; pattern++) {
        bool digit = isdigit((unsigned char)*cell);
        if (*pattern == '0' && !digit)
            continue;
        if (*pattern == '9' || *pattern == '0' ? !digit : *cell != *pattern)
            return false;
        cell++;
    }
    return !*cell || *cell == ' ' || *cell == 'T';
}

static bool is_date(const char *cell)
{
    static const char *const patterns[] = {
        "9999-90-90", "9999/90/90", "9999.90.90", "90.90.9900", "90/90/9900",
        "90-90-9900", "9999-99",    "90:99",      "90:99:99",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (looks_like(cell, patterns[i]))
            return true;
    return false;
}

/* "1,234,567", "1'234", "1 234.5", "1.234,5": groups of three digits. */
static bool has_groups(const char *cell)
{
    int groups = 0;
    cell += *cell == '-' || *cell == '+';
    size_t digits = strspn(cell, "0123456789");
    if (digits < 1 || digits > 3)
        return false;
    cell += digits;
    const char mark = *cell;
    for (; *cell == mark && mark && strchr(",.' ", mark); groups++) {
        if (strspn(cell + 1, "0123456789") != 3)
            break;
        cell += 4;
    }
    cell += (*cell == '.' || *cell == ',') && groups;
    return groups && !cell[strspn(cell, "0123456789")];
}

/* "$12", "1,200 €", "40 %": a number with the sign of a currency or of a share. */
static bool has_unit(const char *cell)
{
    static const char *const signs[] = {"$", "€", "£", "¥", "%"};
    const char *sign = NULL;
    size_t length = 0;
    for (size_t i = 0; !sign && i < sizeof signs / sizeof *signs; i++) {
        sign = strstr(cell, signs[i]);
        length = strlen(signs[i]);
    }
    size_t before = strspn(cell, "0123456789.,' -+");
    return sign && cell + before == sign &&
           !sign[length + strspn(sign + length, "0123456789.,' -+")] && strpbrk(cell, "0123456789");
}

const char *csv_hint(const char *cell)
{
    if (is_date(cell))
        return "a date or time: split it into columns of numbers, as year and month, or leave it "
               "out with";
    if (has_groups(cell))
        return "a thousands separator? write 1234.5, or leave the column out with";
    if (has_unit(cell))
        return "a unit? write the number alone, or leave the column out with";
    return NULL;
}

static enum status refuse_cell(const struct csv *csv, int64_t row, int32_t column)
{
    const char *cell = csv_cell(csv, row, column), *name = csv->names[column];
    const char *hint = csv_hint(cell);
    if (csv_is_missing(cell))
        CSV_REFUSE(csv, row, column,
                   "found %s%s%s in column %s, expected a number; add --fill median (or mean, "
                   "zero, a number), --drop-rows or --drop %s",
                   *cell ? "'" : "a missing value", cell, *cell ? "', a missing value," : "", name,
                   name);
    if (csv_is_label(csv, column))
        CSV_REFUSE(csv, row, column, "found '%.40s', expected a number%s", cell,
                   hint ? " without units, thousands separators and dates" : "");
    if (hint)
        CSV_REFUSE(csv, row, column, "found '%.40s', expected a number in column %s: %s --drop %s",
                   cell, name, hint, name);
    CSV_REFUSE(csv, row, column,
               "found '%.40s', expected a number as elsewhere in column %s; --encode %s takes the "
               "column as texts, --drop %s leaves it out",
               cell, name, name, name);
}

enum status csv_number(const struct csv *csv, int64_t row, int32_t column, float *out)
{
    double number;
    if (csv_what(csv, csv_cell(csv, row, column), &number) != CELL_NUMBER ||
        !isfinite((float)number))
        return refuse_cell(csv, row, column);
    *out = (float)number;
    return STATUS_OK;
}

bool csv_has_decimal_commas(const struct csv *csv)
{
    int64_t cells = csv->rows * csv->columns, commas = 0;
    struct csv with_commas = {.decimal_comma = true};
    double number;
    if (csv->separator == ',')
        return false;
    for (int64_t i = 0; i < cells; i++) {
        const char *cell = csv->text + csv->cells[i];
        const char *comma = strchr(cell, ','), *point = strchr(cell, '.');
        if (comma)
            commas += read_number(&with_commas, cell, &number);
        else if (point && text_to_real(cell, &number))
            return false;
    }
    return commas > 0;
}

/* The column of that name or, failing that, at that place from 1; -1: there is none. */
static int32_t find_word(const struct csv *csv, const char *word, size_t length)
{
    char *end;
    for (int32_t i = 0; i < csv->columns; i++)
        if (strlen(csv->names[i]) == length && !strncmp(csv->names[i], word, length))
            return i;
    if (!isdigit((unsigned char)*word))
        return -1;
    const long long place = strtoll(word, &end, 10);
    return end == word + length && place >= 1 && place <= csv->columns ? (int32_t)place - 1 : -1;
}

static enum status refuse_word(const struct csv *csv, const char *flag, const char *word,
                               size_t length)
{
    char shown[60];
    snprintf(shown, sizeof shown, "%.*s", (int)(length < 50 ? length : 50), word);
    const char *near = text_nearest(shown, csv->names, (size_t)csv->columns);
    FAIL(STATUS_INPUT,
         "%s: found no column '%s' for %s, expected a name%s or a number from 1 to %d%s%s%s",
         csv->name, shown, flag, csv->header ? " of the header" : "", csv->columns,
         near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum status csv_read_list(const struct csv *csv, const char *list, const char *flag,
                          struct mark *marks)
{
    while (list) {
        size_t length = strcspn(list, ","), name = strcspn(list, ",=");
        int32_t column = find_word(csv, list, length);
        const bool whole = column >= 0;
        if (!whole && name < length)
            column = find_word(csv, list, name);
        if (column < 0)
            return refuse_word(csv, flag, list, name);
        marks[column].asked = true;
        marks[column].how = whole ? NULL : list + name + 1;
        marks[column].how_length = whole ? 0 : length - name - 1;
        list = list[length] ? list + length + 1 : NULL;
    }
    return STATUS_OK;
}

enum status csv_count_cells(struct csv *csv)
{
    struct census *census;
    double number;
    NEED(census = csv->census = mem_array((size_t)csv->columns, sizeof *census));
    for (int64_t row = 0; row < csv->rows; row++)
        for (int32_t column = 0; column < csv->columns; column++) {
            struct census *found = &census[column];
            enum cell what = csv_what(csv, csv_cell(csv, row, column), &number);
            if (what == CELL_NUMBER)
                found->numbers++;
            else if (what == CELL_MISSING && !found->missing++)
                found->first_missing = row;
            else if (what == CELL_TEXT && !found->texts++)
                found->first_text = row;
        }
    return STATUS_OK;
}

/* The mean or the median of the numbers of a column that has some. */
static enum status find_middle(const struct csv *csv, int32_t column, bool median, float *out)
{
    float *numbers;
    int64_t count = 0;
    double number;
    enum status status = STATUS_OK;
    NEED(numbers = mem_array((size_t)csv->rows, sizeof *numbers));
    for (int64_t row = 0; status == STATUS_OK && row < csv->rows; row++)
        if (csv_what(csv, csv_cell(csv, row, column), &number) == CELL_NUMBER)
            status = csv_number(csv, row, column, &numbers[count++]);
    if (status == STATUS_OK)
        *out = gaps_figure(numbers, count, median);
    mem_free(numbers);
    return status;
}

/* Text of the file as a note shows it: on one line, and short. */
struct shown {
    char text[40];
};

static struct shown show(const char *text)
{
    struct shown shown;
    plain_copy(shown.text, sizeof shown.text, *text ? text : "(missing)");
    return shown;
}

static enum status find_fill(struct csv *csv, int32_t column, const char *fill,
                             const struct census *census, struct column *out)
{
    double number = 0;
    const bool median = text_equal(fill, "median"), middle = median || text_equal(fill, "mean");
    if (!middle && !text_equal(fill, "zero") && !text_to_real(fill, &number))
        FAIL(STATUS_INPUT, "--fill: found '%s', expected mean, median, zero or a number", fill);
    out->filled = true;
    out->gaps = census->missing;
    out->fill = (float)number;
    if (!isfinite(out->fill))
        FAIL(STATUS_INPUT, "--fill: found '%s', expected a number that a float can hold", fill);
    if (middle)
        TRY(find_middle(csv, column, median, &out->fill));
    if (!census->missing)
        return STATUS_OK;
    text_printf(&csv->notes, "%s: %lld missing of %lld, filled with ", show(out->name).text,
                (long long)census->missing, (long long)csv->rows);
    if (middle)
        text_printf(&csv->notes, "the %s of the training rows\n", fill);
    else
        text_printf(&csv->notes, "%.6g\n", (double)out->fill);
    return STATUS_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status csv_check_text(const struct csv *csv, int64_t row, int32_t column, const char *kind)
{
    const char *cell = csv_cell(csv, row, column);
    size_t length = strlen(cell), size;
    for (size_t at = 0; at < length; at += size) {
        size = text_utf8(cell + at, length - at);
        if (!size)
            CSV_REFUSE(csv, row, column,
                       "found the byte 0x%02X in a %s, expected UTF-8; iconv -f cp1252 -t utf-8 "
                       "converts a file of Windows",
                       (unsigned char)cell[at], kind);
    }
    return STATUS_OK;
}

/* The distinct texts of the column, sorted, in the data set's arena. */
static enum status collect_texts(struct csv *csv, int32_t column, struct column *out)
{
    const char **texts;
    enum status status = STATUS_OK;
    int64_t count = 0;
    NEED(texts = mem_array((size_t)csv->rows, sizeof *texts));
    for (int64_t row = 0; status == STATUS_OK && row < csv->rows; row++) {
        const char *cell = csv_cell(csv, row, column);
        status = csv_check_text(csv, row, column, "text");
        texts[row] = csv_is_missing(cell) ? "" : cell;
    }
    if (status == STATUS_OK)
        qsort(texts, (size_t)csv->rows, sizeof *texts, compare_texts);
    for (int64_t row = 0; status == STATUS_OK && row < csv->rows; row++)
        if (!count || !text_equal(texts[row], texts[count - 1]))
            texts[count++] = texts[row];
    struct arena *arena = &csv->dataset->arena;
    const int64_t kept = count <= CODE_MOST ? count : 0;
    if (status == STATUS_OK)
        NEED_OR(done, out->values = arena_array(arena, (size_t)kept + 1, sizeof *texts));
    for (int64_t i = 0; status == STATUS_OK && i < kept; i++)
        NEED_OR(done, out->values[i] = arena_text(arena, texts[i]));
    out->value_count = (int32_t)count;
done:
    mem_free(texts);
    return status;
}

static enum status refuse_texts(const struct csv *csv, int64_t row, int32_t column,
                                const struct column *found, int32_t most)
{
    const char *name = csv->names[column], *cell = csv_cell(csv, row, column);
    if (found->value_count <= most)
        CSV_REFUSE(csv, row, column,
                   "found %d different texts in %lld rows of column %s, as '%.40s', expected texts "
                   "that rows share; add --drop %s or --encode %s",
                   found->value_count, (long long)csv->rows, name, cell, name, name);
    CSV_REFUSE(csv, row, column,
               "found %d different texts in column %s, as '%.40s', expected at most %d; --drop %s "
               "leaves the column out",
               found->value_count, name, cell, most, name);
}

/* "city: 4 texts, a column each: Lyon, Paris …" */
static void note_texts(struct csv *csv, const struct column *column)
{
    enum { SHOWN = 3 };
    const char *const *values = column->values;
    text_printf(&csv->notes, "%s: ", show(column->name).text);
    if (column->kind == COLUMN_CODE && column->value_count == 2) {
        text_printf(&csv->notes, "%s is 0, %s is 1\n", show(values[0]).text, show(values[1]).text);
        return;
    }
    text_printf(&csv->notes, "%d texts, %s:", column->value_count,
                column->kind == COLUMN_CODE ? "numbered in sorted order" : "a column each");
    for (int32_t i = 0; i < column->value_count && i < SHOWN; i++)
        text_printf(&csv->notes, "%s %s", i ? "," : "", show(values[i]).text);
    text_add(&csv->notes, column->value_count > SHOWN ? " …\n" : "\n");
}

/* `row` is of a text, for messages. */
static enum status judge_texts(struct csv *csv, int32_t column, int64_t row, struct column *out)
{
    const struct mark *mark = &csv->encoded[column];
    const char *how = mark->how;
    bool one_hot = how && mark->how_length == 6 && !strncmp(how, "onehot", 6);
    bool code = how && mark->how_length == 4 && !strncmp(how, "code", 4);
    TRY(collect_texts(csv, column, out));
    if (how && !one_hot && !code)
        FAIL(STATUS_INPUT, "--encode: found '%.*s' for column %s, expected onehot or code",
             (int)(mark->how_length < 40 ? mark->how_length : 40), how, out->name);
    int32_t count = out->value_count;
    bool few = count <= ONE_HOT_USUAL;
    if (!mark->asked && !few && (count > CODE_USUAL || count > csv->rows / 2))
        return refuse_texts(csv, row, column, out, CODE_USUAL);
    if (one_hot ? count > ONE_HOT_MOST : count > CODE_MOST)
        return refuse_texts(csv, row, column, out, one_hot ? ONE_HOT_MOST : CODE_MOST);
    out->kind = code || (!one_hot && (count <= 2 || !few)) ? COLUMN_CODE : COLUMN_ONE_HOT;
    note_texts(csv, out);
    return STATUS_OK;
}

/* A missing value that nothing was said about. */
static enum status check_missing(const struct csv *csv, int32_t column, bool texts,
                                 const struct census *census)
{
    const int64_t row = census->first_missing;
    const char *name = csv->names[column];
    if (!texts)
        return refuse_cell(csv, row, column);
    CSV_REFUSE(csv, row, column,
               "found a missing value, expected a text in column %s; add --fill median (a gap "
               "becomes a text of its own), --drop-rows or --drop %s",
               name, name);
}

enum status csv_judge_column(struct csv *csv, int32_t column, const struct dataset_options *options,
                             struct column *out)
{
    const struct census census = csv->census[column];
    bool asked = csv->encoded[column].asked;
    bool texts = asked || census.texts > census.numbers;
    *out = (struct column){.name = csv->names[column], .place = column + 1};
    if (!asked && texts && csv_hint(csv_cell(csv, census.first_text, column)))
        return refuse_cell(csv, census.first_text, column);
    if (!texts && census.texts)
        return refuse_cell(csv, census.first_text, column);
    if (census.missing && !options->fill)
        TRY(check_missing(csv, column, texts, &census));
    if (texts)
        return judge_texts(csv, column, census.texts ? census.first_text : 0, out);
    return options->fill ? find_fill(csv, column, options->fill, &census, out) : STATUS_OK;
}

/* Which of the column's texts the cell is; -1: none. */
static enum status find_text(const struct csv *csv, int64_t row, int32_t from,
                             const struct column *column, int32_t *value)
{
    const char *cell = csv_cell(csv, row, from);
    *value = column_find_value(column, csv_is_missing(cell) ? "" : cell);
    if (*value < 0 && column->kind == COLUMN_CODE)
        CSV_REFUSE(csv, row, from,
                   "found '%.40s' in column %s, expected one of the %d texts that were learnt, as "
                   "'%.40s'",
                   cell, column->name, column->value_count, column->values[0]);
    return STATUS_OK;
}

/* One cell becomes its features. */
static enum status fill_cell(const struct csv *csv, int64_t row, int32_t from,
                             const struct column *column, float *out, struct unknown *unknown)
{
    int32_t value;
    if (column->kind == COLUMN_NUMBER && column->filled &&
        csv_is_missing(csv_cell(csv, row, from))) {
        struct gaps *gaps = csv->dataset->gaps;
        if (gaps)
            gaps->cells[gaps->count++] = (uint64_t)(out - csv->dataset->features);
        *out = column->fill;
        return STATUS_OK;
    }
    if (column->kind == COLUMN_NUMBER)
        return csv_number(csv, row, from, out);
    TRY(find_text(csv, row, from, column, &value));
    if (column->kind == COLUMN_CODE)
        *out = (float)value;
    else if (value >= 0)
        out[value] = 1;
    else if (!unknown->rows++)
        unknown->first = row;
    return STATUS_OK;
}

static void note_unknown(struct csv *csv, const struct column *column, int32_t from,
                         const struct unknown *unknown)
{
    if (unknown->rows)
        text_printf(&csv->notes,
                    "%s: %lld row%s a text that was not learnt, as '%s' in line %lld: taken as "
                    "none of the %d\n",
                    show(column->name).text, (long long)unknown->rows,
                    unknown->rows == 1 ? " has" : "s have",
                    show(csv_cell(csv, unknown->first, from)).text,
                    (long long)csv->lines[unknown->first].line, column->value_count);
}

static enum status fill_rows(const struct csv *csv, const struct columns *columns,
                             const int32_t *from, struct unknown *unknown)
{
    float *out = csv->dataset->features;
    for (int64_t row = 0; row < csv->rows; row++)
        for (int32_t i = 0; i < columns->count; i++) {
            const struct column *column = &columns->list[i];
            TRY(fill_cell(csv, row, from[i], column, out, &unknown[i]));
            out += column->kind == COLUMN_ONE_HOT ? column->value_count : 1;
        }
    return STATUS_OK;
}

enum status csv_fill_features(struct csv *csv, const struct columns *columns, const int32_t *from)
{
    struct unknown *unknown;
    NEED(unknown = mem_array((size_t)columns->count, sizeof *unknown));
    enum status status = fill_rows(csv, columns, from, unknown);
    for (int32_t i = 0; status == STATUS_OK && i < columns->count; i++)
        note_unknown(csv, &columns->list[i], from[i], &unknown[i]);
    mem_free(unknown);
    return status;
}
