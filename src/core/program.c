/* program.c: drafting a program and finishing it. */
#include "core/program.h"

#include "base/memory.h"
#include "core/ops.h"
#include "core/params.h"
#include "core/pass/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *activation_name(enum activation activation)
{
    static const char *const names[ACTIVATION_COUNT] = {
        [ACTIVATION_NONE] = "none",
        [ACTIVATION_SIGMOID] = "sigmoid",
        [ACTIVATION_TANH] = "tanh",
        [ACTIVATION_RELU] = "relu",
        [ACTIVATION_GELU] = "gelu",
        [ACTIVATION_SOFTPLUS] = "softplus",
        [ACTIVATION_LEAKY_RELU] = "leaky_relu",
        [ACTIVATION_ELU] = "elu",
        [ACTIVATION_ERF] = "erf",
        [ACTIVATION_SQRT] = "sqrt",
        [ACTIVATION_RECIPROCAL] = "reciprocal",
        [ACTIVATION_EXP] = "exp",
        [ACTIVATION_LOG] = "log",
    };
    return names[activation];
}

bool activation_has_alpha(enum activation activation)
{
    return activation == ACTIVATION_LEAKY_RELU || activation == ACTIVATION_ELU;
}

bool activation_is_alone(enum activation activation)
{
    return activation_has_alpha(activation) || activation >= ACTIVATION_ERF;
}

bool activation_saves_input(enum activation activation)
{
    return activation == ACTIVATION_GELU || activation == ACTIVATION_ERF ||
           activation == ACTIVATION_LOG;
}

bool activation_parse(const char *name, enum activation *out)
{
    for (int i = 0; i < ACTIVATION_COUNT; i++)
        if (!strcmp(name, activation_name((enum activation)i))) {
            *out = (enum activation)i;
            return true;
        }
    return false;
}

const char *part_name(enum part part)
{
    static const char *const names[PART_COUNT] = {
        [PART_PREPARE] = "prepare",
        [PART_FORWARD] = "forward",
        [PART_BACKWARD] = "backward",
        [PART_UPDATE] = "update",
    };
    return names[part];
}

static void note_layer(struct draft *draft, const char *layer)
{
    snprintf(draft->failed_in, sizeof draft->failed_in, "%s", layer);
}

void draft_fail(struct draft *draft, enum status status, const char *format, ...)
{
    if (draft->status != STATUS_OK)
        return;
    draft->status = status;
    note_layer(draft, draft->layer);
    va_list list;
    va_start(list, format);
    vsnprintf(draft->message, sizeof draft->message, format, list);
    va_end(list);
}

static void fail_memory(struct draft *draft)
{
    draft_fail(draft, STATUS_MEMORY, "out of memory");
}

enum status program_begin(struct draft *draft, struct params *params, const char *name,
                          int32_t batch, enum dtype real)
{
    *draft = (struct draft){.params = params, .layer = ""};
    struct program *program = mem_alloc(sizeof *program);
    NEED(program);
    draft->program = program;
    program->batch = batch;
    program->portions = 1;
    program->real = real;
    program->name = arena_text(&program->arena, name);
    if (!program->name)
        fail_memory(draft);
    if (batch < 1)
        draft_fail(draft, STATUS_INPUT, "the batch is %d, expected 1 or more", batch);
    return STATUS_OK;
}

/* Makes room for one more element of an arena-held array. */
static bool make_room(struct draft *draft, void **array, int32_t *room, int32_t need, size_t bytes)
{
    if (need <= *room)
        return true;
    int32_t more = *room * 2 > need ? *room * 2 : need + 16;
    void *grown = arena_array(&draft->program->arena, (size_t)more, bytes);
    if (!grown) {
        fail_memory(draft);
        return false;
    }
    if (*array)
        memcpy(grown, *array, (size_t)*room * bytes);
    *array = grown;
    *room = more;
    return true;
}

static int32_t add_tensor(struct draft *draft, struct tensor tensor)
{
    struct program *program = draft->program;
    int64_t count = shape_count(&tensor.shape);
    if (count < 0 || count > INT64_MAX / 16)
        draft_fail(draft, STATUS_INPUT, "the tensor '%s'%s%s has an impossible or too large shape",
                   tensor.name, *draft->layer ? " of " : "", draft->layer);
    if (draft->status != STATUS_OK)
        return -1;
    tensor.bytes = (uint64_t)count * dtype_bytes(tensor.dtype);
    void *array = program->tensors;
    tensor.name = arena_text(&program->arena, tensor.name);
    if (!tensor.name)
        fail_memory(draft);
    if (!make_room(draft, &array, &draft->tensor_room, program->tensor_count + 1, sizeof tensor) ||
        !tensor.name)
        return -1;
    program->tensors = array;
    program->tensors[program->tensor_count] = tensor;
    return program->tensor_count++;
}

int32_t draft_tensor(struct draft *draft, enum role role, enum dtype dtype, const char *name,
                     struct shape shape)
{
    return add_tensor(draft, (struct tensor){.name = name,
                                             .dtype = dtype,
                                             .role = role,
                                             .shape = shape,
                                             .entry = -1,
                                             .view_of = -1});
}

