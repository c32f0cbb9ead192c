/* trace_nsys.c: what Nsight Systems exports as SQLite (nsys export -t sqlite).
 *
 * The tables are CUPTI's records. Only real tables are read, never views, so that a file cannot
 * make us compute. It is opened as one that nobody changes, and nothing is written beside it.
 * Columns that a version of the schema lacks read as 0. */
#include "base/load/sqlite.h"
#include "trace/trace_inside.h"

#include <stdio.h>
#include <string.h>

struct nsys {
    const char *path;
    struct trace *trace;
    sqlite3 *db;
};

static enum status fail(const struct nsys *nsys)
{
    FAIL(STATUS_INPUT, "%s: %s, expected a file of Nsight Systems", nsys->path,
         sqlite->errmsg(nsys->db));
}

/* "file:PATH?immutable=1", with what a URI would read otherwise as its number. */
static enum status open_file(struct nsys *nsys)
{
    struct text uri = {0};
    text_add(&uri, "file:");
    for (const char *c = nsys->path; *c; c++)
        if (strchr("%?#", *c))
            text_printf(&uri, "%%%02X", (unsigned)(unsigned char)*c);
        else
            text_add_char(&uri, *c);
    text_add(&uri, "?immutable=1");
    enum status status = text_done(&uri);
    if (status == STATUS_OK &&
        sqlite->open_v2(text_of(&uri), &nsys->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) !=
            SQLITE_OK)
        status =
            nsys->db ? fail(nsys) : status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    text_free(&uri);
    if (status == STATUS_OK) {
        sqlite->limit(nsys->db, SQLITE_LIMIT_LENGTH, 1 << 20);
        sqlite->db_config(nsys->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite->db_config(nsys->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    }
    return status;
}

static enum status prepare(const struct nsys *nsys, const char *sql, sqlite3_stmt **out)
{
    return sqlite->prepare_v2(nsys->db, sql, -1, out, NULL) == SQLITE_OK ? STATUS_OK : fail(nsys);
}

/* Is there a real table of that name? */
static enum status has_table(const struct nsys *nsys, const char *name, bool *out)
{
    sqlite3_stmt *statement;
    TRY(prepare(nsys, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1",
                &statement));
    sqlite->bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int step = sqlite->step(statement);
    *out = step == SQLITE_ROW;
    sqlite->finalize(statement);
    return step == SQLITE_ROW || step == SQLITE_DONE ? STATUS_OK : fail(nsys);
}

static bool has_column(const struct nsys *nsys, const char *table, const char *column)
{
    return sqlite->table_column_metadata(nsys->db, NULL, table, column, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

/* ---- a table becomes spans ------------------------------------------------------------------- */

enum { START, END, DEVICE, STREAM, CORRELATION, NAME, BYTES, WAY, FROM, TO, COLUMNS };

struct source {
    const char *table;
    enum span_kind kind;
    const char *columns[COLUMNS]; /* NULL: 0 */
};

static const struct source sources[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     SPAN_kernel,
     {"start", "end", "deviceId", "streamId", "correlationId", "demangledName"}},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     SPAN_copy,
     {"start", "end", "deviceId", "streamId", "correlationId", NULL, "bytes", "copyKind", "srcKind",
      "dstKind"}},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     SPAN_fill,
     {"start", "end", "deviceId", "streamId", "correlationId", NULL, "bytes"}},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     SPAN_call,
     {"start", "end", NULL, "globalTid", "correlationId", "nameId"}},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     SPAN_wait,
     {"start", "end", "deviceId", "streamId", "correlationId", NULL, NULL, "syncType"}},
};

/* The numbers of nsys: pageable is 0 here and 1 in CUPTI. */
static unsigned memory_of(long long kind)
{
    static const unsigned kinds[] = {MEMORY_PAGEABLE, MEMORY_PINNED, MEMORY_DEVICE, MEMORY_DEVICE,
                                     MEMORY_MANAGED,  MEMORY_DEVICE, MEMORY_MANAGED};
    return kind >= 0 && kind < (long long)(sizeof kinds / sizeof *kinds) ? kinds[kind]
                                                                         : MEMORY_UNKNOWN;
}

static void set_memories(const struct source *source, const struct nsys *nsys,
                         const long long *value, struct span *span)
{
    enum { UP = 1, DOWN = 2 };
    if (has_column(nsys, source->table, "srcKind")) {
        span->from_memory = memory_of(value[FROM]) & 15;
        span->to_memory = memory_of(value[TO]) & 15;
        return;
    }
    span->from_memory = value[WAY] == UP ? MEMORY_UNKNOWN : MEMORY_DEVICE;
    span->to_memory = value[WAY] == DOWN ? MEMORY_UNKNOWN : MEMORY_DEVICE;
}

static const char *waiter_of(long long type)
{
    static const char *const names[] = {"device", "event", "queue", "stream", "device"};
    return type >= 0 && type < 5 ? names[type] : "device";
}

