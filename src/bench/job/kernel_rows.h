/* kernel_rows.h: the timed cases of `prony bench --kernels`, row by row, as they are measured. */
#ifndef PRONY_BENCH_KERNEL_ROWS_H
#define PRONY_BENCH_KERNEL_ROWS_H

#include "core/cases.h"
#include "record/stats.h"
#include "record/tables/table.h"

/* One case on one backend. */
struct kernel_row {
    const struct op_case *op_case;
    const char *backend;
    int threads;
    const char *kernel;   /* or NULL */
    struct stats time_ns; /* says nothing when it was not timed */
    double flop, bytes;   /* of a run */
    double floor_ns;      /* NaN: there is none */
    const char *check;    /* "right", "wrong", "none" */
    double error;         /* the largest relative difference found; NaN: not checked */
    struct text note;     /* why something is missing */
};

struct kernel_rows {
    bool json;
    enum table_format format;  /* unless json */
    int op_width, sizes_width; /* of the aligned table */
    int width;                 /* that it may have; 0: any */
    bool contested;            /* several backends or threads take turns: their columns stay */
    unsigned left_out;         /* columns that have no room in it, a bit each */
    bool begun;
};

/* "table", "json", "csv", "md"; NULL: table. */
enum status kernel_rows_format(struct kernel_rows *rows, const char *format);

/* A row, and before the first one the heading. */
void kernel_rows_add(struct kernel_rows *rows, const struct kernel_row *row, struct text *out);

/* What a case is called, added to an empty text: "n=3 i=7 o=5 activation=relu, without b". */
void kernel_rows_sizes(const struct op_case *op_case, struct text *out);

#endif
