/* api.c: see api.h. An endpoint is a function of endpoints.h and a row of `endpoints`, which also
 * names its parameters. */
#include "guide/api.h"

#include "base/file.h"
#include "base/memory.h"
#include "guide/endpoints.h"

#include <string.h>

struct api {
    char *path;
    struct store *store; /* NULL until the file exists */
};

static const struct endpoint endpoints[] = {
    {"/api/axes", endpoint_axes, {0}, false, false},
    {"/api/status", endpoint_status, {0}, false, false},
    {"/api/values", endpoint_values, {"axis"}, true, false},
    {"/api/query", endpoint_query, {"x", "y", "group", "aggregate", "baseline"}, true, false},
    {"/api/scaling", endpoint_scaling, {"over", "y", "group", "aggregate"}, true, false},
    {"/api/records", endpoint_records, {"limit", "offset", "ids", "samples"}, true, false},
    {"/api/record/", endpoint_record, {0}, false, true},
    {"/api/compare", endpoint_compare, {"a", "b", "y"}, true, false},
    {"/api/machines", endpoint_machines, {0}, false, false},
    {"/api/roofline", endpoint_roofline, {0}, true, false},
    {"/api/networks", endpoint_networks, {0}, false, false},
    {"/api/network/", endpoint_network, {"phase", "batch", "backend"}, false, true},
    {"/api/answers", endpoint_answers, {0}, true, false},
    {"/api/answer/", endpoint_answer, {0}, true, true},
    {"/api/live", endpoint_live, {"after"}, false, false},
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
    TRY(find_store(api));
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
    json_begin(&call.json, call.body);
    if (answer_call(api, &call, request) == STATUS_OK)
        call.code = 200;
    else
        write_error(&call);
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
    store_close(api->store);
    mem_free(api->path);
    mem_free(api);
}
