/* store_columns.c: see store_columns.h. */
#include "base/memory.h"
#include "store/store_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t hash_start = 0xcbf29ce484222325u; /* FNV-1a */
static const uint64_t hash_factor = 0x100000001b3u;

const char *key_name(int key)
{
    static const char *const others[] = {"status", "check", "source"};
    if (key < KEY_DERIVED)
        return axes[key].key;
    return key < KEY_STATUS ? deriveds[key - KEY_DERIVED].key : others[key - KEY_STATUS];
}

enum axis_kind key_kind(int key)
{
    if (key < KEY_DERIVED)
        return axes[key].kind;
    return key < KEY_STATUS ? deriveds[key - KEY_DERIVED].kind : AXIS_TEXT;
}

int key_find(const char *name)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if (strcmp(key_name(key), name) == 0)
            return key;
    return -1;
}

int store_key_kind(const char *key)
{
    int found = key_find(key);
    return found < 0 ? -1 : (int)key_kind(found);
}

const char *store_key_near(const char *name)
{
    const char *names[KEY_COUNT];
    for (int key = 0; key < KEY_COUNT; key++)
        names[key] = key_name(key);
    return text_nearest(name, names, KEY_COUNT);
}

enum status refuse_name(const char *name, const char *wanted, const char *const *names,
                        size_t count)
{
    const char *near = text_nearest(name, names, count);
    struct text list = {0};
    if (near)
        FAIL(STATUS_INPUT, "found \"%s\", expected %s; did you mean \"%s\"?", name, wanted, near);
    for (size_t i = 0; i < count; i++)
        text_printf(&list, "%s%s", i ? ", " : "", names[i]);
    status_fail(STATUS_INPUT, __FILE__, __LINE__, "found \"%.40s\", expected %s: %s", name, wanted,
                text_of(&list));
    text_free(&list);
    return STATUS_INPUT;
}

enum status key_need(const char *name, int *out)
{
    *out = key_find(name);
    if (*out >= 0)
        return STATUS_OK;
    const char *names[KEY_COUNT];
    for (int key = 0; key < KEY_COUNT; key++)
        names[key] = key_name(key);
    return refuse_name(name, "an axis", names, KEY_COUNT);
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = hash_start;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * hash_factor;
    return hash ^ (hash >> 32);
}

/* The slot that holds the text, or the empty one where it belongs. */
static uint32_t *find_slot(const struct words *words, const char *text)
{
    uint32_t at = (uint32_t)hash_text(text);
    for (;; at++) {
        uint32_t *slot = &words->slots[at & (words->slot_count - 1)];
        if (*slot == 0 || strcmp(words->texts[*slot - 1], text) == 0)
            return slot;
    }
}

uint32_t words_find(const struct words *words, const char *text)
{
    if (words->slot_count == 0)
        return UINT32_MAX;
    return *find_slot(words, text) - 1; /* an empty slot, 0, gives UINT32_MAX */
}

static enum status grow_words(struct words *words)
{
    uint32_t room = words->room ? 2 * words->room : 16, *slots;
    const char **texts;
    int64_t *numbers;
    NEED(texts = mem_grow(words->texts, room, sizeof *texts));
    words->texts = texts;
    NEED(numbers = mem_grow(words->numbers, room, sizeof *numbers));
    words->numbers = numbers;
    NEED(slots = mem_array(2 * (size_t)room, sizeof *slots));
    mem_free(words->slots);
    words->slots = slots;
    words->slot_count = 2 * room;
    words->room = room;
    for (uint32_t code = 0; code < words->count; code++)
        *find_slot(words, texts[code]) = code + 1;
    return STATUS_OK;
}

static enum status words_add(struct words *words, struct arena *arena, const char *text,
                             uint32_t *out)
{
    *out = words_find(words, text);
    if (*out != UINT32_MAX)
        return STATUS_OK;
    if (words->count == words->room)
        TRY(grow_words(words));
    char *copy = arena_text(arena, text);
    NEED(copy);
    uint32_t code = words->count;
    *find_slot(words, text) = code + 1;
    words->texts[code] = copy;
    if (!text_to_int(text, &words->numbers[code]))
        words->numbers[code] = 0;
    words->count++;
    *out = code;
    return STATUS_OK;
}

void columns_clear(struct columns *columns)
{
    for (int key = 0; key < KEY_COUNT; key++) {
        struct words *words = &columns->keys[key].words;
        mem_free(words->texts);
        mem_free(words->numbers);
        mem_free(words->slots);
        mem_free(words->ranks);
        mem_free(columns->keys[key].codes);
    }
    for (size_t i = 0; i < METRIC_COUNT; i++)
        mem_free(columns->metrics[i].values);
    mem_free(columns->ids);
    mem_free(columns->configurations);
    arena_free(&columns->arena);
    *columns = (struct columns){0};
}

