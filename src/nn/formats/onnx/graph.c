/* graph.c: values by name, and what a node says of itself. See importer.h. */
#include "nn/formats/onnx/importer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What an attribute says it is; writers may leave out the number itself where that is 0. */
enum { TYPE_FLOAT = 1, TYPE_INT = 2 };

enum status import_blame(const struct import *in, enum status code)
{
    const Onnx__NodeProto *node = in->node;
    if (!node)
        return status_prefix(code, "%s", in->path);
    const char *name = node->name && *node->name ? node->name
                       : node->n_output          ? node->output[0]
                                                 : "";
    return status_prefix(code, "%s: node '%.80s' (%.40s)", in->path, name,
                         node->op_type ? node->op_type : "");
}

enum status import_untrainable(struct import *in, const char *format, ...)
{
    char why[500];
    va_list list;
    if (in->untrainable)
        return STATUS_OK;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    names_clean(why);
    NEED(in->untrainable = arena_format(&in->weights, "%s: %s", in->path, why));
    return STATUS_OK;
}

static uint32_t hash(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* Where the name is in the table, or would be. */
static int32_t place_of(const struct import *in, const char *name)
{
    uint32_t at = hash(name) & (uint32_t)(in->value_room - 1);
    while (in->values[at] && strcmp(in->values[at]->name, name))
        at = (at + 1) & (uint32_t)(in->value_room - 1);
    return (int32_t)at;
}

struct value *graph_find(const struct import *in, const char *name)
{
    return in->value_room ? in->values[place_of(in, name)] : NULL;
}

/* At most half of the table is in use. */
static enum status grow(struct import *in)
{
    struct value **old = in->values;
    int32_t room = in->value_room;
    if (2 * (in->value_count + 1) <= room)
        return STATUS_OK;
    in->value_room = room ? 2 * room : 64;
    NEED(in->values = arena_array(&in->arena, (size_t)in->value_room, sizeof *in->values));
    for (int32_t i = 0; i < room; i++)
        if (old[i])
            in->values[place_of(in, old[i]->name)] = old[i];
    return STATUS_OK;
}

enum status graph_add(struct import *in, const char *name, struct value **out)
{
    TRY(grow(in));
    int32_t at = place_of(in, name);
    if (in->values[at])
        REFUSE(in, STATUS_INPUT, "'%.80s' is given twice, expected each name once", name);
    NEED(in->values[at] = *out = arena_alloc(&in->arena, sizeof **out));
    in->value_count++;
    **out = (struct value){.name = name, .batch = -1, .readers = {-1, -1}};
    return STATUS_OK;
}

struct value *graph_input(const struct import *in, size_t i)
{
    if (i >= in->node->n_input || !*in->node->input[i])
        return NULL;
    return graph_find(in, in->node->input[i]);
}

struct value *graph_output(const struct import *in, size_t i)
{
    if (i >= in->node->n_output || !*in->node->output[i])
        return NULL;
    return graph_find(in, in->node->output[i]);
}

int32_t graph_reader(const struct import *in, const struct value *value, const char *op)
{
    for (size_t i = 0; i < sizeof value->readers / sizeof *value->readers; i++) {
        const int32_t n = value->readers[i];
        if (n >= 0 && (!op || !strcmp(in->graph->node[n]->op_type, op)))
            return n;
    }
    return -1;
}

const Onnx__AttributeProto *graph_attribute(const struct import *in, const char *name)
{
    for (size_t i = 0; i < in->node->n_attribute; i++)
        if (text_equal(in->node->attribute[i]->name, name))
            return in->node->attribute[i];
    return NULL;
}

int64_t graph_int(const struct import *in, const char *name, int64_t usual)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, name);
    return attribute && (attribute->has_i || attribute->type == TYPE_INT) ? attribute->i : usual;
}

double graph_real(const struct import *in, const char *name, double usual)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, name);
    bool there = attribute && (attribute->has_f || attribute->type == TYPE_FLOAT);
    return there ? (double)attribute->f : usual;
}

bool graph_text_is(const struct import *in, const char *name, const char *usual, const char *word)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, name);
    if (!attribute || !attribute->has_s)
        return !strcmp(usual, word);
    return attribute->s.len == strlen(word) && !memcmp(attribute->s.data, word, attribute->s.len);
}

enum status graph_choice(struct import *in, const char *name, const char *const *words, int count,
                         int *out)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, name);
    char list[100] = "";
    for (*out = 0; *out < count; ++*out) {
        if (graph_text_is(in, name, words[0], words[*out]))
            return STATUS_OK;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", *out ? ", " : "", words[*out]);
    }
    REFUSE(in, STATUS_INPUT, "%s is '%.*s', expected one of %s", name,
           (int)(attribute->s.len < 40 ? attribute->s.len : 40), (const char *)attribute->s.data,
           list);
}

