/* nodes_choice.c: operators that choose, element by element, between what depends on the input and
 * known numbers: Clip, Where, and Pow where exponents differ; and between halves of a line, as
 * PRelu and the like. What is not chosen is left out by a mask: whatever it is, an infinity or NaN,
 * nothing of it remains. */
#include "nn/formats/onnx/compose.h"
#include "nn/formats/onnx/fold.h"

#include "nn/layer.h"

#include <math.h>
#include <string.h>

node_writer node_clip, node_power, node_where, node_slope, node_hard, node_extreme;

/* Above it a product of so many rounds too much. */
enum { POWER_MOST = 1024 };

/* Bounds of the largest float are none. */
enum status node_clip(struct import *in)
{
    struct value *x, bound;
    double low, high;
    TRY(node_data(in, 0, &x));
    TRY(graph_number(in, 1, graph_real(in, "min", -HUGE_VAL), &low));
    TRY(graph_number(in, 2, graph_real(in, "max", HUGE_VAL), &high));
    if (isnan(low) || isnan(high))
        REFUSE(in, STATUS_UNSUPPORTED, "one of its bounds is no number");
    bound = *x;
    TRY(compose_apply(in, &bound, "clip", "%.9g %.9g", fmax(low, -BOUND_NONE),
                      fmin(high, BOUND_NONE)));
    return compose_give(in, &bound);
}

/* x where the condition is, or is not, so; one of the known numbers elsewhere, which are added to
 * the 0 that is there. */
static enum status keep_where(struct import *in, const struct constant *condition, bool so,
                              const struct constant *others, struct value *x)
{
    struct constant *chosen, *numbers;
    struct line *line;
    const char *layer;
    float *keep;
    bool added = false;
    TRY(compose_spread(in, condition->shape, x));
    TRY(compose_spread(in, others->shape, x));
    TRY(fold_spread(in, condition, x->shape, &chosen));
    TRY(fold_spread(in, others, x->shape, &numbers));
    TRY(line_weights(in, chosen->count, &keep));
    for (int64_t i = 0; i < chosen->count; i++) {
        bool keeps = (chosen->wholes[i] != 0) == so;
        keep[i] = keeps ? 1 : 0;
        numbers->reals[i] = keeps ? 0 : numbers->reals[i];
        added = added || numbers->reals[i] != 0;
    }
    TRY(line_of_value(in, x, &layer));
    TRY(line_add(in, "mask", layer, &line, "%s", ""));
    TRY(line_give(in, line, "keep", keep, chosen->count));
    line_learns(in, false);
    x->layer = line->name;
    x->gives = value_sample(x);
    if (!added)
        return STATUS_OK;
    TRY(line_constant(in, numbers->reals, numbers->count, false, x->gives, &layer));
    return line_pair(in, "add", x->layer, layer, &x->layer);
}

/* Multiplies *product with x where that power of it is wanted, with 1 elsewhere: `bit` of the
 * halves that an exponent has. */
static enum status take_factor(struct import *in, const struct constant *exponents, int64_t bit,
                               struct value factor, struct value *product)
{
    struct constant *wanted;
    struct value one;
    int64_t taken = 0;
    TRY(constant_new(in, exponents->shape, true, &wanted));
    TRY(compose_known(in, (struct shape){0}, 1, &one));
    for (int64_t i = 0; i < exponents->count; i++) {
        wanted->wholes[i] = ((int64_t)(2 * fabs(constant_at(exponents, i))) & bit) != 0;
        taken += wanted->wholes[i];
    }
    if (!taken && product->layer)
        return STATUS_OK;
    if (taken < exponents->count)
        TRY(keep_where(in, wanted, true, one.constant, &factor));
    else
        TRY(compose_spread(in, exponents->shape, &factor));
    if (!product->layer)
        *product = factor;
    else
        TRY(node_combine(in, "multiply", product, &factor, product));
    return STATUS_OK;
}

/* What is known of all exponents together. */
struct exponents {
    bool halves; /* multiples of these, and small */
    bool whole;  /* one of them is */
    bool broken; /* one is not */
    bool above, below;
    int64_t bits; /* that they have, counted in halves */
};

static struct exponents look_at(const struct constant *exponents)
{
    struct exponents found = {.halves = true};
    for (int64_t i = 0; i < exponents->count; i++) {
        double exponent = constant_at(exponents, i), twice = 2 * exponent;
        bool half = fabs(exponent) <= POWER_MOST && twice == floor(twice);
        found.halves = found.halves && half;
        found.whole = found.whole || exponent == floor(exponent);
        found.broken = found.broken || exponent != floor(exponent);
        found.above = found.above || exponent > 0;
        found.below = found.below || exponent < 0;
        found.bits |= half ? (int64_t)fabs(twice) : 0;
    }
    return found;
}

