/* lines.c: the layers that the nodes of a model become. See importer.h. */
#include "nn/formats/onnx/importer.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MOST = 10000, NAME_MOST = 40 };

struct shape value_sample(const struct value *value)
{
    struct shape sample = {0};
    for (int32_t d = 0; d < value->shape.rank; d++)
        if (!value_counts(value, d))
            sample.dim[sample.rank++] = value->shape.dim[d];
    if (!sample.rank) /* a sample is never without a dimension */
        sample.dim[sample.rank++] = 1;
    return sample;
}

bool value_counts(const struct value *value, int32_t axis)
{
    return axis >= 0 && axis == value->batch && value->shape.dim[axis] == 1;
}

int32_t value_place(const struct value *value, int32_t axis)
{
    return axis > value->batch && value_counts(value, value->batch) ? axis : axis + 1;
}

enum status value_axis(struct import *in, const struct value *value, int32_t axis, int32_t *out)
{
    in->misplaced = axis == value->batch;
    if (in->misplaced)
        REFUSE(in, STATUS_UNSUPPORTED,
               "it works along dimension %d, which counts the samples, expected another", axis);
    *out = value_place(value, axis);
    return STATUS_OK;
}

struct line *line_find(const struct import *in, const char *name)
{
    for (int32_t i = in->line_count - 1; i >= 0; i--)
        if (!strcmp(in->lines[i]->name, name))
            return in->lines[i];
    return NULL;
}

struct line *line_next(const struct import *in, const char **list)
{
    const char *name = *list;
    size_t length = strcspn(name, ",");
    *list = name + length + strspn(name + length, ", ");
    for (int32_t i = in->line_count - 1; i >= 0; i--)
        if (!strncmp(in->lines[i]->name, name, length) && !in->lines[i]->name[length])
            return in->lines[i];
    return NULL;
}

/* Words of the format, and what tensors of programs are called. */
static const char *const reserved[] = {"input",   "loss",    "optimiser", "schedule", "init",
                                       "network", "x",       "y",         "rows",     "target",
                                       "label",   "lengths", "right",     "recipe"};

