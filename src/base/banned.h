/* banned.h: makes functions that overflow buffers, hide errors or go round base/memory.h compile
 * errors. The build includes it first in every file of src/ (-include base/banned.h).
 *
 * Instead of strcpy, strncpy, strcat, sprintf: snprintf, memcpy with a checked size, or struct
 * text. Instead of strtok: strcspn. Instead of atoi, atol, atof: text_to_int, text_to_real. Instead
 * of malloc and strdup: mem_alloc, mem_copy_text, an arena. */
#ifndef PRONY_BASE_BANNED_H
#define PRONY_BASE_BANNED_H

#if defined __GNUC__ && !defined __cplusplus
/* Their own headers must have named them before they are poisoned; immintrin.h pulls in
 * mm_malloc.h. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __has_include
#if __has_include(<mm_malloc.h>)
#include <mm_malloc.h>
#endif
#endif

#pragma GCC poison strcpy strncpy strcat strncat stpcpy sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof
#ifndef PRONY_ALLOW_MALLOC
#pragma GCC poison malloc calloc realloc reallocarray free aligned_alloc posix_memalign
#pragma GCC poison strdup strndup asprintf vasprintf
#endif
#endif

#endif
