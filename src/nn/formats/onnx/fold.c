/* fold.c: what is known when the file is read is worked out then: the chains of Shape, Gather,
 * Concat that exporters write for a Reshape, weights that are transposed or scaled
 * (fold_numbers.c). The number of samples is not known; multiples of it are (samples_times). */
#include "nn/formats/onnx/fold.h"

#include <string.h>

struct constant *fold_known(const struct import *in, size_t i)
{
    const struct value *value = graph_input(in, i);
    return value ? value->constant : NULL;
}

static void copy_element(struct constant *to, int64_t at, const struct constant *from, int64_t i)
{
    if (to->reals)
        to->reals[at] = from->reals[i];
    else
        to->wholes[at] = from->wholes[i];
}

void fold_walk(struct constant *to, const struct constant *from, int64_t offset,
               const int64_t *step)
{
    int64_t at[SHAPE_MOST] = {0};
    for (int64_t i = 0; i < to->count; i++) {
        int64_t place = offset;
        for (int32_t d = 0; d < to->shape.rank; d++)
            place += at[d] * step[d];
        copy_element(to, i, from, place);
        for (int32_t d = to->shape.rank - 1; d >= 0 && ++at[d] == to->shape.dim[d]; d--)
            at[d] = 0;
    }
}

void fold_strides(const struct shape *shape, int64_t *out)
{
    int64_t stride = 1;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        out[d] = stride;
        stride *= shape->dim[d];
    }
}

static enum status fold_constant(struct import *in, struct constant **out)
{
    const Onnx__AttributeProto *attribute = in->node->n_attribute ? in->node->attribute[0] : NULL;
    if (attribute && attribute->t)
        return constant_read(in, attribute->t, out);
    if (attribute && text_equal(attribute->name, "value_float")) {
        TRY(constant_new(in, (struct shape){0}, false, out));
        (*out)->reals[0] = attribute->f;
    } else if (attribute && text_equal(attribute->name, "value_int")) {
        TRY(constant_new(in, (struct shape){0}, true, out));
        (*out)->wholes[0] = attribute->i;
    } else if (attribute && text_equal(attribute->name, "value_ints")) {
        TRY(constant_new(in, SHAPE((int64_t)attribute->n_ints), true, out));
        for (size_t i = 0; i < attribute->n_ints; i++)
            (*out)->wholes[i] = attribute->ints[i];
    } else if (attribute && text_equal(attribute->name, "value_floats")) {
        TRY(constant_new(in, SHAPE((int64_t)attribute->n_floats), false, out));
        for (size_t i = 0; i < attribute->n_floats; i++)
            (*out)->reals[i] = attribute->floats[i];
    } else {
        REFUSE(in, STATUS_UNSUPPORTED, "found no number in it, expected a tensor, float or int");
    }
    return STATUS_OK;
}

/* One of its dimensions counts samples; of two no sample has its own part. */
static enum status count_by(struct import *in, int32_t d, int32_t *batch)
{
    if (*batch >= 0 && *batch != d)
        REFUSE(in, STATUS_UNSUPPORTED,
               "dimensions %d and %d are both as large as the number of samples, expected one",
               *batch, d);
    *batch = d;
    return STATUS_OK;
}

/* The dimensions that the whole numbers of an input say. */
static enum status shape_from(struct import *in, size_t i, struct shape *out)
{
    const struct constant *sizes = fold_known(in, i);
    *out = (struct shape){0};
    if (!sizes || !sizes->wholes || sizes->count > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "found sizes that are not known, or more than %d",
               SHAPE_MOST);
    for (int64_t d = 0; d < sizes->count; d++)
        out->dim[out->rank++] = sizes->wholes[d];
    return STATUS_OK;
}

