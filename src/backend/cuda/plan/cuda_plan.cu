/* cuda_plan.cu: a program prepared for the GPU: memory, and for every op of every slot a call with
 * its device addresses worked out. A dry plan has the same calls without addresses: enough to count
 * bytes and launches. */
#include "backend/cuda/conv/conv.h"
#include "backend/cuda/conv/conv_nhwc.h"
#include "backend/cuda/conv/cudnn.h"
#include "backend/cuda/host/cuda_device.h"
#include "backend/cuda/host/stages.h"
#include "backend/cuda/host/tracer.h"
#include "backend/cuda/plan/nhwc.h"
#include "backend/cuda/product/blas.h"
#include "backend/cuda/stack/answer_calls.h"
#include "backend/cuda/stack/stack_run.h"

extern "C" {
#include "base/memory.h"
}

static const enum role per_slot[] = {ROLE_INPUT, ROLE_OUTPUT, ROLE_ACTIVATION, ROLE_SCRATCH};

/* In 16 bits: which tensors are, and the kernels that take them. */
static enum status choose_mixed(struct plan *plan, const bool *is_product)
{
    const struct program *program = plan->program;
    const struct instance *instance = plan->instance;
    bool some = false, scales = false;
    NEED(plan->mixed = (struct mixed *)arena_alloc(&plan->arena, sizeof *plan->mixed));
    NEED(plan->mixed->tensors =
             (bool *)arena_array(&plan->arena, (size_t)program->tensor_count + 1, sizeof(bool)));
    mixed_choose(program, is_product, plan->mixed->tensors);
    for (int32_t o = 0; o < program->op_count; o++) {
        some = some || is_product[o] || conv_nhwc_is_16bit(plan->kernels[o]);
        scales = scales || loss_scale_begins(program->ops[o].kind);
        if (!is_product[o] && mixed_touches(plan->mixed, program, &program->ops[o]))
            plan->kernels[o] = mixed_kernel(&program->ops[o]);
    }
    if (!some)
        FAIL(STATUS_UNSUPPORTED,
             "nothing of '%s' would be computed in 16 bits: the CUDA backend does so for products "
             "with 1,024 weights and more; use --precision fp32",
             program->name);
    plan->mixed->type = instance->device->precision;
    plan->mixed->params = instance->copy;
    plan->mixed->loss_scale = scales ? instance->loss_scale : NULL;
    return STATUS_OK;
}

/* Which images are NHWC, for the convolutions that want them so. */
static enum status choose_nhwc(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct cudnn *cudnn = plan->instance->device->cudnn;
    bool *reorders, *nhwc;
    NEED(reorders = (bool *)arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof(bool)));
    NEED(nhwc = (bool *)arena_array(&plan->arena, (size_t)program->tensor_count + 1, sizeof(bool)));
    for (int32_t o = 0; o < program->op_count; o++)
        reorders[o] = conv_nhwc_reorders(plan->kernels[o]) ||
                      cudnn_reorders(cudnn, plan->kernels[o], program, &program->ops[o]);
    if (nhwc_choose(program, reorders, nhwc))
        plan->nhwc = nhwc;
    return STATUS_OK;
}

uint64_t cuda_workspace(const struct plan *plan, int32_t o)
{
    const struct kernel *kernel = plan->kernels[o];
    const struct op *op = &plan->program->ops[o];
    return kernel->workspace_bytes
               ? cudnn_workspace(plan->instance->device->cudnn, kernel, plan->program, op,
                                 kernel->workspace_bytes(plan->program, op))
               : 0;
}

