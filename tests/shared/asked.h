/* asked.h: the guide's API over a store of the test's own, without a server. The test fills the
 * store; file and API are gone when the test ends. */
#ifndef PRONY_TESTS_ASKED_H
#define PRONY_TESTS_ASKED_H

#include "base/memory.h"
#include "guide/api.h"
#include "store/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static char asked_path[] = "/tmp/prony-test-asked-XXXXXX";
static struct api *api;
static struct arena arena;

__attribute__((destructor)) static void asked_end(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    api_close(api);
    arena_free(&arena);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[sizeof asked_path + 8];
        snprintf(name, sizeof name, "%s%s", asked_path, suffixes[i]);
        unlink(name);
    }
}

static inline enum status asked_add_line(void *context, const struct record *record,
                                         const char *line, size_t length)
{
    return store_add(context, line, length, record, NULL, NULL);
}

/* Opens the API, the first time over a store that `fill` fills. */
static inline bool asked_start(enum status (*fill)(struct store *store))
{
    struct store *store;
    if (api)
        return true;
    int fd = mkstemp(asked_path);
    if (!CHECK(fd >= 0))
        return false;
    close(fd);
    if (!CHECK_OK(store_open(asked_path, STORE_WRITE, &store)))
        return false;
    bool filled = CHECK_OK(fill(store));
    store_close(store);
    return filled && CHECK_OK(api_open(asked_path, &api));
}

/* What a path with parameters (not escaped) is answered with; NULL when its code is another. */
static inline const struct json *get(const char *request, unsigned code)
{
    struct http_parameter parameters[HTTP_PARAMETERS];
    struct http_answer answer = {0};
    struct json *tree = NULL;
    size_t count = 0;
    char *text = arena_text(&arena, request), *at = strchr(text, '?');
    for (; at; at = strchr(at, '&')) {
        *at++ = '\0';
        char *equals = strchr(at, '=');
        parameters[count++] = (struct http_parameter){at, equals + 1};
        *equals = '\0';
        at = equals + 1;
    }
    api_answer(api, &(struct http_request){.path = text, .parameters = parameters, .count = count},
               &answer);
    if (!CHECK_EQUAL_INT(answer.code, code))
        printf("%s: %s\n", request, text_of(&answer.text));
    CHECK_OK(json_parse(&arena, request, text_of(&answer.text), answer.text.length, &tree));
    text_free(&answer.text);
    return answer.code == code ? tree : NULL;
}

#endif
