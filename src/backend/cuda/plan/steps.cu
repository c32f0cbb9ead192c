/* steps.cu: see steps.h. */
#include "backend/cuda/plan/steps.h"

#include "backend/cuda/conv/cudnn.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"

bool choice_is_product(const struct choice *choice, const struct op *op)
{
    return choice->alone &&
           (choice->alone[op - choice->program->ops]->traits & KERNEL_PRODUCT) != 0;
}

uint64_t step_workspace(const struct plan *plan, const struct step *step)
{
    workspace_function *workspace = step->kernel->workspace;
    const struct op *op = &plan->program->ops[step->first];
    const uint64_t most = workspace ? workspace(plan->program, op) : 0;
    return workspace == workspace_cudnn
               ? cudnn_workspace(plan->instance->device->cudnn, plan->program, op, most)
               : most;
}

void step_launch(const struct step *step, const struct call *call, struct queue *queue)
{
    const int32_t output = call->op->inputs;
    step->kernel->launch(call, queue);
    if (!(step->kernel->traits & KERNEL_ROUNDS))
        mixed_refresh(call, queue);
    if (call_loss_scale(call) && loss_scale_begins(call->op->kind))
        loss_scale_apply(queue, call_count(call, output), call_reals(call, output),
                         call_loss_scale(call));
}

/* The row that takes each op by itself. */
static enum status choose_alone(struct choice *choice, const struct kernel **alone)
{
    const struct program *program = choice->program;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = choice->op = &program->ops[o];
        const char *why = cuda_supports(choice->device, program, op);
        if (why)
            FAIL(STATUS_UNSUPPORTED, "the backend 'cuda' cannot run the op %s (%s): %s",
                 op_name(op->kind), op->layer, why);
        alone[o] = kernel_find(choice, false);
    }
    return STATUS_OK;
}

/* Ops of one step that need not follow each other (kernel->group). */
struct group {
    const struct kernel *kernel;
    int32_t first, last, members;
};

/* The op `o` joins the ops that the same row took before it, as far as they are one step. */
static void group_add(struct group *group, const struct kernel *kernel, int32_t o, int32_t *ends)
{
    const bool joins = group->kernel == kernel && group->members < kernel->group;
    for (int32_t before = group->first; joins && before < o; before++)
        if (ends[before] == group->last)
            ends[before] = o;
    *group = {kernel, joins ? group->first : o, o, joins ? group->members + 1 : 1};
}

/* For each op the last op of its step, and for that the row. */
static void choose_rows(struct choice *choice, bool fuses, int32_t *ends,
                        const struct kernel **rows)
{
    const struct program *program = choice->program;
    struct group group = {};
    for (int32_t o = 0; o < program->op_count;) {
        choice->op = &program->ops[o];
        const struct kernel *row = kernel_find(choice, fuses);
        const int32_t last = o + row->op_count - 1;
        for (; o <= last; o++)
            ends[o] = last;
        rows[last] = choice->before = row;
        if (row->group)
            group_add(&group, row, last, ends);
    }
}

/* The steps, in the order of their last ops. */
static void list_steps(struct plan *plan, const int32_t *ends, const struct kernel *const *rows)
{
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        if (ends[o] != o)
            continue;
        const int32_t home = o - rows[o]->op_count + 1 + rows[o]->home;
        plan->steps[plan->step_count] = {rows[o], home, o, o, 0};
        plan->step_of[o] = plan->step_count++;
    }
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        plan->step_of[o] = plan->step_of[ends[o]];
        if (o < plan_step(plan, o)->first)
            plan_step(plan, o)->first = o;
    }
}

static enum status choose_steps(struct plan *plan, struct choice *choice)
{
    const size_t ops = (size_t)plan->program->op_count + 1;
    const struct kernel **rows;
    int32_t *ends;
    NEED(rows = (const struct kernel **)arena_array(&plan->arena, ops, sizeof *rows));
    NEED(ends = (int32_t *)arena_array(&plan->arena, ops, sizeof *ends));
    NEED(plan->steps = (struct step *)arena_array(&plan->arena, ops, sizeof *plan->steps));
    NEED(plan->step_of = (int32_t *)arena_array(&plan->arena, ops, sizeof *plan->step_of));
    choose_rows(choice, plan->observer.level == OBSERVE_NOTHING, ends, rows);
    list_steps(plan, ends, rows);
    for (int32_t s = 0; s < plan->step_count; s++) {
        const uint64_t bytes = step_workspace(plan, &plan->steps[s]);
        if (bytes > plan->workspace_bytes)
            plan->workspace_bytes = bytes;
    }
    return STATUS_OK;
}

enum status steps_choose(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct kernel **alone;
    NEED(plan->places = (struct place *)arena_array(&plan->arena, (size_t)program->tensor_count + 1,
                                                    sizeof *plan->places));
    NEED(alone = (const struct kernel **)arena_array(&plan->arena, (size_t)program->op_count + 1,
                                                     sizeof *alone));
    for (int32_t t = 0; t < program->tensor_count; t++)
        plan->places[t].own = -1;
    struct choice choice = {
        plan->instance->device, program, NULL, plan->places, NULL, NULL, plan->dry, ANSWER_STEPS};
    TRY(choose_alone(&choice, alone));
    choice.alone = alone;
    TRY(pass_precision(plan, &choice));
    TRY(pass_nhwc(plan, &choice));
    TRY(choose_steps(plan, &choice));
    TRY(activation_grad_reserve(plan, &choice));
    return side_stream_choose(plan);
}
