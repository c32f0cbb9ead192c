/* stack_find.h: recognises the programs that a kernel can run whole: a stack of dense layers, for
 * inference or trained by an optimiser. fuse looks once and keeps the layers in the program
 * (program->stack). Which sizes, activations and optimisers a kernel takes is its backend's rule.
 */
#ifndef PRONY_CORE_PASS_STACK_FIND_H
#define PRONY_CORE_PASS_STACK_FIND_H

#include "core/program.h"

enum { DENSE_STACK_MOST = 16 };

struct dense_stack_layer {
    int32_t dense;    /* the op: y = f(x·w + b) */
    int32_t update;   /* its dense_sgd, or the optimiser's op for w; -1 in inference */
    int32_t update_b; /* the optimiser's op for b; -1: the same, or there is no b */
    int32_t in, out;
    int32_t w, b; /* tensors; b -1: none */
    enum activation activation;
};

/* Places in program->ops; -1: there is none. Of the losses each is followed by its _grad. */
struct dense_stack {
    int32_t layers;
    struct dense_stack_layer layer[DENSE_STACK_MOST];
    int32_t rows, load_x, load_target, schedule, tick;
    int32_t loss, loss_grad, right;
    int32_t store_y, store_loss, store_right;
    bool probabilities;  /* store_y stores the softmax of the outputs, not themselves */
    bool counts_sigmoid; /* right answers are counted on the sigmoid of the output */
    /* The optimiser's first op; those of all parameters differ in nothing but their operands. -1:
     * there are none, what is trained is trained by dense_sgd. */
    int32_t optimiser;
    int32_t states; /* numbers that it keeps of each parameter's: its op's outputs but w and g */
};

/* NULL when `program`, already fused, is such a stack and nothing else; else what is in the way. */
const char *stack_find(const struct program *program, struct dense_stack *out);

#endif
