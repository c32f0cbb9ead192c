/* test_guide.c: the guide over real sockets: what it serves, what it refuses, and that nothing a
 * client does stops it serving; and the figures of its API. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "guide/api.h"
#include "guide/guide.h"
#include "store/store.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

#define LOCAL "Host: localhost\r\nConnection: close\r\n"

/* A file name in a folder of this run; the folder is emptied at the end. */
static char folder[] = "/tmp/prony-guide-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[200];
    if (folder[strlen(folder) - 1] == 'X' && !mkdtemp(folder))
        return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

__attribute__((destructor)) static void remove_folder(void)
{
    static const char *const names[] = {"full.db", "later.db"};
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
            char path[200];
            snprintf(path, sizeof path, "%s/%s%s", folder, names[i], suffixes[k]);
            unlink(path);
        }
    rmdir(folder);
}

/* One result: seven samples about `time_ns`; skipped when that is 0. */
static enum status add_result(struct store *store, const char *backend, int64_t batch,
                              double time_ns, bool checked)
{
    struct arena arena = {0};
    struct text line = {0};
    struct record record;
    const double samples[] = {time_ns,        time_ns * 0.98, time_ns * 1.02, time_ns * 0.99,
                              time_ns * 1.01, time_ns * 0.97, time_ns * 1.03};
    record_start(&record);
    snprintf(record.point.model, sizeof record.point.model, "small");
    snprintf(record.point.backend, sizeof record.point.backend, "%s", backend);
    record.point.batch = batch;
    record.at = "2026-11-15T10:03:58Z";
    record.check.verdict = checked ? RECORD_RIGHT : RECORD_UNCHECKED;
    enum status status = STATUS_OK;
    if (time_ns > 0)
        status = record_measure(&record, &arena, samples, 7, 1);
    else
        record.status = RECORD_SKIPPED;
    if (status == STATUS_OK) {
        record_write(&record, &line);
        status = text_done(&line);
    }
    if (status == STATUS_OK)
        status = store_add(store, text_of(&line), line.length, &record, NULL, NULL);
    text_free(&line);
    arena_free(&arena);
    return status;
}

static enum status make_store(const char *path)
{
    struct store *store;
    TRY(store_open(path, STORE_WRITE, &store));
    enum status status = add_result(store, "ref", 1, 1000, true);
    if (status == STATUS_OK)
        status = add_result(store, "ref", 10, 5000, true);
    if (status == STATUS_OK)
        status = add_result(store, "simd", 1, 400, true);
    if (status == STATUS_OK)
        status = add_result(store, "simd", 10, 800, false);
    if (status == STATUS_OK)
        status = add_result(store, "cuda", 10, 0, false);
    store_close(store);
    return status;
}

/* One guide for all tests, over four results and one that was skipped. */
static struct guide *guide;

