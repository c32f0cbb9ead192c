/* plain.h: text from files, flags and other programs, on its way to a terminal.
 *
 * A terminal obeys some characters instead of showing them: control characters, those of UTF-8 and
 * those that turn the direction of writing included. Here each becomes its number, \u001b, and a
 * byte that is no UTF-8 becomes \x9b. Whatever has passed once passes again unchanged. */
#ifndef PRONY_BASE_PLAIN_H
#define PRONY_BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

enum { PLAIN_MOST = 7 }; /* "\u001b" and its end */

/* The character at the start of these bytes, at least one, as it is shown. Returns how many bytes
 * it has. `lines`: newlines and tabs stay. */
size_t plain_show(const char *bytes, size_t length, bool lines, char shown[PLAIN_MOST]);

/* Writes as many whole characters of the text, as they are shown, as there is room for with the
 * final 0, on one line. Returns their bytes. */
size_t plain_copy(char *to, size_t room, const char *text);

/* The longest end of the text, from a whole character on, that plain_copy has room for. */
const char *plain_end(const char *text, size_t room);

#endif
