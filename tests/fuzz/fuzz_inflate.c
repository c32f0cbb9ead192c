/* fuzz_inflate.c: any bytes are a gzip file that unpacks to at most the limit, or are refused.
 * Checksums would stop nearly all inputs at their end, so the unpacked bytes are not looked at:
 * what is sought are reads and writes beyond the buffers. */
#include "base/inflate.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LIMIT = 1 << 20 };
    static const unsigned char header[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};
    unsigned char *packed = mem_alloc(sizeof header + size), *out;
    size_t length;
    if (!packed)
        abort();
    memcpy(packed, header, sizeof header);
    memcpy(packed + sizeof header, data, size);
    enum status status =
        inflate_gzip("fuzz", packed, sizeof header + size, LIMIT, NULL, &out, &length);
    if (status == STATUS_OK) {
        if (length > LIMIT || out[length])
            abort();
        mem_free(out);
    } else if (status != STATUS_INPUT || !*status_message()) {
        abort();
    }
    mem_free(packed);
    return 0;
}
