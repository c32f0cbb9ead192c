/* pass_nhwc.cu: which images a plan keeps NHWC (nhwc.h), for the convolutions that want them so. */
#include "backend/cuda/conv/reorder.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"

/* How an op takes an operand NHWC: not at all, by itself, or as all its operands of this
 * kind lie. */
enum taking { TAKES_NOT, TAKES_ALONE, TAKES_TOGETHER };

static enum taking takes_nhwc(const struct program *program, const struct op *op, bool reorders,
                              int32_t operand)
{
    switch (op->kind) {
    case OP_conv:
    case OP_conv_t: return reorders && (operand == 0 || operand == 3) ? TAKES_ALONE : TAKES_NOT;
    case OP_conv_dw: return reorders && operand <= 1 ? TAKES_ALONE : TAKES_NOT;
    case OP_conv_fused:
        if (operand >= 7)
            return reorders ? TAKES_TOGETHER : TAKES_NOT;
        return reorders && operand == 0 ? TAKES_ALONE : TAKES_NOT;
    case OP_conv_int8: return operand == 0 || operand == 6 ? TAKES_ALONE : TAKES_NOT;
    case OP_table_int8: return operand == 1 ? TAKES_NOT : TAKES_TOGETHER;
    case OP_dequantise: return operand == 1 ? TAKES_NOT : TAKES_TOGETHER;
    case OP_quantise:
    case OP_add_int8:
    case OP_activate:
    case OP_activate_grad:
    case OP_add:
    case OP_bound:
    case OP_bound_grad:
    case OP_divide:
    case OP_multiply: return TAKES_TOGETHER;
    case OP_batch_norm:
    case OP_batch_norm_fixed: return operand == 0 || operand == 5 ? TAKES_TOGETHER : TAKES_NOT;
    case OP_batch_norm_grad:
        return operand == 0 || operand == 4 || operand == 5 ? TAKES_TOGETHER : TAKES_NOT;
    case OP_sum_channels: return operand == 0 ? TAKES_ALONE : TAKES_NOT;
    case OP_max_pool:
    case OP_max_pool_int8:
    case OP_average_pool_int8:
    case OP_average_pool:
    case OP_average_pool_grad: return TAKES_ALONE;
    case OP_max_unpool: return pool_of_places(program, op) ? TAKES_ALONE : TAKES_NOT;
    default: return TAKES_NOT;
    }
}

static bool may_be_nhwc(const struct tensor *tensor)
{
    return tensor->role == ROLE_ACTIVATION && tensor->view_of < 0 && tensor->shape.rank == 4 &&
           tensor->shape.dim[1] % NHWC_VECTOR == 0;
}

/* Operands that lie alike: one that cannot keeps the others back. */
static bool keep_alike(const struct program *program, const struct op *op, bool reorders,
                       bool *tensors)
{
    bool all = true, changed = false;
    const auto each = [&](auto visit) {
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t tensor = program->operands[op->first + i];
            if (tensor >= 0 && takes_nhwc(program, op, reorders, i) == TAKES_TOGETHER)
                visit(&tensors[program_root(program, tensor)]);
        }
    };
    each([&](const bool *nhwc) { all = all && *nhwc; });
    if (!all)
        each([&](bool *nhwc) {
            changed = changed || *nhwc;
            *nhwc = false;
        });
    return changed;
}

/* Which tensors of a program are kept so; `reorders`: this op is a convolution that takes its
 * images either way. False: none. */
static bool nhwc_choose(const struct program *program, const bool *reorders, bool *tensors)
{
    bool some = false;
    for (int32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = may_be_nhwc(&program->tensors[t]);
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        some = some || reorders[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t t = program->operands[op->first + i];
            if (t >= 0 && (program->tensors[t].view_of >= 0 ||
                           takes_nhwc(program, op, reorders[o], i) == TAKES_NOT))
                tensors[program_root(program, t)] = false;
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t o = 0; o < program->op_count; o++)
            changed = keep_alike(program, &program->ops[o], reorders[o], tensors) || changed;
    }
    return some;
}

enum status pass_nhwc(struct plan *plan, const struct choice *choice)
{
    const struct program *program = plan->program;
    bool *reorders, *tensors;
    NEED(reorders = (bool *)arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof(bool)));
    NEED(tensors =
             (bool *)arena_array(&plan->arena, (size_t)program->tensor_count + 1, sizeof(bool)));
    for (int32_t o = 0; o < program->op_count; o++)
        reorders[o] = (choice->alone[o]->traits & KERNEL_NHWC) &&
                      (program->ops[o].kind == OP_conv_int8 ||
                       conv_form_of(program, &program->ops[o], true).nhwc);
    if (nhwc_choose(program, reorders, tensors))
        for (int32_t t = 0; t < program->tensor_count; t++)
            plan->places[t].nhwc = tensors[t];
    return STATUS_OK;
}
