/* own.h: what would make a network of ours faster: results of it as it is, beside results with one
 * axis changed (rules.def, OWN). Pure: it is given records, and measures nothing. */
#ifndef PRONY_ADVISE_OWN_H
#define PRONY_ADVISE_OWN_H

#include "advise/advise.h"
#include "record/record.h"

/* One change, measured beside what it changes. */
struct own_trial {
    enum rule_key rule;
    const char *value;                   /* of the axis: "2" */
    const struct record *base, *changed; /* taken one after the other, or in turns */
    double gain;                         /* of samples a second */
    double spread;                       /* of the gain, as a share */
};

/* Fills in gain and spread. A change that could not run, or is wrong, gains nothing: 0. */
void own_weigh(struct own_trial *trial);

/* The best of the trials, where one is worth a word: it becomes the next finding of the advice,
 * measured on top of those before it. NULL: none is. */
enum status own_take(const struct own_trial *trials, size_t count, struct advice *advice,
                     const struct own_trial **taken);

/* What bounds it as it is now, and how far it is from that. */
enum status own_bound(const struct record *record, struct advice *advice);

#endif
