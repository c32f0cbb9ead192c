/* agents.h: the shared objects that look into programs: beside the executable, or where it is
 * installed. */
#ifndef PRONY_CLI_PROGRAM_AGENTS_H
#define PRONY_CLI_PROGRAM_AGENTS_H

#include "cli/commands.h"

#define AGENT_OF_CPU "libprony_agent.so"
#define AGENT_OF_GPU "libprony_agent_cuda.so"

/* The path of one; *out NULL: it is not there. */
enum status agent_find(const struct cli *cli, const char *name, struct arena *arena,
                       const char **out);

#endif
