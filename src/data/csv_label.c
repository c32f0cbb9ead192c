/* csv_label.c: the labels of CSV: classes or numbers.
 *
 * They are classes when one of them is no number, when they are exactly the integers 0 … C-1, or
 * 1 … C or two integers with a few rows each; otherwise they are numbers. Classes are in sorted
 * order (integers: by value), so that they do not depend on the order of the rows. */
#include "data/csv.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From 1 on, or two of them, integers are classes where each has so many rows on average; and texts
 * beyond FEW_CLASSES are classes where each has two. */
enum { ROWS_EACH = 3, FEW_CLASSES = 32 };

/* A label by its number among all of them, row after row. */
static const char *label_at(const struct csv *csv, int64_t index, int64_t *row, int32_t *column)
{
    *row = index / csv->label_count;
    *column = csv->label + (int32_t)(index % csv->label_count);
    return csv_cell(csv, *row, *column);
}

static int64_t count_labels(const struct csv *csv)
{
    return csv->rows * csv->label_count;
}

/* Classes are saved with a network, in a file that is UTF-8. */
static enum status check_labels(const struct csv *csv)
{
    for (int64_t i = 0; i < count_labels(csv); i++) {
        int64_t row;
        int32_t column;
        const char *label = label_at(csv, i, &row, &column);
        if (csv_is_missing(label))
            CSV_REFUSE(csv, row, column,
                       "found a missing value, expected a label; --drop-rows leaves such rows out");
        TRY(csv_check_text(csv, row, column, "label"));
    }
    return STATUS_OK;
}

static enum status keep_numbers(struct csv *csv)
{
    struct dataset *dataset = csv->dataset;
    int64_t count = count_labels(csv), row;
    int32_t column;
    NEED(dataset->numbers = mem_array((size_t)count, sizeof *dataset->numbers));
    dataset->number_columns = csv->label_count;
    for (int64_t i = 0; i < count; i++) {
        label_at(csv, i, &row, &column);
        TRY(csv_number(csv, row, column, &dataset->numbers[i]));
    }
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
        int64_t row;
        int32_t column, class = 0;
        const char *label = label_at(csv, i, &row, &column);
        while (class < options->class_count && !text_equal(label, options->classes[class]))
            class ++;
        if (class == options->class_count)
            CSV_REFUSE(csv, row, column, "found the class '%.40s', expected one of %d: '%s' …",
                       label, options->class_count, options->classes[0]);
        csv->dataset->labels[i] = class;
    }
    return STATUS_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* By value, then by text: "1" and "1.0" are two. */
static int compare_numbers(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    double left_value = 0, right_value = 0;
    text_to_real(left, &left_value);
    text_to_real(right, &right_value);
    int order = (left_value > right_value) - (left_value < right_value);
    return order ? order : strcmp(left, right);
}

typedef int compare(const void *, const void *);

/* Texts of which nearly every row has its own are no classes. */
static enum status check_class_count(const struct csv *csv, int32_t count, bool words)
{
    const int64_t most =
        words && csv->rows / 2 > FEW_CLASSES ? csv->rows / 2 : DATASET_CLASSES_MOST;
    if (count > most || count > DATASET_CLASSES_MOST)
        CSV_REFUSE(csv, 0, csv->label,
                   "found %d different labels in %lld rows, expected classes that several rows "
                   "have; --target says which column is to be learnt",
                   count, (long long)csv->rows);
    return STATUS_OK;
}

/* The classes are the distinct labels, sorted; `names` has room for all labels. */
static enum status use_distinct(struct csv *csv, const char **names, compare *order)
{
    struct dataset *dataset = csv->dataset;
    int64_t labels = count_labels(csv), row;
    int32_t count = 0, column;
    for (int64_t i = 0; i < labels; i++)
        names[i] = label_at(csv, i, &row, &column);
    qsort(names, (size_t)labels, sizeof *names, order);
    for (int64_t i = 0; i < labels; i++)
        if (!count || !text_equal(names[i], names[count - 1]))
            names[count++] = names[i];
    TRY(check_class_count(csv, count, order == compare_texts));
    TRY(keep_classes(csv, names, count));
    for (int64_t i = 0; i < labels; i++) {
        const char *label = label_at(csv, i, &row, &column);
        const char **class =
            bsearch(&label, dataset->classes, (size_t)count, sizeof *dataset->classes, order);
        dataset->labels[i] = (int32_t)(class - dataset->classes);
    }
    return STATUS_OK;
}

