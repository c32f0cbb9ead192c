/* screen.h: text on its way to the screen.
 *
 * Names, reasons and messages come from files and records that anybody may have written. A terminal
 * obeys control characters in them: it hides lines, renames windows, answers as if somebody typed.
 * So whatever is printed passes here, and a control character becomes its number: \u001b. */
#ifndef PRONY_CLI_SCREEN_H
#define PRONY_CLI_SCREEN_H

#include <stdio.h>

/* From now on stdout and stderr do this; newlines and tabs stay. */
void screen_guard(void);

/* Sends our own control characters past it. */
void screen_control(FILE *stream, const char *sequence);

/* What follows on stdout is lines of JSON for a program, byte for byte, unless it is a terminal. */
void screen_exact(void);

#endif
