/* pass_precision.cu: which tensors a plan keeps in 16 bits (mixed_precision.h). */
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"

/* May this operand be in 16 bits? Of products: factors, and what is no gradient of a parameter; an
 * output with a bias needs that in 16 bits as well. */
static bool may_be_16bit(const struct program *program, const struct op *op, bool is_product,
                         int32_t operand)
{
    const bool output = operand == 3;
    const int32_t bias = op->inputs > 2 ? op_input(program, op, 2) : -1;
    switch (op->kind) {
    case OP_dense:
    case OP_dense_t:
        return is_product && (operand == 0 ||
                              (output && (bias < 0 || program->tensors[bias].role == ROLE_PARAM)));
    case OP_outer: return is_product && operand <= 1;
    case OP_dense_sgd: return is_product && (operand <= 1 || operand == 7);
    case OP_sum_rows: return operand != 1;
    case OP_load:
    case OP_activate:
    case OP_activate_grad: return true;
    default: return false;
    }
}

/* An op that writes over what it reads must find both equally wide. */
static bool keep_wide_in_place(const struct program *program, const struct op *op, bool *tensors)
{
    bool changed = false;
    for (int32_t i = 0; i < op->inputs; i++)
        for (int32_t o = 0; o < op->outputs; o++) {
            const int32_t x = op_input(program, op, i), y = op_output(program, op, o);
            if (x < 0 || y < 0)
                continue;
            const int32_t from = program_root(program, x), to = program_root(program, y);
            if (tensors[from] == tensors[to] || !fusion_meets(program, from, to))
                continue;
            tensors[from] = tensors[to] = false;
            changed = true;
        }
    return changed;
}

/* Which tensors of a program are kept in 16 bits; `is_product`: this op's kernel takes them. */
static void mixed_choose(const struct program *program, const bool *is_product, bool *tensors)
{
    for (int32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = false;
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; is_product[o] && i < program->ops[o].inputs + program->ops[o].outputs;
             i++) {
            const int32_t t = program->operands[program->ops[o].first + i];
            if (t >= 0 && may_be_16bit(program, &program->ops[o], true, i))
                tensors[program_root(program, t)] = true;
        }
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            const int32_t t = program->operands[op->first + i];
            if (t >= 0 && !may_be_16bit(program, op, is_product[o], i))
                tensors[program_root(program, t)] = false;
        }
    }
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (program->tensors[t].dtype != DTYPE_F32 ||
            (program->tensors[t].role != ROLE_INPUT && program->tensors[t].role != ROLE_ACTIVATION))
            tensors[t] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t o = 0; o < program->op_count; o++)
            changed = keep_wide_in_place(program, &program->ops[o], tensors) || changed;
    }
    for (int32_t t = 0; t < program->tensor_count; t++)
        tensors[t] = tensors[program_root(program, t)];
}

/* `some`: an op is computed in fp8. */
static enum status check_fp8(const struct program *program, bool some)
{
    if (program->parts[PART_BACKWARD].from < program->parts[PART_BACKWARD].to)
        FAIL(STATUS_UNSUPPORTED, "fp8 is for inference: train '%s' with --precision bf16",
             program->name);
    if (!some)
        FAIL(STATUS_UNSUPPORTED,
             "nothing of '%s' would be computed in fp8: its dense layers need 33 samples, 65,536 "
             "weights and a multiple of 8 outputs; use --precision bf16",
             program->name);
    return STATUS_OK;
}

enum status pass_precision(struct plan *plan, const struct choice *choice)
{
    const struct program *program = plan->program;
    const struct instance *instance = plan->instance;
    bool *is_product, *tensors, some = false, scales = false, fp8 = false;
    if (!precision_is_16bit(instance->device->precision))
        return STATUS_OK;
    NEED(is_product =
             (bool *)arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof(bool)));
    NEED(tensors =
             (bool *)arena_array(&plan->arena, (size_t)program->tensor_count + 1, sizeof(bool)));
    NEED(plan->mixed = (struct mixed *)arena_alloc(&plan->arena, sizeof *plan->mixed));
    for (int32_t o = 0; o < program->op_count; o++) {
        is_product[o] = choice->alone[o]->traits & KERNEL_PRODUCT;
        some = some || (choice->alone[o]->traits & (KERNEL_PRODUCT | KERNEL_16BIT));
        fp8 = fp8 || (choice->alone[o]->traits & KERNEL_FP8);
        scales = scales || loss_scale_begins(program->ops[o].kind);
    }
    if (!some)
        FAIL(STATUS_UNSUPPORTED,
             "nothing of '%s' would be computed in 16 bits: the CUDA backend does so for products "
             "with 1,024 weights and more; use --precision fp32",
             program->name);
    if (instance->device->fp8)
        TRY(check_fp8(program, fp8));
    mixed_choose(program, is_product, tensors);
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (tensors[t])
            plan->places[t].type = instance->device->precision;
    plan->mixed->type = instance->device->precision;
    plan->mixed->params = instance->copy;
    plan->mixed->fp8 = instance->fp8;
    plan->mixed->loss_scale = scales ? instance->loss_scale : NULL;
    return STATUS_OK;
}
