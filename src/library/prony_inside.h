/* prony_inside.h: what is behind include/prony.h: a model, a plan for each batch size in use, the
 * streams of requests that are open, and the training on data that is going on. This folder wires
 * what train/ may not see, as cli/ does: which backends there are and where plugins lie. */
#ifndef PRONY_LIBRARY_PRONY_INSIDE_H
#define PRONY_LIBRARY_PRONY_INSIDE_H

#include "core/registry.h"
#include "prony.h"
#include "train/predictor.h"
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
    struct sharing sharing;  /* by which workers it is trained together, and how */
    /* For each number of rows in use, up to so many: what trains, a lap of one step, and what
     * predicts. Zeroed: the place is free. */
    struct lap laps[BATCHES_MOST];
    struct predictor predictors[BATCHES_MOST];
    int next_lap, next_predictor; /* the places that are taken, or taken over, next */
    struct predictor *quick;      /* the last one that predicted, if it needs no text; or NULL */
    struct prony_stream *streams; /* that are open; a list */
    float *inputs;                /* a copy of what was given, scaled; or NULL */
    float *levels;                /* model_make_levels; or NULL */
};

struct prony_stream {
    struct prony *network;     /* NULL: its plan is gone … */
    const char *ended;         /* … and why */
    struct prony_stream *next; /* of the same network */
    struct predictor predictor;
};

struct prony_data {
    struct dataset *dataset;
};

/* Fills the network's registry: the backend of that name, or without one the CPU's fastest. */
enum status inside_backend(struct prony *network, const char *name, const struct backend **out);

/* Releases all plans, so that the model can leave its device. Streams of requests end by it; `why`,
 * static text, is what their user is told. */
void inside_release(struct prony *network, const char *why);
/* prony_stream.c: … of which it is a part. */
void inside_end_streams(struct prony *network, const char *why);

/* Every function that reads or writes numbers as text stands between these two: a decimal point is
 * a point here, whatever the locale of the calling thread, which inside_leave gives back. */
locale_t inside_enter(void);
int inside_leave(locale_t theirs, enum status status); /* the status, as the library returns it */

#endif
