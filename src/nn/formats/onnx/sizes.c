/* sizes.c: what --shape says of a file: sizes of open dimensions, NAME=N, and which output is
 * wanted, output=NAME, with commas between them. */
#include "nn/formats/onnx/importer.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* The dimensions that the file says of its input `i`; NULL: none. */
static const Onnx__TensorShapeProto *input_shape(const struct import *in, size_t i)
{
    const Onnx__TypeProto *type = in->graph->input[i]->type;
    return type && type->tensor_type ? type->tensor_type->shape : NULL;
}

const char *sizes_name(const Onnx__ValueInfoProto *info, size_t d, char name[SIZES_NAME])
{
    const Onnx__DimensionProto *dim = info->type->tensor_type->shape->dim[d];
    if (dim->dim_param && *dim->dim_param)
        return dim->dim_param;
    if (dim->has_dim_value && dim->dim_value > 0)
        return "";
    snprintf(name, SIZES_NAME, "%.60s.%zu", info->name ? info->name : "", d);
    return name;
}

/* How long the dimension's name is with which a part NAME=N of --shape begins, and which may have
 * = and , in it; 0: it is none of an input. */
static size_t dimension_named(const struct import *in, const char *at)
{
    size_t longest = 0;
    for (size_t i = 0; i < in->graph->n_input; i++) {
        const Onnx__TensorShapeProto *shape = input_shape(in, i);
        for (size_t d = 0; shape && d < shape->n_dim; d++) {
            char name[SIZES_NAME];
            const char *own = sizes_name(in->graph->input[i], d, name);
            size_t length = strlen(own);
            if (length > longest && !strncmp(own, at, length) && at[length] == '=')
                longest = length;
        }
    }
    return longest;
}

/* How long the name is with which a part of --shape begins. */
static size_t part_key(const struct import *in, const char *at)
{
    size_t named = dimension_named(in, at);
    return named ? named : strcspn(at, "=");
}

/* The name in output=NAME; NULL where it is no such part. A dimension may be called output, too:
 * its size is a number. */
static const char *output_named(const struct import *in, const char *at, size_t *length)
{
    if (!text_starts(at, "output="))
        return NULL;
    at += strlen("output=");
    if (strspn(at, "0123456789") == strcspn(at, ",") && dimension_named(in, "output="))
        return NULL;
    *length = strcspn(at, ",");
    return at;
}

/* The part of --shape behind this one. */
static const char *next_part(const struct import *in, const char *at)
{
    at += dimension_named(in, at);
    at += strcspn(at, ",");
    return at + (*at == ',');
}

const char *sizes_output(const struct import *in, size_t *length)
{
    const char *name = NULL;
    for (const char *at = in->shapes ? in->shapes : ""; *at && !name; at = next_part(in, at))
        name = output_named(in, at, length);
    return name;
}

enum status sizes_find(const struct import *in, const char *name, int64_t *out)
{
    *out = 0;
    for (const char *at = in->shapes ? in->shapes : ""; *at; at = next_part(in, at)) {
        size_t key = part_key(in, at), length = dimension_named(in, at);
        char number[24];
        length += strcspn(at + length, ",");
        if (output_named(in, at, &length))
            continue;
        if (key >= length || length - key - 1 >= sizeof number)
            REFUSE(in, STATUS_INPUT, "--shape is '%s', expected NAME=N, as in height=224",
                   in->shapes);
        snprintf(number, sizeof number, "%.*s", (int)(length - key - 1), at + key + 1);
        int64_t size;
        if (!text_to_int(number, &size) || size < 1 || size > 1000000000)
            REFUSE(in, STATUS_INPUT, "--shape says '%.*s', expected NAME=N, as in height=224",
                   (int)length, at);
        if (name && strlen(name) == key && !strncmp(name, at, key))
            *out = size;
    }
    return STATUS_OK;
}

enum status sizes_refuse_open(struct import *in)
{
    char list[300] = "";
    in->open = true;
    for (size_t i = 0; i < in->graph->n_input; i++) {
        const Onnx__TensorShapeProto *shape = input_shape(in, i);
        for (size_t d = 0; shape && d < shape->n_dim; d++) {
            char name[SIZES_NAME], said[SIZES_NAME + 2];
            const char *own = sizes_name(in->graph->input[i], d, name);
            int64_t size = 0;
            if ((int32_t)d == in->batch || !*own)
                continue;
            TRY(sizes_find(in, own, &size));
            snprintf(said, sizeof said, "%.60s=N", own);
            size_t used = strlen(list);
            if (!size && !strstr(list, said))
                snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "", said);
        }
    }
    REFUSE(in, STATUS_INPUT, "its size is left open, expected --shape %s", list);
}

enum status sizes_check(const struct import *in)
{
    if (in->shapes && !*in->shapes)
        REFUSE(in, STATUS_INPUT, "found nothing behind '%s:', expected NAME=N, as in height=224",
               in->path);
    for (const char *at = in->shapes ? in->shapes : ""; *at; at = next_part(in, at)) {
        size_t key = part_key(in, at), length;
        for (const char *other = next_part(in, at); *other; other = next_part(in, other))
            if (part_key(in, other) == key && !strncmp(at, other, key))
                REFUSE(in, STATUS_INPUT, "--shape says '%.*s' twice, expected it once", (int)key,
                       at);
        if (!output_named(in, at, &length) && !dimension_named(in, at))
            REFUSE(in, STATUS_INPUT, "--shape says '%.*s', which is no dimension of its input",
                   (int)key, at);
    }
    return STATUS_OK;
}
