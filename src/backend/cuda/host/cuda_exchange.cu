/* cuda_exchange.cu: see cuda_exchange.h. */
#include "backend/cuda/host/cuda_exchange.h"

#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/host/nccl.h"

enum { STAGED_ALIGN = 64 };

static bool communicates(const struct op *op)
{
    return op->kind == OP_all_reduce || op->kind == OP_wait || op->kind == OP_send ||
           op->kind == OP_receive || op->kind == OP_receive_add;
}

static uint64_t operand_bytes(const struct program *program, const struct op *op, int32_t i)
{
    return program->tensors[program->operands[op->first + i]].bytes;
}

/* Of one copy of its operands, of which outputs are inputs again. */
static size_t staged_bytes(const struct program *program, const struct op *op)
{
    const int32_t operands = op->kind == OP_receive ? op->outputs : op->inputs;
    size_t bytes = 0;
    for (int32_t i = 0; communicates(op) && op->kind != OP_wait && i < operands; i++)
        bytes += operand_bytes(program, op, i);
    return bytes;
}

/* The sum of which the op waits for an operand: the last one before it. */
static int32_t find_sum(const struct program *program, int32_t wait)
{
    const int32_t tensor = program->operands[program->ops[wait].first];
    for (int32_t o = wait - 1; o >= 0; o--)
        for (int32_t i = 0; program->ops[o].kind == OP_all_reduce && i < program->ops[o].inputs;
             i++)
            if (program->operands[program->ops[o].first + i] == tensor)
                return o;
    return -1;
}

/* All copies of a slot take turns in the same page-locked memory: they run in the stream's order.
 */
static enum status place_talks(struct plan *plan, const struct nccl *nccl)
{
    const struct program *program = plan->program;
    struct cuda_exchange *exchange = &plan->exchange;
    const size_t ops = (size_t)program->op_count;
    size_t total = 0;
    NEED(exchange->talks = (struct talk *)arena_array(&plan->arena, (size_t)plan->copies * ops,
                                                      sizeof *exchange->talks));
    for (size_t o = 0; o < ops; o++)
        total += (staged_bytes(program, &program->ops[o]) + STAGED_ALIGN - 1) / STAGED_ALIGN *
                 STAGED_ALIGN;
    if (total && !nccl)
        CUDA(cudaMallocHost((void **)&exchange->pinned, total));
    size_t at = 0;
    for (size_t o = 0; o < ops; o++) {
        const struct op *op = &program->ops[o];
        const size_t bytes = staged_bytes(program, op);
        const int32_t sum = op->kind == OP_wait ? find_sum(program, (int32_t)o) : -1;
        for (size_t copy = 0; copy < (size_t)plan->copies; copy++) {
            struct talk *talks = &exchange->talks[copy * ops];
            talks[o] = {&exchange->sums,
                        NULL,
                        nccl ? NULL : exchange->pinned + at,
                        bytes,
                        NULL,
                        sum,
                        op->kind == OP_all_reduce || op->kind == OP_wait ? nccl : NULL};
            if (sum >= 0)
                talks[o].sum = &talks[sum];
            if (exchange->messages.list)
                talks[o].message = &exchange->messages.list[copy * ops + o];
        }
        at += (bytes + STAGED_ALIGN - 1) / STAGED_ALIGN * STAGED_ALIGN;
    }
    return STATUS_OK;
}

enum status cuda_exchange_open(struct plan *plan, const struct plan_options *options)
{
    const struct program *program = plan->program;
    struct cuda_exchange *exchange = &plan->exchange;
    const struct nccl *nccl = NULL;
    bool any = false, sends = false;
    for (int32_t o = 0; o < program->op_count; o++) {
        any = any || communicates(&program->ops[o]);
        sends = sends || program->ops[o].kind == OP_send || program->ops[o].kind == OP_receive ||
                program->ops[o].kind == OP_receive_add;
    }
    if (!any || plan->dry)
        return STATUS_OK;
    if (plan->instance->loss_scale)
        FAIL(STATUS_UNSUPPORTED,
             "fp16: the ranks would scale the loss of '%s' apart; expected "
             "another precision, such as bf16",
             program->name);
    exchange->messages.comm = options->comm;
    exchange->messages.turn = options->turn;
    TRY(exchange_open(&exchange->sums, program, options, &plan->arena));
    TRY(messages_make(&exchange->messages, &plan->arena, program, plan->copies, NULL));
    if (!sends)
        TRY(nccl_join(plan->instance->device, options->comm, &nccl));
    return place_talks(plan, nccl);
}

void cuda_exchange_close(struct plan *plan)
{
    messages_finish(&plan->exchange.messages);
    if (plan->exchange.pinned)
        cudaFreeHost(plan->exchange.pinned);
}

enum status cuda_exchange_end(struct plan *plan)
{
    struct cuda_exchange *exchange = &plan->exchange;
    messages_finish(&exchange->messages);
    if (exchange->sums.comm)
        TRY(exchange_end(&exchange->sums));
    return messages_failure(&exchange->messages);
}

struct talk *cuda_exchange_talk(const struct plan *plan, int copy, int32_t op)
{
    const struct program *program = plan->program;
    return plan->exchange.talks && communicates(&program->ops[op])
               ? &plan->exchange.talks[(int64_t)copy * program->op_count + op]
               : NULL;
}
