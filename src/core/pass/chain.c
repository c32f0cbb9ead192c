/* chain.c: one walk over the ops; each must be the next that a stack of layers has. */
#include "core/pass/chain.h"

#include <string.h>

/* What has been seen so far, as tensors; -1: nothing yet. */
struct walk {
    const struct program *program;
    struct chain *chain;
    int32_t rows, x, target, rate; /* made by the ops of the prepare part */
    int32_t count;                 /* of updates, which the rate follows */
    int32_t y;                     /* of the last layer so far */
    int32_t dy;                    /* the gradient that has come down so far … */
    int32_t down;                  /* … to this layer's output */
    bool sloped;                   /* … and through its activation */
    int32_t made;                  /* of the last outputs: their softmax, or they themselves */
    int32_t counted;               /* what right answers are counted on */
    int32_t loss, right;           /* scalars */
    int32_t grad_w[CHAIN_MOST], grad_b[CHAIN_MOST]; /* of each layer that has an op for them */
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
    struct chain *chain = walk->chain;
    int32_t tensor = op_output(program, op, 0);
    if (op_input(program, op, 0) != walk->rows)
        return false;
    if (chain->load_x < 0) {
        chain->load_x = o;
        walk->x = walk->y = tensor;
        return program->tensors[tensor].dtype == DTYPE_F32;
    }
    walk->target = tensor;
    return take_once(&chain->load_target, o);
}

static bool take_dense(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct chain *chain = walk->chain;
    int32_t w = op_input(program, op, 1);
    if (chain->layers == CHAIN_MOST || op_input(program, op, 0) != walk->y || walk->made >= 0 ||
        program->tensors[w].role != ROLE_PARAM)
        return false;
    chain->layer[chain->layers++] = (struct chain_layer){
        .dense = o,
        .update = -1,
        .update_b = -1,
        .in = (int32_t)program->tensors[w].shape.dim[0],
        .out = (int32_t)program->tensors[w].shape.dim[1],
        .w = w,
        .b = op_input(program, op, 2),
        .activation = (enum activation)op->attr.dense.activation,
    };
    walk->y = op_output(program, op, 0);
    return true;
}

static bool take_softmax(struct walk *walk, const struct op *op)
{
    return op_input(walk->program, op, 0) == walk->y &&
           take_once(&walk->made, op_output(walk->program, op, 0));
}

static bool take_loss(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    const bool classes = op->kind == OP_cross_entropy;
    walk->loss = op_output(program, op, 0);
    walk->counted = op->kind == OP_binary_cross_entropy ? -1 : walk->y;
    return op_input(program, op, 0) == walk->y && op_input(program, op, 1) == walk->target &&
           walk->target >= 0 && take_once(&walk->chain->loss, o) &&
           take_once(&walk->made, classes ? op_output(program, op, 1) : walk->y);
}

/* The sigmoid that a binary loss counts right answers on. */
static bool take_activate(struct walk *walk, const struct op *op)
{
    walk->chain->counts_sigmoid = true;
    return walk->loss >= 0 && op->attr.activate.function == (int32_t)ACTIVATION_SIGMOID &&
           op_input(walk->program, op, 0) == walk->y &&
           take_once(&walk->counted, op_output(walk->program, op, 0));
}

static bool take_loss_grad(struct walk *walk, const struct op *op, int32_t o, enum op_kind loss)
{
    const struct program *program = walk->program;
    struct chain *chain = walk->chain;
    walk->dy = op_output(program, op, 0);
    walk->down = chain->layers - 1;
    return chain->loss >= 0 && program->ops[chain->loss].kind == loss &&
           op_input(program, op, 0) == walk->made && op_input(program, op, 1) == walk->target &&
           take_once(&chain->loss_grad, o);
}

static bool take_right(struct walk *walk, const struct op *op, int32_t o)
{
    walk->right = op_output(walk->program, op, 0);
    return walk->counted >= 0 && op_input(walk->program, op, 0) == walk->counted &&
           op_input(walk->program, op, 1) == walk->target && take_once(&walk->chain->right, o);
}

static bool take_store(struct walk *walk, const struct op *op, int32_t o)
{
    struct chain *chain = walk->chain;
    int32_t tensor = op_input(walk->program, op, 0), rows = op_input(walk->program, op, 1);
    if ((tensor == walk->y || tensor == walk->made) && rows == walk->rows) {
        chain->probabilities = tensor != walk->y;
        return take_once(&chain->store_y, o);
    }
    if (tensor == walk->loss && rows < 0)
        return take_once(&chain->store_loss, o);
    return tensor == walk->right && rows < 0 && take_once(&chain->store_right, o);
}

static bool take_slope(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (walk->dy < 0 || walk->down < 0 || walk->sloped || op_input(program, op, 1) != walk->dy)
        return false;
    const struct op *dense = &program->ops[walk->chain->layer[walk->down].dense];
    walk->dy = op_output(program, op, 0);
    walk->sloped = true;
    return op_input(program, op, 0) == op_output(program, dense, 0) &&
           op->attr.activate_grad.function == dense->attr.dense.activation;
}

