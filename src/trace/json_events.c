/* json_events.c: see json_events.h. */
#include "trace/json_events.h"

#include <string.h>

/* ---- splitting ------------------------------------------------------------------------------- */

static enum status refuse(const struct json_events *events, const char *found, const char *expected)
{
    FAIL(STATUS_INPUT, "%s:%zu: found %s, expected %s", events->name, events->line + 1, found,
         expected);
}

/* How deep an event's own bracket stands. */
static int event_depth(const struct json_events *events)
{
    return events->outer == '[' ? 2 : 3;
}

static enum status hold(struct json_events *events, const char *bytes, size_t length)
{
    const size_t most = events->in_array ? JSON_EVENT_LONGEST : JSON_MEMBER_LONGEST;
    if (events->held.length + length > most) {
        if (events->in_array)
            return refuse(events, "an event of more than 4 MB", "a trace");
        events->overlong = true;
        return STATUS_OK;
    }
    text_add_bytes(&events->held, bytes, length);
    return text_done(&events->held);
}

static enum status end_event(struct json_events *events)
{
    enum status status =
        events->event(events->context, text_of(&events->held), events->held.length);
    events->count++;
    text_clear(&events->held);
    return status;
}

/* A member of the outermost object is over. */
static enum status end_member(struct json_events *events)
{
    enum status status = STATUS_OK;
    if (events->has_key && !events->overlong && events->member)
        status = events->member(events->context, events->key, text_of(&events->held),
                                events->held.length);
    events->has_key = events->overlong = false;
    text_clear(&events->held);
    return status;
}

/* What was held so far is the key of a member. */
static void take_key(struct json_events *events)
{
    size_t length = events->held.length;
    const char *text = text_of(&events->held);
    while (length && (unsigned char)text[length - 1] <= ' ')
        length--;
    while (length && (unsigned char)*text <= ' ') {
        text++;
        length--;
    }
    if (length >= 2 && *text == '"' && length - 2 < sizeof events->key) {
        memcpy(events->key, text + 1, length - 2);
        events->key[length - 2] = 0;
    } else {
        events->key[0] = 0;
    }
    events->has_key = true;
    events->overlong = false;
    text_clear(&events->held);
}

static enum status open_bracket(struct json_events *events, char c)
{
    if (events->over)
        return refuse(events, "text after the end", "one JSON value");
    if (events->depth >= 200)
        return refuse(events, "more than 200 open brackets", "a trace");
    if (!events->depth++) {
        events->outer = c;
        events->in_array = c == '[';
        return STATUS_OK;
    }
    if (events->outer == '{' && events->depth == 2 && c == '[' && events->has_key &&
        !strcmp(events->key, "traceEvents")) {
        events->in_array = true;
        events->has_key = false;
        text_clear(&events->held);
        return STATUS_OK;
    }
    if (events->in_array && events->depth == event_depth(events) && c != '{')
        return refuse(events, "an array among the events", "an object for each event");
    return hold(events, &c, 1);
}

static enum status close_bracket(struct json_events *events, char c)
{
    if (!events->depth)
        return refuse(events, "a closing bracket", "an opening one");
    events->depth--;
    if (events->in_array && events->depth == event_depth(events) - 1) {
        TRY(hold(events, &c, 1));
        return end_event(events);
    }
    if (events->in_array && events->depth == event_depth(events) - 2) {
        events->in_array = false;
        events->over = !events->depth;
        text_clear(&events->held);
        return STATUS_OK;
    }
    if (!events->depth) {
        events->over = true;
        return end_member(events);
    }
    return hold(events, &c, 1);
}

static enum status take_char(struct json_events *events, char c)
{
    bool at_member = events->outer == '{' && events->depth == 1;
    switch (c) {
    case '{':
    case '[': return open_bracket(events, c);
    case '}':
    case ']': return close_bracket(events, c);
    case ':':
        if (at_member && !events->has_key) {
            take_key(events);
            return STATUS_OK;
        }
        break;
    case ',':
        if (at_member)
            return end_member(events);
        if (events->in_array && events->depth == event_depth(events) - 1)
            return STATUS_OK;
        break;
    case '\n': events->line++; break;
    default: break;
    }
    if (events->in_array && events->depth < event_depth(events)) {
        if ((unsigned char)c > ' ')
            return refuse(events, "something between events", "an object for each event");
        return STATUS_OK;
    }
    return events->depth ? hold(events, &c, 1) : STATUS_OK;
}

