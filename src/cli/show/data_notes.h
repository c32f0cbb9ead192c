/* data_notes.h: what was done to read data, on the screen. */
#ifndef PRONY_CLI_SHOW_DATA_NOTES_H
#define PRONY_CLI_SHOW_DATA_NOTES_H

#include "prony.h"

#include <stddef.h>

/* A heading with the data's name and a line for each note; nothing where there is none. Returns how
 * much was told. */
size_t data_notes_print(const char *name, const struct prony_data *data);
/* Notes that came since so much was told, as data_notes_print returned it. */
void data_notes_print_more(const struct prony_data *data, size_t told);

#endif
