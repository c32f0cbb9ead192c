/* store.c: the file: opening, bringing up to date, adding. Questions are store_query.c. */
#include "base/clock.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "record/names.h"
#include "store/store_inside.h"

#include <math.h>
#include <string.h>

extern const struct embedded store_schema[];

enum { APPLICATION_ID = 0x50524f4e, SCHEMA_VERSION = 1, BUSY_MS = 10000 };

enum status store_fail(const struct store *store, const char *attempt)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    const char *reason = sqlite3_errmsg(store->db);
    if (code == SQLITE_NOMEM)
        FAIL(STATUS_MEMORY, "%s: cannot %s: out of memory", store->path, attempt);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        FAIL(STATUS_INPUT,
             "%s: cannot %s: found %s, expected a store of prony; it is left as it is", store->path,
             attempt, reason);
    if (code == SQLITE_READONLY)
        FAIL(STATUS_IO,
             "%s: cannot %s: the file or its folder is read-only, and reading takes a lock beside "
             "it; copy it to where you may write",
             store->path, attempt);
    FAIL(STATUS_IO, "%s: cannot %s: %s", store->path, attempt, reason);
}

enum status store_prepare(const struct store *store, const char *sql, sqlite3_stmt **out)
{
    if (sqlite3_prepare_v2(store->db, sql, -1, out, NULL) != SQLITE_OK)
        return store_fail(store, "read the store");
    return STATUS_OK;
}

enum status store_step(const struct store *store, sqlite3_stmt *statement, bool *row)
{
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return store_fail(store, sqlite3_stmt_readonly(statement) ? "read" : "write");
    return STATUS_OK;
}

const char *store_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

static enum status execute(const struct store *store, const char *sql, const char *attempt)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
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
static enum status identify(const struct store *store, bool *empty)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store,
                      "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                      " FROM pragma_application_id, pragma_user_version",
                      &statement));
    enum status status = store_step(store, statement, &row);
    int64_t application = sqlite3_column_int64(statement, 0);
    int64_t version = sqlite3_column_int64(statement, 1);
    int64_t tables = sqlite3_column_int64(statement, 2);
    sqlite3_finalize(statement);
    TRY(status);
    *empty = application == 0 && tables == 0;
    if (!*empty && application != APPLICATION_ID)
        FAIL(STATUS_INPUT, "%s: found another program's SQLite file, expected a store of prony",
             store->path);
    if (version > SCHEMA_VERSION)
        FAIL(STATUS_INPUT,
             "%s: found a store of version %lld, expected at most %d: made by a newer prony",
             store->path, (long long)version, SCHEMA_VERSION);
    return STATUS_OK;
}

/* Calls visit(context, name, SQL type) for every column that record/ wants of a result. */
typedef void column_visit(void *context, const char *name, const char *type);
static void each_column(column_visit *visit, void *context)
{
    static const char *const types[] = {[AXIS_TEXT] = "TEXT", [AXIS_INT] = "INTEGER"};
    for (size_t i = 0; i < AXIS_COUNT; i++)
        visit(context, axes[i].key, types[axes[i].kind]);
    for (size_t i = 0; i < DERIVED_COUNT; i++)
        visit(context, deriveds[i].key, types[deriveds[i].kind]);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        visit(context, metrics[i].key, "REAL");
}

struct missing {
    sqlite3 *db;
    struct text sql; /* that adds the columns which are not there */
};

static void see_column(void *context, const char *name, const char *type)
{
    struct missing *missing = context;
    if (sqlite3_table_column_metadata(missing->db, NULL, "result", name, NULL, NULL, NULL, NULL,
                                      NULL) != SQLITE_OK)
        text_printf(&missing->sql, "ALTER TABLE result ADD COLUMN \"%s\" %s;\n", name, type);
}

static enum status add_row(struct store *store, int64_t id, const struct record *record);

/* Fills every column of every result anew from its line. */
static enum status index_again(struct store *store)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, "SELECT id, text FROM line WHERE kind = 'result'", &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        struct arena arena = {0};
        struct record record;
        int64_t id = sqlite3_column_int64(statement, 0);
        const char *text = store_text(statement, 1);
        status = record_read(&arena, store->path, (long)id, text, strlen(text), &record);
        if (status == STATUS_OK)
            status = add_row(store, id, &record);
        arena_free(&arena);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite3_finalize(statement);
    return status;
}

/* Inside a transaction: the fixed tables where there are none, and the columns that are missing. */
static enum status bring_up_to_date(struct store *store)
{
    bool empty;
    TRY(identify(store, &empty)); /* again: another process may have been quicker */
    if (empty)
        TRY(execute(store, (const char *)store_schema[0].bytes, "make the store"));
    struct missing missing = {.db = store->db};
    each_column(see_column, &missing);
    enum status status = text_done(&missing.sql);
    if (status == STATUS_OK && missing.sql.length) {
        status = execute(store, text_of(&missing.sql), "add columns");
        if (status == STATUS_OK && !empty)
            status = index_again(store);
    }
    text_free(&missing.sql);
    return status;
}