static enum status fold_constant_of_shape(struct import *in, struct constant **out)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, "value");
    struct constant *value = NULL;
    struct shape shape;
    int32_t batch = -1;
    TRY(shape_from(in, 0, &shape));
    for (int32_t d = 0; d < shape.rank; d++)
        if (samples_in(shape.dim[d])) {
            TRY(count_by(in, d, &batch));
            shape.dim[d] = samples_in(shape.dim[d]);
        }
    if (attribute && attribute->t)
        TRY(constant_read(in, attribute->t, &value));
    TRY(constant_new(in, shape, value && value->wholes, out));
    for (int64_t i = 0; value && value->count && i < (*out)->count; i++)
        copy_element(*out, i, value, 0);
    (*out)->batch = batch;
    return STATUS_OK;
}

/* Of any value: its shape is known also where its elements are not. */
static enum status fold_shape(struct import *in, struct constant **out)
{
    const struct value *value = graph_input(in, 0);
    int32_t rank = value->shape.rank;
    int64_t from = graph_int(in, "start", 0), to = graph_int(in, "end", rank);
    from = from < 0 ? from + rank : from;
    to = to < 0 ? to + rank : to;
    from = from < 0 ? 0 : from > rank ? rank : from;
    to = to < from ? from : to > rank ? rank : to;
    TRY(constant_new(in, SHAPE(to - from), true, out));
    for (int64_t d = from; d < to; d++)
        (*out)->wholes[d - from] =
            d == value->batch ? samples_times(value->shape.dim[d]) : value->shape.dim[d];
    return STATUS_OK;
}

/* How many elements it has. */
static enum status fold_size(struct import *in, struct constant **out)
{
    const struct value *value = graph_input(in, 0);
    int64_t count = value->constant ? value->constant->count : shape_count(&value->shape);
    TRY(constant_new(in, (struct shape){0}, true, out));
    (*out)->wholes[0] = value->batch >= 0 ? samples_times(count) : count;
    return STATUS_OK;
}

static enum status fold_gather(struct import *in, struct constant **out)
{
    const struct constant *data = fold_known(in, 0), *picks = fold_known(in, 1);
    struct shape shape = {0};
    int32_t axis;
    TRY(graph_axis_of(in, "axis", 0, data->shape.rank, &axis));
    if (!picks->wholes || data->shape.rank + picks->shape.rank - 1 > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED,
               "found indices that are no whole numbers, or too many "
               "dimensions");
    int64_t size = data->shape.dim[axis], behind = 1;
    int32_t batch = picks->batch < 0 ? -1 : axis + picks->batch;
    for (int32_t d = 0; d < data->shape.rank; d++) {
        if (d > axis)
            behind *= data->shape.dim[d];
        if (d == data->batch && d != axis)
            TRY(count_by(in, d < axis ? d : d + picks->shape.rank - 1, &batch));
        for (int32_t k = 0; d == axis && k < picks->shape.rank; k++)
            shape.dim[shape.rank++] = picks->shape.dim[k];
        if (d != axis)
            shape.dim[shape.rank++] = data->shape.dim[d];
    }
    TRY(constant_new(in, shape, data->wholes, out));
    for (int64_t i = 0; i < (*out)->count; i++) {
        int64_t pick = picks->wholes[i / behind % picks->count];
        if (samples_in(pick) || (axis == data->batch && pick != 0 && pick != -1))
            REFUSE(in, STATUS_UNSUPPORTED,
                   "which places it takes depends on the number of samples, which is not known");
        TRY(graph_place(in, pick, size, &pick));
        int64_t outer = i / behind / picks->count;
        copy_element(*out, i, data, (outer * size + pick) * behind + i % behind);
    }
    (*out)->batch = batch;
    return STATUS_OK;
}

