/* fuzz_columns.c: any text of a model file's metadata is columns that are written and read again to
 * the same text, or it is refused. */
#include "data/columns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void write_again(struct arena *arena, const struct columns *columns)
{
    struct text first = {0}, second = {0};
    struct columns *again;
    columns_write(columns, &first);
    need(text_done(&first) == STATUS_OK);
    need(columns_read(arena, "again", text_of(&first), &again) == STATUS_OK);
    columns_write(again, &second);
    need(text_done(&second) == STATUS_OK && text_equal(text_of(&first), text_of(&second)));
    need(columns_width(columns) == columns_width(again));
    text_free(&first);
    text_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct columns *columns;
    char *text = arena_bytes(&arena, (const char *)data, size);
    need(text);
    enum status status = columns_read(&arena, "fuzz", text, &columns);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    for (int32_t i = 0; status == STATUS_OK && i < columns->count; i++)
        if (columns->list[i].kind != COLUMN_NUMBER)
            need(column_find_value(&columns->list[i], columns->list[i].values[0]) == 0);
    if (status == STATUS_OK)
        write_again(&arena, columns);
    arena_free(&arena);
    return 0;
}
