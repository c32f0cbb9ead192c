/* answer_trials.h: what `prony answer NETWORK` is asked, what it measures, what it looks at. */
#ifndef PRONY_CLI_ANSWER_TRIALS_H
#define PRONY_CLI_ANSWER_TRIALS_H

#include "cli/commands.h"
#include "finding/finding.h"

struct answer_options {
    const char *network, *store, *shape, *format;
    const char *phase; /* NULL: training, or inference of an ONNX file */
    const char *unit;  /* or NULL: any */
    double minutes;
};

/* Measures what the store lacks, within about options->minutes. `untried`: the frameworks that
 * there was no time for, as a sentence; "": none. */
enum status answer_measure(const struct cli *cli, const struct answer_options *options,
                           struct text *untried);

/* What there is to know of the network on this machine. */
enum status answer_look(struct store *store, const struct answer_options *options,
                        struct arena *arena, struct finding_about *about);

#endif
