/* quantise_product.c: dense and conv in 8 bits, with the batch norm and the function behind them.
 *
 * A batch norm is folded into the weights. A relu or bound is the least and the largest level, any
 * other function a table. A product that nothing takes in 8 bits gives its sums, which become reals
 * by the scale of each channel. */
#include "core/pass/quantise/quantise_inside.h"
#include "core/requantise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct product {
    const struct op *op;
    const struct op *norm;     /* batch_norm_fixed, or NULL */
    const struct op *function; /* activate or bound, or NULL */
    int32_t before, y;         /* what the function reads; the result */
    int64_t out, terms;        /* channels, products of a sum */
    int32_t x, w, b;           /* operands, of the old program; b may be -1 */
    char base[200];            /* of the names of its parameters */
};

/* Where weight number `term` of a channel is, and which channel of x it meets. */
static int64_t weight_at(const struct product *product, int64_t channel, int64_t term)
{
    return product->op->kind == OP_dense ? term * product->out + channel
                                         : channel * product->terms + term;
}

static int64_t input_channel(const struct walk *walk, const struct product *product,
                             int64_t channel, int64_t term)
{
    if (product->op->kind == OP_dense) { /* of what x is a view of */
        const struct program *from = walk->from;
        const struct shape *x = &from->tensors[program_root(from, product->x)].shape;
        return term / (product->terms / x->dim[1]);
    }
    const struct shape *w = &walk->from->tensors[product->w].shape;
    int64_t groups = walk->from->tensors[product->x].shape.dim[1] / w->dim[1];
    return channel / (product->out / groups) * w->dim[1] + term / (w->dim[2] * w->dim[3]);
}

static const float *values_of(const struct walk *walk, int32_t tensor)
{
    if (tensor < 0)
        return NULL;
    const struct tensor *old = &walk->from->tensors[program_root(walk->from, tensor)];
    return params_data(walk->source->params, old->entry);
}

/* A channel's weights times factor, and its bias, have the batch norm in them. */
struct channel {
    double factor, bias, most; /* most: the largest weight, with the factor */
};

/* Where the weights of a channel are; `norm`: what a batch norm multiplies them with. */
static struct channel_weights weights_of(const struct walk *walk, const struct product *product,
                                         int64_t o, double norm)
{
    const bool dense = product->op->kind == OP_dense;
    return (struct channel_weights){.values =
                                        values_of(walk, product->w) + weight_at(product, o, 0),
                                    .count = product->terms,
                                    .stride = dense ? product->out : 1,
                                    .factor = norm};
}

static struct channel channel_of(const struct walk *walk, const struct product *product, int64_t o)
{
    const float *w = values_of(walk, product->w), *b = values_of(walk, product->b);
    struct channel channel = {.factor = 1, .bias = b ? (double)b[o] : 0};
    const struct op *norm = product->norm;
    if (norm) {
        const struct program *from = walk->from;
        double gamma = (double)values_of(walk, op_input(from, norm, 1))[o];
        double beta = (double)values_of(walk, op_input(from, norm, 2))[o];
        double mean = (double)values_of(walk, op_input(from, norm, 3))[o];
        double variance = (double)values_of(walk, op_input(from, norm, 4))[o];
        channel.factor = gamma / sqrt(variance + (double)norm->attr.batch_norm_fixed.epsilon);
        channel.bias = (channel.bias - mean) * channel.factor + beta;
    }
    for (int64_t i = 0; i < product->terms; i++)
        channel.most =
            fmax(channel.most, fabs((double)w[weight_at(product, o, i)] * channel.factor));
    return channel;
}

/* The step of each channel's weights, or of a plain product the one of all. */
static void find_steps(const struct walk *walk, const struct product *product, double x_scale,
                       double *steps)
{
    const struct quantisation *how = walk->how;
    double most = 0;
    for (int64_t o = 0; o < product->out; o++) {
        struct channel channel = channel_of(walk, product, o);
        steps[o] = weight_step(channel.most, channel.bias, x_scale, how->weight_bits, how->plain);
        most = fmax(most, steps[o]);
    }
    for (int64_t o = 0; how->plain && o < product->out; o++)
        steps[o] = most;
}

