/* answer_calls.cu: the host's side of plans that answer calls. */
#include "backend/cuda/stack/answer_calls.h"

extern "C" {
#include "base/memory.h"
#include "core/binding.h"
}

/* Looks for an answer between two questions to the driver whether anything went wrong. */
enum { LOOKS_AT_ONCE = 1 << 14 };

static const char *why_not_answered(const struct plan *plan)
{
    const struct dense_stack *dense = plan->program->stack;
    const char *why = plan->program->op_by_op ? plan->program->op_by_op
                      : plan->program->whole  ? NULL
                                              : "each op is watched";
    if (!why && !plan->stack) /* stack_prepare */
        why = plan->observer.level != OBSERVE_NOTHING ? "each op is watched"
              : dense->probabilities                  ? "it stores probabilities"
                                     : "its batch is more than the 512 threads of a block hold";
    return why || (dense->loss < 0 && dense->store_y >= 0) ? why : "it is not inference";
}

static void describe_net(const struct plan *plan, const struct dense_stack *dense,
                         struct answer_net *net)
{
    struct block_layout layout;
    block_lay_out(dense, plan->program->batch, &layout);
    net->batch = plan->program->batch;
    net->layers = dense->layers;
    net->width = layout.width;
    net->mail.inputs = net->batch * dense->layer[0].in;
    net->mail.outputs = net->batch * dense->layer[dense->layers - 1].out;
    const struct tensor *tensors = plan->program->tensors;
    const char *parameters = plan->instance->blocks[ROLE_PARAM].data;
    uint64_t begin = UINT64_MAX, end = 0;
    for (int32_t l = 0; l < dense->layers; l++) {
        const struct dense_stack_layer *from = &dense->layer[l];
        for (int32_t tensor : {from->w, from->b}) {
            if (tensor < 0)
                continue;
            begin = tensors[tensor].offset < begin ? tensors[tensor].offset : begin;
            const uint64_t behind = tensors[tensor].offset + tensors[tensor].bytes;
            end = behind > end ? behind : end;
        }
        net->layer[l].in = from->in;
        net->layer[l].out = from->out;
        net->layer[l].function = from->activation;
        net->layer[l].w = (const float *)cuda_locate(plan, from->w, 0);
        net->layer[l].b = (const float *)cuda_locate(plan, from->b, 0);
    }
    const uint64_t most = 1 << 24; /* of what is not narrow nobody asks */
    net->span = (int32_t)((end - begin < most ? end - begin : most) / sizeof(float));
    net->parameters = plan->dry ? NULL : (const float *)(parameters + begin);
}

const char *answer_supports(const struct plan *plan, bool resident)
{
    struct answer_net net = {};
    const struct dense_stack *dense = plan->program->stack;
    const char *why = why_not_answered(plan);
    if (why)
        return why;
    describe_net(plan, dense, &net);
    const int64_t most = (int64_t)plan->instance->device->properties.sharedMemPerBlockOptin;
    static_assert(GRID_THREADS == 512, "the text has this number");
    if (plan->stack->kind != STACK_GRID)
        return answer_block_bytes(&net) <= 48 << 10
                   ? NULL
                   : "its weights and samples are more than 48 KB of shared memory";
    if (resident)
        return grid_can_listen(dense, net.batch)
                   ? NULL
                   : "a call may bring 512 numbers at most, inputs times samples";
    return answer_layers_take(&net, most) ? NULL : "its layers are too wide for that";
}

/* The mailbox: a line for the host's word, then questions, then answers. */
static enum status make_mailbox(struct answer *answer)
{
    struct mailbox *mail = &answer->net.mail;
    const size_t questions = (size_t)MAIL_SLOTS * mail->slot_notes(mail->inputs);
    const size_t answers = (size_t)MAIL_SLOTS * mail->slot_notes(mail->outputs);
    const size_t notes = MAIL_LINE + questions + answers;
    void *memory;
    CUDA(cudaHostAlloc(&memory, notes * sizeof(uint64_t), cudaHostAllocMapped));
    memset(memory, 0, notes * sizeof(uint64_t));
    answer->memory = (uint64_t *)memory;
    mail->stop = answer->memory;
    mail->questions = answer->memory + MAIL_LINE;
    mail->answers = mail->questions + questions;
    return STATUS_OK;
}