/* Squeeze and Unsqueeze: which dimensions of 1 go or come. */
static enum status fold_squeeze(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    bool add = !strcmp(in->node->op_type, "Unsqueeze"), chosen[SHAPE_MOST] = {false};
    const int64_t *axes;
    int64_t count;
    struct shape shape = {0};
    TRY(graph_numbers(in, 1, "axes", &axes, &count));
    if (count > SHAPE_MOST || (add && (count < 0 || x->shape.rank + count > SHAPE_MOST)))
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld axes, expected them and at most %d dimensions",
               (long long)count, SHAPE_MOST);
    int32_t rank = x->shape.rank + (add ? (int32_t)count : 0), from = 0, batch = -1;
    for (int64_t i = 0; i < count; i++) {
        int32_t axis;
        TRY(graph_axis(in, axes[i], rank, &axis));
        if (chosen[axis] || (!add && (x->shape.dim[axis] != 1 || axis == x->batch)))
            REFUSE(in, STATUS_INPUT, "found the axis %d twice, or not one place in it", axis);
        chosen[axis] = true;
    }
    for (int32_t d = 0; d < rank; d++) {
        bool gone = !add && (count < 0 ? x->shape.dim[d] == 1 && d != x->batch : chosen[d]);
        if (gone || (add && chosen[d])) {
            from += gone;
            shape.dim[shape.rank] = 1;
            shape.rank += !gone;
            continue;
        }
        if (from == x->batch)
            batch = shape.rank;
        shape.dim[shape.rank++] = x->shape.dim[from++];
    }
    TRY(constant_view(in, x, shape, out));
    (*out)->batch = batch;
    return STATUS_OK;
}

/* Which of the new sizes counts the samples that x has: the one that says so, the open one, or one
 * that is as large as the file says. They stay where they are in the order of elements. */
static enum status reshaped_batch(struct import *in, const struct constant *x, int32_t open,
                                  struct shape *shape, int32_t *batch)
{
    *batch = *batch < 0 && x->batch >= 0 ? open : *batch;
    for (int32_t d = 0; x->batch >= 0 && *batch < 0 && d < shape->rank; d++)
        if (shape->dim[d] == in->samples) {
            shape->dim[d] = 1;
            *batch = d;
        }
    bool one = in->samples == 1; /* and so it may be asked for where nothing has it */
    if (x->batch < 0 ? *batch >= 0 && !one
                     : *batch < 0 || graph_count(&x->shape, x->batch) != graph_count(shape, *batch))
        REFUSE(in, STATUS_UNSUPPORTED,
               "its new shape and its input's shape depend on the number of samples in different "
               "ways");
    return STATUS_OK;
}

static enum status fold_reshape(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    struct shape shape;
    int64_t rest = 1;
    int32_t open = -1, batch = -1;
    TRY(shape_from(in, 1, &shape));
    for (int32_t d = 0; d < shape.rank; d++) {
        int64_t times = samples_in(shape.dim[d]);
        bool copied = shape.dim[d] == 0 && d < x->shape.rank && !graph_int(in, "allowzero", 0);
        if (times || (copied && d == x->batch))
            TRY(count_by(in, d, &batch));
        if (times || copied)
            shape.dim[d] = times ? times : x->shape.dim[d];
        if (shape.dim[d] == -1 && open < 0)
            open = d;
        else if (shape.dim[d] < 0)
            REFUSE(in, STATUS_UNSUPPORTED, "found the size %lld among its new ones",
                   (long long)shape.dim[d]);
    }
    TRY(reshaped_batch(in, x, open, &shape, &batch));
    for (int32_t d = 0; d < shape.rank; d++)
        if (d != open && __builtin_mul_overflow(rest, shape.dim[d], &rest))
            REFUSE(in, STATUS_UNSUPPORTED, "its new shape is too large");
    if (open >= 0)
        shape.dim[open] = rest ? x->count / rest : 0;
    TRY(constant_view(in, x, shape, out));
    (*out)->batch = batch;
    return STATUS_OK;
}

