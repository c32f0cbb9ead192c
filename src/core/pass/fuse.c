/* fuse.c: walks the old program in order; where an op begins a group that can be one op, it writes
 * that op and passes over the other members; else it copies the op. */
#include "core/pass/fuse.h"

#include "base/memory.h"
#include "base/text.h"
#include "core/ops.h"
#include "core/pass/portion.h"
#include "core/pass/stack_find.h"

#include <string.h>

/* What the search found out about each op and tensor of the old program. */
struct fusion {
    const struct program *program;
    const struct backend *backend;
    const struct device *device;
    /* A tensor and all views of it, and of these, are the same bytes: they count as one, their root
     * (program_root). */
    int32_t *readers;     /* per root: how many operands read it */
    int32_t *only_reader; /* per tensor, a view apart from its root: one of these ops, -1: none */
    int32_t *writer;      /* per root: the last op that writes it, -1: none */
    int32_t *writers;     /* per root: how many operands write it */
    bool *gone;           /* per op: another op does its work */
    bool any_optimiser;   /* dense_update too, not only dense_sgd */
};

/* The members of one dense layer's backward pass. -1: there is none. */
struct backward {
    int32_t outer, sum_rows, dense_t, update_w, update_b;
};

/* The optimisers that dense_update has, and which of their inputs are what to it. -1: none is. */
static const struct optimiser_row {
    enum op_kind kind;
    int32_t count, direction, size;
} optimisers[] = {
    {OP_sgd, -1, -1, -1},    {OP_momentum, -1, 3, -1}, {OP_adagrad, -1, -1, 3},
    {OP_rmsprop, -1, -1, 3}, {OP_adam, 3, 4, 5},       {OP_rprop, 3, 4, 5},
};

static enum status survey(struct fusion *fusion, struct arena *arena)
{
    const struct program *program = fusion->program;
    size_t tensors = (size_t)program->tensor_count + 1;
    NEED(fusion->readers = arena_array(arena, tensors, sizeof(int32_t)));
    NEED(fusion->only_reader = arena_array(arena, tensors, sizeof(int32_t)));
    NEED(fusion->writer = arena_array(arena, tensors, sizeof(int32_t)));
    NEED(fusion->writers = arena_array(arena, tensors, sizeof(int32_t)));
    NEED(fusion->gone = arena_array(arena, (size_t)program->op_count + 1, sizeof(bool)));
    for (int32_t t = 0; t < program->tensor_count; t++)
        fusion->writer[t] = fusion->only_reader[t] = -1;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        for (int32_t i = 0; i < op->inputs + op->outputs; i++) {
            int32_t tensor = program->operands[op->first + i];
            if (tensor < 0)
                continue;
            int32_t root = program_root(program, tensor);
            if (i < op->inputs) {
                fusion->readers[root]++;
                fusion->only_reader[tensor] = o;
            } else {
                fusion->writers[root]++;
                fusion->writer[root] = o;
            }
        }
    }
    return STATUS_OK;
}

/* The one op of this kind that reads `tensor` in the shape it has, and nothing else does in any, or
 * -1. */
static int32_t sole_reader(const struct fusion *fusion, int32_t tensor, enum op_kind kind)
{
    if (tensor < 0 || fusion->readers[program_root(fusion->program, tensor)] != 1)
        return -1;
    int32_t reader = fusion->only_reader[tensor];
    return reader >= 0 && fusion->program->ops[reader].kind == kind ? reader : -1;
}

/* The op of this kind that alone reads what the op `o` wrote, in the same part, or -1. */
static int32_t find_next(const struct fusion *fusion, int32_t o, enum op_kind kind)
{
    const struct program *program = fusion->program;
    const struct op *op = &program->ops[o];
    int32_t y = op_output(program, op, 0);
    if (program->tensors[y].role != ROLE_ACTIVATION)
        return -1;
    int32_t next = sole_reader(fusion, y, kind);
    return next >= 0 && program->ops[next].part == op->part ? next : -1;
}

/* The activate op that can be folded into the op `o`, or -1. */
static int32_t find_activation(const struct fusion *fusion, int32_t o)
{
    int32_t activate = find_next(fusion, o, OP_activate);
    if (activate < 0)
        return -1;
    int32_t function = fusion->program->ops[activate].attr.activate.function;
    return activation_is_alone((enum activation)function) ? -1 : activate;
}