int32_t draft_real(struct draft *draft, const char *name, struct shape shape)
{
    return draft_tensor(draft, ROLE_ACTIVATION, draft->program->real, name, shape);
}

int32_t draft_view(struct draft *draft, int32_t tensor, struct shape shape)
{
    if (draft->status != STATUS_OK)
        return -1;
    const struct tensor *viewed = &draft->program->tensors[tensor];
    if (shape_count(&shape) != shape_count(&viewed->shape))
        draft_fail(draft, STATUS_INPUT,
                   "'%s' (%s) cannot be reshaped: the number of elements "
                   "would change",
                   viewed->name, draft->layer);
    struct tensor view = *viewed;
    view.shape = shape;
    view.view_of = tensor;
    return add_tensor(draft, view);
}

/* The tensor of this entry in one of two kinds of role, or -1. */
static int32_t find_entry(const struct program *program, int32_t entry, bool grad)
{
    for (int32_t i = 0; i < program->tensor_count; i++)
        if (program->tensors[i].entry == entry && program->tensors[i].view_of < 0 &&
            (program->tensors[i].role == ROLE_GRAD) == grad)
            return i;
    return -1;
}

int32_t draft_kept(struct draft *draft, int32_t entry)
{
    if (draft->status != STATUS_OK)
        return -1;
    int32_t found = find_entry(draft->program, entry, false);
    if (found >= 0)
        return found;
    const struct entry *e = &draft->params->entries[entry];
    return add_tensor(draft, (struct tensor){.name = e->name,
                                             .dtype = e->dtype,
                                             .role = e->role,
                                             .shape = e->shape,
                                             .entry = entry,
                                             .matrix = e->matrix,
                                             .view_of = -1,
                                             .offset = e->offset});
}

int32_t draft_grad(struct draft *draft, int32_t kept)
{
    if (draft->status != STATUS_OK)
        return -1;
    struct tensor grad = draft->program->tensors[kept];
    int32_t found = find_entry(draft->program, grad.entry, true);
    if (found >= 0)
        return found;
    char name[200];
    snprintf(name, sizeof name, "d(%s)", grad.name);
    grad.name = name;
    grad.role = ROLE_GRAD;
    grad.offset = 0;
    return add_tensor(draft, grad);
}

const struct shape *draft_shape(const struct draft *draft, int32_t tensor)
{
    static const struct shape none = {.rank = 1, .dim = {1}};
    if (draft->status != STATUS_OK || tensor < 0)
        return &none;
    return &draft->program->tensors[tensor].shape;
}

void draft_part(struct draft *draft, enum part part)
{
    draft->part = part;
}

struct op *draft_op(struct draft *draft, enum op_kind kind, const int32_t *inputs,
                    int32_t input_count, const int32_t *outputs, int32_t output_count)
{
    struct program *program = draft->program;
    memset(&draft->scrap, 0, sizeof draft->scrap);
    if (draft->status != STATUS_OK)
        return &draft->scrap;
    void *ops = program->ops, *operands = program->operands;
    int32_t need = program->operand_count + input_count + output_count;
    if (!make_room(draft, &ops, &draft->op_room, program->op_count + 1, sizeof *program->ops) ||
        !make_room(draft, &operands, &draft->operand_room, need, sizeof *program->operands))
        return &draft->scrap;
    program->ops = ops;
    program->operands = operands;

    struct op *op = &program->ops[program->op_count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->part = draft->part;
    op->id = draft->next_id++;
    op->inputs = input_count;
    op->outputs = output_count;
    op->first = program->operand_count;
    op->made_by = "";
    op->layer = *draft->layer ? arena_text(&program->arena, draft->layer) : "";
    if (!op->layer) {
        op->layer = "";
        fail_memory(draft);
    }
    if (input_count)
        memcpy(program->operands + op->first, inputs, (size_t)input_count * sizeof *inputs);
    if (output_count)
        memcpy(program->operands + op->first + input_count, outputs,
               (size_t)output_count * sizeof *outputs);
    program->operand_count = need;
    return op;
}

/* What an op reads must have been written before, unless it lives outside the step. */
static enum status check_order(const struct program *program, bool *written)
{
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            int32_t tensor = program->operands[op->first + i];
            if (tensor < 0)
                continue;
            tensor = program_root(program, tensor);
            enum role role = program->tensors[tensor].role;
            if (i >= op->inputs)
                written[tensor] = true;
            else if (!written[tensor] && !role_is_kept(role) && role != ROLE_GRAD)
                FAIL(STATUS_INPUT, "op %s (%s) reads '%s' before anything wrote it",
                     op_name(op->kind), op->layer, program->tensors[tensor].name);
        }
    }
    return STATUS_OK;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

static uint64_t hash_int(uint64_t hash, int64_t value)
{
    return hash_bytes(hash, &value, sizeof value);
}

/* Of an op's own attributes: the union is as large as the largest. */
static const size_t attribute_bytes[OP_COUNT] = {
#define OP(kind, ...) [OP_##kind] = sizeof(((union attributes *)NULL)->kind),
#include "core/ops.def"
#undef OP
};

