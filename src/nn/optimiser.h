/* optimiser.h: the update of every parameter that has a gradient, as ops. */
#ifndef PRONY_NN_OPTIMISER_H
#define PRONY_NN_OPTIMISER_H

#include "core/program.h"

struct update_options {
    const char *optimiser; /* "sgd" */
    const char *prefix;    /* of its own state: "" or "generator." */
    double rate;           /* multiplies the control block's rate; 1 in the usual case */
    double clip;           /* > 0: the norm of all gradients together is limited to it */
    bool accumulate;       /* gradients are cleared after use */
};

void update_emit(struct draft *draft, const struct update_options *options);

/* Names for messages and --help; NULL ends the list. */
const char *const *optimiser_names(void);

#endif
