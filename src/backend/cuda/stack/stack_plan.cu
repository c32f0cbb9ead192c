/* stack_plan.cu: a whole program on the host's side: its kernel's parameters, its memory. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/stack/stack_run.h"

extern "C" {
#include "base/memory.h"
}

/* The tensor behind operand `input` of the op at this place of the program, -1: there is no op. */
static int32_t operand_of(const struct program *program, int32_t place, int32_t operand)
{
    return place < 0 ? -1 : program->operands[program->ops[place].first + operand];
}

static struct feed_view *view_of(const struct plan *plan, int32_t tensor)
{
    return tensor < 0 ? NULL : &plan->views[tensor];
}

static struct stack_step step_of(const struct plan *plan, const struct dense_stack *dense)
{
    const struct program *program = plan->program;
    struct stack_step step = {};
    step.batch = program->batch;
    step.layers = dense->layers;
    step.feed = plan->feed;
    step.control = plan->instance->control;
    step.x = view_of(plan, operand_of(program, dense->load_x, 1));
    step.target = view_of(plan, operand_of(program, dense->load_target, 1));
    step.y = view_of(plan, operand_of(program, dense->store_y, 0));
    step.loss = view_of(plan, operand_of(program, dense->store_loss, 0));
    step.right = view_of(plan, operand_of(program, dense->store_right, 0));
    step.loss_kind = dense->loss < 0 ? OP_COUNT : program->ops[dense->loss].kind;
    step.right_kind = dense->right < 0 ? OP_COUNT : program->ops[dense->right].kind;
    if (dense->right >= 0 && step.right_kind == OP_right_level)
        step.half = 0.5f / (float)(program->ops[dense->right].attr.right_level.classes - 1);
    if (dense->counts_sigmoid)
        step.right_kind = OP_COUNT;
    const float elements = (float)program->batch * (float)dense->layer[dense->layers - 1].out;
    step.share = 1.0f / (step.loss_kind == OP_cross_entropy ? (float)program->batch : elements);
    if (dense->loss_grad < 0)
        return step;
    const struct op *grad = &program->ops[dense->loss_grad];
    step.gradient = step.loss_kind == OP_mse ? grad->attr.mse_grad.scale * 2.0f / elements
                    : step.loss_kind == OP_cross_entropy
                        ? grad->attr.cross_entropy_grad.scale / (float)program->batch
                        : grad->attr.binary_cross_entropy_grad.scale / elements;
    const auto &schedule = program->ops[dense->schedule].attr.schedule;
    step.schedule_kind = schedule.kind;
    step.warmup = schedule.warmup;
    step.period = schedule.period;
    step.schedule_factor = schedule.factor;
    step.schedule_scale = schedule.scale;
    step.count = (int32_t *)cuda_locate(plan, operand_of(program, dense->tick, 1), 0);
    return step;
}

enum status stack_prepare(struct plan *plan, enum answering answering)
{
    const struct program *program = plan->program;
    const struct stack_limits limits = stack_limits_of(plan->instance->device);
    struct choice choice = {};
    choice.device = plan->instance->device;
    choice.program = program;
    choice.answering = answering;
    const struct kernel *kernel = kernel_find_steps(&choice);
    if (!kernel)
        return STATUS_OK; /* calls are a graph of its ops */
    const struct stack_kernel *steps = kernel->steps;
    struct stack *stack = (struct stack *)arena_array(&plan->arena, 1, sizeof *stack);
    NEED(stack);
    stack->kernel = kernel;
    if (steps->bytes)
        stack->bytes = steps->bytes(program->stack, program->batch, &limits);
    plan->stack = stack;
    if (steps->choose)
        steps->choose(plan);
    return STATUS_OK;
}

/* What the optimiser's op at this place keeps, its last outputs. */
static void locate_states(const struct plan *plan, const struct dense_stack *dense, int32_t place,
                          float **out)
{
    const struct program *program = plan->program;
    for (int32_t s = 0; place >= 0 && s < dense->states; s++)
        out[s] = (float *)cuda_locate(plan, op_output(program, &program->ops[place], 2 + s), 0);
}

enum status stack_begin(struct plan *plan)
{
    const struct stack_limits limits = stack_limits_of(plan->instance->device);
    struct stack *stack = plan->stack;
    const struct dense_stack *dense = plan->program->stack;
    void *memory;
    if (stack->kernel->steps->begin)
        return stack->kernel->steps->begin(plan);
    TRY(cuda_alloc(plan->instance->device, stack->bytes, "the whole step's kernel", &memory));
    stack->memory = (char *)memory;
    stack->rule.kind = OP_COUNT;
    if (dense->optimiser >= 0)
        stack->rule = rule_of(&plan->program->ops[dense->optimiser]);
    for (int32_t l = 0; l < dense->layers; l++) {
        struct learnt_layer *layer = &stack->layer[l];
        layer->in = dense->layer[l].in;
        layer->out = dense->layer[l].out;
        layer->function = dense->layer[l].activation;
        layer->w = (float *)cuda_locate(plan, dense->layer[l].w, 0);
        layer->b = (float *)cuda_locate(plan, dense->layer[l].b, 0);
        locate_states(plan, dense, dense->layer[l].update, layer->states_w);
        locate_states(plan, dense, dense->layer[l].update_b, layer->states_b);
    }
    const struct stack_step step = step_of(plan, dense);
    stack->kernel->steps->prepare(stack, dense, &step, &limits);
    return STATUS_OK;
}

enum status stack_run(struct plan *plan, int64_t steps)
{
    /* of a launch: nobody waits for seconds to stop it */
    enum { STEPS_MOST = 1 << 16, SAMPLES_MOST = 1 << 30 };
    struct stack *stack = plan->stack;
    if (stack->kernel->steps->run)
        return stack->kernel->steps->run(plan, steps);
    const int64_t most = (SAMPLES_MOST - 1) / plan->program->batch + 1;
    const int64_t at_once = most < STEPS_MOST ? most : (int64_t)STEPS_MOST;
    for (int64_t left = steps; left > 0; left -= at_once)
        CUDA(stack->kernel->steps->launch(stack, left < at_once ? left : at_once,
                                          plan->instance->device->stream));
    return STATUS_OK;
}

void stack_release(struct plan *plan)
{
    if (plan->stack)
        cudaFree(plan->stack->memory);
}
