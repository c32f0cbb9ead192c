/* idx.c: the header of an IDX file, the format of MNIST: two zero bytes, the type of the elements,
 * the number of dimensions, and each of them in 32 bits; all big-endian. */
#include "data/array.h"

#include <string.h>

enum { MAGIC_BYTES = 4, DIMENSION_BYTES = 4 };

static bool find_element(unsigned char type, enum element *out)
{
    static const struct {
        unsigned char type;
        enum element element;
    } types[] = {
        {0x08, ELEMENT_U8},  {0x09, ELEMENT_I8},  {0x0B, ELEMENT_I16},
        {0x0C, ELEMENT_I32}, {0x0D, ELEMENT_F32}, {0x0E, ELEMENT_F64},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            *out = types[i].element;
            return true;
        }
    return false;
}

/* No text begins with two NULs. */
bool array_is_idx(const void *bytes, size_t length)
{
    return length >= 2 && !memcmp(bytes, "\0\0", 2);
}

enum status array_read_idx(const char *name, const void *bytes, size_t length, struct array *out,
                           size_t *data_at)
{
    const unsigned char *byte = bytes;
    *out = (struct array){.big_endian = true};
    if (length < MAGIC_BYTES)
        FAIL(STATUS_INPUT, "%s: found %zu bytes without an IDX header, expected 0 0 TYPE RANK",
             name, length);
    if (!find_element(byte[2], &out->element))
        FAIL(STATUS_INPUT, "%s: found the IDX type 0x%02x, expected one of 08 09 0b 0c 0d 0e", name,
             byte[2]);
    out->rank = byte[3];
    if (out->rank < 1 || out->rank > ARRAY_RANK_MOST)
        FAIL(STATUS_INPUT, "%s: found %d dimensions, expected 1 to %d", name, out->rank,
             ARRAY_RANK_MOST);
    size_t header = MAGIC_BYTES + (size_t)out->rank * DIMENSION_BYTES;
    if (length < header)
        FAIL(STATUS_INPUT, "%s: found %zu bytes, expected an IDX header of %zu", name, length,
             header);
    for (int32_t i = 0; i < out->rank; i++) {
        const unsigned char *at = byte + MAGIC_BYTES + (size_t)i * DIMENSION_BYTES;
        out->dim[i] = (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3];
    }
    *data_at = header;
    return STATUS_OK;
}
