/* symbols.h: the functions of a program or library, by the symbol tables of its ELF file: the
 * exported one and, where it is not stripped, the full one. The files are those that a watched
 * program loaded: anything may stand in them. */
#ifndef PRONY_WATCH_SYMBOLS_H
#define PRONY_WATCH_SYMBOLS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is empty: nothing has a name. */
struct symbols {
    struct symbol {
        uint64_t start, bytes; /* in the file */
        const char *name;
    } * list; /* ascending */
    size_t count;
    char *names[2]; /* the tables that hold them */
};

/* STATUS_UNSUPPORTED where it is no ELF file of 64 bits. */
enum status symbols_read(struct symbols *symbols, const char *path);
void symbols_free(struct symbols *symbols);
/* The function at this offset of the file; NULL: no symbol covers it. */
const char *symbols_find(const struct symbols *symbols, uint64_t offset);

/* Writes a name as people read it: of C++ without arguments and template arguments,
 * "at::_ops::addmm::call". */
void symbol_readable(const char *name, char *out, size_t room);

#endif
