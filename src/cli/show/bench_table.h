/* bench_table.h: the table of `prony bench`, whose rows appear as they are measured. Which columns
 * there are is known beforehand: the axes that were given several values, and the figures. */
#ifndef PRONY_CLI_BENCH_TABLE_H
#define PRONY_CLI_BENCH_TABLE_H

#include "bench/sweep/sweep.h"
#include "cli/show/bench_limit.h"
#include "cli/table/show_table.h"

struct bench_table {
    struct show_table show;
    bool varies[AXIS_COUNT];   /* a column, not a word of the title */
    bool joined;               /* one column for all of them: there is no room for several */
    struct bench_seen *unseen; /* skips that are told already */
    struct bench_limit limit;
    struct text software;               /* "prony 0.1.0, numpy 1.24.2": of all tables */
    struct text fastest;                /* of this table: "numpy, batch 64, 48.7 ms ± 2 %, …" */
    double fastest_per_s;               /* its samples a second; 0: none was found right */
    double fastest_least, fastest_most; /* the ends of its interval */
    double others_most;                 /* the upper end of the others' intervals */
    int results;                        /* that were found right */
    bool noisy;                         /* one of these was */
    bool begun;
};

/* Ends the table before, if there is one, and prepares the next. */
void bench_table_start(struct bench_table *table, const struct sweep *sweep, struct text *out);
/* Appends the row, and before the first one the title and the headings. */
enum status bench_table_row(struct bench_table *table, const struct record *record,
                            struct text *out);
/* Appends the notes and the limit. `calibration`: of the machine's record, or NULL. `command`: what
 * was run, or NULL before the last table. */
enum status bench_table_end(struct bench_table *table, const struct json *calibration,
                            const char *command, struct text *out);
void bench_table_free(struct bench_table *table);

#endif
