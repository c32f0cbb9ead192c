/* fuzz_quantisation.c: any text of a model file's metadata is a quantisation that is written and
 * read again to the same text, or it is refused. */
#include "nn/formats/saved.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct quantisation *how, *again;
    struct text first = {0}, second = {0};
    char *text = arena_bytes(&arena, (const char *)data, size);
    need(text);
    enum status status = quantisation_read("fuzz", text, &arena, &how);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status == STATUS_OK) {
        quantisation_write(how, &first);
        need(text_done(&first) == STATUS_OK);
        need(quantisation_read("again", text_of(&first), &arena, &again) == STATUS_OK);
        quantisation_write(again, &second);
        need(text_done(&second) == STATUS_OK && text_equal(text_of(&first), text_of(&second)));
    }
    text_free(&first);
    text_free(&second);
    arena_free(&arena);
    return 0;
}
