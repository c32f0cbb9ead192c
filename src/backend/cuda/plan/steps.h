/* steps.h: a plan is a list of steps; a step is a kernel (kernel_row.h) and the ops that it covers.
 *
 * First each op is taken by itself. From these rows two passes choose the type and the layout of
 * tensors: pass_precision.cu, pass_nhwc.cu. Then the list is asked again, now with rows over
 * several ops. Last, the side stream gets what nothing waits for (side_stream.cu). */
#ifndef PRONY_BACKEND_CUDA_STEPS_H
#define PRONY_BACKEND_CUDA_STEPS_H

#include "backend/cuda/host/cuda_device.h"

struct step {
    const struct kernel *kernel;
    int32_t op;          /* the op that it is called with; in an observed plan its only one */
    int32_t first, last; /* it covers the ops from … to whose step it is */
    int32_t launches;
};

/* Chooses the steps of a plan, and how its tensors are kept. */
enum status steps_choose(struct plan *plan);

/* The step that does this op. */
static inline struct step *plan_step(const struct plan *plan, int32_t op)
{
    return &plan->steps[plan->step_of[op]];
}

/* Bytes of workspace that it takes. */
uint64_t step_workspace(const struct plan *plan, const struct step *step);

/* Launches it, and what 16 bits need after it: parameters rounded, a loss's gradient scaled. */
void step_launch(const struct step *step, const struct call *call, struct queue *queue);

/* The passes: which tensors are kept in 16 bits, which in NHWC order. */
enum status pass_precision(struct plan *plan, const struct choice *choice);
enum status pass_nhwc(struct plan *plan, const struct choice *choice);

#endif
