/* store_inside.h: what the files of store/ share. */
#ifndef PRONY_STORE_STORE_INSIDE_H
#define PRONY_STORE_STORE_INSIDE_H

#include "base/load/sqlite.h"
#include "store/store.h"
#include "store/store_columns.h"

/* How long another program's lock is waited for; by a bench, whose records can wait instead. */
enum { STORE_BUSY_MS = 10000, STORE_WAIT_MS = 1000 };

struct store {
    sqlite3 *db;
    char *path; /* for messages */
    char *flag; /* see store_flag */
    /* Prepared on first use: */
    sqlite3_stmt *find_line, *add_line, *add_row, *get_row, *get_line, *ask_version, *ask_change;
    struct columns columns;
    bool shipping;               /* what is added comes with prony */
    int questions;               /* that are open, one within another */
    bool own_view;               /* they have a transaction of their own */
    bool (*stop)(void *context); /* or NULL */
    void *stop_context;
    bool locked;    /* by another program, when something was last tried */
    bool waits;     /* records of ours are in the file beside it */
    unsigned asked; /* how often somebody wanted to know whether to go on */
};

/* The status for what SQLite just refused; the message names the file, the attempt, the reason. */
enum status store_fail(struct store *store, const char *attempt);

enum status store_prepare(struct store *store, const char *sql, sqlite3_stmt **out);

/* Steps to the next row; *row says whether there is one. */
enum status store_step(struct store *store, sqlite3_stmt *statement, bool *row);

/* The text of a column; "" for NULL. Valid until the next step. */
const char *store_text(sqlite3_stmt *statement, int column);

/* Runs SQL without parameters; `attempt` is for the message. */
enum status store_execute(struct store *store, const char *sql, const char *attempt);

/* Between two pieces of a long work: is the answer still wanted? */
enum status store_go_on(struct store *store);

/* Calls visit(context, name, SQL type) for every column of "result" but its id. */
typedef void column_visit(void *context, const char *name, const char *type);
void store_each_column(column_visit *visit, void *context);

/* Inside a transaction: files a line as store_add does; fills the columns of a result anew. */
enum status store_file(struct store *store, const char *line, size_t length,
                       const struct record *record, int64_t *id, bool *added);
enum status store_index(struct store *store, int64_t id, const struct record *record, bool shipped);
/* Is the row of a result what store_index would make of its record? *wrong is the first column that
 * is not, NULL when all are. */
enum status store_compare_row(struct store *store, int64_t id, const struct record *record,
                              bool shipped, const char **wrong);
/* What column "hash" holds of a line. */
int64_t store_hash(const char *line, size_t length);

/* Rows of store->columns under filters, ascending, in the arena. Inside a question.
 */
struct selection {
    uint32_t *rows;
    size_t count;
};
enum status select_rows(struct store *store, struct arena *arena, struct store_where where,
                        struct selection *out);
/* The same, of results that are ok and were measured: those that were simulated are there where the
 * filters name the axis `origin`, or with `simulated`. */
enum status select_ok(struct store *store, struct arena *arena, struct store_where where,
                      bool simulated, struct selection *out);

/* Is the row's result one to conclude nothing from (record.h: handicap)? */
bool is_handicapped(const struct columns *columns, uint32_t row);

/* Puts rows that have the same codes of `keys` into the same class. classes[i] is the class of
 * selection.rows[i], from 0 to *count - 1, in the order of their first rows. */
enum status classify(struct store *store, struct arena *arena, struct selection selection,
                     const int *keys, size_t key_count, uint32_t *classes, uint32_t *count);

/* Sets what each point is beside the query's baseline. */
enum status chart_relate(struct store *store, const struct store_query *query,
                         const struct metric *metric, struct store_chart *chart);

#endif
