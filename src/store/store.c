/* store.c: the file: opening and bringing up to date. Adding is store_add.c, questions are
 * store_where.c, store_chart.c and on. */
#include "base/clock.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/store_inside.h"

#include <string.h>

extern const struct embedded store_schema[], shipped_results[];

enum { APPLICATION_ID = 0x50524f4e, SCHEMA_VERSION = 2 };

enum status store_fail(struct store *store, const char *attempt)
{
    int code = sqlite->errcode(store->db) & 0xff;
    const char *reason = sqlite->errmsg(store->db);
    store->locked = code == SQLITE_BUSY;
    if (store->locked)
        FAIL(STATUS_IO, "%s: cannot %s: another program has locked it; stop that one, or try later",
             store->path, attempt);
    if (code == SQLITE_NOMEM)
        FAIL(STATUS_MEMORY, "%s: cannot %s: out of memory", store->path, attempt);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        FAIL(STATUS_INPUT,
             "%s: cannot %s: found %s, expected a store of prony; it is left as it is", store->path,
             attempt, reason);
    if (code == SQLITE_TOOBIG)
        FAIL(STATUS_INPUT, "%s: cannot %s: found a record of more than %d bytes", store->path,
             attempt, RECORD_BYTES);
    if (code == SQLITE_READONLY)
        FAIL(STATUS_IO,
             "%s: cannot %s: the file or its folder is read-only, and reading takes a lock beside "
             "it; copy it to where you may write",
             store->path, attempt);
    int system = code == SQLITE_CANTOPEN ? sqlite->system_errno(store->db) : 0;
    FAIL(STATUS_IO, "%s: cannot %s: %s", store->path, attempt, system ? strerror(system) : reason);
}

enum status store_prepare(struct store *store, const char *sql, sqlite3_stmt **out)
{
    if (sqlite->prepare_v2(store->db, sql, -1, out, NULL) != SQLITE_OK)
        return store_fail(store, "read the store");
    return STATUS_OK;
}

enum status store_step(struct store *store, sqlite3_stmt *statement, bool *row)
{
    int code = sqlite->step(statement);
    *row = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return store_fail(store, sqlite->stmt_readonly(statement) ? "read" : "write");
    return STATUS_OK;
}

const char *store_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite->column_text(statement, column);
    return text ? (const char *)text : "";
}

enum status store_execute(struct store *store, const char *sql, const char *attempt)
{
    if (sqlite->exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return store_fail(store, attempt);
    return STATUS_OK;
}

enum status store_path(struct text *out)
{
    TRY(file_data_folder(out));
    text_add(out, "/store.db");
    return text_done(out);
}

/* The folder of a path, made if need be. */
static enum status make_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct text folder = {0};
    if (!slash || slash == path)
        return STATUS_OK;
    text_add_bytes(&folder, path, (size_t)(slash - path));
    enum status status = text_done(&folder);
    if (status == STATUS_OK)
        status = file_make_folder(text_of(&folder));
    text_free(&folder);
    return status;
}

/* Is this file ours, or empty and so to become ours? Reads only, and in one statement: another
 * process may be making it at this moment. */
static enum status identify(struct store *store, bool *empty, int64_t *version)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                      " FROM pragma_application_id, pragma_user_version",
                      &statement));
    enum status status = store_step(store, statement, &row);
    int64_t application = sqlite->column_int64(statement, 0);
    *version = sqlite->column_int64(statement, 1);
    int64_t tables = sqlite->column_int64(statement, 2);
    sqlite->finalize(statement);
    TRY(status);
    *empty = application == 0 && tables == 0;
    if (!*empty && application != APPLICATION_ID)
        FAIL(STATUS_INPUT, "%s: found another program's SQLite file, expected a store of prony",
             store->path);
    if (*version > SCHEMA_VERSION)
        FAIL(STATUS_INPUT,
             "%s: found a store of version %lld, expected at most %d: made by a newer prony",
             store->path, (long long)*version, SCHEMA_VERSION);
    return STATUS_OK;
}

/* A file may come from anywhere: a view in the place of a table need never end, and a trigger does
 * more than it was asked to. So there are tables and indexes of ours and nothing else. */
static enum status check_schema(struct store *store)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT type, name FROM sqlite_schema WHERE type NOT IN ('table', 'index')"
                      " OR rootpage < 1"
                      " OR tbl_name NOT IN ('line', 'result', 'removal', 'running') LIMIT 1",
                      &statement));
    enum status status = store_step(store, statement, &row);
    if (status == STATUS_OK && row)
        status = status_fail(STATUS_INPUT, __FILE__, __LINE__,
                             "%s: found the %.20s \"%.80s\", expected only the tables of a store",
                             store->path, store_text(statement, 0), store_text(statement, 1));
    sqlite->finalize(statement);
    return status;
}

