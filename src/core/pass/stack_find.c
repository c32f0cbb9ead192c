/* stack_find.c: one walk over the ops; each must be the next that a stack of layers has. */
#include "core/pass/stack_find.h"

#include <string.h>

/* What has been seen so far, as tensors; -1: nothing yet. */
struct walk {
    const struct program *program;
    struct dense_stack *stack;
    int32_t rows, x, target, rate; /* made by the ops of the prepare part */
    int32_t count;                 /* of updates, which the rate follows */
    int32_t y;                     /* of the last layer so far */
    int32_t dy;                    /* the gradient that has come down so far … */
    int32_t down;                  /* … to this layer's output */
    bool activated;                /* … and through its activation */
    int32_t made;                  /* of the last outputs: their softmax, or they themselves */
    int32_t counted;               /* what right answers are counted on */
    int32_t loss, right;           /* scalars */
    int32_t grad_w[DENSE_STACK_MOST],
        grad_b[DENSE_STACK_MOST]; /* of each layer that has an op for them */
};

static bool take_once(int32_t *place, int32_t o)
{
    bool first = *place < 0;
    *place = o;
    return first;
}

static bool take_load(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct dense_stack *stack = walk->stack;
    int32_t tensor = op_operand(program, op, AT_load_x);
    if (op_operand(program, op, AT_load_rows) != walk->rows)
        return false;
    if (stack->load_x < 0) {
        stack->load_x = o;
        walk->x = walk->y = tensor;
        return program->tensors[tensor].dtype == DTYPE_F32;
    }
    walk->target = tensor;
    return take_once(&stack->load_target, o);
}

static bool take_dense(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct dense_stack *stack = walk->stack;
    int32_t w = op_operand(program, op, AT_dense_w);
    if (stack->layers == DENSE_STACK_MOST || op_operand(program, op, AT_dense_x) != walk->y ||
        walk->made >= 0 || program->tensors[w].role != ROLE_PARAM)
        return false;
    stack->layer[stack->layers++] = (struct dense_stack_layer){
        .dense = o,
        .update = -1,
        .update_b = -1,
        .in = (int32_t)program->tensors[w].shape.dim[0],
        .out = (int32_t)program->tensors[w].shape.dim[1],
        .w = w,
        .b = op_operand(program, op, AT_dense_b),
        .activation = (enum activation)op->attr.dense.activation,
    };
    walk->y = op_operand(program, op, AT_dense_y);
    return true;
}

static bool take_softmax(struct walk *walk, const struct op *op)
{
    return op_operand(walk->program, op, AT_softmax_x) == walk->y &&
           take_once(&walk->made, op_operand(walk->program, op, AT_softmax_y));
}

static bool take_loss(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    const bool classes = op->kind == OP_cross_entropy;
    walk->loss = op_operand(program, op, AT_mse_loss);
    walk->counted = op->kind == OP_binary_cross_entropy ? -1 : walk->y;
    return op_operand(program, op, AT_mse_y) == walk->y &&
           op_operand(program, op, AT_mse_target) == walk->target && walk->target >= 0 &&
           take_once(&walk->stack->loss, o) &&
           take_once(&walk->made, classes ? op_operand(program, op, AT_cross_entropy_p) : walk->y);
}

/* The sigmoid that a binary loss counts right answers on. */
static bool take_activate(struct walk *walk, const struct op *op)
{
    walk->stack->counts_sigmoid = true;
    return walk->loss >= 0 && op->attr.activate.function == (int32_t)ACTIVATION_SIGMOID &&
           op_operand(walk->program, op, AT_activate_x) == walk->y &&
           take_once(&walk->counted, op_operand(walk->program, op, AT_activate_y));
}

static bool take_loss_grad(struct walk *walk, const struct op *op, int32_t o, enum op_kind loss)
{
    const struct program *program = walk->program;
    struct dense_stack *stack = walk->stack;
    walk->dy = op_operand(program, op, AT_mse_grad_dy);
    walk->down = stack->layers - 1;
    return stack->loss >= 0 && program->ops[stack->loss].kind == loss &&
           op_operand(program, op, AT_mse_grad_y) == walk->made &&
           op_operand(program, op, AT_mse_grad_target) == walk->target &&
           take_once(&stack->loss_grad, o);
}

static bool take_right(struct walk *walk, const struct op *op, int32_t o)
{
    walk->right = op_operand(walk->program, op, AT_right_level_right);
    return walk->counted >= 0 && op_operand(walk->program, op, AT_right_level_y) == walk->counted &&
           op_operand(walk->program, op, AT_right_level_target) == walk->target &&
           take_once(&walk->stack->right, o);
}

