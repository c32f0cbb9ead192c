/* layer_own.h: what the layers of a network take on one of our backends. */
#ifndef PRONY_BENCH_LAYERS_LAYER_OWN_H
#define PRONY_BENCH_LAYERS_LAYER_OWN_H

#include "bench/job/job_network.h"
#include "bench/layers/layers.h"

/* Watches the job, a network's that was prepared, in a plan of its own, and adds a row for each op.
 * An op that fusion made covers the layers of all that it stands for. */
enum status layers_own(struct layers *layers, struct layer_side *side, const struct task *task,
                       struct job *job);

#endif