/* Texts are copied in runs: they are most of a file. */
static enum status take_text(struct json_events *events, const char **bytes, const char *end)
{
    const char *at = *bytes;
    while (at < end && (events->escaped || (*at != '"' && *at != '\\'))) {
        events->line += *at == '\n';
        events->escaped = false;
        at++;
    }
    if (at < end) {
        events->escaped = *at == '\\';
        events->in_text = *at != '"';
        at++;
    }
    TRY(hold(events, *bytes, (size_t)(at - *bytes)));
    *bytes = at;
    return STATUS_OK;
}

/* Inside an event all is kept until something that matters comes. */
static const char *run_of(const struct json_events *events, const char *at, const char *end)
{
    if (!events->in_array || events->depth < event_depth(events))
        return at;
    while (at < end && *at != '"' && *at != '{' && *at != '}' && *at != '[' && *at != ']' &&
           *at != '\n')
        at++;
    return at;
}

enum status json_events_feed(void *context, const char *bytes, size_t length)
{
    struct json_events *events = context;
    const char *end = bytes + length;
    while (bytes < end) {
        if (events->in_text) {
            TRY(take_text(events, &bytes, end));
            continue;
        }
        const char *run = run_of(events, bytes, end);
        if (run > bytes) {
            TRY(hold(events, bytes, (size_t)(run - bytes)));
            bytes = run;
            continue;
        }
        if (*bytes == '"') {
            events->in_text = true;
            TRY(hold(events, bytes++, 1));
            continue;
        }
        TRY(take_char(events, *bytes++));
    }
    return STATUS_OK;
}

enum status json_events_end(struct json_events *events, enum status status)
{
    bool open_array = events->outer == '[' && events->depth == 1 && !events->in_text;
    text_free(&events->held);
    if (status == STATUS_OK && !events->over && !open_array)
        status = refuse(events, "the end of the file in an event or a member", "its end");
    return status;
}

/* ---- members of an event --------------------------------------------------------------------- */

struct cursor {
    const struct json_events *events;
    const char *at, *end;
    char unescaped[4096]; /* longer texts are cut: names of kernels say no more after that */
};

static enum status broken(const struct cursor *cursor, const char *expected)
{
    char found[32];
    size_t left = (size_t)(cursor->end - cursor->at);
    size_t shown = left < sizeof found - 1 ? left : sizeof found - 1;
    memcpy(found, cursor->at, shown);
    found[shown] = 0;
    FAIL(STATUS_INPUT, "%s:%zu: event %zu: found \"%s\", expected %s", cursor->events->name,
         cursor->events->line + 1, cursor->events->count + 1, found, expected);
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (unsigned char)*cursor->at <= ' ')
        cursor->at++;
}

static bool take_sign(struct cursor *cursor, char sign)
{
    skip_blanks(cursor);
    if (cursor->at >= cursor->end || *cursor->at != sign)
        return false;
    cursor->at++;
    return true;
}

static unsigned hex_of(const char *digits)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 99;
        if (digit == 99)
            return '?';
        value = value << 4 | digit;
    }
    return value;
}

/* A character of 16 bits as UTF-8; halves of pairs and NUL become a question mark. */
static size_t put_utf8(unsigned c, char *to)
{
    if (!c || (c >= 0xD800 && c < 0xE000))
        c = '?';
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    to[0] = (char)(0xE0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 63));
    to[2] = (char)(0x80 | (c & 63));
    return 3;
}

static size_t unescape(struct cursor *cursor, char *to)
{
    static const char from[] = "bfnrt\"\\/", into[] = "\b\f\n\r\t\"\\/";
    char c = cursor->at < cursor->end ? *cursor->at++ : '?';
    const char *known = memchr(from, c, sizeof from - 1);
    if (known) {
        *to = into[known - from];
        return 1;
    }
    if (c == 'u' && cursor->end - cursor->at >= 4) {
        unsigned code = hex_of(cursor->at);
        cursor->at += 4;
        return put_utf8(code, to);
    }
    *to = '?';
    return 1;
}

