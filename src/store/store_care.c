/* store_care.c: taking care of a store: removing records, checking it, giving room back. */
#include "record/names.h"
#include "store/store_inside.h"

#include <string.h>

/* Runs a statement with one number. */
static enum status run_with(struct store *store, const char *sql, int64_t number)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, sql, &statement));
    enum status status = sqlite->bind_int64(statement, 1, number) == SQLITE_OK
                             ? store_step(store, statement, &row)
                             : store_fail(store, "write");
    sqlite->finalize(statement);
    return status;
}

static enum status remove_both(struct store *store, int64_t id)
{
    TRY(run_with(store, "DELETE FROM result WHERE id = ?1", id));
    TRY(run_with(store, "DELETE FROM line WHERE id = ?1", id));
    if (sqlite->changes(store->db) == 0)
        FAIL(STATUS_INPUT, "%s: found no record %lld; to see which there are: prony store list%s",
             store->path, (long long)id, store->flag);
    store->columns.read = false;
    return run_with(store, "UPDATE removal SET count = count + ?1", 1);
}

enum status store_remove(struct store *store, int64_t id)
{
    bool alone = sqlite->get_autocommit(store->db) != 0;
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
    sqlite->finalize(statement);
    return status;
}

/* A line of the table, as it stands there. */
struct filed {
    int64_t id, hash;
    const char *kind, *text;
    size_t length;
    bool shipped;
};
typedef enum status filed_visit(void *context, const struct filed *filed);

static enum status visit_filed(struct store *store, filed_visit *visit, void *context)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, "SELECT id, hash, kind, text, shipped FROM line ORDER BY id",
                      &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        struct filed filed = {.id = sqlite->column_int64(statement, 0),
                              .hash = sqlite->column_int64(statement, 1),
                              .kind = store_text(statement, 2),
                              .text = store_text(statement, 3),
                              .shipped = sqlite->column_int(statement, 4) != 0};
        filed.length = (size_t)sqlite->column_bytes(statement, 3);
        status = visit(context, &filed);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite->finalize(statement);
    return status;
}

struct checking {
    struct store *store;
    store_problem_visit *visit;
    void *context;
    int64_t *lines;
};

static enum status tell(const struct checking *checking, int64_t id, const char *what,
                        const char *rest)
{
    struct text problem = {0};
    text_printf(&problem, "record %lld: %s %s", (long long)id, what, rest);
    enum status status = text_done(&problem);
    if (status == STATUS_OK)
        status = checking->visit(checking->context, text_of(&problem));
    text_free(&problem);
    return status;
}

/* Everything beside a line is made from it: it is made again and compared. */
static enum status check_index(const struct checking *checking, const struct filed *filed,
                               const struct record *record)
{
    const char *wrong;
    if (strcmp(filed->kind, record_kinds[record->kind]) != 0)
        return tell(checking, filed->id, "its kind is not", record_kinds[record->kind]);
    if (filed->hash != store_hash(filed->text, filed->length))
        return tell(checking, filed->id, "its hash", "does not fit its line");
    if (record->kind != RECORD_RESULT)
        return STATUS_OK;
    TRY(store_compare_row(checking->store, filed->id, record, filed->shipped, &wrong));
    return wrong ? tell(checking, filed->id, "its line does not give the column", wrong)
                 : STATUS_OK;
}

static enum status check_filed(void *context, const struct filed *filed)
{
    struct checking *checking = context;
    struct arena arena = {0};
    struct record record;
    enum status status =
        record_read(&arena, "record", (long)filed->id, filed->text, filed->length, &record);
    if (status == STATUS_INPUT)
        status = checking->visit(checking->context, status_message());
    else if (status == STATUS_OK)
        status = check_index(checking, filed, &record);
    arena_free(&arena);
    ++*checking->lines;
    return status;
}

enum status store_check(struct store *store, store_problem_visit *visit, void *context,
                        int64_t *lines)
{
    struct checking checking = {store, visit, context, lines};
    *lines = 0;
    TRY(visit_problems(store, "PRAGMA integrity_check(20)", "", visit, context));
    TRY(visit_problems(store,
                       "SELECT id FROM line WHERE kind = 'result' AND id NOT IN"
                       " (SELECT id FROM result)",
                       "no columns for record ", visit, context));
    TRY(visit_problems(store, "SELECT id FROM result WHERE id NOT IN (SELECT id FROM line)",
                       "columns without record ", visit, context));
    return visit_filed(store, check_filed, &checking);
}

static enum status repair_line(struct store *store, const struct filed *filed,
                               enum record_kind kind)
{
    sqlite3_stmt *put;
    bool row;
    TRY(store_prepare(store, "UPDATE line SET hash = ?1, kind = ?2 WHERE id = ?3", &put));
    int code = sqlite->bind_int64(put, 1, store_hash(filed->text, filed->length));
    code |= sqlite->bind_text(put, 2, record_kinds[kind], -1, SQLITE_STATIC);
    code |= sqlite->bind_int64(put, 3, filed->id);
    enum status status =
        code == SQLITE_OK ? store_step(store, put, &row) : store_fail(store, "write");
    sqlite->finalize(put);
    return status;
}

/* A line that is no record stays, without columns: check tells of it. */
static enum status repair_filed(void *context, const struct filed *filed)
{
    struct store *store = context;
    struct arena arena = {0};
    struct record record;
    enum status status =
        record_read(&arena, "record", (long)filed->id, filed->text, filed->length, &record);
    if (status == STATUS_INPUT)
        status = STATUS_OK;
    else if (status == STATUS_OK) {
        if (strcmp(filed->kind, record_kinds[record.kind]) != 0 ||
            filed->hash != store_hash(filed->text, filed->length))
            status = repair_line(store, filed, record.kind);
        if (status == STATUS_OK && record.kind == RECORD_RESULT)
            status = store_index(store, filed->id, &record, filed->shipped);
    }
    arena_free(&arena);
    return status;
}

enum status store_repair(struct store *store)
{
    TRY(store_begin(store));
    enum status status = store_execute(store, "REINDEX; DELETE FROM result", "repair the store");
    if (status == STATUS_OK)
        status = visit_filed(store, repair_filed, store);
    if (status == STATUS_OK)
        status = run_with(store, "UPDATE removal SET count = count + ?1", 1);
    if (status == STATUS_OK)
        status = store_commit(store);
    if (status != STATUS_OK)
        store_rollback(store);
    return status;
}
