/* fuzz_json.c: whatever the reader accepts, the writer writes so that it reads back the same. */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void compare(const struct json *a, const struct json *b)
{
    need(a->kind == b->kind && a->count == b->count && a->boolean == b->boolean);
    need(!a->key == !b->key && (!a->key || strcmp(a->key, b->key) == 0));
    if (a->kind == JSON_NUMBER) {
        need(memcmp(&a->number, &b->number, sizeof a->number) == 0);
        need(!a->is_integer || (b->is_integer && a->integer == b->integer));
    }
    if (a->kind == JSON_STRING)
        need(a->length == b->length && memcmp(a->string, b->string, a->length + 1) == 0);
    const struct json *right = b->first;
    for (const struct json *left = a->first; left; left = left->next, right = right->next)
        compare(left, right);
}

static void write_tree(struct text *text, const struct json *value)
{
    struct json_writer writer;
    json_begin(&writer, text);
    json_add_tree(&writer, value);
    need(text_done(text) == STATUS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct json *value, *again;
    if (json_parse(&arena, "fuzz", (const char *)data, size, &value) == STATUS_OK) {
        struct text once = {0}, twice = {0};
        write_tree(&once, value);
        need(json_parse(&arena, "again", once.data, once.length, &again) == STATUS_OK);
        compare(value, again);
        write_tree(&twice, again);
        need(once.length == twice.length && memcmp(once.data, twice.data, once.length) == 0);
        text_free(&once);
        text_free(&twice);
    }
    arena_free(&arena);
    return 0;
}
