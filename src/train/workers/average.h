/* average.h: data parallelism by parameters: workers learn apart for some steps, each from its part
 * of the batches, then take the mean of their parameters. It sends less than gradients after every
 * step do, and learns something else, unless a step is a plain one of sgd and the mean is taken
 * after each. */
#ifndef PRONY_TRAIN_WORKERS_AVERAGE_H
#define PRONY_TRAIN_WORKERS_AVERAGE_H

#include "core/comm.h"
#include "train/engine.h"
#include "train/recipe.h"

/* The mean over all workers of parameters, statistics and the optimiser's state; each worker's
 * count by its `share`, and shares add up to 1. The same bits on all of them. `params` are those of
 * the engine's instance. */
enum status average_workers(struct comm *comm, const struct engine *engine, struct params *params,
                            const struct recipe_step *step, double share);

#endif
