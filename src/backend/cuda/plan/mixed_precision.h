/* mixed_precision.h: numbers of 16 bits on the device, for the precisions bf16 and fp16.
 *
 * Parameters stay in fp32; the instance has a second copy of them in 16 bits, at half the offset,
 * which products read and which is written anew wherever a parameter is. Activations are kept in 16
 * bits where everything that touches them can: then a product reads and writes half the bytes.
 * Everything else (losses, norms, the sums inside a product, gradients of parameters, optimisers)
 * is fp32; what a product needs of it in 16 bits is rounded in its workspace. */
#ifndef PRONY_BACKEND_CUDA_MIXED_PRECISION_H
#define PRONY_BACKEND_CUDA_MIXED_PRECISION_H

#include "backend/cuda/device/launch.h"
#include "backend/cuda/ops/loss_scale.h"

/* What a plan knows about it. */
struct mixed {
    enum precision type;
    bool *tensors; /* [tensor]: is it kept in 16 bits? */
    char *params;  /* device: the instance's copy of its parameters; NULL in a dry plan */
    struct loss_scale *loss_scale; /* device: how the loss is scaled; NULL: it is not */
};

static inline bool call_is_16bit(const struct call *call, int32_t operand)
{
    const int32_t tensor = call->program->operands[call->op->first + operand];
    return call->mixed && tensor >= 0 && call->mixed->tensors[tensor];
}

static inline struct cells call_cells(const struct call *call, int32_t operand)
{
    const struct cells cells = {call->operands[operand],
                                call_is_16bit(call, operand) ? call->mixed->type : PRECISION_FP32};
    return cells;
}

/* The 16-bit copy of a parameter of the instance. */
static inline struct cells mixed_copy(const struct mixed *mixed, const struct tensor *param)
{
    const struct cells cells = {mixed->params ? mixed->params + param->offset / 2 : NULL,
                                mixed->type};
    return cells;
}

static inline const struct loss_scale *call_loss_scale(const struct call *call)
{
    return call->mixed ? call->mixed->loss_scale : NULL;
}

static inline unsigned blocks_of_eights(int64_t count)
{
    return blocks_striding((count + CELLS - 1) / CELLS);
}

/* Is an operand of the op in 16 bits? */
static inline bool mixed_touches(const struct mixed *mixed, const struct program *program,
                                 const struct op *op)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        const int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && mixed->tensors[tensor])
            return true;
    }
    return false;
}

/* The kernel for an op some of whose operands are in 16 bits; NULL: there is none. */
const struct kernel *mixed_kernel(const struct op *op);

/* Says which tensors of a program are kept in 16 bits; `is_product`: this op's kernel takes them.
 */
void mixed_choose(const struct program *program, const bool *is_product, bool *tensors);

/* Copies numbers from one width to another. */
void mixed_cast(struct queue *queue, int64_t count, struct cells from, struct cells to);

void mixed_activate(struct queue *queue, int64_t count, enum activation function, float alpha,
                    struct cells x, struct cells y);

/* Rounds the parameters that the op has written. */
void mixed_refresh(const struct call *call, struct queue *queue);

/* Launches an op, and what 16 bits need after it: parameters rounded, a loss's gradient scaled. */
void mixed_launch(const struct kernel *kernel, const struct call *call, struct queue *queue);

#endif
