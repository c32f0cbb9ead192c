/* ranks.cu: what ranks have in common, from within a step: see host/cuda_exchange.h. Bytes cross
 * the bus once each way; that is the floor of a sum through the host. */
#include "backend/cuda/host/cuda_exchange.h"
#include "backend/cuda/host/nccl.h"
#include "backend/cuda/plan/kernel_families.h"

/* What a rank has of no samples is not looked at: it may be no number. */
static __global__ void weigh_each(int64_t count, float share, float *x)
{
    FOR_EACH(index, count)
    x[index] = share != 0 ? x[index] * share : 0;
}

static void enqueue_copy(struct queue *queue, void *to, const void *from, size_t bytes)
{
    queue->launches++;
    queue->chained = 0;
    if (!queue->counting && queue->error == cudaSuccess)
        queue->error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream);
}

static void enqueue_host(struct queue *queue, cudaHostFn_t function, struct talk *talk)
{
    queue->launches++;
    queue->chained = 0;
    if (!queue->counting && queue->error == cudaSuccess)
        queue->error = cudaLaunchHostFunc(queue->stream, function, talk);
}

static void CUDART_CB start_sum(void *argument)
{
    struct talk *talk = (struct talk *)argument;
    exchange_start(talk->exchange, talk->staged, talk->bytes / sizeof(float), DTYPE_F32);
}

static void CUDART_CB await_sum(void *argument)
{
    struct talk *talk = (struct talk *)argument;
    exchange_wait(talk->exchange, talk->sum->staged);
}

static void CUDART_CB send_staged(void *argument)
{
    struct talk *talk = (struct talk *)argument;
    message_send(talk->message, talk->staged);
}

static void CUDART_CB add_staged(void *argument)
{
    struct talk *talk = (struct talk *)argument;
    message_receive_add(talk->message, talk->staged);
}

static void CUDART_CB receive_staged(void *argument)
{
    struct talk *talk = (struct talk *)argument;
    message_receive(talk->message, talk->staged);
}

static void weigh(const struct call *call, struct queue *queue)
{
    const int32_t samples = call->op->attr.all_reduce.samples, of = call->op->attr.all_reduce.of;
    for (int32_t i = 0; samples != of && i < call->op->inputs; i++) {
        const int64_t count = call_count(call, i);
        enqueue(queue, weigh_each, dim3(blocks_striding(count)), dim3(THREADS), count,
                (float)((double)samples / (double)of), call_reals(call, i));
    }
}

static void sum_by_nccl(const struct call *call, struct queue *queue)
{
    const struct nccl *nccl = call->talk->nccl;
    nccl_begin(nccl, queue);
    for (int32_t i = 0; i < call->op->inputs; i++)
        nccl_add(nccl, queue, call_reals(call, i), (size_t)call_count(call, i));
    nccl_end(nccl, queue);
}

void launch_all_reduce(const struct call *call, struct queue *queue)
{
    size_t at = 0;
    weigh(call, queue);
    if (call->talk && call->talk->nccl) {
        sum_by_nccl(call, queue);
        return;
    }
    for (int32_t i = 0; i < call->op->inputs; at += call_tensor(call, i++)->bytes)
        enqueue_copy(queue, call->talk ? call->talk->staged + at : NULL, call_reals(call, i),
                     call_tensor(call, i)->bytes);
    enqueue_host(queue, start_sum, call->talk);
}

/* Where the operand lies among those of the sum. */
static size_t place_in_sum(const struct call *call, int32_t operand)
{
    const struct program *program = call->program;
    const struct op *sum = &program->ops[call->talk->sum_op];
    const int32_t tensor = program->operands[call->op->first + operand];
    size_t at = 0;
    for (int32_t i = 0; i < sum->inputs && program->operands[sum->first + i] != tensor; i++)
        at += program->tensors[program->operands[sum->first + i]].bytes;
    return at;
}

void launch_wait(const struct call *call, struct queue *queue)
{
    if (call->talk && (call->talk->nccl || !call->talk->sum))
        return; /* in the stream's order */
    enqueue_host(queue, await_sum, call->talk);
    for (int32_t i = 0; i < call->op->inputs; i++)
        enqueue_copy(queue, call_reals(call, i),
                     call->talk ? call->talk->sum->staged + place_in_sum(call, i) : NULL,
                     call_tensor(call, i)->bytes);
}

void launch_send(const struct call *call, struct queue *queue)
{
    enqueue_copy(queue, call->talk ? call->talk->staged : NULL, call_reals(call, AT_send_x),
                 call_tensor(call, AT_send_x)->bytes);
    enqueue_host(queue, send_staged, call->talk);
}

/* The sum is the host's: the staged copy goes back. */
void launch_receive_add(const struct call *call, struct queue *queue)
{
    char *staged = call->talk ? call->talk->staged : NULL;
    const uint64_t bytes = call_tensor(call, AT_receive_add_x)->bytes;
    enqueue_copy(queue, staged, call_reals(call, AT_receive_add_x), bytes);
    enqueue_host(queue, add_staged, call->talk);
    enqueue_copy(queue, call_reals(call, AT_receive_add_x), staged, bytes);
}

void launch_receive(const struct call *call, struct queue *queue)
{
    enqueue_host(queue, receive_staged, call->talk);
    enqueue_copy(queue, call_reals(call, AT_receive_x), call->talk ? call->talk->staged : NULL,
                 call_tensor(call, AT_receive_x)->bytes);
}