/* A name for a layer: the node's, in letters, digits and _, that no other has. */
static enum status name_line(struct import *in, const char **out)
{
    const Onnx__NodeProto *node = in->node;
    const char *from = node && node->name && *node->name ? node->name
                       : node && node->n_output          ? node->output[0]
                       : in->reading                     ? in->reading
                                                         : "layer";
    char name[NAME_MOST + 1];
    size_t length = 0, skip = strlen(from) > NAME_MOST ? strlen(from) - NAME_MOST : 0;
    for (from += skip; *from; from++)
        if (isalnum((unsigned char)*from) || length)
            name[length++] = isalnum((unsigned char)*from) ? *from : '_';
    name[length] = 0;
    bool taken = !length || isdigit((unsigned char)*name) || line_find(in, name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        taken = taken || !strcmp(name, reserved[i]);
    NEED(*out = taken ? arena_format(&in->arena, "%s%s%d", isdigit((unsigned char)*name) ? "n" : "",
                                     name, in->line_count)
                      : arena_text(&in->arena, name));
    for (int32_t more = 1; taken && line_find(in, *out); more++)
        NEED(*out = arena_format(&in->arena, "layer%d_%d", in->line_count, more));
    return STATUS_OK;
}

enum status line_add(struct import *in, const char *kind, const char *inputs, struct line **out,
                     const char *format, ...)
{
    char arguments[400];
    va_list list;
    if (in->line_count == LINES_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "the model becomes more than %d layers", LINES_MOST);
    if (in->line_count == in->line_room) {
        int32_t room = in->line_room ? 2 * in->line_room : 64;
        struct line **grown = arena_array(&in->arena, (size_t)room, sizeof *grown);
        NEED(grown);
        if (in->line_count)
            memcpy(grown, in->lines, (size_t)in->line_count * sizeof *grown);
        in->lines = grown;
        in->line_room = room;
    }
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    struct line *line = arena_alloc(&in->arena, sizeof *line);
    NEED(line);
    *line = (struct line){.kind = kind};
    TRY(name_line(in, &line->name));
    NEED(line->arguments = arena_text(&in->arena, arguments));
    NEED(line->inputs = arena_text(&in->arena, inputs));
    while (*inputs) {
        struct line *from = line_next(in, &inputs);
        if (from)
            from->readers++;
    }
    in->lines[in->line_count++] = line;
    *out = line;
    return STATUS_OK;
}

enum status line_sizes(struct import *in, const struct shape *shape, const char **out)
{
    struct text text = {0};
    for (int32_t d = 0; d < shape->rank; d++)
        text_printf(&text, "%s%lld", d ? "x" : "", (long long)shape->dim[d]);
    *out = arena_text(&in->arena, shape->rank ? text_of(&text) : "1");
    text_free(&text);
    NEED(*out);
    return STATUS_OK;
}

enum status line_weights(struct import *in, int64_t count, float **out)
{
    size_t taken = SIZE_MAX; /* a small file may have many layers of the same numbers */
    if (size_mul((size_t)count, sizeof **out, &taken) && size_add(in->taken, taken, &taken))
        in->taken = taken;
    if (taken > in->memory / 2)
        REFUSE(in, STATUS_INPUT,
               "the layers up to this one take %zu bytes of weights, expected at most half of this "
               "machine's memory, %zu",
               taken, in->memory);
    NEED(*out = arena_array(&in->weights, (size_t)count, sizeof **out));
    return STATUS_OK;
}

enum status line_give(struct import *in, const struct line *line, const char *parameter,
                      const float *values, int64_t count)
{
    if (in->given_count == in->given_room) {
        int32_t room = in->given_room ? 2 * in->given_room : 64;
        struct given *grown = arena_array(&in->weights, (size_t)room, sizeof *grown);
        NEED(grown);
        if (in->given_count)
            memcpy(grown, in->given, (size_t)in->given_count * sizeof *grown);
        in->given = grown;
        in->given_room = room;
    }
    struct given *given = &in->given[in->given_count++];
    *given = (struct given){.count = count, .values = values};
    NEED(given->name = arena_format(&in->weights, "%s.%s", line->name, parameter));
    return STATUS_OK;
}

void line_learns(struct import *in, bool learnt)
{
    in->given[in->given_count - 1].fixed = !learnt;
}

enum status line_constant(struct import *in, const float *values, int64_t count, bool learnt,
                          struct shape sample, const char **out)
{
    struct line *line;
    const char *sizes;
    float *kept;
    if (!count || shape_count(&sample) != count)
        REFUSE(in, STATUS_UNSUPPORTED, "found known numbers of a shape that a sample cannot have");
    if (sample.rank >= SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "found %d dimensions, expected at most %d", sample.rank,
               SHAPE_MOST - 1);
    TRY(line_sizes(in, &sample, &sizes));
    TRY(line_add(in, "parameter", "", &line, "%s learnt=%d", sizes, learnt));
    TRY(line_weights(in, count, &kept));
    memcpy(kept, values, (size_t)count * sizeof *kept);
    *out = line->name;
    TRY(line_give(in, line, "weight", kept, count));
    line_learns(in, learnt);
    return STATUS_OK;
}

enum status line_of(struct import *in, const struct value *value, struct shape sample,
                    const char **out)
{
    struct line *line;
    const char *sizes;
    if (value->constant) {
        const struct constant *constant = value->constant;
        if (!constant->reals)
            REFUSE(in, STATUS_UNSUPPORTED, "'%.80s' is whole numbers, expected real ones",
                   value->name);
        if (!value->constant->layer) {
            TRY(line_constant(in, constant->reals, constant->count, constant->learnt, sample,
                              &value->constant->layer));
            value->constant->gives = sample;
        }
        *out = constant->layer;
        return shape_equal(&constant->gives, &sample) ? STATUS_OK
                                                      : line_shape(in, *out, sample, out);
    }
    if (value->padded)
        REFUSE(in, STATUS_UNSUPPORTED, "'%.80s' was padded, expected that only before Conv",
               value->name);
    *out = value->layer;
    if (shape_equal(&value->gives, &sample))
        return STATUS_OK;
    if (sample.rank >= SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "found %d dimensions beside the batch, expected at most %d",
               sample.rank, SHAPE_MOST - 1);
    TRY(line_sizes(in, &sample, &sizes));
    TRY(line_add(in, "reshape", value->layer, &line, "%s", sizes));
    *out = line->name;
    return STATUS_OK;
}

enum status line_of_value(struct import *in, const struct value *value, const char **out)
{
    return line_of(in, value, value_sample(value), out);
}

enum status line_shape(struct import *in, const char *x, struct shape sample, const char **out)
{
    struct line *line;
    const char *sizes;
    TRY(line_sizes(in, &sample, &sizes));
    TRY(line_add(in, "reshape", x, &line, "%s", sizes));
    *out = line->name;
    return STATUS_OK;
}

enum status line_pair(struct import *in, const char *kind, const char *a, const char *b,
                      const char **out)
{
    const char *inputs = arena_format(&in->arena, "%s, %s", a, b);
    struct line *line;
    NEED(inputs);
    TRY(line_add(in, kind, inputs, &line, "%s", ""));
    *out = line->name;
    return STATUS_OK;
}

enum status line_affine(struct import *in, const char *x, int32_t rank, double scale, double shift,
                        const char **out)
{
    struct shape ones = {.rank = rank};
    const double by[] = {scale, shift};
    for (int32_t d = 0; d < rank; d++)
        ones.dim[d] = 1;
    *out = x;
    for (int i = 0; i < 2; i++) {
        const float value = (float)by[i];
        const char *number;
        if (by[i] == (i ? 0 : 1))
            continue;
        TRY(line_constant(in, &value, 1, false, ones, &number));
        TRY(line_pair(in, i ? "add" : "multiply", *out, number, out));
    }
    return STATUS_OK;
}

enum status line_slice(struct import *in, const char *x, int32_t axis, int64_t from, int64_t size,
                       const char **out)
{
    struct line *line;
    TRY(line_add(in, "slice", x, &line, "%lld from=%lld axis=%d", (long long)size, (long long)from,
                 axis));
    *out = line->name;
    return STATUS_OK;
}

/* At most as many at once as a line takes. */
enum status line_join(struct import *in, const char *const *layers, int64_t count, int32_t axis,
                      const char **out)
{
    const char *joined = layers[0];
    for (int64_t at = 1; at < count;) {
        struct text inputs = {0};
        struct line *line;
        text_add(&inputs, joined);
        for (int taken = 1; at < count && taken < LAYER_INPUTS; taken++)
            text_printf(&inputs, ", %s", layers[at++]);
        const char *list = arena_text(&in->arena, text_of(&inputs));
        text_free(&inputs);
        NEED(list);
        TRY(line_add(in, "concat", list, &line, "axis=%d", axis));
        joined = line->name;
    }
    *out = joined;
    return STATUS_OK;
}

enum status line_pick(struct import *in, const char *x, int32_t axis, const int64_t *places,
                      int64_t count, const char **out)
{
    const char **parts = arena_array(&in->arena, (size_t)count, sizeof *parts);
    int64_t parts_count = 0;
    NEED(parts);
    for (int64_t i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && places[i + run] == places[i] + run;)
            run++;
        TRY(line_slice(in, x, axis, places[i], run, &parts[parts_count++]));
    }
    return line_join(in, parts, parts_count, axis, out);
}