static enum status fold_transpose(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    int32_t rank = x->shape.rank;
    int64_t count, stride[SHAPE_MOST], step[SHAPE_MOST];
    const int64_t *perm = graph_ints(in, "perm", &count);
    bool seen[SHAPE_MOST] = {false};
    int32_t batch = -1;
    struct shape shape = {.rank = rank};
    if (count >= 0 && count != rank)
        REFUSE(in, STATUS_INPUT, "found %lld dimensions to order, expected %d", (long long)count,
               rank);
    fold_strides(&x->shape, stride);
    for (int32_t d = 0; d < rank; d++) {
        int64_t from = count < 0 ? rank - 1 - d : perm[d];
        if (from < 0 || from >= rank || seen[from])
            REFUSE(in, STATUS_INPUT, "expected each dimension once among those to order");
        seen[from] = true;
        batch = from == x->batch ? d : batch;
        shape.dim[d] = x->shape.dim[from];
        step[d] = stride[from];
    }
    TRY(constant_new(in, shape, x->wholes, out));
    fold_walk(*out, x, 0, step);
    (*out)->batch = batch;
    return STATUS_OK;
}

static enum status fold_concat(struct import *in, struct constant **out)
{
    const struct constant *first = fold_known(in, 0);
    struct shape shape = first->shape;
    int32_t axis;
    TRY(graph_axis_of(in, "axis", 0, shape.rank, &axis));
    if (first->batch == axis)
        REFUSE(in, STATUS_UNSUPPORTED, "it works along dimension %d, which counts samples", axis);
    shape.dim[axis] = 0;
    for (size_t i = 0; i < in->node->n_input; i++) {
        struct shape like =
            fold_known(in, i) ? fold_known(in, i)->shape : (struct shape){.rank = -1};
        if (like.rank != shape.rank || !fold_known(in, i)->wholes != !first->wholes ||
            fold_known(in, i)->batch != first->batch)
            REFUSE(in, STATUS_INPUT,
                   "its inputs have different ranks or types, or count samples differently");
        if (__builtin_add_overflow(shape.dim[axis], like.dim[axis], &shape.dim[axis]))
            REFUSE(in, STATUS_INPUT, "its inputs are too large together");
        like.dim[axis] = first->shape.dim[axis];
        if (memcmp(like.dim, first->shape.dim, (size_t)like.rank * sizeof *like.dim))
            REFUSE(in, STATUS_INPUT, "its inputs have different shapes");
    }
    TRY(constant_new(in, shape, first->wholes, out));
    const struct constant **parts = arena_array(&in->arena, in->node->n_input, sizeof *parts);
    size_t part_count = 0; /* without the empty ones, which may be many and have many rows */
    int64_t behind = 1, at = 0;
    NEED(parts);
    for (size_t i = 0; i < in->node->n_input; i++)
        if (fold_known(in, i)->count)
            parts[part_count++] = fold_known(in, i);
    for (int32_t d = axis + 1; d < shape.rank; d++)
        behind *= shape.dim[d];
    for (int64_t row = 0; at < (*out)->count; row++)
        for (size_t i = 0; i < part_count; i++) {
            int64_t run = parts[i]->shape.dim[axis] * behind;
            for (int64_t k = 0; k < run; k++)
                copy_element(*out, at++, parts[i], row * run + k);
        }
    (*out)->batch = first->batch;
    return STATUS_OK;
}

static enum status fold_slice(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    int64_t step[SHAPE_MOST] = {0}, stride[SHAPE_MOST], offset = 0;
    struct shape shape = x->shape;
    struct slices slices;
    int32_t batch = x->batch;
    TRY(graph_slices(in, shape.rank, &slices));
    fold_strides(&shape, stride);
    memcpy(step, stride, (size_t)shape.rank * sizeof *step);
    for (int64_t i = 0; i < slices.count; i++) {
        int32_t axis = slices.axis[i];
        struct range range;
        if (axis == x->batch && slices_take_samples(&slices, i, shape.dim[axis]))
            continue;
        if (axis == x->batch && (shape.dim[axis] != 1 || slices.from[i] != 0 || slices.to[i] != 1))
            REFUSE(in, STATUS_UNSUPPORTED, "it takes some of all samples, expected one or all");
        batch = axis == x->batch ? -1 : batch; /* one, which is like the others */
        TRY(graph_range(in, shape.dim[axis], slices.from[i], slices.to[i], slices.by[i], &range));
        shape.dim[axis] = range.count;
        offset += range.from * stride[axis];
        step[axis] = stride[axis] * (range.count > 1 ? range.by : 0);
    }
    TRY(constant_new(in, shape, x->wholes, out));
    fold_walk(*out, x, offset, step);
    (*out)->batch = batch;
    return STATUS_OK;
}

