/* train_flags.h: what `prony train` is asked for. */
#ifndef PRONY_CLI_TRAINING_TRAIN_FLAGS_H
#define PRONY_CLI_TRAINING_TRAIN_FLAGS_H

#include "cli/commands.h"
#include "prony.h"
#include "train/workers/sharing.h"

struct train_flags {
    const char *network, *data; /* positional */
    struct prony_options options;
    struct prony_course course;
    struct prony_data_options data_options;
    double memory;
    const char *until, *out, *curve, *store, *unit, *shape;
    bool numbers, classes, drop_rows, sync_norm, recompute;
    int32_t workers, copies, servers;
    const char *parallelism, *pipeline;
    int64_t micro_batches;
    int32_t average_every;
    struct sharing sharing; /* what these say; the comm is the worker's */
    size_t noted;           /* so much of the data's notes was told */
    bool shared_threads;    /* options.threads is each worker's share, not what was asked for */
    double worker_patience;
};

/* Refuses what contradicts itself, reads what is a text, and sets what follows from it. */
enum status train_flags_check(const struct cli *cli, struct train_flags *flags);

/* The command that goes on with what was saved: "prony train small iris --resume FILE --out FILE".
 */
void train_flags_resume(const struct train_flags *flags, struct text *out);
/* A worker that was lost took the others with it, but not what was saved: adds how to go on. */
enum status train_flags_lost(const struct train_flags *flags, enum status status);

#endif
