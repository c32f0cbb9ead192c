/* fusion.cu: what rows over several ops ask (choice.h): nobody else may need what lies between. */
#include "backend/cuda/plan/choice.h"

bool fusion_passes(const struct program *program, const struct op *op)
{
    const struct op *next = op + 1;
    const int32_t result = op_output(program, op, 0), written = op->first + op->inputs;
    int32_t others = 0;
    if (next == program->ops + program->op_count || next->part != op->part ||
        program->tensors[result].role != ROLE_ACTIVATION)
        return false;
    for (int32_t i = 0; i < program->operand_count; i++)
        others += program->operands[i] >= 0 && i != written &&
                  program_root(program, program->operands[i]) == result &&
                  (i < next->first || i >= next->first + next->inputs);
    return !others;
}

bool fusion_meets(const struct program *program, int32_t a, int32_t b)
{
    const struct tensor *x = &program->tensors[program_root(program, a)];
    const struct tensor *y = &program->tensors[program_root(program, b)];
    return x->role == y->role && x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes;
}
