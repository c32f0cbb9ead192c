/* data_notes.c: see data_notes.h. */
#include "cli/show/data_notes.h"

#include <stdio.h>
#include <string.h>

void data_notes_print(const char *name, const struct prony_data *data)
{
    const char *note = prony_data_notes(data);
    if (!*note)
        return;
    printf("how %s was read:\n", name);
    while (*note) {
        const size_t length = strcspn(note, "\n");
        printf("  %.*s\n", (int)length, note);
        note += length + (note[length] != 0);
    }
}
