/* store_where.c: filters: from words, over rows, and what they leave to choose from. */
#include "store/store_inside.h"

#include <stdio.h>
#include <string.h>

enum { FILTERS_MOST = 500 };

/* One value of a word, up to a comma or a blank; quotes keep both and are taken off. Returns what
 * comes after it. */
static const char *read_value(const char *at, struct text *out)
{
    text_clear(out);
    text_add(out, "");
    for (; *at && !strchr(", \t\n", *at); at++) {
        const char *end = *at == '\'' || *at == '"' ? strchr(at + 1, *at) : NULL;
        if (end)
            text_add_bytes(out, at + 1, (size_t)(end - at - 1));
        else
            text_add_char(out, *at);
        at = end ? end : at;
    }
    return at;
}

/* "key=value,value": a filter for each value. */
static enum status read_word(struct arena *arena, const char **at, struct text *scratch,
                             struct store_filter *filters, size_t *count)
{
    size_t length = strcspn(*at, "= \t\n");
    int key;
    if ((*at)[length] != '=')
        FAIL(STATUS_INPUT, "found \"%.*s\", expected KEY=VALUE", (int)length, *at);
    const char *name = arena_bytes(arena, *at, length);
    NEED(name);
    TRY(key_need(name, &key));
    *at += length;
    do {
        *at = read_value(*at + 1, scratch);
        TRY(text_done(scratch));
        filters[*count].key = key_name(key);
        NEED(filters[*count].value = arena_text(arena, text_of(scratch)));
        ++*count;
    } while (**at == ',');
    return STATUS_OK;
}

enum status store_where_parse(struct arena *arena, const char *text, struct store_where *out)
{
    static const char blanks[] = " \t\n";
    struct store_filter *filters;
    struct text scratch = {0};
    size_t count = 0;
    enum status status = STATUS_OK;
    NEED(filters = arena_array(arena, strlen(text) + 1, sizeof *filters)); /* more than enough */
    for (text += strspn(text, blanks); *text && status == STATUS_OK; text += strspn(text, blanks))
        status = read_word(arena, &text, &scratch, filters, &count);
    text_free(&scratch);
    *out = (struct store_where){filters, count};
    return status;
}

bool store_where_has(struct store_where where, const char *key, const char *value)
{
    for (size_t i = 0; i < where.count; i++)
        if (strcmp(where.filters[i].key, key) == 0 &&
            (!value || strcmp(where.filters[i].value, value) == 0))
            return true;
    return false;
}

/* What one key must be: a flag for each of its codes. */
struct condition {
    int key;
    bool *allowed;
};
struct conditions {
    struct condition list[KEY_COUNT];
    size_t count;
};

static struct condition *find_condition(struct conditions *conditions, int key)
{
    for (size_t i = 0; i < conditions->count; i++)
        if (conditions->list[i].key == key)
            return &conditions->list[i];
    return NULL;
}

static enum status allow(struct store *store, struct arena *arena, struct conditions *conditions,
                         int key, const char *value)
{
    const struct words *words = &store->columns.keys[key].words;
    struct condition *condition = find_condition(conditions, key);
    char buffer[POINT_NUMBER];
    int64_t number;
    if (!condition) {
        condition = &conditions->list[conditions->count];
        condition->key = key;
        NEED(condition->allowed = arena_array(arena, words->count + 1, sizeof(bool)));
        conditions->count++;
    }
    if (key_kind(key) == AXIS_INT && *value) { /* "+10" is 10 */
        if (!text_to_int(value, &number))
            FAIL(STATUS_INPUT, "%s: found \"%s\", expected a whole number, or nothing",
                 key_name(key), value);
        snprintf(buffer, sizeof buffer, "%lld", (long long)number);
        value = buffer;
    }
    uint32_t code = words_find(words, value);
    if (code != UINT32_MAX)
        condition->allowed[code] = true;
    if (key == AXIS_scaling)
        condition->allowed[0] = true; /* one worker scales either way */
    return STATUS_OK;
}

