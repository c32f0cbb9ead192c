/* answers.c: what is in the store: axes and metrics, values, records. Charts: see chart.c. */
#include "guide/answers.h"

#include "record/version.h"

#include <string.h>

enum { RECORDS_USUALLY = 50, RECORDS_AT_MOST = 500 }; /* in one answer */

/* /api/axes */

static void add_axis(struct json_writer *json, const char *key, enum axis_kind kind,
                     const char *help, bool derived)
{
    json_object(json);
    call_add_text(json, "key", key);
    call_add_text(json, "kind", kind == AXIS_INT ? "number" : "text");
    json_key(json, "derived");
    json_add_bool(json, derived);
    call_add_text(json, "help", help);
    json_end(json);
}

enum status answer_axes(struct call *call)
{
    struct json_writer *json = &call->json;
    json_object(json);
    json_key(json, "axes");
    json_array(json);
    for (size_t i = 0; i < AXIS_COUNT; i++)
        add_axis(json, axes[i].key, axes[i].kind, axes[i].help, false);
    for (size_t i = 0; i < DERIVED_COUNT; i++)
        add_axis(json, deriveds[i].key, deriveds[i].kind, deriveds[i].help, true);
    json_end(json);
    json_key(json, "metrics");
    json_array(json);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        json_object(json);
        call_add_text(json, "key", metrics[i].key);
        call_add_text(json, "unit", metrics[i].unit);
        call_add_text(json, "better", metrics[i].better == METRIC_LOWER ? "lower" : "higher");
        call_add_text(json, "help", metrics[i].help);
        json_end(json);
    }
    json_end(json);
    json_end(json);
    return STATUS_OK;
}

/* /api/status */

static enum status add_newest(void *context, int64_t id, const char *line, size_t length)
{
    struct call *call = context;
    struct json *record;
    TRY(json_parse(&call->arena, "store", line, length, &record));
    json_key(&call->json, "newest");
    json_object(&call->json);
    call_add_int(&call->json, "id", id);
    call_add_text(&call->json, "at", json_text(record, "at", NULL));
    const struct json *point = json_get(record, "point");
    if (point) {
        json_key(&call->json, "point");
        json_add_tree(&call->json, point);
    }
    json_end(&call->json);
    return STATUS_OK;
}

enum status answer_status(struct call *call)
{
    static const struct store_filter ok = {"status", "ok"};
    int64_t count = 0;
    if (call->store)
        TRY(store_count(call->store, call_where(call), &count));
    json_object(&call->json);
    call_add_text(&call->json, "version", version_number);
    call_add_text(&call->json, "store", call->store_path);
    call_add_int(&call->json, "records", count);
    if (call->store)
        TRY(store_list(call->store, (struct store_where){&ok, 1}, 1, 0, add_newest, call));
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/values */

struct values {
    struct json_writer *json;
    enum axis_kind kind;
};

static enum status add_value_count(void *context, const char *value, int64_t count)
{
    struct values *values = context;
    json_object(values->json);
    json_key(values->json, "value");
    call_add_value(values->json, values->kind, value);
    call_add_int(values->json, "count", count);
    json_end(values->json);
    return STATUS_OK;
}

static enum status add_values(struct call *call, const char *key, enum axis_kind kind)
{
    struct values values = {&call->json, kind};
    json_key(&call->json, key);
    json_array(&call->json);
    if (call->store)
        TRY(store_values(call->store, key, call_where(call), add_value_count, &values));
    json_end(&call->json);
    return STATUS_OK;
}

/* The time a record was made is almost a name of it: its values are only listed when asked for. */
static bool is_listed(const char *key)
{
    return strcmp(key, "time") != 0;
}

enum status answer_values(struct call *call)
{
    enum { AXIS };
    const char *key = call->own[AXIS];
    enum axis_kind kind = AXIS_TEXT;
    if (key)
        TRY(call_need_axis(call, "axis", key, &kind));
    json_object(&call->json);
    json_key(&call->json, "values");
    json_object(&call->json);
    if (key)
        TRY(add_values(call, key, kind));
    for (size_t i = 0; !key && i < AXIS_COUNT; i++)
        TRY(add_values(call, axes[i].key, axes[i].kind));
    for (size_t i = 0; !key && i < DERIVED_COUNT; i++)
        if (is_listed(deriveds[i].key))
            TRY(add_values(call, deriveds[i].key, deriveds[i].kind));
    json_end(&call->json);
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/records and /api/record/ID. Lines are JSON already, checked when they were stored, and are
 * passed on as they are. */

static enum status add_record(void *context, int64_t id, const char *line, size_t length)
{
    struct call *call = context;
    if (call->body->data[call->body->length - 1] != '[')
        text_add_char(call->body, ',');
    text_printf(call->body, "{\"id\":%lld,\"record\":", (long long)id);
    text_add_bytes(call->body, line, length);
    text_add_char(call->body, '}');
    return STATUS_OK;
}

enum status answer_records(struct call *call)
{
    enum { LIMIT, OFFSET };
    int64_t limit = RECORDS_USUALLY, offset = 0, count = 0;
    TRY(call_number(call, LIMIT, 1, RECORDS_AT_MOST, &limit));
    TRY(call_number(call, OFFSET, 0, INT64_MAX, &offset));
    if (call->store)
        TRY(store_count(call->store, call_where(call), &count));
    text_printf(call->body, "{\"count\":%lld,\"records\":[", (long long)count);
    TRY(text_done(call->body)); /* add_record looks at what is there */
    if (call->store)
        TRY(store_list(call->store, call_where(call), limit, offset, add_record, call));
    text_add(call->body, "]}");
    return STATUS_OK;
}

enum status answer_record(struct call *call)
{
    int64_t id;
    if (!text_to_int(call->rest, &id) || id < 1)
        return call_refuse(call, "ID", call->rest, "a whole number: /api/record/1");
    struct text line = {0};
    enum status status = STATUS_INPUT;
    if (call->store)
        status = store_get(call->store, id, &line);
    if (status == STATUS_OK) {
        text_printf(call->body, "{\"id\":%lld,\"record\":%s}", (long long)id, text_of(&line));
    } else if (status == STATUS_INPUT) {
        call->code = 404;
        status =
            status_fail(STATUS_INPUT, __FILE__, __LINE__, "there is no record %lld", (long long)id);
    }
    text_free(&line);
    return status;
}
