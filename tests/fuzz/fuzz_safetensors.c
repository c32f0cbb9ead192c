/* fuzz_safetensors.c: any bytes are a file whose tensors lie within it, or are refused. */
#include "base/memory.h"
#include "nn/formats/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors file = {0};
    struct params params;
    int32_t entry;
    params_init(&params, DTYPE_F32);
    enum status status = params_declare(&params, "w", ROLE_PARAM, DTYPE_F32, SHAPE(2, 3),
                                        (struct init){INIT_ZERO, 0}, &entry);
    need(status == STATUS_OK);
    status = safetensors_parse("fuzz", data, size, &file);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status == STATUS_OK) {
        status = safetensors_load(&file, SAFETENSORS_CHECKPOINT, &params);
        need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    }
    safetensors_close(&file);
    params_free(&params);
    return 0;
}