/* A plain integer: no sign but a minus, no leading 0. */
static bool is_plain(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-');
    return text_to_int(text, value) && *text != '+' && (*digits != '0' || !text[1]);
}

/* Are the labels the integers 0 … C-1, C > 1, each of them there; or 1 … C, or two integers, with a
 * few rows each? */
static enum status are_counted(const struct csv *csv, bool *out)
{
    int64_t labels = count_labels(csv), least = INT64_MAX, most = INT64_MIN, seen = 0, row;
    int32_t column;
    unsigned char *there;
    bool two = true;
    *out = false;
    NEED(there = mem_alloc((size_t)labels + 1));
    for (int64_t i = 0; i < labels; i++) {
        int64_t value;
        if (!is_plain(label_at(csv, i, &row, &column), &value))
            goto done;
        least = value < least ? value : least;
        most = value > most ? value : most;
        if (value >= 0 && value <= labels) {
            seen += !there[value];
            there[value] = 1;
        }
    }
    for (int64_t i = 0; i < labels && two; i++) {
        int64_t value = 0;
        is_plain(label_at(csv, i, &row, &column), &value);
        two = value == least || value == most;
    }
    bool each_there = (least == 0 || least == 1) && seen == most - least + 1;
    bool often = labels / ROWS_EACH >= (two ? 2 : seen);
    *out = least < most && ((each_there && (least == 0 || often)) || (two && often));
done:
    mem_free(there);
    return STATUS_OK;
}

/* A label that is no number, among labels with fractions, is a slip and no class; and a price or a
 * date is none either. */
static enum status check_mixture(const struct csv *csv)
{
    int64_t fraction = -1, word = -1, row, value;
    int32_t column;
    double number;
    for (int64_t i = 0; i < count_labels(csv); i++) {
        const char *label = label_at(csv, i, &row, &column);
        if (csv_what(csv, label, &number) != CELL_NUMBER)
            word = word < 0 ? i : word;
        else if (!text_to_int(label, &value))
            fraction = fraction < 0 ? i : fraction;
    }
    if (word < 0)
        return STATUS_OK;
    const char *text = label_at(csv, word, &row, &column);
    if (fraction >= 0)
        CSV_REFUSE(csv, row, column, "found the label '%.40s', expected a number as in line %lld",
                   text, (long long)csv->lines[fraction / csv->label_count].line);
    if (csv_hint(text))
        CSV_REFUSE(csv, row, column,
                   "found the label '%.40s', expected a plain number, as 1234.5, or a class; "
                   "--target says which column is to be learnt",
                   text);
    return STATUS_OK;
}

/* Whole numbers may be either: what they were taken for is said where it is not plain. */
static void note_labels(struct csv *csv, bool classes)
{
    enum { DIFFERENT = 20 };
    const struct dataset *dataset = csv->dataset;
    const int64_t rows = csv->rows;
    float seen[DIFFERENT];
    int different = 0;
    if (csv->label_count != 1)
        return;
    if (classes) {
        text_printf(&csv->notes, "the target has %d classes; --numbers learns it as a number\n",
                    dataset->class_count);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        const float number = dataset->numbers[row];
        int i = 0;
        while (i < different && seen[i] != number)
            i++;
        if (i == DIFFERENT || number != floorf(number))
            return;
        if (i == different)
            seen[different++] = number;
    }
    if (rows >= (int64_t)ROWS_EACH * different)
        text_printf(&csv->notes,
                    "the target is learnt as a number; --classes learns its %d values as classes\n",
                    different);
}

enum status csv_read_labels(struct csv *csv, const struct dataset_options *options)
{
    int64_t labels = count_labels(csv), row;
    bool words = false, counted;
    double number;
    int32_t column;
    TRY(check_labels(csv));
    if (options->numbers)
        return keep_numbers(csv);
    if (options->class_count > 0)
        return use_known_classes(csv, options);
    for (int64_t i = 0; !words && i < labels; i++)
        words = csv_what(csv, label_at(csv, i, &row, &column), &number) != CELL_NUMBER;
    if (!options->as_classes)
        TRY(check_mixture(csv));
    TRY(are_counted(csv, &counted));
    if (!words && !counted && !options->as_classes) {
        TRY(keep_numbers(csv));
        note_labels(csv, false);
        return STATUS_OK;
    }
    const char **names;
    NEED(names = mem_array((size_t)labels, sizeof *names));
    enum status status = use_distinct(csv, names, words ? compare_texts : compare_numbers);
    mem_free(names);
    if (status == STATUS_OK && counted && !text_equal(csv->dataset->classes[0], "0"))
        note_labels(csv, true);
    return status;
}
