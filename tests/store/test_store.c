/* test_store.c: what goes in comes out, once; filters and values; what is removed, and who runs. */
#include "base/file.h"
#include "stored.h"

#include <math.h>
#include <sys/wait.h>

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

static void add_machine(struct store *store, const char *at, const char *facts)
{
    struct arena arena = {0};
    struct json *machine;
    struct record record;
    record_start(&record);
    CHECK_OK(json_parse(&arena, "test", facts, strlen(facts), &machine));
    CHECK_OK(point_set(&record.point, &axes[AXIS_server], "vm"));
    record.machine = machine;
    record.at = at;
    CHECK_OK(add_record(store, &record, NULL));
    arena_free(&arena);
}

/* By what its newest result says, or by one that says the same and more; names replace. */
TEST(servers_have_titles)
{
    struct store *store = open_store(fresh_path(), STORE_WRITE);
    char title[TITLE_TEXT];
    CHECK_OK(store_title(store, "vm", title));
    CHECK_EQUAL_TEXT(title, "");
    add_machine(store, "2026-11-15T10:03:58Z",
                "{\"cpu\":\"AMD EPYC\",\"cores\":2,\"gpu\":{\"name\":\"NVIDIA H200\"}}");
    add_machine(store, "2026-11-15T10:04:58Z", "{\"cpu\":\"AMD EPYC\",\"cores\":2}");
    CHECK_OK(store_title(store, "vm", title));
    CHECK_EQUAL_TEXT(title, "AMD EPYC, 2 cores, NVIDIA H200");
    const struct store_filter by_title = {"machine", "AMD EPYC, 2 cores"};
    CHECK_EQUAL_INT(count(store, (struct store_where){&by_title, 1}), 1);
    add_machine(store, "2026-11-15T10:05:58Z", "{\"title\":\"lab server 3\",\"cores\":2}");
    CHECK_OK(store_title(store, "vm", title));
    CHECK_EQUAL_TEXT(title, "lab server 3");
    CHECK_OK(store_title(store, "elsewhere", title));
    CHECK_EQUAL_TEXT(title, "");
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
    CHECK_EQUAL_TEXT(running->curve, "[[1,0.5,null]]");
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
                                    "large training", NAN,    "[[1,0.5,null]]"};
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

CHECK_MAIN