static bool start(void)
{
    if (guide)
        return true;
    const char *path = path_of("full.db");
    return CHECK(path) && CHECK_OK(make_store(path)) &&
           CHECK_OK(guide_start(path, &(struct http_place){0}, &guide));
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends bytes as they are and reads until the server closes; what came lives until the next call.
 */
static const char *exchange(uint16_t port, const char *bytes, size_t length)
{
    static struct text answer;
    char piece[4096];
    ssize_t got;
    text_clear(&answer);
    text_add(&answer, "");
    int fd = connect_to(port);
    if (fd < 0)
        return "";
    if (send(fd, bytes, length, MSG_NOSIGNAL) >= 0)
        while ((got = recv(fd, piece, sizeof piece, 0)) > 0)
            text_add_bytes(&answer, piece, (size_t)got);
    close(fd);
    return text_of(&answer);
}

static const char *ask(const char *request)
{
    return exchange(guide_port(guide), request, strlen(request));
}

static const char *get(const char *path)
{
    static struct text request;
    text_clear(&request);
    text_printf(&request, "GET %s HTTP/1.1\r\n" LOCAL "\r\n", path);
    return ask(text_of(&request));
}

/* 0 when what came is no answer. */
static int code_of(const char *answer)
{
    int code = 0;
    return sscanf(answer, "HTTP/1.%*d %d", &code) == 1 ? code : 0;
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end ? end + 4 : "";
}

/* The body of a GET as JSON; lives until the next call. NULL, and a failed check, if it is none. */
static const struct json *get_json(const char *path, int code)
{
    static struct arena arena;
    struct json *tree = NULL;
    const char *answer = get(path);
    const char *body = body_of(answer);
    arena_free(&arena);
    CHECK_EQUAL_INT(code_of(answer), code);
    CHECK(strstr(answer, "Content-Type: application/json"));
    CHECK_OK(json_parse(&arena, path, body, strlen(body), &tree));
    return tree;
}

TEST(serves_the_page)
{
    if (!start())
        return;
    const char *answer = get("/");
    CHECK_EQUAL_INT(code_of(answer), 200);
    CHECK(strstr(answer, "Content-Type: text/html"));
    CHECK(strstr(answer, "Content-Security-Policy: default-src 'none';"));
    CHECK(strstr(answer, "X-Content-Type-Options: nosniff"));
    CHECK(strstr(answer, "<title>prony guide</title>"));
    CHECK(strstr(get("/main.js"), "Content-Type: text/javascript"));
    CHECK(strstr(get("/style.css"), "Content-Type: text/css"));
    CHECK_EQUAL_INT(code_of(get("/?x=batch&y=throughput")), 200);
}

#define SCRIPT(encodings) "GET /main.js HTTP/1.1\r\n" LOCAL "Accept-Encoding: " encodings "\r\n\r\n"

TEST(compresses_for_who_takes_it)
{
    if (!start())
        return;
    const char *answer = ask(SCRIPT("br, gzip;q=0.5"));
    CHECK_EQUAL_INT(code_of(answer), 200);
    CHECK(strstr(answer, "Content-Encoding: gzip"));
    CHECK(strstr(answer, "Content-Type: text/javascript"));
    CHECK(text_starts(body_of(answer), "\x1f\x8b"));
    CHECK(!strstr(ask(SCRIPT("gzip;q=0, br")), "Content-Encoding"));
    CHECK(!strstr(ask(SCRIPT("xgzip")), "Content-Encoding"));
    CHECK(!strstr(get("/main.js"), "Content-Encoding"));
}

TEST(answers_head_without_a_body)
{
    if (!start())
        return;
    const char *answer = ask("HEAD / HTTP/1.1\r\n" LOCAL "\r\n");
    CHECK_EQUAL_INT(code_of(answer), 200);
    CHECK(strstr(answer, "Content-Length: "));
    CHECK_EQUAL_TEXT(body_of(answer), "");
}

TEST(refuses_foreign_hosts)
{
    static const char *const foreign[] = {
        "Host: evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: evil.example:8080\r\n",
        "Host: localhost:x\r\n",
        "Host: localhost:80:80\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: \r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: evil.example\r\nHost: localhost\r\n",
        "",
    };
    static const char *const own[] = {"localhost", "LOCALHOST", "localhost:9000", "127.0.0.1",
                                      "[::1]:8080"};
    char request[300];
    if (!start())
        return;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        snprintf(request, sizeof request, "GET /api/status HTTP/1.1\r\n%sConnection: close\r\n\r\n",
                 foreign[i]);
        int code = code_of(ask(request));
        CHECK(code == 403 || code == 400);
    }
    CHECK_EQUAL_INT(code_of(ask("GET /api/status HTTP/1.0\r\n\r\n")), 403);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        snprintf(request, sizeof request,
                 "GET /api/status HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", own[i]);
        CHECK_EQUAL_INT(code_of(ask(request)), 200);
    }
}

TEST(refuses_foreign_origins)
{
    static const char *const foreign[] = {
        "http://evil.example",          "null", "", "https://localhost", "http://localhost:3000",
        "http://localhost.evil.example"};
    char request[300];
    if (!start())
        return;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        snprintf(request, sizeof request, "GET / HTTP/1.1\r\n" LOCAL "Origin: %s\r\n\r\n",
                 foreign[i]);
        CHECK_EQUAL_INT(code_of(ask(request)), 403);
    }
    CHECK_EQUAL_INT(code_of(ask("GET / HTTP/1.1\r\n" LOCAL "Origin: http://localhost\r\n\r\n")),
                    200);
}

