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
    const struct fp8_copy *fp8;    /* [entry]: the instance's copies in fp8 (fp8.h); or NULL */
    struct loss_scale *loss_scale; /* device: how the loss is scaled; NULL: it is not */
};

static inline bool call_is_16bit(const struct call *call, int32_t operand)
{
    const int32_t tensor = call->program->operands[call->op->first + operand];
    return tensor >= 0 && precision_is_16bit(call->places[tensor].type);
}

static inline struct cells call_cells(const struct call *call, int32_t operand)
{
    const int32_t tensor = call->program->operands[call->op->first + operand];
    const struct cells cells = {call->operands[operand],
                                tensor < 0 ? PRECISION_FP32 : call->places[tensor].type};
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

/* Copies numbers from one width to another. */
void mixed_cast(struct queue *queue, int64_t count, struct cells from, struct cells to);

void mixed_activate(struct queue *queue, int64_t count, enum activation function, float alpha,
                    struct cells x, struct cells y);

/* Rounds the parameters that the op has written. */
void mixed_refresh(const struct call *call, struct queue *queue);

#endif
