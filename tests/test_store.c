/* The store: what goes in comes out, once; questions get the answers that counting by hand gives;
 * files that are not ours, damaged or old. */
#include "base/file.h"
#include "base/memory.h"
#include "check.h"
#include "store/store.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/prony-test-store-XXXXXX";
static char path[200];

static void remove_folder(void)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        printf("%s is left behind\n", folder);
}

/* A path in a folder of this run, where no store is. */
static const char *fresh_path(void)
{
    static int number;
    if (number == 0 && CHECK(mkdtemp(folder) != NULL))
        atexit(remove_folder);
    snprintf(path, sizeof path, "%s/%d/store.db", folder, number++);
    return path;
}

static struct store *open_store(const char *at, enum store_access access)
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

static enum status add_record(struct store *store, const struct record *record, bool *added)
{
    struct text line = {0};
    record_write(record, &line);
    enum status status = text_done(&line);
    if (status == STATUS_OK)
        status = store_add(store, text_of(&line), line.length, record, NULL, added);
    text_free(&line);
    return status;
}

static enum status add_sample(struct store *store, const struct sample *sample, bool *added)
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

static void fill(struct store *store)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        bool added = false;
        CHECK_OK(add_sample(store, &samples[i], &added));
        CHECK(added);
    }
}

static enum status count_line(void *context, int64_t id, const char *line, size_t length)
{
    CHECK(id > 0 && length == strlen(line));
    ++*(int64_t *)context;
    return STATUS_OK;
}

static int64_t count(struct store *store, struct store_where where)
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

TEST(adds_once)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    bool added = true;
    fill(store);
    CHECK_OK(add_sample(store, &samples[2], &added));
    CHECK(!added);
    store_close(store);
    store = open_store(at, STORE_READ);
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), SAMPLES);
    CHECK_STATUS(STATUS_IO, add_sample(store, &(struct sample){"new", "1", "", 1, 0}, &added));
    store_close(store);
}

static enum status add_golden(void *context, const struct record *record, const char *line,
                              size_t length)
{
    return store_add(context, line, length, record, NULL, NULL);
}

static enum status append_line(void *context, int64_t id, const char *line, size_t length)
{
    (void)id;
    text_add_bytes(context, line, length);
    text_add_char(context, '\n');
    return text_done(context);
}

/* All kinds of lines, in a transaction, come out of export as they went in. */
TEST(exports_what_was_added)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct text file = {0}, out = {0}, one = {0};
    CHECK_OK(file_read("tests/golden/record.jsonl", 1 << 20, &file));
    CHECK_OK(store_begin(store));
    CHECK_OK(record_read_all("golden", text_of(&file), file.length, add_golden, store));
    CHECK_OK(store_commit(store));
    CHECK_OK(store_export(store, NULL, append_line, &out));
    CHECK_EQUAL_TEXT(text_of(&out), text_of(&file));
    text_clear(&out);
    CHECK_OK(store_export(store, "machine", append_line, &out));
    CHECK(strstr(text_of(&out), "calibration") != NULL);
    CHECK_OK(store_get(store, 2, &one));
    CHECK(strstr(text_of(&one), "no CUDA driver") != NULL);
    CHECK_STATUS(STATUS_INPUT, store_get(store, 99, &one));
    CHECK_MESSAGE("no record 99");
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), 3);
    CHECK_EQUAL_INT(count(store, WHERE({"status", "skipped"})), 1);
    CHECK_EQUAL_INT(count(store, WHERE({"commit", "abc"})), 1);
    store_close(store);
    text_free(&file);
    text_free(&out);
    text_free(&one);
}

TEST(sink_adds_to_the_store)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct sink sink = store_sink(store);
    struct record record;
    struct text line = {0};
    record_start(&record);
    record_write(&record, &line);
    CHECK_OK(sink.write(sink.context, text_of(&line), &record));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), 1);
    text_free(&line);
    store_close(store);
}

