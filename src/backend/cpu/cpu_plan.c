/* cpu_plan.c: a program prepared for the CPU: every op becomes a call with its pointers worked out,
 * and running is walking the list. */
#include "backend/cpu/blocked.h"
#include "backend/cpu/cpu_device.h"
#include "backend/cpu/rounded.h"
#include "core/comm/exchange.h"
#include "core/comm/message.h"

#include "base/clock.h"
#include "base/memory.h"
#include "core/binding.h"
#include "core/pass/layout.h"

#include <string.h>

struct plan {
    struct arena arena; /* calls and tables */
    struct instance *instance;
    const struct program *program;
    struct observer observer;
    bool dry;
    int slots;
    char *grads;            /* gradients, in the form of their parameters … */
    uint64_t *grad_offsets; /* … per entry */
    uint64_t grad_bytes;    /* that they take beside the activations */
    bool grads_inside;      /* they lie where activations were */
    char *workspace;        /* of the kernel that needs most */
    uint64_t workspace_bytes;
    char *memory;        /* slots × slot_bytes: inputs, outputs, activations, scratch */
    uint64_t slot_bytes; /* of one slot */
    uint64_t role_start[ROLE_COUNT];
    const struct kernel **kernels; /* per op … */
    const struct kernel **inner;   /* … and what multiplies for it (rounded.h); NULL: itself */
    bool *repacks; /* per op: it changes weights that may have packed copies; NULL: none does */
    const struct whole *whole; /* runs all parts together; NULL: they run op by op */
    char *whole_state;
    uint64_t whole_changes; /* of the instance, at the end of its last run */
    struct call *calls;     /* slots × ops */
    struct bound *bound;    /* per op; used by load and store */
    struct bound_view {     /* per view of the last binding that was checked … */
        int32_t tensor, port;
    } * bound_views;
    int32_t bound_view_count; /* … and how many there are; 0: none was */
    int32_t unbound;          /* the first load that has no data; -1: all have */
    struct cursor cursor;
    struct exchange exchange;
    struct messages messages;
    uint32_t *order; /* the plan's copy */
};

static const enum role per_slot[] = {ROLE_INPUT, ROLE_OUTPUT, ROLE_ACTIVATION, ROLE_SCRATCH};

static void *locate(const struct plan *plan, int32_t index, int slot)
{
    if (index < 0)
        return NULL;
    const struct tensor *tensor = &plan->program->tensors[index];
    if (role_is_kept(tensor->role))
        return plan->instance->places[tensor->entry].data;
    if (tensor->role == ROLE_GRAD)
        return plan->grads + plan->grad_offsets[tensor->entry];
    return plan->memory + (uint64_t)slot * plan->slot_bytes + plan->role_start[tensor->role] +
           tensor->offset;
}

/* The parameters must be kept as the program's marks say: it may have been compiled for others. */
static enum status check_places(const struct plan *plan)
{
    const struct program *program = plan->program;
    const struct instance *instance = plan->instance;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        const struct tensor *tensor = &program->tensors[t];
        if (tensor->entry >= 0 &&
            instance->places[tensor->entry].blocked !=
                (instance->device->kernels.blocks &&
                 blocked_wanted(tensor->matrix, tensor->dtype, &tensor->shape)))
            FAIL(STATUS_INPUT,
                 "the program '%s' and the instance do not keep '%s' in the same form: "
                 "attach the parameters the program was compiled for",
                 program->name, tensor->name);
    }
    return STATUS_OK;
}

/* Makes the copies of weights that kernels want packed. */
static enum status pack_weights(struct plan *plan)
{
    const struct program *program = plan->program;
    for (int32_t o = 0; !plan->dry && o < program->op_count; o++) {
        const struct kernel *kernel = plan->kernels[o];
        if (kernel->packs)
            TRY(cpu_pack(
                plan->instance,
                program->tensors[program->operands[program->ops[o].first + kernel->packed]].entry,
                kernel->packs));
    }
    return STATUS_OK;
}

/* The entry of the weights that output i of an op changes and that may have packed copies, also
 * of another plan; -1: it is none. */
