/* served.h: a guide over a small store, and a client of it over real sockets. */
#ifndef PRONY_TESTS_SERVED_H
#define PRONY_TESTS_SERVED_H

#include "base/json.h"
#include "check.h"
#include "folder.h"
#include "guide/guide.h"
#include "store/store.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#define LOCAL "Host: localhost\r\nConnection: close\r\n"

/* One result: seven samples about `time_ns`; skipped when that is 0. */
static inline enum status add_result(struct store *store, const char *backend, int64_t batch,
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

static inline enum status make_store(const char *path)
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

static inline bool start(void)
{
    if (guide)
        return true;
    const char *path = at("full.db");
    return CHECK_OK(make_store(path)) &&
           CHECK_OK(guide_start(path, &(struct http_place){0}, &guide));
}

static inline int connect_to(uint16_t port)
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
static inline const char *exchange(uint16_t port, const char *bytes, size_t length)
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

static inline const char *ask(const char *request)
{
    return exchange(guide_port(guide), request, strlen(request));
}

static inline const char *get(const char *path)
{
    static struct text request;
    text_clear(&request);
    text_printf(&request, "GET %s HTTP/1.1\r\n" LOCAL "\r\n", path);
    return ask(text_of(&request));
}

/* 0 when what came is no answer. */
static inline int code_of(const char *answer)
{
    int code = 0;
    return sscanf(answer, "HTTP/1.%*d %d", &code) == 1 ? code : 0;
}

static inline const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end ? end + 4 : "";
}

/* The body of a GET as JSON; lives until the next call. NULL, and a failed check, if it is none. */
static inline const struct json *get_json(const char *path, int code)
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

#endif
