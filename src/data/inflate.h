/* inflate.h: gzip files (RFC 1952) unpacked in memory, by an inflate (RFC 1951) of our own: reading
 * a data set needs libc only. */
#ifndef PRONY_DATA_INFLATE_H
#define PRONY_DATA_INFLATE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Do the bytes begin as a gzip file does? */
bool inflate_is_gzip(const void *bytes, size_t length);

/* Unpacks all members of the file; at most `limit` bytes come out. Lengths and checksums are
 * checked. The result is the caller's (mem_free) and has a NUL behind it. `name` is for messages.
 */
enum status inflate_gzip(const char *name, const void *bytes, size_t length, size_t limit,
                         unsigned char **out, size_t *out_length);

#endif
