/* csv.c: separated text → data set; csv.h has the order in which that goes.
 *
 * The first row is a header when none of its cells is a number, but for years in turn. One column,
 * or several side by side, are labels, the others are features: numbers, or texts that become
 * numbers. Whatever is done beside reading numbers is noted, so that a command can say it, and kept
 * as the data set's columns, so that it can be done again. */
#include "data/csv.h"

#include "base/machine/room.h"
#include "base/memory.h"
#include "base/plain.h"
#include "data/gaps.h"
#include "data/stream.h"

#include <string.h>

enum status csv_place(const struct csv *csv, int64_t row, int32_t column)
{
    const struct csv_row *line = &csv->lines[row];
    const uint32_t cell = csv->cells[row * csv->columns + column];
    const bool quoted = cell > line->start && csv->text[cell - 1] == '"';
    return status_prefix(STATUS_INPUT, "%s:%lld:%lld", csv->name, (long long)line->line,
                         (long long)cell - line->start + !quoted);
}

/* Refuses something about the file as a whole. */
#define FILE_REFUSE(csv, ...)                                                                      \
    do {                                                                                           \
        status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__);                                \
        return status_prefix(STATUS_INPUT, "%s:%lld:1", (csv)->name,                               \
                             (long long)(csv)->all_lines[0].line);                                 \
    } while (0)

static bool is_number(const struct csv *csv, int64_t row, int32_t column)
{
    double number;
    return csv_what(csv, csv_cell(csv, row, column), &number) == CELL_NUMBER;
}

/* Where no row has a number, a first row whose cells come again below is no header: most of them in
 * their own columns. */
static bool comes_again(const struct csv *csv)
{
    enum { LOOKED_AT = 1000 };
    int32_t again = 0;
    for (int32_t column = 0; column < csv->columns; column++) {
        bool found = false;
        for (int64_t row = 1; !found && row < csv->rows && row < LOOKED_AT; row++)
            found = text_equal(csv_cell(csv, 0, column), csv_cell(csv, row, column));
        again += found;
    }
    return again > csv->columns / 2;
}

/* Names and years, "country,2019,2020": each number of the first row is the year after the one
 * before. */
static bool has_years(const struct csv *csv)
{
    double before = 0, number;
    int32_t years = 0, texts = 0;
    for (int32_t column = 0; column < csv->columns; column++) {
        enum cell what = csv_what(csv, csv_cell(csv, 0, column), &number);
        texts += what == CELL_TEXT;
        if (what != CELL_NUMBER)
            continue;
        if (number < 1900 || number > 2100 || (years++ && number != before + 1))
            return false;
        before = number;
    }
    return years > 1 && texts;
}

static bool has_header(const struct csv *csv)
{
    bool numbers_below = false;
    if (has_years(csv))
        return true;
    for (int32_t column = 0; column < csv->columns; column++) {
        if (is_number(csv, 0, column))
            return false;
        for (int64_t row = 1; !numbers_below && row < csv->rows && row < 10; row++)
            numbers_below = is_number(csv, row, column);
    }
    return numbers_below || !comes_again(csv);
}

static bool is_utf8(const char *text)
{
    size_t length = strlen(text), size;
    for (size_t at = 0; at < length; at += size)
        if (!(size = text_utf8(text + at, length - at)))
            return false;
    return true;
}

/* Names of the header; a column without one, or with one that another has, is known by its place.
 */
static enum status name_columns(struct csv *csv)
{
    struct arena *arena = &csv->dataset->arena;
    NEED(csv->names = mem_array((size_t)csv->columns, sizeof *csv->names));
    for (int32_t i = 0; i < csv->columns; i++) {
        const char *name = csv->header ? csv_cell(csv, 0, i) : "";
        bool own = *name && is_utf8(name);
        for (int32_t k = 0; own && csv->columns <= 1000 && k < i; k++)
            own = !text_equal(name, csv->names[k]);
        if (own)
            csv->names[i] = arena_text(arena, name);
        else if (*name && is_utf8(name))
            csv->names[i] = arena_format(arena, "%s.%d", name, i + 1);
        else
            csv->names[i] = arena_format(arena, "column %d", i + 1);
        NEED(csv->names[i]);
    }
    return STATUS_OK;
}

