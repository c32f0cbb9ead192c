/* layer.c: the table of layer kinds, and what their emitters share. */
#include "nn/layer.h"

#include "nn/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LAYER(kind, inputs, arguments, help) layer_emitter emit_##kind;
#include "nn/layers.def"
#undef LAYER

static const struct layer_kind kinds[] = {
#define LAYER(kind, inputs, arguments, help) {#kind, inputs, arguments, help, emit_##kind},
#include "nn/layers.def"
#undef LAYER
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const struct layer_kind *layer_kinds(int32_t *count)
{
    *count = KINDS;
    return kinds;
}

const struct layer_kind *layer_find(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

/* Does the parameter start from what came with the network? */
static void give(struct layer_emit *emit, const char *name, int32_t entry)
{
    struct params *params = emit->draft->params;
    int64_t count = shape_count(&params->entries[entry].shape);
    for (int32_t i = 0; i < emit->given_count; i++) {
        const struct given *given = &emit->given[i];
        if (strcmp(given->name, name) || !given->values)
            continue;
        if (given->count != count)
            draft_fail(emit->draft, STATUS_INPUT, "%s: found %lld numbers for it, expected %lld",
                       name, (long long)given->count, (long long)count);
        params_give(params, entry, given->values);
        params->entries[entry].fixed = given->fixed;
    }
}

static int32_t keep(struct layer_emit *emit, const char *name, enum role role, struct shape shape,
                    struct init init, bool matrix)
{
    struct draft *draft = emit->draft;
    char full[200];
    int32_t entry;
    if (draft->status != STATUS_OK)
        return -1;
    snprintf(full, sizeof full, "%s%s.%s", emit->prefix, emit->layer->name, name);
    enum status status =
        params_declare(draft->params, full, role, draft->params->real, shape, init, &entry);
    if (status != STATUS_OK) {
        draft_fail(draft, status, "%s", status_message());
        return -1;
    }
    if (matrix)
        params_mark_matrix(draft->params, entry);
    give(emit, full, entry);
    return draft_kept(draft, entry);
}

int32_t layer_param(struct layer_emit *emit, const char *name, struct shape shape, struct init init)
{
    return keep(emit, name, ROLE_PARAM, shape, init, false);
}

int32_t layer_matrix(struct layer_emit *emit, const char *name, struct shape shape,
                     struct init init)
{
    /* rounding touches it as well */
    return keep(emit, name, ROLE_PARAM, shape, init, !emit->weight_bits);
}

static int32_t round_to(struct layer_emit *emit, int32_t x, int32_t bits, int64_t inner,
                        int64_t channels)
{
    if (!emit->weight_bits || emit->draft->status != STATUS_OK)
        return x;
    int32_t y = draft_real(emit->draft, "rounded", *draft_shape(emit->draft, x));
    struct op *op = draft_op(emit->draft, OP_fake_quantise, IN(x), OUT(y));
    op->attr.fake_quantise.bits = bits;
    op->attr.fake_quantise.inner = (int32_t)inner;
    op->attr.fake_quantise.channels = (int32_t)channels;
    return y;
}

int32_t layer_rounded_input(struct layer_emit *emit, int32_t x)
{
    return round_to(emit, x, 8, 0, 0);
}

int32_t layer_rounded_weight(struct layer_emit *emit, int32_t w, int64_t inner, int64_t channels)
{
    return round_to(emit, w, emit->weight_bits, inner, channels);
}

int32_t layer_statistic(struct layer_emit *emit, const char *name, struct shape shape,
                        struct init init)
{
    return keep(emit, name, ROLE_STATISTIC, shape, init, false);
}

double layer_value(const struct layer_emit *emit, const char *argument)
{
    int index = arguments_find(emit->layer->kind->arguments, argument);
    return index < 0 ? 0 : emit->layer->values[index];
}

/* Xavier: Glorot and Bengio 2010; he: He et al. 2015. */
struct init layer_init(const struct layer_emit *emit, struct init usual, int64_t fan_in,
                       int64_t fan_out)
{
    enum start start = (enum start)layer_value(emit, "init");
    float in = (float)fan_in, out = (float)fan_out;
    switch (start == START_AUTO ? emit->start : start) {
    case START_ZEROS: return (struct init){.kind = INIT_ZERO};
    case START_UNIFORM: return (struct init){INIT_UNIFORM, sqrtf(1 / in)};
    case START_NORMAL: return (struct init){INIT_NORMAL, sqrtf(1 / in)};
    case START_XAVIER: return (struct init){INIT_UNIFORM, sqrtf(6 / (in + out))};
    case START_HE: return (struct init){INIT_NORMAL, sqrtf(2 / in)};
    case START_ORTHOGONAL: return (struct init){INIT_ORTHOGONAL, 1};
    case START_AUTO:
    case START_COUNT: break;
    }
    return usual;
}

bool start_parse(const char *word, enum start *out)
{
    static const char *const words[START_COUNT] = {"auto",   "zeros", "uniform",   "normal",
                                                   "xavier", "he",    "orthogonal"};
    for (int i = 0; i < START_COUNT; i++)
        if (!strcmp(words[i], word)) {
            *out = (enum start)i;
            return true;
        }
    return false;
}

int32_t layer_output(struct layer_emit *emit, struct shape shape)
{
    return draft_real(emit->draft, emit->layer->name, shape);
}

int32_t layer_view(struct layer_emit *emit, int32_t tensor, struct shape shape)
{
    if (shape_equal(draft_shape(emit->draft, tensor), &shape))
        return tensor;
    return draft_view(emit->draft, tensor, shape);
}

struct shape layer_rows(const struct shape *shape)
{
    int64_t width = shape->dim[shape->rank - 1];
    return SHAPE(shape_count(shape) / width, width);
}

struct shape layer_along(const struct shape *shape, int32_t axis)
{
    struct shape along = SHAPE(1, shape->dim[axis], 1);
    for (int32_t i = 0; i < shape->rank; i++)
        if (i != axis)
            along.dim[i < axis ? 0 : 2] *= shape->dim[i];
    return along;
}

int32_t layer_axis(struct layer_emit *emit, const struct shape *shape, double given)
{
    for (int32_t axis = 1; axis < shape->rank; axis++)
        if (given == axis || given == axis - shape->rank)
            return axis;
    draft_fail(emit->draft, STATUS_INPUT, "%s: the axis is %g, expected 1 to %d (-1 is the last)",
               emit->layer->name, given, shape->rank - 1);
    return 1;
}
