/* plain.h: text from files, flags and other programs, on its way to a terminal. */
#ifndef PRONY_BASE_PLAIN_H
#define PRONY_BASE_PLAIN_H

/* Puts a '?' for each byte of what a terminal would obey instead of showing: control characters,
 * those of UTF-8 and those that turn the direction of writing included, and bytes that are no
 * UTF-8. The length stays. */
void plain_make(char *string);
void plain_make_lines(char *string); /* but the ends of lines stay, too */

#endif
