/* agents.c: see agents.h. */
#include "cli/program/agents.h"

#include "base/file.h"

enum status agent_find(const struct cli *cli, const char *name, struct arena *arena,
                       const char **out)
{
    NEED(*out = arena_format(arena, "%s/%s", cli->folder, name));
    if (file_exists(*out))
        return STATUS_OK;
    NEED(*out = arena_format(arena, "%s/../lib/prony/%s", cli->folder, name));
    if (!file_exists(*out))
        *out = NULL;
    return STATUS_OK;
}
