/* stack_choice.cu: which stacks of dense layers each kernel for whole steps takes, and why none
 * does. The rows are in plan/kernel_list.def. */
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/narrow/stack_cores.h"
#include "backend/cuda/plan/kernel_families.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/stack/stack_run.h"

struct stack_limits stack_limits_of(const struct device *device)
{
    struct stack_limits limits = {TARGET_MULTIPROCESSORS, TARGET_SHARED_BYTES};
    if (device) {
        limits.multiprocessors = device->properties.multiProcessorCount;
        limits.shared_bytes = (int32_t)device->properties.sharedMemPerBlockOptin;
    }
    return limits;
}

/* One warp and four have kernels without branches, for the usual kinds of networks. */
static bool has_warp_kernel(const struct dense_stack *dense)
{
    const enum activation hidden = dense->layer[0].activation;
    const enum activation last = dense->layer[dense->layers - 1].activation;
    for (int32_t l = 0; l < dense->layers - 1; l++)
        if (dense->layer[l].activation != hidden)
            return false;
    if (last != ACTIVATION_NONE)
        return hidden == ACTIVATION_SIGMOID && last == ACTIVATION_SIGMOID;
    return hidden == ACTIVATION_SIGMOID || hidden == ACTIVATION_RELU || hidden == ACTIVATION_TANH;
}

bool takes_stack_four_warps(const struct choice *choice)
{
    const struct dense_stack *dense = choice->program->stack;
    return !dense->probabilities && dense->layers >= WARP_LAYERS_LEAST &&
           dense->layers <= WARP_LAYERS_MOST && choice->program->batch <= FOUR_WARPS_BATCH_MOST &&
           dense_widest(dense) <= WARP_WIDTH_MOST && has_warp_kernel(dense);
}

/* Plain sgd only: a warp has each weight several times, too often for another rule. */
bool takes_stack_warp(const struct choice *choice)
{
    return choice->program->batch == 1 && choice->program->stack->optimiser < 0 &&
           takes_stack_four_warps(choice);
}

/* Only a block makes probabilities: a softmax as a step's last act would slow all others. Calls
 * that want them are a graph of their ops, which no launch for steps beats. */
bool takes_stack_block(const struct choice *choice)
{
    const struct dense_stack *dense = choice->program->stack;
    const struct stack_limits limits = stack_limits_of(choice->device);
    struct block_layout layout;
    if (dense_widest(dense) > BLOCK_WIDTH_MOST || choice->program->batch > BLOCK_THREADS_MOST ||
        (dense->probabilities && (dense->loss_grad >= 0 || choice->answering != ANSWER_STEPS)))
        return false;
    block_lay_out(dense, choice->program->batch, &layout);
    return layout.threads <= BLOCK_THREADS_MOST && layout.shared_bytes <= limits.shared_bytes;
}

/* Calls of many samples likewise. */
bool takes_stack_replicas(const struct choice *choice)
{
    const struct dense_stack *dense = choice->program->stack;
    const struct stack_limits limits = stack_limits_of(choice->device);
    struct replicas_layout layout;
    return !dense->probabilities && choice->answering == ANSWER_STEPS &&
           dense_widest(dense) <= BLOCK_WIDTH_MOST &&
           replicas_lay_out(dense, choice->program->batch, &limits, &layout);
}

bool takes_stack_grid(const struct choice *choice)
{
    const struct dense_stack *dense = choice->program->stack;
    const struct stack_limits limits = stack_limits_of(choice->device);
    struct grid_layout layout;
    return !dense->probabilities && dense->optimiser < 0 && !dense->counts_sigmoid &&
           grid_lay_out(dense, choice->program->batch, &limits, &layout);
}

/* Why no kernel was chosen for a stack of dense layers. */
static const char *why_none(const struct dense_stack *dense, int32_t batch)
{
    static_assert(GRID_BATCH_MOST == 12 && GRID_TRAINED_MOST == 16 && GRID_LAST_MOST == 32,
                  "the texts have these numbers");
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
    if (batch > (dense->loss_grad >= 0 ? (int)GRID_TRAINED_MOST : (int)GRID_BATCH_MOST))
        return dense->loss_grad >= 0 ? "its batch is more than 16 samples"
                                     : "its batch is more than 12 samples";
    return "it does not fit the multiprocessors' shared memory";
}

const char *stack_supports(const struct device *device, const struct program *program)
{
    struct choice choice = {};
    choice.device = device;
    choice.program = program;
    if (kernel_find_steps(&choice))
        return NULL;
    if (!program->stack || (device && precision_is_16bit(device->precision)))
        return cores_why_none(device, program);
    return why_none(program->stack, program->batch);
}
