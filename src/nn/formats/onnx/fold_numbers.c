/* fold_numbers.c: arithmetic with numbers that are known when the file is read. Of the number of
 * samples multiples are known; what needs more of it is refused. */
#include "nn/formats/onnx/fold.h"

#include <math.h>
#include <string.h>

enum { RANGE_MOST = 1000000 };

static double negated(double x)
{
    return -x;
}

static double one_over(double x)
{
    return 1 / x;
}

static double rectified(double x)
{
    return x < 0 ? 0 : x; /* NaN stays */
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static double soft_plus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Functions of known real numbers: those that no layer is, and those that weights are made with. */
enum status fold_function(struct import *in, struct constant **out)
{
    static const struct {
        const char *op;
        double (*function)(double);
    } functions[] = {{"Sqrt", sqrt},
                     {"Floor", floor},
                     {"Ceil", ceil},
                     {"Round", rint},
                     {"Sin", sin},
                     {"Cos", cos},
                     {"Exp", exp},
                     {"Log", log},
                     {"Neg", negated},
                     {"Abs", fabs},
                     {"Tanh", tanh},
                     {"Erf", erf},
                     {"Relu", rectified},
                     {"Sigmoid", logistic},
                     {"Softplus", soft_plus},
                     {"Reciprocal", one_over}};
    const struct constant *x = fold_known(in, 0);
    if (!x->reals)
        REFUSE(in, STATUS_UNSUPPORTED, "found whole numbers, expected real ones");
    TRY(constant_new(in, x->shape, false, out));
    (*out)->batch = x->batch;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (int64_t i = 0; !strcmp(functions[f].op, in->node->op_type) && i < x->count; i++)
            (*out)->reals[i] = (float)functions[f].function((double)x->reals[i]);
    return STATUS_OK;
}

enum status fold_range(struct import *in, struct constant **out)
{
    const struct constant *from = fold_known(in, 0), *to = fold_known(in, 1),
                          *by = fold_known(in, 2);
    if (!from->wholes != !to->wholes || !from->wholes != !by->wholes || !constant_is_one(from) ||
        !constant_is_one(to) || !constant_is_one(by) || constant_at(by, 0) == 0)
        REFUSE(in, STATUS_UNSUPPORTED, "expected three known numbers of one type, the step not 0");
    if (fabs(constant_at(from, 0)) > 0x1p53 || fabs(constant_at(to, 0)) > 0x1p53)
        REFUSE(in, STATUS_UNSUPPORTED, "found a range of %g to %g", constant_at(from, 0),
               constant_at(to, 0));
    double count = ceil((constant_at(to, 0) - constant_at(from, 0)) / constant_at(by, 0));
    if (!(count <= RANGE_MOST))
        REFUSE(in, STATUS_UNSUPPORTED, "found %g numbers, expected at most %d", count, RANGE_MOST);
    TRY(constant_new(in, SHAPE(count > 0 ? (int64_t)count : 0), from->wholes, out));
    for (int64_t i = 0; i < (*out)->count; i++)
        if (from->wholes)
            (*out)->wholes[i] = (int64_t)(constant_at(from, 0) + (double)i * constant_at(by, 0));
        else
            (*out)->reals[i] = from->reals[0] + (float)i * by->reals[0];
    return STATUS_OK;
}

enum status fold_spread(struct import *in, const struct constant *from, struct shape shape,
                        struct constant **out)
{
    int64_t stride[SHAPE_MOST], step[SHAPE_MOST] = {0};
    fold_strides(&from->shape, stride);
    for (int32_t d = 0; d < from->shape.rank; d++)
        if (from->shape.dim[d] != 1)
            step[shape.rank - from->shape.rank + d] = stride[d];
    TRY(constant_new(in, shape, from->wholes, out));
    fold_walk(*out, from, 0, step);
    return STATUS_OK;
}

/* Which dimension of the shape that all inputs have together counts samples: that of those that
 * have one; the others have the size 1 there. */
static enum status find_batch(struct import *in, size_t count, const struct shape *shape,
                              int32_t *batch)
{
    *batch = -1;
    for (size_t i = 0; i < count; i++) {
        const struct constant *x = fold_known(in, i);
        int32_t own = x->batch < 0 ? -1 : x->batch + shape->rank - x->shape.rank;
        if (own >= 0 && *batch >= 0 && own != *batch)
            REFUSE(in, STATUS_UNSUPPORTED, "its inputs count the samples in different dimensions");
        *batch = own < 0 ? *batch : own;
    }
    for (size_t i = 0; *batch >= 0 && i < count; i++) {
        const struct constant *x = fold_known(in, i);
        int32_t own = *batch - shape->rank + x->shape.rank;
        int64_t size = own < 0 ? 1 : x->shape.dim[own];
        if (x->batch < 0 ? size != 1 : size != shape->dim[*batch])
            REFUSE(in, STATUS_INPUT, "found %lld places beside as many as there are samples",
                   (long long)size);
    }
    return STATUS_OK;
}

/* The shape in which all inputs fit, and they in it: what has the size 1 is repeated. */
static enum status widen(struct import *in, size_t count, struct constant *wide[])
{
    struct shape shape = {0};
    int32_t batch;
    for (size_t i = 0; i < count; i++)
        if (fold_known(in, i)->shape.rank > shape.rank)
            shape.rank = fold_known(in, i)->shape.rank;
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dim[d] = 1;
    for (size_t i = 0; i < count; i++) {
        const struct shape *own = &fold_known(in, i)->shape;
        for (int32_t d = 0; d < own->rank; d++) {
            int64_t *to = &shape.dim[shape.rank - own->rank + d];
            if (*to != own->dim[d] && *to != 1 && own->dim[d] != 1)
                REFUSE(in, STATUS_INPUT, "its inputs have different shapes");
            *to = *to == 1 ? own->dim[d] : *to;
        }
    }
    TRY(find_batch(in, count, &shape, &batch));
    for (size_t i = 0; i < count; i++) {
        TRY(fold_spread(in, fold_known(in, i), shape, &wide[i]));
        wide[i]->batch = batch;
    }
    return STATUS_OK;
}

static float compute_real(const char *op, double a, double b)
{
    return (float)(!strcmp(op, "Add")   ? a + b
                   : !strcmp(op, "Sub") ? a - b
                   : !strcmp(op, "Mul") ? a * b
                   : !strcmp(op, "Div") ? a / b
                                        : pow(a, b));
}

/* a and b times the number of samples, or, where that is 0, the numbers themselves. */
static bool compute_samples(const char *op, int64_t a, int64_t b, int64_t *out)
{
    int64_t times = samples_in(a), other = samples_in(b), made = 0;
    bool both = times && other, can = false;
    if (!strcmp(op, "Mul") && !both)
        can = !__builtin_mul_overflow(times ? times : a, other ? other : b, &made);
    else if (!strcmp(op, "Add") && (both || (times ? b : a) == 0))
        can = !__builtin_add_overflow(times, other, &made);
    else if (!strcmp(op, "Sub") && times && (both || b == 0))
        can = !__builtin_sub_overflow(times, other, &made);
    else if (!strcmp(op, "Div") && times && (both || b > 0)) {
        can = times % (both ? other : b) == 0;
        made = can ? times / (both ? other : b) : 0;
    }
    bool known = both && (!strcmp(op, "Div") || made == 0); /* there are no samples left in it */
    *out = known ? made : samples_times(made);
    return can && (known || (made > 0 && made <= SAMPLES_MOST));
}

static bool compute_whole(const char *op, int64_t a, int64_t b, int64_t *out)
{
    if (samples_in(a) || samples_in(b))
        return compute_samples(op, a, b, out);
    if (!strcmp(op, "Add"))
        return !__builtin_add_overflow(a, b, out);
    if (!strcmp(op, "Sub"))
        return !__builtin_sub_overflow(a, b, out);
    if (!strcmp(op, "Mul"))
        return !__builtin_mul_overflow(a, b, out);
    if (b == 0 || b == -1 || strcmp(op, "Div"))
        return false;
    *out = a / b;
    return true;
}

/* Add, Sub, Mul, Div, Pow; the exponent of real numbers may be whole. */
enum status fold_pair(struct import *in, struct constant **out)
{
    const char *op = in->node->op_type;
    struct constant *wide[2];
    TRY(widen(in, 2, wide));
    if (!wide[0]->reals != !wide[1]->reals && (strcmp(op, "Pow") || wide[0]->wholes))
        REFUSE(in, STATUS_UNSUPPORTED, "found a whole and a real operand, expected the same type");
    TRY(constant_new(in, wide[0]->shape, wide[0]->wholes, out));
    (*out)->batch = wide[0]->batch;
    for (int64_t i = 0; i < (*out)->count; i++) {
        bool can = true;
        if (wide[0]->reals)
            (*out)->reals[i] = compute_real(op, constant_at(wide[0], i), constant_at(wide[1], i));
        else
            can = compute_whole(op, wide[0]->wholes[i], wide[1]->wholes[i], &(*out)->wholes[i]);
        if (!can)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "found numbers that cannot be worked out, or not before the number of samples "
                   "is known");
    }
    return STATUS_OK;
}

