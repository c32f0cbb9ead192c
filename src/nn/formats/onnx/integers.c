/* integers.c: see integers.h. The settled form of a model of 8 bits computes in integers where the
 * definition of docs/quantisation.md has its layers, on the file's own scales. Its values take the
 * place of the reals that were read. */
#include "nn/formats/onnx/integers.h"

#include "core/pass/quantise.h"
#include "nn/layer.h"

#include <string.h>

bool integers_wanted(const struct network *network)
{
    for (int32_t l = 0; l < network->layer_count; l++)
        if (!strcmp(network->layers[l].kind->name, "quantise"))
            return true;
    return false;
}

static bool has_integers(const struct program *program)
{
    for (int32_t o = 0; o < program->op_count; o++)
        if (program->ops[o].kind == OP_dense_int8 || program->ops[o].kind == OP_conv_int8)
            return true;
    return false;
}

/* The network is given these values, in memory of their own. */
static enum status give(struct network *network, const struct params *params)
{
    struct arena weights = {0};
    struct given *list = arena_array(&network->arena, (size_t)params->count + 1, sizeof *list);
    NEED(list);
    for (int32_t e = 0; e < params->count; e++) {
        const struct entry *entry = &params->entries[e];
        void *bytes = arena_alloc(&weights, (size_t)entry->bytes);
        const char *name = arena_text(&network->arena, entry->name);
        if (!bytes || !name) {
            arena_free(&weights);
            NEED(NULL);
        }
        memcpy(bytes, params_data(params, e), (size_t)entry->bytes);
        list[e] = (struct given){.name = name,
                                 .count = shape_count(&entry->shape),
                                 .dtype = entry->dtype,
                                 .fixed = true,
                                 .values = entry->dtype == DTYPE_F32 ? bytes : NULL,
                                 .raw = entry->dtype == DTYPE_F32 ? NULL : bytes};
    }
    arena_free(&network->weights);
    network->weights = weights;
    network->given = list;
    network->given_count = params->count;
    return STATUS_OK;
}

static enum status become_integers(struct network *network, const struct program *program,
                                   const struct params *reals)
{
    struct quantisation *how;
    struct program *integers = NULL;
    struct params params;
    NEED(how = arena_alloc(&network->arena, sizeof *how));
    params_init(&params, DTYPE_F32);
    enum status status = quantise_given(program, reals, &network->arena, how, &params, &integers);
    if (status == STATUS_OK && has_integers(integers)) {
        status = give(network, &params);
        network->quantised = how;
    }
    network->rounds = how;
    program_free(integers);
    params_free(&params);
    return status;
}

enum status integers_settle(struct network *network)
{
    const struct compile_options options = {.batch = 1, .use = USE_INFERENCE};
    struct program *program = NULL;
    struct params reals;
    params_init(&reals, DTYPE_F32);
    enum status status = network_compile(network, &reals, &options, &program);
    if (status == STATUS_OK)
        status = params_fill(&reals, 1);
    if (status == STATUS_OK)
        status = become_integers(network, program, &reals);
    program_free(program);
    params_free(&reals);
    return status;
}
