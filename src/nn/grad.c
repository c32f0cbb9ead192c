/* grad.c: reverse-mode differentiation.
 *
 * Forward ops are visited from last to first; each op's rule reads the gradients of its outputs and
 * gives those of its inputs, as ops appended to the draft. A tensor that several ops read gets the
 * sum of what they give. Only what leads to a wanted parameter is computed: no gradient of the
 * data. A rule writes the weight gradient first, then the one that flows on (pass/fuse counts on
 * it). */
#include "nn/grad.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

struct grad {
    struct draft *draft;
    const struct grad_options *options;
    int32_t tensors; /* of the forward program */
    bool *needed;    /* per forward tensor: does a wanted parameter lead to it? */
    int32_t *of;     /* per forward tensor: its gradient so far, or -1 */
    bool *written;   /* per forward tensor that is a parameter: its gradient was written once */
};

typedef void grad_rule(struct grad *grad, const struct op *op);

static const struct program *program_of(const struct grad *grad)
{
    return grad->draft->program;
}

static int32_t input(const struct grad *grad, const struct op *op, int32_t i)
{
    return op_input(program_of(grad), op, i);
}

static int32_t output(const struct grad *grad, const struct op *op, int32_t i)
{
    return op_output(program_of(grad), op, i);
}

/* A view has the gradient of what it views, in another shape. */
static int32_t root_of(const struct grad *grad, int32_t tensor)
{
    while (program_of(grad)->tensors[tensor].view_of >= 0)
        tensor = program_of(grad)->tensors[tensor].view_of;
    return tensor;
}

static int32_t in_shape_of(struct grad *grad, int32_t gradient, int32_t tensor)
{
    struct shape shape = *draft_shape(grad->draft, tensor);
    if (shape_equal(draft_shape(grad->draft, gradient), &shape))
        return gradient;
    return draft_view(grad->draft, gradient, shape);
}

static bool needs(const struct grad *grad, int32_t tensor)
{
    return tensor >= 0 && grad->needed[root_of(grad, tensor)];
}

/* The gradient of an op's output, or -1 when nothing flows back from it. */
static int32_t flows(struct grad *grad, int32_t tensor)
{
    int32_t gradient = tensor < 0 ? -1 : grad->of[root_of(grad, tensor)];
    return gradient < 0 ? -1 : in_shape_of(grad, gradient, tensor);
}

/* A new tensor for the gradient of `tensor` (an activation). */
static int32_t fresh(struct grad *grad, int32_t tensor)
{
    char name[200];
    struct draft *draft = grad->draft;
    if (draft->status != STATUS_OK)
        return -1;
    snprintf(name, sizeof name, "d(%s)", program_of(grad)->tensors[tensor].name);
    return draft_real(draft, name, *draft_shape(draft, tensor));
}

/* `gradient` is (a part of) the gradient of `tensor`. */
static void give(struct grad *grad, int32_t tensor, int32_t gradient)
{
    if (grad->draft->status != STATUS_OK)
        return;
    int32_t root = root_of(grad, tensor);
    gradient = in_shape_of(grad, gradient, root);
    if (grad->of[root] >= 0) {
        int32_t sum = fresh(grad, root);
        draft_op(grad->draft, OP_add, IN(grad->of[root], gradient), OUT(sum));
        gradient = sum;
    }
    grad->of[root] = gradient;
}

/* Where the gradient of a parameter goes; *accumulate says whether to add to what is there. */
static int32_t weight_grad(struct grad *grad, int32_t param, bool *accumulate)
{
    if (grad->draft->status != STATUS_OK)
        return -1;
    *accumulate = grad->options->accumulate || grad->written[param];
    grad->written[param] = true;
    return draft_grad(grad->draft, param);
}

static void write_outer(struct grad *grad, int32_t x, int32_t dy, int32_t w)
{
    if (!needs(grad, w))
        return;
    bool accumulate = false;
    int32_t dw = weight_grad(grad, w, &accumulate);
    struct op *op = draft_op(grad->draft, OP_outer, IN(x, dy), OUT(dw));
    op->attr.outer.scale = 1;
    op->attr.outer.accumulate = accumulate;
}

static void write_sum_rows(struct grad *grad, int32_t dy, int32_t b)
{
    if (!needs(grad, b))
        return;
    bool accumulate = false;
    int32_t db = weight_grad(grad, b, &accumulate);
    struct op *op = draft_op(grad->draft, OP_sum_rows, IN(dy), OUT(db));
    op->attr.sum_rows.scale = 1;
    op->attr.sum_rows.accumulate = accumulate;
}

/* dW = xᵀ·dy, db = Σ dy, dx = dy·Wᵀ */
static void dense_rule(struct grad *grad, const struct op *op)
{
    int32_t x = input(grad, op, 0), w = input(grad, op, 1), b = input(grad, op, 2);
    int32_t dy = flows(grad, output(grad, op, 0));
    write_outer(grad, x, dy, w);
    write_sum_rows(grad, dy, b);
    if (!needs(grad, x))
        return;
    int32_t dx = fresh(grad, x);
    draft_op(grad->draft, OP_dense_t, IN(dy, w, -1), OUT(dx));
    give(grad, x, dx);
}

/* y = x·Wᵀ + b: dW = dyᵀ·x, dx = dy·W */
static void dense_t_rule(struct grad *grad, const struct op *op)
{
    int32_t x = input(grad, op, 0), w = input(grad, op, 1), b = input(grad, op, 2);
    int32_t dy = flows(grad, output(grad, op, 0));
    write_outer(grad, dy, x, w);
    write_sum_rows(grad, dy, b);
    if (!needs(grad, x))
        return;
    int32_t dx = fresh(grad, x);
    draft_op(grad->draft, OP_dense, IN(dy, w, -1), OUT(dx));
    give(grad, x, dx);
}

