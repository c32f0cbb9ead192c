/* store_add.c: filing records: a line as it came, and for results a row of the columns. */
#include "record/names.h"
#include "store/store_inside.h"

#include <math.h>
#include <string.h>

void store_each_column(column_visit *visit, void *context)
{
    static const char *const types[] = {[AXIS_TEXT] = "TEXT", [AXIS_INT] = "INTEGER"};
    for (int key = 0; key < KEY_COUNT; key++)
        visit(context, key_name(key), types[key_kind(key)]);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        visit(context, metrics[i].key, "REAL");
}

/* FNV-1a, the same bits as the signed integer that SQLite keeps. Lines with the same hash are
 * compared: it has to be quick, not unbreakable. */
int64_t store_hash(const char *line, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    int64_t number;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)line[i]) * 0x100000001b3u;
    memcpy(&number, &hash, sizeof number);
    return number;
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
    text_add(&sql, "INSERT OR REPLACE INTO result (id");
    store_each_column(add_name, &sql);
    text_add(&sql, ") VALUES (?");
    store_each_column(add_mark, &sql);
    text_add(&sql, ")");
    enum status status = text_done(&sql);
    if (status == STATUS_OK)
        status = store_prepare(store, text_of(&sql), &store->add_row);
    text_free(&sql);
    return status;
}

/* What a key's column holds of a record; "" is NULL. Columns of type INTEGER take the text as the
 * number it is. */
static const char *key_value(const struct record *record, bool shipped, int key,
                             char buffer[TITLE_TEXT])
{
    if (key < KEY_DERIVED)
        return point_get(&record->point, &axes[key], buffer);
    if (key == KEY_STATUS)
        return record_status_name(record->status);
    if (key == KEY_CHECK)
        return record_verdicts[record->check.verdict];
    if (key == KEY_SOURCE)
        return shipped ? "shipped" : "own";
    return record_derived(record, &deriveds[key - KEY_DERIVED], buffer);
}

static bool bind_row(sqlite3_stmt *row, int64_t id, const struct record *record, bool shipped)
{
    char buffer[TITLE_TEXT];
    int at = 1;
    bool bound = sqlite->bind_int64(row, at++, id) == SQLITE_OK;
    for (int key = 0; key < KEY_COUNT; key++, at++) {
        const char *value = key_value(record, shipped, key, buffer);
        bound &= (value[0] ? sqlite->bind_text(row, at, value, -1, SQLITE_TRANSIENT)
                           : sqlite->bind_null(row, at)) == SQLITE_OK;
    }
    for (size_t i = 0; i < METRIC_COUNT; i++, at++) {
        double value = record_metric(record, &metrics[i]);
        bound &= (isnan(value) ? sqlite->bind_null(row, at)
                               : sqlite->bind_double(row, at, value)) == SQLITE_OK;
    }
    return bound;
}

/* The first column of the row under `statement` that is not as the record has it. */
static const char *find_wrong(sqlite3_stmt *statement, const struct record *record, bool shipped)
{
    char buffer[TITLE_TEXT];
    int at = 1; /* after the id */
    for (int key = 0; key < KEY_COUNT; key++, at++)
        if (strcmp(store_text(statement, at), key_value(record, shipped, key, buffer)) != 0)
            return key_name(key);
    for (size_t i = 0; i < METRIC_COUNT; i++, at++) {
        double value = record_metric(record, &metrics[i]);
        bool none = sqlite->column_type(statement, at) == SQLITE_NULL;
        if (none != (bool)isnan(value) ||
            (!none && !(sqlite->column_double(statement, at) == value)))
            return metrics[i].key;
    }
    return NULL;
}

