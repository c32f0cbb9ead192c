/* columns.h: what becomes of the columns of a table: which of them are features, in which order, as
 * numbers or as texts, and what stands for a missing value.
 *
 * It is found when a network is trained on a file and saved with it (JSON), so that a file that is
 * predicted later is read in the same way: its columns may be in another order, there may be more
 * of them, and the target may be missing. */
#ifndef PRONY_DATA_COLUMNS_H
#define PRONY_DATA_COLUMNS_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum column_kind {
    COLUMN_NUMBER,  /* one feature: the number */
    COLUMN_ONE_HOT, /* a feature for each text: 1 where the row has it, else 0 */
    COLUMN_CODE,    /* one feature: the place of the text among the sorted ones, from 0 */
    COLUMN_KINDS
};

struct column {
    const char *name; /* of the header, or "column 3" */
    int32_t place;    /* in the file it was found in, from 1 */
    enum column_kind kind;
    bool filled; /* a missing number is … */
    float fill;
    int64_t gaps; /* so many were missing where it was found; not saved */
    int32_t value_count;
    const char **values; /* of texts: sorted, distinct; "" is a missing one */
};

struct columns {
    bool header; /* columns are known by their names; else by their places */
    int32_t count;
    struct column *list; /* [count], in the order of the features */
    int32_t target_count;
    const char **targets; /* [target_count]: the names of what is learnt */
    int32_t target_place; /* of the first one, from 1 */
};

/* Files with more columns, or texts, are learnt from as any other, but how they were read is not
 * saved. */
enum { COLUMNS_SAVED_MOST = 1 << 16, COLUMNS_VALUES_MOST = 1 << 17 };

/* Features that the columns make; may exceed what a data set can have. */
int64_t columns_width(const struct columns *columns);
/* The place of the text among the column's, or -1. */
int32_t column_find_value(const struct column *column, const char *text);

/* Can it be saved? */
bool columns_fit(const struct columns *columns);
/* As JSON; and from there, checked, in the arena. `name` is used in messages. */
void columns_write(const struct columns *columns, struct text *out);
enum status columns_read(struct arena *arena, const char *name, const char *text,
                         struct columns **out);

#endif