/* Likewise on the grid that the file's weights have. What cannot be done is why the layer stays in
 * fp32; NULL: it does not. */
static const char *find_given(const struct walk *walk, const struct product *product, double *steps)
{
    const bool sums = !product->function && !walk_wants(walk, product->y);
    const struct scale x = walk->forms[program_root(walk->from, product->x)].scale;
    const struct scale y = walk_scale(walk, product->y);
    int32_t multiplier, shift;
    for (int64_t o = 0; o < product->out; o++) {
        const struct channel channel = channel_of(walk, product, o);
        const struct channel_weights w = weights_of(walk, product, o, channel.factor);
        if (!given_step(&w, channel.bias, (double)x.scale, &steps[o]))
            return "the weights of a channel are no -127 to 127 steps of one size";
        if (!sums &&
            !ratio_split((double)x.scale * steps[o] / (double)y.scale, &multiplier, &shift))
            return "its results are rounded more finely than its sums are";
    }
    return NULL;
}

/* Of the channels of x; NULL where rows of x are no samples, or nothing is known. */
static const double *means_of(const struct walk *walk, const struct product *product)
{
    const struct program *from = walk->from;
    int32_t root = program_root(from, product->x);
    if (!walk->source->means ||
        from->tensors[root].shape.dim[0] != from->tensors[product->x].shape.dim[0])
        return NULL;
    return walk->source->means[root];
}

/* Levels of the weights and of the bias of one channel. The bias makes up for what rounding moves
 * where x is as it usually is, and has the zero point of x in it. */
static void fill_channel(const struct walk *walk, const struct product *product,
                         const struct scale *x, double step, int64_t o, int8_t *weights,
                         int32_t *bias)
{
    const float *w = values_of(walk, product->w);
    const double *means = means_of(walk, product);
    struct channel channel = channel_of(walk, product, o);
    double moved = 0;
    int64_t sum = 0;
    for (int64_t i = 0; i < product->terms; i++) {
        int64_t at = weight_at(product, o, i);
        double weight = (double)w[at] * channel.factor;
        weights[at] = weight_level(weight, step, walk->how->weight_bits);
        sum += weights[at];
        if (means)
            moved += (weight - step * weights[at]) * means[input_channel(walk, product, o, i)];
    }
    double level = (channel.bias + moved) / ((double)x->scale * step);
    int64_t whole = fabs(level) < INT8_BIAS_MOST ? llrint(level)
                    : level < 0                  ? -INT8_BIAS_MOST
                                                 : INT8_BIAS_MOST;
    bias[o] = clamped(whole - x->zero * sum, -INT8_BIAS_MOST, INT8_BIAS_MOST);
}

/* Widens what was seen of the result until its levels are no finer than those of the sums. */
static void widen(struct walk *walk, int32_t tensor, double largest)
{
    struct range *range = &walk->how->ranges[program_root(walk->from, tensor)];
    double most = walk->how->plain ? 0.5 : 1 - 0x1p-30;
    for (struct scale scale = walk_scale(walk, tensor); !(largest / (double)scale.scale <= most);
         scale = walk_scale(walk, tensor)) {
        range->low *= 1.25f;
        range->high = range->high * 1.25f + (float)largest;
    }
}

/* Where the values of a product's parameters go. */
struct values {
    int8_t *weights;
    int32_t *bias, *multiplier, *shift; /* NULL where there are … */
    float *scales;                      /* … these */
};

