/* memory.h: the only place that asks the system for heap memory.
 *
 * Sizes are checked for overflow; memory comes zeroed; a failed allocation returns NULL, never
 * exits. Tests make the Nth allocation fail (memory_fail_at) and check that everything above goes
 * on. Thread-safe. */
#ifndef PRONY_BASE_MEMORY_H
#define PRONY_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);                 /* zeroed; bytes may be 0 */
void *mem_array(size_t count, size_t bytes);   /* zeroed; NULL when count × bytes overflows */
void *mem_aligned(size_t align, size_t bytes); /* zeroed; align a power of two; mem_free frees */
/* zeroed; aligned to 64 bytes or more; for large blocks: on 2 MB pages where the system gives them.
 * A page comes into being, near the CPU that does it, when it is first written. */
void *mem_large(size_t bytes);
void mem_free_large(void *pointer,
                    size_t bytes); /* a block from mem_large, and its bytes; NULL is fine */
/* Does the system give such pages to those who ask? */
bool mem_has_huge_pages(void);
/* Puts a block from mem_large on small pages after all; before it is written. */
void mem_small_pages(void *pointer, size_t bytes);
/* Grows (never shrinks) what mem_large gave for old_bytes; what is new is zeros. NULL leaves `old`
 * alive. */
void *mem_grow_large(void *old, size_t old_bytes, size_t bytes);
/* Grows (never shrinks) to count × bytes; what is new is not zeroed. NULL leaves `old` alive. */
void *mem_grow(void *old, size_t count, size_t bytes);
char *mem_copy_text(const char *text);
void mem_free(void *pointer);

size_t mem_installed(void); /* bytes of the machine */
/* Bytes that this process may have: the machine's, or fewer where its control groups (quota.h) or
 * `ulimit -v` allow fewer. Memory that others hold is not taken off, so that a choice is made alike
 * at any hour; room.h does, to refuse. Reads files: not for every call. */
size_t mem_total(void);

/* Addresses for `bytes` zeroed bytes; a page takes memory once it is written. For a block that is
 * there only in part at a time. mem_drop gives the pages back, and they are zeros again. */
void *mem_reserve(size_t bytes);
void mem_drop(void *pointer, size_t bytes);
void mem_unreserve(void *pointer, size_t bytes); /* NULL is fine */

/* The nth allocation from now fails (1 = the next), and every one after it until it is called with
 * 0, which switches the countdown off. For tests. */
void memory_fail_at(long nth);
/* Has the countdown reached its end since it was set? */
bool memory_failed(void);

/* *out = a × b or a + b; false, and *out untouched, when that overflows. */
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

#endif