TEST(filters)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    fill(store);
    CHECK_EQUAL_INT(count(store, WHERE({"model", "small"})), 5);
    CHECK_EQUAL_INT(count(store, WHERE({"model", "small"}, {"batch", "10"})), 3);
    CHECK_EQUAL_INT(count(store, WHERE({"batch", "1"}, {"model", "small"}, {"batch", "9"})), 2);
    CHECK_EQUAL_INT(count(store, WHERE({"interconnect", ""})), SAMPLES);
    CHECK_EQUAL_INT(count(store, WHERE({"interconnect", ""}, {"interconnect", "shm"})), SAMPLES);
    CHECK_EQUAL_INT(count(store, WHERE({"model", "' OR 1=1 --"})), 0);
    CHECK_EQUAL_INT(count(store, WHERE({"effective_batch", "9"})), 1);
    int64_t counted;
    CHECK_STATUS(STATUS_INPUT, store_count(store, WHERE({"modle", "small"}), &counted));
    CHECK_MESSAGE("did you mean \"model\"");
    CHECK_STATUS(STATUS_INPUT, store_count(store, WHERE({"id\" OR \"id", "1"}), &counted));
    int64_t listed = 0;
    CHECK_OK(store_list(store, (struct store_where){0}, 2, 3, count_line, &listed));
    CHECK_EQUAL_INT(listed, 2);
    store_close(store);
}

TEST(filters_from_words)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct arena arena = {0};
    struct store_where where;
    fill(store);
    CHECK_OK(store_where_parse(&arena, "", &where));
    CHECK_EQUAL_INT(where.count, 0);
    CHECK_OK(store_where_parse(&arena, "  model=small batch=1,9 interconnect= ", &where));
    CHECK_EQUAL_INT(where.count, 4);
    CHECK_EQUAL_INT(count(store, where), 2);
    CHECK_STATUS(STATUS_INPUT, store_where_parse(&arena, "model", &where));
    CHECK_MESSAGE("expected KEY=VALUE");
    CHECK_STATUS(STATUS_INPUT, store_where_parse(&arena, "bacth=1", &where));
    CHECK_MESSAGE("did you mean \"batch\"");
    arena_free(&arena);
    store_close(store);
}

static enum status append_value(void *context, const char *key, const char *value, int64_t times)
{
    if (!value) {
        text_printf(context, "%s ", key);
        return STATUS_OK;
    }
    text_printf(context, "%s:%lld ", value, (long long)times);
    return STATUS_OK;
}

/* The values of an axis are those under the other filters, in their natural order. */
TEST(values_with_counts)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct text out = {0};
    fill(store);
    CHECK_OK(store_values(store, "batch", WHERE({"model", "small"}, {"batch", "1"}), append_value,
                          &out));
    CHECK_EQUAL_TEXT(text_of(&out), "batch 1:1 9:1 10:3 ");
    CHECK_STATUS(STATUS_INPUT,
                 store_values(store, "time_median", WHERE({"model", "x"}), append_value, &out));
    text_free(&out);
    store_close(store);
}

static void append_marks(struct text *out, const struct store_query *query,
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

static void check_chart(struct store *store, struct store_query query, const char *expected)
{
    struct text out = {0};
    struct store_chart chart;
    if (CHECK_OK(store_chart(store, &query, &chart)))
        append_marks(&out, &query, &chart);
    CHECK_EQUAL_TEXT(text_of(&out), expected);
    store_chart_free(&chart);
    text_free(&out);
}

TEST(charts)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "batch",
                                .y = "time_median",
                                .groups = {"backend"},
                                .group_count = 1,
                                .where = WHERE({"model", "small"}),
                                .aggregate = STORE_BEST};
    fill(store);
    check_chart(store, query,
                "ref/1=300(300..300 n1 u0 c1 #1) ref/10=400(400..900 n3 u1 c1 #3) "
                "simd/9=100(100..100 n1 u0 c1 #5) ");
    query.groups[1] = "model";
    query.group_count = 2;
    query.where = WHERE({"batch", "1"});
    check_chart(store, query,
                "ref+large/1=7000(7000..7000 n1 u0 c1 #6) ref+small/1=300(300..300 n1 u0 c1 #1) ");
    query.group_count = 0;
    query.where = (struct store_where){0};
    query.aggregate = STORE_MEDIAN;
    check_chart(store, query,
                "/1=3650(300..7000 n2 u0 c2 #1) /9=100(100..100 n1 u0 c1 #5) "
                "/10=500(400..900 n3 u1 c1 #2) ");
    query.x = "model";
    query.aggregate = STORE_MAX;
    query.where = WHERE({"batch", "1"});
    check_chart(store, query,
                "/large=7000(7000..7000 n1 u0 c1 #6) /small=300(300..300 n1 u0 c1 #1) ");
    query.y = "throughput"; /* none has it */
    check_chart(store, query, "");
    query.y = "status";
    struct store_chart chart;
    CHECK_STATUS(STATUS_INPUT, store_chart(store, &query, &chart));
    CHECK_MESSAGE("expected a metric");
    enum store_aggregate aggregate;
    CHECK(store_aggregate_parse("mean", &aggregate) && aggregate == STORE_MEAN);
    CHECK(!store_aggregate_parse("worst", &aggregate));
    store_close(store);
}

