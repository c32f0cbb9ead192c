/* side_stream.cu: see side_stream.h. */
#include "backend/cuda/plan/side_stream.h"

#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"
#include "backend/cuda/product/blas.h"

extern "C" {
#include "core/pass/layout.h"
}

/* Is the op the gradient or the update of a convolution's parameters, and so small that it leaves
 * most of a GPU to others? In 16 bits no update begins before all gradients are there. */
static bool is_small_gradient(const struct program *program, const struct op *op)
{
    enum { SMALL_BYTES = 8 << 20 };
    if (op->kind != OP_conv_dw && op->kind != OP_sum_channels && op->kind != OP_sgd)
        return false;
    for (int32_t i = 0; i < op->inputs; i++)
        if (program->tensors[op_input(program, op, i)].bytes > SMALL_BYTES)
            return false;
    return true;
}

/* Is the whole op beside the way from the data to the gradients? */
static bool is_beside(const struct program *program, int32_t o)
{
    switch (program->ops[o].kind) {
    case OP_schedule:
    case OP_mse:
    case OP_binary_cross_entropy:
    case OP_right_class:
    case OP_right_level:
    case OP_store:
    case OP_all_reduce: /* its wait is an op of its own */
    case OP_tick: return true;
    case OP_load: /* the first is what the first layer waits for */
        for (int32_t before = 0; before < o; before++)
            if (program->ops[before].kind == OP_load)
                return true;
        return false;
    default: return false;
    }
}

/* Does the op's side-stream work touch its operand i? */
static bool touches(const struct plan *plan, int32_t o, int32_t i)
{
    const uint32_t operands = plan->side.operands[o];
    return operands == SIDE_WHOLE_OP || (i < 32 && (operands >> i & 1));
}

/* Gives the activations that the op's side-stream work touches places of their own. */
static void take_places(struct plan *plan, int32_t o)
{
    const struct program *program = plan->program;
    const struct op *op = &program->ops[o];
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        const int32_t tensor = program->operands[op->first + i];
        if (!touches(plan, o, i) || tensor < 0)
            continue;
        const int32_t root = program_root(program, tensor);
        if (program->tensors[root].role != ROLE_ACTIVATION || plan->places[root].own >= 0)
            continue;
        plan->places[root].own = (int64_t)plan->side.places_bytes;
        plan->side.places_bytes +=
            (program->tensors[root].bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
    }
}

/* What the op does on the side stream, and the workspace of that. */
static void choose_op(struct plan *plan, int32_t o)
{
    const struct op *op = &plan->program->ops[o];
    const struct step *step = plan_step(plan, o);
    const struct kernel *kernel = step->kernel;
    const bool is_home = step->op == o,
               small = !plan->mixed && is_small_gradient(plan->program, op);
    const bool whole = small || is_beside(plan->program, o);
    const bool some = !whole && is_home && kernel->side_operands;
    const uint64_t bytes = whole                        ? step_workspace(plan, step)
                           : some && kernel->side_bytes ? kernel->side_bytes(plan->program, op)
                                                        : 0;
    const uint64_t twin = some && bytes ? dense_blas_twin_bytes(plan->program, op) : 0;
    plan->side.operands[o] = whole ? (uint32_t)SIDE_WHOLE_OP : some ? kernel->side_operands : 0;
    if (bytes > plan->side.bytes)
        plan->side.bytes = bytes;
    if (twin > plan->side.twin_bytes)
        plan->side.twin_bytes = twin;
    take_places(plan, o);
}

enum status side_stream_choose(struct plan *plan)
{
    const struct program *program = plan->program;
    const auto &backward = program->parts[PART_BACKWARD];
    NEED(plan->side.operands = (uint32_t *)arena_array(&plan->arena, (size_t)program->op_count + 1,
                                                       sizeof(uint32_t)));
    if (plan->observer.level != OBSERVE_NOTHING || backward.from == backward.to)
        return STATUS_OK;
    for (int32_t o = 0; o < program->op_count; o++)
        choose_op(plan, o);
    return STATUS_OK;
}

/* Does some of the step run there? */
static bool is_on_side(const struct plan *plan, int32_t s)
{
    return plan->side.operands[plan->steps[s].op] != 0;
}