const int64_t *graph_ints(const struct import *in, const char *name, int64_t *count)
{
    const Onnx__AttributeProto *attribute = graph_attribute(in, name);
    *count = attribute ? (int64_t)attribute->n_ints : -1;
    return attribute ? attribute->ints : NULL;
}

enum status graph_numbers(struct import *in, size_t i, const char *name, const int64_t **out,
                          int64_t *count)
{
    const struct value *value = graph_input(in, i);
    if (!value) {
        *out = graph_ints(in, name, count);
        return STATUS_OK;
    }
    if (!value->constant || !value->constant->wholes || value->constant->batch >= 0)
        REFUSE(in, STATUS_UNSUPPORTED, "its input '%s' depends on the data, expected known numbers",
               name);
    *out = value->constant->wholes;
    *count = value->constant->count;
    return STATUS_OK;
}

enum status graph_range(struct import *in, int64_t size, int64_t from, int64_t to, int64_t by,
                        struct range *out)
{
    if (samples_in(from) || samples_in(to) || samples_in(by))
        REFUSE(in, STATUS_UNSUPPORTED,
               "where it begins or ends depends on the number of samples, which is not known");
    if (by == 0 || by == INT64_MIN)
        REFUSE(in, STATUS_INPUT, "found a step of %lld", (long long)by);
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
    from = from < -size ? 0 : from < 0 ? from + size : from;
    from = from > high ? high : from; /* -1 where there is nothing to go back over */
    to = to < -size ? low : to < 0 ? to + size : to > high ? high : to;
    int64_t room = by > 0 ? to - from : from - to, step = by > 0 ? by : -by;
    *out = (struct range){.from = from, .by = by, .count = room > 0 ? (room - 1) / step + 1 : 0};
    return STATUS_OK;
}

enum status graph_slices(struct import *in, int32_t rank, struct slices *out)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    const int64_t *given[4];
    int64_t counts[4];
    bool seen[SHAPE_MOST] = {false};
    for (size_t i = 0; i < 4; i++)
        TRY(graph_numbers(in, i + 1, names[i], &given[i], &counts[i]));
    if (counts[0] < 0 || counts[0] != counts[1] || counts[0] > SHAPE_MOST ||
        (counts[2] >= 0 && counts[2] != counts[0]) || (counts[3] >= 0 && counts[3] != counts[0]))
        REFUSE(in, STATUS_INPUT, "expected as many starts, ends, axes and steps");
    out->count = counts[0];
    for (int64_t i = 0; i < counts[0]; i++) {
        TRY(graph_axis(in, counts[2] >= 0 ? given[2][i] : i, rank, &out->axis[i]));
        if (seen[out->axis[i]])
            REFUSE(in, STATUS_INPUT, "found the axis %d twice", out->axis[i]);
        seen[out->axis[i]] = true;
        out->from[i] = given[0][i];
        out->to[i] = given[1][i];
        out->by[i] = counts[3] >= 0 ? given[3][i] : 1;
    }
    return STATUS_OK;
}

bool slices_take_samples(const struct slices *slices, int64_t i, int64_t parts)
{
    return slices->from[i] == 0 && slices->by[i] == 1 &&
           (samples_in(slices->to[i]) == parts || slices->to[i] >= INT32_MAX);
}

enum status graph_number(struct import *in, size_t i, double usual, double *out)
{
    const struct value *value = graph_input(in, i);
    *out = usual;
    if (!value)
        return STATUS_OK;
    if (!value->constant || !constant_is_one(value->constant))
        REFUSE(in, STATUS_UNSUPPORTED, "its input '%.80s' is not one known number", value->name);
    *out = constant_at(value->constant, 0);
    return STATUS_OK;
}

enum status graph_axis(struct import *in, int64_t given, int32_t rank, int32_t *out)
{
    if (given < -rank || given >= rank)
        REFUSE(in, STATUS_INPUT, "found the axis %lld, expected %d to %d", (long long)given, -rank,
               rank - 1);
    *out = (int32_t)(given < 0 ? given + rank : given);
    return STATUS_OK;
}

enum status graph_axis_of(struct import *in, const char *name, int64_t usual, int32_t rank,
                          int32_t *out)
{
    return graph_axis(in, graph_int(in, name, usual), rank, out);
}

int64_t graph_count(const struct shape *shape, int32_t to)
{
    int64_t count = 1;
    for (int32_t d = 0; d < to; d++)
        if (__builtin_mul_overflow(count, shape->dim[d], &count))
            return -1;
    return count;
}

enum status graph_place(struct import *in, int64_t given, int64_t size, int64_t *out)
{
    *out = given < 0 ? given + size : given;
    if (*out < 0 || *out >= size)
        REFUSE(in, STATUS_INPUT, "found place %lld of %lld", (long long)given, (long long)size);
    return STATUS_OK;
}
