/* Any bytes as a file of records: read without harm, and what was read can be written and read
 * again as the same line. */
#include "record/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status write_and_read(void *context, const struct record *record, const char *line,
                                  size_t length)
{
    (void)context;
    (void)line;
    (void)length;
    struct arena arena = {0};
    struct text once = {0}, twice = {0};
    struct record again;
    record_write(record, &once);
    if (text_done(&once) != STATUS_OK ||
        record_read(&arena, "again", 1, text_of(&once), once.length, &again) != STATUS_OK)
        abort();
    record_write(&again, &twice);
    if (strcmp(text_of(&once), text_of(&twice)) != 0)
        abort();
    for (size_t i = 0; i < METRIC_COUNT; i++)
        record_metric(record, &metrics[i]);
    char buffer[TITLE_TEXT];
    for (size_t i = 0; i < DERIVED_COUNT; i++)
        record_derived(record, &deriveds[i], buffer);
    text_free(&once);
    text_free(&twice);
    arena_free(&arena);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)record_read_all("fuzz", (const char *)data, size, write_and_read, NULL);
    return 0;
}