TEST(refuses_other_methods_and_bodies)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "X"};
    char request[200];
    if (!start())
        return;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        snprintf(request, sizeof request, "%s / HTTP/1.1\r\n" LOCAL "\r\n", methods[i]);
        const char *answer = ask(request);
        CHECK_EQUAL_INT(code_of(answer), 405);
        CHECK(strstr(answer, "Allow: GET, HEAD"));
    }
    CHECK_EQUAL_INT(code_of(ask("POST / HTTP/1.1\r\n" LOCAL "Content-Length: 3\r\n\r\nabc")), 405);
    CHECK_EQUAL_INT(code_of(ask("GET / HTTP/1.1\r\n" LOCAL "Content-Length: 999999\r\n\r\nabc")),
                    413);
    CHECK_EQUAL_INT(
        code_of(ask("GET / HTTP/1.1\r\n" LOCAL "Transfer-Encoding: chunked\r\n\r\n5\r\n")), 413);
}

TEST(reaches_no_file_system)
{
    static const char *const paths[] = {
        "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",      "/etc/passwd",
        "/./index.html",     "/index.html/../style.css",
        "/style.css/",       "/api/../index.html",
        "/..%5cindex.html",  "/index.html%2f",
        "/nothing",          "/api/",
        "/api/nothing",      "/apis",
    };
    if (!start())
        return;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        CHECK_EQUAL_INT(code_of(get(paths[i])), 404);
}

TEST(survives_malformed_requests)
{
    static const char zeros[64];
    static const char *const bad[] = {
        "\r\n\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n" LOCAL "\r\n",
        "GET  /  HTTP/1.1 \r\n" LOCAL "\r\n",
        "GET / HTTP/1.1\r\n: nameless\r\n" LOCAL "\r\n",
        "GET / HTTP/1.1\r\n" LOCAL "Content-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\n" LOCAL "Content-Length: 99999999999999999999\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    };
    if (!start())
        return;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int fd = connect_to(guide_port(guide));
        if (!CHECK(fd >= 0))
            return;
        send(fd, bad[i], strlen(bad[i]), MSG_NOSIGNAL);
        close(fd);
    }
    int fd = connect_to(guide_port(guide));
    send(fd, zeros, sizeof zeros, MSG_NOSIGNAL);
    close(fd);
    CHECK_EQUAL_INT(code_of(get("/")), 200);
}

TEST(refuses_what_is_too_large)
{
    if (!start())
        return;
    struct text request = {0};
    text_add(&request, "GET / HTTP/1.1\r\n" LOCAL "X-Long: ");
    for (int i = 0; i < 100000; i++)
        text_add_char(&request, 'a');
    text_add(&request, "\r\n\r\n");
    int code = code_of(exchange(guide_port(guide), text_of(&request), request.length));
    CHECK(code == 0 || (code >= 400 && code < 500)); /* 0: closed before it was read out */

    text_clear(&request);
    text_add(&request, "GET /api/values?");
    for (int i = 0; i < 70; i++)
        text_printf(&request, "batch=%d&", i);
    text_add(&request, " HTTP/1.1\r\n" LOCAL "\r\n");
    CHECK_EQUAL_INT(code_of(ask(text_of(&request))), 400);
    text_free(&request);
    CHECK_EQUAL_INT(code_of(get("/api/values?model=a%00b")), 400);
    CHECK_EQUAL_INT(code_of(get("/")), 200);
}

/* More connections than there are places, each with half a request: who comes after them is served
 * at once, not when they time out. */
TEST(slow_clients_do_not_keep_others_out)
{
    enum { SLOW = 400 };
    static int slow[SLOW];
    struct rlimit files;
    if (!start())
        return;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * SLOW + 64)
        SKIP("this process may only have %lld files open", (long long)files.rlim_cur);
    for (int i = 0; i < SLOW; i++) {
        slow[i] = connect_to(guide_port(guide));
        if (slow[i] >= 0)
            send(slow[i], "GET / HTTP/1.1\r\nHo", 18, MSG_NOSIGNAL);
    }
    struct timeval before, after;
    gettimeofday(&before, NULL);
    CHECK_EQUAL_INT(code_of(get("/api/status")), 200);
    gettimeofday(&after, NULL);
    CHECK(after.tv_sec - before.tv_sec < 5);
    for (int i = 0; i < SLOW; i++)
        if (slow[i] >= 0)
            close(slow[i]);
}