enum status line_pad(struct import *in, int32_t axis, int64_t before, int64_t behind, float number,
                     struct shape *sample, const char **layer)
{
    const int64_t sizes[2] = {before, behind};
    for (int side = 0; side < 2; side++) {
        struct shape shape = *sample;
        struct constant *fill;
        const char *parts[2] = {*layer, *layer};
        if (!sizes[side])
            continue;
        shape.dim[axis - 1] = sizes[side];
        TRY(constant_new(in, shape, false, &fill));
        for (int64_t i = 0; i < fill->count; i++)
            fill->reals[i] = number;
        TRY(line_constant(in, fill->reals, fill->count, false, shape, &parts[side]));
        TRY(line_join(in, parts, 2, axis, layer));
        sample->dim[axis - 1] += sizes[side];
    }
    return STATUS_OK;
}

/* Nothing works along the parts of samples in the dimension that counts these, so that they lie
 * there as in the inputs. */
static enum status find_ahead(struct import *in, struct value *value)
{
    bool alone = value->batch < 0 || value_counts(value, value->batch);
    value->ahead = alone;
    for (size_t i = 0; !alone && i < in->node->n_input; i++) {
        const struct value *x = graph_input(in, i);
        if (!x || x->batch < 0 || x->shape.dim[x->batch] != value->shape.dim[value->batch])
            continue;
        if (value->ahead && value->ahead != x->ahead)
            REFUSE(in, STATUS_UNSUPPORTED, "its inputs count parts of samples in different orders");
        value->ahead = x->ahead;
    }
    return STATUS_OK;
}

