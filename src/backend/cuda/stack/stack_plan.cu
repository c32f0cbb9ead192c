/* stack_plan.cu: a whole program on the host's side: which kernel takes it, its parameters, its
 * memory.
 */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/stack/stack_run.h"

extern "C" {
#include "base/memory.h"
}

/* Without a device: of the one the kernels were made on. */
static struct stack_limits limits_of(const struct device *device)
{
    struct stack_limits limits = {TARGET_MULTIPROCESSORS, TARGET_SHARED_BYTES};
    if (device) {
        limits.multiprocessors = device->properties.multiProcessorCount;
        limits.shared_bytes = (int32_t)device->properties.sharedMemPerBlockOptin;
    }
    return limits;
}

/* Why no kernel was chosen for a stack of dense layers. */
static const char *why_none(const struct dense_stack *dense, int32_t batch)
{
    static_assert(GRID_BATCH_MOST == 12 && GRID_LAST_MOST == 32, "the texts have these numbers");
    if (!stack_can_activate(dense))
        return "the slope of gelu needs what kernels for whole steps do not keep";
    if (dense->probabilities)
        return "it stores probabilities, which needs one block: layers at most 32 wide, 64 samples "
               "at most 8 wide, 32 of 16, 16 of 32";
    if (dense_widest(dense) <= BLOCK_WIDTH_MOST && dense->optimiser >= 0)
        return "with its optimiser's state it does not fit a block's shared memory";
    if (dense->optimiser >= 0)
        return "wide layers are trained whole by plain sgd alone";
    if (dense->counts_sigmoid)
        return "its right answers are counted on probabilities, which whole steps of wide layers "
               "do not make";
    if (dense->layer[dense->layers - 1].out > GRID_LAST_MOST)
        return "its last layer has more than 32 outputs";
    return batch > GRID_BATCH_MOST ? "its batch is more than 12 samples"
                                   : "it does not fit the multiprocessors' shared memory";
}

const char *stack_supports(const struct device *device, const struct program *program)
{
    const struct stack_limits limits = limits_of(device);
    if (!program->stack)
        return "it is not a plain stack of dense layers";
    return stack_choose(program->stack, program->batch, &limits) == STACK_NONE
               ? why_none(program->stack, program->batch)
               : NULL;
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

typedef cudaError_t stack_function(struct stack *, int64_t steps, cudaStream_t stream);

/* The kernels that run whole steps, by enum stack_kind, which is the order in which they are asked;
 * behind them the grid's for few samples. */
static const struct {
    const char *name, *why;
    stack_function *launch;
} rows[] = {
    {"", NULL, NULL},
    {"stack_warp_f32_cuda", "one sample of narrow layers: a warp keeps all weights in registers",
     warp_launch},
    {"stack_four_warps_f32_cuda",
     "few samples of narrow layers: each weight is kept by a thread of its own", four_warps_launch},
    {"stack_block_f32_cuda", "narrow layers: a block keeps the network in shared memory",
     block_launch},
    {"stack_replicas_f32_cuda",
     "many samples of narrow layers: each block keeps the network in shared memory and "
     "has a share of the samples",
     replicas_launch},
    {"stack_grid_f32_cuda",
     "few samples of wide dense layers: each multiprocessor keeps its tile of every "
     "layer's weights, and steps need no launch",
     grid_launch},
    {"stack_grid_registers_f32_cuda",
     "training of wide dense layers with up to four samples: each multiprocessor keeps its tile of "
     "the weights, and steps need no launch",
     grid_launch},
};

enum status stack_prepare(struct plan *plan, enum answering answering)
{
    const struct program *program = plan->program;
    const struct stack_limits limits = limits_of(plan->instance->device);
    const struct dense_stack *dense = program->stack;
    struct replicas_layout replicas;
    struct grid_layout grid;
    if (!dense)
        FAIL(STATUS_INPUT, "the program '%s' is marked whole and is no stack of layers",
             program->name);
    const enum stack_kind kind = stack_choose(dense, program->batch, &limits);
    int row = kind;
    if (answering != ANSWER_STEPS && (dense->probabilities || kind == STACK_REPLICAS))
        return STATUS_OK; /* calls are a graph of its ops, which no launch for steps beats */
    struct stack *stack = (struct stack *)arena_array(&plan->arena, 1, sizeof *stack);
    NEED(stack);
    stack->kind = kind;
    if (kind == STACK_GRID && grid_lay_out(dense, program->batch, &limits, &grid)) {
        stack->bytes = grid_bytes(&grid);
        row += grid.owns;
    }
    if (kind == STACK_REPLICAS && replicas_lay_out(dense, program->batch, &limits, &replicas))
        stack->bytes = replicas_bytes(&replicas);
    stack->name = rows[row].name;
    stack->why = rows[row].why;
    plan->stack = stack;
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
    const struct stack_limits limits = limits_of(plan->instance->device);
    struct stack *stack = plan->stack;
    const struct dense_stack *dense = plan->program->stack;
    struct replicas_layout replicas;
    struct grid_layout grid;
    void *memory;
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
    if (stack->kind == STACK_GRID && grid_lay_out(dense, step.batch, &limits, &grid))
        grid_prepare(stack, dense, &step, &grid);
    else if (stack->kind == STACK_REPLICAS &&
             replicas_lay_out(dense, step.batch, &limits, &replicas))
        replicas_prepare(stack, &step, &replicas);
    else
        block_prepare(stack, dense, &step);
    return STATUS_OK;
}

enum status stack_run(struct plan *plan, int64_t steps)
{
    /* of a launch: nobody waits for seconds to stop it */
    enum { STEPS_MOST = 1 << 16, SAMPLES_MOST = 1 << 30 };
    struct stack *stack = plan->stack;
    const int64_t most = (SAMPLES_MOST - 1) / plan->program->batch + 1;
    const int64_t at_once = most < STEPS_MOST ? most : (int64_t)STEPS_MOST;
    for (int64_t left = steps; left > 0; left -= at_once)
        CUDA(rows[stack->kind].launch(stack, left < at_once ? left : at_once,
                                      plan->instance->device->stream));
    return STATUS_OK;
}

void stack_release(struct plan *plan)
{
    if (plan->stack)
        cudaFree(plan->stack->memory);
}
