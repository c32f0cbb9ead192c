/* fuzz_network.c: any text is a network that compiles to programs, or it is refused with a message.
 */
#include "nn/section.h"
#include "train/recipe.h"

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
    struct recipe_step step;
    params_init(&params, DTYPE_F32);
    params.bare = true; /* any size: nothing is allocated for it */
    enum status status = recipe_compile_stages(
        network, &params, &(struct compile_options){.batch = 2, .use = use}, &step);
    need(status == STATUS_OK || (status == STATUS_INPUT && *status_message()));
    if (status == STATUS_OK)
        need(step.count > 0 && step.programs[0]->op_count > 0 && recipe_hash(&step) != 0);
    recipe_free(&step);
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
    int32_t layers = network->layer_count;
    for (int32_t i = 0; i < network->part_count; i++)
        layers += network->parts[i].network->layer_count;
    need(layers > 0 && network->input.rank > 0);
    if (layers <= 64) {
        compile(network, USE_INFERENCE);
        compile(network, USE_TRAINING);
    }
    network_free(network);
    return 0;
}
