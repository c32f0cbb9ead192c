/* merge.cu: see merge.h. */
#include "backend/cuda/plan/merge.h"

#include "backend/cuda/plan/mixed_precision.h"

bool merge_passes(const struct program *program, const struct op *op)
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

bool merge_meets(const struct program *program, int32_t a, int32_t b)
{
    const struct tensor *x = &program->tensors[program_root(program, a)];
    const struct tensor *y = &program->tensors[program_root(program, b)];
    return x->role == y->role && x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes;
}

static void launch_nothing(const struct call *, struct queue *)
{
}

void merge_leave(struct plan *plan, int32_t o)
{
    static const struct kernel left = {OP_COUNT, NULL, launch_nothing, NULL, NULL, 0, false};
    plan->kernels[o] = &left;
}

void merge_choose(struct plan *plan)
{
    const struct program *program = plan->program;
    if (plan->observer.level != OBSERVE_NOTHING)
        return;
    for (int32_t o = 1; o < program->op_count; o++) {
        if (plan->mixed && mixed_touches(plan->mixed, program, &program->ops[o]))
            continue; /* what merges writes fp32 */
        pool_merge(plan, o);
        norm_merge(plan, o);
    }
}