/* The same on two machines is two configurations; with other software it is one. */
TEST(machines_are_configurations)
{
    static const char *const servers[] = {"one", "other"};
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "model", .y = "time_median", .aggregate = STORE_MAX};
    for (int i = 0; i < 2; i++) {
        struct record record;
        record_start(&record);
        CHECK_OK(point_set(&record.point, &axes[AXIS_model], "small"));
        CHECK_OK(point_set(&record.point, &axes[AXIS_server], servers[i]));
        record.time_ns.median = 300 + 200 * i;
        CHECK_OK(add_record(store, &record, NULL));
    }
    check_chart(store, query, "/small=500(300..500 n2 u2 c2 #2) ");
    query.where = WHERE({"server", "other"});
    struct record newer;
    record_start(&newer);
    CHECK_OK(point_set(&newer.point, &axes[AXIS_model], "small"));
    CHECK_OK(point_set(&newer.point, &axes[AXIS_server], "other"));
    CHECK_OK(point_set(&newer.point, &axes[AXIS_software], "prony 2"));
    newer.time_ns.median = 100;
    CHECK_OK(add_record(store, &newer, NULL));
    check_chart(store, query, "/small=500(100..500 n2 u2 c1 #2) ");
    struct store_chart chart;
    CHECK_OK(store_chart(store, &query, &chart));
    CHECK_EQUAL_INT(chart.differs, (uint64_t)1 << AXIS_software);
    store_chart_free(&chart);
    store_close(store);
}

/* A result whose axes are words, with samples about `time_ns`. */
static void add_words(struct store *store, const char *words, double time_ns)
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

/* The box of one result is that of its samples, turned round for a rate; of several, theirs. */
TEST(boxes)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "batch", .y = "time_median", .aggregate = STORE_MEDIAN};
    struct store_chart chart;
    add_words(store, "model=a batch=10", 100);
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 1)) {
        CHECK_NEAR(chart.marks[0].box[0], 96, 1e-9);
        CHECK_NEAR(chart.marks[0].box[2], 100, 1e-9);
        CHECK_NEAR(chart.marks[0].box[4], 104, 1e-9);
        CHECK(chart.marks[0].box[1] > 96 && chart.marks[0].box[1] < 100);
        CHECK(chart.marks[0].low >= 96 && chart.marks[0].low < 100);
    }
    store_chart_free(&chart);
    query.y = "throughput";
    if (CHECK_OK(store_chart(store, &query, &chart))) {
        CHECK_NEAR(chart.marks[0].box[0], 10e9 / 104, 1);
        CHECK_NEAR(chart.marks[0].box[4], 10e9 / 96, 1);
    }
    store_chart_free(&chart);
    query.y = "time_min"; /* one figure */
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK(isnan(chart.marks[0].box[0]));
    store_chart_free(&chart);
    add_words(store, "model=b batch=10", 200);
    add_words(store, "model=b batch=10 threads=2", 300);
    query.y = "time_median";
    if (CHECK_OK(store_chart(store, &query, &chart))) {
        CHECK_NEAR(chart.marks[0].y, 200, 1e-9);
        CHECK_NEAR(chart.marks[0].box[1], 150, 1e-9);
        CHECK_EQUAL_INT(chart.marks[0].configurations, 3);
        CHECK_EQUAL_INT(chart.marks[0].differs,
                        (uint64_t)1 << AXIS_model | (uint64_t)1 << AXIS_threads);
        CHECK_EQUAL_INT(chart.marks[0].ids[0], 3);
    }
    store_chart_free(&chart);
    store_close(store);
}

