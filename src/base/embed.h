/* embed.h: files that travel inside the executable (networks, suites, data sets, the guide's page).
 *
 * * prony_embed(TARGET SYMBOL FILES…) in CMakeLists.txt makes the table `SYMBOL`; its readers
 * declare it: `extern const struct embedded zoo_files[];`. */
#ifndef PRONY_BASE_EMBED_H
#define PRONY_BASE_EMBED_H

#include <stddef.h>

struct embedded {
    const char *name;           /* without the folder: "small.net"; NULL ends the table */
    const unsigned char *bytes; /* followed by a NUL, so that text can be read as a C string */
    size_t length;              /* without that NUL */
};

#endif
