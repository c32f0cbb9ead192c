/* json_write.c: appends JSON to a text, on one line, without blanks. */
#include "base/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_begin(struct json_writer *writer, struct text *text)
{
    *writer = (struct json_writer){.text = text};
}

/* The comma before an element; a value in an object must follow its key. */
static void before_value(struct json_writer *writer)
{
    if (writer->depth == 0)
        return;
    int top = writer->depth - 1;
    if (writer->stack[top] == '{') {
        assert(writer->after_key);
        writer->after_key = false;
        return;
    }
    if (writer->has_item[top])
        text_add_char(writer->text, ',');
    writer->has_item[top] = true;
}

static void open_level(struct json_writer *writer, char bracket)
{
    before_value(writer);
    assert(writer->depth < JSON_WRITER_DEPTH);
    writer->stack[writer->depth] = bracket;
    writer->has_item[writer->depth] = false;
    writer->depth++;
    text_add_char(writer->text, bracket);
}

void json_object(struct json_writer *writer)
{
    open_level(writer, '{');
}

void json_array(struct json_writer *writer)
{
    open_level(writer, '[');
}

void json_end(struct json_writer *writer)
{
    assert(writer->depth > 0 && !writer->after_key);
    writer->depth--;
    text_add_char(writer->text, writer->stack[writer->depth] == '{' ? '}' : ']');
}

/* How many bytes from here on stand for themselves. */
static size_t plain_bytes(const char *string, size_t length)
{
    size_t at = 0;
    while (at < length && string[at] >= ' ' && string[at] <= '~' && string[at] != '"' &&
           string[at] != '\\')
        at++;
    return at;
}

static void add_quoted(struct text *text, const char *string, size_t length)
{
    static const char plain[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    text_add_char(text, '"');
    for (size_t at = 0;;) {
        size_t run = plain_bytes(string + at, length - at);
        text_add_bytes(text, string + at, run);
        at += run;
        if (at == length)
            break;
        unsigned char c = (unsigned char)string[at];
        size_t size = text_utf8(string + at, length - at);
        const char *special = c ? strchr(plain, c) : NULL;
        if (special)
            text_printf(text, "\\%c", names[special - plain]);
        else if (c < ' ')
            text_printf(text, "\\u%04x", c);
        else if (size)
            text_add_bytes(text, string + at, size);
        else
            text_add(text, "\uFFFD");
        at += size ? size : 1;
    }
    text_add_char(text, '"');
}

void json_key(struct json_writer *writer, const char *key)
{
    assert(writer->depth > 0 && writer->stack[writer->depth - 1] == '{' && !writer->after_key);
    int top = writer->depth - 1;
    if (writer->has_item[top])
        text_add_char(writer->text, ',');
    writer->has_item[top] = true;
    add_quoted(writer->text, key, strlen(key));
    text_add_char(writer->text, ':');
    writer->after_key = true;
}

void json_add_text(struct json_writer *writer, const char *string)
{
    if (!string) {
        json_add_null(writer);
        return;
    }
    before_value(writer);
    add_quoted(writer->text, string, strlen(string));
}

/* Up to DBL_DIG digits survive decimal → double → decimal, so %.15g already finds every shorter
 * text. Only subnormal numbers have fewer digits and are tried from one. (At some powers of two, a
 * neighbour of the nearest decimal would do with one digit less. It reads back all the same.) */
void json_add_real(struct json_writer *writer, double number)
{
    if (!isfinite(number)) {
        json_add_null(writer);
        return;
    }
    char digits[32];
    int precision = fabs(number) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(digits, sizeof digits, "%.*g", precision++, number);
    while (precision <= DBL_DECIMAL_DIG && strtod(digits, NULL) != number);
    before_value(writer);
    text_add(writer->text, digits);
}

void json_add_float(struct json_writer *writer, float number)
{
    if (!isfinite(number)) {
        json_add_null(writer);
        return;
    }
    char digits[32];
    int precision = fabsf(number) < FLT_MIN ? 1 : FLT_DIG;
    do
        snprintf(digits, sizeof digits, "%.*g", precision++, (double)number);
    while (precision <= FLT_DECIMAL_DIG && strtof(digits, NULL) != number);
    before_value(writer);
    text_add(writer->text, digits);
}

enum { FIGURE_DIGITS = 12 };

/* The digits of `number` × 10^-decimals into the end of `room`; where they begin. */
static char *put_digits(char room[40], uint64_t number, int decimals)
{
    char *at = room + 39;
    *at = 0;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
        if (--decimals == 0)
            *--at = '.';
    } while (number > 0 || decimals >= 0);
    return at;
}

