/* screen.h: text on its way to the screen.
 *
 * Names, reasons and messages come from files and records that anybody may have written. A terminal
 * obeys control characters in them: it hides lines, renames windows, answers as if somebody typed.
 * So whatever is printed passes here, and a control character becomes its number: \u001b.
 *
 * It also decides what a reader can show: colour, drawn characters, how wide a line may be; and it
 * keeps a few lines at the bottom of a terminal that show how far a command is (screen_status).
 * These lines are taken away before anything else is printed, and put back after it.
 *
 * A reader that closes its end (`prony … | head`) is no error: the rest of the output is dropped,
 * and screen_reader_left says so. */
#ifndef PRONY_CLI_SCREEN_H
#define PRONY_CLI_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

enum {
    SCREEN_NARROW = 40, /* no layout is narrower, … */
    SCREEN_USUAL = 80,  /* … and this is the width where nobody says another */
    SCREEN_WIDE = 500,
};

/* From now on stdout and stderr do this; newlines and tabs stay. */
void screen_guard(void);

/* Sends our own control characters past it. */
void screen_control(FILE *stream, const char *sequence);

/* What follows on stdout is lines of JSON for a program, byte for byte, unless it is a terminal. */
void screen_exact(void);

/* Where the locale is not UTF-8 (LANG=C): what follows has ASCII in place of our marks, "x" for a
 * times sign. Letters of names stay. For what a person reads: files for programs are not touched.
 */
void screen_for_person(void);

/* Did the reader of stdout close it? What is printed afterwards goes nowhere. */
bool screen_reader_left(void);

/* The switches: does a person look at the stream, on a terminal that obeys control sequences (TERM
 * is not "dumb")? May it have colour (also, NO_COLOR is not set), and drawn characters (also, the
 * locale is UTF-8, or nothing is said of it)? */
bool screen_is_terminal(FILE *stream);
bool screen_has_colour(FILE *stream);
bool screen_has_drawing(FILE *stream);
/* Characters in a line: the terminal's, else what COLUMNS says, else SCREEN_USUAL. */
int screen_width(FILE *stream);

/* How what follows on the stream looks, until the next call; nothing where there is no colour. */
enum screen_style {
    SCREEN_PLAIN,
    SCREEN_BOLD,
    SCREEN_DIM,
    SCREEN_GOOD,
    SCREEN_DOUBTFUL,
    SCREEN_BAD
};
void screen_style(FILE *stream, enum screen_style style);

/* Shows one or two lines below whatever is printed, in place of those before; "" or NULL takes them
 * away. Each is cut to the width. Nothing happens where stderr is no terminal. */
void screen_status(const char *lines);
/* The same, with nothing in place, from within a signal handler. */
void screen_status_drop(void);

#endif
