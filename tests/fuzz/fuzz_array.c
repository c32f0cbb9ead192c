/* fuzz_array.c: any bytes are an IDX or NPY array whose numbers lie within them, or are refused. */
#include "data/array.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct array array;
    enum status status = array_parse("fuzz", data, size, &array);
    if (status != STATUS_OK) {
        if (status != STATUS_INPUT || !*status_message())
            abort();
        return 0;
    }
    for (int64_t i = 0; i < array.dim[0] * array_row_count(&array); i++)
        if (array_get(&array, i) < 0 && array.element == ELEMENT_U8)
            abort();
    return 0;
}
