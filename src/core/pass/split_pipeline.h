/* split_pipeline.h: a program of training → the programs of the stages of a pipeline. */
#ifndef PRONY_CORE_PASS_SPLIT_PIPELINE_H
#define PRONY_CORE_PASS_SPLIT_PIPELINE_H

#include "core/pass/split_ranks.h"

struct pipeline_options {
    int32_t stages;
    int32_t micros;               /* runs of forward and backward to an update; 0: 1 */
    int32_t own;                  /* this stage's parameters have values; -1: none have */
    const struct split_ranks *as; /* the layers are where that split of the same network has them,
                                     as for another batch; NULL: by cost */
};

/* Cuts the layers into `stages` ranges that follow each other, such that the slowest is as fast as
 * can be by split_cost: ranks of unlike machines, and who looks at it before, find the same. A
 * stage begins with a layer that learns. Its program has its own layers' ops. It receives tensors
 * of other stages that it reads, and sends each tensor that others read as soon as it is written.
 * Activations go to later stages, however far (skip connections), gradients to earlier ones. It
 * loads the data that it needs itself. Ops are the same and in the same order as in `program`: a
 * step gives the same bits.
 *
 * `program` is not fused. A step of it is one forward and backward: micro-batches are runs of these
 * parts before one update, so that it is compiled with as many to accumulate (compile_options). */
enum status split_pipeline(const struct program *program, const struct params *params,
                           const struct pipeline_options *options, struct split_ranks *out);

/* FLOP at 16 a byte: what an op takes, whatever the unit. */
double split_cost(const struct program *program, const struct op *op);

#endif