static int32_t changed_entry(const struct plan *plan, const struct op *op, int32_t i)
{
    int32_t index = op_output(plan->program, op, i);
    const struct tensor *tensor = index < 0 ? NULL : &plan->program->tensors[index];
    return tensor && tensor->role == ROLE_PARAM && plan->instance->places[tensor->entry].blocked
               ? tensor->entry
               : -1;
}

/* Only devices of a lower precision have packed copies. */
static enum status find_repacks(struct plan *plan)
{
    const struct program *program = plan->program;
    if (plan->instance->device->kernels.precision == PRECISION_FP32 || !program->updates)
        return STATUS_OK;
    NEED(plan->repacks =
             arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof *plan->repacks));
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; i < program->ops[o].outputs; i++)
            if (changed_entry(plan, &program->ops[o], i) >= 0)
                plan->repacks[o] = true;
    return STATUS_OK;
}

static void run_op(struct plan *plan, int32_t o, const struct call *call)
{
    const struct op *op = &plan->program->ops[o];
    plan->kernels[o]->run(call);
    for (int32_t i = 0; plan->repacks && plan->repacks[o] && i < op->outputs; i++)
        if (changed_entry(plan, op, i) >= 0)
            cpu_repack(plan->instance, changed_entry(plan, op, i));
}

/* In a lower precision something must be computed in it, or it would be fp32 by another name. */
static enum status check_precision(const struct plan *plan)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    bool some = device->kernels.precision == PRECISION_FP32;
    for (int32_t o = 0; o < program->op_count && !some; o++)
        some = plan->kernels[o]->precision == device->kernels.precision;
    if (!some)
        FAIL(STATUS_UNSUPPORTED,
             "nothing of '%s' is a product that %s would change; use "
             "--precision fp32",
             program->name, precision_name(device->kernels.precision));
    return STATUS_OK;
}

static enum status choose_kernels(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct device *device = plan->instance->device;
    NEED(plan->kernels =
             arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof *plan->kernels));
    NEED(plan->inner =
             arena_array(&plan->arena, (size_t)program->op_count + 1, sizeof *plan->inner));
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        plan->kernels[o] = kernel_of(&device->kernels, program, op);
        if (!plan->kernels[o] || !plan->kernels[o]->run)
            FAIL(STATUS_UNSUPPORTED, "the backend '%s' cannot run the op %s (%s): %s",
                 device->backend->name, op_name(op->kind), op->layer,
                 cpu_supports(device, program, op));
        if (kernel_is_rounded(plan->kernels[o]))
            plan->inner[o] = kernel_in(&device->kernels, program, op, PRECISION_FP32);
    }
    TRY(check_precision(plan));
    if (program->whole && plan->observer.level != OBSERVE_PARTS && plan->slots == 1)
        plan->whole = device->kernels.whole;
    return STATUS_OK;
}

/* Does a step leave gradients to the next one, which adds to them? */
static bool accumulates(const struct program *program)
{
    for (int32_t o = program->parts[PART_UPDATE].from; o < program->parts[PART_UPDATE].to; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; op->kind != OP_clip && i < op->outputs; i++) {
            int32_t tensor = op_output(program, op, i);
            if (tensor >= 0 && program->tensors[tensor].role == ROLE_GRAD)
                return true;
        }
    }
    return false;
}

/* In the block of the activations, which gets longer by grad_bytes. */
static enum status lay_grads_inside(struct plan *plan)
{
    const struct instance *instance = plan->instance;
    uint64_t *bytes, block_bytes;
    NEED(bytes = arena_array(&plan->arena, (size_t)instance->entries + 1, sizeof *bytes));
    for (int32_t e = 0; e < instance->entries; e++)
        bytes[e] = instance->places[e].bytes;
    TRY(layout_grads(plan->program, bytes, plan->grad_offsets, &block_bytes));
    plan->grad_bytes = block_bytes - plan->program->role_bytes[ROLE_ACTIVATION];
    plan->grads_inside = true;
    return STATUS_OK;
}

