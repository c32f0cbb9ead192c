/* dense_few_features.cu: layers of few outputs (few_outputs.h) or few inputs (few_inputs.h), which
 * have kernels of their own in fp32, whatever the precision of 32 bits; of few outputs and samples
 * also in 16 bits.
 */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/ops/mixed_precision.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/product/few_inputs.h"
#include "backend/cuda/product/few_outputs.h"
#include "backend/cuda/product/skinny.h"

void launch_dense_few_outputs(const struct call *call, struct queue *queue)
{
    few_outputs_layer(queue, call_dim(call, AT_dense_x, 0), call_dim(call, AT_dense_w, 0),
                      call_dim(call, AT_dense_w, 1), call_cells(call, 0),
                      call_reals(call, AT_dense_w), call_reals(call, AT_dense_b),
                      (enum activation)call->op->attr.dense.activation, call_cells(call, 3));
}

/* An activation gradient that follows makes dx for itself. */
void launch_dense_sgd_few_outputs(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, AT_dense_sgd_x, 0), i = call_dim(call, AT_dense_sgd_w, 0),
                  o = call_dim(call, AT_dense_sgd_w, 1);
    if (call->below) {
        struct call next = fusion_call(call, call->op + 1);
        next.act_grad = call->below;
        launch_activation_grad(&next, queue);
    } else
        few_outputs_down(queue, n, i, o, call_cells(call, 1), call_reals(call, AT_dense_sgd_w),
                         call_cells(call, 7));
    cudaStream_t stream = queue_fork(queue);
    few_outputs_update(queue, n, i, o, call_cells(call, 0), call_cells(call, 1),
                       call_reals(call, AT_dense_sgd_rate), call_reals(call, AT_dense_sgd_w_out),
                       call_reals(call, AT_dense_sgd_b_out));
    mixed_refresh(call, queue);
    queue_back(queue, stream);
}

void launch_dense_few_inputs(const struct call *call, struct queue *queue)
{
    few_inputs_layer(queue, call_dim(call, AT_dense_x, 0), call_dim(call, AT_dense_w, 0),
                     call_dim(call, AT_dense_w, 1), call_reals(call, AT_dense_x),
                     call_reals(call, AT_dense_w), call_reals(call, AT_dense_b),
                     (enum activation)call->op->attr.dense.activation,
                     call_reals(call, AT_dense_y));
}

/* The gradient of its inputs nobody needs: on the way itself, since it is the last of it. */
void launch_dense_sgd_few_inputs(const struct call *call, struct queue *queue)
{
    few_inputs_update(queue, call_dim(call, AT_dense_sgd_x, 0), call_dim(call, AT_dense_sgd_w, 0),
                      call_dim(call, AT_dense_sgd_w, 1), call_reals(call, AT_dense_sgd_x),
                      call_reals(call, AT_dense_sgd_dy), call_reals(call, AT_dense_sgd_rate),
                      call_reals(call, AT_dense_sgd_w_out), call_reals(call, AT_dense_sgd_b_out));
}

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

bool takes_few_outputs(const struct choice *choice)
{
    return dense_is_worth(choice) &&
           dense_has_few_outputs(choice->device, choice->program, choice->op);
}

bool takes_few_inputs(const struct choice *choice)
{
    return dense_is_worth(choice) &&
           dense_has_few_inputs(choice->device, choice->program, choice->op);
}
