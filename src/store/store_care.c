/* store_care.c: taking care of a store: removing records, checking it, giving room back. */
#include "store/store_inside.h"

/* Runs a statement with one number. */
static enum status run_with(struct store *store, const char *sql, int64_t number)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, sql, &statement));
    enum status status = sqlite3_bind_int64(statement, 1, number) == SQLITE_OK
                             ? store_step(store, statement, &row)
                             : store_fail(store, "write");
    sqlite3_finalize(statement);
    return status;
}

static enum status remove_both(struct store *store, int64_t id)
{
    TRY(run_with(store, "DELETE FROM result WHERE id = ?1", id));
    TRY(run_with(store, "DELETE FROM line WHERE id = ?1", id));
    if (sqlite3_changes(store->db) == 0)
        FAIL(STATUS_INPUT, "%s: found no record %lld; \"prony store list\" names them", store->path,
             (long long)id);
    store->columns.read = false;
    return run_with(store, "UPDATE removal SET count = count + ?1", 1);
}

enum status store_remove(struct store *store, int64_t id)
{
    bool alone = sqlite3_get_autocommit(store->db) != 0;
    if (alone)
        TRY(store_begin(store));
    enum status status = remove_both(store, id);
    if (alone && status == STATUS_OK)
        status = store_commit(store);
    if (alone && status != STATUS_OK)
        store_rollback(store);
    return status;
}

enum status store_vacuum(struct store *store)
{
    TRY(store_execute(store, "VACUUM", "give room back"));
    return store_execute(store, "PRAGMA wal_checkpoint(TRUNCATE)", "give room back");
}

/* What a question about the file finds, each row a problem; "ok" is none. */
static enum status visit_problems(struct store *store, const char *sql, const char *what,
                                  store_problem_visit *visit, void *context)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, sql, &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        const char *found = store_text(statement, 0);
        struct text problem = {0};
        text_printf(&problem, "%s%s", what, found);
        if (!text_equal(found, "ok"))
            status = visit(context, text_of(&problem));
        text_free(&problem);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite3_finalize(statement);
    return status;
}

struct checking {
    store_problem_visit *visit;
    void *context;
    int64_t *lines;
};

static enum status check_line(void *context, int64_t id, const char *line, size_t length)
{
    struct checking *checking = context;
    struct arena arena = {0};
    struct record record;
    enum status status = record_read(&arena, "record", (long)id, line, length, &record);
    arena_free(&arena);
    ++*checking->lines;
    return status == STATUS_INPUT ? checking->visit(checking->context, status_message()) : status;
}

enum status store_check(struct store *store, store_problem_visit *visit, void *context,
                        int64_t *lines)
{
    struct checking checking = {visit, context, lines};
    *lines = 0;
    TRY(visit_problems(store, "PRAGMA integrity_check(20)", "", visit, context));
    TRY(visit_problems(store,
                       "SELECT id FROM line WHERE kind = 'result' AND id NOT IN"
                       " (SELECT id FROM result)",
                       "no columns for record ", visit, context));
    TRY(visit_problems(store, "SELECT id FROM result WHERE id NOT IN (SELECT id FROM line)",
                       "columns without record ", visit, context));
    return store_export(store, NULL, check_line, &checking);
}
