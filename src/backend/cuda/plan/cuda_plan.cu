/* cuda_plan.cu: a program prepared for the GPU: its steps (steps.h), memory, and for every step of
 * every slot a call with its device addresses worked out. A dry plan has the same calls without
 * addresses: enough to count bytes and launches. */
#include "backend/cuda/host/stages.h"
#include "backend/cuda/host/tracer.h"
#include "backend/cuda/ops/nhwc.h"
#include "backend/cuda/plan/kernel_row.h"
#include "backend/cuda/plan/steps.h"
#include "backend/cuda/stack/answer_calls.h"
#include "backend/cuda/stack/stack_run.h"

extern "C" {
#include "base/memory.h"
}

static const enum role per_slot[] = {ROLE_INPUT, ROLE_OUTPUT, ROLE_ACTIVATION, ROLE_SCRATCH};

static enum status take(struct plan *plan, uint64_t bytes, const char *what, char **out)
{
    void *memory;
    TRY(cuda_alloc(plan->instance->device, bytes, what, &memory));
    *out = (char *)memory;
    return STATUS_OK;
}

/* Where each tensor lies, once memory is taken. */
static void place_tensors(struct plan *plan)
{
    for (int32_t t = 0; t < plan->program->tensor_count; t++) {
        const struct tensor *tensor = &plan->program->tensors[t];
        const int64_t own = plan->places[program_root(plan->program, t)].own;
        struct place *place = &plan->places[t];
        if (role_is_kept(tensor->role))
            place->at = plan->instance->blocks[tensor->role].data + tensor->offset;
        else if (tensor->role == ROLE_GRAD)
            place->at = plan->grads + tensor->offset;
        else {
            place->apart = plan->slot_bytes;
            place->at = plan->memory +
                        (own < 0 ? plan->role_start[tensor->role] + tensor->offset
                                 : plan->slot_bytes - plan->side.places_bytes + (uint64_t)own);
        }
    }
}

static enum status take_memory(struct plan *plan)
{
    const struct program *program = plan->program;
    const uint64_t views = sizeof(struct feed_view) * (uint64_t)program->tensor_count;
    char *feed;
    size_t bytes;
    if (!size_mul(plan->slot_bytes, (size_t)plan->copies, &bytes))
        FAIL(STATUS_MEMORY, "%d slots of '%s' are more than can be addressed", plan->slots,
             program->name);
    TRY(take(plan, bytes, "the plan's activations", &plan->memory));
    TRY(take(plan, program->role_bytes[ROLE_GRAD], "the plan's gradients", &plan->grads));
    TRY(take(plan, plan->workspace_bytes, "the plan's workspace", &plan->workspace));
    TRY(take(plan, plan->act_grad_bytes, "gradients kept for updates", &plan->act_grad_memory));
    activation_grad_place(plan);
    TRY(take(plan, plan->side.bytes, "the plan's second workspace", &plan->side.workspace));
    TRY(take(plan, plan->side.twin_bytes, "the plan's third workspace",
             &plan->side.twin_workspace));
    TRY(take(plan, sizeof(struct feed) + views, "the plan's place in the data", &feed));
    plan->feed = (struct feed *)feed;
    plan->views = (struct feed_view *)(plan->feed + 1);
    place_tensors(plan);
    NEED(plan->told = (struct feed *)arena_alloc(&plan->arena, sizeof(struct feed) + views));
    return STATUS_OK;
}

void *cuda_locate(const struct plan *plan, int32_t tensor, int copy)
{
    if (plan->dry || tensor < 0)
        return NULL;
    return plan->places[tensor].at + (uint64_t)copy * plan->places[tensor].apart;
}

