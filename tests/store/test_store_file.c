/* test_store_file.c: files that are old, damaged, not ours, or written by two at once; a writer
 * that is killed; memory that runs out. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stored.h"

#include <sqlite3.h>
#include <sys/wait.h>

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

/* Older stores have two indexes, which become one; the SQL fails where it finds anything else. */
TEST(has_one_index)
{
    static const char as_before[] = "DROP INDEX line_kind_hash;"
                                    "CREATE INDEX line_hash ON line (hash);"
                                    "CREATE INDEX line_kind ON line (kind) WHERE kind <> 'result'";
    const char *at = fresh_path();
    bool added = true;
    struct store *store = open_store(at, STORE_WRITE);
    if (store)
        fill(store);
    store_close(store);
    run_sql(at, as_before);
    store = open_store(at, STORE_WRITE);
    if (store)
        CHECK_OK(add_sample(store, &samples[0], &added));
    CHECK(!added);
    store_close(store);
    run_sql(at, as_before);
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

/* What was changed beside a record is found by what the record says, and made again. */
TEST(check_compares_columns_with_lines)
{
    static const char *const changes[] = {
        "UPDATE result SET batch = 99 WHERE id = 2",
        "UPDATE result SET time_median = 1 WHERE id = 2",
        "UPDATE result SET framework = NULL WHERE id = 2",
        "UPDATE result SET source = 'shipped' WHERE id = 2",
        "UPDATE result SET floor = 3 WHERE id = 2",
        "UPDATE line SET hash = hash + 1 WHERE id = 2",
        "UPDATE line SET kind = 'machine' WHERE id = 2",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = fresh_path();
        struct store *store = open_store(at, STORE_WRITE);
        struct text problems = {0};
        int64_t lines;
        fill(store);
        run_sql(at, changes[i]);
        CHECK_OK(store_check(store, append_problem, &problems, &lines));
        CHECK(strstr(text_of(&problems), "record 2: ") != NULL);
        CHECK_OK(store_repair(store));
        text_clear(&problems);
        CHECK_OK(store_check(store, append_problem, &problems, &lines));
        CHECK_EQUAL_TEXT(text_of(&problems), "");
        CHECK_EQUAL_INT(count(store, WHERE({"batch", "10"})), 3);
        text_free(&problems);
        store_close(store);
    }
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
    char at[200];
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

/* A file from elsewhere may have more in it than tables: nothing of that is run. */
TEST(views_and_triggers_are_refused)
{
    static const struct {
        const char *sql, *message;
    } cases[] = {
        {"DROP TABLE line; CREATE VIEW line AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT "
         "id + 1 FROM n) SELECT id, 0 AS hash, 'result' AS kind, '{}' AS text, 0 AS shipped FROM n",
         "the view \"line\""},
        {"CREATE VIEW more AS SELECT 1", "the view \"more\""},
        {"CREATE TRIGGER again AFTER INSERT ON line BEGIN DELETE FROM result; END",
         "the trigger \"again\""},
        {"DROP TABLE running; CREATE VIRTUAL TABLE running USING fts5(process)",
         "expected only the tables of a store"},
        {"CREATE TABLE other (id)", "the table \"other\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = fresh_path();
        store_close(open_store(at, STORE_WRITE));
        run_sql(at, cases[i].sql);
        run_sql(at, "PRAGMA journal_mode = DELETE");
        check_refused(at, STORE_READ, cases[i].message);
        check_refused(at, STORE_WRITE, cases[i].message);
    }
}

/* While another program has the store locked, records wait beside it; none is lost, and none is
 * filed twice. */
TEST(records_wait_while_the_store_is_locked)
{
    char at[200], waiting[240];
    sqlite3 *other;
    snprintf(at, sizeof at, "%s", fresh_path());
    snprintf(waiting, sizeof waiting, "%s.waiting.jsonl", at);
    struct store *store = open_store(at, STORE_WRITE);
    struct sink sink = store_sink(store);
    struct text lines[3] = {{0}};
    struct record records[3];
    for (int i = 0; i < 3; i++) {
        record_start(&records[i]);
        records[i].point.batch = i + 1;
        record_write(&records[i], &lines[i]);
    }
    CHECK_EQUAL_INT(sqlite3_open(at, &other), SQLITE_OK);
    CHECK_EQUAL_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    CHECK_OK(sink.write(sink.context, text_of(&lines[0]), &records[0]));
    CHECK(file_exists(waiting));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), 0);
    uint64_t began = clock_ns();
    store_close(open_store(at, STORE_WRITE));
    CHECK(clock_ns() - began < 9000000000u); /* opening does not wait for ten seconds */
    sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
    CHECK_OK(sink.write(sink.context, text_of(&lines[1]), &records[1]));
    CHECK(!file_exists(waiting));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), 2);
    /* A bench that was killed while one waited, after it was filed but before the file was gone. */
    CHECK_OK(file_append_line(waiting, text_of(&lines[1])));
    CHECK_OK(file_append_line(waiting, text_of(&lines[2])));
    store_close(store);
    store = open_store(at, STORE_WRITE);
    CHECK(!file_exists(waiting));
    CHECK_EQUAL_INT(count(store, (struct store_where){0}), 3);
    store_close(store);
    sqlite3_close(other);
    for (int i = 0; i < 3; i++)
        text_free(&lines[i]);
}

/* Lines that are no records, or a folder in the place of the file, keep no record out. */
TEST(bad_lines_that_wait_are_put_aside)
{
    static const char bad[] = "{\"prony\":1,\"kind\":\"resu\nnonsense";
    char at[200], waiting[240], aside[240];
    snprintf(at, sizeof at, "%s", fresh_path());
    snprintf(waiting, sizeof waiting, "%s.waiting.jsonl", at);
    snprintf(aside, sizeof aside, "%s.waiting.bad", at);
    struct text line = {0}, lines = {0}, found = {0};
    struct record record;
    store_close(open_store(at, STORE_WRITE));
    for (int i = 1; i <= 2; i++) { /* the second time there is such a file already */
        record_start(&record);
        record.point.batch = i;
        text_clear(&line);
        record_write(&record, &line);
        text_clear(&lines);
        text_printf(&lines, "%s\n%s\n", bad, text_of(&line));
        CHECK_OK(file_write(waiting, text_of(&lines), lines.length));
        struct store *store = open_store(at, STORE_WRITE);
        CHECK(!file_exists(waiting));
        CHECK_EQUAL_INT(count(store, (struct store_where){0}), i);
        store_close(store);
    }
    CHECK_OK(file_read(aside, 1 << 20, &found));
    char twice[2 * sizeof bad + 2];
    snprintf(twice, sizeof twice, "%s\n%s\n", bad, bad);
    CHECK_EQUAL_TEXT(text_of(&found), twice);
    CHECK_OK(file_make_folder(waiting));
    struct store *store = open_store(at, STORE_WRITE);
    if (store)
        CHECK_OK(add_sample(store, &samples[0], NULL));
    store_close(store);
    text_free(&line);
    text_free(&lines);
    text_free(&found);
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
