/* store_running.c: which benches add records at this moment, and how far they are. */
#include "base/clock.h"
#include "base/log.h"
#include "store/store_inside.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 256 };

static enum status step_once(struct store *store, sqlite3_stmt *statement, bool bound)
{
    bool row;
    enum status status = bound ? store_step(store, statement, &row) : store_fail(store, "write");
    sqlite->finalize(statement);
    return status;
}

enum status store_run(struct store *store, const struct store_running *running)
{
    sqlite3_stmt *put;
    TRY(store_prepare(store,
                      "INSERT OR REPLACE INTO running (process, server, started, updated, done,"
                      " total, current, left_s, curve) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                      &put));
    int code = sqlite->bind_int64(put, 1, running->process);
    code |= sqlite->bind_text(put, 2, running->server, -1, SQLITE_STATIC);
    code |= sqlite->bind_text(put, 3, running->started, -1, SQLITE_STATIC);
    code |= sqlite->bind_int64(put, 4, (int64_t)time(NULL));
    code |= sqlite->bind_int64(put, 5, running->done);
    code |= sqlite->bind_int64(put, 6, running->total);
    code |= sqlite->bind_text(put, 7, running->current, -1, SQLITE_STATIC);
    if (!isnan(running->left_s))
        code |= sqlite->bind_double(put, 8, running->left_s);
    if (running->curve)
        code |= sqlite->bind_text(put, 9, running->curve, -1, SQLITE_STATIC);
    sqlite->busy_timeout(store->db, STORE_WAIT_MS); /* a bench does not wait long for this */
    enum status status = step_once(store, put, code == SQLITE_OK);
    sqlite->busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

/* Removes what is said of a run. A bench does not wait long for this either. */
static enum status remove_run(struct store *store, int64_t process)
{
    sqlite3_stmt *remove;
    TRY(store_prepare(store, "DELETE FROM running WHERE process = ?1", &remove));
    sqlite->busy_timeout(store->db, STORE_WAIT_MS);
    enum status status =
        step_once(store, remove, sqlite->bind_int64(remove, 1, process) == SQLITE_OK);
    sqlite->busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

void store_run_end(struct store *store, int64_t process)
{
    struct error first = *status_last(); /* what ended the run is told afterwards */
    if (remove_run(store, process) != STATUS_OK)
        log_warning("%s", status_message());
    *status_last() = first;
}

static bool is_here(const char *server)
{
    char here[NAME] = "";
    gethostname(here, sizeof here - 1);
    return text_equal(server, here);
}

/* A process of this machine can be asked for; another's is believed for a while. */
static bool is_running(const char *server, int64_t process, int64_t silent_s, int64_t patience_s)
{
    if (is_here(server))
        return kill((pid_t)process, 0) == 0 || errno != ESRCH;
    return silent_s <= patience_s;
}

/* The first run of this machine that was killed; *row: is there one? */
static enum status find_killed(struct store *store, int64_t *process, char *started, bool *row)
{
    sqlite3_stmt *statement;
    TRY(store_prepare(store, "SELECT process, server, started FROM running ORDER BY started",
                      &statement));
    enum status status = store_step(store, statement, row);
    while (status == STATUS_OK && *row) {
        const char *server = store_text(statement, 1);
        *process = sqlite->column_int64(statement, 0);
        if (is_here(server) && !is_running(server, *process, 0, 0)) {
            snprintf(started, CLOCK_STAMP, "%s", store_text(statement, 2));
            break;
        }
        status = store_step(store, statement, row);
    }
    sqlite->finalize(statement);
    return status;
}

static void forget_killed(struct store *store)
{
    char started[CLOCK_STAMP];
    int64_t process;
    bool row;
    while (find_killed(store, &process, started, &row) == STATUS_OK && row &&
           remove_run(store, process) == STATUS_OK)
        ;
}

static enum status catch_up(void *context, const struct record *record, const char *line,
                            size_t length)
{
    struct text kept = {0};
    text_add_bytes(&kept, line, length);
    enum status status = text_done(&kept);
    if (status == STATUS_OK)
        status = store_keep(context, text_of(&kept), record);
    text_free(&kept);
    return status;
}

/* Is a line of the file one that the killed run may have left: not there yet, and no result from
 * before it began? */
static enum status is_left(struct store *store, const char *line, size_t length,
                           const char *started, bool *left)
{
    struct arena arena = {0};
    struct record record;
    bool known = false;
    enum status status = record_read(&arena, store->path, 0, line, length, &record);
    *left = status == STATUS_INPUT; /* cut, when it was killed */
    if (status == STATUS_OK)
        status = store_has(store, record.kind, line, length, &known);
    if (status == STATUS_OK && !known)
        *left = record.kind != RECORD_RESULT || (record.at && strcmp(record.at, started) >= 0);
    arena_free(&arena);
    return status == STATUS_INPUT ? STATUS_OK : status;
}

enum status store_catch_up(struct store *store, const char *path, const struct text *text)
{
    const char *begin = text_of(text), *end = begin + text->length, *from = end;
    char started[CLOCK_STAMP];
    int64_t process;
    bool left;
    TRY(find_killed(store, &process, started, &left));
    if (!left)
        return STATUS_OK;
    while (from > begin && left) {
        const char *line = from - 1; /* its newline, or its last character if it was cut */
        while (line > begin && line[-1] != '\n')
            line--;
        TRY(is_left(store, line, strcspn(line, "\n"), started, &left));
        from = left ? line : from;
    }
    TRY(record_read_whole(path, from, (size_t)(end - from), catch_up, store));
    forget_killed(store); /* if the store is locked, at another time: no line is filed twice */
    return STATUS_OK;
}

enum status store_running(struct store *store, int64_t patience_s, store_running_visit *visit,
                          void *context)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT process, server, started, done, total, current, left_s,"
                      " strftime('%s', 'now') - updated, curve FROM running ORDER BY started",
                      &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        bool known = sqlite->column_type(statement, 6) != SQLITE_NULL;
        struct store_running running = {
            .process = sqlite->column_int64(statement, 0),
            .server = store_text(statement, 1),
            .started = store_text(statement, 2),
            .done = sqlite->column_int64(statement, 3),
            .total = sqlite->column_int64(statement, 4),
            .current = store_text(statement, 5),
            .left_s = known ? sqlite->column_double(statement, 6) : (double)NAN,
            .curve =
                sqlite->column_type(statement, 8) == SQLITE_NULL ? NULL : store_text(statement, 8),
        };
        if (is_running(running.server, running.process, sqlite->column_int64(statement, 7),
                       patience_s))
            status = visit(context, &running);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite->finalize(statement);
    return status;
}
