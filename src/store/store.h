/* store.h: records in an SQLite file, to be asked about.
 *
 * Every line is kept as it came. Beside it, results have one column per axis, derived axis and
 * metric of record/, filled from the line. Columns are added when a table of record/ grew: an old
 * file is brought up to date when it is opened. What a query names (axis, metric) is looked up in
 * those tables and never pasted from outside; values are bound. One store belongs to one thread at
 * a time; several may have the same file open (write-ahead log). */
#ifndef PRONY_STORE_STORE_H
#define PRONY_STORE_STORE_H

#include "base/status.h"
#include "base/text.h"
#include "record/record.h"
#include "record/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

enum store_access {
    STORE_READ,    /* the file must exist; nothing can be added */
    STORE_CHANGE,  /* the file must exist */
    STORE_WRITE,   /* made, with its folder, when it does not exist */
    STORE_SHIPPED, /* the same, and a new one starts with the results that come with prony */
};

/* The default, store.db in the user's data folder; appended to *out. */
enum status store_path(struct text *out);

/* A file that is corrupt or not ours is an error and is left as it is. Without SQLite:
 * STATUS_UNSUPPORTED, and the message names the package to install. */
enum status store_open(const char *path, enum store_access access, struct store **out);
void store_close(struct store *store); /* NULL is fine */
/* " --store PATH", as words of a shell, for commands that messages suggest. */
const char *store_flag(const struct store *store);

/* Files one line; *added is false when it was there already (both may be NULL). Durable on return,
 * unless between begin and commit, which make many one. */
enum status store_add(struct store *store, const char *line, size_t length,
                      const struct record *record, int64_t *id, bool *added);
enum status store_begin(struct store *store);
enum status store_commit(struct store *store);
void store_rollback(struct store *store); /* fine when nothing was begun */

/* Asked now and then while a question is worked on: true ends it with STATUS_INTERRUPTED. NULL
 * ends the asking. */
void store_watch(struct store *store, bool (*stop)(void *context), void *context);

struct sink store_sink(struct store *store); /* records written to it are kept */

/* As store_add, but a record that comes while another program has the store locked waits in
 * FILE.waiting.jsonl instead of being refused. */
enum status store_keep(struct store *store, const char *line, const struct record *record);
/* Files the records that wait; fine when they have to go on waiting, or when their file is not what
 * it should be, with a warning. Opening to write does it. */
enum status store_settle(struct store *store);
/* The same at the end of a run, with a warning when they still wait. */
void store_end_waiting(struct store *store);
/* Is this very line, of this kind, there? */
enum status store_has(struct store *store, enum record_kind kind, const char *line, size_t length,
                      bool *out);

/* Removes a record; STATUS_INPUT when there is none. */
enum status store_remove(struct store *store, int64_t id);
/* Looks at the whole file and at every record, and makes everything that is kept beside a record
 * again to compare it; lists the faults. *lines: records seen. */
typedef enum status store_problem_visit(void *context, const char *problem);
enum status store_check(struct store *store, store_problem_visit *visit, void *context,
                        int64_t *lines);
/* Makes anew from the records whatever is kept beside them. */
enum status store_repair(struct store *store);
enum status store_vacuum(struct store *store); /* makes the file as small as it can be */

/* key = value, where key is an axis, a derived axis, "status", "check" or "source". Several of the
 * same key: any of the values. All keys must hold. See docs/api.md for scaling and batch. */
struct store_filter {
    const char *key, *value;
};
/* Records to consider: results that meet every filter. A zeroed struct is all. */
struct store_where {
    const struct store_filter *filters;
    size_t count;
};

/* "model=large batch=1,3 unit_name='Xeon 8480'": filters from words; what they point to is in the
 * arena. */
enum status store_where_parse(struct arena *arena, const char *text, struct store_where *out);

/* The kind of a key (an enum axis_kind); -1 where there is none, and the nearest there is or NULL.
 */
int store_key_kind(const char *key);
const char *store_key_near(const char *key);
bool store_where_has(struct store_where where, const char *key, const char *value); /* NULL: any */

/* Visitors: what they are given lives until they return; a failure of theirs ends the visit and is
 * forwarded. */
typedef enum status store_line_visit(void *context, int64_t id, const char *line, size_t length);
typedef enum status store_value_visit(void *context, const char *key, const char *value,
                                      int64_t count);

/* Results, the newest first; at most `limit` of them (0: all) after skipping `offset`. */
enum status store_list(struct store *store, struct store_where where, int64_t limit, int64_t offset,
                       store_line_visit *visit, void *context);
