/* unit_advice.h: is another unit of this machine better for what was asked for? Only what was
 * measured here counts: the user's own store has results of the same program on both. */
#ifndef PRONY_CLI_UNIT_ADVICE_H
#define PRONY_CLI_UNIT_ADVICE_H

#include "cli/commands.h"

/* How many times as many samples a second the GPU learns from as the CPU does, training so (of the
 * optimiser NULL: the network's); 0: not known, or there is no GPU now. */
double unit_advice(const struct cli *cli, const char *network, int64_t batch,
                   const char *optimiser);

#endif