/* Speed-up and efficiency by hand. */
TEST(baselines)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_query query = {.x = "threads",
                                .y = "time_median",
                                .groups = {"backend"},
                                .group_count = 1,
                                .aggregate = STORE_MEDIAN,
                                .baseline = "threads=1"};
    struct store_chart chart;
    add_words(store, "backend=ref threads=2", 1000);
    add_words(store, "backend=simd threads=1", 400);
    add_words(store, "backend=simd threads=4", 200);
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 3)) {
        CHECK(isnan(chart.marks[0].speedup)); /* ref has no point at one thread */
        CHECK_NEAR(chart.marks[1].speedup, 1, 1e-9);
        CHECK_NEAR(chart.marks[2].speedup, 2, 1e-9);
        CHECK_NEAR(chart.marks[2].efficiency, 0.5, 1e-9);
        CHECK(chart.marks[2].speedup_low < 2 && chart.marks[2].speedup_high > 2);
    }
    store_chart_free(&chart);
    query.baseline = "first";
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_NEAR(chart.marks[0].speedup, 1, 1e-9);
    store_chart_free(&chart);
    query.baseline = "backend=ref threads=2";
    query.y = "throughput"; /* the other way round, the same speed-up */
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_NEAR(chart.marks[2].speedup, 5, 1e-9);
    store_chart_free(&chart);
    query.baseline = "model=a";
    CHECK_STATUS(STATUS_INPUT, store_chart(store, &query, &chart));
    CHECK_MESSAGE("expected x or an axis of the groups");
    store_close(store);
}

/* Strong scaling reads the batch as that of all; one worker scales either way. */
TEST(scaling_reads_the_batch)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    add_words(store, "workers=1 batch=64", 100);
    add_words(store, "workers=2 batch=32 scaling=strong", 60);
    add_words(store, "workers=2 batch=64 scaling=weak", 110);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "strong"}, {"batch", "64"})), 2);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "weak"}, {"batch", "64"})), 2);
    CHECK_EQUAL_INT(count(store, WHERE({"scaling", "strong"}, {"batch", "32"})), 0);
    struct store_query query = {.x = "workers",
                                .y = "time_median",
                                .where = WHERE({"scaling", "weak"}),
                                .baseline = "first"};
    struct store_chart chart;
    if (CHECK_OK(store_chart(store, &query, &chart)) && CHECK(chart.count == 2)) {
        CHECK_NEAR(chart.marks[1].ideal, 1, 1e-9); /* at best it takes as long */
        CHECK_NEAR(chart.marks[1].efficiency, 100.0 / 110, 1e-9);
    }
    store_chart_free(&chart);
    store_close(store);
}

/* The newest of the same configuration are matched; the verdict is that of the intervals. */
TEST(compares)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    struct store_matches matches;
    add_words(store, "model=a batch=1 framework=prony backend=simd", 900);
    add_words(store, "model=a batch=1 framework=prony backend=simd", 100);
    add_words(store, "model=a batch=1 framework=numpy", 200);
    add_words(store, "model=a batch=2 framework=prony backend=simd", 300);
    add_words(store, "model=a batch=2 framework=numpy", 300);
    add_words(store, "model=a batch=4 framework=numpy", 1);
    struct store_opposed question = {
        .a = WHERE({"framework", "prony"}), .b = WHERE({"framework", "numpy"}), .y = "time_median"};
    if (CHECK_OK(store_compare(store, &question, &matches)) && CHECK(matches.count == 2)) {
        CHECK_NEAR(matches.list[0].found.ratio, 0.5, 1e-9);
        CHECK_EQUAL_INT(matches.list[0].found.verdict, VERDICT_FASTER);
        CHECK_EQUAL_INT(matches.list[0].a.id, 2);
        CHECK_EQUAL_INT(matches.list[1].found.verdict, VERDICT_UNKNOWN); /* wide intervals */
        CHECK_EQUAL_INT(matches.only_b, 1);
        CHECK_EQUAL_INT(matches.axes, (uint64_t)1 << AXIS_batch);
    }
    store_matches_free(&matches);
    question.y = "throughput";
    if (CHECK_OK(store_compare(store, &question, &matches)))
        CHECK_NEAR(matches.list[0].found.ratio, 0.5, 1e-9);
    store_matches_free(&matches);
    store_close(store);
}

