/* arena.h: memory that is freed all at once.
 *
 * * Objects that belong together (a program, a parsed file, a record) are allocated from one arena
 * and freed with it. Chunks grow; allocations are zeroed and aligned to 16 bytes. Not thread-safe.
 */
#ifndef PRONY_BASE_ARENA_H
#define PRONY_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena {
    struct arena_chunk *newest; /* NULL when empty: a zeroed struct arena is ready to use */
    size_t most, total;         /* bytes that it may have, 0: as memory lasts; that it has */
    bool full;                  /* more than `most` were asked for */
};

void *arena_alloc(struct arena *arena, size_t bytes);               /* NULL when memory is out */
void *arena_array(struct arena *arena, size_t count, size_t bytes); /* NULL also on overflow */
char *arena_text(struct arena *arena, const char *text);            /* a copy */
char *arena_bytes(struct arena *arena, const char *text, size_t length); /* a copy, with a NUL */
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *arena); /* the arena is empty and usable afterwards */

#endif
