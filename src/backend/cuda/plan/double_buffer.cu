/* double_buffer.cu: see double_buffer.h. */
#include "backend/cuda/plan/double_buffer.h"

#include "backend/cuda/plan/steps.h"

static bool takes(const struct op *op)
{
    return op->kind == OP_rows || op->kind == OP_load;
}

bool double_buffer_has(const struct op *op)
{
    return takes(op) || op->kind == OP_store;
}

/* Does each step have its own of what the op touches, but for the bound data? */
static bool is_apart(const struct program *program, const struct op *op)
{
    for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
        const int32_t tensor = program->operands[op->first + i];
        const enum role role = tensor < 0 ? ROLE_INPUT : program->tensors[tensor].role;
        if (role != ROLE_INPUT && role != ROLE_OUTPUT && role != ROLE_ACTIVATION)
            return false;
    }
    return true;
}

bool double_buffer_takes(const struct plan *plan)
{
    const struct program *program = plan->program;
    /* A step that computes with more takes so long that its rows do not show. */
    const uint64_t most = plan->instance->device->properties.totalGlobalMem / 128;
    bool loads = false;
    if (program->whole || plan->slots > 1 || plan->observer.level != OBSERVE_NOTHING ||
        plan->slot_bytes > most)
        return false;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->part == PART_BACKWARD || op->part == PART_UPDATE ||
            (double_buffer_has(op) && !is_apart(program, op)))
            return false;
        loads = loads || op->kind == OP_load;
    }
    /* What is stored late needs its rows until then, so nothing may be computed behind it. */
    return loads && double_buffer_has(&program->ops[program->op_count - 1]);
}

enum status double_buffer_open(struct plan *plan)
{
    struct double_buffer *double_buffer = &plan->double_buffer;
    if (plan->copies == plan->slots)
        return STATUS_OK;
    CUDA(cudaEventCreateWithFlags(&double_buffer->taken, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&double_buffer->made, cudaEventDisableTiming));
    CUDA(cudaStreamCreateWithFlags(&double_buffer->stream, cudaStreamNonBlocking));
    return STATUS_OK;
}

void double_buffer_close(struct plan *plan)
{
    if (plan->double_buffer.taken)
        cudaEventDestroy(plan->double_buffer.taken);
    if (plan->double_buffer.made)
        cudaEventDestroy(plan->double_buffer.made);
    if (plan->double_buffer.stream)
        cudaStreamDestroy(plan->double_buffer.stream);
}

static void wait_for(cudaStream_t stream, cudaEvent_t event, struct queue *queue)
{
    if (queue->error == cudaSuccess)
        queue->error = cudaStreamWaitEvent(stream, event, 0);
}

static void record(cudaStream_t stream, cudaEvent_t event, struct queue *queue)
{
    if (queue->error == cudaSuccess)
        queue->error = cudaEventRecord(event, stream);
}

/* Enqueues what a step in this copy takes, or else what it stores. */
static void move_rows(const struct plan *plan, bool taken, int32_t copy, bool is_beside,
                      struct queue *queue)
{
    const struct program *program = plan->program;
    const struct call *calls = plan->calls + (int64_t)(copy & 1) * plan->step_count;
    struct queue beside = *queue;
    beside.stream = plan->double_buffer.stream;
    beside.chained = 0;
    beside.beside = is_beside;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const struct op *op = &program->ops[plan->steps[s].op];
        if (taken ? takes(op) : op->kind == OP_store)
            step_launch(&plan->steps[s], &calls[s], &beside);
    }
    queue->error = beside.error;
}

/* What is taken goes where the step before has computed and stored. */
void double_buffer_before(const struct plan *plan, int32_t steps, int32_t left, struct queue *queue)
{
    const bool first = left + 1 == steps;
    record(queue->stream, plan->double_buffer.made, queue);
    wait_for(plan->double_buffer.stream, plan->double_buffer.made, queue);
    if (first) {
        move_rows(plan, true, left, false, queue);
        record(plan->double_buffer.stream, plan->double_buffer.taken, queue);
    }
    wait_for(queue->stream, plan->double_buffer.taken, queue);
    queue->chained = 0;
    if (!first)
        move_rows(plan, false, left + 1, true, queue);
    if (left > 0)
        move_rows(plan, true, left - 1, true, queue);
    record(plan->double_buffer.stream, plan->double_buffer.taken, queue);
}

void double_buffer_after(const struct plan *plan, int32_t left, struct queue *queue)
{
    if (left > 0)
        return;
    record(queue->stream, plan->double_buffer.made, queue);
    wait_for(plan->double_buffer.stream, plan->double_buffer.made, queue);
    move_rows(plan, false, 0, false, queue);
    record(plan->double_buffer.stream, plan->double_buffer.taken, queue);
    wait_for(queue->stream, plan->double_buffer.taken, queue);
}
