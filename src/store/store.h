/* store.h: records in an SQLite file, to be asked about.
 *
 * Every line is kept as it came; beside it, results have one column per axis, derived axis and
 * metric of record/, which are filled from the line and added when a table of record/ grew: an old
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
    STORE_READ,  /* the file must exist; nothing can be added */
    STORE_WRITE, /* made, with its folder, when it does not exist */
};

/* The default, store.db in the user's data folder; appended to *out. */
enum status store_path(struct text *out);

/* A file that is corrupt or not ours is an error and is left as it is. */
enum status store_open(const char *path, enum store_access access, struct store **out);
void store_close(struct store *store); /* NULL is fine */

/* Files one line; *added is false when it was there already (both may be NULL). Durable on return,
 * unless between begin and commit, which make many one. */
enum status store_add(struct store *store, const char *line, size_t length,
                      const struct record *record, int64_t *id, bool *added);
enum status store_begin(struct store *store);
enum status store_commit(struct store *store);
void store_rollback(struct store *store); /* fine when nothing was begun */

struct sink store_sink(struct store *store); /* records written to it are added */

/* key = value, where key is an axis, a derived axis, or "status". Several of the same key: any of
 * the values. All keys must hold. */
struct store_filter {
    const char *key, *value;
};
/* Records to consider: results that meet every filter. A zeroed struct is all. */
struct store_where {
    const struct store_filter *filters;
    size_t count;
};

/* "model=large phase=training batch=1,3": filters from words; what they point to is in the arena.
 */
enum status store_where_parse(struct arena *arena, const char *text, struct store_where *out);

/* Visitors: what they are given lives until they return; a failure of theirs ends the visit and is
 * forwarded. */
typedef enum status store_line_visit(void *context, int64_t id, const char *line, size_t length);
typedef enum status store_value_visit(void *context, const char *value, int64_t count);

/* Results, the newest first; at most `limit` of them (0: all) after skipping `offset`. */
enum status store_list(struct store *store, struct store_where where, int64_t limit, int64_t offset,
                       store_line_visit *visit, void *context);
/* Every line of a kind ("result", "machine", "network"; NULL: all), the oldest first. */
enum status store_export(struct store *store, const char *kind, store_line_visit *visit,
                         void *context);
/* The line with this id; STATUS_INPUT when there is none. */
enum status store_get(struct store *store, int64_t id, struct text *line);
enum status store_count(struct store *store, struct store_where where, int64_t *out);
/* The values a key has under the filters of the *other* keys, with how often, in order. */
enum status store_values(struct store *store, const char *key, struct store_where where,
                         store_value_visit *visit, void *context);

enum store_aggregate {
    STORE_BEST, /* the least or the largest, whichever is better for the metric */
    STORE_MIN,
    STORE_MAX,
    STORE_MEDIAN,
    STORE_MEAN,
};
bool store_aggregate_parse(const char *name, enum store_aggregate *out); /* "best", "min" … */

enum { STORE_GROUPS = 4 }; /* axes a chart can be grouped by, at most */

/* A chart: y over x, one series for each combination of values of the groups. Results that are not
 * ok or lack the metric are left out. */
struct store_query {
    const char *x;                    /* an axis, derived or not */
    const char *y;                    /* a metric */
    const char *groups[STORE_GROUPS]; /* axes; none: one series */
    size_t group_count;
    struct store_where where;
    enum store_aggregate aggregate;
};
struct store_mark {
    const char *groups[STORE_GROUPS]; /* as in the query; "" where the axis is empty */
    const char *x;
    double y;               /* aggregated */
    double y_min, y_max;    /* over the records it stands for */
    int64_t count;          /* how many they are */
    int64_t unchecked;      /* how many of them were not found right */
    int64_t configurations; /* how many different points (machine and software aside) */
    int64_t id;             /* a record to look at: the best, or the one in the middle */
};
typedef enum status store_mark_visit(void *context, const struct store_mark *mark);
/* Ordered by groups, then x; numbers as numbers. */
enum status store_chart(struct store *store, const struct store_query *query,
                        store_mark_visit *visit, void *context);

#endif
