/* advise_network.h: `prony advise NETWORK` makes a network of ours faster. Each axis that a user
 * can change is measured with other values, and the best change is kept for the next round. */
#ifndef PRONY_CLI_PROGRAM_ADVISE_NETWORK_H
#define PRONY_CLI_PROGRAM_ADVISE_NETWORK_H

#include "cli/commands.h"

struct network_flags {
    const char *network;
    const char *phase, *backend, *unit, *precision, *data, *ingestion, *store; /* or NULL */
    int64_t batch, threads, rounds;
    double seconds; /* for each configuration */
    bool no_fusion, prove, json;
};

enum status advise_network(struct cli *cli, const struct network_flags *flags);

#endif
