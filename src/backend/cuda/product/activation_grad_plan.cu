/* activation_grad_plan.cu: where an activation gradient leaves sums for the update that follows,
 * and the memory for them (activation_grad.h). */
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"
#include "backend/cuda/product/activation_grad.h"
#include "backend/cuda/product/blas.h"

static uint64_t floats(int64_t count)
{
    return (uint64_t)count * sizeof(float);
}

static uint64_t take_bytes(struct plan *plan, uint64_t bytes)
{
    const uint64_t at = plan->act_grad_bytes;
    plan->act_grad_bytes += (bytes + 255) / 256 * 256;
    return at;
}

/* Does the update of the layer below follow the op, and begin with what it ends with? */
static bool precedes_update(const struct choice *choice, const struct op *op)
{
    const struct program *program = choice->program;
    const struct op *update = op + 1;
    if (update == program->ops + program->op_count || update->kind != OP_dense_sgd)
        return false;
    const int32_t dy = op_input(program, update, 1);
    const struct shape *shape = &program->tensors[dy].shape;
    return op_output(program, op, 0) == dy && update->part == op->part &&
           shape->dim[0] >= GRAD_FROM && shape->dim[1] % 2 == 0 &&
           op_input(program, update, 3) >= 0 && choice_is_product(choice, update);
}

bool takes_activation_grad(const struct choice *choice)
{
    return precedes_update(choice, choice->op);
}

/* Does the op, an activation gradient, alone read what the layer above it makes? */
static bool follows_product(const struct choice *choice, const struct op *op)
{
    const struct program *program = choice->program;
    const struct op *above = op - 1;
    if (op == program->ops || above->kind != OP_dense_sgd || above->part != op->part)
        return false;
    const int32_t dx = op_output(program, above, 2);
    if (dx < 0 || op_input(program, op, 1) != dx)
        return false;
    for (const struct op *other = program->ops; other < program->ops + program->op_count; other++)
        for (int32_t i = 0; other != op && i < other->inputs; i++)
            if (op_input(program, other, i) == dx)
                return false;
    return choice_is_product(choice, above);
}

/* The layer above has few outputs, and the activation gradient makes its dx. */
bool takes_few_outputs_activation_grad(const struct choice *choice)
{
    const struct op *op = choice->op + 1;
    return precedes_update(choice, op) && follows_product(choice, op) &&
           dense_has_few_outputs(choice->device, choice->program, choice->op);
}

/* What of the layer above has a part in it. */
static void join_product(struct plan *plan, const struct choice *choice, const struct op *op,
                         struct activation_grad *act_grad)
{
    struct split_k split_k;
    if (plan->observer.level != OBSERVE_NOTHING || !follows_product(choice, op))
        return;
    launch_function *const above = choice->alone[op - 1 - choice->program->ops]->launch;
    if (above == launch_dense_sgd_split_k &&
        dense_blas_split_k(choice->device, choice->program, op - 1, &split_k)) {
        act_grad->pieces = split_k_pieces(&split_k, NULL);
        act_grad->pieces_at = take_bytes(plan, split_k_bytes(&split_k));
    }
    act_grad->few_outputs = above == launch_dense_sgd_few_outputs;
}

enum status activation_grad_reserve(struct plan *plan, const struct choice *choice)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    NEED(plan->act_grads = (struct activation_grad **)arena_array(
             &plan->arena, (size_t)program->op_count + 1, sizeof *plan->act_grads));
    for (int32_t o = 1; o < program->op_count; o++) {
        const struct op *update = &program->ops[o];
        if (program->ops[o - 1].kind != OP_activate_grad ||
            !(plan_step(plan, o - 1)->kernel->traits & KERNEL_SUMS))
            continue;
        struct activation_grad *act_grad;
        NEED(act_grad = (struct activation_grad *)arena_alloc(&plan->arena, sizeof *act_grad));
        const int64_t *dim = program->tensors[op_input(program, update, 1)].shape.dim;
        const int64_t inputs = program->tensors[op_input(program, update, 0)].shape.dim[1];
        const int64_t least = (dim[0] + GRAD_CHUNKS - 1) / GRAD_CHUNKS;
        const int64_t rows = dim[0] <= GRAD_FEW ? GRAD_LINES : GRAD_ROWS;
        act_grad->samples = dim[0];
        act_grad->width = dim[1];
        act_grad->chunk_rows = (least + rows - 1) / rows * rows;
        act_grad->chunks = blocks_for(act_grad->samples, act_grad->chunk_rows);
        act_grad->sums_at = take_bytes(plan, floats(act_grad->chunks * act_grad->width));
        act_grad->transposes = dense_blas_transposes(device, program, update);
        act_grad->step = dense_wgrad_step(act_grad->samples);
        if (act_grad->transposes) {
            act_grad->transposed_at = take_bytes(plan, floats(act_grad->width * act_grad->step));
            act_grad->inputs_at = take_bytes(plan, floats(inputs * act_grad->step));
        }
        join_product(plan, choice, update - 1, act_grad);
        plan->act_grads[o - 1] = plan->act_grads[o] = act_grad;
    }
    return STATUS_OK;
}

void activation_grad_place(struct plan *plan)
{
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        struct activation_grad *act_grad = plan->act_grads[o];
        if (!act_grad)
            continue;
        act_grad->sums = (float *)(plan->act_grad_memory + act_grad->sums_at);
        act_grad->pieces.data = (const float *)(plan->act_grad_memory + act_grad->pieces_at);
        act_grad->transposed = act_grad->transposes
                                   ? (float *)(plan->act_grad_memory + act_grad->transposed_at)
                                   : NULL;
        act_grad->inputs = (float *)(plan->act_grad_memory + act_grad->inputs_at);
    }
}

const struct activation_grad *activation_grad_below(const struct plan *plan, int32_t op)
{
    const bool is_last = op + 1 >= plan->program->op_count;
    const struct activation_grad *next = is_last ? NULL : plan->act_grads[op + 1];
    return next && next != plan->act_grads[op] && (next->pieces.count || next->few_outputs) ? next
                                                                                            : NULL;
}