static bool take_store(struct walk *walk, const struct op *op, int32_t o)
{
    struct dense_stack *stack = walk->stack;
    int32_t tensor = op_operand(walk->program, op, AT_store_x),
            rows = op_operand(walk->program, op, AT_store_rows);
    if ((tensor == walk->y || tensor == walk->made) && rows == walk->rows) {
        stack->probabilities = tensor != walk->y;
        return take_once(&stack->store_y, o);
    }
    if (tensor == walk->loss && rows < 0)
        return take_once(&stack->store_loss, o);
    return tensor == walk->right && rows < 0 && take_once(&stack->store_right, o);
}

static bool take_activate_grad(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (walk->dy < 0 || walk->down < 0 || walk->activated ||
        op_operand(program, op, AT_activate_grad_dy) != walk->dy)
        return false;
    const struct op *dense = &program->ops[walk->stack->layer[walk->down].dense];
    walk->dy = op_operand(program, op, AT_activate_grad_dx);
    walk->activated = true;
    return op_operand(program, op, AT_activate_grad_saved) ==
               op_operand(program, dense, AT_dense_y) &&
           op->attr.activate_grad.function == dense->attr.dense.activation;
}

/* The layer whose weight has x and the gradient dy, if that has come down to it; else NULL. */
static struct dense_stack_layer *layer_of(struct walk *walk, int32_t x, int32_t dy)
{
    if (walk->dy < 0 || walk->down < 0)
        return NULL;
    struct dense_stack_layer *layer = &walk->stack->layer[walk->down];
    const struct op *dense = &walk->program->ops[layer->dense];
    bool its = walk->activated == (layer->activation != ACTIVATION_NONE) &&
               x == op_operand(walk->program, dense, AT_dense_x) && dy == walk->dy;
    return its ? layer : NULL;
}

/* Backward and update of the layer that the gradient has come down to. */
static bool take_update(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct dense_stack_layer *layer = layer_of(walk, op_operand(program, op, AT_dense_sgd_x),
                                               op_operand(program, op, AT_dense_sgd_dy));
    if (!layer || op_operand(program, op, AT_dense_sgd_w) != layer->w ||
        op_operand(program, op, AT_dense_sgd_b) != layer->b ||
        op_operand(program, op, AT_dense_sgd_rate) != walk->rate)
        return false;
    layer->update = o;
    walk->dy = op_operand(program, op, AT_dense_sgd_dx);
    walk->activated = false;
    return (walk->dy >= 0) == (walk->down-- > 0);
}

/* The same for the optimiser's ops, in three: the gradients of its w and b, and of its x. */
static bool take_grad_w(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (!layer_of(walk, op_operand(program, op, AT_outer_x),
                  op_operand(program, op, AT_outer_dy)) ||
        op->attr.outer.accumulate || op->attr.outer.scale != 1.0f)
        return false;
    walk->grad_w[walk->down] = op_operand(program, op, AT_outer_dw);
    return true;
}

static bool take_grad_b(struct walk *walk, const struct op *op)
{
    if (walk->dy < 0 || walk->down < 0 ||
        op_operand(walk->program, op, AT_sum_rows_x) != walk->dy || op->attr.sum_rows.accumulate ||
        op->attr.sum_rows.scale != 1.0f)
        return false;
    walk->grad_b[walk->down] = op_operand(walk->program, op, AT_sum_rows_y);
    return true;
}

static bool take_grad_x(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (walk->down < 1 || walk->grad_w[walk->down] < 0 ||
        op_operand(program, op, AT_dense_t_x) != walk->dy ||
        op_operand(program, op, AT_dense_t_w) != walk->stack->layer[walk->down].w ||
        op_operand(program, op, AT_dense_t_b) >= 0 || op->attr.dense_t.activation)
        return false;
    walk->dy = op_operand(program, op, AT_dense_t_y);
    walk->activated = false;
    walk->down--;
    return true;
}

/* Is it the first op of an optimiser, or like the first? Only operands may differ, and there is one
 * count of updates. */
static bool like_first(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct dense_stack *stack = walk->stack;
    if (stack->optimiser < 0) {
        stack->optimiser = o;
        stack->states = op->outputs - 2;
    }
    const struct op *first = &program->ops[stack->optimiser];
    for (int32_t i = 3; i < op->inputs; i++) {
        int32_t tensor = op_input(program, op, i);
        if (program->tensors[tensor].dtype == DTYPE_I32 && tensor != walk->count)
            return false;
    }
    return op->kind == first->kind && !memcmp(&op->attr, &first->attr, sizeof op->attr) &&
           op_operand(program, op, AT_sgd_rate) == walk->rate && op_output(program, op, 1) < 0;
}