static enum status fold_cast(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    int64_t to = graph_int(in, "to", ELEMENT_FLOAT);
    bool real = element_is_real(to);
    if (!real && to != ELEMENT_INT64 && to != ELEMENT_INT32 && to != ELEMENT_BOOL)
        REFUSE(in, STATUS_UNSUPPORTED, "found a cast to type %lld", (long long)to);
    bool rounds = to == ELEMENT_HALF || to == ELEMENT_BFLOAT16;
    if (real ? x->reals && !rounds : x->wholes && to == ELEMENT_INT64)
        return constant_view(in, x, x->shape, out);
    TRY(constant_new(in, x->shape, !real, out));
    (*out)->batch = x->batch;
    double most = to == ELEMENT_INT32 ? 0x1p31 : 9e18;
    for (int64_t i = 0; i < x->count; i++) {
        double number = constant_at(x, i);
        bool samples = x->wholes && samples_in(x->wholes[i]);
        if (to == ELEMENT_BOOL)
            (*out)->wholes[i] = number != 0;
        else if (samples && !real)
            (*out)->wholes[i] = x->wholes[i];
        else if (samples)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "it makes a real number of the number of samples, which is not known");
        else if (rounds)
            (*out)->reals[i] = constant_rounded(to, (float)number);
        else if (!(number >= -most && number < most))
            REFUSE(in, STATUS_UNSUPPORTED, "found %g, which cannot be cast", number);
        else if (real)
            (*out)->reals[i] = (float)number;
        else
            (*out)->wholes[i] = (int64_t)number;
    }
    return STATUS_OK;
}

static enum status fold_identity(struct import *in, struct constant **out)
{
    return constant_view(in, fold_known(in, 0), fold_known(in, 0)->shape, out);
}

/* What has the size 1 is repeated; for each sample it need not be, as it is the same for all. */
static enum status fold_expand(struct import *in, struct constant **out)
{
    const struct constant *x = fold_known(in, 0);
    int64_t stride[SHAPE_MOST], step[SHAPE_MOST] = {0};
    struct shape shape, whole;
    int32_t batch = -1;
    TRY(shape_from(in, 1, &shape));
    whole = shape.rank < x->shape.rank ? x->shape : shape;
    fold_strides(&x->shape, stride);
    for (int32_t d = 0; d < whole.rank; d++) {
        int32_t own = d - (whole.rank - x->shape.rank), to = d - (whole.rank - shape.rank);
        int64_t is = own < 0 ? 1 : x->shape.dim[own], wanted = to < 0 ? 1 : shape.dim[to];
        bool counts = own >= 0 && own == x->batch;
        if (samples_in(wanted) == 1 && !counts && is > 1 && is == in->samples)
            wanted = is; /* as many as the file says there are */
        bool asked = samples_in(wanted) != 0;
        wanted = asked ? samples_in(wanted) : wanted;
        if ((is != wanted && is != 1 && wanted != 1) || (asked && !counts && is != 1) ||
            (counts && wanted != is && wanted != 1))
            REFUSE(in, STATUS_INPUT, "found %lld places to be %lld%s", (long long)is,
                   (long long)wanted, asked ? " for each sample" : "");
        if (counts || asked)
            TRY(count_by(in, d, &batch));
        whole.dim[d] = is == 1 ? wanted : is;
        if (own >= 0 && is != 1)
            step[d] = stride[own];
    }
    TRY(constant_new(in, whole, x->wholes, out));
    fold_walk(*out, x, 0, step);
    (*out)->batch = batch;
    return STATUS_OK;
}

