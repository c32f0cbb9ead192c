/* store_query.c: questions to a store. SQL is put together from the names in the tables of record/
 * only; whatever comes from outside is bound to a "?". */
#include "base/memory.h"
#include "store/store_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FILTERS_MOST = 500 };

/* The keys that can be filtered by, grouped by, and an x axis. */
static enum status check_key(const char *key)
{
    const char *keys[AXIS_COUNT + DERIVED_COUNT + 1];
    size_t count = 0;
    for (size_t i = 0; i < AXIS_COUNT; i++)
        keys[count++] = axes[i].key;
    for (size_t i = 0; i < DERIVED_COUNT; i++)
        keys[count++] = deriveds[i].key;
    keys[count++] = "status";
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0)
            return STATUS_OK;
    const char *near = text_nearest(key, keys, count);
    FAIL(STATUS_INPUT, "found \"%s\", expected an axis%s%s%s", key, near ? "; did you mean \"" : "",
         near ? near : "", near ? "\"?" : "");
}

/* Adds a filter for each value of "key=value,value" (`length` bytes). */
static enum status parse_word(struct arena *arena, const char *word, size_t length,
                              struct store_filter *filters, size_t *count)
{
    const char *equals = memchr(word, '=', length);
    const char *key;
    if (!equals)
        FAIL(STATUS_INPUT, "found \"%.*s\", expected KEY=VALUE", (int)length, word);
    NEED(key = arena_bytes(arena, word, (size_t)(equals - word)));
    TRY(check_key(key));
    for (const char *value = equals + 1, *end = word + length; value <= end;) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        size_t bytes = (size_t)((comma ? comma : end) - value);
        filters[*count].key = key;
        NEED(filters[*count].value = arena_bytes(arena, value, bytes));
        ++*count;
        value += bytes + 1;
    }
    return STATUS_OK;
}

enum status store_where_parse(struct arena *arena, const char *text, struct store_where *out)
{
    static const char blanks[] = " \t\n";
    struct store_filter *filters;
    size_t count = 0;
    NEED(filters = arena_array(arena, strlen(text) + 1, sizeof *filters)); /* more than enough */
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        size_t length = strcspn(text, blanks);
        TRY(parse_word(arena, text, length, filters, &count));
        text += length;
    }
    *out = (struct store_where){filters, count};
    return STATUS_OK;
}

/* Is there a filter of the same key before this one? */
static bool is_repeated(struct store_where where, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(where.filters[i].key, where.filters[at].key) == 0)
            return true;
    return false;
}

/* Filters of the key at `at`, as (key IN (?, ?) OR key IS NULL); "" stands for NULL. */
static void add_condition(struct store_where where, size_t at, struct text *sql)
{
    const char *key = where.filters[at].key;
    bool first = true, empty = false;
    text_printf(sql, " AND (\"%s\" IN (", key);
    for (size_t i = at; i < where.count; i++) {
        if (strcmp(where.filters[i].key, key) != 0)
            continue;
        if (where.filters[i].value[0]) {
            text_add(sql, first ? "?" : ", ?");
            first = false;
        } else {
            empty = true;
        }
    }
    text_add(sql, ")");
    if (empty)
        text_printf(sql, " OR \"%s\" IS NULL", key);
    text_add(sql, ")");
}

/* Adds " AND …" for every key but `except`. */
static enum status add_where(struct store_where where, const char *except, struct text *sql)
{
    if (where.count > FILTERS_MOST)
        FAIL(STATUS_INPUT, "found %zu filters, expected at most %d", where.count, FILTERS_MOST);
    for (size_t i = 0; i < where.count; i++) {
        TRY(check_key(where.filters[i].key));
        if (!is_repeated(where, i) && !text_equal(where.filters[i].key, except))
            add_condition(where, i, sql);
    }
    return STATUS_OK;
}