/* Every line of a kind ("result", "machine", "network"; NULL: all), the oldest first. */
enum status store_export(struct store *store, const char *kind, store_line_visit *visit,
                         void *context);
/* The newest `limit` lines of a kind, which is not "result", the newest first. */
enum status store_recent(struct store *store, const char *kind, int64_t limit,
                         store_line_visit *visit, void *context);
/* The line with this id; STATUS_INPUT when there is none. */
enum status store_get(struct store *store, int64_t id, struct text *line);
enum status store_count(struct store *store, struct store_where where, int64_t *out);
/* What there is to show besides results in general. */
struct store_holdings {
    int64_t profiles;
    int64_t accurate; /* results that say how many answers were right */
    int64_t rated;    /* results that say how many FLOP/s they reached */
    bool several;     /* there are results with unlike numbers of threads, workers or nodes */
};
enum status store_holdings(struct store *store, struct store_holdings *out);
/* The values a key (NULL: every key but time) has under the filters of the *other* keys, with how
 * often, in order. Each key begins with a visit whose value is NULL. */
enum status store_values(struct store *store, const char *key, struct store_where where,
                         store_value_visit *visit, void *context);

enum store_aggregate {
    STORE_BEST, /* the least or the largest, whichever is better for the metric */
    STORE_MIN,
    STORE_MAX,
    STORE_MEDIAN,
    STORE_MEAN,
    STORE_AGGREGATES
};
extern const char *const store_aggregates[STORE_AGGREGATES];             /* "best", "min" … */
bool store_aggregate_parse(const char *name, enum store_aggregate *out); /* one of these */

enum { STORE_GROUPS = 6 /* axes a chart can be grouped by, at most */, STORE_BOX = 5 };

/* A chart: y over x, one series for each combination of values of the groups. Results that are not
 * ok or lack the metric are left out. */
struct store_query {
    const char *x;                    /* an axis, derived or not */
    const char *y;                    /* a metric */
    const char *groups[STORE_GROUPS]; /* axes; none: one series */
    size_t group_count;
    struct store_where where;
    enum store_aggregate aggregate;
    bool fair;      /* results with a handicap are left out: a sentence is made of the chart */
    uint64_t alike; /* axes in which the results of a series must be alike: bit i for axes[i] */
    /* NULL, or what speed-ups are against: "framework=numpy batch=1", whose keys are among the
     * groups and x; or "first", each series' own first point. */
    const char *baseline;
};
struct store_mark {
    const char *values[STORE_GROUPS + 1]; /* of the groups, then of x; "" where empty */
    uint32_t places[STORE_GROUPS + 1];    /* what orders them */
    uint32_t lot;                         /* the same where query.alike are; comes first */
    double y;                             /* aggregated */
    double low, high;                     /* the ends of the results' intervals, or their spread */
    /* Least, quartiles, largest: of the samples of one result of a time or throughput, else of the
     * results; box[0] is NaN when there is nothing to draw. */
    double box[STORE_BOX];
    int64_t count;          /* results it stands for */
    int64_t unchecked;      /* how many of them were not found right */
    const char *handicap;   /* of the record to look at, where it has one; else NULL */
    int64_t configurations; /* how many different ones (software aside) */
    uint64_t differs;       /* in which axes: bit i for axes[i] */
    int64_t id;             /* a record to look at: the best, or the one in the middle */
    const int64_t *ids;     /* [count], the newest first */
    /* Against the baseline; NaN where there is none. `ideal`: of as many more units. */
    double baseline, speedup, speedup_low, speedup_high, efficiency, ideal;
};
struct store_chart {
    struct arena arena;
    struct store_mark *marks; /* ordered by lot, groups, then x; numbers as numbers */
    size_t count;
    int64_t results;      /* in all marks */
    uint64_t differs;     /* in any mark */
    const char *left_out; /* of query.fair: "numpy: reference BLAS (netlib); …", or "" */
    uint64_t parted;      /* of query.alike, what its results are not alike in */
};
enum status store_chart(struct store *store, const struct store_query *query,
                        struct store_chart *out);
void store_chart_free(struct store_chart *chart);
const char *store_mark_x(const struct store_mark *mark, const struct store_query *query);
int64_t store_mark_number(const struct store_mark *mark, const struct store_query *query); /* x */
bool store_same_series(const struct store_mark *a, const struct store_mark *b,
                       const struct store_query *query);
/* As /api/query answers it; docs/api.md says what the members are. */
void store_chart_write(const struct store_query *query, const struct store_chart *chart,
                       struct json_writer *json);