/* e^(y·ln x): x is not negative where y is no whole number. */
static enum status power_by_logarithm(struct import *in, struct value x, const struct constant *y,
                                      struct value *out)
{
    struct value exponents;
    TRY(compose_known(in, y->shape, 0, &exponents));
    for (int64_t i = 0; i < y->count; i++)
        exponents.constant->reals[i] = (float)constant_at(y, i);
    TRY(compose_apply(in, &x, "log", "%s", ""));
    TRY(node_combine(in, "multiply", &x, &exponents, out));
    return compose_apply(in, out, "exp", "%s", "");
}

static enum status power_by_products(struct import *in, const struct value *x,
                                     const struct constant *y, const struct exponents *found,
                                     struct value *out)
{
    struct value power = *x;
    for (int64_t bit = 2; bit <= found->bits; bit *= 2) {
        if (bit > 2)
            TRY(node_combine(in, "multiply", &power, &power, &power));
        if (found->bits & bit)
            TRY(take_factor(in, y, bit, power, out));
    }
    if (found->bits & 1 || !found->bits) {
        power = *x;
        if (found->bits)
            TRY(compose_apply(in, &power, "sqrt", "%s", ""));
        TRY(take_factor(in, y, 1, power, out));
    }
    return found->below ? compose_apply(in, out, "reciprocal", "%s", "") : STATUS_OK;
}

/* By squares, products and roots, where that goes. A root of what is negative is NaN, as the
 * logarithm is, which a whole exponent beside it must not get. */
enum status node_power(struct import *in)
{
    struct value *x, power = {0};
    const struct constant *y = graph_input(in, 1)->constant;
    TRY(node_data(in, 0, &x));
    if (!y || !y->count)
        REFUSE(in, STATUS_UNSUPPORTED, "its exponent depends on the data, expected known numbers");
    struct exponents found = look_at(y);
    bool products = found.halves && !(found.above && found.below);
    if (found.whole && (found.broken || !products))
        REFUSE(in, STATUS_UNSUPPORTED,
               "found whole exponents beside others, of both signs or above %d, expected them "
               "alike and smaller",
               POWER_MOST);
    if (products)
        TRY(power_by_products(in, x, y, &found, &power));
    else
        TRY(power_by_logarithm(in, *x, y, &power));
    return compose_give(in, &power);
}

/* Where one side is known, the other with these numbers in it; else both, 0 where the other is
 * chosen, added. */
enum status node_where(struct import *in)
{
    const struct value *condition = graph_input(in, 0);
    struct value sides[2], zero;
    if (!condition->constant || !condition->constant->wholes)
        REFUSE(in, STATUS_UNSUPPORTED, "its condition depends on the data, expected a known one");
    TRY(compose_known(in, (struct shape){0}, 0, &zero));
    for (size_t i = 0; i < 2; i++) {
        sides[i] = *graph_input(in, i + 1);
        if (condition->batch >= 0 && sides[i].batch >= 0 &&
            condition->batch - condition->shape.rank != sides[i].batch - sides[i].shape.rank)
            REFUSE(in, STATUS_UNSUPPORTED, "its inputs count the samples in different dimensions");
        if (sides[i].tokens || (sides[i].constant && !sides[i].constant->reals))
            REFUSE(in, STATUS_UNSUPPORTED, "its input %zu is whole numbers, expected real ones",
                   i + 2);
    }
    for (int i = 0; i < 2; i++) {
        const struct constant *others = sides[!i].constant ? sides[!i].constant : zero.constant;
        if (!sides[i].constant)
            TRY(keep_where(in, condition->constant, i == 0, others, &sides[i]));
    }
    if (!sides[0].constant && !sides[1].constant)
        TRY(node_combine(in, "add", &sides[0], &sides[1], &sides[0]));
    else if (sides[0].constant)
        sides[0] = sides[1];
    return compose_give(in, &sides[0]);
}

/* x above 0, below it x times a slope: that of Abs is -1. */
enum status node_slope(struct import *in)
{
    struct value *x;
    const struct constant *slopes;
    TRY(node_data(in, 0, &x));
    struct value above = *x, below = *x;
    if (!strcmp(in->node->op_type, "Abs")) {
        TRY(compose_absolute(in, &above));
        return compose_give(in, &above);
    }
    TRY(node_known(in, 1, -1, &slopes));
    TRY(compose_above_zero(in, &above));
    TRY(compose_below_zero(in, &below));
    TRY(node_combine(in, "multiply", &below, graph_input(in, 1), &below));
    if (!shape_equal(&below.shape, &x->shape))
        REFUSE(in, STATUS_INPUT, "its slopes have more dimensions than its input");
    TRY(node_combine(in, "add", &above, &below, &above));
    return compose_give(in, &above);
}

