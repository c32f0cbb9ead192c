/* store_lines.c: records as they were given: listing, getting, exporting, removing. */
#include "store/store_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Inside a question: the line with this id is visited. *found says whether there is one. */
static enum status visit_line(struct store *store, int64_t id, store_line_visit *visit,
                              void *context, bool *found)
{
    if (!store->get_line)
        TRY(store_prepare(store, "SELECT text FROM line WHERE id = ?1", &store->get_line));
    sqlite3_stmt *get = store->get_line;
    sqlite->bind_int64(get, 1, id);
    enum status status = store_step(store, get, found);
    if (status == STATUS_OK && *found) {
        const char *text = store_text(get, 0);
        status = visit(context, id, text, (size_t)sqlite->column_bytes(get, 0));
    }
    sqlite->reset(get);
    return status;
}

enum status store_list(struct store *store, struct store_where where, int64_t limit, int64_t offset,
                       store_line_visit *visit, void *context)
{
    struct arena arena = {0};
    struct selection selection = {0};
    TRY(columns_begin(store));
    enum status status = select_rows(store, &arena, where, &selection);
    int64_t left = limit > 0 ? limit : INT64_MAX;
    size_t skipped = (uint64_t)offset < selection.count ? (size_t)offset : selection.count;
    for (size_t at = selection.count - skipped; at-- > 0 && left-- > 0 && status == STATUS_OK;) {
        bool found;
        status = visit_line(store, store->columns.ids[selection.rows[at]], visit, context, &found);
        if (status == STATUS_OK)
            status = store_go_on(store);
    }
    columns_end(store);
    arena_free(&arena);
    return status;
}

/* Visits rows of (id, text) and finalizes. */
static enum status visit_lines(struct store *store, sqlite3_stmt *statement,
                               store_line_visit *visit, void *context)
{
    bool row;
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        const char *text = store_text(statement, 1);
        status = visit(context, sqlite->column_int64(statement, 0), text,
                       (size_t)sqlite->column_bytes(statement, 1));
        if (status == STATUS_OK)
            status = store_go_on(store);
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite->finalize(statement);
    return status;
}

/* Binds a kind and a limit to the statement's first two marks, where it has them. */
static enum status visit_kind(struct store *store, const char *sql, const char *kind, int64_t limit,
                              store_line_visit *visit, void *context)
{
    sqlite3_stmt *statement;
    TRY(store_prepare(store, sql, &statement));
    if ((kind && sqlite->bind_text(statement, 1, kind, -1, SQLITE_STATIC) != SQLITE_OK) ||
        (limit && sqlite->bind_int64(statement, 2, limit) != SQLITE_OK)) {
        enum status status = store_fail(store, "read");
        sqlite->finalize(statement);
        return status;
    }
    return visit_lines(store, statement, visit, context);
}

enum status store_export(struct store *store, const char *kind, store_line_visit *visit,
                         void *context)
{
    return visit_kind(store,
                      kind ? "SELECT id, text FROM line WHERE id IN"
                             " (SELECT id FROM line WHERE kind = ?1) ORDER BY id"
                           : "SELECT id, text FROM line ORDER BY id",
                      kind, 0, visit, context);
}

enum status store_recent(struct store *store, const char *kind, int64_t limit,
                         store_line_visit *visit, void *context)
{
    return visit_kind(store,
                      "SELECT id, text FROM line WHERE id IN (SELECT id FROM line WHERE kind = ?1"
                      " ORDER BY id DESC LIMIT ?2) ORDER BY id DESC",
                      kind, limit, visit, context);
}

static enum status take_line(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    text_add_bytes(context, line, length);
    return text_done(context);
}

enum status store_get(struct store *store, int64_t id, struct text *line)
{
    bool found;
    TRY(visit_line(store, id, take_line, line, &found));
    if (!found)
        FAIL(STATUS_INPUT, "%s: found no record %lld; to see which there are: prony store list%s",
             store->path, (long long)id, store->flag);
    return STATUS_OK;
}

/* Inside a question: what the columns say of a row. */
static enum status fill_row(struct store *store, const enum metric_index *wanted, uint32_t row,
                            struct store_row *out)
{
    const struct columns *columns = &store->columns;
    const char *texts[KEY_COUNT];
    for (int key = 0; key < KEY_COUNT; key++)
        texts[key] = columns->keys[key].words.texts[columns->keys[key].codes[row]];
    memset(out, 0, sizeof *out);
    out->id = columns->ids[row];
    for (int key = 0; key < KEY_DERIVED; key++)
        TRY(point_set(&out->point, &axes[key], texts[key]));
    out->status = texts[KEY_STATUS];
    out->check = texts[KEY_CHECK];
    out->source = texts[KEY_SOURCE];
    out->at = texts[KEY_DERIVED + DERIVED_time];
    out->bound = texts[KEY_DERIVED + DERIVED_bound];
    out->machine = texts[KEY_DERIVED + DERIVED_machine];
    for (size_t i = 0; i < METRIC_COUNT; i++)
        out->metrics[i] = NAN;
    for (; *wanted != METRIC_COUNT; wanted++) {
        const double *values;
        TRY(columns_metric(store, *wanted, &values));
        out->metrics[*wanted] = values[row];
    }
    return STATUS_OK;
}

