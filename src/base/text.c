/* text.c: growing strings and the strict reading of numbers. */
#include "base/text.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Room for `more` bytes and the NUL. */
static bool reserve(struct text *text, size_t more)
{
    size_t need;
    if (text->failed || !size_add(text->length, more, &need) || !size_add(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (text->most && need > text->most) {
        text->failed = text->full = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
    while (capacity < need)
        if (!size_mul(capacity, 2, &capacity))
            capacity = need;
    char *data = mem_grow(text->data, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_add_bytes(struct text *text, const void *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

void text_add_char(struct text *text, char c)
{
    text_add_bytes(text, &c, 1);
}

void text_vprintf(struct text *text, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_vprintf(text, format, list);
    va_end(list);
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->failed = text->full = false;
    if (text->data)
        text->data[0] = '\0';
}

void text_free(struct text *text)
{
    mem_free(text->data);
    *text = (struct text){0};
}

enum status text_done(struct text *text)
{
    if (text->failed)
        FAIL(STATUS_MEMORY, "out of memory for a text of more than %zu bytes", text->length);
    return STATUS_OK;
}

const char *text_of(const struct text *text)
{
    return text->data ? text->data : "";
}

bool text_to_uint(const char *string, uint64_t *out)
{
    if (!*string)
        return false;
    uint64_t value = 0;
    for (const char *c = string; *c; c++) {
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool text_to_int(const char *string, int64_t *out)
{
    bool negative = *string == '-';
    uint64_t size;
    if (!text_to_uint(string + negative, &size) || size > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

/* The alphabet keeps strtod from reading blanks, hexadecimal, inf and nan. The decimal point is a
 * point: the program sets no locale, and the library has its own (library/prony_inside.h). */
bool text_to_real(const char *string, double *out)
{
    if (!*string || string[strspn(string, "0123456789+-.eE")])
        return false;
    char *end;
    double value = strtod(string, &end);
    if (end == string || *end || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool text_starts(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *string, const char *suffix)
{
    size_t length = strlen(string), tail = strlen(suffix);
    return length >= tail && memcmp(string + length - tail, suffix, tail) == 0;
}

bool text_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

enum { LONGEST_WORD = 63 }; /* a longer one is not misspelt by a few letters */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. Three rows of the
 * usual table are enough. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][LONGEST_WORD + 1];
    int width = (int)strlen(b);
    for (int j = 0; j <= width; j++)
        rows[0][j] = j;
    int i = 0;
    for (; a[i]; i++) {
        const int *above = rows[i % 3], *two_above = rows[(i + 2) % 3];
        int *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            row[j + 1] = smaller(above[j] + (a[i] != b[j]), smaller(above[j + 1], row[j]) + 1);
            if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = smaller(row[j + 1], two_above[j - 1] + 1);
        }
    }
    return rows[i % 3][width];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word);
    if (length < 2 || length > LONGEST_WORD)
        return NULL;
    const char *nearest = NULL;
    int least = (int)(length + 2) / 3 + 1; /* near enough: one letter in three is wrong */
    for (size_t i = 0; i < count; i++) {
        if (strlen(candidates[i]) > LONGEST_WORD)
            continue;
        int distance = edit_distance(word, candidates[i]);
        if (distance < least) {
            least = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

size_t text_utf8(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80)
        return 1;
    /* Only the second byte has a range of its own: it keeps out overlong forms, surrogates and what
     * lies above U+10FFFF. */
    unsigned char low = 0x80, high = 0xBF;
    size_t size;
    if (b[0] >= 0xC2 && b[0] <= 0xDF)
        size = 2;
    else if (b[0] >= 0xE0 && b[0] <= 0xEF)
        size = 3;
    else if (b[0] >= 0xF0 && b[0] <= 0xF4)
        size = 4;
    else
        return 0;
    switch (b[0]) {
    case 0xE0: low = 0xA0; break;
    case 0xED: high = 0x9F; break;
    case 0xF0: low = 0x90; break;
    case 0xF4: high = 0x8F; break;
    default: break;
    }
    if (length < size || b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

int text_width_of(const char *bytes, size_t length)
{
    int count = 0;
    for (size_t i = 0; i < length; i++)
        count += (bytes[i] & 0xC0) != 0x80;
    return count;
}

int text_width(const char *string)
{
    return text_width_of(string, strlen(string));
}

static const char blanks[] = " \t\n";

/* Does a word begin with this unit, and go on as no letter does? */
static bool is_unit(const char *word)
{
    static const char *const units[] = {
        "%",       "×",       "ns",      "µs",    "us",   "ms",   "s",        "min", "h",
        "B",       "kB",      "KB",      "MB",    "GB",   "TB",   "KiB",      "MiB", "GiB",
        "B/s",     "kB/s",    "MB/s",    "GB/s",  "TB/s", "FLOP", "FLOP/s",   "k",   "M",
        "G",       "T",       "MFLOP",   "GFLOP", "J",    "mJ",   "µJ",       "W",   "TFLOP",
        "MFLOP/s", "GFLOP/s", "TFLOP/s", "MHz",   "GHz",  "°C",   "samples/s"};
    const size_t length = strcspn(word, " \t\n,;:.()");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && memcmp(units[i], word, length) == 0)
            return true;
    return false;
}

bool text_may_break(const char *string, size_t blank)
{
    const char *before = string + blank;
    const bool after_sign =
        blank >= 2 && (memcmp(before - 2, "±", 2) == 0 || memcmp(before - 2, "×", 2) == 0);
    const bool after_figure = blank >= 1 && before[-1] >= '0' && before[-1] <= '9';
    return !after_sign && !(after_figure && is_unit(before + strspn(before, blanks)));
}

size_t text_unbroken(const char *string)
{
    size_t length = strcspn(string, blanks);
    while (string[length] && !text_may_break(string, length)) {
        const size_t next = length + strspn(string + length, blanks);
        if (!string[next])
            break;
        length = next + strcspn(string + next, blanks);
    }
    return length;
}

void text_add_wrapped(struct text *text, const char *string, int at, int indent, int width)
{
    bool first = true;
    while (*string) {
        const size_t gap = strspn(string, blanks);
        const char *line = memchr(string, '\n', gap);
        const bool paragraph = line && memchr(line + 1, '\n', gap - (size_t)(line + 1 - string));
        const size_t length = text_unbroken(string + gap);
        const int wide = text_width_of(string + gap, length);
        if (!length)
            break;
        if (!first && (paragraph || at + 1 + wide > width)) {
            text_printf(text, "%s%*s", paragraph ? "\n\n" : "\n", indent, "");
            at = indent;
        } else if (!first) {
            text_add_char(text, ' ');
            at++;
        }
        for (size_t i = gap; i < gap + length; i++)
            text_add_char(text, strchr(blanks, string[i]) ? ' ' : string[i]);
        at += wide;
        string += gap + length;
        first = false;
    }
}

void text_add_word(struct text *text, const char *word)
{
    bool plain = *word;
    for (const char *at = word; *at; at++)
        plain &= (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                 (*at >= '0' && *at <= '9') || strchr("-_./:,+", *at) != NULL;
    if (plain) {
        text_add(text, word);
        return;
    }
    text_add_char(text, '\'');
    for (; *word; word++)
        text_add(text, *word == '\'' ? "'\\''" : (const char[]){*word, '\0'});
    text_add_char(text, '\'');
}

void text_add_grouped(struct text *text, uint64_t number)
{
    char digits[21];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text_add_char(text, ',');
        text_add_char(text, digits[i]);
    }
}

/* Three significant digits in the unit that leaves one to three before the point. */
static void add_scaled(struct text *text, double value, const char *const *units, int count)
{
    int unit = 0;
    while (unit + 1 < count && fabs(value) >= 999.5) {
        value /= 1000;
        unit++;
    }
    double size = fabs(value);
    bool whole = unit == 0 && value == floor(value);
    int decimals = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    text_printf(text, "%.*f%s", decimals, value, units[unit]);
}

void text_add_size(struct text *text, double bytes)
{
    static const char *const units[] = {" B", " KB", " MB", " GB", " TB", " PB"};
    add_scaled(text, bytes, units, sizeof units / sizeof *units);
}

void text_add_time(struct text *text, double nanoseconds)
{
    static const char *const units[] = {" ns", " µs", " ms", " s"};
    add_scaled(text, nanoseconds, units, sizeof units / sizeof *units);
}

void text_add_count(struct text *text, double count)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    add_scaled(text, count, units, sizeof units / sizeof *units);
}
