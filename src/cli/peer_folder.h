/* peer_folder.h: where the peers are: beside the build folder in a source tree, or installed. */
#ifndef PRONY_CLI_PEER_FOLDER_H
#define PRONY_CLI_PEER_FOLDER_H

#include "base/arena.h"
#include "cli/commands.h"

/* The folder's path, in the arena, whether or not it exists. */
enum status cli_peers(const struct cli *cli, struct arena *arena, const char **out);

#endif
