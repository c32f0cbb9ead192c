/* answer_calls.cu: the host's side of plans that answer calls. */
#include "backend/cuda/stack/answer_calls.h"

#include "backend/cuda/narrow/stack_cores.h"
#include "backend/cuda/plan/kernel_row.h"

extern "C" {
#include "base/memory.h"
#include "core/binding.h"
}

/* Looks for an answer between two questions to the driver whether anything went wrong. */
enum { LOOKS_AT_ONCE = 1 << 14 };

static bool has_cores(const struct plan *plan)
{
    return plan->stack->kernel->steps == &steps_by_cores;
}

/* Where the parameters are. */
static void locate_net(const struct plan *plan, struct answer_net *net)
{
    const struct dense_stack *dense = plan->program->stack;
    for (int32_t l = 0; l < dense->layers; l++) {
        const float *w = (const float *)cuda_locate(plan, dense->layer[l].w, 0);
        const float *b = (const float *)cuda_locate(plan, dense->layer[l].b, 0);
        net->layer[l].w = w;
        net->layer[l].b = b;
        for (const float *at : {w, b})
            if (at && (!net->parameters || at < net->parameters))
                net->parameters = at;
    }
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

/* The call in this slot, whatever its number is: the question says it. */
static enum status capture_slot(struct plan *plan, uint32_t slot)
{
    struct answer *answer = plan->answer;
    cudaStream_t stream = plan->capture_stream;
    cudaGraph_t graph = NULL;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    const cudaError_t launched = answer->kernel->calls->launch(answer, slot, false, stream);
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

static enum status choose(const struct plan *plan, enum answering answering,
                          const struct kernel **out)
{
    struct choice choice = {};
    choice.device = plan->instance->device;
    choice.program = plan->program;
    choice.answering = answering;
    *out = plan->stack ? kernel_find_calls(&choice) : NULL;
    if (!*out && answering == ANSWER_RESIDENT)
        FAIL(STATUS_UNSUPPORTED,
             "the backend 'cuda' has no kernel that waits for calls of '%s': %s",
             plan->program->name, answer_why_none(plan));
    return STATUS_OK;
}

/* What the kernels need on the device. */
static enum status take_up(struct plan *plan)
{
    struct answer *answer = plan->answer;
    const struct answer_kernel *calls = answer->kernel->calls;
    void *memory;
    TRY(cuda_alloc(plan->instance->device, answer->bytes, "what lies between layers", &memory));
    answer->between = (float *)memory;
    TRY(make_mailbox(answer));
    if (has_cores(plan)) {
        TRY(stack_begin(plan));
        cores_listen(plan->stack, &answer->net.mail);
    } else {
        locate_net(plan, &answer->net);
    }
    if (answer->grid && !has_cores(plan))
        grid_listen(answer->grid, &answer->net.mail);
    if (answer->resident)
        return STATUS_OK;
    for (int i = 0; calls->stays && i < ANSWER_STREAMS; i++)
        CUDA(cudaStreamCreateWithFlags(&answer->streams[i], cudaStreamNonBlocking));
    for (uint32_t slot = 0; calls->launch && slot < MAIL_SLOTS; slot++)
        TRY(capture_slot(plan, slot));
    return STATUS_OK;
}

/* Is there a kernel for whole steps that can stay instead, and take calls? */
static bool can_stay(const struct plan *plan, const struct kernel *kernel)
{
    if (has_cores(plan))
        return cores_can_listen(plan->stack);
    return !kernel->calls->stays && grid_can_listen(plan->program->stack, plan->program->batch);
}

enum status answer_prepare(struct plan *plan, enum answering answering)
{
    const struct kernel *kernel = NULL;
    if (answering != ANSWER_STEPS)
        TRY(choose(plan, answering, &kernel));
    if (!kernel)
        return STATUS_OK;
    struct answer *answer = (struct answer *)arena_array(&plan->arena, 1, sizeof *answer);
    NEED(answer);
    answer->kernel = kernel;
    answer->gpu = &plan->instance->device->properties;
    answer->stack = plan->stack;
    answer->net = has_cores(plan) ? cores_sizes(plan->stack) : answer_sizes(plan->program);
    answer->resident = answering == ANSWER_RESIDENT;
    answer->grid = can_stay(plan, kernel) ? plan->stack : NULL;
    answer->queued =
        !answer->resident &&
        (has_cores(plan) ? answering == ANSWER_QUEUED && answer->grid : !kernel->calls->launch);
    if (kernel->calls->bytes && !answer->resident)
        answer->bytes = kernel->calls->bytes(&answer->net);
    plan->answer = answer;
    return plan->dry ? STATUS_OK : take_up(plan);
}

const struct answer_kernel calls_by_grid = {false, NULL, NULL, NULL};

int32_t answer_launches(const struct plan *plan, int32_t op)
{
    const struct answer *answer = plan->answer;
    const struct answer_kernel *calls = answer->kernel->calls;
    const struct dense_stack *dense = plan->program->stack;
    if (answer->resident || answer->queued)
        return 0;
    if (has_cores(plan))
        return cores_first_op(plan) == op;
    for (int32_t l = 0; l < dense->layers; l++)
        if (dense->layer[l].dense == op)
            return calls->launches ? calls->launches(&answer->net, l) : l == 0;
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
    if (has_cores(plan))
        TRY(cores_refresh(plan));
    if (!stays) {
        CUDA(cudaGraphLaunch(answer->slots[number % MAIL_SLOTS], stream_of(plan, number)));
        return STATUS_OK;
    }
    CUDA(answer->grid && !has_cores(plan)
             ? grid_launch_from(answer->grid, number, device->stream)
             : answer->kernel->calls->launch(answer, number, true, device->stream));
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
