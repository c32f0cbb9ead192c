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

/* "/slow" is worked on until the client is gone or the test says that it is enough. */
struct slow {
    atomic_bool enough;
    atomic_int working, gone;
};

static void work(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct slow *slow = context;
    static const char done[] = "done";
    if (text_equal(request->path, "/slow")) {
        atomic_fetch_add(&slow->working, 1);
        bool left = false;
        while (!atomic_load(&slow->enough) && !(left = request->left(request)))
            clock_sleep_ns(10 * 1000 * 1000);
        atomic_fetch_add(&slow->gone, left);
    }
    answer->code = 200;
    answer->type = "text/plain";
    answer->bytes = done;
    answer->length = sizeof done - 1;
}

/* Until the count is reached; a machine with much to do is given 20 s. */
static bool await_count(const atomic_int *count, int expected)
{
    for (int i = 0; i < 2000 && atomic_load(count) < expected; i++)
        clock_sleep_ns(10 * 1000 * 1000);
    return atomic_load(count) == expected;
}

static const char slow_request[] = "GET /slow HTTP/1.1\r\n" LOCAL "\r\n";

/* Slow answers end when their clients leave, which is after the quick one. */
TEST(slow_answers_keep_nobody_waiting)
{
    enum { SLOW = 8 };
    static const char quick[] = "GET /quick HTTP/1.1\r\n" LOCAL "\r\n";
    struct slow slow = {0};
    struct http *http;
    int fds[SLOW];
    if (!CHECK_OK(http_start(&(struct http_place){0}, work, &slow, &http)))
        return;
    for (int i = 0; i < SLOW; i++) {
        fds[i] = connect_to(http_port(http));
        CHECK(send(fds[i], slow_request, sizeof slow_request - 1, MSG_NOSIGNAL) > 0);
    }
    CHECK(await_count(&slow.working, SLOW));
    CHECK_EQUAL_INT(code_of(exchange(http_port(http), quick, sizeof quick - 1)), 200);
    CHECK_EQUAL_INT(atomic_load(&slow.gone), 0);
    for (int i = 0; i < SLOW; i++)
        close(fds[i]);
    CHECK(await_count(&slow.gone, SLOW));
    atomic_store(&slow.enough, true);
    http_stop(http);
}

/* A client that has said all it will say (nc -N) still waits for its answer. */
TEST(half_closed_clients_are_answered)
{
    struct slow slow = {0};
    struct http *http;
    struct text answer = {0};
    char piece[1024];
    ssize_t got;
    if (!CHECK_OK(http_start(&(struct http_place){0}, work, &slow, &http)))
        return;
    int fd = connect_to(http_port(http));
    CHECK(send(fd, slow_request, sizeof slow_request - 1, MSG_NOSIGNAL) > 0);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    CHECK(await_count(&slow.working, 1));
    clock_sleep_ns(300 * 1000 * 1000);
    CHECK_EQUAL_INT(atomic_load(&slow.gone), 0);
    atomic_store(&slow.enough, true);
    while ((got = recv(fd, piece, sizeof piece, 0)) > 0)
        text_add_bytes(&answer, piece, (size_t)got);
    CHECK(strstr(text_of(&answer), "HTTP/1.1 200 OK\r\n"));
    CHECK(strstr(text_of(&answer), "\r\n\r\ndone"));
    text_free(&answer);
    close(fd);
    http_stop(http);
}

enum { LARGE_BYTES = 16 << 20, PIECE = 1 << 16 };

static void give_much(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    static const char piece[PIECE];
    answer->code = 200;
    answer->type = "text/plain";
    for (int bytes = 0; text_equal(request->path, "/large") && bytes < LARGE_BYTES;) {
        bytes += PIECE;
        text_add_bytes(&answer->text, piece, PIECE);
    }
    text_add(&answer->text, "done");
}

/* Asks, and reads no more than the first line of the answer. */
static int ask_and_wait(uint16_t port, int *fd)
{
    static const char large[] = "GET /large HTTP/1.1\r\n" LOCAL "\r\n";
    char first[32] = "";
    *fd = connect_to(port);
    return send(*fd, large, sizeof large - 1, MSG_NOSIGNAL) > 0 &&
                   recv(*fd, first, sizeof first - 1, 0) > 0
               ? code_of(first)
               : 0;
}

/* Clients that read nothing make the server keep their answers: it keeps so many bytes of them. Who
 * has read nothing for long makes room. */
TEST(answers_on_their_way_are_bounded)
{
    enum { FIT = 7, TRIES = 400 };
    static const char quick[] = "GET / HTTP/1.1\r\n" LOCAL "\r\n";
    struct http *http;
    int fds[FIT + 1], again, code = 503;
    if (!CHECK_OK(http_start(&(struct http_place){0}, give_much, NULL, &http)))
        return;
    for (int i = 0; i <= FIT; i++)
        CHECK_EQUAL_INT(ask_and_wait(http_port(http), &fds[i]), i < FIT ? 200 : 503);
    CHECK_EQUAL_INT(code_of(exchange(http_port(http), quick, sizeof quick - 1)), 200);
    for (int i = 0; i < TRIES && code == 503; i++) {
        clock_sleep_ns(50 * 1000 * 1000);
        code = ask_and_wait(http_port(http), &again);
        close(again);
    }
    CHECK_EQUAL_INT(code, 200);
    for (int i = 0; i <= FIT; i++)
        close(fds[i]);
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