/* What is in the file is data: no function of it is called, and nothing takes more memory than a
 * record does. */
static enum status guard(struct store *store)
{
    enum { ROW = 65536 }; /* the columns beside a line */
    sqlite->limit(store->db, SQLITE_LIMIT_LENGTH, RECORD_BYTES + ROW);
    if (sqlite->db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != SQLITE_OK ||
        sqlite->db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) != SQLITE_OK)
        return store_fail(store, "open");
    return STATUS_OK;
}

struct missing {
    sqlite3 *db;
    struct text sql; /* that adds the columns which are not there */
};

static void see_column(void *context, const char *name, const char *type)
{
    struct missing *missing = context;
    if (sqlite->table_column_metadata(missing->db, NULL, "result", name, NULL, NULL, NULL, NULL,
                                      NULL) != SQLITE_OK)
        text_printf(&missing->sql, "ALTER TABLE result ADD COLUMN \"%s\" %s;\n", name, type);
}

static void find_missing(struct missing *missing)
{
    store_each_column(see_column, missing);
    if (sqlite->table_column_metadata(missing->db, NULL, "running", "curve", NULL, NULL, NULL, NULL,
                                      NULL) != SQLITE_OK)
        text_add(&missing->sql, "ALTER TABLE running ADD COLUMN curve TEXT;\n");
}

/* Fills every column of every result anew from its line. */
static enum status index_again(struct store *store)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT id, text, shipped FROM line WHERE id IN"
                      " (SELECT id FROM line WHERE kind = 'result')",
                      &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        struct arena arena = {0};
        struct record record;
        int64_t id = sqlite->column_int64(statement, 0);
        const char *text = store_text(statement, 1);
        status = record_read(&arena, store->path, (long)id, text, strlen(text), &record);
        if (status == STATUS_OK)
            status = store_index(store, id, &record, sqlite->column_int(statement, 2) != 0);
        arena_free(&arena);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite->finalize(statement);
    return status;
}

/* What version 2 has that version 1 had not. "result" is made anew. */
static const char upgrade[] = "ALTER TABLE line ADD COLUMN shipped INTEGER NOT NULL DEFAULT 0;"
                              "DROP TABLE result;";

/* The statements of the schema that make what a store of version 1 lacks. */
static enum status upgrade_file(struct store *store)
{
    const char *schema = (const char *)store_schema[0].bytes;
    TRY(store_execute(store, upgrade, "bring the store up to date"));
    TRY(store_execute(store, strstr(schema, "CREATE TABLE result"), "bring the store up to date"));
    return store_execute(store, "PRAGMA user_version = 2", "bring the store up to date");
}

static enum status ship_record(void *context, const struct record *record, const char *line,
                               size_t length)
{
    struct store *store = context;
    return store_file(store, line, length, record, &(int64_t){0}, &(bool){0});
}

/* The results that come with prony. */
static enum status ship(struct store *store)
{
    enum status status = STATUS_OK;
    store->shipping = true;
    for (const struct embedded *file = shipped_results; file->name && status == STATUS_OK; file++)
        status = record_read_all(file->name, (const char *)file->bytes, file->length, ship_record,
                                 store);
    store->shipping = false;
    return status;
}

/* Inside a transaction: the fixed tables where there are none, and the columns that are missing. */
static enum status bring_up_to_date(struct store *store, enum store_access access)
{
    bool empty;
    int64_t version;
    TRY(identify(store, &empty, &version)); /* again: another process may have been quicker */
    if (empty)
        TRY(store_execute(store, (const char *)store_schema[0].bytes, "make the store"));
    else if (version < SCHEMA_VERSION)
        TRY(upgrade_file(store));
    struct missing missing = {.db = store->db};
    find_missing(&missing);
    enum status status = text_done(&missing.sql);
    if (status == STATUS_OK && missing.sql.length) {
        status = store_execute(store, text_of(&missing.sql), "add columns");
        if (status == STATUS_OK && !empty)
            status = index_again(store);
    }
    text_free(&missing.sql);
    if (status == STATUS_OK && empty && access == STORE_SHIPPED)
        status = ship(store);
    return status;
}

static enum status is_complete(struct store *store, bool *complete)
{
    struct missing missing = {.db = store->db};
    find_missing(&missing);
    *complete = missing.sql.length == 0;
    enum status status = text_done(&missing.sql);
    text_free(&missing.sql);
    return status;
}

/* Switches the file to a write-ahead log. SQLite does not wait for a lock here as it does
 * elsewhere: when two processes make the same store at once, one of them has to come again. */
