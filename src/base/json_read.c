/* json_read.c: a recursive-descent JSON reader; the tree goes into the caller's arena.
 *
 * Depth is bounded, so recursion is. One hash table for the whole text finds duplicate keys in
 * time linear in its length, however many members an object has. */
#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    const struct json *object; /* NULL: free */
    const char *key;
    uint64_t hash;
};

struct parser {
    struct arena *arena;
    const char *name, *text;
    size_t first_line; /* number of the text's first, in messages */
    size_t length, at;
    int depth, values;  /* values: read so far */
    struct slot *slots; /* the keys seen so far, of all objects */
    size_t slot_count, slot_used;
};

/* "NAME:LINE:COLUMN: found WHAT, expected EXPECTED"; columns count characters, not bytes. */
static enum status fail_at(const struct parser *parser, size_t at, const char *what,
                           const char *expected)
{
    size_t line = parser->first_line, column = 1;
    for (size_t i = 0; i < at; i++) {
        if (parser->text[i] == '\n') {
            line++;
            column = 1;
        } else if ((parser->text[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    FAIL(STATUS_INPUT, "%s:%zu:%zu: found %s, expected %s", parser->name, line, column, what,
         expected);
}

/* The same, naming what stands at the current place. */
static enum status fail_here(const struct parser *parser, const char *expected)
{
    char what[16] = "the end";
    if (parser->at < parser->length) {
        const char *bytes = parser->text + parser->at;
        size_t size = text_utf8(bytes, parser->length - parser->at);
        if (size == 0 || (unsigned char)*bytes < ' ' || *bytes == 0x7F)
            snprintf(what, sizeof what, "byte 0x%02X", (unsigned char)*bytes);
        else
            snprintf(what, sizeof what, "'%.*s'", (int)size, bytes);
    }
    return fail_at(parser, parser->at, what, expected);
}

static int peek(const struct parser *parser)
{
    return parser->at < parser->length ? (unsigned char)parser->text[parser->at] : -1;
}

static void skip_blanks(struct parser *parser)
{
    int c = peek(parser);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        parser->at++;
        c = peek(parser);
    }
}

static bool skip_digits(struct parser *parser)
{
    size_t from = parser->at;
    while (peek(parser) >= '0' && peek(parser) <= '9')
        parser->at++;
    return parser->at > from;
}

static enum status parse_number(struct parser *parser, struct json *out)
{
    size_t from = parser->at;
    bool whole = true;
    if (peek(parser) == '-')
        parser->at++;
    size_t first = parser->at;
    if (!skip_digits(parser))
        return fail_here(parser, "a digit");
    if (parser->text[first] == '0' && parser->at - first > 1)
        return fail_at(parser, from, "a number that starts with 0", "no leading zeros");
    if (peek(parser) == '.') {
        whole = false;
        parser->at++;
        if (!skip_digits(parser))
            return fail_here(parser, "a digit after the point");
    }
    if (peek(parser) == 'e' || peek(parser) == 'E') {
        whole = false;
        parser->at++;
        if (peek(parser) == '+' || peek(parser) == '-')
            parser->at++;
        if (!skip_digits(parser))
            return fail_here(parser, "a digit of the exponent");
    }

    size_t length = parser->at - from;
    char small[64], *digits = small; /* strtod wants a NUL; only odd numbers are longer */
    if (length < sizeof small) {
        memcpy(small, parser->text + from, length);
        small[length] = '\0';
    } else {
        NEED(digits = arena_bytes(parser->arena, parser->text + from, length));
    }
    out->kind = JSON_NUMBER;
    out->number = strtod(digits, NULL);
    if (!isfinite(out->number))
        return fail_at(parser, from, "a number too large for a double", "less than 1.8e308");
    bool minus_zero = out->number == 0 && signbit(out->number);
    out->is_integer = whole && !minus_zero && text_to_int(digits, &out->integer);
    return STATUS_OK;
}

/* The four hexadecimal digits of \uXXXX. */
static enum status parse_hex(struct parser *parser, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, parser->at++) {
        int c = peek(parser);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return fail_here(parser, "four hexadecimal digits after \\u");
        *out = *out << 4 | (uint32_t)digit;
    }
    return STATUS_OK;
}

static size_t put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    to[0] = (char)(lead[size] | code);
    return size;
}

/* After a backslash: adds what it stands for at *to. Never longer than what it was written as. */
static enum status parse_escape(struct parser *parser, char *to, size_t *used)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    size_t from = parser->at - 1;
    int c = peek(parser);
    const char *found = c > 0 ? strchr(names, c) : NULL;
    if (found) {
        parser->at++;
        to[(*used)++] = means[found - names];
        return STATUS_OK;
    }
    if (c != 'u')
        return fail_here(parser, "one of \" \\ / b f n r t u after a backslash");
    parser->at++;
    uint32_t code, low;
    TRY(parse_hex(parser, &code));
    if (code >= 0xDC00 && code <= 0xDFFF)
        return fail_at(parser, from, "the second half of a surrogate pair", "the first half");
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (peek(parser) != '\\')
            return fail_here(parser, "the second half of a surrogate pair");
        parser->at++;
        if (peek(parser) != 'u')
            return fail_here(parser, "the second half of a surrogate pair");
        parser->at++;
        size_t second = parser->at - 2;
        TRY(parse_hex(parser, &low));
        if (low < 0xDC00 || low > 0xDFFF)
            return fail_at(parser, second, "another character",
                           "the second half of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    *used += put_utf8(to + *used, code);
    return STATUS_OK;
}

/* Where the closing quote of a string stands, or the end of the text. */
static size_t find_quote(const struct parser *parser)
{
    size_t at = parser->at;
    while (at < parser->length && parser->text[at] != '"')
        at += parser->text[at] == '\\' ? 2 : 1;
    return at < parser->length ? at : parser->length;
}

static enum status parse_string(struct parser *parser, const char **out, size_t *length)
{
    parser->at++;
    size_t used = 0;
    char *string;
    NEED(string = arena_alloc(parser->arena, find_quote(parser) - parser->at + 1));
    for (int c = peek(parser); c != '"'; c = peek(parser)) {
        if (c == '\\') {
            parser->at++;
            TRY(parse_escape(parser, string, &used));
            continue;
        }
        if (c < 0)
            return fail_here(parser, "the closing quote of a string");
        if (c < ' ')
            return fail_here(parser, "control characters in a string to be escaped");
        size_t size = text_utf8(parser->text + parser->at, parser->length - parser->at);
        if (size == 0)
            return fail_here(parser, "valid UTF-8");
        memcpy(string + used, parser->text + parser->at, size);
        used += size;
        parser->at += size;
    }
    parser->at++;
    *out = string;
    *length = used;
    return STATUS_OK;
}

static uint64_t hash_key(const struct json *object, const char *key)
{
    uint64_t hash = 0xCBF29CE484222325u ^ (uint64_t)(uintptr_t)object; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001B3u;
    return hash ^ hash >> 29;
}

/* The slot of a key: the one that holds it or the free one where it belongs. */
static struct slot *find_slot(struct slot *slots, size_t count, const struct json *object,
                              const char *key, uint64_t hash)
{
    size_t i = hash & (count - 1);
    while (slots[i].object &&
           (slots[i].hash != hash || slots[i].object != object || strcmp(slots[i].key, key) != 0))
        i = (i + 1) & (count - 1);
    return &slots[i];
}

static enum status grow_slots(struct parser *parser)
{
    size_t count = parser->slot_count ? parser->slot_count * 2 : 64;
    struct slot *slots;
    NEED(slots = mem_array(count, sizeof *slots));
    for (size_t i = 0; i < parser->slot_count; i++) {
        const struct slot *old = &parser->slots[i];
        if (old->object)
            *find_slot(slots, count, old->object, old->key, old->hash) = *old;
    }
    mem_free(parser->slots);
    parser->slots = slots;
    parser->slot_count = count;
    return STATUS_OK;
}

/* Reads "key": and refuses one the object already has. */
static enum status parse_key(struct parser *parser, const struct json *object, const char **out)
{
    size_t from = parser->at, length;
    if (peek(parser) != '"')
        return fail_here(parser, "a key in quotes");
    TRY(parse_string(parser, out, &length));
    if (strlen(*out) != length)
        return fail_at(parser, from, "a key with \\u0000 inside", "a key without");
    if (parser->slot_used >= parser->slot_count / 2)
        TRY(grow_slots(parser));
    uint64_t hash = hash_key(object, *out);
    struct slot *slot = find_slot(parser->slots, parser->slot_count, object, *out, hash);
    if (slot->object) {
        char what[120];
        snprintf(what, sizeof what, "the key \"%.80s\" a second time", *out);
        return fail_at(parser, from, what, "each key once");
    }
    *slot = (struct slot){.object = object, .key = *out, .hash = hash};
    parser->slot_used++;
    skip_blanks(parser);
    if (peek(parser) != ':')
        return fail_here(parser, "':' after a key");
    parser->at++;
    skip_blanks(parser);
    return STATUS_OK;
}

static enum status parse_value(struct parser *parser, struct json *out);

/* An array or an object; the two differ in their brackets and in the keys. */
static enum status parse_children(struct parser *parser, struct json *out)
{
    bool keyed = out->kind == JSON_OBJECT;
    char close = keyed ? '}' : ']';
    if (parser->depth == JSON_DEPTH)
        return fail_here(parser, "at most 64 arrays and objects inside each other");
    _Static_assert(JSON_DEPTH == 64, "the message above says 64");
    parser->depth++;
    parser->at++;
    skip_blanks(parser);
    struct json **link = &out->first;
    while (out->count || peek(parser) != close) {
        struct json *child;
        NEED(child = arena_alloc(parser->arena, sizeof *child));
        if (keyed)
            TRY(parse_key(parser, out, &child->key));
        TRY(parse_value(parser, child));
        *link = child;
        link = &child->next;
        out->count++;
        skip_blanks(parser);
        if (peek(parser) == close)
            break;
        if (peek(parser) != ',')
            return fail_here(parser, keyed ? "',' or '}'" : "',' or ']'");
        parser->at++;
        skip_blanks(parser);
    }
    parser->at++;
    parser->depth--;
    return STATUS_OK;
}

static bool skip_word(struct parser *parser, const char *word)
{
    size_t length = strlen(word);
    if (parser->length - parser->at < length || memcmp(parser->text + parser->at, word, length))
        return false;
    parser->at += length;
    return true;
}

static enum status parse_value(struct parser *parser, struct json *out)
{
    int c = peek(parser);
    if (++parser->values > JSON_VALUES)
        return fail_here(parser, "at most 1048576 values");
    _Static_assert(JSON_VALUES == 1048576, "the message above has this number");
    if (c == '{' || c == '[') {
        out->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        return parse_children(parser, out);
    }
    if (c == '"') {
        out->kind = JSON_STRING;
        return parse_string(parser, &out->string, &out->length);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return parse_number(parser, out);
    if (skip_word(parser, "null")) {
        out->kind = JSON_NULL;
        return STATUS_OK;
    }
    out->kind = JSON_BOOL;
    out->boolean = skip_word(parser, "true");
    if (!out->boolean && !skip_word(parser, "false"))
        return fail_here(parser, "a value");
    return STATUS_OK;
}

static enum status parse_text(struct parser *parser, struct json **out)
{
    struct json *value;
    NEED(value = arena_alloc(parser->arena, sizeof *value));
    skip_blanks(parser);
    TRY(parse_value(parser, value));
    skip_blanks(parser);
    if (parser->at < parser->length)
        return fail_here(parser, "nothing after the value");
    *out = value;
    return STATUS_OK;
}

enum status json_parse_line(struct arena *arena, const char *name, size_t line, const char *text,
                            size_t length, struct json **out)
{
    struct parser parser = {
        .arena = arena, .name = name, .first_line = line, .text = text, .length = length};
    enum status status = parse_text(&parser, out);
    mem_free(parser.slots);
    return status;
}

enum status json_parse(struct arena *arena, const char *name, const char *text, size_t length,
                       struct json **out)
{
    return json_parse_line(arena, name, 1, text, length, out);
}

const struct json *json_get(const struct json *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *member = object->first; member; member = member->next)
        if (strcmp(member->key, key) == 0)
            return member;
    return NULL;
}

const char *json_text(const struct json *object, const char *key, const char *otherwise)
{
    const struct json *value = json_get(object, key);
    return value && value->kind == JSON_STRING ? value->string : otherwise;
}

double json_real(const struct json *object, const char *key, double otherwise)
{
    const struct json *value = json_get(object, key);
    return value && value->kind == JSON_NUMBER ? value->number : otherwise;
}

int64_t json_int(const struct json *object, const char *key, int64_t otherwise)
{
    const double exact = 9007199254740992; /* 2^53: up to here a double holds every integer */
    const struct json *value = json_get(object, key);
    if (!value || value->kind != JSON_NUMBER)
        return otherwise;
    if (value->is_integer)
        return value->integer;
    bool whole = fabs(value->number) <= exact && value->number == floor(value->number);
    return whole ? (int64_t)value->number : otherwise;
}

bool json_bool(const struct json *object, const char *key, bool otherwise)
{
    const struct json *value = json_get(object, key);
    return value && value->kind == JSON_BOOL ? value->boolean : otherwise;
}

struct json *json_copy(struct arena *arena, const struct json *tree)
{
    struct json *copy = tree ? arena_alloc(arena, sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    *copy = *tree;
    copy->first = copy->next = NULL;
    if ((tree->string && !(copy->string = arena_bytes(arena, tree->string, tree->length))) ||
        (tree->key && !(copy->key = arena_text(arena, tree->key))))
        return NULL;
    struct json **end = &copy->first;
    for (const struct json *child = tree->first; child; child = child->next, end = &(*end)->next)
        if (!(*end = json_copy(arena, child)))
            return NULL;
    return copy;
}