static void write_calls(struct plan *plan, void **operands)
{
    const struct program *program = plan->program;
    for (int copy = 0; copy < plan->copies; copy++) {
        for (int32_t i = 0; i < program->operand_count; i++)
            operands[i] = cuda_locate(plan, program->operands[i], copy);
        for (int32_t s = 0; s < plan->step_count; s++) {
            const int32_t o = plan->steps[s].op;
            const bool whole = plan->side.operands[o] == SIDE_WHOLE_OP;
            const struct call call = {program,
                                      &program->ops[o],
                                      operands + program->ops[o].first,
                                      whole ? plan->side.workspace : plan->workspace,
                                      plan->instance->control,
                                      plan->feed,
                                      plan->views,
                                      plan->side.workspace,
                                      plan->side.twin_workspace,
                                      plan->mixed,
                                      plan->act_grads[o],
                                      plan->places,
                                      activation_grad_below(plan, o),
                                      cuda_exchange_talk(plan, copy, o)};
            plan->calls[(int64_t)copy * plan->step_count + s] = call;
        }
        operands += program->operand_count;
    }
    for (int32_t s = 0; s < plan->step_count; s++) {
        struct queue queue = {};
        queue.counting = true;
        queue.blas = plan->instance->device->blas;
        queue.cudnn = plan->instance->device->cudnn;
        step_launch(&plan->steps[s], &plan->calls[s], &queue);
        plan->steps[s].launches = queue.launches;
    }
}

/* What an observed plan needs to time each op (or part) of a step. */
static enum status make_marks(struct plan *plan)
{
    if (plan->observer.level == OBSERVE_NOTHING)
        return STATUS_OK;
    const int32_t ops = plan->program->op_count;
    if (plan->observer.level == OBSERVE_OPS && tracer_open()) {
        plan->spans =
            (struct span *)arena_array(&plan->arena, (size_t)ops + 1, sizeof *plan->spans);
        if (!plan->spans)
            tracer_close();
        NEED(plan->spans);
        return STATUS_OK;
    }
    int32_t marks = plan->observer.level == OBSERVE_OPS ? ops : PART_COUNT;
    NEED(plan->marks =
             (cudaEvent_t *)arena_array(&plan->arena, (size_t)marks + 1, sizeof *plan->marks));
    for (; plan->mark_count < marks + 1; plan->mark_count++)
        CUDA(cudaEventCreate(&plan->marks[plan->mark_count]));
    return STATUS_OK;
}

/* Calls that have kernels of their own need nothing of those for whole steps. */
static bool runs_stack(const struct plan *plan)
{
    return plan->stack &&
           (!plan->answer || plan->answer->grid || plan->stack->kernel->steps == &steps_by_cores);
}

static enum status fill_plan(struct plan *plan, const struct plan_options *options)
{
    const enum answering answering = options->answering;
    const struct program *program = plan->program;
    struct arena *arena = &plan->arena;
    const size_t slots = (size_t)plan->slots;
    const size_t operand_count = (size_t)program->operand_count + 1;
    void **operands;
    NEED(plan->mirrors = (struct mirror *)arena_array(arena, (size_t)program->tensor_count + 1,
                                                      sizeof *plan->mirrors));
    NEED(plan->captures =
             (struct capture *)arena_array(arena, slots * (PARTS_ALL + 1), sizeof *plan->captures));
    TRY(steps_choose(plan));
    for (enum role role : per_slot) {
        plan->role_start[role] = plan->slot_bytes;
        plan->slot_bytes += program->role_bytes[role];
    }
    plan->slot_bytes += plan->side.places_bytes; /* behind them */
    plan->copies = double_buffer_takes(plan) ? 2 : plan->slots;
    const size_t copies = (size_t)plan->copies, steps = (size_t)plan->step_count + 1;
    NEED(plan->calls = (struct call *)arena_array(arena, copies * steps, sizeof *plan->calls));
    NEED(operands = (void **)arena_array(arena, copies * operand_count, sizeof *operands));
    if (!plan->dry)
        TRY(take_memory(plan));
    TRY(cuda_exchange_open(plan, options));
    write_calls(plan, operands);
    if (program->whole && plan->observer.level == OBSERVE_NOTHING && plan->slots == 1)
        TRY(stack_prepare(plan, answering));
    if (!plan->dry) {
        TRY(make_marks(plan));
        TRY(stages_open(plan));
        TRY(side_stream_open(plan));
        TRY(double_buffer_open(plan));
        CUDA(cudaStreamCreateWithFlags(&plan->capture_stream, cudaStreamNonBlocking));
    }
    TRY(answer_prepare(plan, answering));
    if (runs_stack(plan) && !plan->dry)
        TRY(stack_begin(plan));
    return plan->dry || plan->stack ? STATUS_OK : cuda_capture(plan, PARTS_ALL, 0);
}