TEST(lists_axes_and_metrics)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/axes", 200);
    const struct json *axis_list = json_get(tree, "axes"), *metric_list = json_get(tree, "metrics");
    if (!CHECK(axis_list && metric_list))
        return;
    CHECK_EQUAL_INT(axis_list->count, AXIS_COUNT + DERIVED_COUNT);
    CHECK_EQUAL_INT(metric_list->count, METRIC_COUNT);
    CHECK_EQUAL_TEXT(json_text(axis_list->first, "key", NULL), "framework");
    CHECK_EQUAL_TEXT(json_text(axis_list->first, "kind", NULL), "text");
}

TEST(says_what_is_stored)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/status", 200);
    CHECK_EQUAL_INT(json_int(tree, "records", 0), 5);
    const struct json *newest = json_get(tree, "newest");
    CHECK_EQUAL_TEXT(json_text(newest, "at", NULL), "2026-11-15T10:03:58Z");
    CHECK_EQUAL_TEXT(json_text(json_get(newest, "point"), "backend", NULL), "simd"); /* not cuda */
}

TEST(counts_values_under_the_other_filters)
{
    if (!start())
        return;
    const struct json *values =
        json_get(get_json("/api/values?backend=simd&batch=1", 200), "values");
    const struct json *backend = json_get(values, "backend"), *batch = json_get(values, "batch");
    if (!CHECK(backend && batch))
        return;
    CHECK_EQUAL_INT(backend->count, 2); /* ref too: only the batch filter counts here */
    CHECK_EQUAL_TEXT(json_text(backend->first, "value", NULL), "ref");
    CHECK_EQUAL_INT(json_int(backend->first, "count", 0), 1);
    CHECK_EQUAL_INT(batch->count, 2);
    CHECK_EQUAL_INT(json_int(batch->first, "value", 0), 1);

    values = json_get(get_json("/api/values?axis=batch&backend=none", 200), "values");
    CHECK_EQUAL_INT(values ? values->count : 0, 1);
    batch = json_get(values, "batch");
    CHECK(batch && batch->count == 0);
}

TEST(gives_the_points_of_a_chart)
{
    if (!start())
        return;
    const struct json *points = json_get(
        get_json("/api/query?x=batch&y=time_median&group=backend&model=small", 200), "points");
    if (!CHECK(points && points->count == 4))
        return;
    const struct json *point = points->first; /* ref, 1 */
    CHECK_EQUAL_TEXT(json_get(point, "group")->first->string, "ref");
    CHECK_EQUAL_INT(json_int(point, "x", 0), 1);
    CHECK_NEAR(json_real(point, "y", 0), 1000, 1e-9);
    CHECK(json_real(point, "low", 0) < 1000 && json_real(point, "high", 0) > 1000);
    CHECK_EQUAL_INT(json_int(point, "count", 0), 1);
    CHECK_EQUAL_INT(json_int(point, "unchecked", -1), 0);
    CHECK_EQUAL_INT(json_int(point, "configurations", 0), 1);
    point = point->next->next->next; /* simd, 10 */
    CHECK_EQUAL_INT(json_int(point, "x", 0), 10);
    CHECK_NEAR(json_real(point, "y", 0), 800, 1e-9);
    CHECK_EQUAL_INT(json_int(point, "unchecked", -1), 1);

    points = json_get(get_json("/api/query?x=batch&y=throughput&group=framework,backend", 200),
                      "points");
    if (!CHECK(points && points->count == 4))
        return;
    point = points->first;
    CHECK_EQUAL_INT(json_get(point, "group")->count, 2);
    CHECK_NEAR(json_real(point, "y", 0), 1e6, 1e-3);
    CHECK(json_real(point, "low", 0) < 1e6 && json_real(point, "high", 0) > 1e6);

    points = json_get(get_json("/api/query?x=model&y=time_min&aggregate=max", 200), "points");
    if (!CHECK(points && points->count == 1))
        return;
    CHECK_NEAR(json_real(points->first, "y", 0), 4850, 1e-9);
    CHECK_EQUAL_INT(json_int(points->first, "configurations", 0), 4);
}

