/* sharing.h: how several workers train one network together. */
#ifndef PRONY_TRAIN_SHARING_H
#define PRONY_TRAIN_SHARING_H

#include "core/comm.h"
#include "core/pass/pipeline_table.h"

enum parallelism {
    PARALLEL_DATA,     /* each takes its part of every batch */
    PARALLEL_MODEL,    /* each has a part of the weights, and computes with the whole batch */
    PARALLEL_PIPELINE, /* each has some of the layers; batches go through them in micro-batches */
    PARALLELISMS
};

struct sharing {
    struct comm *comm; /* to the workers; NULL: there is one */
    enum parallelism parallelism;
    bool sync_norm;  /* data: batch-norm sees the batch of all, not each its own samples */
    int32_t average; /* data: the mean of parameters every so many steps, in the place of that of
                        gradients in each; 0: gradients */
    int32_t micros;  /* pipeline: micro-batches of a step; 0: as usual */
    enum pipeline_schedule schedule; /* pipeline */
    struct traffic *traffic;         /* is added to by what is communicated; or NULL */
};

static inline int sharing_workers(const struct sharing *sharing)
{
    return sharing->comm ? sharing->comm->size : 1;
}

/* Are there other programs than those of one worker on the samples of one? */
static inline bool sharing_splits(const struct sharing *sharing)
{
    return sharing->parallelism == PARALLEL_PIPELINE ||
           (sharing->parallelism == PARALLEL_MODEL && sharing->comm);
}

const char *parallelism_name(enum parallelism parallelism);
/* From the texts of flags, each of which may be NULL; micros may be 0. */
enum status sharing_read(const char *parallelism, const char *schedule, int64_t micros,
                         enum parallelism usual, struct sharing *out);

#endif
