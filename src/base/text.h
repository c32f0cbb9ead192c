/* text.h: growing strings, strict number parsing, "did you mean". */
#ifndef PRONY_BASE_TEXT_H
#define PRONY_BASE_TEXT_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing string, always NUL-terminated once something was added. A zeroed struct is empty and
 * ready. Appending never fails at once: running out of memory is remembered and text_done says it,
 * so that a writer checks once, at the end. */
struct text {
    char *data;
    size_t length, capacity;
    size_t most;       /* bytes it may have; 0: as memory lasts. More is lost, as without memory */
    bool failed, full; /* full: it would have had more than `most` */
};

void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const void *bytes, size_t length);
void text_add_char(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *text, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
void text_clear(struct text *text); /* empty again, memory kept */
void text_free(struct text *text);
enum status text_done(struct text *text);     /* STATUS_MEMORY when an append was lost */
const char *text_of(const struct text *text); /* never NULL */

/* Whole-string decimal numbers ("1e-3" is a real): no leading blanks, no trailing characters, no
 * overflow, no inf or nan. */
bool text_to_int(const char *string, int64_t *out);
bool text_to_uint(const char *string, uint64_t *out);
bool text_to_real(const char *string, double *out);

bool text_starts(const char *string, const char *prefix);
bool text_ends(const char *string, const char *suffix);
bool text_equal(const char *a, const char *b); /* both may be NULL */

/* The candidate nearest to `word` by edit distance if it is near enough to be meant, else NULL. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

/* How many bytes the UTF-8 character at the start of `bytes` takes (1 to 4). 0 when it is not
 * UTF-8: cut short, overlong, a surrogate, above U+10FFFF. `length` is at least 1. */
size_t text_utf8(const char *bytes, size_t length);

/* How many characters a terminal shows of it: bytes of UTF-8 that begin one. */
int text_width(const char *string);
int text_width_of(const char *bytes, size_t length);

/* May a line break at this blank? A figure and its unit stay together: "48 ms", "± 2 %". */
bool text_may_break(const char *string, size_t blank);
/* How many of the first bytes, which begin a word, stay in one line. */
size_t text_unbroken(const char *string);

/* Adds the words of `string` in lines of at most `width` characters: the first goes on at column
 * `at`, the others begin after `indent` blanks. An empty line in it stays one; other line ends are
 * blanks. Ends without a newline. */
void text_add_wrapped(struct text *text, const char *string, int at, int indent, int width);

/* Adds a word of a shell's command: as it is, or in quotes where that is needed. */
void text_add_word(struct text *text, const char *word);

/* Adds 1234567 as "1,234,567"; bytes as "11.8 MB"; a duration as "1.42 ms"; a count as "12.3 M". */
void text_add_grouped(struct text *text, uint64_t number);
void text_add_size(struct text *text, double bytes);
void text_add_time(struct text *text, double nanoseconds);
void text_add_count(struct text *text, double count);

#endif
