/* endpoints.c: what is in the store: axes and metrics, values, records. */
#include "guide/endpoints.h"

#include "record/version.h"
#include "record/words/glossary.h"

#include <string.h>

enum { RECORDS_USUALLY = 50, RECORDS_AT_MOST = 500 }; /* in one answer */

/* /api/axes */

static void add_axis(struct json_writer *json, const char *key, enum axis_kind kind,
                     const char *help, bool derived)
{
    json_object(json);
    call_add_text(json, "key", key);
    call_add_text(json, "kind", kind == AXIS_INT ? "number" : "text");
    json_put_bool(json, "derived", derived);
    call_add_text(json, "help", help);
    json_end(json);
}

enum status endpoint_axes(struct call *call)
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
        call_add_text(json, "title", metrics[i].title);
        call_add_text(json, "group", metric_groups[metrics[i].group]);
        call_add_text(json, "unit", metrics[i].unit);
        call_add_text(json, "better", metrics[i].better == METRIC_LOWER ? "lower" : "higher");
        call_add_text(json, "help", metrics[i].help);
        json_end(json);
    }
    json_end(json);
    json_key(json, "groups");
    json_array(json);
    for (size_t i = 0; i < METRIC_GROUPS; i++)
        json_add_text(json, metric_groups[i]);
    json_end(json);
    json_key(json, "aggregates");
    json_array(json);
    for (size_t i = 0; i < STORE_AGGREGATES; i++)
        json_add_text(json, store_aggregates[i]);
    json_end(json);
    json_key(json, "frameworks");
    json_object(json);
#define FRAMEWORK(key, title) call_add_text(json, key, title);
#include "record/words/frameworks.def"
    json_end(json);
    json_end(json);
    return STATUS_OK;
}

/* /api/glossary */