static enum status set_lane(struct nsys *nsys, const struct source *source, const long long *value,
                            struct span *span)
{
    struct lane lane = {.kind = LANE_STREAM, .group = value[DEVICE], .number = value[STREAM]};
    if (source->kind == SPAN_call) { /* globalTid: the process in bits 24 to 47, the thread below */
        lane.kind = LANE_THREAD;
        lane.group = value[STREAM] >> 24 & 0xFFFFFF;
        lane.number = value[STREAM] & 0xFFFFFF;
    }
    return trace_lane(nsys->trace, &lane, &span->lane);
}

static enum status add_row(struct nsys *nsys, const struct source *source, sqlite3_stmt *row)
{
    long long value[COLUMNS];
    const char *name = (const char *)sqlite->column_text(row, NAME);
    for (int i = 0; i < COLUMNS; i++)
        value[i] = i == NAME ? 0 : sqlite->column_int64(row, i);
    struct span span = {.kind = (uint8_t)source->kind,
                        .start_ns = value[START],
                        .end_ns = value[END] < value[START] ? value[START] : value[END],
                        .bytes = value[BYTES] > 0 ? (uint64_t)value[BYTES] : 0};
    if (value[CORRELATION] > 0 && value[CORRELATION] <= UINT32_MAX)
        span.correlation = (uint32_t)value[CORRELATION];
    if (source->kind == SPAN_copy)
        set_memories(source, nsys, value, &span);
    if (source->kind == SPAN_wait)
        name = waiter_of(value[WAY]);
    if (name)
        TRY(trace_text(nsys->trace, name, strlen(name), &span.name));
    TRY(set_lane(nsys, source, value, &span));
    return trace_add(nsys->trace, &span);
}

/* Columns that are there by name, others as 0; the name through StringIds. */
static void add_select(const struct nsys *nsys, const struct source *source, struct text *sql)
{
    text_add(sql, "SELECT ");
    for (int i = 0; i < COLUMNS; i++) {
        const char *column = source->columns[i];
        bool there = column && has_column(nsys, source->table, column);
        text_add(sql, i ? ", " : "");
        if (i == NAME && there)
            text_printf(sql, "(SELECT value FROM StringIds WHERE id = %s)", column);
        else if (there)
            text_printf(sql, "\"%s\"", column);
        else
            text_add(sql, i == NAME ? "NULL" : "0");
    }
    text_printf(sql, " FROM %s", source->table);
}

static enum status read_source(struct nsys *nsys, const struct source *source)
{
    struct text sql = {0};
    sqlite3_stmt *row = NULL;
    enum status status;
    int step = SQLITE_DONE;
    add_select(nsys, source, &sql);
    TRY_OR(done, text_done(&sql));
    TRY_OR(done, prepare(nsys, text_of(&sql), &row));
    while ((step = sqlite->step(row)) == SQLITE_ROW)
        TRY_OR(done, add_row(nsys, source, row));
    if (step != SQLITE_DONE)
        status = fail(nsys);
done:
    sqlite->finalize(row);
    text_free(&sql);
    return status;
}

static enum status read_gpu(struct nsys *nsys)
{
    sqlite3_stmt *row;
    bool there;
    TRY(has_table(nsys, "TARGET_INFO_GPU", &there));
    if (!there || !has_column(nsys, "TARGET_INFO_GPU", "name"))
        return STATUS_OK;
    TRY(prepare(nsys, "SELECT name FROM TARGET_INFO_GPU LIMIT 1", &row));
    enum status status = STATUS_OK;
    const char *name =
        sqlite->step(row) == SQLITE_ROW ? (const char *)sqlite->column_text(row, 0) : NULL;
    if (name)
        status = trace_add_fact(nsys->trace, "gpu", name);
    sqlite->finalize(row);
    return status;
}

static enum status read_tables(struct nsys *nsys)
{
    size_t found = 0;
    bool there, names, store;
    TRY(has_table(nsys, "StringIds", &names));
    for (size_t i = 0; names && i < sizeof sources / sizeof *sources; i++) {
        TRY(has_table(nsys, sources[i].table, &there));
        if (!there)
            continue;
        TRY(read_source(nsys, &sources[i]));
        found++;
    }
    TRY(has_table(nsys, "removal", &store));
    if (!found && store)
        FAIL(STATUS_INPUT,
             "%s: found a store of prony, expected a file of records or a trace; prony store "
             "export --store %s writes its records",
             nsys->path, nsys->path);
    if (!found)
        FAIL(STATUS_INPUT,
             "%s: found no table CUPTI_ACTIVITY_KIND_…, expected an export of Nsight Systems "
             "(nsys export -t sqlite) of a program that uses a GPU",
             nsys->path);
    TRY(trace_add_fact(nsys->trace, "lacks", "lines of Python"));
    return read_gpu(nsys);
}

enum status trace_nsys_read(const char *path, struct trace *trace)
{
    struct nsys nsys = {.path = path, .trace = trace};
    TRY(sqlite_load());
    enum status status = open_file(&nsys);
    if (status == STATUS_OK)
        status = read_tables(&nsys);
    sqlite->close(nsys.db);
    return status;
}
