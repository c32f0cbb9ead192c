/* grad.c: reverse-mode differentiation.
 *
 * Forward ops are visited from last to first; each op's rule (grad_rules.h) gives the gradients of
 * its inputs, as ops appended to the draft. A tensor that several ops read gets the sum of what
 * they give. Only what leads to a wanted parameter is computed: no gradient of the data. */
#include "nn/grad_rules.h"

#include "base/memory.h"
#include "core/params.h"

#include <stdio.h>

#define GRAD(kind) grad_rule grad_##kind;
#include "nn/grads.def"
#undef GRAD

static grad_rule *const rules[OP_COUNT] = {
#define GRAD(kind) [OP_##kind] = grad_##kind,
#include "nn/grads.def"
#undef GRAD
};

static const struct program *program_of(const struct grad *grad)
{
    return grad->draft->program;
}

int32_t grad_operand(const struct grad *grad, const struct op *op, int32_t at)
{
    return program_of(grad)->operands[op->first + at];
}

/* A view has the gradient of what it views, in another shape. */
static int32_t root_of(const struct grad *grad, int32_t tensor)
{
    return program_root(program_of(grad), tensor);
}

static int32_t in_shape_of(struct grad *grad, int32_t gradient, int32_t tensor)
{
    struct shape shape = *draft_shape(grad->draft, tensor);
    if (shape_equal(draft_shape(grad->draft, gradient), &shape))
        return gradient;
    return draft_view(grad->draft, gradient, shape);
}

bool grad_needs(const struct grad *grad, int32_t tensor)
{
    return tensor >= 0 && grad->needed[root_of(grad, tensor)];
}

int32_t grad_flows(struct grad *grad, int32_t tensor)
{
    int32_t gradient = tensor < 0 ? -1 : grad->of[root_of(grad, tensor)];
    return gradient < 0 ? -1 : in_shape_of(grad, gradient, tensor);
}

int32_t grad_fresh(struct grad *grad, int32_t tensor)
{
    char name[200];
    struct draft *draft = grad->draft;
    if (draft->status != STATUS_OK)
        return -1;
    snprintf(name, sizeof name, "d(%s)", program_of(grad)->tensors[tensor].name);
    return draft_real(draft, name, *draft_shape(draft, tensor));
}

int32_t grad_weight(struct grad *grad, int32_t param, bool *accumulate)
{
    if (grad->draft->status != STATUS_OK)
        return -1;
    if (!grad_needs(grad, param))
        return grad_fresh(grad, param);
    *accumulate = grad->options->accumulate || grad->written[param];
    grad->written[param] = true;
    return draft_grad(grad->draft, param);
}

int32_t grad_place(struct grad *grad, int32_t tensor, bool *accumulate)
{
    if (grad->draft->status != STATUS_OK)
        return -1;
    *accumulate = false;
    int32_t root = root_of(grad, tensor);
    if (program_of(grad)->tensors[root].role != ROLE_PARAM)
        return grad_fresh(grad, tensor);
    return in_shape_of(grad, grad_weight(grad, root, accumulate), tensor);
}

/* A parameter's gradient: already in its place, or computed elsewhere and copied or added to it. */
static void give_param(struct grad *grad, int32_t param, int32_t gradient)
{
    bool accumulate = false;
    if (program_of(grad)->tensors[gradient].role == ROLE_GRAD)
        return;
    int32_t dw = grad_weight(grad, param, &accumulate);
    if (accumulate)
        draft_op(grad->draft, OP_add, IN(dw, gradient), OUT(dw));
    else
        draft_op(grad->draft, OP_activate, IN(gradient), OUT(dw));
}

void grad_give(struct grad *grad, int32_t tensor, int32_t gradient)
{
    if (grad->draft->status != STATUS_OK)
        return;
    int32_t root = root_of(grad, tensor);
    gradient = in_shape_of(grad, gradient, root);
    if (program_of(grad)->tensors[root].role == ROLE_PARAM) {
        give_param(grad, root, gradient);
        return;
    }
    if (grad->of[root] >= 0) {
        int32_t sum = grad_fresh(grad, root);
        draft_op(grad->draft, OP_add, IN(grad->of[root], gradient), OUT(sum));
        gradient = sum;
    }
    grad->of[root] = gradient;
}

void grad_bias(struct grad *grad, int32_t dy, int32_t b)
{
    if (!grad_needs(grad, b))
        return;
    bool accumulate = false;
    int32_t db = grad_weight(grad, b, &accumulate);
    struct op *op = draft_op(grad->draft, OP_sum_rows, IN(dy), OUT(db));
    op->attr.sum_rows.scale = 1;
    op->attr.sum_rows.accumulate = accumulate;
}

/* A tensor is needed when it is a wanted parameter or is computed, through rules, from one. */
static void mark_needed(struct grad *grad, int32_t ops)
{
    const struct program *program = program_of(grad);
    const struct grad_options *options = grad->options;
    for (int32_t t = 0; t < grad->tensors; t++) {
        const struct tensor *tensor = &program->tensors[t];
        grad->of[t] = -1;
        grad->needed[t] = tensor->role == ROLE_PARAM &&
                          !grad->draft->params->entries[tensor->entry].fixed &&
                          (!options->wanted || options->wanted(options->context, tensor->entry));
    }
    for (int32_t o = options->first_op; o < ops; o++) {
        const struct op *op = &program->ops[o];
        bool any = false;
        for (int32_t i = 0; i < op->inputs; i++)
            any |= grad_needs(grad, op_input(program, op, i));
        for (int32_t i = 0; any && rules[op->kind] && i < op->outputs; i++)
            if (op_output(program, op, i) >= 0)
                grad->needed[root_of(grad, op_output(program, op, i))] = true;
    }
}

static void emit(struct grad *grad)
{
    struct draft *draft = grad->draft;
    int32_t ops = draft->program->op_count;
    mark_needed(grad, ops);
    for (int32_t i = 0; i < grad->options->seed_count; i++)
        grad_give(grad, grad->options->seeds[i].tensor, grad->options->seeds[i].grad);
    for (int32_t o = ops - 1; o >= grad->options->first_op && draft->status == STATUS_OK; o--) {
        struct op op = draft->program->ops[o]; /* a copy: appending may move the ops */
        bool any_flows = false, any_needed = false;
        for (int32_t i = 0; i < op.outputs; i++) {
            const int32_t tensor = grad_operand(grad, &op, op.inputs + i);
            any_flows |= tensor >= 0 && grad->of[root_of(grad, tensor)] >= 0;
        }
        for (int32_t i = 0; i < op.inputs; i++)
            any_needed |= grad_needs(grad, grad_operand(grad, &op, i));
        if (!any_flows || !any_needed || !rules[op.kind])
            continue;
        draft->layer = op.layer;
        rules[op.kind](grad, &op);
    }
    draft->layer = "";
}

void grad_emit(struct draft *draft, const struct grad_options *options)
{
    if (draft->status != STATUS_OK)
        return;
    draft_part(draft, PART_BACKWARD);
    struct arena arena = {0};
    struct grad grad = {
        .draft = draft, .options = options, .tensors = draft->program->tensor_count};
    size_t tensors = (size_t)grad.tensors + 1;
    grad.needed = arena_array(&arena, tensors, sizeof *grad.needed);
    grad.of = arena_array(&arena, tensors, sizeof *grad.of);
    grad.written = arena_array(&arena, tensors, sizeof *grad.written);
    if (grad.needed && grad.of && grad.written)
        emit(&grad);
    else
        draft_fail(draft, STATUS_MEMORY, "out of memory");
    arena_free(&arena);
}
