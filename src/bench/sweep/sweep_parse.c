/* sweep_parse.c: what a person writes for an axis: lists, ranges, and rules of what to leave out.
 */
#include "bench/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 1000, TERMS_MOST = 100 };

/* "1-8" or "16-256*2". */
struct range {
    int64_t first, last, times; /* times 0: every whole number */
};

static bool range_parse(const char *text, struct range *out)
{
    char *end;
    *out = (struct range){0};
    if (text[0] < '0' || text[0] > '9')
        return false;
    out->first = strtoll(text, &end, 10);
    if (end[0] != '-' || end[1] < '0' || end[1] > '9')
        return false;
    out->last = strtoll(end + 1, &end, 10);
    return !*end || (end[0] == '*' && text_to_int(end + 1, &out->times));
}

bool sweep_has(const struct sweep_list *list, const char *value)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->values[i], value) == 0)
            return true;
    return false;
}

/* What is there already (1-8,4) is measured once. */
static enum status add_value(const struct axis *axis, const char *value, struct arena *arena,
                             struct sweep_list *out)
{
    int64_t number;
    TRY(axis_check(axis, value));
    if (axis->kind == AXIS_INT && text_to_int(value, &number)) /* 04 is 4 */
        NEED(value = arena_format(arena, "%lld", (long long)number));
    if (sweep_has(out, value))
        return STATUS_OK;
    if (out->count == VALUES_MOST)
        FAIL(STATUS_INPUT, "--%s: found more than %d values", axis->key, VALUES_MOST);
    ((const char **)(uintptr_t)out->values)[out->count++] = value;
    return STATUS_OK;
}

static enum status add_range(const struct axis *axis, const char *text, const struct range *range,
                             struct arena *arena, struct sweep_list *out)
{
    bool multiplies = strchr(text, '*') != NULL;
    if (range->first < 1 || range->last < range->first || (multiplies && range->times < 2))
        FAIL(STATUS_INPUT, "--%s: found \"%s\", expected a range such as 1-8 or 16-256*2",
             axis->key, text);
    for (int64_t at = range->first; at <= range->last;) {
        char *value = arena_format(arena, "%lld", (long long)at);
        NEED(value);
        TRY(add_value(axis, value, arena, out));
        if (multiplies ? __builtin_mul_overflow(at, range->times, &at)
                       : __builtin_add_overflow(at, 1, &at))
            break;
    }
    return STATUS_OK;
}

/* To the next comma; behind FILE.onnx:NAME=N, to the next that no further NAME=N follows. */
static size_t value_length(const char *at)
{
    size_t length = strcspn(at, ",");
    const char *sizes = strstr(at, ".onnx:");
    bool goes_on = sizes && (size_t)(sizes - at) < length;
    while (goes_on && at[length]) {
        const char *next = at + length + 1;
        goes_on = next[strcspn(next, ",:=")] == '=';
        length += goes_on ? 1 + strcspn(next, ",") : 0;
    }
    return length;
}

enum status sweep_split(const struct axis *axis, const char *text, struct arena *arena,
                        struct sweep_list *out)
{
    NEED(out->values = arena_array(arena, VALUES_MOST, sizeof *out->values));
    out->count = 0;
    for (const char *at = text;; at++) {
        size_t length = value_length(at);
        struct range range;
        char *item;
        if (!length)
            FAIL(STATUS_INPUT, "--%s: found \"%s\", expected values with a comma between them",
                 axis->key, text);
        NEED(item = arena_bytes(arena, at, length));
        if (axis->kind == AXIS_INT && range_parse(item, &range))
            TRY(add_range(axis, item, &range, arena, out));
        else
            TRY(add_value(axis, item, arena, out));
        at += length;
        if (!*at)
            return STATUS_OK;
    }
}

static enum status parse_term(const char *text, struct arena *arena, struct sweep_term *out)
{
    const char *equals = strchr(text, '=');
    char *key;
    if (!equals)
        FAIL(STATUS_INPUT, "found \"%s\", expected AXIS=VALUE,…", text);
    NEED(key = arena_bytes(arena, text, (size_t)(equals - text)));
    TRY(axis_need(key, &out->axis));
    return sweep_split(out->axis, equals + 1, arena, &out->values);
}

static enum status parse_rules(struct sweep *sweep, const char *text, struct arena *arena)
{
    struct sweep_term *terms = arena_array(arena, TERMS_MOST, sizeof *terms);
    NEED(terms);
    sweep->skip = terms;
    sweep->skip_count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ;");
        if (length) {
            char *term;
            if (sweep->skip_count == TERMS_MOST)
                FAIL(STATUS_INPUT, "found more than %d terms", TERMS_MOST);
            NEED(term = arena_bytes(arena, at, length));
            TRY(parse_term(term, arena, &terms[sweep->skip_count++]));
        }
        at += length;
        if (*at == ';' && sweep->skip_count)
            terms[sweep->skip_count - 1].ends = true;
        at += *at != '\0';
    }
    if (!sweep->skip_count)
        FAIL(STATUS_INPUT, "found nothing, expected AXIS=VALUE,…");
    terms[sweep->skip_count - 1].ends = true;
    return STATUS_OK;
}

enum status sweep_parse_skip(struct sweep *sweep, const char *text, struct arena *arena)
{
    enum status status = parse_rules(sweep, text, arena);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "--skip");
}
