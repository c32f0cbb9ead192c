/* dataset.h: samples: one block of features and what is to be learnt from them.
 *
 * A data set is features [rows, columns] and, for every row, either classes (mostly one) or
 * numbers, or neither. Where it came from (CSV, IDX or NPY files, a shipped name, random numbers)
 * no longer shows. It is not a table: values are floats, nothing is missing.
 *
 * Features that take more memory than they may stay in their file and are *streamed*: the block has
 * its addresses, but a row is there only once it was fetched, until others are (dataset_fetch).
 * Labels are always in memory. */
#ifndef PRONY_DATA_DATASET_H
#define PRONY_DATA_DATASET_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DATASET_ROWS_MOST = 1 << 24, /* shuffles draw without bias up to there */
    DATASET_COLUMNS_MOST = 1 << 20,
    DATASET_CLASSES_MOST = 1 << 16,
    DATASET_RANK_MOST = 7,
};

struct columns; /* columns.h */
struct gaps;    /* gaps.h */
struct scaling; /* split.h */
struct stream;  /* stream.h */

struct dataset {
    struct arena arena; /* of the names; the blocks are the data set's own */
    const char *name;   /* as it was asked for: "iris", a path */
    int64_t rows;
    int32_t columns;
    int32_t rank, dims[DATASET_RANK_MOST]; /* of one sample: 28 × 28; rank 0: just columns */
    float *features;                       /* [rows, columns] */
    size_t reserved_bytes;                 /* of features, when they are mem_reserve's */
    struct stream *stream;                 /* where features come from; NULL: they are all there */
    int64_t fetches;                       /* so many times rows were fetched */
    const struct scaling *scaling;         /* what became of features, or does when they are
                                              fetched; NULL: they are as they were read */
    int64_t test_rows;         /* so many of the last rows came as a test set of their own */
    const char **column_names; /* [columns], or NULL when the file has no header */
    int32_t class_count;       /* 0: the rows have numbers, or nothing */
    const char **classes;      /* [class_count] */
    int32_t label_columns;     /* classes of a row: mostly 1 */
    int32_t *labels;           /* [rows, label_columns], indices of classes, or NULL */
    int32_t number_columns;
    float *numbers;        /* [rows, number_columns], or NULL */
    struct columns *table; /* CSV: how its columns became features; NULL: as the options said */
    struct gaps *gaps;     /* CSV: what a mean or median fills once the data is split; or NULL */
    const char *notes;     /* CSV: what was done to it, a line each; or NULL */
};

/* How files are read. Zero is the usual way. */
struct dataset_options {
    const char *label;     /* CSV: the label's column: its name, or its place from 1; NULL: last;
                              FIRST..LAST: several; "none": there is none, whatever the data */
    const char *labels;    /* IDX, NPY: the file with the labels */
    uint64_t memory_bytes; /* features may take so much; 0: half of the machine's memory */
    int32_t inputs;        /* > 0: a file with just so many columns has no label column */
    const char *const *classes; /* the classes to be used, when they are already known … */
    int32_t class_count;        /* … and how many */
    bool numbers;               /* labels are numbers, even if they look like classes */
    bool as_classes;            /* … or classes, even if they look like numbers */
    bool passed_over;           /* nobody asks for labels: whatever they are, they are not read */
    /* Of CSV, columns by their names or places from 1: */
    const char *drop; /* COLUMN[,COLUMN]: they are left out */
    const char
        *encode; /* COLUMN[=onehot|code][,…]: they are texts, even if they look like numbers */
    const char *fill;              /* mean, median, zero or a number stands for a missing number */
    bool drop_rows;                /* rows with missing values are left out */
    const struct columns *columns; /* how a network learnt to read a table: drop, encode and fill
                                      are not looked at */
};

/* Is the label "none"? */
bool dataset_unlabelled(const struct dataset_options *options);

/* `name` is a data set's ("iris", "mnist", "synthetic:1000x4:3"), the path of a CSV, IDX or NPY
 * file, each plain or in gzip, of a folder with the files of MNIST, or "-": CSV on standard input.
 */
enum status dataset_open(const char *name, const struct dataset_options *options,
                         struct dataset **out);
/* Is it a data set's name, and not a path, even where a file has that name? */
bool dataset_built_in(const char *name);

/* Reads CSV text, which it overwrites (`text[length]` is a NUL). `name` is used in messages. */
enum status dataset_parse_csv(const char *name, char *text, size_t length,
                              const struct dataset_options *options, struct dataset **out);

/* Uniform random features in [0, 1); with class_count > 0 random labels, else number_columns
 * (which may be 0) random numbers a row. The same bits for the same seed, everywhere. */
enum status dataset_synthetic(int64_t rows, int32_t columns, int32_t class_count,
                              int32_t number_columns, uint64_t seed, struct dataset **out);

void dataset_free(struct dataset *dataset); /* NULL is fine */

/* How many rows may be fetched at a time: at least 1, all of them when they are in memory. */
int64_t dataset_window(const struct dataset *dataset);
/* Makes `count` rows from `first` (of the list, or of the data set when it is NULL) be there, and
 * no others, and may move the block; does nothing when all are in memory. Refuses rows with values
 * that are no numbers. */
enum status dataset_fetch(struct dataset *dataset, const uint32_t *list, int64_t first,
                          int64_t count);
/* Says which rows will be fetched next: a thread reads them while those that are there are used. */
enum status dataset_expect(struct dataset *dataset, const uint32_t *list, int64_t first,
                           int64_t count);
/* Waits for that thread: before the scaling of the data set ends. */
void dataset_settle(struct dataset *dataset);

/* Names the content as it is before standardising, so that a resumed run can tell whether its data
 * is what it was. Fetches all rows in turn, which checks them. */
enum status dataset_hash(struct dataset *dataset, uint64_t *out);

#endif
