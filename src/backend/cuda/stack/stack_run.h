/* stack_run.h: the host's side of a whole program: the parameters of its kernel and its memory. */
#ifndef PRONY_BACKEND_CUDA_STACK_RUN_H
#define PRONY_BACKEND_CUDA_STACK_RUN_H

#include "backend/cuda/device/mailbox.h"
#include "backend/cuda/device/optimiser_rules.h"
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
    enum stack_kind kind;
    const char *name, *why; /* for `explain` */
    uint64_t bytes;         /* of device memory, beside the plan's own */
    char *memory;
    struct learnt_layer layer[DENSE_STACK_MOST];
    struct any_rule rule;                  /* of kind OP_COUNT: plain sgd, or nothing is trained */
    alignas(16) char net[STACK_NET_BYTES]; /* struct block_net, replicas_net or grid_net */
};

/* stack_block.cu */
void block_prepare(struct stack *stack, const struct dense_stack *dense,
                   const struct stack_step *step);
cudaError_t block_launch(struct stack *stack, int64_t steps, cudaStream_t stream);

/* stack_warp.cu, after block_prepare */
cudaError_t warp_launch(struct stack *stack, int64_t steps, cudaStream_t stream);

/* stack_four_warps.cu, likewise */
cudaError_t four_warps_launch(struct stack *stack, int64_t steps, cudaStream_t stream);

/* stack_replicas.cu; memory is zeroed */
uint64_t replicas_bytes(const struct replicas_layout *layout);
void replicas_prepare(struct stack *stack, const struct stack_step *step,
                      const struct replicas_layout *layout);
cudaError_t replicas_launch(struct stack *stack, int64_t steps, cudaStream_t stream);

/* stack_grid.cu; memory is zeroed */
uint64_t grid_bytes(const struct grid_layout *layout);
void grid_prepare(struct stack *stack, const struct dense_stack *dense,
                  const struct stack_step *step, const struct grid_layout *layout);
cudaError_t grid_launch(struct stack *stack, int64_t steps, cudaStream_t stream);
/* Calls in place of steps: after grid_listen only grid_launch_from is right, for a kernel that
 * stays from this call on. */
bool grid_can_listen(const struct dense_stack *dense, int32_t batch);
void grid_listen(struct stack *stack, const struct mailbox *mail);
cudaError_t grid_launch_from(struct stack *stack, uint32_t call, cudaStream_t stream);

#endif