enum status store_compare_row(struct store *store, int64_t id, const struct record *record,
                              bool shipped, const char **wrong)
{
    bool row;
    *wrong = NULL;
    if (!store->get_row) {
        struct text sql = {0};
        text_add(&sql, "SELECT id");
        store_each_column(add_name, &sql);
        text_add(&sql, " FROM result WHERE id = ?1");
        enum status status = text_done(&sql);
        if (status == STATUS_OK)
            status = store_prepare(store, text_of(&sql), &store->get_row);
        text_free(&sql);
        TRY(status);
    }
    sqlite->bind_int64(store->get_row, 1, id);
    enum status status = store_step(store, store->get_row, &row);
    if (status == STATUS_OK && row)
        *wrong = find_wrong(store->get_row, record, shipped);
    sqlite->reset(store->get_row);
    return status;
}

enum status store_index(struct store *store, int64_t id, const struct record *record, bool shipped)
{
    bool row;
    if (!store->add_row)
        TRY(prepare_row(store));
    enum status status = bind_row(store->add_row, id, record, shipped)
                             ? store_step(store, store->add_row, &row)
                             : store_fail(store, "write");
    sqlite->reset(store->add_row);
    store->columns.read = false; /* there is more to read now */
    return status;
}

/* The id of this very line; 0 when it is not there. */
static enum status find_line(struct store *store, enum record_kind kind, const char *line,
                             size_t length, int64_t *id)
{
    bool row = false;
    if (!store->find_line)
        TRY(store_prepare(store, "SELECT id FROM line WHERE kind = ?1 AND hash = ?2 AND text = ?3",
                          &store->find_line));
    sqlite3_stmt *find = store->find_line;
    enum status status = STATUS_OK;
    if (sqlite->bind_text(find, 1, record_kinds[kind], -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite->bind_int64(find, 2, store_hash(line, length)) != SQLITE_OK ||
        sqlite->bind_text64(find, 3, line, length, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK)
        status = store_fail(store, "read");
    else
        status = store_step(store, find, &row);
    *id = status == STATUS_OK && row ? sqlite->column_int64(find, 0) : 0;
    sqlite->reset(find);
    sqlite->clear_bindings(find);
    return status;
}

enum status store_has(struct store *store, enum record_kind kind, const char *line, size_t length,
                      bool *out)
{
    int64_t id = 0;
    enum status status = find_line(store, kind, line, length, &id);
    *out = id != 0;
    return status;
}

static enum status add_line(struct store *store, const char *line, size_t length,
                            enum record_kind kind, int64_t *id)
{
    bool row;
    if (!store->add_line)
        TRY(store_prepare(store,
                          "INSERT INTO line (hash, kind, text, shipped) VALUES (?1, ?2, ?3, ?4)",
                          &store->add_line));
    sqlite3_stmt *add = store->add_line;
    enum status status;
    if (sqlite->bind_int64(add, 1, store_hash(line, length)) != SQLITE_OK ||
        sqlite->bind_text(add, 2, record_kinds[kind], -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite->bind_text64(add, 3, line, length, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK ||
        sqlite->bind_int(add, 4, store->shipping) != SQLITE_OK)
        status = store_fail(store, "write");
    else
        status = store_step(store, add, &row);
    *id = sqlite->last_insert_rowid(store->db);
    sqlite->reset(add);
    sqlite->clear_bindings(add);
    return status;
}

enum status store_file(struct store *store, const char *line, size_t length,
                       const struct record *record, int64_t *id, bool *added)
{
    TRY(find_line(store, record->kind, line, length, id));
    *added = *id == 0;
    if (!*added)
        return STATUS_OK;
    TRY(add_line(store, line, length, record->kind, id));
    return record->kind == RECORD_RESULT ? store_index(store, *id, record, store->shipping)
                                         : STATUS_OK;
}

enum status store_add(struct store *store, const char *line, size_t length,
                      const struct record *record, int64_t *id, bool *added)
{
    int64_t found = 0;
    bool is_new = false;
    while (length && strchr(" \t\r", line[length - 1])) /* a file that came from elsewhere */
        length--;
    bool alone = sqlite->get_autocommit(store->db) != 0;
    if (alone)
        TRY(store_begin(store));
    enum status status = store_file(store, line, length, record, &found, &is_new);
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
    return store_keep(context, line, record);
}

struct sink store_sink(struct store *store)
{
    return (struct sink){sink_write, store};
}
