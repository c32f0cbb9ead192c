/* endpoint_networks.c: /api/networks and /api/network/NAME: what explain said of networks. */
#include "guide/endpoints.h"

#include <string.h>

enum { NETWORK_LINES = 2000 }; /* that are looked at, the newest first */

/* One record of kind network; texts are in the call's arena. */
struct explained {
    int64_t id;
    const char *model, *phase, *backend;
    int64_t batch, parameters, layers;
    bool listed; /* its model is in the answer already */
    struct explained *next;
};
struct networks {
    struct call *call;
    struct explained *first, **end;
};

static enum status copy_text(struct arena *arena, const char *text, const char **out)
{
    *out = NULL;
    if (text)
        NEED(*out = arena_text(arena, text));
    return STATUS_OK;
}

static enum status keep_line(void *context, int64_t id, const char *line, size_t length)
{
    struct networks *networks = context;
    struct arena *kept = &networks->call->arena, arena = {0};
    struct explained *explained;
    struct json *record;
    enum status status;
    NEED(explained = arena_alloc(kept, sizeof *explained));
    TRY_OR(done, json_parse(&arena, "store", line, length, &record));
    const struct json *network = json_get(record, "network");
    explained->id = id;
    explained->batch = json_int(network, "batch", 0);
    explained->parameters = json_int(network, "parameters", 0);
    explained->layers = json_int(network, "layers", 0);
    TRY_OR(done, copy_text(kept, json_text(network, "model", ""), &explained->model));
    TRY_OR(done, copy_text(kept, json_text(network, "phase", NULL), &explained->phase));
    TRY_OR(done, copy_text(kept, json_text(network, "backend", NULL), &explained->backend));
    *networks->end = explained;
    networks->end = &explained->next;
done:
    arena_free(&arena);
    return status;
}

static enum status find_networks(struct call *call, struct networks *out)
{
    *out = (struct networks){.call = call, .end = &out->first};
    if (!call->store)
        return STATUS_OK;
    return store_recent(call->store, "network", NETWORK_LINES, keep_line, out);
}

static void add_explained(struct json_writer *json, const struct networks *networks,
                          const char *model)
{
    json_key(json, "explained");
    json_array(json);
    for (const struct explained *one = networks->first; one; one = one->next) {
        if (strcmp(one->model, model))
            continue;
        json_object(json);
        call_add_int(json, "id", one->id);
        call_add_text(json, "phase", one->phase);
        call_add_int(json, "batch", one->batch);
        call_add_text(json, "backend", one->backend);
        json_end(json);
    }
    json_end(json);
}

/* The largest value that results of the model have of a key; null where none has. */
static enum status take_value(void *context, const char *key, const char *value, int64_t count)
{
    (void)key, (void)count;
    if (value && *value)
        text_to_int(value, context);
    return STATUS_OK;
}

static enum status add_known(struct call *call, const char *model, const char *key, int64_t known)
{
    struct store_filter filter = {"model", model};
    TRY(store_values(call->store, key, (struct store_where){&filter, 1}, take_value, &known));
    json_key(&call->json, key);
    if (known)
        json_add_int(&call->json, known);
    else
        json_add_null(&call->json);
    return STATUS_OK;
}

static enum status add_network(void *context, const char *key, const char *model, int64_t count)
{
    struct networks *networks = context;
    struct call *call = networks->call;
    int64_t parameters = 0, layers = 0;
    (void)key;
    if (!model || !*model)
        return STATUS_OK;
    for (struct explained *one = networks->first; one; one = one->next)
        if (strcmp(one->model, model) == 0) {
            parameters = one->parameters;
            layers = one->layers;
            one->listed = true;
        }
    json_object(&call->json);
    call_add_text(&call->json, "model", model);
    TRY(add_known(call, model, "parameters", parameters));
    TRY(add_known(call, model, "layers", layers));
    call_add_int(&call->json, "records", count);
    add_explained(&call->json, networks, model);
    json_end(&call->json);
    return STATUS_OK;
}

enum status endpoint_networks(struct call *call)
{
    struct networks networks;
    TRY(find_networks(call, &networks));
    json_object(&call->json);
    json_key(&call->json, "networks");
    json_array(&call->json);
    if (call->store)
        TRY(store_values(call->store, "model", (struct store_where){0}, add_network, &networks));
    for (const struct explained *one = networks.first; one; one = one->next)
        if (!one->listed) /* explained, and not measured yet */
            TRY(add_network(&networks, "model", one->model, 0));
    json_end(&call->json);
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/network/NAME */

/* The newest that is of this model, and of the phase, batch and backend that were asked for. */
static const struct explained *choose(const struct call *call, const struct networks *networks,
                                      int64_t batch)
{
    enum { PHASE, BATCH, BACKEND };
    const struct explained *one = networks->first;
    while (one && (strcmp(one->model, call->rest) || (batch && batch != one->batch) ||
                   (call->own[PHASE] && !text_equal(call->own[PHASE], one->phase)) ||
                   (call->own[BACKEND] && !text_equal(call->own[BACKEND], one->backend))))
        one = one->next;
    return one;
}

enum status endpoint_network(struct call *call)
{
    enum { PHASE, BATCH, BACKEND };
    struct json_writer *json = &call->json;
    struct networks networks;
    struct text line = {0};
    struct json *record;
    int64_t batch = 0;
    TRY(call_number(call, BATCH, 1, INT64_MAX, &batch));
    TRY(find_networks(call, &networks));
    const struct explained *chosen = choose(call, &networks, batch);
    if (!chosen) {
        call->code = 404;
        FAIL(STATUS_INPUT,
             "\"%s\" was not explained into this store; /api/networks lists all networks",
             call->rest);
    }
    enum status status = store_get(call->store, chosen->id, &line);
    if (status == STATUS_OK)
        status = json_parse(&call->arena, "store", text_of(&line), line.length, &record);
    text_free(&line);
    TRY(status);
    json_object(json);
    call_add_text(json, "model", chosen->model);
    call_add_int(json, "id", chosen->id);
    json_put_tree(json, "network", json_get(record, "network"));
    add_explained(json, &networks, chosen->model);
    json_end(json);
    return STATUS_OK;
}