static enum status take_header(struct csv *csv)
{
    csv->header = has_header(csv);
    TRY(name_columns(csv));
    if (!csv->header)
        return STATUS_OK;
    csv->cells += csv->columns;
    csv->lines++;
    if (!--csv->rows) {
        status_fail(STATUS_INPUT, __FILE__, __LINE__, "found no row below the header");
        return status_prefix(STATUS_INPUT, "%s:%lld:1", csv->name,
                             (long long)csv->all_lines[0].line + 1);
    }
    return STATUS_OK;
}

/* -1: no column has that name. */
static int32_t find_name(const struct csv *csv, const char *name)
{
    for (int32_t i = 0; csv->header && i < csv->columns; i++)
        if (text_equal(csv->names[i], name))
            return i;
    return -1;
}

/* The column of that name, or at that place from 1, as an index. */
static enum status find_column(const struct csv *csv, const char *name, int32_t *out)
{
    int64_t place;
    *out = find_name(csv, name);
    if (*out >= 0)
        return STATUS_OK;
    if (!text_to_int(name, &place) || place < 1 || place > csv->columns) {
        const char *near =
            csv->header ? text_nearest(name, csv->names, (size_t)csv->columns) : NULL;
        FILE_REFUSE(csv, "found no label column '%s', expected %sa number from 1 to %d%s%s%s", name,
                    csv->header ? "a name of the header or " : "", csv->columns,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    *out = (int32_t)place - 1;
    return STATUS_OK;
}

/* "FIRST..LAST" */
static enum status find_columns(struct csv *csv, const char *range, const char *dots)
{
    struct text first = {0};
    int32_t last = 0;
    text_add_bytes(&first, range, (size_t)(dots - range));
    enum status status = text_done(&first);
    if (status == STATUS_OK)
        status = find_column(csv, text_of(&first), &csv->label);
    if (status == STATUS_OK)
        status = find_column(csv, dots + 2, &last);
    text_free(&first);
    TRY(status);
    if (last < csv->label)
        FILE_REFUSE(csv, "found the label columns '%s', expected the first before the last", range);
    csv->label_count = last - csv->label + 1;
    return STATUS_OK;
}

/* The column that is learnt when nothing is said: the last that has a name or a value. */
static int32_t usual_label(const struct csv *csv)
{
    int32_t label = csv->columns - 1;
    while (label > 0 && (csv->left_out[label].asked ||
                         (csv->census[label].missing == csv->rows && csv->rows > 1 &&
                          text_starts(csv->names[label], "column "))))
        label--;
    return label;
}

/* As the network learnt it: the columns of the targets, where the file has them. */
static enum status find_known_label(struct csv *csv, const struct columns *known)
{
    bool there = true;
    csv->label_count = known->target_count;
    csv->label = known->target_place - 1;
    if (csv->header && known->header) {
        csv->label = known->target_count ? find_name(csv, known->targets[0]) : -1;
        there = csv->label >= 0;
        for (int32_t i = 1; there && i < known->target_count; i++)
            there = csv->label + i < csv->columns &&
                    text_equal(csv->names[csv->label + i], known->targets[i]);
    } else {
        there = csv->columns > known->count && csv->label >= 0 &&
                csv->label + csv->label_count <= csv->columns;
    }
    for (int32_t i = 0; there && i < csv->label_count; i++) /* a column to be filled in */
        there = csv->census[csv->label + i].missing < csv->rows;
    if (!there)
        csv->label = csv->label_count = 0;
    return STATUS_OK;
}

static enum status find_label(struct csv *csv, const struct dataset_options *options)
{
    const char *dots = options->label ? strstr(options->label, "..") : NULL;
    csv->label = 0;
    csv->label_count = 0;
    if (dataset_unlabelled(options))
        return STATUS_OK;
    csv->label_count = 1;
    if (dots && find_name(csv, options->label) < 0)
        return find_columns(csv, options->label, dots);
    if (options->label)
        return find_column(csv, options->label, &csv->label);
    if (options->columns)
        return find_known_label(csv, options->columns);
    if (csv->columns == options->inputs)
        csv->label_count = 0;
    else
        csv->label = usual_label(csv);
    return STATUS_OK;
}

/* Leaves out the rows that miss a label, or a value where nothing fills it. */
static enum status drop_rows(struct csv *csv, const struct dataset_options *options)
{
    int64_t kept = 0;
    bool *used;
    NEED(used = mem_array((size_t)csv->columns, sizeof *used));
    for (int32_t i = 0; i < csv->columns; i++)
        used[i] = csv_is_label(csv, i) ||
                  (!options->fill && !csv->left_out[i].asked && csv->census[i].missing < csv->rows);
    for (int64_t row = 0; row < csv->rows; row++) {
        bool whole = true;
        for (int32_t i = 0; whole && i < csv->columns; i++)
            whole = !used[i] || !csv_is_missing(csv_cell(csv, row, i));
        if (!whole)
            continue;
        memmove(csv->cells + kept * csv->columns, csv->cells + row * csv->columns,
                (size_t)csv->columns * sizeof *csv->cells);
        csv->lines[kept++] = csv->lines[row];
    }
    mem_free(used);
    csv->dropped = csv->rows - kept;
    if (!kept)
        FILE_REFUSE(csv, "found a missing value in every row, expected whole rows; --fill median "
                         "fills them, --drop COLUMN leaves a column out");
    csv->rows = kept;
    if (csv->dropped)
        text_printf(&csv->notes, "%lld rows with missing values left out\n",
                    (long long)csv->dropped);
    mem_free(csv->census);
    csv->census = NULL;
    return csv_count_cells(csv);
}

static void note_empty(struct csv *csv, const char *name)
{
    char shown[40];
    plain_copy(shown, sizeof shown, name);
    text_printf(&csv->notes, "%s: empty, left out\n", shown);
}

/* Columns that were refused: all are told at once. */
struct refusals {
    struct text first, others;
    int32_t count;
};

/* Adds the last failure: the first one whole, of others "column when, line 2: found '1 May'". */
static void add_refusal(struct refusals *refusals, const struct csv *csv, const char *name)
{
    enum { OTHERS = 3 };
    const char *place = status_message() + strlen(csv->name) + 1, *found = strstr(place, "found");
    const char *end = found ? strstr(found, ", expected") : NULL;
    if (!refusals->count++)
        text_add(&refusals->first, status_message());
    else if (refusals->count - 1 <= OTHERS && end)
        text_printf(&refusals->others, "%s column %.40s, line %.*s: %.*s",
                    refusals->others.length ? ";" : ":", name, (int)strcspn(place, ":"), place,
                    (int)(end - found), found);
}

static enum status refuse_columns(const struct refusals *refusals)
{
    const int32_t others = refusals->count - 1;
    if (!others)
        FAIL(STATUS_INPUT, "%s", text_of(&refusals->first));
    FAIL(STATUS_INPUT, "%s. %d more column%s refused%s", text_of(&refusals->first), others,
         others > 1 ? "s are" : " is", text_of(&refusals->others));
}

/* The columns that are features, and what is made of each. */
static enum status judge_columns(struct csv *csv, const struct dataset_options *options,
                                 struct columns *columns, int32_t *from)
{
    struct refusals refusals = {0};
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < csv->columns; i++) {
        if (csv_is_label(csv, i) || csv->left_out[i].asked)
            continue;
        if (csv->census[i].missing == csv->rows && (csv->rows > 1 || options->fill)) {
            note_empty(csv, csv->names[i]);
            continue;
        }
        from[columns->count] = i;
        status = csv_judge_column(csv, i, options, &columns->list[columns->count]);
        columns->count += status == STATUS_OK;
        if (status == STATUS_INPUT && text_starts(status_message(), csv->name))
            add_refusal(&refusals, csv, csv->names[i]);
        else if (status != STATUS_OK)
            break;
        status = STATUS_OK;
    }
    if (status == STATUS_OK && refusals.count)
        status = refuse_columns(&refusals);
    text_free(&refusals.first);
    text_free(&refusals.others);
    return status;
}

static enum status make_columns(struct csv *csv, const struct dataset_options *options,
                                struct columns **out, int32_t *from)
{
    struct arena *arena = &csv->dataset->arena;
    struct columns *columns;
    NEED(columns = *out = arena_alloc(arena, sizeof *columns));
    columns->header = csv->header;
    columns->target_count = csv->label_count;
    columns->target_place = csv->label_count ? csv->label + 1 : 0;
    NEED(columns->targets =
             arena_array(arena, (size_t)csv->label_count + 1, sizeof *columns->targets));
    for (int32_t i = 0; i < csv->label_count; i++)
        columns->targets[i] = csv->names[csv->label + i];
    NEED(columns->list = arena_array(arena, (size_t)csv->columns, sizeof *columns->list));
    return judge_columns(csv, options, columns, from);
}

/* Where the columns that a network learnt from are in this file. */
static enum status match_columns(const struct csv *csv, const struct columns *known, int32_t *from)
{
    const bool by_name = csv->header && known->header;
    for (int32_t i = 0; i < known->count; i++) {
        const struct column *column = &known->list[i];
        const bool shifted = !csv->label_count && known->target_count &&
                             column->place > known->target_place && csv->columns == known->count;
        from[i] = by_name ? find_name(csv, column->name)
                          : column->place - 1 - (shifted ? known->target_count : 0);
        if (from[i] < 0 || from[i] >= csv->columns)
            FILE_REFUSE(csv, "found no column '%s', expected it: the network learnt from it",
                        column->name);
    }
    return STATUS_OK;
}

/* The names of the features: "area", "city=Rome". */
static enum status name_features(struct dataset *dataset)
{
    const struct columns *columns = dataset->table;
    const char **names;
    int32_t count = 0;
    if (!columns->header)
        return STATUS_OK;
    NEED(names = arena_array(&dataset->arena, (size_t)dataset->columns, sizeof *names));
    for (int32_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->list[i];
        if (column->kind != COLUMN_ONE_HOT)
            names[count++] = column->name;
        for (int32_t k = 0; column->kind == COLUMN_ONE_HOT && k < column->value_count; k++)
            NEED(names[count++] =
                     arena_format(&dataset->arena, "%s=%s", column->name, column->values[k]));
    }
    dataset->column_names = names;
    return STATUS_OK;
}

static enum status take_features(struct csv *csv, const struct columns *columns,
                                 const int32_t *from)
{
    struct dataset *dataset = csv->dataset;
    int64_t width = columns_width(columns);
    size_t count;
    if (!width)
        FILE_REFUSE(csv, "found only a label column, expected features beside it, separated by "
                         "commas, semicolons, tabs or bars");
    if (width > DATASET_COLUMNS_MOST)
        FILE_REFUSE(csv,
                    "found %lld features, expected at most %d; --drop COLUMN leaves one out, "
                    "--encode COLUMN=code makes one of its texts",
                    (long long)width, DATASET_COLUMNS_MOST);
    const size_t kept = csv_bytes(csv, csv->rows) +
                        (size_t)csv->rows * (size_t)csv->label_count * sizeof *dataset->labels;
    if (!size_mul((size_t)csv->rows, (size_t)width, &count) || kept > csv->memory ||
        count > (csv->memory - kept) / sizeof *dataset->features)
        FILE_REFUSE(csv,
                    "found %lld rows of %lld features, which take more than the %zu bytes that "
                    "data may take; --memory allows more, --encode COLUMN=code makes fewer",
                    (long long)csv->rows, (long long)width, csv->memory);
    dataset->rows = csv->rows;
    dataset->columns = (int32_t)width;
    TRY(room_check((double)(kept + count * sizeof *dataset->features),
                   "%s: %lld rows of %lld features take %.1f MB", csv->name, (long long)csv->rows,
                   (long long)width, (double)(kept + count * sizeof *dataset->features) / 1e6));
    NEED(dataset->features = mem_array(count, sizeof *dataset->features));
    return csv_fill_features(csv, columns, from);
}

/* Room for the places of the cells that a mean or median fills. */
static enum status keep_gaps(struct dataset *dataset, const char *fill)
{
    struct gaps *gaps;
    int64_t count = 0;
    if (!text_equal(fill, "mean") && !text_equal(fill, "median"))
        return STATUS_OK;
    for (int32_t i = 0; i < dataset->table->count; i++)
        count += dataset->table->list[i].gaps;
    NEED(gaps = arena_alloc(&dataset->arena, sizeof *gaps));
    NEED(gaps->cells = arena_array(&dataset->arena, (size_t)count + 1, sizeof *gaps->cells));
    gaps->median = text_equal(fill, "median");
    dataset->gaps = gaps;
    return STATUS_OK;
}

/* The table of the data set, as it is or as the network that is given learnt it; the features. */
static enum status use_table(struct csv *csv, const struct dataset_options *options, int32_t *from)
{
    struct dataset *dataset = csv->dataset;
    struct columns *columns = NULL;
    if (options->columns) {
        TRY(match_columns(csv, options->columns, from));
        return take_features(csv, options->columns, from);
    }
    TRY(make_columns(csv, options, &columns, from));
    dataset->table = columns;
    if (options->fill)
        TRY(keep_gaps(dataset, options->fill));
    TRY(take_features(csv, columns, from));
    return name_features(dataset);
}

static void note_dialect(struct csv *csv, const struct dataset_options *options)
{
    static const struct {
        char mark;
        const char *name;
    } names[] = {{';', "semicolons"}, {'\t', "tabs"}, {'|', "bars"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (csv->separator == names[i].mark)
            text_printf(&csv->notes, "columns separated by %s%s\n", names[i].name,
                        csv->decimal_comma ? ", decimals by commas" : "");
    if (options->drop && !options->columns)
        text_printf(&csv->notes, "left out: %s\n", options->drop);
}

/* What a network learnt to read is not asked about again. */
static enum status read_lists(struct csv *csv, const struct dataset_options *options)
{
    NEED(csv->left_out = mem_array((size_t)csv->columns, 2 * sizeof *csv->left_out));
    csv->encoded = csv->left_out + csv->columns;
    if (options->columns)
        return STATUS_OK;
    TRY(csv_read_list(csv, options->drop, "--drop", csv->left_out));
    return csv_read_list(csv, options->encode, "--encode", csv->encoded);
}

static enum status check_text(const struct csv *csv)
{
    size_t length = (size_t)(csv->end - csv->text);
    const char *nul = memchr(csv->text, 0, length);
    if (length >= UINT32_MAX)
        FAIL(STATUS_INPUT,
             "%s: found %zu bytes of CSV, expected below 4 GB; NPY files are streamed", csv->name,
             length);
    if (nul)
        FAIL(STATUS_INPUT, "%s: found a NUL at byte %lld, expected text%s", csv->name,
             (long long)(nul - csv->text),
             length > 1 && (unsigned char)csv->text[0] >= 0xFE ? "; is it UTF-16? save it as UTF-8"
                                                               : "");
    return STATUS_OK;
}

static enum status parse(struct csv *csv, const struct dataset_options *options)
{
    int32_t *from;
    NEED(csv->dataset->name = arena_text(&csv->dataset->arena, csv->name));
    TRY(check_text(csv));
    TRY(csv_read_cells(csv));
    csv->decimal_comma = csv_has_decimal_commas(csv);
    TRY(take_header(csv));
    TRY(read_lists(csv, options));
    note_dialect(csv, options);
    TRY(csv_count_cells(csv));
    TRY(find_label(csv, options));
    if (options->drop_rows)
        TRY(drop_rows(csv, options));
    NEED(from = mem_array((size_t)csv->columns + COLUMNS_SAVED_MOST, sizeof *from));
    enum status status = use_table(csv, options, from);
    mem_free(from);
    TRY(status);
    if (csv->label_count && !options->passed_over)
        TRY(csv_read_labels(csv, options));
    TRY(text_done(&csv->notes));
    NEED(csv->dataset->notes = arena_text(&csv->dataset->arena, text_of(&csv->notes)));
    return STATUS_OK;
}

enum status dataset_parse_csv(const char *name, char *text, size_t length,
                              const struct dataset_options *options, struct dataset **out)
{
    struct csv csv = {
        .name = name, .text = text, .end = text + length, .memory = dataset_memory(options)};
    NEED(csv.dataset = mem_alloc(sizeof *csv.dataset));
    enum status status = parse(&csv, options);
    mem_free(csv.all_cells);
    mem_free(csv.all_lines);
    mem_free(csv.names);
    mem_free(csv.census);
    mem_free(csv.left_out);
    text_free(&csv.notes);
    if (status == STATUS_OK)
        *out = csv.dataset;
    else
        dataset_free(csv.dataset);
    return status;
}
