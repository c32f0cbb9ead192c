/* peers.h: which other frameworks there are. A peer is a folder peers/NAME/ with an executable
 * called peer or peer.py; a name with a '/' in it is such an executable itself. */
#ifndef PRONY_BENCH_PEER_PEERS_H
#define PRONY_BENCH_PEER_PEERS_H

#include "base/arena.h"
#include "base/status.h"

/* The executable's path, in the arena. STATUS_INPUT, naming the nearest, when there is none. */
enum status peers_find(const char *folder, const char *name, struct arena *arena, const char **out);

/* All names in the folder, sorted; *count is 0 when there is no such folder. */
enum status peers_list(const char *folder, struct arena *arena, const char *const **out,
                       size_t *count);

#endif
