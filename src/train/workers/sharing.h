/* sharing.h: how several workers train one network together. */
#ifndef PRONY_TRAIN_SHARING_H
#define PRONY_TRAIN_SHARING_H

#include "base/text.h"
#include "core/comm.h"
#include "core/pass/pipeline_table.h"

enum parallelism {
    PARALLEL_DATA,     /* each takes its part of every batch */
    PARALLEL_MODEL,    /* each has a part of the weights, and computes with the whole batch */
    PARALLEL_PIPELINE, /* each has some of the layers; batches go through them in micro-batches */
    PARALLEL_SERVER, /* as data, but some of them serve: they have the parameters and update them */
    PARALLEL_ASYNC_SERVER, /* … by every worker's gradient alone, as it comes */
    PARALLELISMS
};

struct sharing {
    struct comm *comm; /* to the workers; NULL: there is one */
    enum parallelism parallelism;
    bool copied;     /* model, pipeline: there are several copies of the network, each shared out so
                        by some workers that follow each other; copies take parts of every batch */
    int32_t copies;  /* … so many; 0: as many as may be */
    bool sync_norm;  /* data: batch-norm sees the batch of all, not each its own samples */
    int32_t average; /* data: the mean of parameters every so many steps, in the place of that of
                        gradients in each; 0: gradients */
    int32_t micros;  /* pipeline: micro-batches of a step; 0: as usual */
    int32_t servers; /* of the workers, the last so many serve */
    enum pipeline_schedule schedule; /* pipeline */
    struct traffic *traffic;         /* is added to by what is communicated; or NULL */
};

static inline int sharing_workers(const struct sharing *sharing)
{
    return sharing->comm ? sharing->comm->size : 1;
}

static inline bool sharing_serves(const struct sharing *sharing)
{
    return sharing->comm && (sharing->parallelism == PARALLEL_SERVER ||
                             sharing->parallelism == PARALLEL_ASYNC_SERVER);
}

/* How many workers, or groups of them that share a copy of the network, take a part of every batch;
 * workers that serve take none, and are the last ones. */
int sharing_samples(const struct sharing *sharing);

/* How many groups of workers share a copy of the network; how many workers these are each; and to
 * which of them this one belongs. */
int sharing_copies(const struct sharing *sharing);
int sharing_parts(const struct sharing *sharing);
int sharing_copy(const struct sharing *sharing);
/* The same of so many workers: 0 where they cannot make up several copies. */
int sharing_copies_of(const struct sharing *sharing, int workers);
/* Can so many workers make up such copies, with the same part of a batch each? `name` stands before
 * the message. */
enum status sharing_check(const struct sharing *sharing, int workers, const char *name,
                          int64_t batch);
/* Are there workers beside the servers? */
enum status sharing_check_servers(const struct sharing *sharing, int workers);

/* Are there other programs than those of one worker on the samples of one? */
static inline bool sharing_splits(const struct sharing *sharing)
{
    return sharing->parallelism == PARALLEL_PIPELINE || sharing_serves(sharing) ||
           (sharing->parallelism == PARALLEL_MODEL && sharing->comm);
}

/* "data-pipeline" */
const char *sharing_name(const struct sharing *sharing);
/* "2 copies of the network, pipeline of 8 micro-batches, 1f1b" */
void sharing_tell(const struct sharing *sharing, int micros, struct text *out);

/* What flags say: NULL and 0 are what is usual. */
struct sharing_flags {
    const char *parallelism, *schedule;
    int64_t micros, copies, servers;
};
enum status sharing_read(const struct sharing_flags *flags, enum parallelism usual,
                         struct sharing *out);

#endif