static enum status grow_rows(struct columns *columns)
{
    size_t room = columns->room ? 2 * columns->room : 256;
    int64_t *ids;
    uint64_t *configurations;
    NEED(ids = mem_grow(columns->ids, room, sizeof *ids));
    columns->ids = ids;
    NEED(configurations = mem_grow(columns->configurations, room, sizeof *configurations));
    columns->configurations = configurations;
    for (int key = 0; key < KEY_COUNT; key++) {
        uint32_t *codes = mem_grow(columns->keys[key].codes, room, sizeof *codes);
        NEED(codes);
        columns->keys[key].codes = codes;
    }
    columns->room = room;
    return STATUS_OK;
}

/* The current row of read_rows' statement: an id, then the keys. */
static enum status add_row(struct columns *columns, sqlite3_stmt *statement)
{
    uint64_t configuration = hash_start;
    if (columns->count == columns->room)
        TRY(grow_rows(columns));
    size_t row = columns->count;
    for (int key = 0; key < KEY_COUNT; key++) {
        struct column *column = &columns->keys[key];
        uint32_t *code = &column->codes[row];
        TRY(words_add(&column->words, &columns->arena, store_text(statement, key + 1), code));
        if (key < KEY_DERIVED && !(axes[key].where & AXIS_ASIDE))
            configuration = (configuration ^ *code) * hash_factor;
    }
    columns->configurations[row] = configuration;
    columns->ids[row] = sqlite->column_int64(statement, 0);
    columns->count++;
    return STATUS_OK;
}

static enum status write_rows(struct text *sql)
{
    text_add(sql, "SELECT id");
    for (int key = 0; key < KEY_COUNT; key++)
        text_printf(sql, ", \"%s\"", key_name(key));
    text_add(sql, " FROM result WHERE id > ?1 ORDER BY id");
    return text_done(sql);
}

/* The rows after those that are there. */
static enum status read_rows(struct store *store)
{
    struct columns *columns = &store->columns;
    struct text sql = {0};
    sqlite3_stmt *statement = NULL;
    bool row;
    enum status status;
    for (int key = 0; key < KEY_COUNT; key++) {
        uint32_t nothing;
        TRY(words_add(&columns->keys[key].words, &columns->arena, "", &nothing));
    }
    TRY_OR(done, write_rows(&sql));
    TRY_OR(done, store_prepare(store, text_of(&sql), &statement));
    sqlite->bind_int64(statement, 1, columns->count ? columns->ids[columns->count - 1] : 0);
    TRY_OR(done, store_step(store, statement, &row));
    while (row) {
        TRY_OR(done, add_row(columns, statement));
        TRY_OR(done, store_step(store, statement, &row));
    }
done:
    sqlite->finalize(statement);
    text_free(&sql);
    return status;
}

/* One number that the file answers; the statement is kept in *kept. */
static enum status ask_number(struct store *store, const char *sql, sqlite3_stmt **kept,
                              int64_t *out)
{
    bool row;
    if (!*kept)
        TRY(store_prepare(store, sql, kept));
    enum status status = store_step(store, *kept, &row);
    *out = sqlite->column_int64(*kept, 0);
    sqlite->reset(*kept);
    return status;
}

/* SQLite counts what other connections do; what this one does, store.c tells us. */
static enum status refresh(struct store *store)
{
    struct columns *columns = &store->columns;
    int64_t version, change;
    TRY(ask_number(store, "PRAGMA data_version", &store->ask_version, &version));
    if (columns->read && version == columns->version)
        return STATUS_OK;
    TRY(ask_number(store, "SELECT count FROM removal", &store->ask_change, &change));
    if (change != columns->change)
        columns_clear(columns);
    columns->change = change;
    columns->version = version;
    TRY(read_rows(store));
    columns->read = true;
    return STATUS_OK;
}