static enum status make_conditions(struct store *store, struct arena *arena,
                                   struct store_where where, struct conditions *out)
{
    int batch = AXIS_batch;
    out->count = 0;
    if (where.count > FILTERS_MOST)
        FAIL(STATUS_INPUT, "found %zu filters, expected at most %d", where.count, FILTERS_MOST);
    if (store_where_has(where, "scaling", "strong") && !store_where_has(where, "scaling", "weak"))
        batch = KEY_DERIVED + DERIVED_effective_batch;
    for (size_t i = 0; i < where.count; i++) {
        int key;
        TRY(key_need(where.filters[i].key, &key));
        TRY(allow(store, arena, out, key == AXIS_batch ? batch : key, where.filters[i].value));
    }
    return STATUS_OK;
}

enum status select_rows(struct store *store, struct arena *arena, struct store_where where,
                        struct selection *out)
{
    struct columns *columns = &store->columns;
    struct conditions conditions;
    TRY(make_conditions(store, arena, where, &conditions));
    NEED(out->rows = arena_array(arena, columns->count + 1, sizeof *out->rows));
    for (size_t row = 0; row < columns->count; row++)
        out->rows[row] = (uint32_t)row;
    out->count = columns->count;
    for (size_t i = 0; i < conditions.count; i++) {
        const uint32_t *codes = columns->keys[conditions.list[i].key].codes;
        const bool *allowed = conditions.list[i].allowed;
        size_t kept = 0;
        for (size_t at = 0; at < out->count; at++) {
            out->rows[kept] = out->rows[at];
            kept += allowed[codes[out->rows[at]]];
        }
        out->count = kept;
    }
    return STATUS_OK;
}

enum status select_ok(struct store *store, struct arena *arena, struct store_where where,
                      bool simulated, struct selection *out)
{
    const struct column *status = &store->columns.keys[KEY_STATUS];
    const struct column *origin = &store->columns.keys[AXIS_origin];
    const bool any = simulated || store_where_has(where, axes[AXIS_origin].key, NULL);
    uint32_t ok = words_find(&status->words, "ok");
    size_t kept = 0;
    TRY(select_rows(store, arena, where, out));
    for (size_t at = 0; at < out->count; at++) {
        const uint32_t row = out->rows[at];
        out->rows[kept] = row;
        kept += status->codes[row] == ok && (any || origin->codes[row] == 0);
    }
    out->count = kept;
    return STATUS_OK;
}

bool is_handicapped(const struct columns *columns, uint32_t row)
{
    return columns->keys[KEY_DERIVED + DERIVED_handicap].codes[row] != 0;
}

/* How often each code of each wanted key occurs under the conditions of the others. A row counts
 * for every key when it meets all conditions, and for one key when that key's is the only one it
 * does not meet. */
static void count_codes(const struct columns *columns, const struct conditions *conditions,
                        uint64_t wanted, int64_t *counts[KEY_COUNT])
{
    int keys[KEY_COUNT], key_count = 0;
    for (int key = 0; key < KEY_COUNT; key++)
        if (wanted & (uint64_t)1 << key)
            keys[key_count++] = key;
    for (size_t row = 0; row < columns->count; row++) {
        int missed = -1;
        size_t misses = 0;
        for (size_t i = 0; i < conditions->count && misses < 2; i++) {
            int key = conditions->list[i].key;
            if (!conditions->list[i].allowed[columns->keys[key].codes[row]]) {
                missed = key;
                misses++;
            }
        }
        if (misses == 1 && (wanted & (uint64_t)1 << missed))
            counts[missed][columns->keys[missed].codes[row]]++;
        for (int i = 0; i < key_count && misses == 0; i++)
            counts[keys[i]][columns->keys[keys[i]].codes[row]]++;
    }
}

/* Hands over the key, then what occurs, in order. */
static enum status visit_counts(struct store *store, struct arena *arena, int key,
                                const int64_t *counts, store_value_visit *visit, void *context)
{
    const struct words *words = &store->columns.keys[key].words;
    const uint32_t *ranks;
    uint32_t *order;
    TRY(columns_ranks(store, key, &ranks));
    NEED(order = arena_array(arena, words->count, sizeof *order));
    for (uint32_t code = 0; code < words->count; code++)
        order[ranks[code]] = code;
    TRY(visit(context, key_name(key), NULL, 0));
    for (uint32_t place = 0; place < words->count; place++)
        if (counts[order[place]])
            TRY(visit(context, key_name(key), words->texts[order[place]], counts[order[place]]));
    return STATUS_OK;
}