static void fill_values(struct walk *walk, const struct product *product, const struct scale *x,
                        const struct scale *y, const double *steps, const struct values *values)
{
    for (int64_t o = 0; o < product->out; o++) {
        double unit = (double)x->scale * steps[o];
        fill_channel(walk, product, x, steps[o], o, values->weights, values->bias);
        if (values->scales)
            values->scales[o] = (float)unit;
        else if (!ratio_split(unit / (double)y->scale, &values->multiplier[o], &values->shift[o]))
            draft_fail(&walk->draft, STATUS_INPUT,
                       "channel %lld of %s has weights so large that 8 bits cannot hold its "
                       "results; keep the layer in fp32",
                       (long long)o, product->base);
    }
}

/* What is written to: the sums and then reals, or levels. */
static void write_product(struct walk *walk, const struct product *product, const double *steps)
{
    const struct program *from = walk->from;
    struct draft *draft = &walk->draft;
    const struct tensor *w = &from->tensors[product->w];
    bool sums = !product->function && !walk_wants(walk, product->y);
    bool table = !function_bounds(product->function);
    int32_t in = walk_u8(walk, product->x), scale = -1, times = -1, by = -1, levels = -1, out;
    struct scale x = walk->forms[program_root(from, product->x)].scale, before = {0}, y = {0};
    struct shape row = SHAPE(product->out);
    int32_t weight = walk_keep(walk, product->base, "weight", DTYPE_I8, w->shape);
    int32_t b = walk_keep(walk, product->base, "bias", DTYPE_I32, row);
    if (sums) {
        scale = walk_keep(walk, product->base, "scale", DTYPE_F32, row);
        out = draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "sums",
                           from->tensors[product->y].shape);
    } else {
        before = walk_scale(walk, table ? product->before : product->y);
        y = walk_scale(walk, product->y);
        times = walk_keep(walk, product->base, "multiplier", DTYPE_I32, row);
        by = walk_keep(walk, product->base, "shift", DTYPE_I32, row);
        if (table)
            levels = walk_table(walk, product->function, product->function, &before, &y);
        out = walk_write(walk, product->y, y);
    }
    if (draft->status == STATUS_OK && walk->source)
        fill_values(walk, product, &x, &before, steps,
                    &(struct values){walk_values(walk, weight), walk_values(walk, b),
                                     walk_values(walk, times), walk_values(walk, by),
                                     walk_values(walk, scale)});
    struct op *op = draft_op(draft, product->op->kind == OP_dense ? OP_dense_int8 : OP_conv_int8,
                             IN(in, weight, b, times, by, levels), OUT(out));
    if (product->op->kind == OP_conv) {
        memcpy(&op->attr, &product->op->attr, sizeof product->op->attr.conv);
        op->attr.conv_int8.zero_x = x.zero;
        op->attr.conv_int8.zero = before.zero;
        if (!sums)
            walk_bounds(product->function, &before, &op->attr.conv_int8.low,
                        &op->attr.conv_int8.high);
    } else {
        op->attr.dense_int8.zero = before.zero;
        if (!sums)
            walk_bounds(product->function, &before, &op->attr.dense_int8.low,
                        &op->attr.dense_int8.high);
    }
    if (sums)
        draft_op(draft, OP_dequantise, IN(out, scale), OUT(walk_real(walk, product->y)));
}

/* Is the operand a parameter that nothing else reads, and that no view turns? */
static bool is_own(const struct walk *walk, int32_t tensor)
{
    const struct tensor *old = &walk->from->tensors[tensor];
    return role_is_kept(old->role) && old->view_of < 0 && walk->readers[tensor] == 1;
}

