/* bench_output.h: where the records of `prony bench` and `prony suite` go: the screen, a file, the
 * store. */
#ifndef PRONY_CLI_BENCH_OUTPUT_H
#define PRONY_CLI_BENCH_OUTPUT_H

#include "base/args.h"
#include "base/clock.h"
#include "bench/sweep/done.h"
#include "bench/sweep/pace.h"
#include "cli/progress.h"
#include "cli/show/bench_table.h"
#include "record/sink.h"
#include "record/tables/table.h"

/* Rows appear as they are measured (table, json), or all at the end, from the records kept. */
enum output_style {
    OUTPUT_ROWS,
    OUTPUT_JSON,
    OUTPUT_TABLE,
    OUTPUT_TESTS,
    OUTPUT_INGESTION,
    OUTPUT_CROSSOVER,
    OUTPUT_CROSSOVER_WIDTHS,
    OUTPUT_NOTHING,
    OUTPUT_KEPT, /* the caller prints them */
};

/* Several runs under one bar, whose plan is told once. */
struct bench_part {
    struct progress progress;
    bool told;
    const char *name; /* of this run: "batches", "threads" */
    double after_s;   /* of the runs that follow: a guess */
};

struct store;
struct bench_look;
struct bench_output {
    enum output_style style;
    enum table_format format; /* of OUTPUT_TABLE */
    struct bench_table rows;
    bool sheet;                     /* OUTPUT_ROWS: a sheet of precisions ends it */
    const struct json *calibration; /* of the machine's record, or NULL */
    const char *command;            /* what was typed; or NULL */
    const char *file;               /* or NULL */
    struct store *opened;           /* or NULL */
    struct sink store;              /* write is NULL without one */
    char started[CLOCK_STAMP];
    struct table_row *kept; /* what is printed at the end, with records in the arena */
    size_t kept_count, kept_room;
    struct arena arena;
    struct line_seen *seen;  /* networks and machines that are told or filed already */
    struct gate *gate;       /* counts what was compared; or NULL */
    struct bench_part *part; /* this run is one of several; or NULL */
    /* struct bench has it; or NULL */
    enum status (*look)(void *context, const struct bench_look *look);
    void *look_context;
};

/* What a command line says of it; all may be NULL. */
struct output_flags {
    const char *format, *file, *store;
};
extern const struct arg output_flags[];

enum status bench_output_open(struct bench_output *output, const struct output_flags *flags);
/* Also files the records in this store. */
enum status bench_output_use(struct bench_output *output, const char *store);
void bench_output_close(struct bench_output *output);

/* Does it go where nothing but times is read? */
bool bench_output_is_plain(const struct bench_output *output);
/* What the bench writes to. */
struct sink bench_output_sink(struct bench_output *output);
/* Tells who looks at the store how far it is: `done` of `total` points, `next` to come, and the
 * seconds left. */
void bench_output_tell(struct bench_output *output, const struct point *next, int done, int total,
                       double left_s);
/* Prints what waited for the end. */
enum status bench_output_finish(struct bench_output *output);
/* What the file and the store hold already: networks and machines are not filed twice, results go
 * to *done, unless that is NULL, and *pace learns how long they take. */
enum status bench_output_done(struct bench_output *output, struct done *done, struct pace *pace);

#endif
