/* findings.h: planted results, and what is found of them. */
#ifndef PRONY_TESTS_FINDINGS_H
#define PRONY_TESTS_FINDINGS_H

#include "check.h"
#include "finding/finding.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/prony-test-findings-XXXXXX";

static inline void remove_store(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[sizeof path + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

/* An empty store; the last one is gone. */
static inline struct store *fresh_store(void)
{
    struct store *store = NULL;
    static bool made;
    if (!made) {
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        close(fd);
        atexit(remove_store);
        made = true;
    }
    remove_store();
    CHECK_OK(store_open(path, STORE_WRITE, &store));
    return store;
}

/* A planted result: axes as words, samples a second, and what else is not as usual. */
struct planted {
    const char *words;
    double rate, times_floor;
    const char *bound, *handicap;
    double noise;                /* half the interval ÷ median; 0: 1 % */
    double load;                 /* cores that others kept busy */
    double gpu_others, gpu_busy; /* processes on the GPU; how busy one was, in per cent */
    bool unchecked;
    int cores;      /* 0: 2 */
    double speedup; /* by workers; 0: nobody looked */
};

static inline void plant(struct store *store, const struct planted *planted)
{
    struct arena arena = {0};
    struct store_where where;
    char cores[40];
    const struct record_meter meters[] = {{"other_load", planted->load, NULL},
                                          {"gpu_others", planted->gpu_others, NULL},
                                          {"gpu_others_busy", planted->gpu_busy, NULL},
                                          {"worker_speedup", planted->speedup, NULL}};
    struct json *machine;
    struct record record;
    struct text line = {0};
    record_start(&record);
    CHECK_OK(point_set(&record.point, &axes[AXIS_model], "net"));
    CHECK_OK(point_set(&record.point, &axes[AXIS_server], "box"));
    CHECK_OK(store_where_parse(&arena, planted->words, &where));
    for (size_t i = 0; i < where.count; i++)
        CHECK_OK(point_set(&record.point, axis_find(where.filters[i].key), where.filters[i].value));
    point_settle(&record.point);
    double time_ns = (double)record_effective_batch(&record) / planted->rate * 1e9;
    const double noise = planted->noise > 0 ? planted->noise : 0.01;
    record.floor_ns = time_ns / planted->times_floor;
    record.bound = planted->bound ? planted->bound : "bytes";
    record.handicap = planted->handicap;
    record.at = "2026-11-15T10:03:58Z";
    record.check.verdict = planted->unchecked ? RECORD_UNCHECKED : RECORD_RIGHT;
    record.program = "0123456789abcdef";
    record.meters = meters;
    record.meter_count = sizeof meters / sizeof *meters - !(planted->speedup > 0);
    snprintf(cores, sizeof cores, "{\"cores\":%d}", planted->cores ? planted->cores : 2);
    CHECK_OK(json_parse(&arena, "machine", cores, strlen(cores), &machine));
    record.machine = machine;
    CHECK_OK(record_measure(&record, &arena, &time_ns, 1, 1));
    if (!isinf(noise)) {
        record.time_ns.ci_low = time_ns * (1 - noise);
        record.time_ns.ci_high = time_ns * (1 + noise);
    }
    record_write(&record, &line);
    CHECK_OK(store_add(store, text_of(&line), line.length, &record, NULL, NULL));
    text_free(&line);
    arena_free(&arena);
}

static inline void add_bound(struct store *store, const char *words, double rate,
                             double times_floor, const char *bound)
{
    plant(store, &(struct planted){
                     .words = words, .rate = rate, .times_floor = times_floor, .bound = bound});
}

static inline void add(struct store *store, const char *words, double rate, double times_floor)
{
    add_bound(store, words, rate, times_floor, "bytes");
}

enum { SENTENCE = 1, COMMAND = 2, CHART = 4 };

/* What is asked for under filters is, or is not, in a part of the finding. */
static inline void look(struct store *store, const char *filters, const char *name, int part,
                        const char *expected, bool there)
{
    struct arena arena = {0};
    struct store_where where;
    struct finding_about about;
    struct finding found;
    size_t index;
    if (CHECK_OK(store_where_parse(&arena, filters, &where)) &&
        CHECK_OK(finding_about(store, &arena, where, &about)) &&
        CHECK(finding_named(name, &index)) && CHECK_OK(finding_ask(&about, index, &found))) {
        const char *text = text_of(part == SENTENCE  ? &found.sentence
                                   : part == COMMAND ? &found.command
                                                     : &found.chart);
        if (!CHECK((strstr(text, expected) != NULL) == there))
            printf("%s: found \"%s\", %sexpected \"%s\"\n", name, text, there ? "" : "not ",
                   expected);
        finding_free(&found);
    }
    arena_free(&arena);
}

/* The finding is known, or is not, and its sentence contains `expected`. */
static inline void expect(struct store *store, const char *name, bool known, const char *expected)
{
    struct arena arena = {0};
    struct finding_about about;
    struct finding found;
    size_t index;
    look(store, "", name, SENTENCE, expected, true);
    if (CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about)) &&
        CHECK(finding_named(name, &index)) && CHECK_OK(finding_ask(&about, index, &found))) {
        if (!CHECK_EQUAL_INT(found.known, known))
            printf("%s: %s\n", name, text_of(&found.sentence));
        CHECK(!known || found.id_count > 0);
        for (size_t i = 1; i < found.id_count; i++)
            CHECK(found.ids[i] != found.ids[i - 1]);
        CHECK(text_starts(text_of(&found.chart), "x="));
        finding_free(&found);
    }
    arena_free(&arena);
}

/* A sentence has no more than it should: the whole of it. */
static inline void expect_whole(struct store *store, const char *name, const char *expected)
{
    struct arena arena = {0};
    struct finding_about about;
    struct finding found;
    size_t index;
    if (CHECK_OK(finding_about(store, &arena, (struct store_where){0}, &about)) &&
        CHECK(finding_named(name, &index)) && CHECK_OK(finding_ask(&about, index, &found))) {
        CHECK_EQUAL_TEXT(text_of(&found.sentence), expected);
        finding_free(&found);
    }
    arena_free(&arena);
}

/* A line as another machine, or another program, may have written it. */
static inline void add_line(struct store *store, const char *line)
{
    struct arena arena = {0};
    struct record record;
    CHECK_OK(record_read(&arena, "line", 1, line, strlen(line), &record));
    CHECK_OK(store_add(store, line, strlen(line), &record, NULL, NULL));
    arena_free(&arena);
}

/* Makes what was measured on `far` results that came with prony. */
static inline struct store *ship_far(struct store *store)
{
    sqlite3 *db;
    store_close(store);
    CHECK_EQUAL_INT(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQUAL_INT(sqlite3_exec(db, "UPDATE result SET source = 'shipped' WHERE server = 'far'",
                                 NULL, NULL, NULL),
                    SQLITE_OK);
    sqlite3_close(db);
    store = NULL;
    CHECK_OK(store_open(path, STORE_WRITE, &store));
    return store;
}

#endif