/* What is removed is gone, for those who had the store open too. */
TEST(removes)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    fill(store);
    struct store *other = open_store(at, STORE_READ);
    CHECK_EQUAL_INT(count(other, (struct store_where){0}), SAMPLES);
    CHECK_OK(store_remove(store, SAMPLES));
    CHECK_STATUS(STATUS_INPUT, store_remove(store, SAMPLES));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), SAMPLES - 1);
    CHECK_EQUAL_INT(count(other, (struct store_where){0}), SAMPLES - 1);
    CHECK_OK(add_sample(store, &(struct sample){"new", "3", "ref", 5, RECORD_RIGHT}, NULL));
    CHECK_EQUAL_INT(count(other, WHERE({"model", "large"})), 0); /* whose number it now has */
    CHECK_EQUAL_INT(count(other, WHERE({"model", "new"})), 1);
    struct store_state state;
    CHECK_OK(store_look(other, &state));
    CHECK_EQUAL_INT(state.change, 1);
    store_close(other);
    CHECK_OK(store_vacuum(store));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), SAMPLES);
    store_close(store);
}

static enum status note_running(void *context, const struct store_running *running)
{
    CHECK_EQUAL_INT(running->done, 2);
    CHECK_EQUAL_TEXT(running->current, "large training");
    ++*(int *)context;
    return STATUS_OK;
}

/* A bench that runs is told of; one that is over, or was killed, is not. */
TEST(running_benches)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    char server[100] = "";
    int told = 0;
    gethostname(server, sizeof server - 1);
    struct store_running running = {getpid(),         server, "2026-11-15T10:03:58Z", 2, 3,
                                    "large training", NAN};
    CHECK_OK(store_run(store, &running));
    CHECK_OK(store_run(store, &running));
    CHECK_OK(store_running(store, 600, note_running, &told));
    CHECK_EQUAL_INT(told, 1);
    store_run_end(store, getpid());
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    running.process = child;
    CHECK_OK(store_run(store, &running));
    CHECK_OK(store_running(store, 600, note_running, &told));
    CHECK_EQUAL_INT(told, 1);
    store_close(store);
}

/* Runs SQL on a file, as another program would. */
static void run_sql(const char *at, const char *sql)
{
    sqlite3 *db;
    CHECK_EQUAL_INT(sqlite3_open(at, &db), SQLITE_OK);
    CHECK_EQUAL_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A store made before some columns existed is brought up to date, with what its lines know. */
TEST(old_store_gets_new_columns)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    fill(store);
    store_close(store);
    run_sql(at, "ALTER TABLE result DROP COLUMN backend; ALTER TABLE result DROP COLUMN floor;"
                "ALTER TABLE result DROP COLUMN effective_batch");
    store = open_store(at, STORE_READ);
    if (store) {
        CHECK_EQUAL_INT(count(store, WHERE({"backend", "simd"})), 1);
        CHECK_EQUAL_INT(count(store, WHERE({"effective_batch", "10"})), 3);
    }
    store_close(store);
}