TEST(names_the_parameter_that_is_wrong)
{
    static const struct {
        const char *path, *parameter, *found, *expected;
    } cases[] = {
        {"/api/query?x=bacth&y=throughput", "x", "bacth", "an axis; did you mean \"batch\"?"},
        {"/api/query?y=throughput", "x", "", "an axis"},
        {"/api/query?x=batch", "y", "", "a metric"},
        {"/api/query?x=batch&y=through", "y", "through", "a metric"},
        {"/api/query?x=batch&y=time_min&group=no", "group", "no", "an axis"},
        {"/api/query?x=batch&y=time_min&group=model,,", "group", "", "an axis"},
        {"/api/query?x=batch&y=time_min&aggregate=sum", "aggregate", "sum", "best, min"},
        {"/api/query?x=batch&x=model&y=time_min", "x", "model", "only once"},
        {"/api/query?x=batch&y=time_min&batch=one", "batch", "one", "a whole number"},
        {"/api/values?axis=q%22%0a", "axis", "q\"\n", "an axis"},
        {"/api/values?colour=red", "colour", "red", "no parameter"},
        {"/api/status?model=small", "model", "small", "no parameter"},
        {"/api/records?limit=0", "limit", "0", "a whole number from 1"},
        {"/api/records?limit=9999999", "limit", "9999999", "a whole number from 1"},
        {"/api/records?offset=-1", "offset", "-1", "a whole number from 0"},
        {"/api/record/x", "ID", "x", "a whole number"},
    };
    if (!start())
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct json *error = json_get(get_json(cases[i].path, 400), "error");
        CHECK_EQUAL_TEXT(json_text(error, "parameter", NULL), cases[i].parameter);
        CHECK_EQUAL_TEXT(json_text(error, "found", NULL), cases[i].found);
        CHECK(strstr(json_text(error, "expected", ""), cases[i].expected));
        CHECK(strstr(json_text(error, "message", ""), cases[i].expected));
    }
}

TEST(gives_records)
{
    if (!start())
        return;
    const struct json *tree = get_json("/api/records?backend=ref&limit=1", 200);
    CHECK_EQUAL_INT(json_int(tree, "count", 0), 2);
    const struct json *records = json_get(tree, "records");
    if (!CHECK(records && records->count == 1))
        return;
    char path[40];
    int64_t id = json_int(records->first, "id", 0);
    const struct json *record = json_get(records->first, "record");
    CHECK_EQUAL_TEXT(json_text(json_get(record, "point"), "backend", NULL), "ref");
    snprintf(path, sizeof path, "/api/record/%lld", (long long)id);
    tree = get_json(path, 200);
    CHECK_EQUAL_INT(json_int(tree, "id", 0), id);
    record = json_get(tree, "record");
    CHECK_EQUAL_TEXT(json_text(json_get(record, "point"), "backend", NULL), "ref");
    CHECK(json_get(record, "samples_ns") && json_get(record, "samples_ns")->count == 7);
    CHECK_EQUAL_TEXT(
        json_text(json_get(get_json("/api/record/99999", 404), "error"), "message", NULL),
        "there is no record 99999");
}

TEST(an_empty_store_fills_while_it_is_served)
{
    struct guide *later;
    const char *path = path_of("later.db");
    if (!CHECK(path) || !CHECK_OK(guide_start(path, &(struct http_place){0}, &later)))
        return;
    static const char request[] = "GET /api/status HTTP/1.1\r\n" LOCAL "\r\n";
    static const char query[] = "GET /api/query?x=batch&y=throughput HTTP/1.1\r\n" LOCAL "\r\n";
    CHECK(strstr(exchange(guide_port(later), request, strlen(request)), "\"records\":0"));
    CHECK(strstr(exchange(guide_port(later), query, strlen(query)), "{\"points\":[],"));
    CHECK(!file_exists(path)); /* looking makes nothing */
    CHECK_OK(make_store(path));
    CHECK(strstr(exchange(guide_port(later), request, strlen(request)), "\"records\":5"));
    guide_stop(later);
}

TEST(says_when_the_port_is_taken)
{
    struct guide *second = NULL;
    if (!start())
        return;
    CHECK_STATUS(STATUS_IO, guide_start(path_of("full.db"),
                                        &(struct http_place){NULL, guide_port(guide)}, &second));
    CHECK_MESSAGE("is taken");
    CHECK_MESSAGE("--port 0");
    CHECK(!second);
}