static const struct {
    const char *op;
    folder *fold;
    size_t least; /* inputs */
    bool follows; /* the dimension that counts samples */
    bool moves;   /* its numbers are those of its inputs, once, where there are no more of them */
} folders[] = {
    {"Constant", fold_constant, 0, false, false},
    {"Shape", fold_shape, 1, true, false},
    {"Size", fold_size, 1, true, false},
    {"ConstantOfShape", fold_constant_of_shape, 1, false, false},
    {"Gather", fold_gather, 2, true, false},
    {"Squeeze", fold_squeeze, 1, true, true},
    {"Unsqueeze", fold_squeeze, 1, true, true},
    {"Reshape", fold_reshape, 2, true, true},
    {"Transpose", fold_transpose, 1, true, true},
    {"Concat", fold_concat, 1, true, true},
    {"Slice", fold_slice, 1, true, true},
    {"Cast", fold_cast, 1, true, true},
    {"Identity", fold_identity, 1, true, true},
    {"Sqrt", fold_function, 1, true, false},
    {"Floor", fold_function, 1, true, false},
    {"Ceil", fold_function, 1, true, false},
    {"Round", fold_function, 1, true, false},
    {"Sin", fold_function, 1, true, false},
    {"Cos", fold_function, 1, true, false},
    {"Exp", fold_function, 1, true, false},
    {"Log", fold_function, 1, true, false},
    {"Neg", fold_function, 1, true, false},
    {"Abs", fold_function, 1, true, false},
    {"Tanh", fold_function, 1, true, false},
    {"Erf", fold_function, 1, true, false},
    {"Relu", fold_function, 1, true, false},
    {"Sigmoid", fold_function, 1, true, false},
    {"Softplus", fold_function, 1, true, false},
    {"Reciprocal", fold_function, 1, true, false},
    {"Range", fold_range, 3, false, false},
    {"Add", fold_pair, 2, true, false},
    {"Sub", fold_pair, 2, true, false},
    {"Mul", fold_pair, 2, true, false},
    {"Div", fold_pair, 2, true, false},
    {"Pow", fold_pair, 2, true, false},
    {"Equal", fold_equal, 2, true, false},
    {"Less", fold_compare, 2, true, false},
    {"LessOrEqual", fold_compare, 2, true, false},
    {"Greater", fold_compare, 2, true, false},
    {"GreaterOrEqual", fold_compare, 2, true, false},
    {"And", fold_compare, 2, true, false},
    {"Or", fold_compare, 2, true, false},
    {"Xor", fold_compare, 2, true, false},
    {"Not", fold_not, 1, true, false},
    {"Trilu", fold_triangle, 1, false, false},
    {"Where", fold_where, 3, true, false},
    {"Expand", fold_expand, 2, true, true},
    {"QuantizeLinear", fold_quantise, 2, true, false},
    {"DequantizeLinear", fold_dequantise, 2, true, false},
};

/* Are there no more numbers than those of the inputs? Else they are repeated. */
static bool fold_once(const struct import *in, const struct constant *made)
{
    int64_t count = 0;
    for (size_t i = 0; i < in->node->n_input; i++)
        count += fold_known(in, i) && fold_known(in, i)->reals ? fold_known(in, i)->count : 0;
    return made->reals && made->count <= count;
}

/* Refuses numbers of which there are as many as samples where it would be lost. */
static enum status check_samples(struct import *in, bool follows)
{
    for (size_t i = 0; !follows && i < in->node->n_input; i++)
        if (fold_known(in, i) && fold_known(in, i)->batch >= 0)
            REFUSE(in, STATUS_UNSUPPORTED,
                   "its input %zu has as many places as there are samples, which is not known",
                   i + 1);
    return STATUS_OK;
}

