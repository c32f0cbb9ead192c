/* program_run.h: `prony profile -- COMMAND` and `prony advise -- COMMAND`: run a program of the
 * user's unwatched, then watched, and tell where its time goes, or what would make it faster. */
#ifndef PRONY_CLI_PROGRAM_PROGRAM_RUN_H
#define PRONY_CLI_PROGRAM_PROGRAM_RUN_H

#include "cli/commands.h"

struct program_flags {
    const char *trace, *callgrind, *folded, *out; /* files, or NULL */
    double rate, seconds;                         /* seconds 0: to its end */
    bool once, json, keep;
    /* Of advise. */
    bool prove;
    const char *against, *lever, *store; /* or NULL */
    int64_t rounds;
};

enum status profile_program(struct cli *cli, const struct program_flags *flags);
enum status advise_program(struct cli *cli, const struct program_flags *flags);

#endif