enum status fold_equal(struct import *in, struct constant **out)
{
    struct constant *wide[2];
    TRY(widen(in, 2, wide));
    TRY(constant_new(in, wide[0]->shape, true, out));
    (*out)->batch = wide[0]->batch;
    for (int64_t i = 0; i < (*out)->count; i++) {
        int64_t times[2] = {0}; /* there is a sample at least */
        for (int side = 0; side < 2; side++)
            times[side] = wide[side]->wholes ? samples_in(wide[side]->wholes[i]) : 0;
        double a = constant_at(wide[0], i), b = constant_at(wide[1], i);
        if (times[0] != times[1] && (times[0] && times[1] ? 1 : (times[0] ? b : a)) > 0)
            REFUSE(in, STATUS_UNSUPPORTED, "it compares the number of samples, which is not fixed");
        (*out)->wholes[i] = a == b;
    }
    return STATUS_OK;
}

static bool compare(const char *op, double a, double b)
{
    return !strcmp(op, "Less")             ? a < b
           : !strcmp(op, "LessOrEqual")    ? a <= b
           : !strcmp(op, "Greater")        ? a > b
           : !strcmp(op, "GreaterOrEqual") ? a >= b
           : !strcmp(op, "And")            ? a != 0 && b != 0
           : !strcmp(op, "Or")             ? a != 0 || b != 0
                                           : (a != 0) != (b != 0);
}

