/* dense_blocked.c: the ops of the dense family over blocked weights (blocked.h), each as a job of
 * dense_loops.h, and their rows in the table of kernels. */
#include "backend/cpu/simd/dense_loops.h"
#include "backend/cpu/simd/fills.h"

static uint64_t dense_workspace(const struct program *program, const struct op *op, int threads)
{
    const struct shape *x = &program->tensors[op_input(program, op, 0)].shape;
    int64_t in = 0, out = 0;
    uint64_t sums = 0;
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        int32_t tensor = program->operands[op->first + i];
        if (tensor >= 0 && program->tensors[tensor].matrix) {
            in = program->tensors[tensor].shape.dim[0];
            out = program->tensors[tensor].shape.dim[1];
            if (op->kind == OP_dense_update && x->dim[0] > DENSE_BLOCK)
                sums = blocked_bytes(&program->tensors[tensor].shape);
        }
    }
    return (uint64_t)threads * dense_member_floats(x->dim[0], in, out) * sizeof(float) + sums;
}

static void run_forward(const struct call *call, const struct dense_kernels *kernels)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[0],
        .w = call->data[1],
        .b = call->data[2],
        .y = call->data[3],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[1]->shape.dim[0],
        .out = call->tensors[1]->shape.dim[1],
        .activation = call->op->attr.dense.activation,
    };
    dense_forward(call, &job);
}

static void run_transposed(const struct call *call, const struct dense_kernels *kernels)
{
    struct dense_job job = {
        .kernels = kernels,
        .dy = call->data[0],
        .w = call->data[1],
        .b = call->data[2],
        .dx = call->data[3],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[1]->shape.dim[0],
        .out = call->tensors[1]->shape.dim[1],
        .activation = call->op->attr.dense_t.activation,
    };
    dense_backward(call, &job);
}

static void run_outer(const struct call *call, const struct dense_kernels *kernels)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .target = call->data[2],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[0]->shape.dim[1],
        .out = call->tensors[1]->shape.dim[1],
        .scale = call->op->attr.outer.scale,
        .outer = call->op->attr.outer.accumulate ? kernels->outer_add : kernels->outer_set,
    };
    dense_backward(call, &job);
}

/* Of several blocks of samples all dx come first, from the old weights. */
static void run_sgd(const struct call *call, const struct dense_kernels *kernels)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .w = call->data[2],
        .target = call->data[2],
        .bias = call->data[3],
        .scale = -*(const float *)call->data[4],
        .dx = call->data[7],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[2]->shape.dim[0],
        .out = call->tensors[2]->shape.dim[1],
        .outer = kernels->outer_add,
    };
    if (job.dx && job.batch > DENSE_BLOCK) {
        struct dense_job back = job;
        back.target = NULL;
        back.outer = NULL;
        back.bias = NULL;
        dense_backward(call, &back);
        job.dx = NULL;
    }
    dense_backward(call, &job);
}

/* Decay is one multiplication more in the pass that sgd without it has for few samples. */
static void run_update(const struct call *call, const struct dense_kernels *kernels)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[0],
        .dy = call->data[1],
        .w = call->data[2],
        .dx = call->data[8],
        .batch = call->tensors[0]->shape.dim[0],
        .in = call->tensors[2]->shape.dim[0],
        .out = call->tensors[2]->shape.dim[1],
        .scale = 1,
        .outer = kernels->outer_set,
        .update = call,
    };
    if (call->op->attr.dense_update.optimiser == OP_sgd && job.dx && job.batch <= DENSE_STREAM) {
        float rate = *(const float *)call->data[3];
        job.scale = -rate;
        job.shrink = rate * call->op->attr.dense_update.decay;
        job.target = job.w;
        job.outer = kernels->outer_add;
        job.update = NULL;
    }
    if (job.batch > DENSE_BLOCK)
        job.sums = (float *)call->workspace + (uint64_t)pool_at_once(call->pool) *
                                                  dense_member_floats(job.batch, job.in, job.out);
    dense_backward(call, &job);
}

#define ENTRIES(isa)                                                                               \
    static void dense_##isa(const struct call *call)                                               \
    {                                                                                              \
        run_forward(call, &dense_kernels_##isa);                                                   \
    }                                                                                              \
    static void dense_t_##isa(const struct call *call)                                             \
    {                                                                                              \
        run_transposed(call, &dense_kernels_##isa);                                                \
    }                                                                                              \
    static void outer_##isa(const struct call *call)                                               \
    {                                                                                              \
        run_outer(call, &dense_kernels_##isa);                                                     \
    }                                                                                              \
    static void dense_sgd_##isa(const struct call *call)                                           \
    {                                                                                              \
        run_sgd(call, &dense_kernels_##isa);                                                       \
    }                                                                                              \
    static void dense_update_##isa(const struct call *call)                                        \
    {                                                                                              \
        run_update(call, &dense_kernels_##isa);                                                    \
    }                                                                                              \
    void dense_fill_##isa(struct kernel_table *table)                                              \
    {                                                                                              \
        table->blocked[OP_dense] =                                                                 \
            (struct kernel){"dense_f32_" #isa "_8x16", dense_##isa, dense_workspace};              \
        table->blocked[OP_dense_t] =                                                               \
            (struct kernel){"dense_t_f32_" #isa "_8x16", dense_t_##isa, dense_workspace};          \
        table->blocked[OP_outer] =                                                                 \
            (struct kernel){"outer_f32_" #isa "_8x16", outer_##isa, dense_workspace};              \
        table->blocked[OP_dense_sgd] =                                                             \
            (struct kernel){"dense_sgd_f32_" #isa "_8x16", dense_sgd_##isa, dense_workspace};      \
        table->blocked[OP_dense_update] = (struct kernel){"dense_update_f32_" #isa "_8x16",        \
                                                          dense_update_##isa, dense_workspace};    \
    }

ENTRIES(avx2)
ENTRIES(avx512)