/* A convolution's bounds that are not apart say that there are none. */
static bool bounds_are_apart(const struct op *op)
{
    return op->attr.bound.low < op->attr.bound.high;
}

/* What follows a convolution. -1: there is none. */
struct after {
    int32_t norm, add, activate, bound;
    int32_t last; /* of these, or the convolution */
    int32_t summand;
};

/* Looks for what can be folded into the convolution `o`. A summand must be there by then. */
static struct after find_after(const struct fusion *fusion, int32_t o)
{
    const struct program *program = fusion->program;
    struct after after = {.last = o, .summand = -1};
    after.norm = find_next(fusion, o, OP_batch_norm_fixed);
    after.last = after.norm < 0 ? after.last : after.norm;
    after.add = find_next(fusion, after.last, OP_add);
    if (after.add >= 0) {
        const struct op *add = &program->ops[after.add], *last = &program->ops[after.last];
        bool first = op_input(program, add, 0) == op_output(program, last, 0);
        after.summand = op_input(program, add, first ? 1 : 0);
        if (fusion->writer[program_root(program, after.summand)] < o)
            after.last = after.add;
        else
            after.add = after.summand = -1;
    }
    after.activate = find_activation(fusion, after.last);
    after.last = after.activate < 0 ? after.last : after.activate;
    after.bound = find_next(fusion, after.last, OP_bound);
    if (after.bound >= 0 && !bounds_are_apart(&program->ops[after.bound]))
        after.bound = -1;
    after.last = after.bound < 0 ? after.last : after.bound;
    return after;
}

/* The update that is the only reader of the gradient that `writer` wrote, if the pair can be
 * folded: its optimiser's row, or NULL. */
static const struct optimiser_row *find_update(const struct fusion *fusion, int32_t writer,
                                               int32_t *update)
{
    const struct program *program = fusion->program;
    int32_t grad = op_output(program, &program->ops[writer], 0);
    for (size_t i = 0; i < sizeof optimisers / sizeof *optimisers; i++) {
        *update = sole_reader(fusion, grad, optimisers[i].kind);
        if (*update >= 0 && fusion->writers[program_root(program, grad)] == 1 &&
            program->tensors[grad].role == ROLE_GRAD &&
            op_output(program, &program->ops[*update], 1) < 0)
            return &optimisers[i];
    }
    return NULL;
}

/* The same, of sgd without decay alone: the op, or -1. */
static int32_t find_sgd(const struct fusion *fusion, int32_t writer)
{
    int32_t update;
    const struct optimiser_row *row = find_update(fusion, writer, &update);
    return row && row->kind == OP_sgd && fusion->program->ops[update].attr.sgd.decay == 0 ? update
                                                                                          : -1;
}

/* Is `tensor`, or a view of the same bytes, an operand of the op from its operand `first` on? */
static bool has_operand(const struct program *program, const struct op *op, int32_t first,
                        int32_t tensor)
{
    for (int32_t i = first; i < op->inputs + op->outputs; i++) {
        int32_t operand = program->operands[op->first + i];
        if (operand >= 0 && program_root(program, operand) == program_root(program, tensor))
            return true;
    }
    return false;
}

/* Is `tensor` read or written by an op after `from` that is not in the group? */
static bool used_later(const struct fusion *fusion, int32_t tensor, int32_t from,
                       const struct backward *group)
{
    const struct program *program = fusion->program;
    for (int32_t o = from + 1; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (o == group->outer || o == group->sum_rows || o == group->dense_t ||
            o == group->update_w || o == group->update_b)
            continue;
        if (has_operand(program, op, 0, tensor))
            return true;
    }
    return false;
}

/* Is it the gradient of a weight, of this step alone? */
static bool is_gradient(const struct op *op)
{
    return op->kind == OP_outer && !op->attr.outer.accumulate && op->attr.outer.scale == 1.0f;
}

/* The op after `o` that takes dy back through the weight, or -1. */
static int32_t find_dense_t(const struct fusion *fusion, int32_t o, int32_t dy, int32_t w)
{
    const struct program *program = fusion->program;
    for (int32_t k = o + 1; k < program->parts[PART_BACKWARD].to; k++) {
        const struct op *op = &program->ops[k];
        if (op->kind == OP_dense_t && op_operand(program, op, AT_dense_t_x) == dy &&
            op_operand(program, op, AT_dense_t_w) == w &&
            op_operand(program, op, AT_dense_t_b) < 0 && !op->attr.dense_t.activation)
            return k;
    }
    return -1;
}

