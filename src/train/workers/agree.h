/* agree.h: workers that would not compute the same thing refuse to begin. */
#ifndef PRONY_TRAIN_AGREE_H
#define PRONY_TRAIN_AGREE_H

#include "base/text.h"
#include "core/comm.h"
#include "core/params.h"

#include <stddef.h>

/* Adds one thing that is the same on all workers: agree_fact(&facts, "--batch", "%d", batch). */
void agree_fact(struct text *facts, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of what has a name, which may differ: a file's. */
void agree_hashed(struct text *facts, const char *what, uint64_t hash, const char *name);

/* Called by all workers, with facts in the same order. STATUS_INPUT, on all of them, when one
 * differs from worker 0: which, on which host, in what, both values. Without a comm nobody does. */
enum status agree(struct comm *comm, struct text *facts);

/* Of bytes, continued from `hash`, which is 0 at first. */
uint64_t agree_hash(uint64_t hash, const void *bytes, size_t length);
uint64_t agree_hash_text(uint64_t hash, const char *text); /* NULL is fine */
/* Names, shapes and values of all entries. */
uint64_t agree_hash_params(const struct params *params);

#endif
