/* csv.h: inside the reader of CSV, which goes over a file in this order:
 *
 *   csv_text.c    the separator, then cells: where each begins in the text
 *   csv.c         header, target, which columns are features; then the numbers of the data set
 *   csv_column.c  what a cell is (a number, a text, missing); what is made of a column
 *   csv_label.c   what is to be learnt: classes or numbers
 *
 * Cells are cut out of the text where it lies: quotes are undone in place and each cell ends in a
 * NUL. A cell is known by where it begins, four bytes, and so is a row. The whole text is in
 * memory, and so are its rows and numbers: all of them count against what data may take. */
#ifndef PRONY_DATA_CSV_H
#define PRONY_DATA_CSV_H

#include "base/status.h"
#include "base/text.h"
#include "data/columns.h"
#include "data/dataset.h"

struct csv {
    const char *name;
    char *text, *end;    /* *end is a NUL */
    size_t memory;       /* bytes that text, rows, numbers and labels may take */
    char separator;      /* one of , ; | and the tab */
    bool decimal_comma;  /* 1,5 is a number */
    bool header;         /* the first row had the names */
    int32_t columns;     /* cells of a row */
    int64_t rows;        /* below the header */
    int64_t dropped;     /* rows that were left out, for a missing value */
    uint32_t *all_cells; /* [header + rows, columns]: where the cell begins in the text … */
    uint32_t *cells;     /* … of the rows below the header */
    struct csv_row {
        uint32_t start;    /* where its first line begins in the text */
        uint32_t line;     /* from 1 */
    } * all_lines, *lines; /* likewise */
    int64_t row_room;
    const char **names; /* [columns]: of the header, or "column 3" */
    struct census {
        int64_t numbers, missing, texts;   /* cells of each kind */
        int64_t first_missing, first_text; /* rows, where there are such */
    } * census;                            /* [columns] */
    struct mark {
        bool asked;
        const char *how; /* what follows the =, or NULL */
        size_t how_length;
    } * left_out, *encoded;     /* [columns]: what --drop and --encode say; one allocation */
    int32_t label, label_count; /* the first label column, and how many */
    struct dataset *dataset;
    struct text notes; /* what was done, a line each */
};

static inline const char *csv_cell(const struct csv *csv, int64_t row, int32_t column)
{
    return csv->text + csv->cells[row * csv->columns + column];
}

static inline bool csv_is_label(const struct csv *csv, int32_t column)
{
    return column >= csv->label && column < csv->label + csv->label_count;
}

/* Bytes of the text and of so many rows of it. */
static inline size_t csv_bytes(const struct csv *csv, int64_t rows)
{
    const size_t row = (size_t)csv->columns * sizeof *csv->all_cells + sizeof *csv->all_lines;
    return (size_t)(csv->end - csv->text) + (size_t)rows * row;
}

/* Refuses a cell of a row, with its place. */
#define CSV_REFUSE(csv, row, column, ...)                                                          \
    do {                                                                                           \
        status_fail(STATUS_INPUT, __FILE__, __LINE__, __VA_ARGS__);                                \
        return csv_place(csv, row, column);                                                        \
    } while (0)
/* Puts "FILE:LINE:COLUMN: " before the last message; returns STATUS_INPUT. */
enum status csv_place(const struct csv *csv, int64_t row, int32_t column);

/* csv_text.c: finds the separator and reads all rows. */
enum status csv_read_cells(struct csv *csv);

/* csv_column.c */
enum cell { CELL_NUMBER, CELL_MISSING, CELL_TEXT };
enum cell csv_what(const struct csv *csv, const char *cell, double *number);
/* Empty, or NA, N/A, NaN, null, ? in any case. */
bool csv_is_missing(const char *cell);
/* What a text that should be a number may be, and what helps: words before "--drop"; or NULL. */
const char *csv_hint(const char *cell);
/* Are decimals written with commas in this file? Looks at all cells. */
bool csv_has_decimal_commas(const struct csv *csv);
/* A number for a float, or a refusal with its place and a hint. */
enum status csv_number(const struct csv *csv, int64_t row, int32_t column, float *out);
/* Refuses a cell that is not UTF-8; `kind` says what it is: "text", "label". */
enum status csv_check_text(const struct csv *csv, int64_t row, int32_t column, const char *kind);
/* Fills csv->census. */
enum status csv_count_cells(struct csv *csv);
/* What is to be made of a column, as options say or as its cells are. */
enum status csv_judge_column(struct csv *csv, int32_t column, const struct dataset_options *options,
                             struct column *out);
/* Marks the columns of a list "a,b=code"; one that is not there is refused. `flag` is for the
 * message. */
enum status csv_read_list(const struct csv *csv, const char *list, const char *flag,
                          struct mark *marks);
/* The cell of each column becomes its features. */
enum status csv_fill_features(struct csv *csv, const struct columns *columns, const int32_t *from);

/* csv_label.c: the labels of the data set. */
enum status csv_read_labels(struct csv *csv, const struct dataset_options *options);

#endif