enum status cuda_prepare(struct instance *instance, const struct program *program,
                         const struct plan_options *options, struct plan **out)
{
    if (program->real != DTYPE_F32)
        FAIL(STATUS_UNSUPPORTED, "the CUDA backend computes in f32, and the program '%s' in %s",
             program->name, dtype_name(program->real));
    if (program->entries > instance->entries)
        FAIL(STATUS_INPUT,
             "the program '%s' needs parameters that the instance does not have: attach after all "
             "programs are compiled",
             program->name);
    if (instance->device->paper && !options->dry)
        FAIL(STATUS_INPUT, "there is no GPU: '%s' can only be explained", program->name);
    TRY(cuda_use(instance->device));
    struct plan *plan = (struct plan *)mem_alloc(sizeof *plan);
    NEED(plan);
    plan->instance = instance;
    plan->program = program;
    plan->observer = options->observer;
    plan->dry = options->dry;
    plan->slots = options->slots ? options->slots : 1;
    enum status status = fill_plan(plan, options);
    if (status != STATUS_OK) {
        cuda_release(plan);
        return status;
    }
    *out = plan;
    return STATUS_OK;
}

void cuda_release(struct plan *plan)
{
    if (!plan)
        return;
    (void)cuda_use(plan->instance->device);
    cudaStreamSynchronize(plan->instance->device->stream);
    for (unsigned i = 0; plan->captures && i < (unsigned)plan->slots * (PARTS_ALL + 1); i++)
        for (cudaGraphExec_t steps : plan->captures[i].steps)
            if (steps)
                cudaGraphExecDestroy(steps);
    for (int32_t i = 0; i < plan->mark_count; i++)
        cudaEventDestroy(plan->marks[i]);
    stages_close(plan);
    cuda_exchange_close(plan);
    if (plan->spans)
        tracer_close();
    for (int32_t i = 0; plan->mirrors && i < plan->program->tensor_count; i++) {
        if (!plan->mirrors[i].mapped)
            mem_free(plan->mirrors[i].flags);
        cuda_forget_mirror(plan->instance->device, &plan->mirrors[i]);
    }
    if (plan->capture_stream)
        cudaStreamDestroy(plan->capture_stream);
    intake_end(plan);
    answer_release(plan);
    stack_release(plan);
    cudaFree(plan->order);
    mem_free(plan->order_told);
    cudaFree(plan->feed);
    side_stream_close(plan);
    double_buffer_close(plan);
    cudaFree(plan->act_grad_memory);
    cudaFree(plan->workspace);
    cudaFree(plan->grads);
    cudaFree(plan->memory);
    (void)cudaGetLastError(); /* a lost device also fails to free; sync has said so */
    arena_free(&plan->arena);
    mem_free(plan);
}

/* A tensor as the host expects it, in memory of the device: *out is to be freed. */
static enum status restore(const struct plan *plan, int32_t tensor, void **out)
{
    const struct tensor *kept = &plan->program->tensors[tensor];
    const int64_t *dim = kept->shape.dim;
    struct queue queue = {};
    queue.stream = plan->instance->device->stream;
    TRY(cuda_alloc(plan->instance->device, kept->bytes, "a tensor that is fetched", out));
    const struct image image = {(int32_t)dim[1], (int32_t)dim[2], (int32_t)dim[3], true};
    if (plan->places[tensor].nhwc && kept->dtype == DTYPE_U8)
        nhwc_bytes_to_nchw(&queue, dim[0], image, (const uint8_t *)cuda_locate(plan, tensor, 0),
                           (uint8_t *)*out);
    else if (plan->places[tensor].nhwc)
        nhwc_to_nchw(&queue, dim[0], image, (int32_t)dim[1],
                     (const float *)cuda_locate(plan, tensor, 0), (float *)*out);
    else
        mixed_cast(&queue, shape_count(&kept->shape),
                   cells{cuda_locate(plan, tensor, 0), plan->mixed->type},
                   cells{*out, PRECISION_FP32});
    if (queue.error == cudaSuccess)
        return STATUS_OK;
    cudaFree(*out);
    return cuda_fail(__FILE__, __LINE__, queue.error, "restoring a tensor");
}