/* Binds the values in the order in which add_where put their marks. */
static enum status bind_where(const struct store *store, struct store_where where,
                              const char *except, sqlite3_stmt *statement, int *at)
{
    for (size_t i = 0; i < where.count; i++) {
        if (is_repeated(where, i) || text_equal(where.filters[i].key, except))
            continue;
        for (size_t j = i; j < where.count; j++) {
            const struct store_filter *filter = &where.filters[j];
            if (strcmp(filter->key, where.filters[i].key) != 0 || !filter->value[0])
                continue;
            if (sqlite3_bind_text(statement, (*at)++, filter->value, -1, SQLITE_STATIC) !=
                SQLITE_OK)
                return store_fail(store, "read");
        }
    }
    return STATUS_OK;
}

/* SELECT what FROM result WHERE filters, then `rest`; its marks are bound from *at on. */
static enum status prepare_select(const struct store *store, const char *what,
                                  struct store_where where, const char *except, const char *rest,
                                  int *at, sqlite3_stmt **out)
{
    struct text sql = {0};
    *out = NULL;
    text_printf(&sql, "SELECT %s WHERE true", what);
    enum status status = add_where(where, except, &sql);
    text_add(&sql, rest);
    if (status == STATUS_OK)
        status = text_done(&sql);
    if (status == STATUS_OK)
        status = store_prepare(store, text_of(&sql), out);
    *at = 1;
    if (status == STATUS_OK)
        status = bind_where(store, where, except, *out, at);
    if (status != STATUS_OK) {
        sqlite3_finalize(*out);
        *out = NULL;
    }
    text_free(&sql);
    return status;
}

/* Visits rows of (id, text) and finalizes. */
static enum status visit_lines(const struct store *store, sqlite3_stmt *statement,
                               store_line_visit *visit, void *context)
{
    bool row;
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        const char *text = store_text(statement, 1);
        status = visit(context, sqlite3_column_int64(statement, 0), text,
                       (size_t)sqlite3_column_bytes(statement, 1));
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite3_finalize(statement);
    return status;
}

enum status store_list(struct store *store, struct store_where where, int64_t limit, int64_t offset,
                       store_line_visit *visit, void *context)
{
    sqlite3_stmt *statement;
    int at;
    TRY(prepare_select(store, "id, text FROM result JOIN line USING (id)", where, NULL,
                       " ORDER BY id DESC LIMIT ? OFFSET ?", &at, &statement));
    if (sqlite3_bind_int64(statement, at, limit > 0 ? limit : -1) != SQLITE_OK ||
        sqlite3_bind_int64(statement, at + 1, offset) != SQLITE_OK) {
        enum status status = store_fail(store, "read");
        sqlite3_finalize(statement);
        return status;
    }
    return visit_lines(store, statement, visit, context);
}

enum status store_export(struct store *store, const char *kind, store_line_visit *visit,
                         void *context)
{
    sqlite3_stmt *statement;
    TRY(store_prepare(store, "SELECT id, text FROM line WHERE ?1 IS NULL OR kind = ?1 ORDER BY id",
                      &statement));
    if (kind && sqlite3_bind_text(statement, 1, kind, -1, SQLITE_STATIC) != SQLITE_OK) {
        enum status status = store_fail(store, "read");
        sqlite3_finalize(statement);
        return status;
    }
    return visit_lines(store, statement, visit, context);
}

static enum status take_line(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    text_add_bytes(context, line, length);
    return text_done(context);
}

enum status store_get(struct store *store, int64_t id, struct text *line)
{
    sqlite3_stmt *statement;
    size_t before = line->length;
    TRY(store_prepare(store, "SELECT id, text FROM line WHERE id = ?1", &statement));
    if (sqlite3_bind_int64(statement, 1, id) != SQLITE_OK) {
        enum status status = store_fail(store, "read");
        sqlite3_finalize(statement);
        return status;
    }
    TRY(visit_lines(store, statement, take_line, line));
    if (line->length == before)
        FAIL(STATUS_INPUT, "%s: found no record %lld; \"prony store list\" names them", store->path,
             (long long)id);
    return STATUS_OK;
}

enum status store_count(struct store *store, struct store_where where, int64_t *out)
{
    sqlite3_stmt *statement;
    int at;
    bool row;
    TRY(prepare_select(store, "count(*) FROM result", where, NULL, "", &at, &statement));
    enum status status = store_step(store, statement, &row);
    *out = status == STATUS_OK ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return status;
}

