/* npy.c: the header of an NPY file (versions 1 to 3), as NumPy's save writes it: a Python
 * dictionary of descr, fortran_order and shape, in any order. Read are little-endian arrays in C
 * order of the types f4, f8, i4, i8 and u1; what else NumPy can save is refused with what to do
 * about it. */
#include "base/text.h"
#include "data/array.h"

#include <string.h>

#define MAGIC "\x93NUMPY"
enum { MAGIC_BYTES = 6, PREFIX_BYTES = MAGIC_BYTES + 2, HEADER_MOST = 1 << 16 };

struct header {
    const char *name;
    const char *start, *next, *end;
    bool descr, order, shape; /* seen */
    struct array *array;
};

static enum status refuse(const struct header *header, const char *expected)
{
    int left = (int)(header->end - header->next);
    FAIL(STATUS_INPUT, "%s: found '%.*s' at byte %lld of the NPY header, expected %s", header->name,
         left < 20 ? left : 20, header->next, (long long)(header->next - header->start), expected);
}

static void skip_blanks(struct header *header)
{
    while (header->next < header->end && (*header->next == ' ' || *header->next == '\n'))
        header->next++;
}

/* Is this what comes next? Then it is taken. */
static bool take(struct header *header, const char *token)
{
    size_t length = strlen(token);
    skip_blanks(header);
    if ((size_t)(header->end - header->next) < length || memcmp(header->next, token, length))
        return false;
    header->next += length;
    return true;
}

static enum status take_descr(struct header *header)
{
    static const struct {
        const char *text;
        enum element element;
    } types[] = {
        {"'<f4'", ELEMENT_F32}, {"'<f8'", ELEMENT_F64}, {"'<i4'", ELEMENT_I32},
        {"'<i8'", ELEMENT_I64}, {"'|u1'", ELEMENT_U8},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (take(header, types[i].text)) {
            header->array->element = types[i].element;
            return STATUS_OK;
        }
    return refuse(header, "the type '<f4', '<f8', '<i4', '<i8' or '|u1' (numpy: astype)");
}

static enum status take_order(struct header *header)
{
    if (take(header, "False"))
        return STATUS_OK;
    return refuse(header, "fortran_order False (numpy: ascontiguousarray)");
}

static enum status take_dimension(struct header *header, int64_t *out)
{
    int64_t value = 0;
    const char *first = header->next;
    for (; header->next < header->end && *header->next >= '0' && *header->next <= '9';
         header->next++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *header->next - '0', &value)) {
            header->next = first;
            return refuse(header, "a dimension that fits into 63 bits");
        }
    if (header->next == first)
        return refuse(header, "a dimension");
    *out = value;
    return STATUS_OK;
}

static enum status take_shape(struct header *header)
{
    struct array *array = header->array;
    if (!take(header, "("))
        return refuse(header, "a shape in brackets");
    array->rank = 0;
    while (!take(header, ")")) {
        if (array->rank == ARRAY_RANK_MOST)
            return refuse(header, "at most 8 dimensions");
        skip_blanks(header);
        TRY(take_dimension(header, &array->dim[array->rank++]));
        if (!take(header, ",") && (header->next == header->end || *header->next != ')'))
            return refuse(header, "a comma or the end of the shape");
    }
    if (array->rank < 1)
        FAIL(STATUS_INPUT, "%s: found a single number, expected an array with rows", header->name);
    return STATUS_OK;
}

static enum status take_once(struct header *header, bool *seen)
{
    if (*seen)
        return refuse(header, "each key once");
    *seen = true;
    return take(header, ":") ? STATUS_OK : refuse(header, "a colon");
}

static enum status take_dictionary(struct header *header)
{
    if (!take(header, "{"))
        return refuse(header, "a dictionary");
    while (!take(header, "}")) {
        if (take(header, "'descr'")) {
            TRY(take_once(header, &header->descr));
            TRY(take_descr(header));
        } else if (take(header, "'fortran_order'")) {
            TRY(take_once(header, &header->order));
            TRY(take_order(header));
        } else if (take(header, "'shape'")) {
            TRY(take_once(header, &header->shape));
            TRY(take_shape(header));
        } else {
            return refuse(header, "'descr', 'fortran_order' or 'shape'");
        }
        if (!take(header, ",") && (header->next == header->end || *header->next != '}'))
            return refuse(header, "a comma or the end of the dictionary");
    }
    skip_blanks(header);
    if (header->next != header->end)
        return refuse(header, "nothing behind the dictionary");
    if (!header->descr || !header->order || !header->shape)
        FAIL(STATUS_INPUT, "%s: found an NPY header without %s", header->name,
             !header->descr   ? "'descr'"
             : !header->order ? "'fortran_order'"
                              : "'shape'");
    return STATUS_OK;
}

bool array_is_npy(const void *bytes, size_t length)
{
    return length >= MAGIC_BYTES && !memcmp(bytes, MAGIC, MAGIC_BYTES);
}

enum status array_read_npy(const char *name, const void *bytes, size_t length, struct array *out,
                           size_t *data_at)
{
    const unsigned char *byte = bytes;
    *out = (struct array){0};
    if (length < PREFIX_BYTES)
        FAIL(STATUS_INPUT, "%s: found %zu bytes without an NPY header", name, length);
    unsigned version = byte[MAGIC_BYTES];
    if (version < 1 || version > 3)
        FAIL(STATUS_INPUT, "%s: found NPY version %u, expected 1, 2 or 3", name, version);
    size_t size_bytes = version == 1 ? 2 : 4, size = 0, start = PREFIX_BYTES + size_bytes;
    for (size_t i = 0; i < size_bytes && PREFIX_BYTES + i < length; i++)
        size |= (size_t)byte[PREFIX_BYTES + i] << 8 * i;
    if (length < start || size > length - start || size > HEADER_MOST)
        FAIL(STATUS_INPUT,
             "%s: found an NPY header of %zu bytes in a file of %zu, expected a file that is "
             "complete",
             name, size, length);
    const char *text = (const char *)byte + start;
    TRY(take_dictionary(&(struct header){
        .name = name, .start = text, .next = text, .end = text + size, .array = out}));
    *data_at = start + size;
    return STATUS_OK;
}
