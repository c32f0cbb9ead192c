/* peer_folder.c: see peer_folder.h. */
#include "cli/peer_folder.h"

#include "base/file.h"

enum status cli_peers(const struct cli *cli, struct arena *arena, const char **out)
{
    NEED(*out = arena_format(arena, "%s/../peers", cli->folder));
    if (!file_exists(*out))
        NEED(*out = arena_format(arena, "%s/../share/prony/peers", cli->folder));
    return STATUS_OK;
}
