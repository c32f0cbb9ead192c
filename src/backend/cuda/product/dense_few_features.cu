/* dense_few_features.cu: layers of few outputs (few_outputs.h) or few inputs (few_inputs.h), which
 * have kernels of their own in fp32, whatever the precision of 32 bits; of few outputs and samples
 * also in 16 bits.
 */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/merge.h"
#include "backend/cuda/plan/mixed_precision.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/few_inputs.h"
#include "backend/cuda/product/few_outputs.h"
#include "backend/cuda/product/skinny.h"

static void launch_dense_few_outputs(const struct call *call, struct queue *queue)
{
    few_outputs_layer(queue, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1),
                      call_cells(call, 0), call_reals(call, 1), call_reals(call, 2),
                      (enum activation)call->op->attr.dense.activation, call_cells(call, 3));
}

/* An activation gradient that follows makes dx for itself. */
static void launch_dense_sgd_few_outputs(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 2, 0), o = call_dim(call, 2, 1);
    if (call->below) {
        struct call next = merge_call(call, call->op + 1);
        next.act_grad = call->below;
        activation_grad_launch(&next, queue);
    } else
        few_outputs_down(queue, n, i, o, call_cells(call, 1), call_reals(call, 2),
                         call_cells(call, 7));
    cudaStream_t stream = queue_fork(queue);
    few_outputs_update(queue, n, i, o, call_cells(call, 0), call_cells(call, 1),
                       call_reals(call, 4), call_reals(call, 5), call_reals(call, 6));
    mixed_refresh(call, queue);
    queue_back(queue, stream);
}

static void launch_dense_few_inputs(const struct call *call, struct queue *queue)
{
    few_inputs_layer(queue, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1),
                     call_reals(call, 0), call_reals(call, 1), call_reals(call, 2),
                     (enum activation)call->op->attr.dense.activation, call_reals(call, 3));
}

/* The gradient of its inputs nobody needs: on the way itself, since it is the last of it. */
static void launch_dense_sgd_few_inputs(const struct call *call, struct queue *queue)
{
    few_inputs_update(queue, call_dim(call, 0, 0), call_dim(call, 2, 0), call_dim(call, 2, 1),
                      call_reals(call, 0), call_reals(call, 1), call_reals(call, 4),
                      call_reals(call, 5), call_reals(call, 6));
}

#define ROW(kind, name, launch, side)                                                              \
    {                                                                                              \
        OP_##kind, #kind "_f32_" name, launch, NULL, NULL, side, side != 0                         \
    }

static const struct kernel few_outputs_kernels[] = {
    ROW(dense, "slim", launch_dense_few_outputs, 0),
    ROW(dense_sgd, "slim", launch_dense_sgd_few_outputs, SIDE_DENSE_SGD)};

static const struct kernel few_inputs_kernels[] = {
    ROW(dense, "shallow", launch_dense_few_inputs, 0),
    ROW(dense_sgd, "shallow", launch_dense_sgd_few_inputs, 0)};

/* Has a dense_sgd the gradient of its input to make? */
static bool goes_down(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense_sgd && op_output(program, op, 2) >= 0;
}

bool dense_has_few_outputs(const struct device *device, const struct program *program,
                           const struct op *op)
{
    const bool down = goes_down(program, op), is_16bit = precision_is_16bit(device->precision);
    if (op->kind != OP_dense && op->kind != OP_dense_t && !down)
        return false;
    const struct tensor *w = &program->tensors[op_input(program, op, down ? 2 : 1)];
    return w->shape.dim[1] <= FEW_OUTPUTS_MOST &&
           program->tensors[op_input(program, op, 0)].shape.dim[0] <=
               (is_16bit ? (int64_t)SKINNY_SAMPLES : (int64_t)FEW_OUTPUTS_SAMPLES);
}

bool dense_has_few_inputs(const struct device *device, const struct program *program,
                          const struct op *op)
{
    if (precision_is_16bit(device->precision) ||
        (op->kind != OP_dense && (op->kind != OP_dense_sgd || goes_down(program, op))))
        return false;
    return program->tensors[op_input(program, op, 0)].shape.dim[1] <= FEW_INPUTS_MOST;
}

const struct kernel *dense_few_features_kernel(const struct device *device,
                                               const struct program *program, const struct op *op)
{
    const struct kernel *few_outputs = dense_has_few_outputs(device, program, op)
                                           ? kernel_in(few_outputs_kernels, op->kind)
                                           : NULL;
    if (few_outputs)
        return few_outputs;
    return dense_has_few_inputs(device, program, op) ? kernel_in(few_inputs_kernels, op->kind)
                                                     : NULL;
}
