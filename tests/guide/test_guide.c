/* test_guide.c: the guide over real sockets: what it serves, what it refuses, and that nothing a
 * client does stops it serving. */
#include "base/memory.h"
#include "guide/api.h"
#include "served.h"

#include <sys/resource.h>

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

    text_free(&request);
    CHECK_EQUAL_INT(code_of(get("/api/values?model=a%00b")), 400);
    CHECK_EQUAL_INT(code_of(get("/")), 200);
}

/* As many as fit into a request; each is refused with the reason. */
TEST(refuses_too_many_parameters)
{
    static const int counts[] = {65, 300, 5000};
    if (!start())
        return;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct text request = {0};
        char reason[64];
        text_add(&request, "GET /api/values?");
        for (int k = 0; k < counts[i]; k++)
            text_printf(&request, "%sb", k ? "&" : "");
        text_add(&request, " HTTP/1.1\r\n" LOCAL "\r\n");
        snprintf(reason, sizeof reason, "found %d parameters, expected at most 64", counts[i]);
        const char *answer = ask(text_of(&request));
        CHECK_EQUAL_INT(code_of(answer), 400);
        CHECK_EQUAL_TEXT(body_of(answer), reason);
        CHECK(strstr(answer, "Content-Security-Policy: default-src 'none';"));
        text_free(&request);
    }
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

TEST(says_when_the_port_is_taken)
{
    struct guide *second = NULL;
    if (!start())
        return;
    CHECK_STATUS(STATUS_IO, guide_start(at("full.db"),
                                        &(struct http_place){NULL, guide_port(guide)}, &second));
    CHECK_MESSAGE("another program uses port");
    CHECK_MESSAGE("--port (0: any free one)");
    CHECK(!second);
}

/* Beyond this machine nobody comes in without the token, whichever way it is brought. */
TEST(asks_strangers_for_a_token)
{
    struct guide *open;
    const struct http_place all = {"0.0.0.0", 0};
    char request[300];
    if (!start() || !CHECK_OK(guide_start(at("full.db"), &all, &open)))
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
                 guide_start(at("full.db"), &(struct http_place){"box", 0}, &nowhere));
    CHECK_MESSAGE("expected an IPv4 address");
}

/* Every address 127.x.y.z is this machine's; one of no network of ours is said to be none. */
TEST(listens_on_any_address_of_this_machine)
{
    struct guide *second = NULL;
    if (!start() ||
        !CHECK_OK(guide_start(at("full.db"), &(struct http_place){"127.0.0.2", 0}, &second)))
        return;
    CHECK_EQUAL_TEXT(guide_token(second), "");
    guide_stop(second);
    CHECK_EQUAL_INT(code_of(ask("GET /api/status HTTP/1.1\r\nHost: 127.0.0.2:8080\r\n"
                                "Connection: close\r\n\r\n")),
                    200);
    CHECK_EQUAL_INT(code_of(ask("GET /api/status HTTP/1.1\r\nHost: 128.0.0.2\r\n"
                                "Connection: close\r\n\r\n")),
                    403);
    CHECK_STATUS(STATUS_INPUT,
                 guide_start(at("full.db"), &(struct http_place){"192.0.2.1", 0}, &second));
    CHECK_MESSAGE("found 192.0.2.1, expected an IPv4 address of this machine");
}

/* A NUL ends a text for whoever takes it as one: no header and no path may have it. */
TEST(refuses_a_nul)
{
    static const char host[] = "GET /api/status HTTP/1.1\r\nHost: localhost\0.evil.example\r\n"
                               "Connection: close\r\n\r\n";
    static const char path[] = "GET /api/status\0/more HTTP/1.1\r\n" LOCAL "\r\n";
    if (!start())
        return;
    CHECK_EQUAL_INT(code_of(exchange(guide_port(guide), host, sizeof host - 1)), 400);
    int code = code_of(exchange(guide_port(guide), path, sizeof path - 1));
    CHECK(code == 400 || code == 403 || code == 0);
    CHECK_EQUAL_INT(code_of(get("/api/status%00/more")), 400);
    CHECK_EQUAL_INT(code_of(get("/index.html%00")), 400);
    CHECK_EQUAL_INT(code_of(get("/api/status?x=%00")), 400);
    CHECK_EQUAL_INT(code_of(get("/api/status")), 200);
}

/* RFC 9112 allows blanks around a value; they are not part of it. */
TEST(takes_blanks_around_a_value)
{
    static const char *const requests[] = {
        "GET /api/status HTTP/1.1\r\nHost: localhost \r\nConnection: close\r\n\r\n",
        "GET /api/status HTTP/1.1\r\nHost:  \tlocalhost\t  \r\nConnection: close\r\n\r\n",
        "GET /api/status HTTP/1.1\r\nConnection: close\r\nX-Empty:  \r\nHost:localhost  \r\n\r\n",
        "GET /api/status HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\nX-Empty:\t \r\n\r\n",
    };
    static const char blank[] = "GET /api/status HTTP/1.1\r\nHost: localhost \0 .evil.example \r\n"
                                "Connection: close\r\n\r\n";
    static const char last[] = "GET /api/status HTTP/1.1\r\nConnection: close\r\n"
                               "Host: localhost\0 x\r\n\r\n";
    if (!start())
        return;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        CHECK_EQUAL_INT(code_of(ask(requests[i])), 200);
    CHECK_EQUAL_INT(code_of(exchange(guide_port(guide), blank, sizeof blank - 1)), 400);
    CHECK_EQUAL_INT(code_of(exchange(guide_port(guide), last, sizeof last - 1)), 400);
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
    static const struct http_request request = {
        .path = "/api/query", .parameters = parameters, .count = 4};
    struct api *api;
    if (!start() || !CHECK_OK(api_open(at("full.db"), &api)))
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