/* The layer whose weight has x and the gradient dy, if that has come down to it; else NULL. */
static struct chain_layer *layer_of(struct walk *walk, int32_t x, int32_t dy)
{
    if (walk->dy < 0 || walk->down < 0)
        return NULL;
    struct chain_layer *layer = &walk->chain->layer[walk->down];
    const struct op *dense = &walk->program->ops[layer->dense];
    bool its = walk->sloped == (layer->activation != ACTIVATION_NONE) &&
               x == op_input(walk->program, dense, 0) && dy == walk->dy;
    return its ? layer : NULL;
}

/* Backward and update of the layer that the gradient has come down to. */
static bool take_update(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct chain_layer *layer = layer_of(walk, op_input(program, op, 0), op_input(program, op, 1));
    if (!layer || op_input(program, op, 2) != layer->w || op_input(program, op, 3) != layer->b ||
        op_input(program, op, 4) != walk->rate)
        return false;
    layer->update = o;
    walk->dy = op_output(program, op, 2);
    walk->sloped = false;
    return (walk->dy >= 0) == (walk->down-- > 0);
}

/* The same for the optimiser's ops, in three: the gradients of its w and b, and of its x. */
static bool take_grad_w(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (!layer_of(walk, op_input(program, op, 0), op_input(program, op, 1)) ||
        op->attr.outer.accumulate || op->attr.outer.scale != 1.0f)
        return false;
    walk->grad_w[walk->down] = op_output(program, op, 0);
    return true;
}

static bool take_grad_b(struct walk *walk, const struct op *op)
{
    if (walk->dy < 0 || walk->down < 0 || op_input(walk->program, op, 0) != walk->dy ||
        op->attr.sum_rows.accumulate || op->attr.sum_rows.scale != 1.0f)
        return false;
    walk->grad_b[walk->down] = op_output(walk->program, op, 0);
    return true;
}

static bool take_grad_x(struct walk *walk, const struct op *op)
{
    const struct program *program = walk->program;
    if (walk->down < 1 || walk->grad_w[walk->down] < 0 || op_input(program, op, 0) != walk->dy ||
        op_input(program, op, 1) != walk->chain->layer[walk->down].w ||
        op_input(program, op, 2) >= 0 || op->attr.dense_t.activation)
        return false;
    walk->dy = op_output(program, op, 0);
    walk->sloped = false;
    walk->down--;
    return true;
}

/* Is it the first op of an optimiser, or like the first? Only operands may differ, and there is one
 * count of updates. */
static bool like_first(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    struct chain *chain = walk->chain;
    if (chain->optimiser < 0) {
        chain->optimiser = o;
        chain->states = op->outputs - 2;
    }
    const struct op *first = &program->ops[chain->optimiser];
    for (int32_t i = 3; i < op->inputs; i++) {
        int32_t tensor = op_input(program, op, i);
        if (program->tensors[tensor].dtype == DTYPE_I32 && tensor != walk->count)
            return false;
    }
    return op->kind == first->kind && !memcmp(&op->attr, &first->attr, sizeof op->attr) &&
           op_input(program, op, 2) == walk->rate && op_output(program, op, 1) < 0;
}

/* The optimiser's op for one parameter. */
static bool take_optimiser(struct walk *walk, const struct op *op, int32_t o)
{
    const struct program *program = walk->program;
    int32_t parameter = op_input(program, op, 0), grad = op_input(program, op, 1);
    for (int32_t l = 0; l < walk->chain->layers; l++) {
        struct chain_layer *layer = &walk->chain->layer[l];
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
    struct chain *chain = walk->chain;
    const struct op *op = &program->ops[o];
    switch (op->kind) {
    case OP_rows: walk->rows = op_output(program, op, 0); return take_once(&chain->rows, o);
    case OP_load: return take_load(walk, op, o);
    case OP_schedule:
        walk->rate = op_output(program, op, 0);
        walk->count = op_input(program, op, 0);
        return take_once(&chain->schedule, o);
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
    case OP_activate_grad: return take_slope(walk, op);
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
    case OP_tick: return op_input(program, op, 0) == walk->count && take_once(&chain->tick, o);
    default: return false;
    }
}

/* All layers, their biases too, and all in the same way? */
static bool all_trained(const struct program *program, const struct chain *chain)
{
    bool apart = chain->optimiser >= 0;
    enum op_kind kind = apart ? program->ops[chain->optimiser].kind : OP_dense_sgd;
    for (int32_t l = 0; l < chain->layers; l++) {
        const struct chain_layer *layer = &chain->layer[l];
        if (layer->update < 0 || program->ops[layer->update].kind != kind ||
            (layer->update_b >= 0) != (apart && layer->b >= 0))
            return false;
    }
    return true;
}

const char *chain_find(const struct program *program, struct chain *out)
{
    *out = (struct chain){.rows = -1,
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
                        .chain = out,
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
    for (int32_t l = 0; l < CHAIN_MOST; l++)
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