static enum status is_complete(const struct store *store, bool *complete)
{
    struct missing missing = {.db = store->db};
    each_column(see_column, &missing);
    *complete = missing.sql.length == 0;
    enum status status = text_done(&missing.sql);
    text_free(&missing.sql);
    return status;
}

/* Switches the file to a write-ahead log. SQLite does not wait for a lock here as it does
 * elsewhere: when two processes make the same store at once, one of them has to come again. */
static enum status use_log(const struct store *store)
{
    uint64_t deadline = clock_ns() + (uint64_t)BUSY_MS * 1000000;
    static const char sql[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
    while (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        if ((sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY || clock_ns() > deadline)
            return store_fail(store, "write the store");
        clock_sleep_ns(5000000);
    }
    return STATUS_OK;
}

static enum status prepare_file(struct store *store, enum store_access access)
{
    bool empty, complete = false;
    sqlite3_busy_timeout(store->db, BUSY_MS);
    TRY(identify(store, &empty));
    if (empty && access == STORE_READ)
        FAIL(STATUS_INPUT, "%s: found an empty file, expected a store of prony", store->path);
    if (access == STORE_WRITE)
        TRY(use_log(store));
    if (!empty)
        TRY(is_complete(store, &complete));
    if (!complete) {
        TRY(store_begin(store));
        enum status status = bring_up_to_date(store);
        if (status == STATUS_OK)
            status = store_commit(store);
        else
            store_rollback(store);
        TRY(status);
    }
    if (access == STORE_READ)
        return execute(store, "PRAGMA query_only = ON", "read the store");
    return STATUS_OK;
}

static enum status open_file(struct store *store, enum store_access access)
{
    if (!store->path[0]) /* which to SQLite is a file that vanishes */
        FAIL(STATUS_INPUT, "the store: found an empty name, expected the path of a file");
    if (access == STORE_READ && !file_exists(store->path))
        FAIL(STATUS_INPUT, "%s: there is no store here yet; \"prony store add\" makes one",
             store->path);
    if (access == STORE_WRITE)
        TRY(make_folder_of(store->path));
    int create = access == STORE_WRITE ? SQLITE_OPEN_CREATE : 0;
    int code = sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | create, NULL);
    if (code != SQLITE_OK) {
        if (!store->db)
            FAIL(STATUS_MEMORY, "%s: cannot open: out of memory", store->path);
        return store_fail(store, "open");
    }
    return prepare_file(store, access);
}

enum status store_open(const char *path, enum store_access access, struct store **out)
{
    struct store *store;
    enum status status;
    *out = NULL;
    NEED(store = mem_alloc(sizeof *store));
    NEED_OR(failed, store->path = mem_copy_text(path));
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
    sqlite3_finalize(store->find_line);
    sqlite3_finalize(store->add_line);
    sqlite3_finalize(store->add_row);
    sqlite3_close(store->db);
    mem_free(store->path);
    mem_free(store);
}

enum status store_begin(struct store *store)
{
    return execute(store, "BEGIN IMMEDIATE", "write the store");
}

enum status store_commit(struct store *store)
{
    return execute(store, "COMMIT", "write the store");
}

void store_rollback(struct store *store)
{
    if (!sqlite3_get_autocommit(store->db) &&
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        log_warning("%s: cannot roll back: %s", store->path, sqlite3_errmsg(store->db));
}

/* FNV-1a. Lines with the same hash are compared: it has to be quick, not unbreakable. */
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t hash_more(uint64_t hash, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

/* The same bits as the signed integer SQLite keeps. */
static int bind_hash(sqlite3_stmt *statement, int at, uint64_t hash)
{
    int64_t number;
    memcpy(&number, &hash, sizeof number);
    return sqlite3_bind_int64(statement, at, number);
}

static uint64_t configuration_of(const struct point *point)
{
    uint64_t hash = hash_start;
    char buffer[POINT_NUMBER];
    for (size_t i = 0; i < AXIS_COUNT; i++) {
        if (axes[i].where & AXIS_FOUND)
            continue;
        const char *value = point_get(point, &axes[i], buffer);
        hash = hash_more(hash, axes[i].key, strlen(axes[i].key) + 1);
        hash = hash_more(hash, value, strlen(value) + 1);
    }
    return hash;
}

static void add_name(void *context, const char *name, const char *type)
{
    (void)type;
    text_printf(context, ", \"%s\"", name);
}

static void add_mark(void *context, const char *name, const char *type)
{
    (void)name;
    (void)type;
    text_add(context, ", ?");
}

static enum status prepare_row(struct store *store)
{
    struct text sql = {0};
    text_add(&sql, "INSERT OR REPLACE INTO result (id, status, verdict, configuration");
    each_column(add_name, &sql);
    text_add(&sql, ") VALUES (?, ?, ?, ?");
    each_column(add_mark, &sql);
    text_add(&sql, ")");
    enum status status = text_done(&sql);
    if (status == STATUS_OK)
        status = store_prepare(store, text_of(&sql), &store->add_row);
    text_free(&sql);
    return status;
}

/* Empty is NULL; columns of type INTEGER take the text as the number it is. */
static bool bind_value(sqlite3_stmt *statement, int at, const char *value)
{
    int code = value[0] ? sqlite3_bind_text(statement, at, value, -1, SQLITE_TRANSIENT)
                        : sqlite3_bind_null(statement, at);
    return code == SQLITE_OK;
}

static bool bind_row(sqlite3_stmt *row, int64_t id, const struct record *record)
{
    char buffer[POINT_NUMBER];
    int at = 1;
    bool bound = sqlite3_bind_int64(row, at++, id) == SQLITE_OK;
    bound &= bind_value(row, at++, record_status_name(record->status));
    bound &= bind_value(row, at++, record_verdicts[record->check.verdict]);
    bound &= bind_hash(row, at++, configuration_of(&record->point)) == SQLITE_OK;
    for (size_t i = 0; i < AXIS_COUNT; i++)
        bound &= bind_value(row, at++, point_get(&record->point, &axes[i], buffer));
    for (size_t i = 0; i < DERIVED_COUNT; i++)
        bound &= bind_value(row, at++, record_derived(record, &deriveds[i], buffer));
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        double value = record_metric(record, &metrics[i]);
        bound &= (isnan(value) ? sqlite3_bind_null(row, at)
                               : sqlite3_bind_double(row, at, value)) == SQLITE_OK;
        at++;
    }
    return bound;
}

static enum status add_row(struct store *store, int64_t id, const struct record *record)
{
    bool row;
    if (!store->add_row)
        TRY(prepare_row(store));
    enum status status = bind_row(store->add_row, id, record)
                             ? store_step(store, store->add_row, &row)
                             : store_fail(store, "write");
    sqlite3_reset(store->add_row);
    return status;
}

/* The id of this very line; 0 when it is not there. */
static enum status find_line(struct store *store, const char *line, size_t length, int64_t *id)
{
    bool row = false;
    if (!store->find_line)
        TRY(store_prepare(store, "SELECT id FROM line WHERE hash = ?1 AND text = ?2",
                          &store->find_line));
    sqlite3_stmt *find = store->find_line;
    enum status status = STATUS_OK;
    if (bind_hash(find, 1, hash_more(hash_start, line, length)) != SQLITE_OK ||
        sqlite3_bind_text64(find, 2, line, length, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK)
        status = store_fail(store, "read");
    else
        status = store_step(store, find, &row);
    *id = status == STATUS_OK && row ? sqlite3_column_int64(find, 0) : 0;
    sqlite3_reset(find);
    sqlite3_clear_bindings(find);
    return status;
}

static enum status add_line(struct store *store, const char *line, size_t length,
                            enum record_kind kind, int64_t *id)
{
    bool row;
    if (!store->add_line)
        TRY(store_prepare(store, "INSERT INTO line (hash, kind, text) VALUES (?1, ?2, ?3)",
                          &store->add_line));
    sqlite3_stmt *add = store->add_line;
    enum status status;
    if (bind_hash(add, 1, hash_more(hash_start, line, length)) != SQLITE_OK ||
        sqlite3_bind_text(add, 2, record_kinds[kind], -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text64(add, 3, line, length, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK)
        status = store_fail(store, "write");
    else
        status = store_step(store, add, &row);
    *id = sqlite3_last_insert_rowid(store->db);
    sqlite3_reset(add);
    sqlite3_clear_bindings(add);
    return status;
}

/* Inside a transaction. */
static enum status add_both(struct store *store, const char *line, size_t length,
                            const struct record *record, int64_t *id, bool *added)
{
    TRY(find_line(store, line, length, id));
    *added = *id == 0;
    if (!*added)
        return STATUS_OK;
    TRY(add_line(store, line, length, record->kind, id));
    return record->kind == RECORD_RESULT ? add_row(store, *id, record) : STATUS_OK;
}

enum status store_add(struct store *store, const char *line, size_t length,
                      const struct record *record, int64_t *id, bool *added)
{
    int64_t found = 0;
    bool is_new = false;
    while (length && strchr(" \t\r", line[length - 1])) /* a file that came from elsewhere */
        length--;
    bool alone = sqlite3_get_autocommit(store->db) != 0;
    if (alone)
        TRY(store_begin(store));
    enum status status = add_both(store, line, length, record, &found, &is_new);
    if (alone && status == STATUS_OK)
        status = store_commit(store);
    if (alone && status != STATUS_OK)
        store_rollback(store);
    if (id)
        *id = found;
    if (added)
        *added = status == STATUS_OK && is_new;
    return status;
}

static enum status sink_write(void *context, const char *line, const struct record *record)
{
    return store_add(context, line, strlen(line), record, NULL, NULL);
}

struct sink store_sink(struct store *store)
{
    return (struct sink){sink_write, store};
}
