/* dense_blocked_isa.c: the ops of the dense family over blocked weights (blocked.h), each as a job
 * of dense_loops.h, and their rows. */
#include "backend/cpu/simd/dense/dense_loops.h"
#include "backend/cpu/simd/isa.h"

static const struct dense_kernels *const kernels = &ISA(dense_kernels);

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

static void run_dense(const struct call *call)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[AT_dense_x],
        .w = call->data[AT_dense_w],
        .b = call->data[AT_dense_b],
        .y = call->data[AT_dense_y],
        .batch = call->tensors[AT_dense_x]->shape.dim[0],
        .in = call->tensors[AT_dense_w]->shape.dim[0],
        .out = call->tensors[AT_dense_w]->shape.dim[1],
        .activation = call->op->attr.dense.activation,
    };
    dense_forward(call, &job);
}

static void run_dense_t(const struct call *call)
{
    struct dense_job job = {
        .kernels = kernels,
        .dy = call->data[AT_dense_t_x],
        .w = call->data[AT_dense_t_w],
        .b = call->data[AT_dense_t_b],
        .dx = call->data[AT_dense_t_y],
        .batch = call->tensors[AT_dense_t_x]->shape.dim[0],
        .in = call->tensors[AT_dense_t_w]->shape.dim[0],
        .out = call->tensors[AT_dense_t_w]->shape.dim[1],
        .activation = call->op->attr.dense_t.activation,
    };
    dense_backward(call, &job);
}

static void run_outer(const struct call *call)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[AT_outer_x],
        .dy = call->data[AT_outer_dy],
        .target = call->data[AT_outer_dw],
        .batch = call->tensors[AT_outer_x]->shape.dim[0],
        .in = call->tensors[AT_outer_x]->shape.dim[1],
        .out = call->tensors[AT_outer_dy]->shape.dim[1],
        .scale = call->op->attr.outer.scale,
        .outer = call->op->attr.outer.accumulate ? kernels->outer_add : kernels->outer_set,
    };
    dense_backward(call, &job);
}

/* Of several blocks of samples all dx come first, from the old weights. */
static void run_dense_sgd(const struct call *call)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[AT_dense_sgd_x],
        .dy = call->data[AT_dense_sgd_dy],
        .w = call->data[AT_dense_sgd_w],
        .target = call->data[AT_dense_sgd_w],
        .bias = call->data[AT_dense_sgd_b],
        .scale = -*(const float *)call->data[AT_dense_sgd_rate],
        .dx = call->data[AT_dense_sgd_dx],
        .batch = call->tensors[AT_dense_sgd_x]->shape.dim[0],
        .in = call->tensors[AT_dense_sgd_w]->shape.dim[0],
        .out = call->tensors[AT_dense_sgd_w]->shape.dim[1],
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
static void run_dense_update(const struct call *call)
{
    struct dense_job job = {
        .kernels = kernels,
        .x = call->data[AT_dense_update_x],
        .dy = call->data[AT_dense_update_dy],
        .w = call->data[AT_dense_update_w],
        .dx = call->data[AT_dense_update_dx],
        .batch = call->tensors[AT_dense_update_x]->shape.dim[0],
        .in = call->tensors[AT_dense_update_w]->shape.dim[0],
        .out = call->tensors[AT_dense_update_w]->shape.dim[1],
        .scale = 1,
        .outer = kernels->outer_set,
        .update = call,
    };
    if (call->op->attr.dense_update.optimiser == OP_sgd && job.dx && job.batch <= DENSE_STREAM) {
        float rate = *(const float *)call->data[AT_dense_update_rate];
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

#define BLOCKED_ROW(kind)                                                                          \
    .op = OP_##kind, .form = FORM_BLOCKED, .name = #kind "_f32_" ISA_NAME "_8x16",                 \
    .workspace = dense_workspace, .run = run_##kind
static const struct kernel rows[] = {
    {BLOCKED_ROW(dense)},     {BLOCKED_ROW(dense_t)},      {BLOCKED_ROW(outer)},
    {BLOCKED_ROW(dense_sgd)}, {BLOCKED_ROW(dense_update)},
};

const struct kernel_list ISA(dense_list) = KERNEL_LIST(rows);
