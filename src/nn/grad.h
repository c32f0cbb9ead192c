/* grad.h: reverse-mode differentiation, as a writer of ops. Each op kind has one rule. */
#ifndef PRONY_NN_GRAD_H
#define PRONY_NN_GRAD_H

#include "core/program.h"

/* Where the gradient starts: d(loss)/d(tensor) is in `grad`, written by an op of the draft. */
struct grad_seed {
    int32_t tensor, grad;
};

/* Appends the backward ops of all ops drafted so far (or of those from `first_op` on). They write
 * the gradient tensors (draft_grad) of the parameters for which wanted(context, entry) holds.
 * wanted NULL: all. `accumulate`: gradients add to what is there, and the update clears. */
struct grad_options {
    const struct grad_seed *seeds;
    int32_t seed_count;
    int32_t first_op;
    bool (*wanted)(void *context, int32_t entry);
    void *context;
    bool accumulate;
};

void grad_emit(struct draft *draft, const struct grad_options *options);

#endif