/* Beyond this machine nobody comes in without the token, whichever way it is brought. */
TEST(asks_strangers_for_a_token)
{
    struct guide *open;
    const struct http_place all = {"0.0.0.0", 0};
    char request[300];
    if (!start() || !CHECK_OK(guide_start(path_of("full.db"), &all, &open)))
        return;
    const char *token = guide_token(open);
    uint16_t port = guide_port(open);
    CHECK_EQUAL_INT(strlen(token), 32);
    CHECK_EQUAL_TEXT(guide_token(guide), "");
    static const char none[] = "GET /api/status HTTP/1.1\r\n" LOCAL "\r\n";
    CHECK(text_starts(exchange(port, none, sizeof none - 1), "HTTP/1.1 401"));
    snprintf(request, sizeof request,
             "GET /api/status HTTP/1.1\r\n" LOCAL "Authorization: Bearer %s\r\n\r\n", token);
    CHECK(text_starts(exchange(port, request, strlen(request)), "HTTP/1.1 200"));
    request[strlen(request) - 5] ^= 1;
    CHECK(text_starts(exchange(port, request, strlen(request)), "HTTP/1.1 401"));
    snprintf(request, sizeof request, "GET /?token=%s HTTP/1.1\r\n" LOCAL "\r\n", token);
    const char *answer = exchange(port, request, strlen(request));
    CHECK(text_starts(answer, "HTTP/1.1 303") && strstr(answer, "Location: /\r\n"));
    CHECK(strstr(answer, "HttpOnly; SameSite=Strict"));
    snprintf(request, sizeof request,
             "GET / HTTP/1.1\r\nHost: box.example\r\nConnection: close\r\nCookie: prony=%s\r\n\r\n",
             token);
    CHECK(text_starts(exchange(port, request, strlen(request)), "HTTP/1.1 200"));
    snprintf(request, sizeof request,
             "GET / HTTP/1.1\r\nHost: box.example\r\nConnection: close\r\nCookie: prony=%s\r\n"
             "Origin: http://evil.example\r\n\r\n",
             token);
    CHECK(text_starts(exchange(port, request, strlen(request)), "HTTP/1.1 403"));
    guide_stop(open);
    struct guide *nowhere = NULL;
    CHECK_STATUS(STATUS_INPUT,
                 guide_start(path_of("full.db"), &(struct http_place){"box", 0}, &nowhere));
    CHECK_MESSAGE("expected an IPv4 address");
}

/* Thousands connect, most say nothing: it goes on serving. */
TEST(thousands_of_connections)
{
    enum { MANY = 3000 };
    struct rlimit limit;
    if (!start() || getrlimit(RLIMIT_NOFILE, &limit))
        return;
    size_t room = limit.rlim_cur < 2 * MANY ? (size_t)limit.rlim_cur / 3 : MANY, opened = 0;
    int *sockets = mem_array(room, sizeof *sockets);
    if (!CHECK(sockets))
        return;
    for (size_t i = 0; i < room; i++) {
        int fd = connect_to(guide_port(guide));
        if (fd >= 0)
            sockets[opened++] = fd;
        if (i % 500 == 499)
            CHECK(text_starts(ask("GET /api/status HTTP/1.1\r\n" LOCAL "\r\n"), "HTTP/1.1 200"));
    }
    CHECK(opened > 0);
    for (size_t i = 0; i < opened; i++)
        close(sockets[i]);
    mem_free(sockets);
    CHECK(text_starts(ask("GET /api/status HTTP/1.1\r\n" LOCAL "\r\n"), "HTTP/1.1 200"));
}

TEST(goes_on_when_memory_is_out)
{
    static const struct http_parameter parameters[] = {
        {"x", "batch"}, {"y", "throughput"}, {"group", "framework,backend"}, {"model", "small"}};
    static const struct http_request request = {"/api/query", parameters, 4, false};
    struct api *api;
    if (!start() || !CHECK_OK(api_open(path_of("full.db"), &api)))
        return;
    bool failed = true;
    for (long nth = 1; failed && nth < 10000; nth++) {
        struct http_answer answer = {0};
        memory_fail_at(nth);
        api_answer(api, &request, &answer);
        failed = memory_failed();
        memory_fail_at(0);
        CHECK(answer.code == 200 || (failed && answer.code == 500)); /* 200: it was not kept */
        text_free(&answer.text);
    }
    CHECK(!failed);
    api_close(api);
}

TEST(stops)
{
    guide_stop(guide);
    guide = NULL;
    guide_stop(NULL);
}

CHECK_MAIN
