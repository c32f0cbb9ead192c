/* csv.c: comma-separated text → data set.
 *
 * Rows of equal length, fields separated by commas, optionally in double quotes ("" is a quote);
 * LF or CRLF; empty lines are passed over. The first line is a header when none of its fields is a
 * number. One column, or several side by side, are labels, the others are features and must be
 * numbers; a missing or bad value is refused with its line and column, never guessed.
 *
 * Labels are classes when one of them is no number, or when they are exactly the integers 0 … C-1;
 * otherwise they are numbers. Classes are in sorted order (integers: by value), so that they do not
 * depend on the order of the rows.
 *
 * Fields are cut out of the text where it lies: quotes are undone in place and each field ends in a
 * NUL. The whole text is in memory; files larger than that are not for this reader. */
#include "base/memory.h"
#include "base/text.h"
#include "data/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct field {
    char *text;
    int64_t line, column; /* where it begins, from 1; bytes */
};

struct csv {
    const char *name;
    char *next, *end; /* what is not yet read; *end is a NUL */
    char *line_start;
    int64_t line;
    struct field *fields; /* of the current row */
    int32_t count, room;
    int32_t label, label_count; /* the first label column, and how many */
    bool passed_over;           /* labels are not read */
    struct field *labels;       /* [rows, label_count] */
    int64_t row_room;
    size_t memory; /* that the numbers may take */
    struct dataset *dataset;
};

#define REFUSE(csv, field, ...)                                                                    \
    do {                                                                                           \
        status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__);                                \
        status_prefix(STATUS_INPUT, "%s:%lld:%lld", (csv)->name, (long long)(field)->line,         \
                      (long long)(field)->column);                                                 \
        return STATUS_INPUT;                                                                       \
    } while (0)

static bool ends_field(const struct csv *csv, const char *at)
{
    return at == csv->end || *at == ',' || *at == '\n' ||
           (*at == '\r' && (at + 1 == csv->end || at[1] == '\n'));
}

/* Reads "…" with its first quote at csv->next; leaves csv->next behind the last one. *end is where
 * the value ends. */
static enum status read_quoted(struct csv *csv, struct field *field, char **end)
{
    char *from = csv->next + 1, *to = from;
    field->text = to;
    for (;; from++) {
        if (from == csv->end)
            REFUSE(csv, field, "found the end of the file, expected a closing quote");
        if (*from == '"') {
            if (from[1] != '"')
                break;
            from++;
        }
        if (*from == '\n') {
            csv->line++;
            csv->line_start = from + 1;
        }
        *to++ = *from;
    }
    csv->next = from + 1;
    if (!ends_field(csv, csv->next))
        REFUSE(csv, field, "found '%.1s' after a closing quote, expected a comma", csv->next);
    *end = to;
    return STATUS_OK;
}

/* Leaves csv->next at the comma or the end of the line; blanks around the value are no part of
 * it. */
