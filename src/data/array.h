/* array.h: numbers of one type in a file, read where they lie: IDX and NPY, plain or in gzip.
 *
 * A plain file is read row by row, so it may be larger than memory; one in gzip is unpacked into
 * memory. */
#ifndef PRONY_DATA_ARRAY_H
#define PRONY_DATA_ARRAY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARRAY_RANK_MOST = 8 };

enum element {
    ELEMENT_U8,
    ELEMENT_I8,
    ELEMENT_I16,
    ELEMENT_I32,
    ELEMENT_I64,
    ELEMENT_F32,
    ELEMENT_F64
};

struct array {
    enum element element;
    bool big_endian;
    int32_t rank; /* at least 1 */
    int64_t dim[ARRAY_RANK_MOST];
    const unsigned char *data; /* the first element; rows follow each other */
};

bool array_is_idx(const void *bytes, size_t length);
bool array_is_npy(const void *bytes, size_t length);
/* Reads a file of either kind: the header and, behind it, the data, which must be just as long as
 * the header says. The bytes outlive the array; `name` is for messages. */
enum status array_parse(const char *name, const void *bytes, size_t length, struct array *out);
/* The same of a file of which only the first `held` bytes are there, the header among them: where
 * its data is, is for the caller to say. */
enum status array_begin(const char *name, const void *bytes, size_t held, size_t length,
                        struct array *out, size_t *data_at);

size_t array_element_bytes(enum element element);
bool array_is_integer(const struct array *array);
int64_t array_row_count(const struct array *array);     /* elements of one row: all but dim[0] */
double array_get(const struct array *array, int64_t i); /* i64 beyond 2^53 is rounded */
/* Row `row` as floats; *bad is the place of the first that no float can hold (nan, too large), or
 * -1. */
void array_get_row(const struct array *array, int64_t row, float *out, int64_t *bad);

/* How long the whole file is, by the header that it begins with; of these bytes no more may be
 * there than the header. */
enum status array_announced(const char *name, const void *bytes, size_t length, size_t *out);

/* Inside the readers: headers alone, *data_at being where the data begins. */
enum status array_read_idx(const char *name, const void *bytes, size_t length, struct array *out,
                           size_t *data_at);
enum status array_read_npy(const char *name, const void *bytes, size_t length, struct array *out,
                           size_t *data_at);

#endif
