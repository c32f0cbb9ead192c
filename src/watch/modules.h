/* modules.h: which file an address of a running process belongs to.
 *
 * A place is a number that stays the same from process to process and after a library is unloaded:
 * the module's number and the offset in its file. */
#ifndef PRONY_WATCH_MODULES_H
#define PRONY_WATCH_MODULES_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MODULES_MOST = 1 << 15, PLACE_BITS = 48 };

/* All files that were seen in any process; module 0 is memory without a file, as compilers at run
 * time make it. */
struct modules {
    struct arena arena;
    const char **paths;
    size_t count, room;
};
enum status modules_number(struct modules *modules, const char *path, size_t *out);
void modules_free(struct modules *modules);

/* The ranges of one process that can be executed, ascending. */
struct maps {
    struct map_range {
        uint64_t start, end, offset;
        size_t module;
    } * ranges;
    size_t count, room;
    uint64_t read_ns;
};
/* Reads them anew; those before stay where the process is gone. */
enum status maps_read(struct maps *maps, pid_t process, struct modules *modules);
void maps_free(struct maps *maps);
/* The place of an address; 0: no range has it. */
uint64_t maps_place(const struct maps *maps, uint64_t address);

static inline size_t place_module(uint64_t place)
{
    return (size_t)(place >> PLACE_BITS);
}
static inline uint64_t place_offset(uint64_t place)
{
    return place & (((uint64_t)1 << PLACE_BITS) - 1);
}

#endif
