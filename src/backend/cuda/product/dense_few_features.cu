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

static void launch_dense_slim(const struct call *call, struct queue *queue)
{
    slim_layer(queue, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1),
               call_cells(call, 0), call_reals(call, 1), call_reals(call, 2),
               (enum activation)call->op->attr.dense.activation, call_cells(call, 3));
}

/* A slope that follows makes dx for itself. */
static void launch_dense_sgd_slim(const struct call *call, struct queue *queue)
{
    const int64_t n = call_dim(call, 0, 0), i = call_dim(call, 2, 0), o = call_dim(call, 2, 1);
    if (call->below) {
        struct call next = merge_call(call, call->op + 1);
        next.slope = call->below;
        slope_launch(&next, queue);
    } else
        slim_down(queue, n, i, o, call_cells(call, 1), call_reals(call, 2), call_cells(call, 7));
    cudaStream_t stream = queue_part(queue);
    slim_update(queue, n, i, o, call_cells(call, 0), call_cells(call, 1), call_reals(call, 4),
                call_reals(call, 5), call_reals(call, 6));
    narrow_refresh(call, queue);
    queue_return(queue, stream);
}

static void launch_dense_shallow(const struct call *call, struct queue *queue)
{
    shallow_layer(queue, call_dim(call, 0, 0), call_dim(call, 1, 0), call_dim(call, 1, 1),
                  call_reals(call, 0), call_reals(call, 1), call_reals(call, 2),
                  (enum activation)call->op->attr.dense.activation, call_reals(call, 3));
}

/* The gradient of its inputs nobody needs: on the way itself, since it is the last of it. */
static void launch_dense_sgd_shallow(const struct call *call, struct queue *queue)
{
    shallow_update(queue, call_dim(call, 0, 0), call_dim(call, 2, 0), call_dim(call, 2, 1),
                   call_reals(call, 0), call_reals(call, 1), call_reals(call, 4),
                   call_reals(call, 5), call_reals(call, 6));
}

#define ROW(kind, name, launch, aside)                                                             \
    {                                                                                              \
        OP_##kind, #kind "_f32_" name, launch, NULL, NULL, aside, aside != 0                       \
    }

static const struct kernel slim_kernels[] = {
    ROW(dense, "slim", launch_dense_slim, 0),
    ROW(dense_sgd, "slim", launch_dense_sgd_slim, ASIDE_DENSE_SGD)};

static const struct kernel shallow_kernels[] = {
    ROW(dense, "shallow", launch_dense_shallow, 0),
    ROW(dense_sgd, "shallow", launch_dense_sgd_shallow, 0)};

/* Has a dense_sgd the gradient of its input to make? */
static bool goes_down(const struct program *program, const struct op *op)
{
    return op->kind == OP_dense_sgd && op_output(program, op, 2) >= 0;
}

bool dense_lean_slim(const struct device *device, const struct program *program,
                     const struct op *op)
{
    const bool down = goes_down(program, op), narrow = precision_is_narrow(device->precision);
    if (op->kind != OP_dense && op->kind != OP_dense_t && !down)
        return false;
    const struct tensor *w = &program->tensors[op_input(program, op, down ? 2 : 1)];
    return w->shape.dim[1] <= SLIM_OUTPUTS &&
           program->tensors[op_input(program, op, 0)].shape.dim[0] <=
               (narrow ? (int64_t)HANDFUL_SAMPLES : (int64_t)SLIM_SAMPLES);
}

bool dense_lean_shallow(const struct device *device, const struct program *program,
                        const struct op *op)
{
    if (precision_is_narrow(device->precision) ||
        (op->kind != OP_dense && (op->kind != OP_dense_sgd || goes_down(program, op))))
        return false;
    return program->tensors[op_input(program, op, 0)].shape.dim[1] <= SHALLOW_INPUTS;
}

const struct kernel *dense_lean_kernel(const struct device *device, const struct program *program,
                                       const struct op *op)
{
    const struct kernel *slim =
        dense_lean_slim(device, program, op) ? kernel_in(slim_kernels, op->kind) : NULL;
    if (slim)
        return slim;
    return dense_lean_shallow(device, program, op) ? kernel_in(shallow_kernels, op->kind) : NULL;
}