static void activate_rule(struct grad *grad, const struct op *op)
{
    int32_t x = input(grad, op, 0), y = output(grad, op, 0);
    int32_t function = op->attr.activate.function;
    int32_t dx = fresh(grad, x);
    draft_op(grad->draft, OP_activate_grad, IN(y, flows(grad, y)), OUT(dx))
        ->attr.activate_grad.function = function;
    give(grad, x, dx);
}

static void add_rule(struct grad *grad, const struct op *op)
{
    int32_t a = input(grad, op, 0), b = input(grad, op, 1), dy = flows(grad, output(grad, op, 0));
    if (needs(grad, a))
        give(grad, a, dy);
    if (needs(grad, b))
        give(grad, b, dy);
}

static void dropout_rule(struct grad *grad, const struct op *op)
{
    int32_t x = input(grad, op, 0), rows = input(grad, op, 1);
    int32_t dy = flows(grad, output(grad, op, 0)), dx = fresh(grad, x);
    union attributes attr = op->attr; /* appending may move the ops */
    draft_op(grad->draft, OP_dropout, IN(dy, rows), OUT(dx))->attr = attr;
    give(grad, x, dx);
}

static void batch_norm_rule(struct grad *grad, const struct op *op)
{
    int32_t x = input(grad, op, 0), gamma = input(grad, op, 1), beta = input(grad, op, 2);
    int32_t mean = output(grad, op, 1), scale = output(grad, op, 2);
    int32_t dy = flows(grad, output(grad, op, 0));
    bool accumulate = false;
    int32_t dx = needs(grad, x) ? fresh(grad, x) : -1;
    int32_t dgamma = weight_grad(grad, gamma, &accumulate);
    int32_t dbeta = weight_grad(grad, beta, &accumulate);
    draft_op(grad->draft, OP_batch_norm_grad, IN(x, gamma, mean, scale, dy), OUT(dx, dgamma, dbeta))
        ->attr.batch_norm_grad.accumulate = accumulate;
    if (dx >= 0)
        give(grad, x, dx);
}

static void lstm_rule(struct grad *grad, const struct op *op)
{
    struct draft *draft = grad->draft;
    if (draft->status != STATUS_OK)
        return;
    enum { X, WX, WH, BX, BH, H0, C0, LENGTHS };
    enum { Y, HN, CN, SUMS, GATES, CELLS };
    int32_t in[8], out[6];
    for (int32_t i = 0; i < 8; i++)
        in[i] = input(grad, op, i);
    for (int32_t i = 0; i < 6; i++)
        out[i] = output(grad, op, i);
    bool accumulate = false;
    int32_t dx = needs(grad, in[X]) ? fresh(grad, in[X]) : -1;
    int32_t dwx = weight_grad(grad, in[WX], &accumulate);
    int32_t dwh = weight_grad(grad, in[WH], &accumulate);
    int32_t dbx = weight_grad(grad, in[BX], &accumulate);
    int32_t dbh = weight_grad(grad, in[BH], &accumulate);
    int32_t dh0 = fresh(grad, out[HN]), dc0 = fresh(grad, out[CN]);
    int32_t dgates = fresh(grad, out[GATES]);
    draft_op(draft, OP_lstm_grad,
             IN(in[X], in[WX], in[WH], out[Y], out[GATES], out[CELLS], in[H0], in[C0], in[LENGTHS],
                flows(grad, out[Y]), flows(grad, out[HN]), flows(grad, out[CN])),
             OUT(dx, dwx, dwh, dbx, dbh, dh0, dc0, dgates))
        ->attr.lstm_grad.accumulate = accumulate;
    if (dx >= 0)
        give(grad, in[X], dx);
    if (needs(grad, in[H0]))
        give(grad, in[H0], dh0);
    if (needs(grad, in[C0]))
        give(grad, in[C0], dc0);
}

/* Ops without a rule let nothing through: data, losses (their gradient is a seed), random draws. */
static grad_rule *const rules[OP_COUNT] = {
    [OP_dense] = dense_rule, [OP_dense_t] = dense_t_rule, [OP_activate] = activate_rule,
    [OP_add] = add_rule,     [OP_dropout] = dropout_rule, [OP_batch_norm] = batch_norm_rule,
    [OP_lstm] = lstm_rule,
};

/* A tensor is needed when it is a wanted parameter or is computed, through rules, from one. */
static void mark_needed(struct grad *grad, int32_t ops)
{
    const struct program *program = program_of(grad);
    const struct grad_options *options = grad->options;
    for (int32_t t = 0; t < grad->tensors; t++) {
        const struct tensor *tensor = &program->tensors[t];
        grad->of[t] = -1;
        grad->needed[t] = tensor->role == ROLE_PARAM &&
                          (!options->wanted || options->wanted(options->context, tensor->entry));
    }
    for (int32_t o = options->first_op; o < ops; o++) {
        const struct op *op = &program->ops[o];
        bool any = false;
        for (int32_t i = 0; i < op->inputs; i++)
            any |= needs(grad, op_input(program, op, i));
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
        give(grad, grad->options->seeds[i].tensor, grad->options->seeds[i].grad);
    for (int32_t o = ops - 1; o >= grad->options->first_op && draft->status == STATUS_OK; o--) {
        struct op op = draft->program->ops[o]; /* a copy: appending may move the ops */
        bool any_flows = false, any_needed = false;
        for (int32_t i = 0; i < op.outputs; i++)
            any_flows |=
                output(grad, &op, i) >= 0 && grad->of[root_of(grad, output(grad, &op, i))] >= 0;
        for (int32_t i = 0; i < op.inputs; i++)
            any_needed |= needs(grad, input(grad, &op, i));
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