/* Split: parts of one dimension, one behind the other, an output each. */
static enum status fold_split(struct import *in)
{
    const struct constant *x = fold_known(in, 0);
    const int64_t *sizes;
    int64_t count, from = 0, outputs = (int64_t)in->node->n_output, stride[SHAPE_MOST];
    int32_t axis;
    TRY(graph_numbers(in, 1, "split", &sizes, &count));
    TRY(graph_axis_of(in, "axis", 0, x->shape.rank, &axis));
    int64_t whole = x->shape.dim[axis];
    if (axis == x->batch || (count >= 0 && count != outputs) || (count < 0 && whole % outputs))
        REFUSE(in, STATUS_UNSUPPORTED, "found %lld places for %lld outputs", (long long)whole,
               (long long)outputs);
    fold_strides(&x->shape, stride);
    for (int64_t i = 0; i < outputs; i++) {
        int64_t size = count < 0 ? whole / outputs : sizes[i];
        struct value *value = graph_output(in, (size_t)i);
        struct shape shape = x->shape;
        if (size < 0 || size > whole - from)
            REFUSE(in, STATUS_INPUT, "found a part of %lld of %lld places", (long long)size,
                   (long long)whole);
        shape.dim[axis] = size;
        if (value) {
            TRY(constant_new(in, shape, x->wholes, &value->constant));
            fold_walk(value->constant, x, from * stride[axis], stride);
            value->constant->batch = value->batch = x->batch;
            import_traces(in, true, value->constant);
            value->shape = shape;
            value->ready = true;
        }
        from += size;
    }
    return STATUS_OK;
}

/* Is it a function that a layer does as well, of numbers that may be a sample's? Then a training
 * goes through it. */
static bool fold_leaves(const struct import *in, folder *fold)
{
    static const char *const only_here[] = {"Sqrt", "Floor", "Ceil", "Round", "Sin", "Cos"};
    const struct value *x = graph_input(in, 0);
    bool leaves = fold == fold_function && in->batch >= 0 && x->shape.rank > 1 &&
                  x->shape.rank > in->batch && x->shape.dim[in->batch] == 1;
    for (size_t i = 0; i < sizeof only_here / sizeof *only_here; i++)
        leaves = leaves && strcmp(in->node->op_type, only_here[i]);
    return leaves;
}

enum status fold_node(struct import *in, bool *done)
{
    *done = false;
    bool all = true;
    bool shape = !strcmp(in->node->op_type, "Shape") || !strcmp(in->node->op_type, "Size");
    for (size_t i = 0; i < in->node->n_input; i++)
        all = all && (!*in->node->input[i] || (graph_input(in, i) && graph_input(in, i)->constant));
    if (!all && !shape)
        return STATUS_OK;
    if (!strcmp(in->node->op_type, "Split") && graph_input(in, 0)) {
        *done = true;
        return fold_split(in);
    }
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        if (strcmp(folders[f].op, in->node->op_type))
            continue;
        for (size_t i = 0; i < folders[f].least; i++)
            if (!graph_input(in, i))
                REFUSE(in, STATUS_INPUT, "its input %zu is not there, expected %zu inputs", i + 1,
                       folders[f].least);
        if (fold_leaves(in, folders[f].fold))
            return STATUS_OK;
        struct value *value = graph_output(in, 0);
        if (!value || in->node->n_output != 1)
            REFUSE(in, STATUS_INPUT, "found %zu outputs, expected one", in->node->n_output);
        TRY(check_samples(in, folders[f].follows));
        TRY(folders[f].fold(in, &value->constant));
        import_traces(in, folders[f].moves && fold_once(in, value->constant), value->constant);
        value->shape = value->constant->shape;
        value->batch = value->constant->batch;
        value->ready = *done = true;
        return STATUS_OK;
    }
    return STATUS_OK;
}
