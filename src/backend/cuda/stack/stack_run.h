/* stack_run.h: the host's side of a whole program: the parameters of its kernel and its memory. */
#ifndef PRONY_BACKEND_CUDA_STACK_RUN_H
#define PRONY_BACKEND_CUDA_STACK_RUN_H

#include "backend/cuda/device/mailbox.h"
#include "backend/cuda/device/optimiser_rules.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/stack/stack_kernel.h"

enum { STACK_NET_BYTES = 4000 }; /* a kernel's parameters are at most 4 KB */

/* As kernels are given it; parameters and what an optimiser keeps of them lie in the instance. */
struct learnt_layer {
    int32_t in, out;
    enum activation function;
    float *w, *b; /* [in][out], [out] or NULL */
    float *states_w[2], *states_b[2];
};

struct stack {
    const struct kernel *kernel; /* the row that takes it */
    uint64_t bytes;              /* of device memory, beside the plan's own */
    char *memory;
    uint64_t version; /* of the parameters that are laid out anew there (stack_cores.h) */
    struct learnt_layer layer[DENSE_STACK_MOST];
    struct any_rule rule;                  /* of kind OP_COUNT: plain sgd, or nothing is trained */
    alignas(16) char net[STACK_NET_BYTES]; /* struct block_net, replicas_net or grid_net */
};

/* What a row for whole steps does: device memory that it takes, zeroed; its parameters; so many
 * steps. `bytes` is NULL where it takes none. */
struct stack_kernel {
    uint64_t (*bytes)(const struct dense_stack *dense, int32_t batch,
                      const struct stack_limits *limits);
    void (*prepare)(struct stack *stack, const struct dense_stack *dense,
                    const struct stack_step *step, const struct stack_limits *limits);
    cudaError_t (*launch)(struct stack *stack, int64_t steps, cudaStream_t stream);
    /* Or instead of these, of a kernel that finds its layers itself (KERNEL_FINDS): sizes; memory;
     * steps. */
    void (*choose)(struct plan *plan) = NULL;
    enum status (*begin)(struct plan *plan) = NULL;
    enum status (*run)(struct plan *plan, int64_t steps) = NULL;
};

/* stack_choice.cu; no device: of the one that the kernels were made on */
struct stack_limits stack_limits_of(const struct device *device);

/* stack_block.cu, whose parameters are those of one warp and of four, too */
void block_prepare(struct stack *stack, const struct dense_stack *dense,
                   const struct stack_step *step, const struct stack_limits *limits);

/* stack_grid.cu. Calls in place of steps: after grid_listen only grid_launch_from is right, for a
 * kernel that stays from this call on. */
bool grid_can_listen(const struct dense_stack *dense, int32_t batch);
void grid_listen(struct stack *stack, const struct mailbox *mail);
cudaError_t grid_launch_from(struct stack *stack, uint32_t call, cudaStream_t stream);

#endif
