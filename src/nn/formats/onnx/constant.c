/* constant.c: the numbers of a file: in the tensor itself, as bytes or as a list, or in another
 * file beside it. Reals become float, whole numbers int64. */
#include "nn/formats/onnx/importer.h"

#include "base/file.h"
#include "base/memory.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTERNAL = 1, NEW_MOST = 1 << 24 };

/* Memory for what its shape says. */
static enum status make(struct import *in, struct constant *constant, bool whole)
{
    size_t count = (size_t)constant->count + 1; /* there is something to point to, also of none */
    if (whole)
        NEED(constant->wholes = arena_array(&in->arena, count, sizeof(int64_t)));
    else
        NEED(constant->reals = arena_array(&in->arena, count, sizeof(float)));
    return STATUS_OK;
}

/* Its elements; -1 when a dimension is negative or the product does not fit, that of some of them
 * included: a 0 elsewhere does not make it small. */
static int64_t count_of(const struct shape *shape)
{
    int64_t count = 1;
    bool none = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        none = none || shape->dim[i] == 0;
        if (shape->dim[i] < 0 ||
            __builtin_mul_overflow(count, shape->dim[i] ? shape->dim[i] : 1, &count))
            return -1;
    }
    return none ? 0 : count;
}

enum status constant_new(struct import *in, struct shape shape, bool whole, struct constant **out)
{
    int64_t count = count_of(&shape), most = NEW_MOST + 4 * in->numbers;
    if (count < 0 || count > most - in->made) /* what a small file can make large is bounded */
        REFUSE(in, STATUS_INPUT, "found more than %lld numbers to be worked out", (long long)most);
    in->made += count;
    NEED(*out = arena_alloc(&in->arena, sizeof **out));
    **out = (struct constant){.shape = shape, .batch = -1, .count = count};
    return make(in, *out, whole);
}

enum status constant_view(struct import *in, const struct constant *from, struct shape shape,
                          struct constant **out)
{
    if (count_of(&shape) != from->count)
        REFUSE(in, STATUS_INPUT, "its new shape has not as many elements as its input, %lld",
               (long long)from->count);
    NEED(*out = arena_alloc(&in->arena, sizeof **out));
    **out = *from;
    (*out)->shape = shape;
    return STATUS_OK;
}

double constant_at(const struct constant *constant, int64_t i)
{
    return constant->reals ? (double)constant->reals[i] : (double)constant->wholes[i];
}

bool constant_is_one(const struct constant *constant)
{
    return constant->count == 1 && constant->batch < 0 &&
           !(constant->wholes && samples_in(constant->wholes[0]));
}

static size_t element_bytes(int32_t type)
{
    switch (type) {
    case ELEMENT_FLOAT:
    case ELEMENT_INT32:
    case ELEMENT_UINT32: return 4;
    case ELEMENT_INT64:
    case ELEMENT_UINT64:
    case ELEMENT_DOUBLE: return 8;
    case ELEMENT_HALF:
    case ELEMENT_BFLOAT16:
    case ELEMENT_INT16:
    case ELEMENT_UINT16: return 2;
    case ELEMENT_BOOL:
    case ELEMENT_INT8:
    case ELEMENT_UINT8: return 1;
    default: return 0;
    }
}

/* Half precision: a sign, 5 bits of exponent, 10 of fraction; or the upper half of a float. */
static float from_16_bits(int32_t type, uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value;
    if (type == ELEMENT_BFLOAT16) {
        memcpy(&value, &wide, sizeof value);
        return value;
    }
    if (exponent == 31)
        value = fraction ? NAN : INFINITY;
    else
        value = exponent ? ldexpf((float)(1024 + fraction), (int)exponent - 25)
                         : ldexpf((float)fraction, -24);
    return bits >> 15 ? -value : value;
}

float constant_rounded(int64_t type, float number)
{
    int bits = type == ELEMENT_BFLOAT16 ? 8 : 11,
        exponent; /* of the fraction, the first 1 with it */
    if (!isfinite(number) || number == 0)
        return number;
    frexpf(number, &exponent);
    if (type == ELEMENT_HALF && exponent < -13) /* too small for all of them */
        exponent = -13;
    double unit = ldexp(1, exponent - bits), nearest = rint((double)number / unit) * unit;
    return type == ELEMENT_HALF && fabs(nearest) > 65504 ? copysignf(INFINITY, number)
                                                         : (float)nearest;
}

