/* prony_inside.h: what is behind include/prony.h: a model, a plan for each batch size in use, and
 * the training on data that is going on. This folder wires what train/ may not see, as cli/ does:
 * which backends there are and where plugins lie. */
#ifndef PRONY_LIBRARY_PRONY_INSIDE_H
#define PRONY_LIBRARY_PRONY_INSIDE_H

#include "core/registry.h"
#include "prony.h"
#include "train/train.h"

#include <locale.h>

enum { BATCHES_MOST = 8 };

struct prony {
    struct registry registry;
    struct network *network;
    struct model model;
    int64_t outputs;         /* numbers of a sample */
    bool learns;             /* what training needs was declared */
    struct trainer *trainer; /* the training on data, or NULL */
    struct batch {           /* a lap of one step, over the caller's rows */
        enum program_use use;
        struct lap lap; /* zeroed: the place is free */
    } batches[BATCHES_MOST];
    int next;      /* the place that is taken, or taken over, next */
    float *inputs; /* a copy of what was given, scaled; or NULL */
    float *levels; /* model_make_levels; or NULL */
};

struct prony_data {
    struct dataset *dataset;
};

/* Releases all plans, so that the model can leave its device. */
void inside_release(struct prony *network);

/* Every function that reads or writes numbers as text stands between these two: a decimal point is
 * a point here, whatever the locale of the calling thread, which inside_leave gives back. */
locale_t inside_enter(void);
int inside_leave(locale_t theirs, enum status status); /* the status, as the library returns it */

#endif
