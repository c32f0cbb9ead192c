/* fuzz_onnx.c: any bytes are a model that becomes a network that compiles, or are refused with a
 * message. */
#include "nn/formats/onnx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct network *network;
    struct onnx_batch batch;
    enum status status = onnx_parse("fuzz", data, size, NULL, &network, &batch);
    need(status == STATUS_OK ||
         ((status == STATUS_INPUT || status == STATUS_UNSUPPORTED) && *status_message()));
    if (status != STATUS_OK)
        return 0;
    need(network->layer_count > 0 && batch.input < network->input.rank + 1);
    struct params params;
    struct program *program;
    params_init(&params, DTYPE_F32);
    params.bare = true;
    status = network_compile(network, &params, &(struct compile_options){.batch = 2}, &program);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status == STATUS_OK)
        program_free(program);
    params_free(&params);
    network_free(network);
    return 0;
}
