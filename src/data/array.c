/* array.c: elements of an array as numbers. */
#include "data/array.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

size_t array_element_bytes(enum element element)
{
    static const size_t bytes[] = {
        [ELEMENT_U8] = 1,  [ELEMENT_I8] = 1,  [ELEMENT_I16] = 2, [ELEMENT_I32] = 4,
        [ELEMENT_I64] = 8, [ELEMENT_F32] = 4, [ELEMENT_F64] = 8,
    };
    return bytes[element];
}

bool array_is_integer(const struct array *array)
{
    return array->element != ELEMENT_F32 && array->element != ELEMENT_F64;
}

int64_t array_row_count(const struct array *array)
{
    int64_t count = 1;
    for (int32_t i = 1; i < array->rank; i++)
        count *= array->dim[i];
    return count;
}

/* The header; where the data begins, and how long it should be. */
static enum status read_header(const char *name, const void *bytes, size_t length,
                               struct array *out, size_t *data_at, size_t *data_bytes)
{
    if (array_is_npy(bytes, length))
        TRY(array_read_npy(name, bytes, length, out, data_at));
    else if (array_is_idx(bytes, length))
        TRY(array_read_idx(name, bytes, length, out, data_at));
    else
        FAIL(STATUS_INPUT, "%s: found neither an IDX nor an NPY header, expected one", name);
    *data_bytes = array_element_bytes(out->element);
    for (int32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] < 1)
            FAIL(STATUS_INPUT, "%s: found %lld as dimension %d, expected at least 1", name,
                 (long long)out->dim[i], i + 1);
        if (!size_mul(*data_bytes, (size_t)out->dim[i], data_bytes) || *data_bytes > PTRDIFF_MAX)
            FAIL(STATUS_INPUT, "%s: found dimensions whose product is beyond any memory", name);
    }
    return STATUS_OK;
}

enum status array_announced(const char *name, const void *bytes, size_t length, size_t *out)
{
    struct array array;
    size_t data_at, data_bytes;
    TRY(read_header(name, bytes, length, &array, &data_at, &data_bytes));
    *out = data_at + data_bytes;
    return STATUS_OK;
}

enum status array_begin(const char *name, const void *bytes, size_t held, size_t length,
                        struct array *out, size_t *data_at)
{
    size_t data_bytes;
    TRY(read_header(name, bytes, held, out, data_at, &data_bytes));
    if (data_bytes != length - *data_at)
        FAIL(STATUS_INPUT, "%s: found %zu bytes of data, expected %zu: what its header announces%s",
             name, length - *data_at, data_bytes,
             length - *data_at < data_bytes ? "; is the file complete?" : "");
    out->data = NULL;
    return STATUS_OK;
}

enum status array_parse(const char *name, const void *bytes, size_t length, struct array *out)
{
    size_t data_at;
    TRY(array_begin(name, bytes, length, length, out, &data_at));
    out->data = (const unsigned char *)bytes + data_at;
    return STATUS_OK;
}

/* The element's bytes, lowest first, as one word. */
static uint64_t read_word(const struct array *array, const unsigned char *at, size_t bytes)
{
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)at[array->big_endian ? bytes - 1 - i : i] << 8 * i;
    return word;
}

double array_get(const struct array *array, int64_t i)
{
    size_t bytes = array_element_bytes(array->element);
    uint64_t word = read_word(array, array->data + (size_t)i * bytes, bytes);
    uint32_t half = (uint32_t)word;
    float single;
    double number;
    switch (array->element) {
    case ELEMENT_U8: return (double)word;
    case ELEMENT_I8: return (double)(int8_t)word;
    case ELEMENT_I16: return (double)(int16_t)word;
    case ELEMENT_I32: return (double)(int32_t)word;
    case ELEMENT_I64: return (double)(int64_t)word;
    case ELEMENT_F32: memcpy(&single, &half, sizeof single); return (double)single;
    case ELEMENT_F64: break;
    }
    memcpy(&number, &word, sizeof number);
    return number;
}

/* Floats as this machine has them: copied, and looked through for what is no number, whose exponent
 * is all ones. */
static bool copy_floats(const struct array *array, int64_t first, int64_t count, float *out)
{
    enum { EXPONENT = 0x7F800000 };
    uint32_t any = 0;
    memcpy(out, array->data + (size_t)first * sizeof *out, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], sizeof bits);
        any |= (bits & EXPONENT) == EXPONENT;
    }
    return !any;
}

void array_get_row(const struct array *array, int64_t row, float *out, int64_t *bad)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int64_t count = array_row_count(array), first = row * count;
    *bad = -1;
    if (array->element == ELEMENT_F32 && array->big_endian != little &&
        copy_floats(array, first, count, out))
        return;
    if (array->element == ELEMENT_U8) { /* images: by far the most, and never wrong */
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)array->data[first + i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = (float)array_get(array, first + i);
        if (!isfinite(out[i]) && *bad < 0)
            *bad = i;
    }
}