/* From bytes as they lie in the file, least significant first, as on this machine. */
static void take_bytes(struct constant *to, int32_t type, const unsigned char *bytes)
{
    for (int64_t i = 0; i < to->count; i++) {
        const unsigned char *at = bytes + (size_t)i * element_bytes(type);
        double real;
        int32_t word;
        uint32_t unsigned_word;
        uint16_t half;
        switch (type) {
        case ELEMENT_FLOAT: memcpy(&to->reals[i], at, 4); break;
        case ELEMENT_DOUBLE:
            memcpy(&real, at, 8);
            to->reals[i] = (float)real;
            break;
        case ELEMENT_HALF:
        case ELEMENT_BFLOAT16:
            memcpy(&half, at, 2);
            to->reals[i] = from_16_bits(type, half);
            break;
        case ELEMENT_INT64:
        case ELEMENT_UINT64: memcpy(&to->wholes[i], at, 8); break;
        case ELEMENT_INT32:
            memcpy(&word, at, 4);
            to->wholes[i] = word;
            break;
        case ELEMENT_UINT32:
            memcpy(&unsigned_word, at, 4);
            to->wholes[i] = unsigned_word;
            break;
        case ELEMENT_INT16:
        case ELEMENT_UINT16:
            memcpy(&half, at, 2);
            to->wholes[i] = type == ELEMENT_INT16 ? (int64_t)(int16_t)half : half;
            break;
        case ELEMENT_INT8: to->wholes[i] = (int8_t)*at; break;
        default: to->wholes[i] = *at;
        }
    }
}

/* From the list of its type. */
static void take_list(struct constant *to, int32_t type, const Onnx__TensorProto *from)
{
    for (int64_t i = 0; i < to->count; i++)
        switch (type) {
        case ELEMENT_FLOAT: to->reals[i] = from->float_data[i]; break;
        case ELEMENT_DOUBLE: to->reals[i] = (float)from->double_data[i]; break;
        case ELEMENT_HALF:
        case ELEMENT_BFLOAT16:
            to->reals[i] = from_16_bits(type, (uint16_t)from->int32_data[i]);
            break;
        case ELEMENT_INT64: to->wholes[i] = from->int64_data[i]; break;
        case ELEMENT_UINT32:
        case ELEMENT_UINT64: to->wholes[i] = (int64_t)from->uint64_data[i]; break;
        default: to->wholes[i] = from->int32_data[i];
        }
}

static size_t list_length(const Onnx__TensorProto *tensor)
{
    switch (tensor->data_type) {
    case ELEMENT_FLOAT: return tensor->n_float_data;
    case ELEMENT_DOUBLE: return tensor->n_double_data;
    case ELEMENT_INT64: return tensor->n_int64_data;
    case ELEMENT_UINT32:
    case ELEMENT_UINT64: return tensor->n_uint64_data;
    default: return tensor->n_int32_data;
    }
}

static const char *entry_of(const Onnx__TensorProto *tensor, const char *key)
{
    for (size_t i = 0; i < tensor->n_external_data; i++)
        if (text_equal(tensor->external_data[i]->key, key))
            return tensor->external_data[i]->value;
    return NULL;
}

/* Is the file in this folder, which ends with a slash, or below? */
static bool lies_in(const char *file, const char *folder)
{
    char root[PATH_MAX];
    size_t length = realpath(folder, root) ? strlen(root) : 0;
    return length && !strncmp(file, root, length) && (length == 1 || file[length] == '/');
}

/* The file that `location` names, which lies in the model's folder or below, wherever links lead,
 * or where the model is a link itself, beside what that leads to: so do caches keep both. */
static enum status find_external(struct import *in, const char *tensor, const char *location,
                                 char found[PATH_MAX])
{
    char folder[PATH_MAX], path[PATH_MAX], own[PATH_MAX];
    const char *slash = strrchr(in->path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - in->path + 1) : 2,
             slash ? in->path : "./");
    if (!location || *location == '/' ||
        (size_t)snprintf(path, sizeof path, "%s%s", folder, location) >= sizeof path)
        REFUSE(in, STATUS_INPUT,
               "the tensor '%.80s' is in the file '%.200s', expected one in the model's folder",
               tensor, location ? location : "");
    if (!realpath(path, found))
        REFUSE(in, STATUS_INPUT, "the tensor '%.80s' is in the file '%.200s', which is not there",
               tensor, location);
    if (realpath(in->path, own))
        strrchr(own, '/')[1] = 0;
    else
        *own = 0;
    if (!lies_in(found, folder) && !(*own && lies_in(found, own)))
        REFUSE(in, STATUS_INPUT,
               "the tensor '%.80s' is in the file '%.200s', expected one in the model's folder: "
               "copy it there",
               tensor, location);
    return STATUS_OK;
}