/* Scaled to a whole number with as many digits, exact to one part in 10^15. */
void json_add_figure(struct json_writer *writer, double number)
{
    static const double powers[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                    1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};
    double size = fabs(number);
    char room[40];
    if (!isfinite(number)) {
        json_add_null(writer);
        return;
    }
    before_value(writer);
    if (number < 0)
        text_add_char(writer->text, '-');
    int decimals = size > 0 ? FIGURE_DIGITS - 1 - (int)floor(log10(size)) : 0;
    if (decimals < 0 || decimals > 16) {
        snprintf(room, sizeof room, "%.*g", FIGURE_DIGITS, size);
        text_add(writer->text, room);
        return;
    }
    uint64_t whole = (uint64_t)(size * powers[decimals] + 0.5);
    for (; decimals > 0 && whole % 10 == 0; decimals--)
        whole /= 10;
    text_add(writer->text, put_digits(room, whole, decimals));
}

void json_add_int(struct json_writer *writer, int64_t number)
{
    char room[40];
    before_value(writer);
    if (number < 0)
        text_add_char(writer->text, '-');
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    text_add(writer->text, put_digits(room, size, 0));
}

void json_add_uint(struct json_writer *writer, uint64_t number)
{
    char room[40];
    before_value(writer);
    text_add(writer->text, put_digits(room, number, 0));
}

void json_add_bool(struct json_writer *writer, bool boolean)
{
    before_value(writer);
    text_add(writer->text, boolean ? "true" : "false");
}

void json_add_null(struct json_writer *writer)
{
    before_value(writer);
    text_add(writer->text, "null");
}

void json_add_tree(struct json_writer *writer, const struct json *value)
{
    switch (value->kind) {
    case JSON_NULL: json_add_null(writer); return;
    case JSON_BOOL: json_add_bool(writer, value->boolean); return;
    case JSON_NUMBER:
        if (value->is_integer)
            json_add_int(writer, value->integer);
        else
            json_add_real(writer, value->number);
        return;
    case JSON_STRING:
        before_value(writer);
        add_quoted(writer->text, value->string, value->length);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT: open_level(writer, value->kind == JSON_OBJECT ? '{' : '['); break;
    }
    for (const struct json *child = value->first; child; child = child->next) {
        if (value->kind == JSON_OBJECT)
            json_key(writer, child->key);
        json_add_tree(writer, child);
    }
    json_end(writer);
}

void json_put_text(struct json_writer *writer, const char *key, const char *string)
{
    json_key(writer, key);
    json_add_text(writer, string);
}

void json_put_real(struct json_writer *writer, const char *key, double number)
{
    json_key(writer, key);
    json_add_real(writer, number);
}

void json_put_figure(struct json_writer *writer, const char *key, double number)
{
    json_key(writer, key);
    json_add_figure(writer, number);
}

void json_put_int(struct json_writer *writer, const char *key, int64_t number)
{
    json_key(writer, key);
    json_add_int(writer, number);
}

void json_put_uint(struct json_writer *writer, const char *key, uint64_t number)
{
    json_key(writer, key);
    json_add_uint(writer, number);
}

void json_put_bool(struct json_writer *writer, const char *key, bool boolean)
{
    json_key(writer, key);
    json_add_bool(writer, boolean);
}

void json_put_tree(struct json_writer *writer, const char *key, const struct json *value)
{
    json_key(writer, key);
    json_add_tree(writer, value);
}
