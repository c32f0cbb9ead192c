/* inflate.h: gzip files (RFC 1952) unpacked in memory, or piece by piece. The inflate (RFC 1951) is
 * ours: reading a data set or a trace needs libc only. */
#ifndef PRONY_BASE_INFLATE_H
#define PRONY_BASE_INFLATE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Do the bytes begin as a gzip file does? */
bool inflate_is_gzip(const void *bytes, size_t length);

/* Sees how a long output begins, INFLATE_BEGIN bytes or a little more, before the rest is unpacked.
 * It may refuse it, or lower *limit, which holds for the whole. */
enum { INFLATE_BEGIN = 1 << 17 };
typedef enum status inflate_look(const char *name, const unsigned char *begin, size_t length,
                                 size_t *limit);

/* Unpacks all members of the file; at most `limit` bytes come out. Lengths and checksums are
 * checked. The result is the caller's (mem_free) and has a NUL behind it. `name` is for messages;
 * `look` may be NULL. */
enum status inflate_gzip(const char *name, const void *bytes, size_t length, size_t limit,
                         inflate_look *look, unsigned char **out, size_t *out_length);

/* The same where the unpacked output is larger than memory: pieces of at most INFLATE_PIECE bytes
 * are handed on as they come out. */
enum { INFLATE_PIECE = 1 << 20 };
typedef enum status inflate_sink(void *context, const char *bytes, size_t length);
enum status inflate_pieces(const char *name, const void *bytes, size_t length, inflate_sink *sink,
                           void *context);

#endif