enum status side_stream_open(struct plan *plan)
{
    struct side_stream *side = &plan->side;
    const int32_t steps = plan->step_count;
    bool some = false;
    for (int32_t s = 0; s < steps; s++)
        some = some || is_on_side(plan, s);
    if (!some)
        return STATUS_OK;
    NEED(side->pending = (bool *)arena_array(&plan->arena, (size_t)steps, sizeof(bool)));
    NEED(side->done = (cudaEvent_t *)arena_array(&plan->arena, (size_t)steps, sizeof *side->done));
    CUDA(cudaEventCreateWithFlags(&side->fork, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&side->join, cudaEventDisableTiming));
    CUDA(cudaStreamCreateWithFlags(&side->twin, cudaStreamNonBlocking));
    for (int32_t s = 0; s < steps; s++)
        if (is_on_side(plan, s))
            CUDA(cudaEventCreateWithFlags(&side->done[s], cudaEventDisableTiming));
    CUDA(cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking));
    return STATUS_OK;
}

void side_stream_close(struct plan *plan)
{
    struct side_stream *side = &plan->side;
    for (int32_t s = 0; side->done && s < plan->step_count; s++)
        if (side->done[s])
            cudaEventDestroy(side->done[s]);
    if (side->fork)
        cudaEventDestroy(side->fork);
    if (side->join)
        cudaEventDestroy(side->join);
    if (side->twin)
        cudaStreamDestroy(side->twin);
    if (side->stream)
        cudaStreamDestroy(side->stream);
    cudaFree(side->workspace);
    cudaFree(side->twin_workspace);
}

/* Do these operands of two ops lie in the same bytes, one of them being written? */
static bool operands_meet(const struct plan *plan, const struct op *a, int32_t i,
                          const struct op *b, int32_t k)
{
    const struct program *program = plan->program;
    const int32_t first = program->operands[a->first + i], second = program->operands[b->first + k];
    if (first < 0 || second < 0 || (i < a->inputs && k < b->inputs))
        return false;
    const char *x = (const char *)cuda_locate(plan, first, 0);
    const char *y = (const char *)cuda_locate(plan, second, 0);
    return x < y + program->tensors[second].bytes && y < x + program->tensors[first].bytes;
}

/* Must the op `next` wait for what `op` does on the side stream? */
static bool op_waits(const struct plan *plan, int32_t op, int32_t next)
{
    const struct program *program = plan->program;
    const struct op *a = &program->ops[op], *b = &program->ops[next];
    for (int32_t i = 0; i < a->inputs + a->outputs; i++)
        for (int32_t k = 0; k < b->inputs + b->outputs; k++)
            if (touches(plan, op, i) && operands_meet(plan, a, i, b, k))
                return true;
    return false;
}

/* … some op of the step `next` for some op of the step `s`? */
static bool step_waits(const struct plan *plan, int32_t s, int32_t next)
{
    const struct step *from = &plan->steps[s], *to = &plan->steps[next];
    for (int32_t a = from->first; a <= from->last; a++)
        for (int32_t b = to->first; plan->step_of[a] == s && b <= to->last; b++)
            if (plan->step_of[b] == next && op_waits(plan, a, b))
                return true;
    return false;
}

/* Work on the side stream is done in its order: to wait for one step's is to wait for those before
 * it. */
static void wait_for(const struct plan *plan, int32_t s, struct queue *queue)
{
    if (queue->error == cudaSuccess)
        queue->error = cudaStreamWaitEvent(queue->stream, plan->side.done[s], 0);
    queue->chained = 0;
    for (int32_t before = 0; before <= s; before++)
        plan->side.pending[before] = false;
}

/* Waits for what the step `next` needs; beyond the last step that is everything. */
static void wait_before(const struct plan *plan, int32_t next, struct queue *queue)
{
    for (int32_t s = plan->step_count - 1; queue->side && s >= 0; s--)
        if (plan->side.pending[s] && (next == plan->step_count || step_waits(plan, s, next))) {
            wait_for(plan, s, queue);
            return;
        }
}

void side_stream_enqueue(const struct plan *plan, const struct call *call, int32_t s,
                         struct queue *queue)
{
    const struct step *step = &plan->steps[s];
    const bool whole = queue->side && plan->side.operands[step->op] == SIDE_WHOLE_OP;
    cudaStream_t stream = queue->stream;
    queue->forked = false;
    if (whole)
        queue_fork(queue);
    else
        wait_before(plan, s, queue);
    step_launch(step, call, queue);
    queue_back(queue, stream);
    if (!queue->forked)
        return;
    if (queue->error == cudaSuccess)
        queue->error = cudaEventRecord(plan->side.done[s], queue->side);
    plan->side.pending[s] = true;
}

void side_stream_join(const struct plan *plan, struct queue *queue)
{
    wait_before(plan, plan->step_count, queue);
}
