/* loss.h: losses as ops: the loss itself, the count of right answers, and where gradients start. */
#ifndef PRONY_NN_LOSS_H
#define PRONY_NN_LOSS_H

#include "nn/grad.h"
#include "nn/network.h"

struct loss_tensors {
    int32_t loss;        /* [1], role output */
    int32_t right;       /* [1], role output, or -1 */
    int32_t probability; /* cross-entropy: softmax of the logits; else -1 */
};

/* y as rows of its last dimension: what cross-entropy and softmax take. */
int32_t loss_rows(struct draft *draft, int32_t y);

/* target is real, of y's shape, or for cross-entropy i32, of y's without its last dimension, which
 * are the classes. classes: as compile_options. */
struct loss_tensors loss_emit(struct draft *draft, enum loss_kind loss, int32_t y, int32_t target,
                              int32_t classes);
/* The first op of the backward part: d(loss)/dy, multiplied by scale. Only cross-entropy looks at
 * tensors. */
struct grad_seed loss_emit_seed(struct draft *draft, enum loss_kind loss, int32_t y, int32_t target,
                                const struct loss_tensors *tensors, double scale);

#endif
