/* call.c: see call.h. */
#include "guide/call.h"

#include <string.h>

struct store_where call_where(const struct call *call)
{
    return (struct store_where){call->filters, call->filter_count};
}

enum status call_refuse(struct call *call, const char *parameter, const char *found,
                        const char *format, ...)
{
    struct text expected = {0};
    va_list values;
    va_start(values, format);
    text_vprintf(&expected, format, values);
    va_end(values);
    call->code = 400;
    call->parameter = parameter;
    call->found = found;
    call->expected = arena_text(&call->arena, text_of(&expected));
    text_free(&expected);
    FAIL(STATUS_INPUT, "%s: found \"%s\", expected %s", parameter, found,
         call->expected ? call->expected : "something else");
}

enum status call_need_axis(struct call *call, const char *parameter, const char *key)
{
    if (store_key_kind(key) >= 0)
        return STATUS_OK;
    const char *near = store_key_near(key);
    return near ? call_refuse(call, parameter, key, "an axis; did you mean \"%s\"?", near)
                : call_refuse(call, parameter, key, "an axis; /api/axes lists them");
}

enum status call_need_metric(struct call *call, const char *parameter, const char *key)
{
    if (metric_find(key))
        return STATUS_OK;
    const char *keys[METRIC_COUNT];
    for (size_t i = 0; i < METRIC_COUNT; i++)
        keys[i] = metrics[i].key;
    const char *near = text_nearest(key, keys, METRIC_COUNT);
    return near ? call_refuse(call, parameter, key, "a metric; did you mean \"%s\"?", near)
                : call_refuse(call, parameter, key, "a metric; /api/axes lists them");
}

enum status call_number(struct call *call, size_t own, int64_t least, int64_t most, int64_t *number)
{
    const char *value = call->own[own];
    if (!value || (text_to_int(value, number) && *number >= least && *number <= most))
        return STATUS_OK;
    return call_refuse(call, call->endpoint->own[own], value, "a whole number from %lld to %lld",
                       (long long)least, (long long)most);
}

static enum status read_filter(struct call *call, const char *key, const char *value)
{
    int kind = store_key_kind(key);
    if (kind < 0)
        return call_refuse(call, key, value,
                           "no parameter of this name; docs/api.md lists those of %s",
                           call->endpoint->path);
    int64_t number;
    if (kind == AXIS_INT && *value && !text_to_int(value, &number))
        return call_refuse(call, key, value, "a whole number, or nothing for \"not given\"");
    call->filters[call->filter_count++] = (struct store_filter){key, value};
    return STATUS_OK;
}

enum status call_read(struct call *call, const struct http_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        const struct http_parameter *parameter = &request->parameters[i];
        size_t own = 0;
        while (own < CALL_OWN && !text_equal(call->endpoint->own[own], parameter->key))
            own++;
        if (own < CALL_OWN && call->own[own])
            return call_refuse(call, parameter->key, parameter->value, "it only once");
        if (own < CALL_OWN)
            call->own[own] = parameter->value;
        else if (call->endpoint->filters)
            TRY(read_filter(call, parameter->key, parameter->value));
        else
            return call_refuse(call, parameter->key, parameter->value, "no parameter of this name");
    }
    return STATUS_OK;
}

void call_add_text(struct json_writer *json, const char *key, const char *value)
{
    json_put_text(json, key, value);
}

void call_add_int(struct json_writer *json, const char *key, int64_t number)
{
    json_put_int(json, key, number);
}

void call_add_real(struct json_writer *json, const char *key, double number)
{
    json_put_figure(json, key, number);
}
