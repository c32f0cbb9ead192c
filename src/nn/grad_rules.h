/* grad_rules.h: what a gradient rule is given and may call. A rule is a function grad_KIND in
 * nn/grads/ and a row in grads.def.
 *
 * A rule reads the gradients of its op's outputs (grad_flows) and gives those of its inputs
 * (grad_give), writing ops that compute them. It writes the gradients of weights first, then the
 * one that flows on: pass/fuse counts on it. */
#ifndef PRONY_NN_GRAD_RULES_H
#define PRONY_NN_GRAD_RULES_H

#include "nn/grad.h"

struct grad {
    struct draft *draft;
    const struct grad_options *options;
    int32_t tensors; /* of the forward program */
    bool *needed;    /* per forward tensor: does a wanted parameter lead to it? */
    int32_t *of;     /* per forward tensor: its gradient so far, or -1 */
    bool *written;   /* per forward tensor that is a parameter: its gradient was written once */
};

/* `op` is a copy that stays valid while ops are appended. */
typedef void grad_rule(struct grad *grad, const struct op *op);

/* An operand of the op being differentiated, by its name: AT_OP_NAME (core/operands.h). */
int32_t grad_operand(const struct grad *grad, const struct op *op, int32_t at);

/* Does this input need a gradient? False for -1. */
bool grad_needs(const struct grad *grad, int32_t tensor);
/* The gradient of an output, in its shape, or -1 when nothing flows back from it. */
int32_t grad_flows(struct grad *grad, int32_t tensor);
/* A new tensor for the gradient of `tensor`. */
int32_t grad_fresh(struct grad *grad, int32_t tensor);
/* `gradient` is (a part of) the gradient of `tensor`; parts add up. A parameter may be given one
 * too: it goes into its gradient tensor. */
void grad_give(struct grad *grad, int32_t tensor, int32_t gradient);
/* For ops that write a parameter's gradient themselves: where it goes; *accumulate says whether to
 * add to what is there. One that is not wanted (the other side of a GAN) goes where nobody looks,
 * and leaves *accumulate as it was: what has a gradient tensor is updated. */
int32_t grad_weight(struct grad *grad, int32_t param, bool *accumulate);
/* The same for what may be a parameter, also seen in another shape, or not: then the place is a new
 * tensor. grad_give follows in either case. */
int32_t grad_place(struct grad *grad, int32_t tensor, bool *accumulate);

/* A bias: its gradient is the sum of dy [n, o] over the rows. Nothing when b is -1 or not needed.
 */
void grad_bias(struct grad *grad, int32_t dy, int32_t b);

#endif
