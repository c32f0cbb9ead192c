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

static void compile(const struct network *network, enum program_use use)
{
    struct params params;
    struct program *program;
    params_init(&params, DTYPE_F32);
    params.bare = true; /* any size: nothing is allocated for it */
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
    if (network->layer_count <= 64) {
        compile(network, USE_INFERENCE);
        compile(network, USE_TRAINING);
    }
    network_free(network);
    return 0;
}
