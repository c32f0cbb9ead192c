/* show_table.h: a table for people, which fits the width it is given.
 *
 *     large, training, batch 64, 1 thread, AMD EPYC          the title: what all rows share
 *
 *     framework   time per step   samples/s   result         columns, by importance
 *     prony       48.7 ms ± 2 %       1,310   correct
 *     numpy       76.8 ms ± 8 %*        834   correct        a mark …
 *
 *     * noisy: another program used the CPU                  … and its note, once
 *     limit: 40.3 ms, set by multiply-adds                   the footer
 *
 * The least important columns are left out until the rest fits; what is still too wide is wrapped
 * inside its column. A table is printed whole, or begun from the widths its columns will need and
 * then row by row. Cells may hold anything: what a terminal would obey is shown as its number. */
#ifndef PRONY_CLI_SHOW_TABLE_H
#define PRONY_CLI_SHOW_TABLE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum show_align { SHOW_LEFT, SHOW_RIGHT };
enum { SHOW_COLUMNS = 48, SHOW_ALWAYS = 100 };

struct show_column {
    const char *heading;
    enum show_align align;
    int importance; /* SHOW_ALWAYS: it is never left out */
    size_t width;
    size_t
        least; /* it may become as narrow, and its cells wrap; 0: only where nothing else helps */
    bool hidden, dropped; /* dropped: for want of room */
};

/* A zeroed struct with a width is ready. Memory that runs out is remembered, and told by
 * show_table_done. */
struct show_table {
    int width;
    int indent; /* blanks before each row */
    struct show_column columns[SHOW_COLUMNS];
    int column_count;
    struct show_row *first, *last; /* rows that are not printed yet */
    struct show_note *notes;
    struct text title, footer;
    struct arena arena;
    bool failed;
};

/* Returns its number. `room`: the width it needs at least; 0 where all rows are there before the
 * table is begun. The heading must outlive the table. */
int show_table_column(struct show_table *table, const char *heading, enum show_align align,
                      int importance, size_t room);

/* Lets a column of text be as narrow as this before others are left out. */
void show_table_flex(struct show_table *table, int column, size_t least);

/* Copies as many cells as there are columns; NULL is empty. */
void show_table_row(struct show_table *table, const char *const *cells);
/* A row of texts, one a column, which are freed. */
void show_table_texts(struct show_table *table, struct text *cells, int count);
/* Frees texts that cells were made of, and remembers where memory ran out. */
void show_table_spend(struct show_table *table, struct text *texts, int count);
/* A line across the columns, or an empty one; it is wrapped. */
void show_table_line(struct show_table *table, const char *line);

/* The mark that stands for the note: the same for notes that differ in numbers only, which the
 * legend shows as "74 to 83 %". Lives as long as the table. */
const char *show_table_mark(struct show_table *table, const char *note);
/* The same, but notes of a group have one mark: "* noisy: others kept 1.7 cores busy; …". The
 * group's name must outlive the table. */
const char *show_table_mark_as(struct show_table *table, const char *group, const char *note);
/* The marks of notes that have "; " between them. */
void show_table_marks(struct show_table *table, const char *notes, struct text *out);

/* Adds marks to a figure so that figures of a column align: they hang over its edge. */
void show_table_hang(const char *marks, struct text *figure);
/* The note holds for one more row, which is not shown: the legend counts them. */
void show_table_repeat(struct show_table *table, const char *note);

/* A line under the table, after the notes; a command that can be pasted. */
void show_table_foot(struct show_table *table, const char *line);
void show_table_foot_command(struct show_table *table, const char *command);

/* Chooses the columns; prints the title and the headings. */
void show_table_begin(struct show_table *table, struct text *out);
/* Prints the rows that wait. */
void show_table_flush(struct show_table *table, struct text *out);
/* Prints notes and footer. */
void show_table_end(struct show_table *table, struct text *out);
/* All of it. */
void show_table_print(struct show_table *table, struct text *out);

enum status show_table_done(struct show_table *table); /* STATUS_MEMORY when something was lost */
void show_table_free(struct show_table *table);

/* Is a column shown? After show_table_begin. */
bool show_table_has(const struct show_table *table, int column);

#endif
