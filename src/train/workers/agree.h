/* agree.h: workers that would not compute the same thing refuse to begin. */
#ifndef PRONY_TRAIN_AGREE_H
#define PRONY_TRAIN_AGREE_H

#include "core/comm.h"
#include "core/params.h"

#include <stddef.h>

/* One thing that is the same on all workers. */
struct agreement {
    const char *what; /* for the message: "data" */
    uint64_t hash;
};

enum { AGREEMENTS_MOST = 8 };

/* Called by all workers, with the same things in the same order. STATUS_INPUT, on all of them, when
 * one differs from worker 0: which, on which host, in what. Without a comm nobody does. */
enum status agree(struct comm *comm, const struct agreement *things, int count);

/* Of bytes, continued from `hash`, which is 0 at first. */
uint64_t agree_hash(uint64_t hash, const void *bytes, size_t length);
uint64_t agree_hash_text(uint64_t hash, const char *text); /* NULL is fine */
/* Names, shapes and values of all entries. */
uint64_t agree_hash_params(const struct params *params);

#endif