/* Looks for the group that the outer op `o` begins (gradient rules write it first). Weight and bias
 * must not be used by others after `o`, since the group updates them there. */
static bool find_backward(const struct fusion *fusion, int32_t o, struct backward *group)
{
    const struct program *program = fusion->program;
    const struct op *outer = &program->ops[o];
    if (!is_gradient(outer))
        return false;
    *group = (struct backward){o, -1, -1, find_sgd(fusion, o), -1};
    if (group->update_w < 0)
        return false;
    const struct op *sgd = &program->ops[group->update_w];
    int32_t w = op_operand(program, sgd, AT_sgd_w), dy = op_operand(program, outer, AT_outer_dy);
    for (int32_t k = o + 1; k < program->parts[PART_BACKWARD].to; k++) {
        const struct op *op = &program->ops[k];
        if (op->kind == OP_sum_rows && op_operand(program, op, AT_sum_rows_x) == dy &&
            !op->attr.sum_rows.accumulate && op->attr.sum_rows.scale == 1.0f) {
            int32_t update = find_sgd(fusion, k);
            if (update >= 0 && op_operand(program, &program->ops[update], AT_sgd_rate) ==
                                   op_operand(program, sgd, AT_sgd_rate)) {
                group->sum_rows = k;
                group->update_b = update;
            }
        }
    }
    group->dense_t = find_dense_t(fusion, o, dy, w);
    if (used_later(fusion, w, o, group))
        return false;
    int32_t b =
        group->update_b >= 0 ? op_operand(program, &program->ops[group->update_b], AT_sgd_w) : -1;
    return b < 0 || !used_later(fusion, b, o, group);
}

/* Takes the last op back when the device does not support it. */
static bool keep_if_supported(const struct fusion *fusion, struct draft *draft)
{
    struct program *program = draft->program;
    if (draft->status != STATUS_OK)
        return true;
    struct op *op = &program->ops[program->op_count - 1];
    if (!fusion->backend->supports(fusion->device, program, op))
        return true;
    program->op_count--;
    program->operand_count -= op->inputs + op->outputs;
    return false;
}

static bool write_dense(struct fusion *fusion, struct draft *draft, int32_t o)
{
    const struct program *program = fusion->program;
    const struct op *op = &program->ops[o];
    if ((op->kind != OP_dense && op->kind != OP_dense_t) || op->attr.dense.activation)
        return false;
    int32_t activate = find_activation(fusion, o);
    if (activate < 0)
        return false;
    struct op *fused = draft_copy(draft, program, op);
    if (draft->status != STATUS_OK)
        return true;
    draft->program->operands[fused->first + fused->inputs] =
        op_operand(program, &program->ops[activate], AT_activate_y);
    fused->attr.dense.activation = program->ops[activate].attr.activate.function;
    fused->made_by = "dense+bias+activation";
    if (!keep_if_supported(fusion, draft))
        return false;
    fusion->gone[activate] = true;
    return true;
}

static const char *name_after(const struct after *after)
{
    static const char *const names[] = {
        "",
        "conv+batch_norm",
        "conv+add",
        "conv+batch_norm+add",
        "conv+activation",
        "conv+batch_norm+activation",
        "conv+add+activation",
        "conv+batch_norm+add+activation",
        "conv+bound",
        "conv+batch_norm+bound",
        "conv+add+bound",
        "conv+batch_norm+add+bound",
        "conv+activation+bound",
        "conv+batch_norm+activation+bound",
        "conv+add+activation+bound",
        "conv+batch_norm+add+activation+bound",
    };
    return names[(after->norm >= 0) + 2 * (after->add >= 0) + 4 * (after->activate >= 0) +
                 8 * (after->bound >= 0)];
}

