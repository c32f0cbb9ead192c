/* api.c: see api.h. An endpoint is a function of endpoints.h and a row of `endpoints`, which also
 * names its parameters. */
#include "guide/api.h"

#include "base/file.h"
#include "base/memory.h"
#include "guide/cache.h"
#include "guide/endpoints.h"

#include <string.h>

struct api {
    char *path;
    struct store *store; /* NULL until the file exists */
    struct cache cache;
    int64_t version; /* of the store that the cache is of */
};

enum { FILTERS = true, REST = true, LASTS = true };

static const struct endpoint endpoints[] = {
    {"/api/axes", endpoint_axes, {0}, false, false, LASTS},
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
    {"/api/answers", endpoint_answers, {0}, FILTERS, false, LASTS},
    {"/api/answer/", endpoint_answer, {0}, FILTERS, REST, LASTS},
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

/* Opens the store once its file is there. */
static enum status find_store(struct api *api)
{
    if (api->store || !file_exists(api->path))
        return STATUS_OK;
    return store_open(api->path, STORE_READ, &api->store);
}

/* Forgets what was answered once the store is another. */
static enum status renew(struct api *api)
{
    struct store_state state = {0};
    TRY(find_store(api));
    if (api->store)
        TRY(store_look(api->store, &state));
    if (state.version != api->version)
        cache_clear(&api->cache);
    api->version = state.version;
    return STATUS_OK;
}

static enum status answer_call(struct api *api, struct call *call,
                               const struct http_request *request)
{
    call->endpoint = find_endpoint(request->path);
    if (!call->endpoint) {
        call->code = 404;
        FAIL(STATUS_INPUT, "there is no %s; docs/api.md lists what there is", request->path);
    }
    call->rest = request->path + strlen(call->endpoint->path);
    TRY(call_read(call, request));
    call->store = api->store;
    TRY(call->endpoint->answer(call));
    return text_done(call->body);
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

void api_answer(struct api *api, const struct http_request *request, struct http_answer *answer)
{
    static const char no_memory[] = "{\"error\":{\"message\":\"out of memory\"}}";
    struct call call = {.store_path = api->path, .body = &answer->text, .code = 500};
    struct text name = {0};
    json_begin(&call.json, call.body);
    cache_name(request, &name);
    enum status status = text_done(&name);
    if (status == STATUS_OK)
        status = renew(api);
    if (status == STATUS_OK && cache_find(&api->cache, text_of(&name), call.body))
        call.code = 200;
    else if (status == STATUS_OK)
        status = answer_call(api, &call, request);
    if (status != STATUS_OK)
        write_error(&call);
    else if (call.code != 200 && call.endpoint->lasts)
        cache_keep(&api->cache, text_of(&name), call.body);
    if (status == STATUS_OK)
        call.code = 200;
    text_free(&name);
    answer->code = call.code;
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
    NEED(api = mem_alloc(sizeof *api));
    enum status status = STATUS_OK;
    NEED_OR(failed, api->path = mem_copy_text(path));
    TRY_OR(failed, find_store(api));
    if (api->store)
        TRY_OR(failed, store_warm(api->store));
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
    store_close(api->store);
    mem_free(api->path);
    mem_free(api);
}
