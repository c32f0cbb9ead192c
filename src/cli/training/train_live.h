/* train_live.h: a training that is going on, told to a store, where the guide shows it. Nothing of
 * it stays there: epochs are no results of a bench. */
#ifndef PRONY_CLI_TRAINING_TRAIN_LIVE_H
#define PRONY_CLI_TRAINING_TRAIN_LIVE_H

#include "base/clock.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct curve;
struct store;
struct train_live {
    struct store *store; /* NULL: nobody is told */
    char started[CLOCK_STAMP];
    uint64_t told_ns;
};

/* `path` is the store's file; NULL: nobody is told. */
enum status train_live_open(struct train_live *live, const char *path);
/* Is it time to tell it again? Once a second is enough. */
bool train_live_due(const struct train_live *live);
/* `what` is under way: so many epochs are done, so long it will take; the curve so far. */
void train_live_tell(struct train_live *live, const char *what, int64_t done, int64_t total,
                     double left_s, const struct curve *curve);
void train_live_close(struct train_live *live); /* zeroed is fine */

#endif
