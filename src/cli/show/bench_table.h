/* bench_table.h: the table of `prony bench`, whose rows appear as they are measured. Which columns
 * there are is known beforehand: the axes that were given several values. */
#ifndef PRONY_CLI_BENCH_TABLE_H
#define PRONY_CLI_BENCH_TABLE_H

#include "bench/sweep/sweep.h"

struct bench_table {
    bool shown[AXIS_COUNT];
    int width[AXIS_COUNT];
    bool begun;
    bool explained; /* what the mark of a handicap means */
};

void bench_table_start(struct bench_table *table, const struct sweep *sweep);
/* Appends the row, and before the first one the heading. */
void bench_table_row(struct bench_table *table, const struct record *record, struct text *out);

#endif