/* Is it between two ops of one step, or handed on in pieces? */
static bool is_left_out(const struct plan *plan, int32_t tensor)
{
    if (plan->program->tensors[tensor].role != ROLE_ACTIVATION)
        return false;
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        const struct op *op = &plan->program->ops[o];
        if (activation_grad_below(plan, o) && op_output(plan->program, op, 2) == tensor)
            return true;
        for (int32_t i = 0; plan_step(plan, o)->last != o && i < op->outputs; i++)
            if (op_output(plan->program, op, i) == tensor)
                return true;
    }
    return false;
}

enum status cuda_fetch(struct plan *plan, int32_t tensor, void *out)
{
    cudaStream_t stream = plan->instance->device->stream;
    const struct place *place = &plan->places[tensor];
    const bool other = precision_is_16bit(place->type) || place->nhwc;
    void *restored = NULL;
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan has nothing to fetch");
    TRY(program_check_fetch(plan->program, tensor));
    if (is_left_out(plan, tensor))
        FAIL(STATUS_INPUT, "the tensor '%s' of '%s' is not kept: two ops are one kernel",
             plan->program->tensors[tensor].name, plan->program->name);
    TRY(cuda_use(plan->instance->device));
    if (other)
        TRY(restore(plan, tensor, &restored));
    cudaError_t error =
        cudaMemcpyAsync(out, other ? restored : cuda_locate(plan, tensor, 0),
                        plan->program->tensors[tensor].bytes, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    cudaFree(restored);
    CUDA(error);
    return STATUS_OK;
}

/* One kernel for all ops: of calls the launches of one, of steps none, since a launch has many. */
static void explain_stack(const struct plan *plan, struct explanation *out)
{
    const struct kernel *row = plan->answer ? plan->answer->kernel : plan->stack->kernel;
    for (int32_t o = 0; o < plan->program->op_count; o++)
        out->kernels[out->kernel_count++] = {o, row->name,
                                             plan->answer ? answer_launches(plan, o) : 0, row->why};
}

enum status cuda_explain(const struct plan *plan, struct arena *arena, struct explanation *out)
{
    const struct program *program = plan->program;
    *out = {};
    NEED(out->kernels = (struct kernel_use *)arena_array(arena, (size_t)program->op_count + 1,
                                                         sizeof *out->kernels));
    if (plan->stack)
        explain_stack(plan, out);
    for (int32_t s = 0; !plan->stack && s < plan->step_count; s++) {
        const struct step *step = &plan->steps[s];
        out->kernels[out->kernel_count++] = {step->op, step->kernel->name, step->launches,
                                             step->kernel->why};
    }
    out->role_bytes[ROLE_GRAD] = program->role_bytes[ROLE_GRAD];
    for (enum role role : per_slot)
        out->role_bytes[role] = program->role_bytes[role] * (uint64_t)plan->copies;
    out->role_bytes[ROLE_ACTIVATION] += plan->side.places_bytes * (uint64_t)plan->copies;
    out->role_bytes[ROLE_SCRATCH] +=
        plan->workspace_bytes + plan->side.bytes + plan->side.twin_bytes + plan->act_grad_bytes +
        (runs_stack(plan) ? plan->stack->bytes : 0) + (plan->answer ? plan->answer->bytes : 0);
    return STATUS_OK;
}
