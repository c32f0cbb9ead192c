/* prove_network.h: is a network of ours faster with a change? Both configurations are kept ready in
 * this process and run in turns; the proof is kept in the store as those of programs are. */
#ifndef PRONY_CLI_PROGRAM_PROVE_NETWORK_H
#define PRONY_CLI_PROGRAM_PROVE_NETWORK_H

#include "cli/program/prove_program.h"
#include "record/point.h"

/* Appends "expected 1.6 × · measured 1.58 × ± 2 % · proved" to *out, and files the proof. The gain
 * is of samples a second. */
enum status prove_network(struct cli *cli, const struct point *before, const struct point *after,
                          const char *change, const struct prove_wish *wish,
                          const struct prove_promise *promise, struct text *out);

#endif
