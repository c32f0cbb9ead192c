/* prose.h: sentences on the screen, in lines that fit it. */
#ifndef PRONY_CLI_SHOW_PROSE_H
#define PRONY_CLI_SHOW_PROSE_H

/* Prints the line to stdout with a newline; where it is too long for the screen it goes on below,
 * `hang` blanks in. A word that is longer than a line is not cut. */
void prose_print(const char *line, int hang);
/* The same of a text that is made as printf makes it. */
void prose_printf(int hang, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