/* Gradients that are reduced together lie in one piece: they are one message. */
static void lay_out_grad(struct plan *plan, int32_t tensor)
{
    const int32_t entry = plan->program->tensors[tensor].entry;
    if (plan->program->tensors[tensor].role != ROLE_GRAD || plan->grad_offsets[entry] != UINT64_MAX)
        return;
    const uint64_t bytes = plan->instance->places[entry].bytes;
    plan->grad_offsets[entry] = plan->grad_bytes;
    plan->grad_bytes += (bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

/* A gradient is stored as its parameter is, so that updates are elementwise. Slots share gradients;
 * with one, and none left to the next step or to others, they lie where activations were. */
static enum status lay_out_grads(struct plan *plan)
{
    const struct program *program = plan->program;
    const struct instance *instance = plan->instance;
    NEED(plan->grad_offsets =
             arena_array(&plan->arena, (size_t)instance->entries + 1, sizeof *plan->grad_offsets));
    if (plan->slots == 1 && !plan->whole && !accumulates(program))
        return lay_grads_inside(plan);
    memset(plan->grad_offsets, 0xff, (size_t)instance->entries * sizeof *plan->grad_offsets);
    for (int32_t o = 0; o < program->op_count; o++)
        for (int32_t i = 0; program->ops[o].kind == OP_all_reduce && i < program->ops[o].inputs;
             i++)
            lay_out_grad(plan, op_input(program, &program->ops[o], i));
    for (int32_t t = 0; program->role_bytes[ROLE_GRAD] && t < program->tensor_count; t++)
        lay_out_grad(plan, t);
    return STATUS_OK;
}

static void find_workspace(struct plan *plan)
{
    const struct program *program = plan->program;
    int threads = pool_at_once(plan->instance->device->pool);
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const struct kernel *kernel = plan->inner[o] ? plan->inner[o] : plan->kernels[o];
        uint64_t bytes = kernel->workspace ? kernel->workspace(program, op, threads) : 0;
        if (plan->inner[o])
            bytes += rounded_bytes(program, op, &plan->instance->device->kernels);
        if (bytes > plan->workspace_bytes)
            plan->workspace_bytes = bytes;
    }
}

static enum status take_memory(struct plan *plan)
{
    const struct program *program = plan->program;
    TRY(lay_out_grads(plan));
    find_workspace(plan);
    for (size_t i = 0; i < sizeof per_slot / sizeof *per_slot; i++) {
        plan->role_start[per_slot[i]] = plan->slot_bytes;
        plan->slot_bytes += program->role_bytes[per_slot[i]];
        if (per_slot[i] == ROLE_ACTIVATION && plan->grads_inside)
            plan->slot_bytes += plan->grad_bytes;
    }
    if (plan->dry)
        return STATUS_OK;
    const struct device *device = plan->instance->device;
    size_t bytes;
    if (!size_mul((size_t)plan->slot_bytes, (size_t)plan->slots, &bytes) ||
        !(plan->memory = cpu_memory(device, bytes)) ||
        (!plan->grads_inside && !(plan->grads = cpu_memory(device, plan->grad_bytes))) ||
        !(plan->workspace = cpu_memory(device, plan->workspace_bytes)) ||
        (plan->whole && !(plan->whole_state = cpu_memory(device, plan->whole->bytes(program)))))
        FAIL(STATUS_MEMORY,
             "out of memory: the plan needs %.1f MB; a smaller batch needs less, and "
             "so do fewer units or chains",
             ((double)plan->slot_bytes * plan->slots + (double)plan->grad_bytes +
              (double)plan->workspace_bytes) /
                 1e6);
    if (plan->grads_inside)
        plan->grads = plan->memory + plan->role_start[ROLE_ACTIVATION];
    return STATUS_OK;
}

/* Elements of a tensor as it is stored: a matrix in blocks is padded. */
static int64_t stored_count(const struct plan *plan, int32_t index)
{
    if (index < 0)
        return 0;
    const struct tensor *tensor = &plan->program->tensors[index];
    if (tensor->entry >= 0 && tensor->view_of < 0 && plan->instance->places[tensor->entry].blocked)
        return (int64_t)(plan->instance->places[tensor->entry].bytes / dtype_bytes(tensor->dtype));
    return shape_count(&tensor->shape);
}

static void find_unbound(struct plan *plan)
{
    const struct program *program = plan->program;
    plan->unbound = -1;
    for (int32_t o = program->parts[PART_PREPARE].from; o < program->parts[PART_PREPARE].to; o++)
        if (plan->unbound < 0 && program->ops[o].kind == OP_load && !plan->bound[o].data)
            plan->unbound = o;
}

static const void *packed_of(const struct plan *plan, int32_t o)
{
    const struct program *program = plan->program;
    const struct kernel *kernel = plan->kernels[o];
    if (!kernel->packs)
        return NULL;
    int32_t weights = program->operands[program->ops[o].first + kernel->packed];
    return plan->instance->places[program->tensors[weights].entry].packed[kernel->packs];
}

static enum status write_calls(struct plan *plan)
{
    const struct program *program = plan->program;
    struct instance *instance = plan->instance;
    size_t ops = (size_t)program->op_count, operands = (size_t)program->operand_count;
    size_t slots = (size_t)plan->slots;
    const struct tensor **tensors;
    void **data;
    int64_t *counts;
    NEED(counts = arena_array(&plan->arena, operands + 1, sizeof *counts));
    NEED(plan->calls = arena_array(&plan->arena, slots * ops + 1, sizeof *plan->calls));
    NEED(plan->bound = arena_array(&plan->arena, ops + 1, sizeof *plan->bound));
    NEED(plan->bound_views = arena_array(&plan->arena, ops + 1, sizeof *plan->bound_views));
    NEED(tensors = arena_array(&plan->arena, operands + 1, sizeof *tensors));
    NEED(data = arena_array(&plan->arena, slots * operands + 1, sizeof *data));
    for (size_t i = 0; i < operands; i++) {
        int32_t index = program->operands[i];
        tensors[i] = index < 0 ? NULL : &program->tensors[index];
        counts[i] = stored_count(plan, index);
        for (size_t slot = 0; slot < slots; slot++)
            data[slot * operands + i] = locate(plan, index, (int)slot);
    }
    for (size_t slot = 0; slot < slots; slot++)
        for (size_t o = 0; o < ops; o++) {
            const struct op *op = &program->ops[o];
            plan->calls[slot * ops + o] = (struct call){
                .op = op,
                .tensors = tensors + op->first,
                .data = data + slot * operands + (size_t)op->first,
                .counts = counts + op->first,
                .workspace = plan->workspace,
                .control = &instance->control,
                .cursor = &plan->cursor,
                .bound = &plan->bound[o],
                .pool = instance->device->pool,
                .packed = packed_of(plan, (int32_t)o),
                .inner = plan->inner[o],
                .exchange = &plan->exchange,
            };
        }
    find_unbound(plan);
    TRY(messages_make(&plan->messages, &plan->arena, program, plan->slots, counts));
    for (size_t i = 0; plan->messages.list && i < slots * ops; i++)
        plan->calls[i].message = &plan->messages.list[i];
    if (plan->whole)
        plan->whole->prepare(plan->whole_state, program, plan->calls, plan->kernels);
    return STATUS_OK;
}

enum status cpu_prepare(struct instance *instance, const struct program *program,
                        const struct plan_options *options, struct plan **out)
{
    if (program->real != instance->real || program->entries > instance->entries)
        FAIL(STATUS_INPUT,
             "the program '%s' needs parameters that the instance does not have: "
             "attach after all programs are compiled",
             program->name);
    if (options->answering == ANSWER_RESIDENT)
        FAIL(STATUS_UNSUPPORTED,
             "a CPU computes where it is called, and nothing has to stay there");
    struct plan *plan = mem_alloc(sizeof *plan);
    NEED(plan);
    plan->instance = instance;
    plan->program = program;
    plan->observer = options->observer;
    plan->dry = options->dry;
    plan->slots = options->slots ? options->slots : 1;
    plan->messages = (struct messages){
        .comm = options->comm, .traffic = options->traffic, .turn = options->turn};
    enum status status = check_places(plan);
    if (status == STATUS_OK)
        status = exchange_open(&plan->exchange, program, options, &plan->arena);
    if (status == STATUS_OK)
        status = choose_kernels(plan);
    if (status == STATUS_OK)
        status = pack_weights(plan);
    if (status == STATUS_OK)
        status = find_repacks(plan);
    if (status == STATUS_OK)
        status = take_memory(plan);
    if (status == STATUS_OK && !plan->dry)
        status = write_calls(plan);
    if (status != STATUS_OK) {
        cpu_release(plan);
        return status;
    }
    *out = plan;
    return STATUS_OK;
}

void cpu_release(struct plan *plan)
{
    if (!plan)
        return;
    messages_finish(&plan->messages);
    mem_free_large(plan->memory, (size_t)plan->slot_bytes * (size_t)plan->slots);
    if (!plan->grads_inside)
        mem_free_large(plan->grads, (size_t)plan->grad_bytes);
    mem_free_large(plan->workspace, (size_t)plan->workspace_bytes);
    if (plan->whole)
        mem_free_large(plan->whole_state, plan->whole->bytes(plan->program));
    mem_free(plan->order);
    arena_free(&plan->arena);
    mem_free(plan);
}

static enum status copy_order(struct plan *plan, const struct binding *binding)
{
    mem_free(plan->order);
    plan->order = NULL;
    if (!binding->order)
        return STATUS_OK;
    size_t count = (size_t)binding->order_count;
    NEED(plan->order = mem_array(count, sizeof *plan->order));
    memcpy(plan->order, binding->order, count * sizeof *plan->order);
    return STATUS_OK;
}

/* Binds what differs from the last binding in its addresses and its start alone, as that of one
 * call after another does: it needs no other check. False: it differs otherwise. */
static bool bind_alike(struct plan *plan, const struct binding *binding)
{
    if (!plan->bound_view_count || binding->view_count != plan->bound_view_count ||
        binding->order || plan->order)
        return false;
    for (int32_t i = 0; i < plan->bound_view_count; i++) {
        const struct view *view = &binding->views[i];
        const struct bound_view *last = &plan->bound_views[i];
        if (view->tensor != last->tensor || view->rows != plan->bound[last->port].rows ||
            !view->data)
            return false;
    }
    for (int32_t i = 0; i < plan->bound_view_count; i++) {
        struct bound *bound = &plan->bound[plan->bound_views[i].port];
        *bound = (struct bound){.data = binding->views[i].data, .rows = bound->rows};
    }
    plan->cursor = (struct cursor){.start = binding->start, .count = plan->cursor.count};
    return true;
}

enum status cpu_bind(struct plan *plan, const struct binding *binding)
{
    const struct program *program = plan->program;
    uint64_t samples;
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan cannot be bound");
    if (bind_alike(plan, binding))
        return STATUS_OK;
    TRY(binding_check(program, binding, &samples));
    TRY(copy_order(plan, binding));
    memset(plan->bound, 0, (size_t)program->op_count * sizeof *plan->bound);
    for (int32_t i = 0; i < binding->view_count; i++) {
        const struct view *view = &binding->views[i];
        ptrdiff_t port = binding_port(program, view->tensor) - program->ops;
        plan->bound[port] = (struct bound){.data = view->data, .rows = view->rows};
        plan->bound_views[i] = (struct bound_view){view->tensor, (int32_t)port};
    }
    plan->bound_view_count = binding->view_count;
    plan->cursor = (struct cursor){
        .start = binding->start,
        .order = plan->order,
        .count = samples,
    };
    find_unbound(plan);
    return STATUS_OK;
}

static enum status check_bound(const struct plan *plan)
{
    const struct program *program = plan->program;
    if (plan->unbound >= 0)
        FAIL(STATUS_INPUT, "no data is bound to the input '%s' of the program '%s'",
             program->tensors[op_output(program, &program->ops[plan->unbound], 0)].name,
             program->name);
    return STATUS_OK;
}

static void run_part(struct plan *plan, enum part part, const struct call *calls)
{
    const struct program *program = plan->program;
    for (int32_t o = program->parts[part].from; o < program->parts[part].to; o++)
        run_op(plan, o, &calls[o]);
}

/* The end of what began at `start`, without what reading the clock adds: on a tiny network that is
 * as long as an op. */
static uint64_t observed_end(uint64_t start)
{
    uint64_t now = clock_ns(), cost = clock_cost_ns() - 1; /* it is rounded up */
    return now - start > cost ? now - cost : start;
}

static void observe_part(struct plan *plan, enum part part, const struct call *calls)
{
    const struct program *program = plan->program;
    const struct observer *observer = &plan->observer;
    int32_t from = program->parts[part].from, to = program->parts[part].to;
    if (from == to)
        return;
    if (observer->level == OBSERVE_PARTS) {
        uint64_t start = clock_ns();
        run_part(plan, part, calls);
        observer->event(observer->context, &(struct event){.op = -1,
                                                           .part = (int32_t)part,
                                                           .kernel = "",
                                                           .start_ns = start,
                                                           .end_ns = observed_end(start)});
        return;
    }
    for (int32_t o = from; o < to; o++) {
        uint64_t start = clock_ns();
        run_op(plan, o, &calls[o]);
        observer->event(observer->context, &(struct event){.op = o,
                                                           .part = (int32_t)part,
                                                           .kernel = plan->kernels[o]->name,
                                                           .start_ns = start,
                                                           .end_ns = observed_end(start)});
    }
}

enum status cpu_run(struct plan *plan, unsigned parts, int slot, int64_t steps)
{
    if (plan->dry || slot < 0 || slot >= plan->slots)
        FAIL(STATUS_INPUT, "the plan of '%s' has %d slots and cannot run slot %d",
             plan->program->name, plan->dry ? 0 : plan->slots, slot);
    if (parts & PART_BIT(PART_PREPARE))
        TRY(check_bound(plan));
    struct instance *instance = plan->instance;
    bool fresh = plan->whole_changes != instance->changes;
    if (plan->program->updates) /* plans that update nothing may run at once */
        instance->changes++;
    if (plan->whole && (parts & PARTS_ALL) == PARTS_ALL) {
        plan->whole->run(plan->whole_state, steps, fresh, &plan->observer);
        plan->whole_changes = instance->changes;
        return STATUS_OK;
    }
    const struct call *calls = plan->calls + (size_t)slot * (size_t)plan->program->op_count;
    bool observed = plan->observer.level != OBSERVE_NOTHING;
    for (int64_t run = 0; run < steps * plan->program->portions; run++) {
        for (int part = 0; part < PART_COUNT; part++)
            if (!(parts & PART_BIT(part)))
                continue;
            else if (observed)
                observe_part(plan, (enum part)part, calls);
            else
                run_part(plan, (enum part)part, calls);
        if (plan->exchange.comm)
            TRY(exchange_end(&plan->exchange));
        TRY(messages_failure(&plan->messages));
    }
    return STATUS_OK;
}

enum status cpu_sync(struct plan *plan)
{
    messages_finish(&plan->messages); /* run returns when the rest is done */
    return messages_failure(&plan->messages);
}

enum status cpu_fetch(struct plan *plan, int32_t tensor, void *out)
{
    if (plan->dry)
        FAIL(STATUS_INPUT, "a dry plan has nothing to fetch");
    TRY(program_check_fetch(plan->program, tensor));
    const struct tensor *fetched = &plan->program->tensors[tensor];
    if (fetched->entry >= 0 && plan->instance->places[fetched->entry].blocked)
        blocked_unpack(&fetched->shape, locate(plan, tensor, 0), out, 0,
                       blocked_groups(&fetched->shape));
    else
        memcpy(out, locate(plan, tensor, 0), (size_t)fetched->bytes);
    return STATUS_OK;
}

enum status cpu_explain(const struct plan *plan, struct arena *arena, struct explanation *out)
{
    const struct program *program = plan->program;
    *out = (struct explanation){.kernel_count = program->op_count};
    NEED(out->kernels = arena_array(arena, (size_t)program->op_count + 1, sizeof *out->kernels));
    for (int32_t o = 0; o < program->op_count; o++)
        out->kernels[o] = (struct kernel_use){
            .op = o,
            .kernel = plan->whole ? plan->whole->name : plan->kernels[o]->name,
            .launches = plan->whole ? 0 : program->portions,
            .why = plan->whole ? plan->whole->why : plan->kernels[o]->why,
        };
    out->role_bytes[ROLE_GRAD] = plan->grad_bytes;
    for (size_t i = 0; i < sizeof per_slot / sizeof *per_slot; i++)
        out->role_bytes[per_slot[i]] = program->role_bytes[per_slot[i]] * (uint64_t)plan->slots;
    out->role_bytes[ROLE_SCRATCH] += plan->workspace_bytes;
    return STATUS_OK;
}
