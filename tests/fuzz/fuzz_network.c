/* fuzz_network.c: any text is a network that compiles to programs, or it is refused with a message.
 */
#include "nn/network.h"
#include "nn/section.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* Compiling declares the parameters, so only what stays small is compiled. */
static bool is_small(const struct network *network)
{
    double size = 1;
    for (int32_t d = 0; d < network->input.rank; d++)
        size *= (double)network->input.dim[d];
    for (int32_t i = 0; i < network->layer_count; i++)
        for (int v = 0; v < LAYER_VALUES; v++)
            if (network->layers[i].values[v] > 64)
                return false;
    return size <= 4096 && network->layer_count <= 64;
}

static void compile(const struct network *network, enum program_use use)
{
    struct params params;
    struct program *program;
    params_init(&params, DTYPE_F32);
    enum status status = network_compile(
        network, &params, &(struct compile_options){.batch = 2, .use = use}, &program);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status == STATUS_OK) {
        need(program->op_count > 0 && program->hash != 0);
        program_free(program);
    }
    params_free(&params);
}

/* The same text as a file of several networks. */
static void take_section(const uint8_t *data, size_t size, const char *wanted)
{
    struct text text = {0};
    text_add_bytes(&text, data, size);
    enum status status = section_take("fuzz", wanted, &text);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    need(text.length <= size);
    text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    take_section(data, size, NULL);
    take_section(data, size, "a");
    struct network *network;
    enum status status = network_parse("fuzz", (const char *)data, size, &network);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status != STATUS_OK)
        return 0;
    need(network->layer_count > 0 && network->input.rank > 0);
    if (is_small(network)) {
        compile(network, USE_INFERENCE);
        compile(network, USE_TRAINING);
    }
    network_free(network);
    return 0;
}