/* FNV-1a over what is computed; names, layers and places in memory do not count. The same when more
 * ops are added to ops.def: hashes are kept in records. */
static uint64_t hash_program(const struct program *program)
{
    uint64_t hash = hash_int(14695981039346656037u, program->batch);
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        hash = hash_bytes(hash, op_name(op->kind), strlen(op_name(op->kind)));
        hash = hash_int(hash, op->part);
        hash = hash_bytes(hash, &op->attr, attribute_bytes[op->kind]);
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            int32_t index = program->operands[op->first + i];
            hash = hash_int(hash, index);
            if (index < 0)
                continue;
            const struct tensor *tensor = &program->tensors[index];
            hash = hash_int(hash, tensor->dtype);
            hash = hash_int(hash, tensor->role);
            for (int32_t d = 0; d < tensor->shape.rank; d++)
                hash = hash_int(hash, tensor->shape.dim[d]);
        }
    }
    return hash;
}

/* Puts the ops into the order of their parts; within a part they stay as they were drafted. */
static enum status order_parts(struct program *program)
{
    struct op *ops = arena_array(&program->arena, (size_t)program->op_count + 1, sizeof *ops);
    NEED(ops);
    int32_t count = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        program->parts[part].from = count;
        for (int32_t o = 0; o < program->op_count; o++)
            if (program->ops[o].part == (enum part)part)
                ops[count++] = program->ops[o];
        program->parts[part].to = count;
    }
    program->ops = ops;
    return STATUS_OK;
}

static bool writes_kept(const struct program *program)
{
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->outputs; i++) {
            int32_t tensor = op_output(program, op, i);
            if (tensor >= 0 && role_is_kept(program->tensors[tensor].role))
                return true;
        }
    }
    return false;
}

static enum status check_ops(struct draft *draft)
{
    const struct program *program = draft->program;
    for (int32_t o = 0; o < program->op_count; o++) {
        enum status status = ops_check(program, &program->ops[o]);
        if (status != STATUS_OK) {
            note_layer(draft, program->ops[o].layer);
            return status;
        }
    }
    return STATUS_OK;
}

static enum status finish(struct draft *draft)
{
    struct program *program = draft->program;
    if (draft->status != STATUS_OK)
        FAIL(draft->status, "%s", draft->message);
    TRY(order_parts(program));
    TRY(check_ops(draft));
    bool *written = mem_array((size_t)program->tensor_count + 1, sizeof *written);
    NEED(written);
    enum status status = check_order(program, written);
    mem_free(written);
    TRY(status);
    TRY(layout_memory(program));
    if (draft->params)
        program->entries = draft->params->count;
    program->updates = writes_kept(program);
    program->hash = hash_program(program);
    return STATUS_OK;
}

enum status program_finish(struct draft *draft, struct program **out)
{
    enum status status = finish(draft);
    if (status == STATUS_OK) {
        *out = draft->program;
        draft->program = NULL;
    }
    draft_drop(draft);
    return status;
}

void draft_drop(struct draft *draft)
{
    program_free(draft->program);
    draft->program = NULL;
}

void program_free(struct program *program)
{
    if (!program)
        return;
    arena_free(&program->arena);
    mem_free(program);
}

enum status program_check_fetch(const struct program *program, int32_t tensor)
{
    if (tensor < 0 || tensor >= program->tensor_count)
        FAIL(STATUS_INPUT, "the program '%s' has no tensor %d to fetch", program->name, tensor);
    const struct tensor *fetched = &program->tensors[program_root(program, tensor)];
    bool alone = program->whole || program->portions > 1; /* its kernels keep what is theirs */
    if (fetched->lost || (alone && !role_is_kept(fetched->role)))
        FAIL(STATUS_INPUT,
             "the program '%s' does not keep the tensor '%s' to the end of a step, expected %s",
             program->name, program->tensors[tensor].name,
             alone ? "a parameter; bind what is stored"
                   : "an output, a parameter, or one that is stored");
    return STATUS_OK;
}

int32_t program_find(const struct program *program, enum role role, const char *name)
{
    for (int32_t i = 0; i < program->tensor_count; i++)
        if (program->tensors[i].role == role && !strcmp(program->tensors[i].name, name))
            return i;
    return -1;
}

enum status program_recast(const struct program *from, struct draft *draft)
{
    TRY(program_begin(draft, NULL, from->name, from->batch, from->real));
    draft->program->entries = from->entries;
    draft->program->portions = from->portions;
    for (int32_t t = 0; t < from->tensor_count; t++)
        add_tensor(draft, from->tensors[t]);
    return STATUS_OK;
}

struct op *draft_copy(struct draft *draft, const struct program *from, const struct op *op)
{
    const int32_t *operands = from->operands + op->first;
    draft_part(draft, op->part);
    draft->layer = op->layer;
    struct op *copy =
        draft_op(draft, op->kind, operands, op->inputs, operands + op->inputs, op->outputs);
    copy->id = op->id;
    copy->made_by = op->made_by;
    copy->attr = op->attr;
    return copy;
}
