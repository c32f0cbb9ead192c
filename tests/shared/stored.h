/* stored.h: stores to test with: a new file for each, results that were counted by hand, and charts
 * as one line of text. */
#ifndef PRONY_TESTS_STORED_H
#define PRONY_TESTS_STORED_H

#include "check.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char stored_folder[] = "/tmp/prony-test-store-XXXXXX";

static inline void remove_folder(void)
{
    char command[sizeof stored_folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", stored_folder);
    if (system(command) != 0)
        printf("%s is left behind\n", stored_folder);
}

/* A path in a folder of this run, where no store is. */
static inline const char *fresh_path(void)
{
    static char path[200];
    static int number;
    if (number == 0 && CHECK(mkdtemp(stored_folder) != NULL))
        atexit(remove_folder);
    snprintf(path, sizeof path, "%s/%d/store.db", stored_folder, number++);
    return path;
}

static inline struct store *open_store(const char *at, enum store_access access)
{
    struct store *store = NULL;
    CHECK_OK(store_open(at, access, &store));
    return store;
}

struct sample {
    const char *model, *batch, *backend;
    double median;
    enum record_verdict verdict;
};

static inline enum status add_record(struct store *store, const struct record *record, bool *added)
{
    struct text line = {0};
    record_write(record, &line);
    enum status status = text_done(&line);
    if (status == STATUS_OK)
        status = store_add(store, text_of(&line), line.length, record, NULL, added);
    text_free(&line);
    return status;
}

static inline enum status add_sample(struct store *store, const struct sample *sample, bool *added)
{
    struct record record;
    record_start(&record);
    CHECK_OK(point_set(&record.point, &axes[AXIS_model], sample->model));
    CHECK_OK(point_set(&record.point, &axes[AXIS_batch], sample->batch));
    CHECK_OK(point_set(&record.point, &axes[AXIS_backend], sample->backend));
    record.time_ns.median = sample->median;
    record.check.verdict = sample->verdict;
    record.at = "2026-11-15T10:03:58Z";
    return add_record(store, &record, added);
}

static const struct sample samples[] = {
    {"small", "1", "ref", 300, RECORD_RIGHT},      {"small", "10", "ref", 500, RECORD_RIGHT},
    {"small", "10", "ref", 400, RECORD_UNCHECKED}, {"small", "10", "ref", 900, RECORD_RIGHT},
    {"small", "9", "simd", 100, RECORD_RIGHT},     {"large", "1", "ref", 7000, RECORD_RIGHT},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static inline void fill(struct store *store)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        bool added = false;
        CHECK_OK(add_sample(store, &samples[i], &added));
        CHECK(added);
    }
}

static inline enum status count_line(void *context, int64_t id, const char *line, size_t length)
{
    CHECK(id > 0 && length == strlen(line));
    ++*(int64_t *)context;
    return STATUS_OK;
}

static inline int64_t count(struct store *store, struct store_where where)
{
    int64_t counted = -1, listed = 0;
    CHECK_OK(store_count(store, where, &counted));
    CHECK_OK(store_list(store, where, 0, 0, count_line, &listed));
    CHECK_EQUAL_INT(listed, counted);
    return counted;
}

#define WHERE(...)                                                                                 \
    (struct store_where)                                                                           \
    {                                                                                              \
        (const struct store_filter[]){__VA_ARGS__},                                                \
            sizeof((const struct store_filter[]){__VA_ARGS__}) / sizeof(struct store_filter)       \
    }

static inline void append_marks(struct text *out, const struct store_query *query,
                                const struct store_chart *chart)
{
    for (const struct store_mark *mark = chart->marks; mark < chart->marks + chart->count; mark++) {
        for (size_t i = 0; i < query->group_count; i++)
            text_printf(out, "%s%s", i ? "+" : "", mark->values[i]);
        text_printf(out, "/%s=%g(%g..%g n%lld u%lld c%lld #%lld) ", store_mark_x(mark, query),
                    mark->y, mark->low, mark->high, (long long)mark->count,
                    (long long)mark->unchecked, (long long)mark->configurations,
                    (long long)mark->id);
    }
}

static inline void check_chart(struct store *store, struct store_query query, const char *expected)
{
    struct text out = {0};
    struct store_chart chart;
    if (CHECK_OK(store_chart(store, &query, &chart)))
        append_marks(&out, &query, &chart);
    CHECK_EQUAL_TEXT(text_of(&out), expected);
    store_chart_free(&chart);
    text_free(&out);
}

/* A result whose axes are words, with samples about `time_ns`. */
static inline void add_words(struct store *store, const char *words, double time_ns)
{
    struct arena arena = {0};
    struct store_where where;
    struct record record;
    double times[9];
    record_start(&record);
    for (int i = 0; i < 9; i++)
        times[i] = time_ns * (0.96 + 0.01 * i); /* the middle one is time_ns */
    CHECK_OK(store_where_parse(&arena, words, &where));
    for (size_t i = 0; i < where.count; i++)
        CHECK_OK(point_set(&record.point, axis_find(where.filters[i].key), where.filters[i].value));
    point_settle(&record.point);
    record.check.verdict = RECORD_RIGHT;
    record.at = "2026-11-15T10:03:58Z";
    CHECK_OK(record_measure(&record, &arena, times, 9, 1));
    CHECK_OK(add_record(store, &record, NULL));
    arena_free(&arena);
}

#endif
