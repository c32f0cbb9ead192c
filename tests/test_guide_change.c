/* test_guide_change.c: a guide whose store is replaced, restored, cut or removed; answers that are
 * too long; clients that leave while theirs is worked on. */
#include "base/clock.h"
#include "base/file.h"
#include "served.h"

#include <stdatomic.h>
#include <sys/stat.h>

/* A store with so many results, made elsewhere and put beside the guide's. */
static bool make_other(const char *path, int results)
{
    struct store *store;
    if (!CHECK_OK(store_open(path, STORE_WRITE, &store)))
        return false;
    for (int i = 0; i < results; i++)
        CHECK_OK(add_result(store, "ref", i + 1, 1000, true));
    store_close(store);
    return true;
}

static void expect_records(int64_t records)
{
    CHECK_EQUAL_INT(json_int(get_json("/api/status", 200), "records", -1), records);
}

static void expect_message(int code, const char *message)
{
    const char *found = json_text(json_get(get_json("/api/status", code), "error"), "message", "");
    if (!CHECK(strstr(found, message)))
        printf("     found: %s\n", found);
}

/* As cp does it: into the file that is there. */
static void copy_over(const char *from, const char *to)
{
    struct text bytes = {0};
    if (!CHECK_OK(file_read(from, 1 << 26, &bytes)))
        return;
    FILE *file = fopen(to, "r+");
    if (CHECK(file)) {
        CHECK(ftruncate(fileno(file), 0) == 0);
        CHECK(fwrite(bytes.data, 1, bytes.length, file) == bytes.length);
        fclose(file);
    }
    text_free(&bytes);
}

TEST(notices_another_store)
{
    char path[300], three[300], seven[300];
    snprintf(path, sizeof path, "%s", at("full.db"));
    snprintf(three, sizeof three, "%s", at("three.db"));
    snprintf(seven, sizeof seven, "%s", at("seven.db"));
    if (!start() || !make_other(three, 3) || !make_other(seven, 7))
        return;
    expect_records(5);
    CHECK(rename(three, path) == 0); /* replaced */
    expect_records(3);
    copy_over(seven, path); /* restored in place */
    expect_records(7);
    CHECK(unlink(path) == 0);
    expect_message(503, "the store cannot be found any more");
    CHECK(rename(seven, path) == 0);
    expect_records(7);
    CHECK(truncate(path, 0) == 0);
    expect_message(500, "found an empty file");
    CHECK(truncate(path, 8192) == 0);
    expect_message(500, "expected a store of prony");
    CHECK(unlink(path) == 0);
    CHECK(make_other(path, 2));
    expect_records(2);
}

/* No answer takes more memory than is said. */
TEST(answers_are_bounded)
{
    enum { LINES = 10, PAD = 4 * 1000 * 1000 };
    struct store *store;
    if (!start() || !CHECK_OK(store_open(at("full.db"), STORE_WRITE, &store)))
        return;
    struct text ids = {0};
    for (int i = 0; i < LINES; i++) {
        struct text line = {0};
        struct record record;
        int64_t id = 0;
        record_start(&record);
        record.point.batch = i + 1;
        record_write(&record, &line);
        line.length--; /* the brace */
        text_add(&line, ",\"pad\":\"");
        for (int bytes = 0; bytes < PAD; bytes += 10)
            text_add(&line, "0123456789");
        text_add(&line, "\"}");
        CHECK_OK(store_add(store, text_of(&line), line.length, &record, &id, NULL));
        text_printf(&ids, "%s%lld", i ? "," : "/api/records?ids=", (long long)id);
        text_free(&line);
    }
    store_close(store);
    const char *found = json_text(json_get(get_json(text_of(&ids), 413), "error"), "message", "");
    CHECK(strstr(found, "more than 32 MiB"));
    CHECK_EQUAL_INT(code_of(get("/api/records?limit=500")), 413);
    CHECK_EQUAL_INT(code_of(get("/api/records?limit=2")), 200);
    text_free(&ids);
}

/* Works until the client is gone, or for five seconds. */
static atomic_int gone;

static void work(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    static const char done[] = "done";
    for (int i = 0; text_equal(request->path, "/slow") && i < 500; i++) {
        if (request->left(request)) {
            atomic_fetch_add(&gone, 1);
            break;
        }
        clock_sleep_ns(10 * 1000 * 1000);
    }
    answer->code = 200;
    answer->type = "text/plain";
    answer->bytes = done;
    answer->length = sizeof done - 1;
}

TEST(slow_answers_keep_nobody_waiting)
{
    enum { SLOW = 8 };
    static const char slow[] = "GET /slow HTTP/1.1\r\n" LOCAL "\r\n";
    static const char quick[] = "GET /quick HTTP/1.1\r\n" LOCAL "\r\n";
    struct http *http;
    int fds[SLOW];
    if (!CHECK_OK(http_start(&(struct http_place){0}, work, NULL, &http)))
        return;
    for (int i = 0; i < SLOW; i++) {
        fds[i] = connect_to(http_port(http));
        CHECK(send(fds[i], slow, sizeof slow - 1, MSG_NOSIGNAL) > 0);
    }
    uint64_t before = clock_ns();
    CHECK_EQUAL_INT(code_of(exchange(http_port(http), quick, sizeof quick - 1)), 200);
    CHECK(clock_ns() - before < 2000000000u);
    CHECK_EQUAL_INT(atomic_load(&gone), 0);
    for (int i = 0; i < SLOW; i++)
        close(fds[i]);
    for (int i = 0; i < 200 && atomic_load(&gone) < SLOW; i++)
        clock_sleep_ns(10 * 1000 * 1000);
    CHECK_EQUAL_INT(atomic_load(&gone), SLOW);
    http_stop(http);
}

static bool stop_at_once(void *context)
{
    ++*(int *)context;
    return true;
}

TEST(questions_can_be_withdrawn)
{
    struct store *store;
    struct store_chart chart;
    struct store_query query = {.x = "batch", .y = "throughput", .baseline = "batch=1"};
    int asked = 0;
    if (!make_other(at("many.db"), 200) || !CHECK_OK(store_open(at("many.db"), STORE_READ, &store)))
        return;
    store_watch(store, stop_at_once, &asked);
    CHECK_STATUS(STATUS_INTERRUPTED, store_chart(store, &query, &chart));
    CHECK_EQUAL_INT(asked, 1);
    store_watch(store, NULL, NULL);
    if (CHECK_OK(store_chart(store, &query, &chart)))
        CHECK_EQUAL_INT(chart.count, 200);
    store_chart_free(&chart);
    store_close(store);
}

TEST(stops)
{
    guide_stop(guide);
    guide = NULL;
}

CHECK_MAIN
