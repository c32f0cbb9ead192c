/* dense_skinny.cu: dense layers of at most 32 samples (skinny.h), up, down and update, in 16
 * bits and in fp32. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/skinny.h"

/* The operand of the product with weights that is no weight: of dense_sgd the gradient. */
static int32_t samples_of(const struct op *op)
{
    return op->kind == OP_dense_sgd ? 1 : 0;
}

static const struct tensor *weights_of(const struct program *program, const struct op *op)
{
    return &program->tensors[op_input(program, op, op->kind == OP_dense_sgd ? 2 : 1)];
}

static struct skinny skinny_of(const struct program *program, const struct op *op)
{
    const int64_t *w = weights_of(program, op)->shape.dim;
    const bool transposed = op->kind != OP_dense;
    return {program->tensors[op_input(program, op, 0)].shape.dim[0], w[transposed ? 0 : 1],
            w[transposed ? 1 : 0], transposed};
}

/* Room for what is not kept in 16 bits. */
uint64_t workspace_skinny_16bit(const struct program *program, const struct op *op)
{
    return program->tensors[op_input(program, op, samples_of(op))].bytes / 2;
}

static const void *samples_rounded(const struct call *call, struct queue *queue)
{
    const int32_t operand = samples_of(call->op);
    const struct cells kept = call_cells(call, operand);
    const struct cells rounded = {call->workspace, call->mixed->type};
    if (precision_is_16bit(kept.type))
        return kept.data;
    mixed_cast(queue, call_count(call, operand), kept, rounded);
    return rounded.data;
}

/* y = f(x·W + bias), or with W transposed. */
static void multiply(const struct call *call, struct queue *queue, int32_t weights,
                     const float *bias, enum activation function, int32_t y)
{
    const struct skinny skinny = skinny_of(call->program, call->op);
    if (call->mixed)
        skinny_multiply(queue, &skinny, mixed_copy(call->mixed, call_tensor(call, weights)),
                        samples_rounded(call, queue), bias, function, call_cells(call, y));
    else
        skinny_multiply_reals(queue, &skinny, call_reals(call, weights),
                              call_reals(call, samples_of(call->op)), bias, function,
                              call_reals(call, y));
}

/* dense and dense_t, whose attributes and operands are alike */
void launch_layer_skinny(const struct call *call, struct queue *queue)
{
    multiply(call, queue, 1, call_reals(call, AT_dense_b),
             (enum activation)call->op->attr.dense.activation, 3);
}

static struct cells copy_of(const struct call *call, int32_t operand)
{
    return call->mixed && call_has(call, operand)
               ? mixed_copy(call->mixed, call_tensor(call, operand))
               : cells{};
}

/* dx comes first: it is made with the weights as they were. */
void launch_dense_sgd_skinny(const struct call *call, struct queue *queue)
{
    if (call_has(call, AT_dense_sgd_dx))
        multiply(call, queue, 2, NULL, ACTIVATION_NONE, 7);
    const struct skinny_update update = {call_dim(call, AT_dense_sgd_x, 0),
                                         call_dim(call, AT_dense_sgd_w, 0),
                                         call_dim(call, AT_dense_sgd_w, 1),
                                         call_cells(call, 0),
                                         call_cells(call, 1),
                                         call_reals(call, AT_dense_sgd_rate),
                                         call_reals(call, AT_dense_sgd_w_out),
                                         call_reals(call, AT_dense_sgd_b_out),
                                         copy_of(call, 5),
                                         copy_of(call, 6)};
    cudaStream_t stream = queue_fork(queue);
    skinny_apply(queue, &update);
    queue_back(queue, stream);
}

bool takes_skinny(const struct choice *choice)
{
    const struct device *device = choice->device;
    const bool is_16bit = precision_is_16bit(device->precision);
    const struct skinny skinny = skinny_of(choice->program, choice->op);
    if (!dense_is_worth(choice) || device->properties.major < 9 ||
        (is_16bit &&
         weights_of(choice->program, choice->op)->role != ROLE_PARAM)) /* which alone have copies */
        return false;
    /* In fp32 it was measured on Hopper; some that are newer have too little shared memory. */
    if (!is_16bit && (skinny.n < SKINNY_F32_LEAST || device->properties.major != 9))
        return false;
    return skinny_takes(&skinny);
}