static cudaError_t launch_narrow(const struct answer_net *net, uint32_t first, bool stays,
                                 cudaStream_t stream)
{
    return (answer_warp_takes(net) ? answer_warp_launch : answer_block_launch)(net, first, stays,
                                                                               stream);
}

/* The call in this slot, whatever its number is: the question says it. */
static enum status capture_slot(struct plan *plan, uint32_t slot)
{
    struct answer *answer = plan->answer;
    cudaStream_t stream = plan->capture_stream;
    cudaGraph_t graph = NULL;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    cudaError_t launched =
        answer->flows ? answer_flow_launch(&answer->flow, slot, stream)
        : answer->between
            ? answer_layers_launch(&answer->net, answer->between,
                                   plan->instance->device->properties.major >= 9, slot, stream)
            : launch_narrow(&answer->net, slot, false, stream);
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (launched != cudaSuccess)
        error = launched;
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&answer->slots[slot], graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    if (error != cudaSuccess)
        return cuda_fail(__FILE__, __LINE__, error, "capturing a call");
    return STATUS_OK;
}

/* The kernels that answer a call each, in the order in which they are asked. */
static const struct {
    const char *name, *why;
} rows[] = {
    {"answer_warp_f32_cuda", "calls of narrow layers: one warp answers"},
    {"answer_block_f32_cuda", "calls of narrow layers: one block answers"},
    {"answer_flow_f32_cuda",
     "calls of several samples of wide layers: one kernel on all multiprocessors, "
     "the next layer's weights on their way while this one's sums are exchanged"},
    {"answer_layers_f32_cuda", "calls of few samples of wide layers: a kernel a layer, its weights "
                               "on their way before the one below is done"},
};

static void name_kernel(const struct plan *plan, struct answer *answer)
{
    const bool narrow = plan->stack->kind != STACK_GRID;
    const int row = narrow ? !answer_warp_takes(&answer->net) : answer->flows ? 2 : 3;
    const bool stays = !narrow && (answer->resident || answer->queued);
    answer->name = stays ? plan->stack->name : rows[row].name;
    answer->why = stays ? plan->stack->why : rows[row].why;
}

enum status answer_prepare(struct plan *plan, enum answering answering)
{
    const bool narrow = plan->stack->kind != STACK_GRID, resident = answering == ANSWER_RESIDENT;
    const struct dense_stack *dense = plan->program->stack;
    void *memory;
    struct answer *answer = (struct answer *)arena_array(&plan->arena, 1, sizeof *answer);
    NEED(answer);
    describe_net(plan, dense, &answer->net);
    answer->resident = resident;
    answer->grid = !narrow && grid_can_listen(dense, answer->net.batch) ? plan->stack : NULL;
    const cudaDeviceProp *gpu = &plan->instance->device->properties;
    answer->queued = answering == ANSWER_QUEUED && answer->grid;
    answer->flows = !narrow && !resident && answer_flow_takes(&answer->net, gpu);
    name_kernel(plan, answer);
    answer->bytes = narrow || resident ? 0
                    : answer->flows    ? answer_flow_bytes(&answer->net, gpu)
                                       : answer_layers_bytes(&answer->net);
    plan->answer = answer;
    if (plan->dry)
        return STATUS_OK;
    TRY(cuda_alloc(plan->instance->device, answer->bytes, "what lies between layers", &memory));
    answer->between = (float *)memory;
    TRY(make_mailbox(answer));
    if (answer->grid)
        grid_listen(answer->grid, &answer->net.mail);
    for (int i = 0; narrow && !resident && i < ANSWER_STREAMS; i++)
        CUDA(cudaStreamCreateWithFlags(&answer->streams[i], cudaStreamNonBlocking));
    if (answer->flows)
        CUDA(answer_flow_prepare(&answer->net, gpu, memory, &answer->flow));
    for (uint32_t slot = 0; !resident && slot < MAIL_SLOTS; slot++)
        TRY(capture_slot(plan, slot));
    return STATUS_OK;
}