/* alpha·x + beta between 0 and 1; of HardSwish times x. */
enum status node_hard(struct import *in)
{
    struct value *x;
    bool swish = !strcmp(in->node->op_type, "HardSwish");
    double alpha = swish ? 1.0 / 6 : graph_real(in, "alpha", 0.2);
    double beta = swish ? 0.5 : graph_real(in, "beta", 0.5);
    TRY(node_data(in, 0, &x));
    struct value hard = *x;
    TRY(compose_affine(in, &hard, alpha, beta));
    TRY(compose_apply(in, &hard, "clip", "0 1"));
    if (swish)
        TRY(node_combine(in, "multiply", x, &hard, &hard));
    return compose_give(in, &hard);
}

/* Known numbers as a layer that gives as many as a sample of x, which is repeated where it is
 * smaller. */
static enum status spread_like(struct import *in, const struct constant *numbers, struct value *x,
                               struct value *out)
{
    TRY(compose_spread(in, numbers->shape, x));
    *out = *x;
    TRY(fold_spread(in, numbers, x->shape, &out->constant));
    TRY(import_repeats(in, numbers, out->constant->count));
    out->gives = value_sample(x);
    TRY(line_constant(in, out->constant->reals, out->constant->count, numbers->learnt, out->gives,
                      &out->layer));
    out->constant = NULL;
    return STATUS_OK;
}

/* Two values in the shape that they have together; in the dimension that counts samples they are
 * alike. */
static enum status spread_both(struct import *in, struct value *a, struct value *b)
{
    struct shape shapes[] = {a->shape, b->shape};
    if (a->batch >= 0)
        shapes[0].dim[a->batch] = 1;
    if (b->batch >= 0)
        shapes[1].dim[b->batch] = 1;
    TRY(compose_spread(in, shapes[1], a));
    return compose_spread(in, shapes[0], b);
}

/* x becomes the larger, or the smaller, of itself and the other: by a bound where that is one
 * number, else both side by side as rows. The smaller is -max(-a, -b). */
static enum status take_extreme(struct import *in, bool max, struct value other, struct value *x)
{
    const struct constant *number = other.constant;
    const char *parts[2];
    struct line *line;
    bool whole = x->tokens || other.tokens || (number && !number->reals);
    if (!whole && number && constant_is_one(number) && !isnan(number->reals[0]) &&
        number->shape.rank <= x->shape.rank) {
        double at = fmin(fmax((double)number->reals[0], -BOUND_NONE), BOUND_NONE);
        return compose_apply(in, x, "clip", "%.9g %.9g", max ? at : -BOUND_NONE,
                             max ? BOUND_NONE : at);
    }
    if (!whole && number)
        TRY(spread_like(in, number, x, &other));
    if (!whole && !number)
        TRY(spread_both(in, x, &other));
    if (whole || !shape_equal(&x->shape, &other.shape) || x->batch != other.batch)
        REFUSE(in, STATUS_UNSUPPORTED, "expected real values whose shapes fit, or known numbers");
    const struct value *sides[2] = {x, &other};
    struct shape sample = value_sample(x);
    for (int i = 0; i < 2; i++) {
        TRY(line_of(in, sides[i], SHAPE(1, shape_count(&sample)), &parts[i]));
        if (!max)
            TRY(line_affine(in, parts[i], 2, -1, 0, &parts[i]));
    }
    TRY(line_join(in, parts, 2, 1, &parts[0]));
    TRY(line_add(in, "reduce", parts[0], &line, "max axis=1"));
    TRY(line_shape(in, line->name, sample, &x->layer));
    x->gives = sample;
    return max ? STATUS_OK : line_affine(in, x->layer, sample.rank, -1, 0, &x->layer);
}

/* Max and Min, of one value after the other; known numbers come second. */
enum status node_extreme(struct import *in)
{
    bool max = !strcmp(in->node->op_type, "Max");
    struct value so_far = *graph_input(in, 0);
    for (size_t i = 1; i < in->node->n_input; i++) {
        if (!graph_input(in, i))
            REFUSE(in, STATUS_INPUT, "its input %zu is missing", i + 1);
        struct value other = *graph_input(in, i);
        if (so_far.constant && other.constant)
            REFUSE(in, STATUS_UNSUPPORTED, "its first two inputs are known numbers");
        if (so_far.constant) {
            struct value known = so_far;
            so_far = other;
            other = known;
        }
        TRY(take_extreme(in, max, other, &so_far));
    }
    return compose_give(in, &so_far);
}