static enum status choose_kernels(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    bool *is_product;
    NEED(is_product =
             (bool *)arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof(bool)));
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const char *why = cuda_supports(device, program, op);
        if (why)
            FAIL(STATUS_UNSUPPORTED, "the backend 'cuda' cannot run the op %s (%s): %s",
                 op_name(op->kind), op->layer, why);
        plan->kernels[o] = dense_blas_kernel(device, program, op);
        is_product[o] = plan->kernels[o] != NULL;
        if (!is_product[o])
            plan->kernels[o] = cudnn_kernel(device->cudnn, program, op, plan->dry);
        if (!plan->kernels[o] && device->precision != PRECISION_FP32 && device->warpgroups)
            plan->kernels[o] = conv_nhwc_kernel(device->precision, program, op);
        if (!plan->kernels[o] && device->precision != PRECISION_FP32)
            plan->kernels[o] = conv_kernel_tf32(op);
        if (!plan->kernels[o])
            plan->kernels[o] = kernel_of(op->kind);
    }
    if (precision_is_16bit(device->precision))
        TRY(choose_mixed(plan, is_product));
    for (int32_t o = 0; o < program->op_count; o++) {
        const uint64_t bytes = cuda_workspace(plan, o);
        if (bytes > plan->workspace_bytes)
            plan->workspace_bytes = bytes;
    }
    TRY(choose_nhwc(plan));
    merge_choose(plan);
    TRY(activation_grad_choose(plan));
    TRY(side_stream_choose(plan));
    multi_tensor_choose(plan);
    return STATUS_OK;
}

static enum status take(struct plan *plan, uint64_t bytes, const char *what, char **out)
{
    void *memory;
    TRY(cuda_alloc(plan->instance->device, bytes, what, &memory));
    *out = (char *)memory;
    return STATUS_OK;
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
    TRY(take(plan, plan->act_grad_bytes, "what is left for updates", &plan->act_grad_memory));
    activation_grad_place(plan);
    TRY(take(plan, plan->side.bytes, "the plan's second workspace", &plan->side.workspace));
    TRY(take(plan, plan->side.twin_bytes, "the plan's third workspace",
             &plan->side.twin_workspace));
    TRY(take(plan, sizeof(struct feed) + views, "the plan's place in the data", &feed));
    plan->feed = (struct feed *)feed;
    plan->views = (struct feed_view *)(plan->feed + 1);
    NEED(plan->told = (struct feed *)arena_alloc(&plan->arena, sizeof(struct feed) + views));
    return STATUS_OK;
}

void *cuda_locate(const struct plan *plan, int32_t index, int copy)
{
    if (plan->dry || index < 0)
        return NULL;
    const struct tensor *tensor = &plan->program->tensors[index];
    if (role_is_kept(tensor->role))
        return plan->instance->blocks[tensor->role].data + tensor->offset;
    if (tensor->role == ROLE_GRAD)
        return plan->grads + tensor->offset;
    const int64_t own = plan->side.places[program_root(plan->program, index)];
    const uint64_t place = own < 0 ? plan->role_start[tensor->role] + tensor->offset
                                   : plan->slot_bytes - plan->side.places_bytes + (uint64_t)own;
    return plan->memory + (uint64_t)copy * plan->slot_bytes + place;
}