static enum status read_external(struct import *in, const Onnx__TensorProto *tensor, size_t bytes,
                                 struct constant *to)
{
    char path[PATH_MAX];
    const char *name = tensor->name ? tensor->name : "", *text = entry_of(tensor, "offset");
    bool whole = !element_is_real(tensor->data_type);
    size_t each = whole ? sizeof *to->wholes : sizeof *to->reals;
    void *data = NULL;
    int64_t offset = 0;
    TRY(find_external(in, name, entry_of(tensor, "location"), path));
    if (text && (!text_to_int(text, &offset) || offset < 0))
        REFUSE(in, STATUS_INPUT, "the tensor '%.80s' lies at '%.40s', expected a place in bytes",
               name, text);
    text = entry_of(tensor, "length");
    int64_t said;
    if (text && (!text_to_int(text, &said) || said < 0 || (size_t)said != bytes))
        REFUSE(in, STATUS_INPUT, "the tensor '%.80s' takes '%.40s' bytes, expected %zu", name, text,
               bytes);
    /* a small file that is mostly holes, read again and again, would take any memory; half of it,
     * for the network has them as well */
    size_t taken = SIZE_MAX;
    if (size_mul((size_t)to->count, each, &taken) && size_add(in->beside, taken, &taken))
        in->beside = taken;
    if (taken > in->memory / 2)
        REFUSE(in, STATUS_INPUT,
               "the tensor '%.80s' and those before it that lie beside the file take %zu bytes, "
               "expected at most half of this machine's memory, %zu",
               name, taken, in->memory);
    enum status status = file_load_part(path, (size_t)offset, bytes, &data);
    if (status != STATUS_OK)
        return import_blame(in, status_prefix(status, "the tensor '%.80s'", name));
    status = make(in, to, whole);
    if (status == STATUS_OK)
        take_bytes(to, tensor->data_type, data);
    mem_free(data);
    return status;
}

enum status constant_read(struct import *in, const Onnx__TensorProto *tensor, struct constant **out)
{
    const char *name = tensor->name ? tensor->name : "";
    struct shape shape = {.rank = (int32_t)tensor->n_dims};
    size_t each = element_bytes(tensor->data_type), bytes;
    if (tensor->n_dims > SHAPE_MOST)
        REFUSE(in, STATUS_UNSUPPORTED, "the tensor '%.80s' has %zu dimensions, expected at most %d",
               name, tensor->n_dims, SHAPE_MOST);
    if (!each)
        REFUSE(in, STATUS_UNSUPPORTED,
               "the tensor '%.80s' has elements of type %d, expected float, double, float16, "
               "bfloat16, int8 to int64, uint8 to uint64 or bool",
               name, tensor->data_type);
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = tensor->dims[i];
    int64_t count = count_of(&shape);
    bool raw = tensor->has_raw_data, external = tensor->data_location == EXTERNAL;
    size_t found = raw ? tensor->raw_data.len : list_length(tensor);
    if (count < 0 || !size_mul((size_t)count, each, &bytes))
        REFUSE(in, STATUS_INPUT, "the tensor '%.80s' has a negative dimension, or is too large",
               name);
    if (!external && found != (raw ? bytes : (size_t)count))
        REFUSE(in, STATUS_INPUT, "the tensor '%.80s' has %zu %s, expected %lld elements of %zu",
               name, found, raw ? "bytes" : "elements", (long long)count, each);
    NEED(*out = arena_alloc(&in->arena, sizeof **out));
    **out =
        (struct constant){.shape = shape, .batch = -1, .count = count, .type = tensor->data_type};
    in->numbers += external ? 0 : count;
    if (external)
        TRY(read_external(in, tensor, bytes, *out));
    else
        TRY(make(in, *out, !element_is_real(tensor->data_type)));
    if (!external && raw)
        take_bytes(*out, tensor->data_type, tensor->raw_data.data);
    else if (!external)
        take_list(*out, tensor->data_type, tensor);
    for (int64_t i = 0; tensor->data_type == ELEMENT_UINT64 && i < count; i++)
        if ((*out)->wholes[i] < 0)
            REFUSE(in, STATUS_UNSUPPORTED, "the tensor '%.80s' has %llu, expected less than 2^63",
                   name, (unsigned long long)(*out)->wholes[i]);
    return STATUS_OK;
}