static enum status use_log(struct store *store)
{
    uint64_t deadline = clock_ns() + (uint64_t)STORE_BUSY_MS * 1000000;
    static const char sql[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
    while (sqlite->exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        if ((sqlite->errcode(store->db) & 0xff) != SQLITE_BUSY || clock_ns() > deadline)
            return store_fail(store, "write the store");
        clock_sleep_ns(5000000);
    }
    return STATUS_OK;
}

/* Of a store that is opened to be changed: its index, and the records that wait beside it. */
static enum status prepare_changes(struct store *store)
{
    const char *schema = (const char *)store_schema[0].bytes;
    TRY(store_execute(store, strstr(schema, "CREATE INDEX"), "write the store"));
    sqlite->busy_timeout(store->db, STORE_WAIT_MS); /* records can go on waiting */
    enum status status = store_settle(store);
    sqlite->busy_timeout(store->db, STORE_BUSY_MS);
    return status;
}

static enum status prepare_file(struct store *store, enum store_access access)
{
    bool empty, complete = false;
    int64_t version;
    sqlite->busy_timeout(store->db, STORE_BUSY_MS);
    TRY(guard(store));
    TRY(identify(store, &empty, &version));
    TRY(check_schema(store));
    if (empty && access < STORE_WRITE)
        FAIL(STATUS_INPUT, "%s: found an empty file, expected a store of prony", store->path);
    if (access != STORE_READ)
        TRY(use_log(store));
    if (!empty && version == SCHEMA_VERSION)
        TRY(is_complete(store, &complete));
    if (!complete) {
        TRY(store_begin(store));
        enum status status = bring_up_to_date(store, access);
        if (status == STATUS_OK)
            status = store_commit(store);
        else
            store_rollback(store);
        TRY(status);
    }
    if (access == STORE_READ)
        return store_execute(store, "PRAGMA query_only = ON", "read the store");
    return prepare_changes(store);
}

static enum status make_flag(const char *path, char **out)
{
    struct text words = {0};
    text_add(&words, " --store ");
    text_add_word(&words, path);
    enum status status = text_done(&words);
    if (status == STATUS_OK)
        *out = mem_copy_text(text_of(&words));
    text_free(&words);
    TRY(status);
    NEED(*out);
    return STATUS_OK;
}

static enum status open_file(struct store *store, enum store_access access)
{
    if (!store->path[0]) /* which to SQLite is a file that vanishes */
        FAIL(STATUS_INPUT, "the store: found an empty name, expected the path of a file");
    bool makes = access >= STORE_WRITE;
    if (!makes && !file_exists(store->path))
        FAIL(STATUS_INPUT, "%s: there is no store here yet; to make one: prony store create%s",
             store->path, store->flag);
    if (makes)
        TRY(make_folder_of(store->path));
    int create = makes ? SQLITE_OPEN_CREATE : 0;
    int code = sqlite->open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | create, NULL);
    if (code != SQLITE_OK) {
        if (!store->db)
            FAIL(STATUS_MEMORY, "%s: cannot open: out of memory", store->path);
        if (makes) /* SQLite tries again to read only, and tells why that failed */
            TRY(file_try_append(store->path));
        return store_fail(store, "open");
    }
    return prepare_file(store, access);
}

enum status store_open(const char *path, enum store_access access, struct store **out)
{
    struct store *store;
    enum status status;
    *out = NULL;
    TRY(sqlite_load());
    NEED(store = mem_alloc(sizeof *store));
    NEED_OR(failed, store->path = mem_copy_text(path));
    TRY_OR(failed, make_flag(path, &store->flag));
    TRY_OR(failed, open_file(store, access));
    *out = store;
    return STATUS_OK;
failed:
    store_close(store);
    return status;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    sqlite->finalize(store->find_line);
    sqlite->finalize(store->add_line);
    sqlite->finalize(store->add_row);
    sqlite->finalize(store->get_row);
    sqlite->finalize(store->get_line);
    sqlite->finalize(store->ask_version);
    sqlite->finalize(store->ask_change);
    columns_clear(&store->columns);
    sqlite->close(store->db);
    mem_free(store->path);
    mem_free(store->flag);
    mem_free(store);
}

const char *store_flag(const struct store *store)
{
    return store->flag;
}

void store_watch(struct store *store, bool (*stop)(void *context), void *context)
{
    store->stop = stop;
    store->stop_context = context;
}

enum status store_go_on(struct store *store)
{
    enum { EVERY = 64 }; /* asking takes a microsecond, a piece often less */
    if (store->stop && ++store->asked % EVERY == 0 && store->stop(store->stop_context))
        FAIL(STATUS_INTERRUPTED, "%s: the question was withdrawn", store->path);
    return STATUS_OK;
}

enum status store_begin(struct store *store)
{
    return store_execute(store, "BEGIN IMMEDIATE", "write the store");
}

enum status store_commit(struct store *store)
{
    return store_execute(store, "COMMIT", "write the store");
}

void store_rollback(struct store *store)
{
    if (!sqlite->get_autocommit(store->db) &&
        sqlite->exec(store->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        log_warning("%s: cannot roll back: %s", store->path, sqlite->errmsg(store->db));
}
