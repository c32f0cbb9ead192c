/* member.c: see member.h. */
#include "record/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void describe(const struct json *value, char *out, size_t size)
{
    if (!value) {
        snprintf(out, size, "nothing");
        return;
    }
    switch (value->kind) {
    case JSON_NULL: snprintf(out, size, "null"); return;
    case JSON_BOOL: snprintf(out, size, value->boolean ? "true" : "false"); return;
    case JSON_NUMBER: snprintf(out, size, "%.17g", value->number); return;
    case JSON_STRING:
        snprintf(out, size, "\"%.60s%s\"", value->string, value->length > 60 ? "…" : "");
        return;
    case JSON_ARRAY: snprintf(out, size, "an array of %zu", value->count); return;
    case JSON_OBJECT: snprintf(out, size, "an object of %zu", value->count); return;
    }
}

enum status member_fail(const char *path, const char *key, const struct json *value,
                        const char *expected)
{
    char found[96];
    describe(value, found, sizeof found);
    FAIL(STATUS_INPUT, "%s%s%s: found %s, expected %s", path, path[0] && key[0] ? "." : "", key,
         found, expected);
}

/* The member, or NULL when it is absent or null. */
static const struct json *member(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return value && value->kind != JSON_NULL ? value : NULL;
}

enum status member_text(const struct json *object, const char *path, const char *key,
                        const char **out)
{
    const struct json *value = member(object, key);
    *out = NULL;
    if (!value)
        return STATUS_OK;
    if (value->kind != JSON_STRING || strlen(value->string) != value->length)
        return member_fail(path, key, value, "a string");
    *out = value->string;
    return STATUS_OK;
}

enum status member_real(const struct json *object, const char *path, const char *key, double *out)
{
    const struct json *value = member(object, key);
    *out = NAN;
    if (!value)
        return STATUS_OK;
    if (value->kind != JSON_NUMBER)
        return member_fail(path, key, value, "a number");
    *out = value->number;
    return STATUS_OK;
}

enum status member_time(const struct json *object, const char *path, const char *key, double *out)
{
    TRY(member_real(object, path, key, out));
    if (*out <= 0)
        return member_fail(path, key, json_get(object, key), "a time above 0");
    return STATUS_OK;
}

enum status member_int(const struct json *object, const char *path, const char *key, int64_t least,
                       int64_t *out)
{
    const struct json *value = member(object, key);
    if (!value)
        return STATUS_OK;
    if (value->kind != JSON_NUMBER || !value->is_integer || value->integer < least)
        return member_fail(path, key, value,
                           least > 0 ? "a whole number from 1" : "a whole number from 0");
    *out = value->integer;
    return STATUS_OK;
}

enum status member_of_kind(const struct json *object, const char *path, const char *key,
                           enum json_kind kind, const struct json **out)
{
    const struct json *value = member(object, key);
    if (value && value->kind != kind)
        return member_fail(path, key, value, kind == JSON_ARRAY ? "an array" : "an object");
    *out = value;
    return STATUS_OK;
}

enum status member_choice(const struct json *object, const char *path, const char *key,
                          const char *const *names, size_t count, size_t *out)
{
    const struct json *value = json_get(object, key);
    char expected[120] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (value && value->kind == JSON_STRING && strcmp(value->string, names[i]) == 0) {
            *out = i;
            return STATUS_OK;
        }
        int added = snprintf(expected + used, sizeof expected - used, "%s\"%s\"",
                             i == 0 ? "" : " or ", names[i]);
        if (added > 0 && (size_t)added < sizeof expected - used)
            used += (size_t)added;
    }
    return member_fail(path, key, value, expected);
}