static void write_calls(struct plan *plan, void **operands)
{
    const struct program *program = plan->program;
    for (int copy = 0; copy < plan->copies; copy++) {
        for (int32_t i = 0; i < program->operand_count; i++)
            operands[i] = cuda_locate(plan, program->operands[i], copy);
        for (int32_t o = 0; o < program->op_count; o++) {
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
                                      plan->nhwc,
                                      activation_grad_below(plan, o)};
            plan->calls[(int64_t)copy * program->op_count + o] = call;
        }
        operands += program->operand_count;
    }
    for (int32_t o = 0; o < program->op_count; o++) {
        struct queue queue = {};
        queue.counting = true;
        queue.blas = plan->instance->device->blas;
        queue.cudnn = plan->instance->device->cudnn;
        mixed_launch(plan->kernels[o], &plan->calls[o], &queue);
        plan->launches[o] = queue.launches;
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

/* What cannot be answered through a mailbox is run call by call. */
static enum status prepare_answers(struct plan *plan, enum answering answering)
{
    const bool resident = answering == ANSWER_RESIDENT;
    if (answering == ANSWER_STEPS)
        return STATUS_OK;
    const char *why = answer_supports(plan, resident);
    if (!why)
        return answer_prepare(plan, answering);
    if (resident)
        FAIL(STATUS_UNSUPPORTED,
             "the backend 'cuda' has no kernel that waits for calls of '%s': %s",
             plan->program->name, why);
    return STATUS_OK;
}

/* Calls that have kernels of their own need nothing of those for whole steps. */
static bool runs_stack(const struct plan *plan)
{
    return plan->stack && (!plan->answer || plan->answer->grid);
}

static enum status fill_plan(struct plan *plan, enum answering answering)
{
    const struct program *program = plan->program;
    struct arena *arena = &plan->arena;
    const size_t ops = (size_t)program->op_count + 1, slots = (size_t)plan->slots;
    const size_t operand_count = (size_t)program->operand_count + 1;
    void **operands;
    NEED(plan->kernels = (const struct kernel **)arena_array(arena, ops, sizeof *plan->kernels));
    NEED(plan->launches = (int32_t *)arena_array(arena, ops, sizeof *plan->launches));
    NEED(plan->mirrors = (struct mirror *)arena_array(arena, (size_t)program->tensor_count + 1,
                                                      sizeof *plan->mirrors));
    NEED(plan->captures =
             (struct capture *)arena_array(arena, slots * (PARTS_ALL + 1), sizeof *plan->captures));
    TRY(choose_kernels(plan));
    for (enum role role : per_slot) {
        plan->role_start[role] = plan->slot_bytes;
        plan->slot_bytes += program->role_bytes[role];
    }
    plan->slot_bytes += plan->side.places_bytes; /* behind them */
    plan->copies = double_buffer_takes(plan) ? 2 : plan->slots;
    const size_t copies = (size_t)plan->copies;
    NEED(plan->calls = (struct call *)arena_array(arena, copies * ops, sizeof *plan->calls));
    NEED(operands = (void **)arena_array(arena, copies * operand_count, sizeof *operands));
    if (!plan->dry)
        TRY(take_memory(plan));
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
    TRY(prepare_answers(plan, answering));
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
    enum status status = fill_plan(plan, options->answering);
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
    if (plan->nhwc && plan->nhwc[tensor])
        nhwc_to_nchw(&queue, dim[0], image{(int32_t)dim[1], (int32_t)dim[2], (int32_t)dim[3], true},
                     (int32_t)dim[1], (const float *)cuda_locate(plan, tensor, 0), (float *)*out);
    else
        mixed_cast(&queue, shape_count(&kept->shape),
                   cells{cuda_locate(plan, tensor, 0), plan->mixed->type},
                   cells{*out, PRECISION_FP32});
    if (queue.error == cudaSuccess)
        return STATUS_OK;
    cudaFree(*out);
    return cuda_fail(__FILE__, __LINE__, queue.error, "restoring a tensor");
}

/* Is it between two ops that are one kernel? */
static bool is_left_out(const struct plan *plan, int32_t tensor)
{
    if (plan->program->tensors[tensor].role != ROLE_ACTIVATION)
        return false;
    for (int32_t o = 0; o < plan->program->op_count; o++) {
        const struct op *op = &plan->program->ops[o];
        if (activation_grad_below(plan, o) && op_output(plan->program, op, 2) == tensor)
            return true;
        if (plan->act_grads[o] && plan->act_grads[o]->few_outputs)
            continue; /* its result is there, whoever made it */
        for (int32_t i = 0; !plan->launches[o] && i < op->outputs; i++)
            if (op_output(plan->program, op, i) == tensor)
                return true;
    }
    return false;
}

enum status cuda_fetch(struct plan *plan, int32_t tensor, void *out)
{
    cudaStream_t stream = plan->instance->device->stream;
    const bool other =
        (plan->mixed && plan->mixed->tensors[tensor]) || (plan->nhwc && plan->nhwc[tensor]);
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

enum status cuda_explain(const struct plan *plan, struct arena *arena, struct explanation *out)
{
    const struct program *program = plan->program;
    *out = {};
    NEED(out->kernels = (struct kernel_use *)arena_array(arena, (size_t)program->op_count + 1,
                                                         sizeof *out->kernels));
    for (int32_t o = 0; o < program->op_count; o++) {
        struct kernel_use *use = &out->kernels[out->kernel_count];
        if (!plan->stack && !plan->kernels[o]->name)
            continue; /* a later op does its work */
        use->op = o;
        use->kernel = plan->answer  ? plan->answer->name
                      : plan->stack ? plan->stack->name
                                    : plan->kernels[o]->name;
        use->launches = plan->answer  ? answer_launches(plan, o)
                        : plan->stack ? 0
                                      : plan->launches[o];
        use->why = cuda_reason(plan, o, use->kernel);
        out->kernel_count++;
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