int32_t answer_launches(const struct plan *plan, int32_t op)
{
    const struct answer *answer = plan->answer;
    const bool narrow = plan->stack->kind != STACK_GRID;
    const struct dense_stack *dense = plan->program->stack;
    if (answer->resident || answer->queued)
        return 0;
    for (int32_t l = 0; l < dense->layers; l++)
        if (dense->layer[l].dense == op)
            return narrow || answer->flows ? l == 0 : answer_layers_launches(&answer->net, l);
    return 0;
}

enum status answer_bind(struct plan *plan, const struct binding *binding)
{
    struct answer *answer = plan->answer;
    uint64_t samples;
    uint32_t *order = NULL;
    TRY(answer_sync(plan)); /* what was asked so far belongs to the views bound so far */
    TRY(binding_check(plan->program, binding, &samples));
    if (binding->order) {
        const size_t count = (size_t)binding->order_count;
        NEED(order = (uint32_t *)mem_array(count, sizeof *order));
        memcpy(order, binding->order, count * sizeof *order);
    }
    for (int32_t i = 0; i < plan->program->tensor_count; i++)
        plan->mirrors[i].host = NULL;
    answer->y = NULL;
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        plan->mirrors[view->tensor].host = view->data; /* for who checks that data is bound */
        if (binding_port(plan->program, view->tensor)->kind == OP_store)
            answer->y = (float *)view->data;
        else
            answer->x = (const float *)view->data;
    }
    mem_free(answer->order);
    answer->order = order;
    answer->samples = samples;
    answer->asking = answer->answering = binding->start;
    return STATUS_OK;
}

/* The row of the data that sample `n` of the call at `place` is. */
static uint64_t row_of(const struct answer *answer, uint64_t place, int32_t n)
{
    const uint64_t sample = (place + (uint64_t)n) % answer->samples;
    return answer->order ? answer->order[sample] : sample;
}

static cudaStream_t stream_of(const struct plan *plan, uint32_t number)
{
    cudaStream_t own = plan->answer->streams[number % ANSWER_STREAMS];
    return own ? own : plan->instance->device->stream;
}

/* Someone who can answer from this call on: for it alone, or who stays. */
static enum status send_kernel(struct plan *plan, uint32_t number, bool stays)
{
    struct answer *answer = plan->answer;
    struct device *device = plan->instance->device;
    if (!stays) {
        CUDA(cudaGraphLaunch(answer->slots[number % MAIL_SLOTS], stream_of(plan, number)));
        return STATUS_OK;
    }
    CUDA(answer->grid ? grid_launch_from(answer->grid, number, device->stream)
                      : launch_narrow(&answer->net, number, true, device->stream));
    answer->waits = true;
    return STATUS_OK;
}

static bool is_answered(const struct answer *answer, uint32_t number)
{
    const volatile uint64_t *notes = answer->net.mail.answer(number);
    for (int32_t i = answer->net.mail.outputs - 1; i >= 0; i--)
        if (note_number(notes[i]) != number)
            return false;
    return true;
}

/* Looks until the call is answered. A kernel that stays may have left: then another one is sent,
 * which finds the question there. */