static void read_plain(struct csv *csv, struct field *field, char **end)
{
    while (*csv->next == ' ' || *csv->next == '\t')
        csv->next++;
    field->text = csv->next;
    while (!ends_field(csv, csv->next))
        csv->next++;
    *end = csv->next;
    while (*end > field->text && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        --*end;
}

/* Begins a field at csv->next: the last of csv->fields. */
static enum status add_field(struct csv *csv)
{
    if (csv->count == csv->room) {
        int32_t room = csv->room ? 2 * csv->room : 16;
        struct field *fields;
        NEED(fields = mem_grow(csv->fields, (size_t)room, sizeof *fields));
        csv->fields = fields;
        csv->room = room;
    }
    struct field *field = &csv->fields[csv->count++];
    *field = (struct field){csv->next, csv->line, csv->next - csv->line_start + 1};
    if (csv->count > DATASET_COLUMNS_MOST)
        REFUSE(csv, field, "found more than %d columns", DATASET_COLUMNS_MOST);
    return STATUS_OK;
}

static void skip_empty_lines(struct csv *csv)
{
    while (csv->next < csv->end && (*csv->next == '\n' || *csv->next == '\r')) {
        if (*csv->next++ == '\n') {
            csv->line++;
            csv->line_start = csv->next;
        }
    }
}

/* Moves from the end of a row to the next line. */
static void end_line(struct csv *csv)
{
    if (*csv->next == '\r')
        csv->next++;
    if (csv->next < csv->end)
        csv->next++;
    csv->line++;
    csv->line_start = csv->next;
}

/* The fields of the next row; none at the end of the text. */
static enum status read_row(struct csv *csv)
{
    csv->count = 0;
    skip_empty_lines(csv);
    if (csv->next == csv->end)
        return STATUS_OK;
    for (bool last = false; !last;) {
        char *end;
        TRY(add_field(csv));
        struct field *field = &csv->fields[csv->count - 1];
        if (*csv->next == '"')
            TRY(read_quoted(csv, field, &end));
        else
            read_plain(csv, field, &end);
        last = *csv->next != ',';
        if (last)
            end_line(csv);
        else
            csv->next++;
        *end = 0; /* only now: it may overwrite what ended the field */
    }
    return STATUS_OK;
}

static bool is_number(const char *text)
{
    double number;
    return text_to_real(text, &number);
}

static bool is_header(const struct csv *csv)
{
    for (int32_t i = 0; i < csv->count; i++)
        if (is_number(csv->fields[i].text))
            return false;
    return true;
}

/* -1: no column has that name. */
static int32_t find_name(const struct csv *csv, bool header, const char *name)
{
    for (int32_t i = 0; header && i < csv->count; i++)
        if (text_equal(csv->fields[i].text, name))
            return i;
    return -1;
}

/* The column of that name, or at that place from 1, as an index. */
static enum status find_column(struct csv *csv, bool header, const char *name, int32_t *out)
{
    int64_t place;
    *out = find_name(csv, header, name);
    if (*out >= 0)
        return STATUS_OK;
    if (!text_to_int(name, &place) || place < 1 || place > csv->count)
        REFUSE(csv, csv->fields, "found no label column '%s', expected %sa number from 1 to %d",
               name, header ? "a name of the header or " : "", csv->count);
    *out = (int32_t)place - 1;
    return STATUS_OK;
}

/* "FIRST..LAST" */
static enum status find_columns(struct csv *csv, bool header, const char *range, const char *dots)
{
    struct text first = {0};
    int32_t last = 0;
    text_add_bytes(&first, range, (size_t)(dots - range));
    enum status status = text_done(&first);
    if (status == STATUS_OK)
        status = find_column(csv, header, text_of(&first), &csv->label);
    if (status == STATUS_OK)
        status = find_column(csv, header, dots + 2, &last);
    text_free(&first);
    TRY(status);
    if (last < csv->label)
        REFUSE(csv, csv->fields, "found the label columns '%s', expected the first before the last",
               range);
    csv->label_count = last - csv->label + 1;
    return STATUS_OK;
}

static enum status find_label(struct csv *csv, bool header, const struct dataset_options *options)
{
    const char *dots = options->label ? strstr(options->label, "..") : NULL;
    csv->label = csv->count - 1;
    csv->label_count = 1;
    if (dataset_unlabelled(options)) {
        csv->label_count = 0;
        return STATUS_OK;
    }
    if (dots && find_name(csv, header, options->label) < 0)
        return find_columns(csv, header, options->label, dots);
    if (options->label)
        return find_column(csv, header, options->label, &csv->label);
    if (csv->count == options->inputs)
        csv->label_count = 0;
    return STATUS_OK;
}

static bool is_label(const struct csv *csv, int32_t column)
{
    return column >= csv->label && column < csv->label + csv->label_count;
}

/* Classes are saved with a network, in a file that is UTF-8. */
static enum status check_label(const struct csv *csv, const struct field *field)
{
    if (!*field->text)
        REFUSE(csv, field, "found a missing value, expected a label");
    size_t length = strlen(field->text), size;
    for (size_t at = 0; at < length; at += size) {
        size = text_utf8(field->text + at, length - at);
        if (!size)
            REFUSE(csv, field, "found the byte 0x%02X in a label, expected UTF-8",
                   (unsigned char)field->text[at]);
    }
    return STATUS_OK;
}

/* The names of the feature columns. */
static enum status keep_names(struct csv *csv)
{
    struct dataset *dataset = csv->dataset;
    const char **names;
    int32_t count = 0;
    NEED(names = arena_array(&dataset->arena, (size_t)csv->count, sizeof *names));
    for (int32_t i = 0; i < csv->count; i++)
        if (!is_label(csv, i))
            NEED(names[count++] = arena_text(&dataset->arena, csv->fields[i].text));
    dataset->column_names = names;
    return STATUS_OK;
}

static enum status read_float(const struct csv *csv, const struct field *field, float *out)
{
    double number;
    if (!*field->text)
        REFUSE(csv, field, "found a missing value, expected a number");
    if (!text_to_real(field->text, &number) || !isfinite((float)number))
        REFUSE(csv, field, "found '%.40s', expected a number", field->text);
    *out = (float)number;
    return STATUS_OK;
}

static enum status make_room(struct csv *csv)
{
    struct dataset *dataset = csv->dataset;
    if (dataset->rows < csv->row_room)
        return STATUS_OK;
    int64_t room = csv->row_room ? 2 * csv->row_room : 64;
    size_t row_bytes = (size_t)dataset->columns * sizeof(float);
    size_t label_bytes = (size_t)csv->label_count * sizeof *csv->labels;
    float *features;
    if ((size_t)dataset->rows * (row_bytes + label_bytes) > csv->memory)
        FAIL(STATUS_INPUT,
             "%s:%lld: found rows that take more than the %zu bytes that data may take, expected "
             "fewer; NPY files are streamed, --memory allows more",
             csv->name, (long long)csv->line, csv->memory);
    NEED(features = mem_grow(dataset->features, (size_t)room, row_bytes));
    dataset->features = features;
    if (csv->label_count) {
        struct field *labels;
        NEED(labels = mem_grow(csv->labels, (size_t)room, label_bytes));
        csv->labels = labels;
    }
    csv->row_room = room;
    return STATUS_OK;
}

/* Takes the current row into the data set. */
static enum status take_row(struct csv *csv)
{
    struct dataset *dataset = csv->dataset;
    int32_t expected = dataset->columns + csv->label_count;
    const struct field *last = &csv->fields[csv->count - 1];
    if (csv->count != expected)
        REFUSE(csv, last, "found %d values in the row, expected %d", csv->count, expected);
    if (dataset->rows == DATASET_ROWS_MOST)
        REFUSE(csv, last, "found more than %d rows", DATASET_ROWS_MOST);
    TRY(make_room(csv));
    float *features = dataset->features + dataset->rows * dataset->columns;
    int64_t label = dataset->rows * csv->label_count;
    for (int32_t i = 0; i < csv->count; i++) {
        const struct field *field = &csv->fields[i];
        if (!is_label(csv, i)) {
            TRY(read_float(csv, field, features++));
            continue;
        }
        if (!csv->passed_over)
            TRY(check_label(csv, field));
        csv->labels[label++] = *field;
    }
    dataset->rows++;
    return STATUS_OK;
}

static enum status read_rows(struct csv *csv, const struct dataset_options *options)
{
    TRY(read_row(csv));
    struct field start = {csv->next, 1, 1};
    if (!csv->count)
        REFUSE(csv, &start, "found nothing, expected rows of comma-separated numbers");
    bool header = is_header(csv);
    TRY(find_label(csv, header, options));
    csv->dataset->columns = csv->count - csv->label_count;
    if (!csv->dataset->columns)
        REFUSE(csv, csv->fields,
               "found only a label column, expected features beside it, separated by commas");
    if (header) {
        TRY(keep_names(csv));
        TRY(read_row(csv));
    }
    while (csv->count) {
        TRY(take_row(csv));
        TRY(read_row(csv));
    }
    start.line = csv->line;
    if (!csv->dataset->rows)
        REFUSE(csv, &start, "found no row below the header");
    return STATUS_OK;
}

/* Of all rows together. */
static int64_t count_labels(const struct csv *csv)
{
    return csv->dataset->rows * csv->label_count;
}

static enum status keep_numbers(struct csv *csv)
{
    struct dataset *dataset = csv->dataset;
    int64_t count = count_labels(csv);
    NEED(dataset->numbers = mem_array((size_t)count, sizeof *dataset->numbers));
    dataset->number_columns = csv->label_count;
    for (int64_t i = 0; i < count; i++)
        TRY(read_float(csv, &csv->labels[i], &dataset->numbers[i]));
    return STATUS_OK;
}

/* `names` are copied. */
static enum status keep_classes(struct csv *csv, const char *const *names, int32_t count)
{
    struct dataset *dataset = csv->dataset;
    NEED(dataset->classes = arena_array(&dataset->arena, (size_t)count, sizeof *names));
    for (int32_t i = 0; i < count; i++)
        NEED(dataset->classes[i] = arena_text(&dataset->arena, names[i]));
    dataset->class_count = count;
    NEED(dataset->labels = mem_array((size_t)count_labels(csv), sizeof *dataset->labels));
    dataset->label_columns = csv->label_count;
    return STATUS_OK;
}

static enum status use_known_classes(struct csv *csv, const struct dataset_options *options)
{
    TRY(keep_classes(csv, options->classes, options->class_count));
    for (int64_t i = 0; i < count_labels(csv); i++) {
        const struct field *label = &csv->labels[i];
        int32_t class = 0;
        while (class < options->class_count && !text_equal(label->text, options->classes[class]))
            class ++;
        if (class == options->class_count)
            REFUSE(csv, label, "found the class '%.40s', expected one of %d: '%s' …", label->text,
                   options->class_count, options->classes[0]);
        csv->dataset->labels[i] = class;
    }
    return STATUS_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Integers by value: shorter first; equal lengths by digits. */
static int compare_integers(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    size_t lefts = strlen(left), rights = strlen(right);
    return lefts != rights ? (lefts < rights ? -1 : 1) : strcmp(left, right);
}

typedef int compare(const void *, const void *);

/* The classes are the distinct labels, sorted; `names` has room for all labels. */
static enum status use_distinct(struct csv *csv, const char **names, compare *order)
{
    struct dataset *dataset = csv->dataset;
    int64_t labels = count_labels(csv);
    int32_t count = 0;
    for (int64_t i = 0; i < labels; i++)
        names[i] = csv->labels[i].text;
    qsort(names, (size_t)labels, sizeof *names, order);
    for (int64_t i = 0; i < labels; i++)
        if (!count || !text_equal(names[i], names[count - 1]))
            names[count++] = names[i];
    TRY(keep_classes(csv, names, count));
    for (int64_t i = 0; i < labels; i++) {
        const char **class = bsearch(&csv->labels[i].text, dataset->classes, (size_t)count,
                                     sizeof *dataset->classes, order);
        dataset->labels[i] = (int32_t)(class - dataset->classes);
    }
    return STATUS_OK;
}

/* Are the labels exactly the integers 0 … C-1, C > 1, each of them there? */
static enum status are_counted(const struct csv *csv, bool *out)
{
    int64_t labels = count_labels(csv), most = 0, seen = 0;
    unsigned char *there;
    *out = false;
    NEED(there = mem_alloc((size_t)labels));
    for (int64_t i = 0; i < labels; i++) {
        const char *text = csv->labels[i].text;
        int64_t value;
        bool plain = text_to_int(text, &value) && value >= 0 && value < labels &&
                     (*text != '0' || !text[1]) && *text != '+' && *text != '-';
        if (!plain)
            goto done;
        seen += !there[value];
        there[value] = 1;
        most = value > most ? value : most;
    }
    *out = seen == most + 1 && most > 0;
done:
    mem_free(there);
    return STATUS_OK;
}

/* A label that is no number, among labels with fractions, is a slip and no class. */
static enum status check_mixture(const struct csv *csv)
{
    int64_t value;
    const struct field *fraction = NULL, *word = NULL;
    for (int64_t i = 0; i < count_labels(csv); i++) {
        const struct field *label = &csv->labels[i];
        if (!is_number(label->text))
            word = word ? word : label;
        else if (!text_to_int(label->text, &value))
            fraction = fraction ? fraction : label;
    }
    if (word && fraction)
        REFUSE(csv, word, "found the label '%.40s', expected a number as in line %lld", word->text,
               (long long)fraction->line);
    return STATUS_OK;
}

static enum status use_labels(struct csv *csv, const struct dataset_options *options)
{
    int64_t labels = count_labels(csv);
    bool words = false, counted;
    if (options->numbers)
        return keep_numbers(csv);
    if (options->class_count > 0)
        return use_known_classes(csv, options);
    for (int64_t i = 0; !words && i < labels; i++)
        words = !is_number(csv->labels[i].text);
    TRY(check_mixture(csv));
    TRY(are_counted(csv, &counted));
    if (!words && !counted)
        return keep_numbers(csv);
    const char **names;
    NEED(names = mem_array((size_t)labels, sizeof *names));
    enum status status = use_distinct(csv, names, counted ? compare_integers : compare_texts);
    mem_free(names);
    return status;
}

static enum status parse(struct csv *csv, const struct dataset_options *options)
{
    NEED(csv->dataset->name = arena_text(&csv->dataset->arena, csv->name));
    const char *nul = memchr(csv->next, 0, (size_t)(csv->end - csv->next));
    if (nul)
        FAIL(STATUS_INPUT, "%s: found a NUL at byte %lld, expected text", csv->name,
             (long long)(nul - csv->next));
    if (text_starts(csv->next, "\xEF\xBB\xBF")) /* a byte-order mark */
        csv->next = csv->line_start = csv->next + 3;
    csv->passed_over = options->passed_over;
    TRY(read_rows(csv, options));
    return csv->label_count && !csv->passed_over ? use_labels(csv, options) : STATUS_OK;
}

enum status dataset_parse_csv(const char *name, char *text, size_t length,
                              const struct dataset_options *options, struct dataset **out)
{
    struct csv csv = {.name = name,
                      .next = text,
                      .end = text + length,
                      .line_start = text,
                      .line = 1,
                      .memory = dataset_memory(options)};
    NEED(csv.dataset = mem_alloc(sizeof *csv.dataset));
    enum status status = parse(&csv, options);
    mem_free(csv.fields);
    mem_free(csv.labels);
    if (status == STATUS_OK)
        *out = csv.dataset;
    else
        dataset_free(csv.dataset);
    return status;
}