/* The members of one point but its group, into an open object; the group. */
void store_mark_write(const struct store_query *query, const struct store_mark *mark,
                      struct json_writer *json);
void store_group_write(const struct store_query *query, const struct store_mark *mark,
                       struct json_writer *json);
/* Values are text in the store; in JSON those of a number axis are numbers, and none is null. */
void store_value_write(struct json_writer *json, const char *key, const char *value);
/* The keys of a set of axes: bit i for axes[i]. */
void store_axes_write(struct json_writer *json, uint64_t set);

/* Two selections: filters of each, and those of both (where a side names the same key, its own
 * hold). Which axes must be the same for two results to be matched: see docs/api.md. */
struct store_opposed {
    struct store_where a, b, where;
    const char *y; /* a metric */
};
struct store_opponent {
    int64_t id;
    double y, low, high; /* low, high: NaN where there is no interval */
    const char *check;   /* right, wrong, none */
};
struct store_match {
    const char *values[AXIS_COUNT]; /* of a */
    uint32_t places[AXIS_COUNT];    /* what orders them; 0 for axes that need not be the same */
    struct store_opponent a, b;
    struct comparison found; /* of times, or of one over what is better when higher */
};
struct store_matches {
    struct arena arena;
    struct store_match *list; /* ordered by the axes that must be the same */
    size_t count;
    uint64_t axes; /* in which they differ: bit i for axes[i] */
    int64_t verdicts[VERDICT_SAME + 1], only_a, only_b;
    int64_t handicapped; /* results that were left out: nothing is concluded from them */
    double ratio;        /* geometric mean; NaN of none */
};
enum status store_compare(struct store *store, const struct store_opposed *question,
                          struct store_matches *out);
void store_matches_free(struct store_matches *matches);
/* The axes in which results must be alike to be compared in those that are `named`: all others, but
 * those that cannot be alike. Sets are bit i for axes[i]. */
uint64_t store_axes_alike(uint64_t named);

/* One result in short, from the columns: no line is read. Texts live until the visit returns. */
struct store_row {
    int64_t id;
    struct point point;
    const char *status, *check, *source, *at, *bound;
    const char *machine;          /* its human name */
    double metrics[METRIC_COUNT]; /* of those that were asked for; else NaN */
};
typedef enum status store_row_visit(void *context, const struct store_row *row);
/* Results after the one with the id `after`, with these metrics (METRIC_COUNT ends the list). The
 * newest first, or the oldest; at most `limit`. *count is how many there are under the filters. */
struct store_glance {
    struct store_where where;
    const enum metric_index *metrics;
    int64_t after, limit;
    bool oldest_first;
};
enum status store_rows(struct store *store, const struct store_glance *glance,
                       store_row_visit *visit, void *context, int64_t *count);

/* What a person calls this server (record/title.h), by its newest result; "" where none tells. */
enum status store_title(struct store *store, const char *server, char out[TITLE_TEXT]);

/* The result with this id, with its time, throughput (and its interval), × floor, share of the
 * limit, what its precision costs, what workers bring; texts live until the next question.
 * STATUS_INPUT when there is none. */
enum status store_row(struct store *store, int64_t id, struct store_row *out);

/* Reads everything that questions are about, so that the first is as quick as the next. */
enum status store_warm(struct store *store);

/* What changes when results are added or removed: the newest's id; removals, ever. `version`
 * changes with anything that another connection writes. */
struct store_state {
    int64_t newest, change, version;
};
enum status store_look(struct store *store, struct store_state *out);

/* A bench that is adding its records to the store at this moment, or a training. */
struct store_running {
    int64_t process; /* its number */
    const char *server, *started;
    int64_t done, total;
    const char *current; /* what it measures now */
    double left_s;       /* NaN: not known */
    const char *curve; /* of a training: [[epoch, loss, held-out loss or null], …]; NULL: none */
};
/* Says, or says anew, that this process runs; that it is done. */
enum status store_run(struct store *store, const struct store_running *running);
void store_run_end(struct store *store, int64_t process);
/* A bench writes a line to its file first and to the store then. One that was killed in between
 * left lines at the end of the file that the store lacks: they are added, as far back as that bench
 * began. Where none was killed the store is as its owner wants it, and nothing is added. */
enum status store_catch_up(struct store *store, const char *path, const struct text *text);
/* Those that are known to run, or were heard of within `patience_s`. */
typedef enum status store_running_visit(void *context, const struct store_running *running);
enum status store_running(struct store *store, int64_t patience_s, store_running_visit *visit,
                          void *context);

/* A metric, or an error that names the nearest. */
enum status metric_need(const char *key, const struct metric **out);

#endif
