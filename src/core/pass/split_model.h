/* split_model.h: model parallelism: a program → the programs of ranks that share out its weights.
 */
#ifndef PRONY_CORE_PASS_SPLIT_MODEL_H
#define PRONY_CORE_PASS_SPLIT_MODEL_H

#include "core/pass/split_ranks.h"

struct model_options {
    int32_t ranks;
    int32_t own; /* this rank's parameters have values; -1: none have */
};

/* Pairs of weights are shared out. The first is split by its outputs (columns of a dense layer,
 * output channels of a convolution), so that ranks have some features each. The second is split by
 * its inputs (rows, input channels), so that they have partial sums, which an all_reduce adds up.
 * Between the two stands what computes feature by feature: activations, batch-norm, pooling, the
 * heads of attention. Backward the first has the sum. Shares are uneven where the ranks do not
 * divide the features. What cannot be shared out so is computed by all ranks alike.
 *
 * `program` is not fused. Refused: fewer than two ranks, clipping by the norm of all gradients. */
enum status split_model(const struct program *program, const struct params *params,
                        const struct model_options *options, struct split_ranks *out);

#endif