/* The optimiser's op for one parameter. */
static bool take_optimiser(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    int32_t parameter = op_operand(program, op, AT_sgd_w), grad = op_operand(program, op, AT_sgd_g);
    for (int32_t l = 0; l < walk->stack->layers; l++) {
        struct dense_stack_layer *layer = &walk->stack->layer[l];
        if (grad >= 0 && layer->w == parameter && walk->grad_w[l] == grad)
            return take_once(&layer->update, o) && like_first(walk, op, o);
        if (grad >= 0 && layer->b == parameter && walk->grad_b[l] == grad)
            return take_once(&layer->update_b, o) && like_first(walk, op, o);
    }
    return false;
}

static bool take(struct walk *walk, int32_t o)
{
    const struct program *program = walk->program;
    struct dense_stack *stack = walk->stack;
    const struct op *op = &program->ops[o];
    switch (op->kind) {
    case OP_rows:
        walk->rows = op_operand(program, op, AT_rows_rows);
        return take_once(&stack->rows, o);
    case OP_load: return take_load(walk, op, o);
    case OP_schedule:
        walk->rate = op_operand(program, op, AT_schedule_rate);
        walk->count = op_operand(program, op, AT_schedule_count);
        return take_once(&stack->schedule, o);
    case OP_dense: return take_dense(walk, op, o);
    case OP_mse:
    case OP_cross_entropy:
    case OP_binary_cross_entropy: return take_loss(walk, op, o);
    case OP_softmax: return take_softmax(walk, op);
    case OP_activate: return take_activate(walk, op);
    case OP_right_class:
    case OP_right_level: return take_right(walk, op, o);
    case OP_store: return take_store(walk, op, o);
    case OP_mse_grad: return take_loss_grad(walk, op, o, OP_mse);
    case OP_cross_entropy_grad: return take_loss_grad(walk, op, o, OP_cross_entropy);
    case OP_binary_cross_entropy_grad: return take_loss_grad(walk, op, o, OP_binary_cross_entropy);
    case OP_activate_grad: return take_activate_grad(walk, op);
    case OP_dense_sgd: return take_update(walk, op, o);
    case OP_outer: return take_grad_w(walk, op);
    case OP_sum_rows: return take_grad_b(walk, op);
    case OP_dense_t: return take_grad_x(walk, op);
    case OP_sgd:
    case OP_momentum:
    case OP_adagrad:
    case OP_rmsprop:
    case OP_adam:
    case OP_rprop: return take_optimiser(walk, op, o);
    case OP_tick:
        return op_operand(program, op, AT_tick_count) == walk->count && take_once(&stack->tick, o);
    default: return false;
    }
}

/* All layers, their biases too, and all in the same way? */
static bool all_trained(const struct program *program, const struct dense_stack *stack)
{
    bool apart = stack->optimiser >= 0;
    enum op_kind kind = apart ? program->ops[stack->optimiser].kind : OP_dense_sgd;
    for (int32_t l = 0; l < stack->layers; l++) {
        const struct dense_stack_layer *layer = &stack->layer[l];
        if (layer->update < 0 || program->ops[layer->update].kind != kind ||
            (layer->update_b >= 0) != (apart && layer->b >= 0))
            return false;
    }
    return true;
}

const char *stack_find(const struct program *program, struct dense_stack *out)
{
    *out = (struct dense_stack){.rows = -1,
                                .load_x = -1,
                                .load_target = -1,
                                .schedule = -1,
                                .tick = -1,
                                .loss = -1,
                                .loss_grad = -1,
                                .right = -1,
                                .store_y = -1,
                                .store_loss = -1,
                                .store_right = -1,
                                .optimiser = -1};
    struct walk walk = {.program = program,
                        .stack = out,
                        .rows = -1,
                        .x = -1,
                        .target = -1,
                        .rate = -1,
                        .count = -1,
                        .y = -1,
                        .dy = -1,
                        .down = -1,
                        .made = -1,
                        .counted = -1,
                        .loss = -1,
                        .right = -1};
    for (int32_t l = 0; l < DENSE_STACK_MOST; l++)
        walk.grad_w[l] = walk.grad_b[l] = -1;
    if (program->real != DTYPE_F32)
        return "it does not compute in f32";
    for (int32_t o = 0; o < program->op_count; o++)
        if (!take(&walk, o))
            return "it is not a plain stack of dense layers";
    if (!out->layers || out->rows < 0 || out->load_x < 0)
        return "it has no layers that read bound data";
    bool trains = out->loss_grad >= 0;
    if (trains != (out->tick >= 0) || trains != (out->schedule >= 0) ||
        (trains && !all_trained(program, out)))
        return "not all of its layers are trained";
    return NULL;
}