/* Is a less than b, and the like; and what is said of two answers together. */
enum status fold_compare(struct import *in, struct constant **out)
{
    struct constant *wide[2];
    TRY(widen(in, 2, wide));
    TRY(constant_new(in, wide[0]->shape, true, out));
    (*out)->batch = wide[0]->batch;
    for (int64_t i = 0; i < (*out)->count; i++) {
        for (int side = 0; side < 2; side++)
            if (wide[side]->wholes && samples_in(wide[side]->wholes[i]))
                REFUSE(in, STATUS_UNSUPPORTED, "it asks how many samples there are");
        (*out)->wholes[i] =
            compare(in->node->op_type, constant_at(wide[0], i), constant_at(wide[1], i));
    }
    return STATUS_OK;
}

enum status fold_not(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    if (!x->wholes)
        REFUSE(in, STATUS_UNSUPPORTED, "found real numbers, expected answers");
    TRY(constant_new(in, x->shape, true, out));
    (*out)->batch = x->batch;
    for (int64_t i = 0; i < x->count; i++)
        (*out)->wholes[i] = !x->wholes[i];
    return STATUS_OK;
}

/* Trilu: 0 below a diagonal of the last two dimensions, or above it. */
enum status fold_triangle(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    bool upper = graph_int(in, "upper", 1) != 0;
    int32_t rank = x->shape.rank;
    double diagonal;
    TRY(graph_number(in, 1, 0, &diagonal));
    if (rank < 2)
        REFUSE(in, STATUS_INPUT, "found %d dimensions, expected 2 or more", rank);
    int64_t rows = x->shape.dim[rank - 2], columns = x->shape.dim[rank - 1];
    TRY(constant_new(in, x->shape, x->wholes, out));
    for (int64_t i = 0; i < x->count; i++) {
        double over = (double)(i % columns - i / columns % rows) - diagonal;
        if (upper ? over < 0 : over > 0)
            continue;
        if (x->reals)
            (*out)->reals[i] = x->reals[i];
        else
            (*out)->wholes[i] = x->wholes[i];
    }
    return STATUS_OK;
}

enum status fold_where(struct import *in, struct constant **out)
{
    struct constant *wide[3];
    TRY(widen(in, 3, wide));
    if (!wide[0]->wholes || !wide[1]->wholes != !wide[2]->wholes)
        REFUSE(in, STATUS_UNSUPPORTED, "expected a condition, and two inputs of one type");
    TRY(constant_new(in, wide[0]->shape, wide[1]->wholes, out));
    (*out)->batch = wide[0]->batch;
    for (int64_t i = 0; i < (*out)->count; i++) {
        const struct constant *from = wide[wide[0]->wholes[i] ? 1 : 2];
        if (from->wholes)
            (*out)->wholes[i] = from->wholes[i];
        else
            (*out)->reals[i] = from->reals[i];
    }
    return STATUS_OK;
}
