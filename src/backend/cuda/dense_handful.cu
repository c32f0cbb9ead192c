/* dense_handful.cu: dense layers of a handful of samples in 16 bits (handful.h), up, down and
 * update. */
#include "backend/cuda/blas.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/handful.h"
#include "backend/cuda/narrow.h"

/* The operand of the product with weights that is no weight: of dense_sgd the gradient. */
static int32_t samples_of(const struct op *op)
{
    return op->kind == OP_dense_sgd ? 1 : 0;
}

static struct handful handful_of(const struct program *program, const struct op *op)
{
    const int32_t matrix = op->kind == OP_dense_sgd ? 2 : 1;
    const int64_t *w = program->tensors[op_input(program, op, matrix)].shape.dim;
    const bool turned = op->kind != OP_dense;
    return {program->tensors[op_input(program, op, 0)].shape.dim[0], w[turned ? 0 : 1],
            w[turned ? 1 : 0], turned};
}

/* Room for what is not kept in 16 bits. */
static uint64_t workspace_handful(const struct program *program, const struct op *op)
{
    return program->tensors[op_input(program, op, samples_of(op))].bytes / 2;
}

static const void *samples_rounded(const struct call *call, struct queue *queue)
{
    const int32_t operand = samples_of(call->op);
    const struct cells kept = call_cells(call, operand);
    const struct cells rounded = {call->workspace, call->narrow->type};
    if (precision_is_narrow(kept.type))
        return kept.data;
    narrow_cast(queue, call_count(call, operand), kept, rounded);
    return rounded.data;
}

static float *reals_or_null(const struct call *call, int32_t operand)
{
    return call_has(call, operand) ? call_reals(call, operand) : NULL;
}

/* dense and dense_t, whose attributes and operands are alike */
static void launch_layer_handful(const struct call *call, struct queue *queue)
{
    const struct handful handful = handful_of(call->program, call->op);
    handful_multiply(queue, &handful, narrow_copy(call->narrow, call_tensor(call, 1)),
                     samples_rounded(call, queue), reals_or_null(call, 2),
                     (enum activation)call->op->attr.dense.activation, call_cells(call, 3));
}

/* dx comes first: it is made with the weights as they were. */
static void launch_dense_sgd_handful(const struct call *call, struct queue *queue)
{
    const struct narrow *narrow = call->narrow;
    if (call_has(call, 7)) {
        const struct handful handful = handful_of(call->program, call->op);
        handful_multiply(queue, &handful, narrow_copy(narrow, call_tensor(call, 2)),
                         samples_rounded(call, queue), NULL, ACTIVATION_NONE, call_cells(call, 7));
    }
    struct handful_update update = {call_dim(call, 0, 0), call_dim(call, 2, 0),
                                    call_dim(call, 2, 1), call_cells(call, 0),
                                    call_cells(call, 1),  call_reals(call, 4),
                                    call_reals(call, 5),  reals_or_null(call, 6),
                                    narrow_copy(narrow, call_tensor(call, 5)), {}};
    if (call_has(call, 6))
        update.b_copy = narrow_copy(narrow, call_tensor(call, 6));
    cudaStream_t stream = queue_part(queue);
    handful_apply(queue, &update);
    queue_return(queue, stream);
}

#define ROW(kind, type, launch, aside)                                                             \
    {                                                                                              \
        OP_##kind, #kind "_" type "_handful", launch, workspace_handful, NULL, aside, aside != 0   \
    }
#define ROWS(type)                                                                                 \
    {                                                                                              \
        ROW(dense, type, launch_layer_handful, 0), ROW(dense_t, type, launch_layer_handful, 0),    \
            ROW(dense_sgd, type, launch_dense_sgd_handful, ASIDE_DENSE_SGD)                        \
    }

static const struct kernel kernels[2][3] = {ROWS("bf16"), ROWS("f16")};

const struct kernel *dense_handful_kernel(const struct device *device,
                                          const struct program *program, const struct op *op)
{
    if (!precision_is_narrow(device->precision) ||
        (op->kind != OP_dense && op->kind != OP_dense_t && op->kind != OP_dense_sgd))
        return NULL;
    const struct handful handful = handful_of(program, op);
    return handful_takes(&handful, &device->properties)
               ? kernel_in(kernels[device->precision == PRECISION_FP16], op->kind)
               : NULL;
}
