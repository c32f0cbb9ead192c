/* team.h: how many threads a piece of work is worth. */
#ifndef PRONY_BACKEND_CPU_TEAM_H
#define PRONY_BACKEND_CPU_TEAM_H

#include "base/pool.h"

#include <stdint.h>

/* What a thread is worth waking up for. Tests make it little, so that every kernel's threads run on
 * their small cases; before a device is opened. */
extern struct team_worth {
    int64_t flop, bytes;
} team_worth;

static inline int team_of(const struct pool *pool, int64_t worth, int64_t items)
{
    int64_t members = pool_at_once(pool);
    members = members < items ? members : items;
    members = members < worth ? members : worth;
    return members < 1 ? 1 : (int)members;
}

/* Members for work of `flop` or `bytes` in `items` pieces. */
static inline int team_for_flop(const struct pool *pool, int64_t flop, int64_t items)
{
    return team_of(pool, flop / team_worth.flop, items);
}

static inline int team_for_bytes(const struct pool *pool, int64_t bytes, int64_t items)
{
    return team_of(pool, bytes / team_worth.bytes, items);
}

/* Equal parts: of 13 things in parts of at most 12 the first has 7 and the second 6. */
static inline int64_t even_part(int64_t count, int64_t most, int64_t from)
{
    int64_t parts = (count + most - 1) / most, size = (count + parts - 1) / parts;
    return count - from < size ? count - from : size;
}

#endif
