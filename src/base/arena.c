/* arena.c: a list of growing chunks.
 *
 * * Under the address sanitizer memory that was not given out is out of bounds, and a gap follows
 * each allocation. So it finds accesses beyond an array, as it does on the heap. */
#include "base/arena.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef __has_feature /* gcc's word for it is __SANITIZE_ADDRESS__ */
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
enum { GAP = 0 };
#endif

enum { ALIGN = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, size; /* bytes that follow the header */
};

enum { HEADER = (sizeof(struct arena_chunk) + ALIGN - 1) / ALIGN * ALIGN };

static struct arena_chunk *add_chunk(struct arena *arena, size_t need)
{
    size_t size = FIRST_CHUNK;
    if (arena->newest && arena->newest->size < LARGEST_CHUNK)
        size = arena->newest->size * 2;
    else if (arena->newest)
        size = LARGEST_CHUNK;
    if (size < need)
        size = need;
    size_t total;
    if (!size_add(size, HEADER, &total))
        return NULL;
    if (arena->most && total > arena->most - arena->total) {
        arena->full = true;
        return NULL;
    }
    struct arena_chunk *chunk = mem_aligned(ALIGN, total);
    if (!chunk)
        return NULL;
    arena->total += total;
    chunk->older = arena->newest;
    chunk->size = size;
    arena->newest = chunk;
    ASAN_POISON_MEMORY_REGION((char *)chunk + HEADER, size);
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - ALIGN - GAP)
        return NULL;
    size_t taken = (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
    struct arena_chunk *chunk = arena->newest;
    if (!chunk || chunk->size - chunk->used < taken)
        chunk = add_chunk(arena, taken);
    if (!chunk)
        return NULL;
    char *pointer = (char *)chunk + HEADER + chunk->used;
    chunk->used += taken;
    ASAN_UNPOISON_MEMORY_REGION(pointer, bytes);
    return pointer;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
    size_t total;
    return size_mul(count, bytes, &total) ? arena_alloc(arena, total) : NULL;
}

char *arena_bytes(struct arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;
    if (copy && length > 0) /* `text` may be NULL then, which memcpy must not see */
        memcpy(copy, text, length);
    return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
    return arena_bytes(arena, text, strlen(text));
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void arena_free(struct arena *arena)
{
    while (arena->newest) {
        struct arena_chunk *older = arena->newest->older;
        ASAN_UNPOISON_MEMORY_REGION((char *)arena->newest + HEADER, arena->newest->size);
        mem_free(arena->newest);
        arena->newest = older;
    }
    arena->total = 0;
}