/* After the opening quote. */
static enum status take_string(struct cursor *cursor, char *to, size_t room, size_t *length)
{
    *length = 0;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        char piece[4] = {*cursor->at++};
        size_t bytes = 1;
        if (piece[0] == '\\')
            bytes = unescape(cursor, piece);
        if (*length + bytes < room) {
            memcpy(to + *length, piece, bytes);
            *length += bytes;
        }
    }
    to[*length] = 0;
    return cursor->at++ < cursor->end ? STATUS_OK : broken(cursor, "the end of a text");
}

/* Passes over an array or object; what is in it was balanced when the event was split off. */
static void skip_nested(struct cursor *cursor)
{
    int depth = 0;
    bool in_text = false;
    for (; cursor->at < cursor->end; cursor->at++) {
        char c = *cursor->at;
        if (in_text) {
            if (c == '\\' && cursor->at + 1 < cursor->end)
                cursor->at++;
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth <= 0) {
            cursor->at++;
            return;
        }
    }
}

static enum status take_value(struct cursor *cursor, struct json_value *value)
{
    skip_blanks(cursor);
    const char *start = cursor->at;
    *value = (struct json_value){.text = start};
    if (start >= cursor->end)
        return broken(cursor, "a value");
    if (*start == '"') {
        cursor->at++;
        value->text = cursor->unescaped;
        value->is_text = true;
        return take_string(cursor, cursor->unescaped, sizeof cursor->unescaped, &value->length);
    }
    if (*start == '{' || *start == '[') {
        skip_nested(cursor);
    } else {
        while (cursor->at < cursor->end && *cursor->at != ',' && *cursor->at != '}' &&
               (unsigned char)*cursor->at > ' ')
            cursor->at++;
    }
    value->length = (size_t)(cursor->at - start);
    return value->length ? STATUS_OK : broken(cursor, "a value");
}

static enum status walk(struct cursor *cursor, bool inside, json_visit *visit, void *context)
{
    if (!take_sign(cursor, '{'))
        return broken(cursor, "an object");
    if (take_sign(cursor, '}'))
        return STATUS_OK;
    do {
        char key[64];
        size_t length;
        struct json_value value;
        if (!take_sign(cursor, '"'))
            return broken(cursor, "a key");
        TRY(take_string(cursor, key, sizeof key, &length));
        if (!take_sign(cursor, ':'))
            return broken(cursor, "a colon");
        skip_blanks(cursor);
        if (!inside && !strcmp(key, "args") && cursor->at < cursor->end && *cursor->at == '{') {
            TRY(walk(cursor, true, visit, context));
            continue;
        }
        TRY(take_value(cursor, &value));
        TRY(visit(context, inside, key, &value));
    } while (take_sign(cursor, ','));
    return take_sign(cursor, '}') ? STATUS_OK : broken(cursor, "a comma or the end of the object");
}

enum status json_members(const struct json_events *events, const char *object, size_t length,
                         json_visit *visit, void *context)
{
    struct cursor cursor = {.events = events, .at = object, .end = object + length};
    return walk(&cursor, false, visit, context);
}

bool json_scaled(const struct json_value *value, int shift, int64_t *out)
{
    const int64_t most = INT64_MAX / 100;
    const char *at = value->text, *end = value->text + value->length;
    bool negative = at < end && *at == '-', point = false;
    int64_t number = 0;
    int digits = 0, dropped = 0;
    for (at += negative; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9')
            break;
        digits++;
        if (point && shift <= 0) { /* the first digit that is not kept rounds */
            number += shift-- == 0 && *at >= '5';
            dropped++;
            continue;
        }
        if (number > most / 10)
            return false;
        number = 10 * number + (*at - '0');
        shift -= point;
    }
    if (!digits)
        return false;
    shift += dropped;
    int exponent = 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        bool down = ++at < end && *at == '-';
        at += at < end && (*at == '-' || *at == '+');
        for (; at < end && *at >= '0' && *at <= '9' && exponent < 100; at++)
            exponent = 10 * exponent + (*at - '0');
        shift += down ? -exponent : exponent;
    }
    for (; shift > 0; shift--) {
        if (number > most / 10)
            return false;
        number *= 10;
    }
    for (; shift < 0 && number; shift++)
        number /= 10;
    *out = negative ? -number : number;
    return at == end;
}
