/* unit_choice.c: --unit, as commands.h has it. */
#include "cli/commands.h"

#include <string.h>

enum status cli_unit(const struct cli *cli, const char *unit, const char **backend)
{
    const struct backend *found;
    if (!unit)
        return STATUS_OK;
    if (!*backend) {
        TRY(registry_first(cli->registry, unit, &found));
        *backend = found->name;
        return STATUS_OK;
    }
    TRY(registry_find(cli->registry, *backend, &found));
    if (strcmp(found->unit, unit) != 0)
        FAIL(STATUS_INPUT, "--unit: found %s, but the backend %s computes on %s", unit, *backend,
             found->unit);
    return STATUS_OK;
}
