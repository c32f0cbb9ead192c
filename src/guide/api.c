/* api.c: see api.h. An endpoint is a function of endpoints.h and a row of `endpoints`, which also
 * names its parameters.
 *
 * A store belongs to one thread at a time, so there are several readers of the same file; the first
 * that is free answers, and the others are only opened when questions come at once. A reader looks
 * at the file before every answer: one that was put in its place is opened anew. */
#include "guide/api.h"

#include "base/clock.h"
#include "base/memory.h"
#include "guide/cache.h"
#include "guide/endpoints.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

enum {
    READERS = 4,                 /* questions that are worked on at once */
    ANSWER_BYTES = 32 * 1048576, /* of one answer, at most */
    ARENA_BYTES = 256 * 1048576, /* of what is read for it */
    ANSWER_SECONDS = 30,         /* that are spent on one */
};

/* What tells a file from another that has its name, or its old self. */
struct look {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct reader {
    struct store *store; /* NULL until the file exists */
    struct look look;    /* at the file when it was opened */
    int64_t version;     /* of the store when it last answered */
    bool busy;
};

struct api {
    char *path;
    pthread_mutex_t lock; /* of all that follows, but what is in a busy reader */
    pthread_cond_t freed;
    struct reader readers[READERS];
    bool seen; /* there was a store */
    struct cache cache;
    uint64_t generation; /* how often the cache was cleared */
};

enum { FILTERS = true, REST = true, LASTS = true };

static const struct endpoint endpoints[] = {
    {"/api/axes", endpoint_axes, {0}, false, false, LASTS},
    {"/api/glossary", endpoint_glossary, {0}, false, false, LASTS},
    {"/api/status", endpoint_status, {0}, false, false, LASTS},
    {"/api/values", endpoint_values, {"axis"}, FILTERS, false, LASTS},
    {"/api/query",
     endpoint_query,
     {"x", "y", "group", "aggregate", "baseline"},
     FILTERS,
     false,
     LASTS},
    {"/api/scaling", endpoint_scaling, {"over", "y", "group", "aggregate"}, FILTERS, false, LASTS},
    {"/api/records",
     endpoint_records,
     {"limit", "offset", "ids", "samples"},
     FILTERS,
     false,
     LASTS},
    {"/api/record/", endpoint_record, {0}, false, REST, LASTS},
    {"/api/compare", endpoint_compare, {"a", "b", "y"}, FILTERS, false, LASTS},
    {"/api/machines", endpoint_machines, {0}, false, false, LASTS},
    {"/api/roofline", endpoint_roofline, {0}, FILTERS, false, LASTS},
    {"/api/networks", endpoint_networks, {0}, false, false, LASTS},
    {"/api/network/", endpoint_network, {"phase", "batch", "backend"}, false, REST, LASTS},
    {"/api/overview", endpoint_overview, {0}, FILTERS, false, LASTS},
    {"/api/answers", endpoint_answers, {0}, FILTERS, false, LASTS},
    {"/api/answer/", endpoint_answer, {0}, FILTERS, REST, LASTS},
    {"/api/profiles", endpoint_profiles, {0}, false, false, LASTS},
    {"/api/profile/", endpoint_profile, {0}, false, REST, LASTS},
    {"/api/timeline/", endpoint_timeline, {"from", "to", "most"}, false, REST, LASTS},
    {"/api/live", endpoint_live, {"after"}, false, false, false}, /* who runs changes by itself */
};

static const struct endpoint *find_endpoint(const char *path)
{
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (endpoints[i].has_rest ? text_starts(path, endpoints[i].path)
                                  : text_equal(path, endpoints[i].path))
            return &endpoints[i];
    return NULL;
}

static struct reader *take_reader(struct api *api)
{
    pthread_mutex_lock(&api->lock);
    for (;;) {
        for (size_t i = 0; i < READERS; i++) {
            if (api->readers[i].busy)
                continue;
            api->readers[i].busy = true;
            pthread_mutex_unlock(&api->lock);
            return &api->readers[i];
        }
        pthread_cond_wait(&api->freed, &api->lock);
    }
}

static void give_back(struct api *api, struct reader *reader)
{
    pthread_mutex_lock(&api->lock);
    reader->busy = false;
    pthread_cond_signal(&api->freed);
    pthread_mutex_unlock(&api->lock);
}

static bool same_look(const struct look *a, const struct look *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Without a file: nothing is stored yet; but one that was there is missed. */
static enum status miss_store(struct api *api, struct call *call, int reason)
{
    pthread_mutex_lock(&api->lock);
    bool seen = api->seen;
    pthread_mutex_unlock(&api->lock);
    if (!seen && reason == ENOENT)
        return STATUS_OK;
    call->code = 503;
    FAIL(STATUS_IO, "%s: the store cannot be found any more: %s; once it is back, so is this",
         api->path, strerror(reason));
}

/* Opens the file once it is there, and again when it is another. */
static enum status find_store(struct api *api, struct reader *reader, struct call *call)
{
    struct stat info;
    int missing = stat(api->path, &info) ? errno : 0;
    struct look look = {0};
    if (!missing)
        look = (struct look){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
    if (reader->store && (missing || !same_look(&look, &reader->look))) {
        store_close(reader->store);
        reader->store = NULL;
    }
    if (missing)
        return miss_store(api, call, missing);
    if (reader->store)
        return STATUS_OK;
    reader->look = look;
    reader->version = -1;
    pthread_mutex_lock(&api->lock);
    api->seen = true;
    pthread_mutex_unlock(&api->lock);
    return store_open(api->path, STORE_READ, &reader->store);
}

/* Forgets what was answered once the store is another. *generation is that of this answer. */
static enum status renew(struct api *api, struct reader *reader, struct call *call,
                         uint64_t *generation)
{
    struct store_state state = {0};
    TRY(find_store(api, reader, call));
    if (reader->store)
        TRY(store_look(reader->store, &state));
    pthread_mutex_lock(&api->lock);
    if (state.version != reader->version) {
        cache_clear(&api->cache);
        api->generation++;
    }
    reader->version = state.version;
    *generation = api->generation;
    pthread_mutex_unlock(&api->lock);
    return STATUS_OK;
}

/* Whether an answer is still worth working on. */
struct patience {
    const struct http_request *request;
    uint64_t deadline_ns;
    bool late;
};

static bool is_over(void *context)
{
    struct patience *patience = context;
    patience->late = clock_ns() > patience->deadline_ns;
    return patience->late ||
           (patience->request->left && patience->request->left(patience->request));
}

static enum status answer_call(struct reader *reader, struct call *call,
                               const struct http_request *request)
{
    struct patience patience = {request, clock_ns() + ANSWER_SECONDS * (uint64_t)1000000000, false};
    call->endpoint = find_endpoint(request->path);
    if (!call->endpoint) {
        call->code = 404;
        FAIL(STATUS_INPUT, "there is no %s; docs/api.md lists what there is", request->path);
    }
    call->rest = request->path + strlen(call->endpoint->path);
    TRY(call_read(call, request));
    call->store = reader->store;
    if (reader->store)
        store_watch(reader->store, is_over, &patience);
    enum status status = call->endpoint->answer(call);
    if (reader->store)
        store_watch(reader->store, NULL, NULL);
    if (patience.late) {
        call->code = 503;
        FAIL(STATUS_TIMEOUT, "this takes longer than %d s; narrow it with filters", ANSWER_SECONDS);
    }
    if (call->body->full || call->arena.full) {
        call->code = 413;
        FAIL(STATUS_INPUT,
             "the answer has more than %d MiB, or is made of more than %d; ask for "
             "less with filters, limit or samples=no",
             ANSWER_BYTES >> 20, ARENA_BYTES >> 20);
    }
    return status == STATUS_OK ? text_done(call->body) : status;
}

/* Replaces whatever was written by the error. */
static void write_error(struct call *call)
{
    text_clear(call->body);
    json_begin(&call->json, call->body);
    json_object(&call->json);
    json_key(&call->json, "error");
    json_object(&call->json);
    call_add_text(&call->json, "message", status_message());
    if (call->code == 400) {
        call_add_text(&call->json, "parameter", call->parameter);
        call_add_text(&call->json, "found", call->found);
        call_add_text(&call->json, "expected", call->expected);
    }
    json_end(&call->json);
    json_end(&call->json);
}

/* From what was answered before, or anew. */
static enum status find_answer(struct api *api, struct call *call,
                               const struct http_request *request)
{
    struct text name = {0};
    struct reader *reader = take_reader(api);
    uint64_t generation = 0;
    bool known = false;
    cache_name(request, &name);
    enum status status = text_done(&name);
    if (status == STATUS_OK)
        status = renew(api, reader, call, &generation);
    if (status == STATUS_OK) {
        pthread_mutex_lock(&api->lock);
        known = cache_find(&api->cache, text_of(&name), call->body);
        pthread_mutex_unlock(&api->lock);
    }
    if (status == STATUS_OK && !known)
        status = answer_call(reader, call, request);
    if (status == STATUS_OK && !known && call->endpoint->lasts) {
        pthread_mutex_lock(&api->lock);
        if (generation == api->generation)
            cache_keep(&api->cache, text_of(&name), call->body);
        pthread_mutex_unlock(&api->lock);
    }
    give_back(api, reader);
    text_free(&name);
    return status;
}

void api_answer(struct api *api, const struct http_request *request, struct http_answer *answer)
{
    static const char no_memory[] = "{\"error\":{\"message\":\"out of memory\"}}";
    struct call call = {.store_path = api->path, .body = &answer->text, .code = 500};
    call.body->most = ANSWER_BYTES;
    call.arena.most = ARENA_BYTES;
    json_begin(&call.json, call.body);
    enum status status = find_answer(api, &call, request);
    if (status != STATUS_OK)
        write_error(&call);
    answer->code = status == STATUS_OK ? 200 : call.code;
    answer->type = "application/json";
    if (text_done(call.body) != STATUS_OK) {
        answer->code = 500;
        answer->bytes = no_memory;
        answer->length = sizeof no_memory - 1;
        text_free(call.body);
    }
    arena_free(&call.arena);
}

enum status api_open(const char *path, struct api **out)
{
    struct api *api;
    struct call call = {0};
    NEED(api = mem_alloc(sizeof *api));
    enum status status = STATUS_OK;
    pthread_mutex_init(&api->lock, NULL);
    pthread_cond_init(&api->freed, NULL);
    NEED_OR(failed, api->path = mem_copy_text(path));
    TRY_OR(failed, find_store(api, &api->readers[0], &call));
    if (api->readers[0].store)
        TRY_OR(failed, store_warm(api->readers[0].store));
    *out = api;
    return STATUS_OK;
failed:
    api_close(api);
    return status;
}

void api_close(struct api *api)
{
    if (!api)
        return;
    cache_clear(&api->cache);
    for (size_t i = 0; i < READERS; i++)
        store_close(api->readers[i].store);
    pthread_mutex_destroy(&api->lock);
    pthread_cond_destroy(&api->freed);
    mem_free(api->path);
    mem_free(api);
}
