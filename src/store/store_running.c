/* store_running.c: which benches add records at this moment, and how far they are. */
#include "base/log.h"
#include "store/store_inside.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 256 };

static enum status step_once(struct store *store, sqlite3_stmt *statement, bool bound)
{
    bool row;
    enum status status = bound ? store_step(store, statement, &row) : store_fail(store, "write");
    sqlite3_finalize(statement);
    return status;
}

enum status store_run(struct store *store, const struct store_running *running)
{
    sqlite3_stmt *put;
    TRY(store_prepare(store,
                      "INSERT OR REPLACE INTO running (process, server, started, updated, done,"
                      " total, current, left_s) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                      &put));
    int code = sqlite3_bind_int64(put, 1, running->process);
    code |= sqlite3_bind_text(put, 2, running->server, -1, SQLITE_STATIC);
    code |= sqlite3_bind_text(put, 3, running->started, -1, SQLITE_STATIC);
    code |= sqlite3_bind_int64(put, 4, (int64_t)time(NULL));
    code |= sqlite3_bind_int64(put, 5, running->done);
    code |= sqlite3_bind_int64(put, 6, running->total);
    code |= sqlite3_bind_text(put, 7, running->current, -1, SQLITE_STATIC);
    if (!isnan(running->left_s))
        code |= sqlite3_bind_double(put, 8, running->left_s);
    sqlite3_busy_timeout(store->db, STORE_WAIT_MS); /* a bench does not wait long for this */
    enum status status = step_once(store, put, code == SQLITE_OK);
    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

void store_run_end(struct store *store, int64_t process)
{
    sqlite3_stmt *remove;
    enum status status = store_prepare(store, "DELETE FROM running WHERE process = ?1", &remove);
    if (status == STATUS_OK)
        status = step_once(store, remove, sqlite3_bind_int64(remove, 1, process) == SQLITE_OK);
    if (status != STATUS_OK)
        log_warning("%s", status_message());
}

/* A process of this machine can be asked for; another's is believed for a while. */
static bool is_running(const char *server, int64_t process, int64_t silent_s, int64_t patience_s)
{
    char here[NAME] = "";
    gethostname(here, sizeof here - 1);
    if (text_equal(server, here))
        return kill((pid_t)process, 0) == 0 || errno != ESRCH;
    return silent_s <= patience_s;
}

enum status store_running(struct store *store, int64_t patience_s, store_running_visit *visit,
                          void *context)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT process, server, started, done, total, current, left_s,"
                      " strftime('%s', 'now') - updated FROM running ORDER BY started",
                      &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        bool known = sqlite3_column_type(statement, 6) != SQLITE_NULL;
        struct store_running running = {
            .process = sqlite3_column_int64(statement, 0),
            .server = store_text(statement, 1),
            .started = store_text(statement, 2),
            .done = sqlite3_column_int64(statement, 3),
            .total = sqlite3_column_int64(statement, 4),
            .current = store_text(statement, 5),
            .left_s = known ? sqlite3_column_double(statement, 6) : (double)NAN,
        };
        if (is_running(running.server, running.process, sqlite3_column_int64(statement, 7),
                       patience_s))
            status = visit(context, &running);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite3_finalize(statement);
    return status;
}
