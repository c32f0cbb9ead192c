/* dataset.h: samples in memory: one block of features and what is to be learnt from them.
 *
 * A data set is features [rows, columns] and, for every row, either a class or numbers, or neither.
 * Where it came from (a CSV file, a shipped name, random numbers) no longer shows. It is not a
 * table: values are floats, nothing is missing. */
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
};

struct dataset {
    struct arena arena; /* of the names; the blocks are the data set's own */
    const char *name;   /* as it was asked for: "iris", a path */
    int64_t rows;
    int32_t columns;
    float *features;           /* [rows, columns] */
    const char **column_names; /* [columns], or NULL when the file has no header */
    int32_t class_count;       /* 0: the rows have numbers, or nothing */
    const char **classes;      /* [class_count] */
    int32_t *labels;           /* [rows], indices of classes, or NULL */
    int32_t number_columns;
    float *numbers; /* [rows, number_columns], or NULL */
};

/* How a CSV file is read (csv.c). Zero is the usual way. */
struct dataset_options {
    const char *label;          /* the label's column: its name, or its place from 1; NULL: last */
    int32_t inputs;             /* > 0: a file with just so many columns has no label column */
    const char *const *classes; /* the classes to be used, when they are already known … */
    int32_t class_count;        /* … and how many */
    bool numbers;               /* labels are numbers, even if they look like classes */
};

/* `name` is a shipped data set ("iris") or the path of a CSV file ("-": standard input). */
enum status dataset_open(const char *name, const struct dataset_options *options,
                         struct dataset **out);

/* Reads CSV text, which it overwrites (`text[length]` is a NUL). `name` is used in messages. */
enum status dataset_parse_csv(const char *name, char *text, size_t length,
                              const struct dataset_options *options, struct dataset **out);

/* Uniform random features in [0, 1); with class_count > 0 random labels, else number_columns
 * (which may be 0) random numbers a row. The same bits for the same seed, everywhere. */
enum status dataset_synthetic(int64_t rows, int32_t columns, int32_t class_count,
                              int32_t number_columns, uint64_t seed, struct dataset **out);

void dataset_free(struct dataset *dataset); /* NULL is fine */

/* Names the content, so that a resumed run can tell whether its data is what it was. */
uint64_t dataset_hash(const struct dataset *dataset);

#endif
