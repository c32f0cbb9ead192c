/* test_store_behind.c: a bench that writes to a file and a store: the store is locked, was left
 * behind by a bench that was killed, or lacks what its owner removed. */
#include "base/clock.h"
#include "base/file.h"
#include "stored.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static const char then[] = "2026-11-15T10:03:58Z", before[] = "2026-11-15T09:00:00Z";

/* A file and a store with nothing in them. */
struct places {
    char store[200], file[240], waiting[240];
};

static void make_places(struct places *places)
{
    snprintf(places->store, sizeof places->store, "%s", fresh_path());
    snprintf(places->file, sizeof places->file, "%s.jsonl", places->store);
    snprintf(places->waiting, sizeof places->waiting, "%s.waiting.jsonl", places->store);
    store_close(open_store(places->store, STORE_WRITE));
}

static void write_line(int batch, const char *at, struct record *record, struct text *line)
{
    record_start(record);
    record->point.batch = batch;
    record->at = at;
    text_clear(line);
    record_write(record, line);
}

static void append_result(const struct places *places, int batch, const char *at)
{
    struct record record;
    struct text line = {0};
    write_line(batch, at, &record, &line);
    CHECK_OK(file_append_line(places->file, text_of(&line)));
    text_free(&line);
}

/* What a bench leaves that was killed. */
static void leave_run(const struct places *places)
{
    char server[POINT_TEXT] = "";
    struct store *store = open_store(places->store, STORE_WRITE);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    gethostname(server, sizeof server - 1);
    CHECK_OK(store_run(
        store, &(struct store_running){
                   .process = child, .server = server, .started = then, .current = "small"}));
    store_close(store);
}

/* As a bench does it: what was left behind, then a result of its own (batch 0: none). */
static void run_bench(const struct places *places, struct store *store, int batch)
{
    struct record record;
    struct text line = {0}, file = {0};
    if (file_exists(places->file))
        CHECK_OK(file_read(places->file, 1 << 20, &file));
    CHECK_OK(store_catch_up(store, places->file, &file));
    if (batch) {
        write_line(batch, then, &record, &line);
        CHECK_OK(file_append_line(places->file, text_of(&line)));
        CHECK_OK(store_keep(store, text_of(&line), &record));
    }
    text_free(&file);
    text_free(&line);
}

static int64_t run_whole_bench(const struct places *places, int batch)
{
    struct store *store = open_store(places->store, STORE_WRITE);
    run_bench(places, store, batch);
    store_run_end(store, getpid());
    int64_t results = count(store, (struct store_where){0});
    store_close(store);
    return results;
}

/* Nothing is missing, or lines that a killed bench left are: it measures all the same, and waits
 * for a second or two, not for ten. */
TEST(measures_while_the_store_is_locked)
{
    for (int killed = 0; killed < 2; killed++) {
        struct places places;
        sqlite3 *other;
        make_places(&places);
        if (killed) {
            leave_run(&places);
            append_result(&places, 7, then);
        }
        struct store *store = open_store(places.store, STORE_WRITE);
        CHECK_EQUAL_INT(sqlite3_open(places.store, &other), SQLITE_OK);
        CHECK_EQUAL_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        uint64_t began = clock_ns();
        run_bench(&places, store, 0);
        CHECK_EQUAL_INT(file_exists(places.waiting), killed);
        status_fail(STATUS_WRONG, "file", 1, "what the bench said");
        store_run_end(store, getpid());
        CHECK_MESSAGE("what the bench said");
        CHECK(clock_ns() - began < 9000000000u);
        sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
        store_end_waiting(store);
        CHECK(!file_exists(places.waiting));
        CHECK_EQUAL_INT(count(store, (struct store_where){0}), killed);
        store_close(store);
        sqlite3_close(other);
    }
}

/* What is added is the end of the file since the killed bench began, and once. */
TEST(catches_up_after_a_kill)
{
    struct places places;
    make_places(&places);
    append_result(&places, 1, before);
    append_result(&places, 2, then);
    append_result(&places, 3, then);
    CHECK_EQUAL_INT(run_whole_bench(&places, 0), 0); /* the file is none of this store's */
    leave_run(&places);
    CHECK_EQUAL_INT(run_whole_bench(&places, 4), 3);
    append_result(&places, 5, then);
    CHECK_EQUAL_INT(run_whole_bench(&places, 0), 3); /* that it was killed is forgotten */
}

TEST(removed_records_stay_removed)
{
    struct places places;
    make_places(&places);
    CHECK_EQUAL_INT(run_whole_bench(&places, 1), 1);
    CHECK_EQUAL_INT(run_whole_bench(&places, 2), 2);
    struct store *store = open_store(places.store, STORE_CHANGE);
    CHECK_OK(store_remove(store, 2));
    store_close(store);
    CHECK_EQUAL_INT(run_whole_bench(&places, 3), 2);
}

CHECK_MAIN
