/* unit_choice.c: --unit, as commands.h has it. */
#include "cli/commands.h"

#include <string.h>

enum status cli_unit(const struct cli *cli, const char **backend)
{
    const struct backend *found;
    if (!cli->unit)
        return STATUS_OK;
    if (!*backend) {
        TRY(registry_first(cli->registry, cli->unit, &found));
        *backend = found->name;
        return STATUS_OK;
    }
    TRY(registry_find(cli->registry, *backend, &found));
    if (strcmp(found->unit, cli->unit) != 0)
        FAIL(STATUS_INPUT, "--unit: found %s, but the backend %s computes on %s", cli->unit,
             *backend, found->unit);
    return STATUS_OK;
}
