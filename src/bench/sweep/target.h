/* target.h: training to a target: how long until held-out data is predicted well enough, over
 * several seeds, because one is an anecdote. */
#ifndef PRONY_BENCH_SWEEP_TARGET_H
#define PRONY_BENCH_SWEEP_TARGET_H

#include "core/backend.h"
#include "nn/network.h"

#include <stdbool.h>

struct target_options {
    const struct network *network;
    const char *dataset, *optimiser;
    const struct backend *backend;
    struct device_options device;
    int32_t batch;
    double accuracy, loss; /* of the held-out rows; the one that is not 0 is the target */
    uint64_t seed;         /* the first; each of the others is one more */
    int64_t seeds;
    uint64_t limit_ns;     /* for one seed */
    bool (*stopped)(void); /* asked between epochs; NULL: never */
};

/* What one seed gave. */
struct target_run {
    bool reached;
    double ns; /* training and looking at what is held out, until it ended */
    int64_t epochs, steps, samples;
    double accuracy, loss; /* of the held-out rows at the end; accuracy NaN where there is none */
};

/* "accuracy=0.95" or "loss=0.1". */
enum status target_parse(const char *text, double *accuracy, double *loss);

/* Fills runs[seeds]. A fifth of the rows is held out. */
enum status target_run_all(const struct target_options *options, struct target_run *runs);

#endif