static bool write_conv(struct fusion *fusion, struct draft *draft, int32_t o)
{
    const struct program *program = fusion->program;
    const struct op *op = &program->ops[o];
    if (op->kind != OP_conv)
        return false;
    struct after after = find_after(fusion, o);
    if (after.last == o)
        return false;
    const struct op *norm = after.norm < 0 ? NULL : &program->ops[after.norm];
    int32_t kept[4]; /* gamma, beta, mean, variance */
    for (int i = 0; i < 4; i++)
        kept[i] = norm ? op_input(program, norm, i + 1) : -1;
    draft_part(draft, op->part);
    draft->layer = op->layer;
    struct op *fused = draft_op(
        draft, OP_conv_fused,
        IN(op_operand(program, op, AT_conv_x), op_operand(program, op, AT_conv_w),
           op_operand(program, op, AT_conv_b), kept[0], kept[1], kept[2], kept[3], after.summand),
        OUT(op_output(program, &program->ops[after.last], 0)));
    fused->id = op->id;
    fused->made_by = name_after(&after);
    fused->attr.conv_fused.stride_h = op->attr.conv.stride_h;
    fused->attr.conv_fused.stride_w = op->attr.conv.stride_w;
    fused->attr.conv_fused.pad_h = op->attr.conv.pad_h;
    fused->attr.conv_fused.pad_w = op->attr.conv.pad_w;
    fused->attr.conv_fused.dilation_h = op->attr.conv.dilation_h;
    fused->attr.conv_fused.dilation_w = op->attr.conv.dilation_w;
    if (norm)
        fused->attr.conv_fused.epsilon = norm->attr.batch_norm_fixed.epsilon;
    if (after.activate >= 0)
        fused->attr.conv_fused.activation = program->ops[after.activate].attr.activate.function;
    if (after.bound >= 0) {
        fused->attr.conv_fused.low = program->ops[after.bound].attr.bound.low;
        fused->attr.conv_fused.high = program->ops[after.bound].attr.bound.high;
    }
    if (!keep_if_supported(fusion, draft))
        return false;
    const int32_t members[] = {after.norm, after.add, after.activate, after.bound};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i] >= 0)
            fusion->gone[members[i]] = true;
    return true;
}

static bool write_backward(struct fusion *fusion, struct draft *draft, int32_t o)
{
    const struct program *program = fusion->program;
    struct backward group;
    if (!find_backward(fusion, o, &group))
        return false;
    const struct op *outer = &program->ops[o], *sgd_w = &program->ops[group.update_w];
    int32_t w = op_operand(program, sgd_w, AT_sgd_w);
    int32_t b =
        group.update_b < 0 ? -1 : op_operand(program, &program->ops[group.update_b], AT_sgd_w);
    int32_t dx =
        group.dense_t < 0 ? -1 : op_operand(program, &program->ops[group.dense_t], AT_dense_t_y);
    draft_part(draft, outer->part);
    draft->layer = outer->layer;
    struct op *fused =
        draft_op(draft, OP_dense_sgd,
                 IN(op_operand(program, outer, AT_outer_x), op_operand(program, outer, AT_outer_dy),
                    w, b, op_operand(program, sgd_w, AT_sgd_rate)),
                 OUT(w, b, dx));
    fused->id = outer->id;
    fused->made_by = "dense backward+update";
    if (!keep_if_supported(fusion, draft))
        return false;
    const int32_t members[] = {group.sum_rows, group.dense_t, group.update_w, group.update_b};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i] >= 0)
            fusion->gone[members[i]] = true;
    return true;
}

/* Is the tensor written by an op after `from` and before `to`? */
static bool written_between(const struct fusion *fusion, int32_t tensor, int32_t from, int32_t to)
{
    const struct program *program = fusion->program;
    for (int32_t o = from + 1; o < to; o++)
        if (has_operand(program, &program->ops[o], program->ops[o].inputs, tensor))
            return true;
    return false;
}

/* May the group's update be done where the gradient is? What it changes must not be used by others
 * from there on, and what it reads must be there. */
static bool may_update(const struct fusion *fusion, const struct backward *group)
{
    const struct program *program = fusion->program;
    const struct op *update = &program->ops[group->update_w];
    for (int32_t i = 0; i < update->outputs; i++)
        if (op_output(program, update, i) >= 0 &&
            used_later(fusion, op_output(program, update, i), group->outer, group))
            return false;
    for (int32_t i = 2; i < update->inputs; i++)
        if (written_between(fusion, op_input(program, update, i), group->outer, group->update_w))
            return false;
    return true;
}

static int32_t input_or_none(const struct program *program, const struct op *op, int32_t input)
{
    return input < 0 ? -1 : op_input(program, op, input);
}

