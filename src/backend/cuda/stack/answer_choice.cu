/* answer_choice.cu: which calls each kernel takes, and why none does. The rows are in
 * plan/kernel_list.def. */
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/stack/answer_calls.h"

struct answer_net answer_sizes(const struct program *program)
{
    const struct dense_stack *dense = program->stack;
    struct answer_net net = {};
    struct block_layout layout;
    block_lay_out(dense, program->batch, &layout);
    net.batch = program->batch;
    net.layers = dense->layers;
    net.width = layout.width;
    net.mail.inputs = net.batch * dense->layer[0].in;
    net.mail.outputs = net.batch * dense->layer[dense->layers - 1].out;
    uint64_t begin = UINT64_MAX, end = 0;
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *from = &dense->layer[l];
        net.layer[l].in = from->in;
        net.layer[l].out = from->out;
        net.layer[l].function = from->activation;
        for (int32_t place : {from->w, from->b}) {
            if (place < 0)
                continue;
            const struct tensor *tensor = &program->tensors[place];
            begin = tensor->offset < begin ? tensor->offset : begin;
            end = tensor->offset + tensor->bytes > end ? tensor->offset + tensor->bytes : end;
        }
    }
    const uint64_t most = 1 << 24; /* of what is not narrow nobody asks */
    net.span = (int32_t)((end - begin < most ? end - begin : most) / sizeof(float));
    return net;
}

static bool is_inference(const struct dense_stack *dense)
{
    return dense->loss < 0 && dense->store_y >= 0;
}

/* The kernel that would do the same as steps, of calls that are answered through a mailbox. */
static const struct stack_kernel *steps_of(const struct choice *choice)
{
    const struct kernel *row =
        is_inference(choice->program->stack) ? kernel_find_steps(choice) : NULL;
    return row ? row->steps : NULL;
}

enum { BLOCK_BYTES_MOST = 48 << 10 };

static bool is_narrow(const struct choice *choice)
{
    const struct stack_kernel *steps = steps_of(choice);
    const struct answer_net net = answer_sizes(choice->program);
    return steps && steps != &steps_by_grid && answer_block_bytes(&net) <= BLOCK_BYTES_MOST;
}

/* A call by the block takes as long where layers are at most 16 wide; what stays is quicker. */
bool takes_answer_warp(const struct choice *choice)
{
    enum { WIDE = 32 };
    const struct answer_net net = answer_sizes(choice->program);
    return is_narrow(choice) && answer_warp_takes(&net) &&
           (choice->answering == ANSWER_RESIDENT || net.width == WIDE);
}

bool takes_answer_block(const struct choice *choice)
{
    return is_narrow(choice);
}

/* Calls that follow each other: its kernel stays. */
bool takes_answer_grid(const struct choice *choice)
{
    return (choice->answering == ANSWER_RESIDENT || choice->answering == ANSWER_QUEUED) &&
           steps_of(choice) == &steps_by_grid &&
           grid_can_listen(choice->program->stack, choice->program->batch);
}

bool takes_answer_layers(const struct choice *choice)
{
    const struct answer_net net = answer_sizes(choice->program);
    return choice->answering != ANSWER_RESIDENT && steps_of(choice) == &steps_by_grid &&
           answer_layers_take(&net, stack_limits_of(choice->device).shared_bytes);
}

const char *answer_why_none(const struct plan *plan)
{
    const struct program *program = plan->program;
    if (program->op_by_op)
        return program->op_by_op;
    if (!program->whole || plan->observer.level != OBSERVE_NOTHING)
        return "each op is watched";
    if (plan->stack && plan->stack->kernel->steps == &steps_by_cores)
        return "a call may bring 2,048 numbers at most, inputs times samples";
    if (program->stack->probabilities)
        return "it stores probabilities";
    if (!plan->stack)
        return "its batch is more than the 512 threads of a block hold";
    if (!is_inference(program->stack))
        return "it is not inference";
    static_assert(GRID_THREADS == 512, "the text has this number");
    return plan->stack->kernel->steps == &steps_by_grid
               ? "a call may bring 512 numbers at most, inputs times samples"
               : "its weights and samples are more than 48 KB of shared memory";
}
