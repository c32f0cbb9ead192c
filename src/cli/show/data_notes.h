/* data_notes.h: what was done to read data, on the screen. */
#ifndef PRONY_CLI_SHOW_DATA_NOTES_H
#define PRONY_CLI_SHOW_DATA_NOTES_H

#include "prony.h"

/* A heading with the data's name and a line for each note; nothing where there is none. */
void data_notes_print(const char *name, const struct prony_data *data);

#endif