enum status endpoint_glossary(struct call *call)
{
    struct json_writer *json = &call->json;
    json_object(json);
    json_key(json, "terms");
    json_array(json);
    for (size_t i = 0; i < TERM_COUNT; i++) {
        json_object(json);
        call_add_text(json, "key", glossary[i].key);
        call_add_text(json, "term", glossary[i].term);
        call_add_text(json, "text", glossary[i].text);
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

/* What each view that needs something of its own has to show. */
static void add_holdings(struct json_writer *json, const struct store_holdings *holdings)
{
    json_key(json, "views");
    json_object(json);
    json_put_bool(json, "scaling", holdings->several);
    json_put_bool(json, "roofline", holdings->rated > 0);
    json_put_bool(json, "precision", holdings->accurate > 0);
    json_put_bool(json, "profiles", holdings->profiles > 0);
    json_end(json);
}

enum status endpoint_status(struct call *call)
{
    static const struct store_filter ok = {"status", "ok"};
    struct store_state state = {0};
    struct store_holdings holdings = {0};
    int64_t count = 0;
    if (call->store) {
        TRY(store_count(call->store, call_where(call), &count));
        TRY(store_look(call->store, &state));
        TRY(store_holdings(call->store, &holdings));
    }
    json_object(&call->json);
    call_add_text(&call->json, "version", version_number);
    call_add_text(&call->json, "store", call->store_path);
    call_add_int(&call->json, "records", count);
    call_add_int(&call->json, "change", state.change);
    add_holdings(&call->json, &holdings);
    if (call->store)
        TRY(store_list(call->store, (struct store_where){&ok, 1}, 1, 0, add_newest, call));
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/values */

struct values {
    struct json_writer *json;
    bool open; /* a key's list is */
};

static enum status add_value_count(void *context, const char *key, const char *value, int64_t count)
{
    struct values *values = context;
    if (!value) {
        if (values->open)
            json_end(values->json);
        json_key(values->json, key);
        json_array(values->json);
        values->open = true;
        return STATUS_OK;
    }
    json_object(values->json);
    json_key(values->json, "value");
    store_value_write(values->json, key, value);
    call_add_int(values->json, "count", count);
    json_end(values->json);
    return STATUS_OK;
}

enum status endpoint_values(struct call *call)
{
    enum { AXIS };
    struct values values = {&call->json, false};
    if (call->own[AXIS])
        TRY(call_need_axis(call, "axis", call->own[AXIS]));
    json_object(&call->json);
    json_key(&call->json, "values");
    json_object(&call->json);
    if (call->store)
        TRY(store_values(call->store, call->own[AXIS], call_where(call), add_value_count, &values));
    if (values.open)
        json_end(&call->json);
    json_end(&call->json);
    json_end(&call->json);
    return STATUS_OK;
}

/* /api/records and /api/record/ID. Lines are JSON already, checked when they were stored, and are
 * passed on as they are. */

struct listing {
    struct call *call;
    bool brief; /* without samples */
};

/* The line but its samples. */
static enum status add_brief(struct call *call, const char *line, size_t length)
{
    struct arena arena = {0};
    struct json_writer json;
    struct json *tree;
    json_begin(&json, call->body);
    enum status status = json_parse(&arena, "store", line, length, &tree);
    if (status == STATUS_OK) {
        json_object(&json);
        for (const struct json *member = tree->first; member; member = member->next) {
            if (strcmp(member->key, "samples_ns") == 0)
                continue;
            json_put_tree(&json, member->key, member);
        }
        json_end(&json);
    }
    arena_free(&arena);
    return status;
}

static enum status add_record(void *context, int64_t id, const char *line, size_t length)
{
    struct listing *listing = context;
    struct text *body = listing->call->body;
    if (body->data[body->length - 1] != '[')
        text_add_char(body, ',');
    text_printf(body, "{\"id\":%lld,\"record\":", (long long)id);
    if (listing->brief)
        TRY(add_brief(listing->call, line, length));
    else
        text_add_bytes(body, line, length);
    text_add_char(body, '}');
    return text_done(body);
}

/* Of "21,4": adds the record with each number, if there is one. */
static enum status add_listed(struct listing *listing, const char *ids)
{
    struct call *call = listing->call;
    int64_t count = 0;
    for (const char *at = ids, *end; at; at = *end ? end + 1 : NULL) {
        struct text line = {0};
        int64_t id;
        end = at + strcspn(at, ",");
        const char *word = arena_bytes(&call->arena, at, (size_t)(end - at));
        NEED(word);
        if (!text_to_int(word, &id) || id < 1 || ++count > RECORDS_AT_MOST)
            return call_refuse(call, "ids", ids, "at most %d whole numbers with commas between",
                               RECORDS_AT_MOST);
        enum status status = store_get(call->store, id, &line);
        if (status == STATUS_OK)
            status = add_record(listing, id, text_of(&line), line.length);
        else if (status == STATUS_INPUT)
            status = STATUS_OK; /* removed since */
        text_free(&line);
        TRY(status);
    }
    return STATUS_OK;
}

enum status endpoint_records(struct call *call)
{
    enum { LIMIT, OFFSET, IDS, SAMPLES };
    int64_t limit = RECORDS_USUALLY, offset = 0, count = 0;
    const char *samples = call->own[SAMPLES];
    struct listing listing = {call, text_equal(samples, "no")};
    TRY(call_number(call, LIMIT, 1, RECORDS_AT_MOST, &limit));
    TRY(call_number(call, OFFSET, 0, INT64_MAX, &offset));
    if (samples && !listing.brief)
        return call_refuse(call, "samples", samples, "\"no\", or not given");
    if (call->store)
        TRY(store_count(call->store, call_where(call), &count));
    text_printf(call->body, "{\"count\":%lld,\"records\":[", (long long)count);
    TRY(text_done(call->body)); /* add_record looks at what is there */
    if (call->store && call->own[IDS])
        TRY(add_listed(&listing, call->own[IDS]));
    else if (call->store)
        TRY(store_list(call->store, call_where(call), limit, offset, add_record, &listing));
    text_add(call->body, "]}");
    return STATUS_OK;
}

/* What a person calls the record, and the command that repeats it; null where there is none. */
static enum status add_about(struct call *call, int64_t id, const struct text *line)
{
    struct record record;
    struct text words = {0};
    TRY(record_read(&call->arena, "store", (long)id, text_of(line), line->length, &record));
    if (record.kind == RECORD_RESULT)
        point_label(&record.point, &words);
    call_add_text(&call->json, "label", words.length ? text_of(&words) : NULL);
    text_clear(&words);
    if (record.kind == RECORD_RESULT && record.program) /* prony opened it, so it can again */
        point_command(&record.point, &words);
    call_add_text(&call->json, "command", words.length ? text_of(&words) : NULL);
    enum status status = text_done(&words);
    text_free(&words);
    return status;
}

enum status endpoint_record(struct call *call)
{
    int64_t id;
    if (!text_to_int(call->rest, &id) || id < 1)
        return call_refuse(call, "ID", call->rest, "a whole number: /api/record/1");
    struct text line = {0};
    enum status status = STATUS_INPUT;
    if (call->store)
        status = store_get(call->store, id, &line);
    if (status == STATUS_OK) {
        json_object(&call->json);
        call_add_int(&call->json, "id", id);
        status = add_about(call, id, &line);
        text_printf(call->body, ",\"record\":%s}", text_of(&line));
    } else if (status == STATUS_INPUT) {
        call->code = 404;
        status =
            status_fail(STATUS_INPUT, __FILE__, __LINE__, "there is no record %lld", (long long)id);
    }
    text_free(&line);
    return status;
}