static bool write_update(struct fusion *fusion, struct draft *draft, int32_t o)
{
    const struct program *program = fusion->program;
    const struct op *outer = &program->ops[o];
    struct backward group = {o, -1, -1, -1, -1};
    const struct optimiser_row *row;
    if (!fusion->any_optimiser || !is_gradient(outer) ||
        !(row = find_update(fusion, o, &group.update_w)))
        return false;
    const struct op *update = &program->ops[group.update_w];
    int32_t x = op_operand(program, outer, AT_outer_x),
            dy = op_operand(program, outer, AT_outer_dy), w = op_operand(program, update, AT_sgd_w);
    group.dense_t = find_dense_t(fusion, o, dy, w);
    if (!may_update(fusion, &group))
        return false;
    int32_t dx =
        group.dense_t < 0 ? -1 : op_operand(program, &program->ops[group.dense_t], AT_dense_t_y);
    int32_t direction = input_or_none(program, update, row->direction),
            size = input_or_none(program, update, row->size);
    draft_part(draft, outer->part);
    draft->layer = outer->layer;
    struct op *fused = draft_op(draft, OP_dense_update,
                                IN(x, dy, w, op_operand(program, update, AT_sgd_rate),
                                   input_or_none(program, update, row->count), direction, size),
                                OUT(w, dx, direction, size));
    fused->id = outer->id;
    fused->made_by = "dense backward+update";
    ops_take_attributes(fused, update);
    fused->attr.dense_update.optimiser = (int32_t)row->kind;
    fused->attr.dense_update.flop =
        (int32_t)(op_flop(program, update) / (uint64_t)shape_count(&program->tensors[w].shape));
    if (!keep_if_supported(fusion, draft))
        return false;
    fusion->gone[group.update_w] = true;
    if (group.dense_t >= 0)
        fusion->gone[group.dense_t] = true;
    return true;
}

/* Replaces the program by one that goes in portions, where that is better. */
static enum status cut_up(struct program **program)
{
    struct program *portions;
    int32_t samples = portion_samples(*program);
    if (samples == (*program)->batch)
        return STATUS_OK;
    TRY(portion(*program, samples, &portions));
    program_free(*program);
    *program = portions;
    return STATUS_OK;
}

static enum status merge(const struct program *program, const struct backend *backend,
                         const struct device *device, bool any_optimiser, struct program **out)
{
    struct arena arena = {0};
    struct draft draft = {0};
    struct fusion fusion = {
        .program = program, .backend = backend, .device = device, .any_optimiser = any_optimiser};
    enum status status;
    TRY_OR(done, survey(&fusion, &arena));
    TRY_OR(done, program_recast(program, &draft));
    for (int32_t o = 0; o < program->op_count; o++) {
        if (fusion.gone[o])
            continue;
        if (!write_dense(&fusion, &draft, o) && !write_conv(&fusion, &draft, o) &&
            !write_backward(&fusion, &draft, o) && !write_update(&fusion, &draft, o))
            draft_copy(&draft, program, &program->ops[o]);
    }
    TRY_OR(done, program_finish(&draft, out));
done:
    draft_drop(&draft);
    arena_free(&arena);
    return status;
}

/* Keeps the dense layers in the program, where it is a stack of them; else says why it is none. */
static enum status find_stack(struct program *program, const char **why)
{
    struct dense_stack *stack;
    NEED(stack = arena_alloc(&program->arena, sizeof *stack));
    *why = stack_find(program, stack);
    program->stack = *why ? NULL : stack;
    return STATUS_OK;
}

enum status fuse(const struct program *program, const struct backend *backend,
                 const struct device *device, struct program **out)
{
    struct program *fused = NULL;
    enum status status;
    TRY_OR(done, merge(program, backend, device, false, &fused));
    const char *op_by_op = NULL;
    TRY_OR(done, find_stack(fused, &op_by_op));
    if (fused->stack)
        op_by_op = backend->supports(device, fused, NULL);
    else if (!backend->supports(device, fused, NULL)) /* a stack in 8 bits */
        op_by_op = NULL;
    fused->whole = !op_by_op;
    if (!fused->whole && program->updates) { /* such a kernel has its own way with optimisers */
        program_free(fused);
        fused = NULL;
        TRY_OR(done, merge(program, backend, device, true, &fused));
    }
    if (text_equal(backend->unit, "cpu"))
        TRY_OR(done, cut_up(&fused));
    fused->op_by_op = op_by_op;
    *out = fused;
done:
    if (status != STATUS_OK)
        program_free(fused);
    return status;
}