/* As the first version of prony made it. */
static const char version_1[] =
    "PRAGMA application_id = 0x50524f4e; PRAGMA user_version = 1;"
    "CREATE TABLE line (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, kind TEXT NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE INDEX line_hash ON line (hash);"
    "CREATE TABLE result (id INTEGER PRIMARY KEY REFERENCES line (id), status TEXT NOT NULL,"
    " verdict TEXT NOT NULL, configuration INTEGER NOT NULL, model TEXT, batch INTEGER);"
    "INSERT INTO line VALUES (4, 7, 'result', '{\"prony\":1,\"kind\":\"result\",\"point\":"
    "{\"model\":\"old\",\"batch\":3},\"status\":\"ok\",\"result\":{\"time_ns\":{\"median\":5}}}');"
    "INSERT INTO result VALUES (4, 'ok', 'none', 1, 'old', 3)";

TEST(store_of_version_1)
{
    const char *at = fresh_path();
    store_close(open_store(at, STORE_WRITE)); /* makes the folder */
    unlink(at);
    run_sql(at, version_1);
    struct store *store = open_store(at, STORE_WRITE);
    if (store) {
        CHECK_EQUAL_INT(count(store, WHERE({"model", "old"}, {"source", "own"})), 1);
        check_chart(store,
                    (struct store_query){.x = "batch", .y = "time_median", .aggregate = STORE_MIN},
                    "/3=5(5..5 n1 u1 c1 #4) ");
        fill(store);
        CHECK_EQUAL_INT(count(store, (struct store_where){0}), SAMPLES + 1);
        CHECK_OK(store_remove(store, 4));
    }
    store_close(store);
}

static enum status append_problem(void *context, const char *problem)
{
    text_printf(context, "%s\n", problem);
    return STATUS_OK;
}

TEST(checks)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    struct text problems = {0};
    int64_t lines;
    fill(store);
    CHECK_OK(store_check(store, append_problem, &problems, &lines));
    CHECK_EQUAL_TEXT(text_of(&problems), "");
    CHECK_EQUAL_INT(lines, SAMPLES);
    run_sql(at, "UPDATE line SET text = '{' WHERE id = 2; DELETE FROM result WHERE id = 3");
    CHECK_OK(store_check(store, append_problem, &problems, &lines));
    CHECK(strstr(text_of(&problems), "record:2:") != NULL);
    CHECK(strstr(text_of(&problems), "no columns for record 3") != NULL);
    text_free(&problems);
    store_close(store);
}

/* Opening fails with this message and leaves every byte as it was. */
static void check_refused(const char *at, enum store_access access, const char *message)
{
    struct text before = {0}, after = {0};
    struct store *store;
    CHECK_OK(file_read(at, 1 << 24, &before));
    CHECK_STATUS(STATUS_INPUT, store_open(at, access, &store));
    CHECK(store == NULL);
    CHECK_MESSAGE(message);
    CHECK_MESSAGE(at);
    CHECK_OK(file_read(at, 1 << 24, &after));
    CHECK(before.length == after.length && memcmp(before.data, after.data, after.length) == 0);
    text_free(&before);
    text_free(&after);
}

TEST(files_that_are_not_stores)
{
    char at[sizeof path];
    snprintf(at, sizeof at, "%s", fresh_path());
    struct store *store;
    CHECK_STATUS(STATUS_INPUT, store_open(at, STORE_READ, &store));
    CHECK_MESSAGE("no store here yet");
    CHECK(!file_exists(at));
    store_close(open_store(at, STORE_WRITE)); /* makes the folder */
    char other[sizeof at + 8];
    snprintf(other, sizeof other, "%s.other", at);
    run_sql(other, "CREATE TABLE song (title TEXT); INSERT INTO song VALUES ('x')");
    check_refused(other, STORE_WRITE, "another program's");
    run_sql(at, "PRAGMA user_version = 99");
    check_refused(at, STORE_WRITE, "version 99");
    snprintf(other, sizeof other, "%s.text", at);
    char poem[4096];
    memset(poem, 'x', sizeof poem);
    CHECK_OK(file_write(other, poem, sizeof poem));
    check_refused(other, STORE_WRITE, "expected a store of prony");
    check_refused(other, STORE_READ, "expected a store of prony");
}

