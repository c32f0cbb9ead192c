/* json.h: JSON in and out, ours, because records, calibration and safetensors headers must be read
 * on a machine with nothing but libc.
 *
 * * Reading gives a tree in an arena. Strict RFC 8259: one value of checked UTF-8, without trailing
 * text. It has at most JSON_DEPTH levels and JSON_VALUES values: one takes some 100 bytes of
 * memory, and two in a text. Duplicate keys, a NUL in a key and numbers beyond a double are
 * refused. Errors read "NAME:LINE:COLUMN: found …, expected …". Writing appends to a struct text.
 */
#ifndef PRONY_BASE_JSON_H
#define PRONY_BASE_JSON_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A writer goes twice as deep as the reader, so that whatever was read can be put into a record. */
enum { JSON_DEPTH = 64, JSON_WRITER_DEPTH = 2 * JSON_DEPTH, JSON_VALUES = 1 << 20 };

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    bool boolean;
    bool is_integer; /* written without fraction or exponent, not -0, and fits */
    int64_t integer;
    double number;
    const char *string; /* NUL-terminated; `length` bytes (a NUL may be inside) */
    size_t length;
    const char *key;           /* when it is a member of an object */
    struct json *first, *next; /* first child; next sibling */
    size_t count;              /* children */
};

/* `name` is used in messages. On success *out lives in `arena`. */
enum status json_parse(struct arena *arena, const char *name, const char *text, size_t length,
                       struct json **out);
/* The same for text that is line `line` of a file. */
enum status json_parse_line(struct arena *arena, const char *name, size_t line, const char *text,
                            size_t length, struct json **out);

/* The tree again, in that arena; NULL of NULL, and where there is no memory. */
struct json *json_copy(struct arena *arena, const struct json *tree);

/* Look-ups that accept NULL and wrong kinds, so that chains need no checks. */
const struct json *json_get(const struct json *object, const char *key); /* NULL when absent */
const char *json_text(const struct json *object, const char *key, const char *otherwise);
double json_real(const struct json *object, const char *key, double otherwise);
/* Also takes 3.0, as languages without integers write it. */
int64_t json_int(const struct json *object, const char *key, int64_t otherwise);
bool json_bool(const struct json *object, const char *key, bool otherwise);

/* Writer: commas and escaping are its business, order is the caller's. NaN and infinities become
 * null. Reals are the shortest text that reads back the same. A caller's mistake (a value without
 * a key in an object, an unbalanced end) is an assert. */
struct json_writer {
    struct text *text; /* not owned */
    int depth;
    bool after_key;
    char stack[JSON_WRITER_DEPTH]; /* '{' or '[' */
    bool has_item[JSON_WRITER_DEPTH];
};

void json_begin(struct json_writer *writer, struct text *text);
void json_object(struct json_writer *writer); /* { */
void json_array(struct json_writer *writer);  /* [ */
void json_end(struct json_writer *writer);    /* } or ] */
void json_key(struct json_writer *writer, const char *key);
/* NULL becomes null; bytes that are not UTF-8 become U+FFFD, so that the output always is. */
void json_add_text(struct json_writer *writer, const char *string);
void json_add_real(struct json_writer *writer, double number);
void json_add_float(struct json_writer *writer, float number); /* shortest for a float */
/* To 12 digits: for charts, which have many and show three. */
void json_add_figure(struct json_writer *writer, double number);
void json_add_int(struct json_writer *writer, int64_t number);
void json_add_uint(struct json_writer *writer, uint64_t number);
void json_add_bool(struct json_writer *writer, bool boolean);
void json_add_null(struct json_writer *writer);
void json_add_tree(struct json_writer *writer, const struct json *value); /* re-writes a tree */

/* A key and its value in an object. */
void json_put_text(struct json_writer *writer, const char *key, const char *string);
void json_put_real(struct json_writer *writer, const char *key, double number);
void json_put_figure(struct json_writer *writer, const char *key, double number);
void json_put_int(struct json_writer *writer, const char *key, int64_t number);
void json_put_uint(struct json_writer *writer, const char *key, uint64_t number);
void json_put_bool(struct json_writer *writer, const char *key, bool boolean);
void json_put_tree(struct json_writer *writer, const char *key, const struct json *value);

#endif
