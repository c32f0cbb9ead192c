/* simulate.h: how long a step would take on a platform with a number of workers.
 *
 * Each worker is a rank that SimGrid runs in simulated time. It goes through the program that the
 * split gives it. Where the program computes, time passes; where it communicates, core/comm does,
 * over messages that have a size and no bytes. What a step computes is not simulated but told: the
 * time of one worker without others. */
#ifndef PRONY_SIMULATE_SIMULATE_H
#define PRONY_SIMULATE_SIMULATE_H

#include "core/pass/pipeline_table.h"
#include "core/program.h"
#include "nn/network.h"
#include "simulate/platform.h"
#include "train/workers/sharing.h"

enum { SIMULATE_WORKERS_MOST = 20000 };

struct simulate_request {
    const struct platform *platform;
    const struct network *network;
    const char *folder;    /* the executable's, beside which the plugin is */
    const char *optimiser; /* NULL: the network's */
    enum parallelism parallelism;
    enum pipeline_schedule schedule;
    int32_t workers;
    int32_t batch;        /* of all workers */
    int32_t micros;       /* of a pipeline; 0: as many as are usual */
    bool on_gpus;         /* which compute on while the CPU copies messages inside a server */
    int32_t bucket_bytes; /* of gradients that are summed at once; 0: as usual */
    /* What a step of one worker takes for that many samples, in seconds. */
    double (*seconds)(const void *context, int32_t batch);
    const void *context;
    double shares[PART_COUNT]; /* of that time; all 0: by FLOP and bytes */
};

struct simulate_result {
    double step_s;       /* until the slowest worker has updated its parameters */
    double compute_s;    /* a worker's mean */
    double exposed_s;    /* … waits for others: messages under way, or a pipeline's bubble */
    double hidden_s;     /* … sums while it computes */
    double input_s;      /* … waits for its samples when all else is done */
    double sent_bytes;   /* … sends */
    double one_s;        /* a step of the whole batch on one worker, as `seconds` has it */
    int32_t micros;      /* of a pipeline */
    double resources_s;  /* what simulating took: real seconds … */
    uint64_t peak_bytes; /* … and memory */
};

/* STATUS_UNSUPPORTED with what to install where SimGrid's plugin is not there; STATUS_INPUT where
 * the work cannot be shared out so, or the platform has no room. The process that simulates is a
 * child: SimGrid runs once in one. */
enum status simulate(const struct simulate_request *request, struct simulate_result *out);

#endif
