/* data_notes.c: see data_notes.h. */
#include "cli/show/data_notes.h"

#include "cli/table/prose.h"

#include <string.h>

void data_notes_print(const char *name, const struct prony_data *data)
{
    const char *note = prony_data_notes(data);
    if (*note)
        prose_printf(2, "how %s was read:", name);
    while (*note) {
        const size_t length = strcspn(note, "\n");
        prose_printf(4, "  %.*s", (int)length, note);
        note += length + (note[length] != 0);
    }
}