enum status columns_begin(struct store *store)
{
    if (store->questions++ > 0) /* within another: the file is still as that one sees it */
        return STATUS_OK;
    enum status status = STATUS_OK;
    store->own_view = sqlite->get_autocommit(store->db) != 0;
    if (store->own_view && sqlite->exec(store->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        status = store_fail(store, "read the store");
    if (status == STATUS_OK)
        status = refresh(store);
    if (status != STATUS_OK) {
        columns_end(store);
        columns_clear(&store->columns); /* half read */
    }
    return status;
}

void columns_end(struct store *store)
{
    if (--store->questions == 0 && store->own_view)
        store_rollback(store); /* nothing was written */
}

/* Room for a figure of every row. */
static enum status grow_metric(struct columns *columns, enum metric_index metric)
{
    double *values = columns->metrics[metric].values;
    if (columns->metrics[metric].room >= columns->count && values)
        return STATUS_OK;
    NEED(values = mem_grow(values, columns->room + 1, sizeof *values));
    columns->metrics[metric].values = values;
    columns->metrics[metric].room = columns->room;
    return STATUS_OK;
}

/* Reads metrics, which all have the same first `have` figures, up to the last row. */
static enum status read_metrics(struct store *store, const enum metric_index *list, size_t count,
                                size_t have)
{
    struct columns *columns = &store->columns;
    struct text sql = {0};
    sqlite3_stmt *statement = NULL;
    bool row = false;
    enum status status;
    for (size_t i = 0; i < count; i++)
        TRY_OR(done, grow_metric(columns, list[i]));
    for (size_t i = 0; i < count; i++)
        text_printf(&sql, "%s\"%s\"", i ? ", " : "SELECT ", metrics[list[i]].key);
    text_add(&sql, " FROM result WHERE id > ?1 ORDER BY id");
    TRY_OR(done, text_done(&sql));
    TRY_OR(done, store_prepare(store, text_of(&sql), &statement));
    sqlite->bind_int64(statement, 1, have ? columns->ids[have - 1] : 0);
    TRY_OR(done, store_step(store, statement, &row));
    for (; row && have < columns->count; have++) {
        for (size_t i = 0; i < count; i++) {
            bool none = sqlite->column_type(statement, (int)i) == SQLITE_NULL;
            columns->metrics[list[i]].values[have] =
                none ? (double)NAN : sqlite->column_double(statement, (int)i);
        }
        TRY_OR(done, store_step(store, statement, &row));
    }
    if (have != columns->count)
        TRY_OR(done,
               status_fail(STATUS_INPUT, __FILE__, __LINE__,
                           "%s: found fewer results than before; to see why: prony store check%s",
                           store->path, store->flag));
    for (size_t i = 0; i < count; i++)
        columns->metrics[list[i]].count = have;
done:
    sqlite->finalize(statement);
    text_free(&sql);
    return status;
}

enum status columns_metric(struct store *store, enum metric_index metric, const double **out)
{
    struct columns *columns = &store->columns;
    TRY(grow_metric(columns, metric));
    if (columns->metrics[metric].count < columns->count)
        TRY(read_metrics(store, &metric, 1, columns->metrics[metric].count));
    *out = columns->metrics[metric].values;
    return STATUS_OK;
}

enum status store_warm(struct store *store)
{
    enum metric_index all[METRIC_COUNT];
    const uint32_t *ranks;
    TRY(columns_begin(store));
    for (size_t i = 0; i < METRIC_COUNT; i++)
        all[i] = (enum metric_index)i;
    enum status status = read_metrics(store, all, METRIC_COUNT, 0);
    for (int key = 0; key < KEY_COUNT && status == STATUS_OK; key++)
        status = columns_ranks(store, key, &ranks);
    columns_end(store);
    return status;
}

enum status columns_interval(struct store *store, const struct metric *metric, const double **low,
                             const double **high)
{
    static const struct {
        enum metric_index middle, low, high;
    } intervals[] = {
        {METRIC_time_median, METRIC_time_ci_low, METRIC_time_ci_high},
        {METRIC_throughput, METRIC_throughput_ci_low, METRIC_throughput_ci_high},
    };
    *low = *high = NULL;
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        if (metric != &metrics[intervals[i].middle])
            continue;
        TRY(columns_metric(store, intervals[i].low, low));
        TRY(columns_metric(store, intervals[i].high, high));
    }
    return STATUS_OK;
}

static int compare_texts(const void *a, const void *b, void *context)
{
    const struct words *words = context;
    uint32_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return strcmp(words->texts[left], words->texts[right]);
}

static int compare_numbers(const void *a, const void *b, void *context)
{
    const struct words *words = context;
    uint32_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    int64_t first = words->numbers[left], second = words->numbers[right];
    return first == second ? compare_texts(a, b, context) : first < second ? -1 : 1;
}

enum status columns_ranks(struct store *store, int key, const uint32_t **out)
{
    struct words *words = &store->columns.keys[key].words;
    if (words->ranked == words->count && words->ranks) {
        *out = words->ranks;
        return STATUS_OK;
    }
    uint32_t *ranks, *order;
    NEED(ranks = mem_grow(words->ranks, words->room, sizeof *ranks));
    words->ranks = ranks;
    NEED(order = mem_array(words->count, sizeof *order));
    for (uint32_t code = 0; code < words->count; code++)
        order[code] = code;
    qsort_r(order, words->count, sizeof *order,
            key_kind(key) == AXIS_INT ? compare_numbers : compare_texts, words);
    for (uint32_t place = 0; place < words->count; place++)
        ranks[order[place]] = place;
    mem_free(order);
    words->ranked = words->count;
    *out = ranks;
    return STATUS_OK;
}
