/* pipeline.h: a network that learns as a pipeline: each rank has a stage of its layers, and the
 * micro-batches of a step go through all of them. */
#ifndef PRONY_TRAIN_PIPELINE_H
#define PRONY_TRAIN_PIPELINE_H

#include "core/pass/pipeline_table.h"
#include "core/pass/split_data.h"
#include "core/pass/split_pipeline.h"
#include "nn/network.h"
#include "train/workers/rank_plan.h"

/* The training of micro-batches: options->batch is a step's, which `micros` divides. Gradients add
 * up over them before an update. Only feed_forward learns so. */
enum status pipeline_compile(const struct network *network, struct params *params,
                             const struct compile_options *options, int32_t micros,
                             struct program **out);

/* The usual number of micro-batches: the most that divide the batch, up to four for each stage. A
 * stage then waits for less than a fifth of a step. */
int32_t pipeline_usual_micros(int32_t stages, int64_t batch);

/* One stage at work: its plan has a slot for each micro-batch that it keeps at once. */
struct pipeline {
    struct rank_plan rank;
    int32_t micros;
    struct pipeline_turn *turns;
};

struct pipeline_setup {
    struct comm *comm; /* its ranks are the stages; NULL: there is one */
    /* To this stage of other copies of the network, and how they share out a batch; NULL: there are
       none. */
    struct comm *across;
    const struct data_share *share;
    int32_t micros;
    enum pipeline_schedule schedule;
    const struct split_ranks *as; /* as pipeline_options have it */
    struct params *given_up;      /* the whole, where this is to be rank_plan_open_alone; or NULL */
    struct traffic *traffic;      /* is added to; or NULL */
};

/* Takes this rank's stage of the program that pipeline_compile gave; see rank_plan_open. Losses are
 * stored once a micro-batch. */
enum status pipeline_open(struct pipeline *pipeline, struct engine *engine,
                          const struct program *program, const struct params *whole,
                          const struct pipeline_setup *setup);
/* Runs `steps` steps, each of all micro-batches and one update; all ranks call it. */
enum status pipeline_run(struct pipeline *pipeline, int64_t steps);
void pipeline_close(struct pipeline *pipeline); /* before its engine; zeroed is fine */

#endif