/* Every page after the first is overwritten: an error, not a crash, and no change. */
TEST(damaged_store_is_reported)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    struct text bytes = {0};
    fill(store);
    store_close(store);
    run_sql(at, "PRAGMA wal_checkpoint(TRUNCATE)");
    CHECK_OK(file_read(at, 1 << 24, &bytes));
    memset(bytes.data + 4096, 0x5a, bytes.length - 4096);
    CHECK_OK(file_write(at, bytes.data, bytes.length));
    store = open_store(at, STORE_WRITE);
    int64_t listed = 0;
    if (store) {
        CHECK_STATUS(STATUS_INPUT,
                     store_list(store, (struct store_where){0}, 0, 0, count_line, &listed));
        CHECK_MESSAGE("left as it is");
        CHECK_STATUS(STATUS_INPUT, add_sample(store, &samples[0], NULL));
    }
    store_close(store);
    text_free(&bytes);
}

/* A process that is killed while it adds leaves whole records only. */
TEST(killed_while_adding)
{
    const char *at = fresh_path();
    store_close(open_store(at, STORE_WRITE));
    int told[2];
    char byte;
    if (!CHECK(pipe(told) == 0))
        return;
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* should the parent die first */
        struct store *store = open_store(at, STORE_WRITE);
        for (int i = 0;; i++) {
            char batch[16];
            snprintf(batch, sizeof batch, "%d", i + 1);
            add_sample(store, &(struct sample){"small", batch, "ref", i, RECORD_RIGHT}, NULL);
            if (i == 0 && write(told[1], "!", 1) != 1)
                _exit(1);
        }
    }
    close(told[1]);
    CHECK(read(told[0], &byte, 1) == 1); /* the first is there, more are on their way */
    close(told[0]);
    usleep(20000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct store *store = open_store(at, STORE_WRITE);
    int64_t lines = 0, results = count(store, (struct store_where){0});
    CHECK_OK(store_export(store, NULL, count_line, &lines));
    CHECK(results > 0);
    CHECK_EQUAL_INT(lines, results);
    bool added = false;
    CHECK_OK(add_sample(store, &samples[0], &added));
    store_close(store);
}

/* Two make a store and write to it at once: each waits for the other. */
static void write_both(void)
{
    const char *at = fresh_path();
    enum { EACH = 10 };
    pid_t child = fork();
    struct store *store = open_store(at, STORE_WRITE);
    for (int i = 0; store && i < EACH; i++) {
        char batch[16];
        snprintf(batch, sizeof batch, "%d", i + 1);
        CHECK_OK(add_sample(
            store, &(struct sample){child ? "parent" : "child", batch, "ref", i, RECORD_RIGHT},
            NULL));
    }
    if (child == 0)
        _exit(check_failures ? 1 : 0);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQUAL_INT(status, 0);
    if (store)
        CHECK_EQUAL_INT(count(store, (struct store_where){0}), 2 * EACH);
    store_close(store);
}

TEST(two_writers)
{
    for (int i = 0; i < 10; i++) /* making it is a race, seen lost one time in thirty */
        write_both();
}

TEST(memory_may_run_out_anywhere)
{
    const char *at = fresh_path();
    struct store *store = open_store(at, STORE_WRITE);
    fill(store);
    store_close(store);
    long nth = 1;
    for (bool done = false; !done && nth < 1000; nth++) {
        struct text out = {0};
        struct store_query query = {.x = "batch",
                                    .y = "time_median",
                                    .groups = {"backend"},
                                    .group_count = 1,
                                    .where = WHERE({"model", "small"}),
                                    .aggregate = STORE_BEST,
                                    .baseline = "batch=1"};
        struct store_chart chart = {0};
        memory_fail_at(nth);
        enum status status = store_open(at, STORE_WRITE, &store);
        if (status == STATUS_OK)
            status = store_chart(store, &query, &chart);
        store_chart_free(&chart);
        if (status == STATUS_OK)
            status = store_get(store, 1, &out);
        done = !memory_failed();
        memory_fail_at(0);
        CHECK_EQUAL_INT(status, done ? STATUS_OK : STATUS_MEMORY);
        store_close(store);
        text_free(&out);
    }
    CHECK(nth > 5 && nth < 1000);
}

CHECK_MAIN