/* Everything behind the op that belongs to it. */
static void gather(struct walk *walk, struct product *product)
{
    const struct program *from = walk->from;
    int32_t next =
        product->op->kind == OP_conv ? walk_next(walk, product->y, OP_batch_norm_fixed) : -1;
    if (next >= 0) {
        product->norm = &from->ops[next];
        product->y = op_output(from, product->norm, 0);
    }
    product->before = product->y;
    next = walk_function(walk, product->y);
    const struct op *function = next >= 0 ? &from->ops[next] : NULL;
    if (function && walk->how->given && !function_bounds(function))
        return; /* the file does not say on which scale its argument is */
    /* a bound in front of reals is better computed in reals */
    if (function &&
        (!function_bounds(function) || walk_wants(walk, op_output(from, function, 0)))) {
        product->function = function;
        product->y = op_output(from, function, 0);
    }
}

static bool ranges_are_known(const struct walk *walk, const struct product *product)
{
    const bool sums = !product->function && !walk_wants(walk, product->y);
    const bool bounds = walk->how->given; /* its functions only do that */
    return walk_has_range(walk, product->x) &&
           (sums || (walk_has_range(walk, product->y) &&
                     (bounds || walk_has_range(walk, product->before))));
}

static void mark_gone(struct walk *walk, const struct op *op)
{
    if (op)
        walk->gone[op - walk->from->ops] = true;
}

/* Can it be in integers, whatever its values are? NULL: it can. */
static const char *refused(const struct walk *walk, const struct product *product)
{
    const struct program *from = walk->from;
    const int32_t x = program_root(from, product->x);
    if (walk->how->given && walk->forms[x].u8 < 0)
        return "its input is not rounded to 8 bits";
    if (role_is_kept(from->tensors[x].role) || !is_own(walk, product->w) ||
        (product->b >= 0 && !is_own(walk, product->b)))
        return "its weights are not its own";
    if (product->op->kind == OP_dense && product->op->attr.dense.activation != ACTIVATION_NONE)
        return "it has a function inside";
    return product->terms > INT8_PRODUCTS_MOST ? "it adds more than 32,768 products" : NULL;
}

/* The steps of its weights, and results that are wide enough for them. NULL: that is done. */
static const char *settle_steps(struct walk *walk, const struct product *product, double *steps)
{
    double largest = 0;
    if (walk->how->given)
        return find_given(walk, product, steps);
    walk_u8(walk, product->x);
    const struct scale x = walk->forms[program_root(walk->from, product->x)].scale;
    find_steps(walk, product, (double)x.scale, steps);
    for (int64_t i = 0; i < product->out; i++)
        largest = fmax(largest, steps[i] * (double)x.scale);
    if (product->function || walk_wants(walk, product->y))
        widen(walk, function_bounds(product->function) ? product->y : product->before, largest);
    return NULL;
}

bool walk_product(struct walk *walk, int32_t o)
{
    const struct program *from = walk->from;
    const struct op *op = &from->ops[o];
    struct product product = {.op = op,
                              .x = op_input(from, op, 0),
                              .w = op_input(from, op, 1),
                              .b = op_input(from, op, 2),
                              .y = op_output(from, op, 0)};
    const struct shape *w = &from->tensors[product.w].shape;
    product.out = op->kind == OP_dense ? w->dim[1] : w->dim[0];
    product.terms = shape_count(w) / product.out;
    const char *why = refused(walk, &product);
    if (!why)
        gather(walk, &product);
    if (!why && !ranges_are_known(walk, &product))
        why = "the range of its result is not known";
    const char *name = from->tensors[product.w].name, *dot = strrchr(name, '.');
    snprintf(product.base, sizeof product.base, "%.*s",
             (int)(dot ? (size_t)(dot - name) : strlen(name)), name);
    double *steps = NULL;
    if (!why && walk->source) {
        steps = arena_array(&walk->draft.program->arena, (size_t)product.out, sizeof *steps);
        if (!steps) {
            draft_fail(&walk->draft, STATUS_MEMORY, "out of memory");
            return true;
        }
        why = settle_steps(walk, &product, steps);
    }
    if (why) {
        given_note(walk, op, why);
        return false;
    }
    mark_gone(walk, product.norm);
    mark_gone(walk, product.function);
    write_product(walk, &product, steps);
    return true;
}