enum status store_values(struct store *store, const char *key, struct store_where where,
                         store_value_visit *visit, void *context)
{
    sqlite3_stmt *statement;
    char what[160];
    int at;
    bool row;
    TRY(check_key(key));
    snprintf(what, sizeof what, "\"%s\", count(*) FROM result", key);
    TRY(prepare_select(store, what, where, key, " GROUP BY 1 ORDER BY 1", &at, &statement));
    enum status status = store_step(store, statement, &row);
    while (status == STATUS_OK && row) {
        status = visit(context, store_text(statement, 0), sqlite3_column_int64(statement, 1));
        if (status == STATUS_OK)
            status = store_step(store, statement, &row);
    }
    sqlite3_finalize(statement);
    return status;
}

bool store_aggregate_parse(const char *name, enum store_aggregate *out)
{
    static const char *const names[] = {
        [STORE_BEST] = "best",     [STORE_MIN] = "min",   [STORE_MAX] = "max",
        [STORE_MEDIAN] = "median", [STORE_MEAN] = "mean",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum store_aggregate)i;
            return true;
        }
    }
    return false;
}

/* The records of one mark, as they come from the database: in ascending order of y. */
struct member_row {
    double y;
    int64_t id, configuration;
};
struct heap {
    struct text groups[STORE_GROUPS], x;
    struct member_row *rows;
    size_t count, capacity;
    int64_t unchecked;
};

static enum status heap_add(struct heap *heap, struct member_row row, bool unchecked)
{
    if (heap->count == heap->capacity) {
        size_t capacity = heap->capacity ? 2 * heap->capacity : 16;
        struct member_row *grown = mem_grow(heap->rows, capacity, sizeof *grown);
        NEED(grown);
        heap->rows = grown;
        heap->capacity = capacity;
    }
    heap->rows[heap->count++] = row;
    heap->unchecked += unchecked;
    return STATUS_OK;
}

static int order_of_configurations(const void *a, const void *b)
{
    const struct member_row *left = a, *right = b;
    return (left->configuration > right->configuration) -
           (left->configuration < right->configuration);
}

/* Reorders the rows. */
static int64_t count_configurations(struct heap *heap)
{
    int64_t different = 0;
    qsort(heap->rows, heap->count, sizeof *heap->rows, order_of_configurations);
    for (size_t i = 0; i < heap->count; i++)
        different += i == 0 || heap->rows[i].configuration != heap->rows[i - 1].configuration;
    return different;
}

static struct store_mark mark_of(struct heap *heap, enum store_aggregate aggregate)
{
    const struct member_row *rows = heap->rows;
    size_t last = heap->count - 1, middle = last / 2, chosen = middle;
    double y = 0;
    switch (aggregate) {
    case STORE_BEST: /* made one of the others by store_chart */
    case STORE_MIN: chosen = 0, y = rows[0].y; break;
    case STORE_MAX: chosen = last, y = rows[last].y; break;
    case STORE_MEDIAN: y = 0.5 * rows[middle].y + 0.5 * rows[heap->count / 2].y; break;
    case STORE_MEAN:
        for (size_t i = 0; i < heap->count; i++)
            y += rows[i].y / (double)heap->count;
        break;
    }
    struct store_mark mark = {
        .x = text_of(&heap->x),
        .y = y,
        .y_min = rows[0].y,
        .y_max = rows[last].y,
        .count = (int64_t)heap->count,
        .unchecked = heap->unchecked,
        .id = rows[chosen].id,
    };
    for (size_t i = 0; i < STORE_GROUPS; i++)
        mark.groups[i] = text_of(&heap->groups[i]);
    mark.configurations = count_configurations(heap);
    return mark;
}

/* The columns of a chart; those of the groups come after them. */
enum { CHART_X, CHART_Y, CHART_ID, CHART_RIGHT, CHART_CONFIGURATION, CHART_GROUPS };

/* Does the current row belong to the heap's mark? */
static bool is_same_mark(const struct heap *heap, sqlite3_stmt *statement)
{
    int groups = sqlite3_column_count(statement) - CHART_GROUPS;
    for (int i = 0; i < groups; i++)
        if (strcmp(text_of(&heap->groups[i]), store_text(statement, CHART_GROUPS + i)) != 0)
            return false;
    return strcmp(text_of(&heap->x), store_text(statement, CHART_X)) == 0;
}