static enum status answer_values(struct store *store, struct arena *arena, uint64_t wanted,
                                 struct store_where where, store_value_visit *visit, void *context)
{
    struct conditions conditions;
    int64_t *counts[KEY_COUNT] = {0};
    TRY(make_conditions(store, arena, where, &conditions));
    for (int key = 0; key < KEY_COUNT; key++)
        if (wanted & (uint64_t)1 << key)
            NEED(counts[key] =
                     arena_array(arena, store->columns.keys[key].words.count, sizeof *counts[key]));
    count_codes(&store->columns, &conditions, wanted, counts);
    for (int key = 0; key < KEY_COUNT; key++)
        if (counts[key])
            TRY(visit_counts(store, arena, key, counts[key], visit, context));
    return STATUS_OK;
}

enum status store_values(struct store *store, const char *key, struct store_where where,
                         store_value_visit *visit, void *context)
{
    struct arena arena = {0};
    int time = KEY_DERIVED + DERIVED_time, one;
    uint64_t wanted = (((uint64_t)1 << KEY_COUNT) - 1) & ~((uint64_t)1 << time);
    if (key) {
        TRY(key_need(key, &one));
        wanted = (uint64_t)1 << one;
    }
    TRY(columns_begin(store));
    enum status status = answer_values(store, &arena, wanted, where, visit, context);
    columns_end(store);
    arena_free(&arena);
    return status;
}

enum status store_count(struct store *store, struct store_where where, int64_t *out)
{
    struct arena arena = {0};
    struct selection selection = {0};
    TRY(columns_begin(store));
    enum status status = select_rows(store, &arena, where, &selection);
    *out = (int64_t)selection.count;
    columns_end(store);
    arena_free(&arena);
    return status;
}

/* Numbers to be replaced by classes, which are counted as they come. */
struct numbering {
    uint64_t *slots; /* a hash table of numbers + 1; 0: empty */
    uint32_t *classes;
    size_t mask;
};

static uint32_t class_of(struct numbering *numbering, uint64_t number, uint32_t *count)
{
    size_t at = (size_t)((number + 1) * 0x9E3779B97F4A7C15u >> 20);
    for (;; at++) {
        size_t slot = at & numbering->mask;
        if (numbering->slots[slot] == number + 1)
            return numbering->classes[slot];
        if (numbering->slots[slot] == 0) {
            numbering->slots[slot] = number + 1;
            return numbering->classes[slot] = (*count)++;
        }
    }
}

static uint32_t number_classes(struct numbering *numbering, const uint64_t *numbers, size_t count,
                               uint32_t *classes)
{
    uint32_t found = 0;
    memset(numbering->slots, 0, (numbering->mask + 1) * sizeof *numbering->slots);
    for (size_t i = 0; i < count; i++)
        classes[i] = class_of(numbering, numbers[i], &found);
    return found;
}

/* The codes of a row are the digits of one number, each key's to the base of its words. Where the
 * next digit would not fit any more, the classes so far stand for those before it. */
enum status classify(struct store *store, struct arena *arena, struct selection selection,
                     const int *keys, size_t key_count, uint32_t *classes, uint32_t *count)
{
    struct numbering numbering = {.mask = 1};
    uint64_t *numbers, limit = 1; /* every number is below it */
    *count = 0;
    if (selection.count == 0)
        return STATUS_OK;
    while (numbering.mask < 2 * selection.count)
        numbering.mask = 2 * numbering.mask + 1;
    NEED(numbering.slots = arena_array(arena, numbering.mask + 1, sizeof *numbering.slots));
    NEED(numbering.classes = arena_array(arena, numbering.mask + 1, sizeof *numbering.classes));
    NEED(numbers = arena_array(arena, selection.count, sizeof *numbers));
    for (size_t i = 0; i < key_count; i++) {
        const struct column *column = &store->columns.keys[keys[i]];
        const uint64_t base = column->words.count;
        if (limit > (UINT64_MAX - 1) / base) {
            limit = number_classes(&numbering, numbers, selection.count, classes);
            for (size_t at = 0; at < selection.count; at++)
                numbers[at] = classes[at];
        }
        limit *= base;
        for (size_t at = 0; at < selection.count; at++)
            numbers[at] = numbers[at] * base + column->codes[selection.rows[at]];
    }
    *count = number_classes(&numbering, numbers, selection.count, classes);
    return STATUS_OK;
}