static enum status visit_rows(struct store *store, const struct store_glance *glance,
                              struct selection selection, store_row_visit *visit, void *context,
                              int64_t *count)
{
    size_t first = 0;
    while (first < selection.count && store->columns.ids[selection.rows[first]] <= glance->after)
        first++;
    *count = (int64_t)(selection.count - first);
    for (int64_t i = 0; i < *count && i < glance->limit; i++) {
        struct store_row row;
        size_t at = glance->oldest_first ? first + (size_t)i : selection.count - 1 - (size_t)i;
        TRY(fill_row(store, glance->metrics, selection.rows[at], &row));
        TRY(visit(context, &row));
    }
    return STATUS_OK;
}

enum status store_rows(struct store *store, const struct store_glance *glance,
                       store_row_visit *visit, void *context, int64_t *count)
{
    struct arena arena = {0};
    struct selection selection = {0};
    *count = 0;
    TRY(columns_begin(store));
    enum status status = select_rows(store, &arena, glance->where, &selection);
    if (status == STATUS_OK)
        status = visit_rows(store, glance, selection, visit, context, count);
    columns_end(store);
    arena_free(&arena);
    return status;
}

enum status store_title(struct store *store, const char *server, char out[TITLE_TEXT])
{
    const struct store_filter filter = {"server", server};
    struct arena arena = {0};
    struct selection selection = {0};
    const char *title = "";
    TRY(columns_begin(store));
    const struct column *titles = &store->columns.keys[KEY_DERIVED + DERIVED_machine];
    enum status status = select_rows(store, &arena, (struct store_where){&filter, 1}, &selection);
    for (size_t i = selection.count; i-- > 0 && status == STATUS_OK;) {
        const char *found = titles->words.texts[titles->codes[selection.rows[i]]];
        if (strlen(found) > strlen(title) && text_starts(found, title))
            title = found; /* the newest, or one that says more, as of its GPU */
    }
    snprintf(out, TITLE_TEXT, "%s", title);
    columns_end(store);
    arena_free(&arena);
    return status;
}

/* Inside a question: the place of an id among the rows; ids ascend. */
static enum status find_row(struct store *store, int64_t id, uint32_t *out)
{
    const struct columns *columns = &store->columns;
    size_t low = 0, high = columns->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (columns->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == columns->count || columns->ids[low] != id)
        FAIL(STATUS_INPUT, "%s: found no result %lld", store->path, (long long)id);
    *out = (uint32_t)low;
    return STATUS_OK;
}

enum status store_row(struct store *store, int64_t id, struct store_row *out)
{
    static const enum metric_index shown[] = {METRIC_time_median,       METRIC_throughput,
                                              METRIC_throughput_ci_low, METRIC_throughput_ci_high,
                                              METRIC_times_floor,       METRIC_of_limit,
                                              METRIC_accuracy_lost,     METRIC_output_error,
                                              METRIC_worker_speedup,    METRIC_COUNT};
    uint32_t row = 0;
    TRY(columns_begin(store));
    enum status status = find_row(store, id, &row);
    if (status == STATUS_OK)
        status = fill_row(store, shown, row, out);
    columns_end(store);
    return status;
}

/* Inside a question: results that have this metric. */
static enum status count_metric(struct store *store, enum metric_index metric, int64_t *out)
{
    const double *values;
    TRY(columns_metric(store, metric, &values));
    *out = 0;
    for (size_t row = 0; row < store->columns.count; row++)
        *out += !isnan(values[row]);
    return STATUS_OK;
}

/* Inside a question: do results that say this number say several? */
static bool has_several(const struct store *store, enum axis_index axis)
{
    const struct column *column = &store->columns.keys[axis];
    uint32_t first = 0; /* the code of "" */
    for (size_t row = 0; row < store->columns.count; row++) {
        if (column->codes[row] && first && column->codes[row] != first)
            return true;
        if (column->codes[row])
            first = column->codes[row];
    }
    return false;
}

static enum status count_profiles(struct store *store, int64_t *out)
{
    sqlite3_stmt *statement;
    bool row;
    TRY(store_prepare(store, "SELECT COUNT(*) FROM line WHERE kind = 'profile'", &statement));
    enum status status = store_step(store, statement, &row);
    *out = sqlite->column_int64(statement, 0);
    sqlite->finalize(statement);
    return status;
}

enum status store_holdings(struct store *store, struct store_holdings *out)
{
    TRY(columns_begin(store));
    enum status status = count_metric(store, METRIC_accuracy, &out->accurate);
    if (status == STATUS_OK)
        status = count_metric(store, METRIC_flop_rate, &out->rated);
    if (status == STATUS_OK)
        status = count_profiles(store, &out->profiles);
    out->several = has_several(store, AXIS_threads) || has_several(store, AXIS_workers) ||
                   has_several(store, AXIS_nodes);
    columns_end(store);
    return status;
}

enum status store_look(struct store *store, struct store_state *out)
{
    const struct columns *columns = &store->columns;
    TRY(columns_begin(store));
    out->newest = columns->count ? columns->ids[columns->count - 1] : 0;
    out->change = columns->change;
    out->version = columns->version;
    columns_end(store);
    return STATUS_OK;
}