static enum status heap_restart(struct heap *heap, sqlite3_stmt *statement)
{
    heap->count = 0;
    heap->unchecked = 0;
    int groups = sqlite3_column_count(statement) - CHART_GROUPS;
    for (int i = 0; i < groups; i++) {
        text_clear(&heap->groups[i]);
        text_add(&heap->groups[i], store_text(statement, CHART_GROUPS + i));
        TRY(text_done(&heap->groups[i]));
    }
    text_clear(&heap->x);
    text_add(&heap->x, store_text(statement, CHART_X));
    return text_done(&heap->x);
}

static enum status visit_marks(const struct store *store, sqlite3_stmt *statement,
                               enum store_aggregate aggregate, struct heap *heap,
                               store_mark_visit *visit, void *context)
{
    bool row;
    TRY(store_step(store, statement, &row));
    while (row) {
        TRY(heap_restart(heap, statement));
        do {
            struct member_row member = {sqlite3_column_double(statement, CHART_Y),
                                        sqlite3_column_int64(statement, CHART_ID),
                                        sqlite3_column_int64(statement, CHART_CONFIGURATION)};
            TRY(heap_add(heap, member, !sqlite3_column_int(statement, CHART_RIGHT)));
            TRY(store_step(store, statement, &row));
        } while (row && is_same_mark(heap, statement));
        struct store_mark mark = mark_of(heap, aggregate);
        TRY(visit(context, &mark));
    }
    return STATUS_OK;
}

static enum status find_metric(const char *key, const struct metric **out)
{
    const char *keys[METRIC_COUNT];
    for (size_t i = 0; i < METRIC_COUNT; i++)
        keys[i] = metrics[i].key;
    *out = metric_find(key);
    if (*out)
        return STATUS_OK;
    const char *near = text_nearest(key, keys, METRIC_COUNT);
    FAIL(STATUS_INPUT, "found \"%s\", expected a metric%s%s%s", key,
         near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* The SELECT of a chart: `what` up to FROM, `rest` after the filters. */
static enum status write_chart(const struct store_query *query, const struct metric *metric,
                               struct text *what, struct text *rest)
{
    assert(query->group_count <= STORE_GROUPS);
    TRY(check_key(query->x));
    text_printf(what, "\"%s\", \"%s\", id, verdict = 'right', configuration", query->x,
                metric->key);
    text_printf(rest, " AND status = 'ok' AND \"%s\" IS NOT NULL ORDER BY ", metric->key);
    for (size_t i = 0; i < query->group_count; i++) {
        TRY(check_key(query->groups[i]));
        text_printf(what, ", \"%s\"", query->groups[i]);
        text_printf(rest, "\"%s\", ", query->groups[i]);
    }
    text_add(what, " FROM result");
    text_add(rest, "1, 2");
    TRY(text_done(what));
    return text_done(rest);
}

enum status store_chart(struct store *store, const struct store_query *query,
                        store_mark_visit *visit, void *context)
{
    const struct metric *metric;
    TRY(find_metric(query->y, &metric));
    enum store_aggregate aggregate = query->aggregate;
    if (aggregate == STORE_BEST)
        aggregate = metric->better == METRIC_LOWER ? STORE_MIN : STORE_MAX;

    struct text what = {0}, rest = {0};
    struct heap heap = {0};
    sqlite3_stmt *statement = NULL;
    int at;
    enum status status = write_chart(query, metric, &what, &rest);
    if (status == STATUS_OK)
        status = prepare_select(store, text_of(&what), query->where, NULL, text_of(&rest), &at,
                                &statement);
    if (status == STATUS_OK)
        status = visit_marks(store, statement, aggregate, &heap, visit, context);
    sqlite3_finalize(statement);
    for (size_t i = 0; i < STORE_GROUPS; i++)
        text_free(&heap.groups[i]);
    text_free(&heap.x);
    mem_free(heap.rows);
    text_free(&what);
    text_free(&rest);
    return status;
}