void line_gives_value(struct line *line, struct value *value)
{
    if (value->line)
        value->line->pending -= value->pending;
    value->line = line;
    if (line)
        line->pending += value->pending;
}

struct line *line_alone(const struct value *value)
{
    struct line *line = value->line;
    return line && line->pending == 1 && !line->readers ? line : NULL;
}

enum status line_gives(struct import *in, size_t i, const char *layer, struct shape gives,
                       struct shape shape, int32_t batch)
{
    struct value *value = graph_output(in, i);
    if (!value)
        return STATUS_OK;
    value->layer = layer;
    line_gives_value(line_find(in, layer), value);
    value->gives = gives;
    value->shape = shape;
    value->batch = batch;
    value->ready = true;
    TRY(find_ahead(in, value));
    struct shape sample = value_sample(value);
    if (shape_count(&sample) < 1 || shape_count(&sample) != shape_count(&gives) ||
        shape_count(&sample) > ELEMENTS_MOST)
        REFUSE(in, STATUS_UNSUPPORTED,
               "its output is empty or too large, expected 1 to %lld "
               "elements of a sample",
               (long long)ELEMENTS_MOST);
    return STATUS_OK;
}

enum status line_gives_like(struct import *in, const char *layer, const struct value *like)
{
    return line_gives(in, 0, layer, value_sample(like), like->shape, like->batch);
}

enum status line_gives_same(struct import *in, const struct value *from, struct shape shape,
                            int32_t batch)
{
    struct value *to = graph_output(in, 0);
    TRY(line_gives(in, 0, from->layer, from->gives, shape, batch));
    if (to)
        to->tokens = from->tokens;
    return STATUS_OK;
}

enum status line_known(struct import *in, struct value *value, int32_t batch)
{
    struct value layer = *value;
    if (!value->constant)
        return STATUS_OK;
    if (batch >= 0 && value->constant->batch != batch &&
        (batch >= value->shape.rank || value->shape.dim[batch] != 1))
        REFUSE(in, STATUS_UNSUPPORTED, "'%.80s' is known numbers, but not those of a sample",
               value->name);
    layer.batch = batch;
    layer.ahead = 1;
    layer.gives = value_sample(&layer);
    TRY(line_of(in, value, layer.gives, &layer.layer));
    layer.constant = NULL;
    layer.known = value->constant;
    *value = layer;
    line_gives_value(line_find(in, layer.layer), value);
    return STATUS_OK;
}

void line_known_again(struct value *value)
{
    value->constant = value->known;
    value->batch = value->known->batch;
    value->known = NULL;
    line_gives_value(NULL, value);
}
