/* data_notes.c: see data_notes.h. */
#include "cli/show/data_notes.h"

#include "cli/table/prose.h"

#include <string.h>

static void print_lines(const char *note, int indent, const char *before)
{
    while (*note) {
        const size_t length = strcspn(note, "\n");
        prose_printf(indent, "%s%.*s", before, (int)length, note);
        note += length + (note[length] != 0);
    }
}

size_t data_notes_print(const char *name, const struct prony_data *data)
{
    const char *notes = prony_data_notes(data);
    if (*notes)
        prose_printf(2, "how %s was read:", name);
    print_lines(notes, 4, "  ");
    return strlen(notes);
}

void data_notes_print_more(const struct prony_data *data, size_t told)
{
    print_lines(prony_data_notes(data) + told, 2, "");
}
