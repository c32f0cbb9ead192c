/* wrap.h: text in lines of a given width.
 *
 * Widths are columns of a terminal: "µs" has two, a combining accent none, an ideograph two. Lines
 * break at blanks, and inside a word only where it alone is wider than the line. */
#ifndef PRONY_CLI_WRAP_H
#define PRONY_CLI_WRAP_H

#include "base/text.h"

#include <stddef.h>

/* How wide a line may be: as the terminal is, else as COLUMNS says, else 80. */
int wrap_screen(void);

/* Columns that the text takes. */
size_t wrap_width(const char *text);
/* Bytes of the text that go into a line of this width, at least one character. `*skip`: the blanks
 * after them, which belong to no line. */
size_t wrap_take(const char *text, size_t width, size_t *skip);

/* Adds the text in lines of at most `width` columns, each ended. The first begins with `lead`, the
 * others with as many blanks. */
void wrap_add(struct text *out, const char *lead, const char *text, int width);
/* The same for a command: a line that goes on ends with a backslash, so that it can be pasted. */
void wrap_add_command(struct text *out, const char *lead, const char *command, int width);
/* The text, cut to this width with "…" at its end. */
void wrap_add_cut(struct text *out, const char *text, size_t width);

void wrap_pad(struct text *out, size_t columns);

#endif