static enum status wait_for_answer(struct plan *plan, uint32_t number)
{
    struct answer *answer = plan->answer;
    for (;;) {
        for (int look = 0; look < LOOKS_AT_ONCE; look++)
            if (is_answered(answer, number))
                return STATUS_OK;
        const cudaError_t error = cudaStreamQuery(stream_of(plan, number));
        if (error == cudaErrorNotReady)
            continue;
        CUDA(error);
        if (is_answered(answer, number))
            return STATUS_OK;
        if (!answer->waits)
            FAIL(STATUS_DEVICE, "the GPU has ended a call of '%s' without an answer",
                 plan->program->name);
        TRY(send_kernel(plan, number, true));
    }
}

/* The answer that is due next, to where its rows are bound. */
static enum status collect(struct plan *plan)
{
    struct answer *answer = plan->answer;
    const int32_t batch = answer->net.batch, out = answer->net.layer[answer->net.layers - 1].out;
    const uint32_t number = answer->collected + 1;
    const uint64_t *notes = answer->net.mail.answer(number);
    TRY(wait_for_answer(plan, number));
    for (int32_t n = 0; answer->y && n < batch; n++) {
        float *row = answer->y + row_of(answer, answer->answering, n) * (uint64_t)out;
        for (int32_t o = 0; o < out; o++)
            row[o] = note_value(notes[n * out + o]);
    }
    answer->answering += (uint64_t)batch;
    answer->collected = number;
    return STATUS_OK;
}

static void write_question(struct answer *answer, uint32_t number)
{
    const int32_t batch = answer->net.batch, in = answer->net.layer[0].in;
    volatile uint64_t *notes = answer->net.mail.question(number);
    for (int32_t n = 0; n < batch; n++) {
        const float *row = answer->x + row_of(answer, answer->asking, n) * (uint64_t)in;
        for (int32_t i = 0; i < in; i++)
            notes[n * in + i] = note_of(row[i], number);
    }
    answer->asking += (uint64_t)batch;
    answer->asked = number;
}

enum status answer_run(struct plan *plan, int64_t calls)
{
    struct answer *answer = plan->answer;
    struct device *device = plan->instance->device;
    if (device->answering != plan) {
        TRY(cuda_use(device));
        if (answer->streams[0])
            CUDA(cudaStreamSynchronize(device->stream)); /* what came before may be parameters */
        device->answering = plan;
    }
    for (; calls > 0; calls--) {
        const bool queued = answer->queued || answer->asked != answer->collected;
        if (answer->asked - answer->collected == MAIL_SLOTS)
            TRY(collect(plan));
        write_question(answer, answer->asked + 1);
        if (!answer->waits)
            TRY(send_kernel(plan, answer->asked, answer->resident || (queued && answer->grid)));
    }
    return STATUS_OK;
}

/* Who waits for a question leaves. */
static enum status dismiss(struct plan *plan)
{
    volatile uint64_t *stop = plan->answer->net.mail.stop;
    *stop = 1;
    const cudaError_t error = cudaStreamSynchronize(plan->instance->device->stream);
    *stop = 0;
    plan->answer->waits = false;
    CUDA(error);
    return STATUS_OK;
}

enum status answer_sync(struct plan *plan)
{
    while (plan->answer->collected != plan->answer->asked)
        TRY(collect(plan));
    return plan->answer->waits && !plan->answer->resident ? dismiss(plan) : STATUS_OK;
}

/* What was asked is answered first. */
enum status answer_stop(struct device *device)
{
    struct plan *plan = device->answering;
    if (!plan)
        return STATUS_OK;
    const enum status status = answer_sync(plan), left = dismiss(plan);
    device->answering = NULL;
    TRY(status);
    return left;
}

void answer_release(struct plan *plan)
{
    if (!plan->answer)
        return;
    for (cudaStream_t stream : plan->answer->streams)
        if (stream)
            cudaStreamDestroy(stream);
    for (cudaGraphExec_t slot : plan->answer->slots)
        if (slot)
            cudaGraphExecDestroy(slot);
    cudaFree(plan->answer->between);
    cudaFreeHost(plan->answer->memory);
    mem_free(plan->answer->order);
}
