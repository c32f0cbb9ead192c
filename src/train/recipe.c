/* recipe.c: see recipe.h. */
#include "train/recipe.h"

#include "base/text.h"
#include "core/pass/quantise.h"
#include "nn/emit.h"
#include "nn/layer.h"
#include "nn/optimiser.h"

#include <assert.h>
#include <stdio.h>

enum { RECIPE_NAME = 300 };

static const struct recipe_way *const ways[RECIPE_COUNT] = {
#define RECIPE(kind, networks, settings, help) [RECIPE_##kind] = &recipe_##kind,
#include "nn/recipes.def"
#undef RECIPE
};

/* The flag's recipe, or the network's; is it one for such a network? */
static enum status choose(const struct network *network, const char *flag, struct recipe *out)
{
    *out = network->recipe;
    TRY(recipe_parse(flag, out));
    const char *needs = out->kind->networks;
    bool same = text_equal(needs, network->recipe.kind->networks);
    if (*needs && (!network->part_count || !same))
        FAIL(STATUS_INPUT,
             "%s: found %s, expected a file with the networks %s, and the line 'recipe %s' before "
             "them",
             network->name, network->part_count ? "other networks" : "one network", needs,
             out->kind->name);
    if (!*needs && network->part_count)
        FAIL(STATUS_INPUT, "%s: found several networks, expected one: the recipe %s", network->name,
             out->kind->name);
    return STATUS_OK;
}

enum status recipe_traits(const struct network *network, const struct compile_options *options,
                          struct recipe_traits *out)
{
    struct recipe recipe;
    struct compile_options numbers = *options;
    *out = (struct recipe_traits){.stages = 1};
    TRY(choose(network, options->recipe, &recipe));
    numbers.classes = 0;
    out->loss = network_loss(network, &numbers);
    ways[recipe.kind->id]->tell(network, &recipe, out);
    if (out->targets)
        out->loss = network_loss(network, options);
    return STATUS_OK;
}

void recipe_part_traits(const struct network *part, const struct compile_options *options,
                        struct recipe_traits *out)
{
    *out = (struct recipe_traits){.loss = network_loss(part, options), .stages = 1};
    ways[part->part_of.recipe->id]->tell_part(part, out);
}

enum status recipe_check_end(const struct network *network, enum loss_kind loss)
{
    const struct layer *last = &network->layers[network->layer_count - 1];
    if (loss == LOSS_BINARY_CROSS_ENTROPY && text_equal(last->kind->name, "sigmoid"))
        FAIL(STATUS_INPUT,
             "%s:%d:%d: found a sigmoid before the loss binary_cross_entropy, expected none: the "
             "loss has one in itself, and prediction gives chances; leave the line out",
             network->name, last->line, last->column);
    return STATUS_OK;
}

enum status recipe_check_outputs(const struct network *network, int64_t expected, const char *why)
{
    const struct layer *last = &network->layers[network->layer_count - 1];
    int64_t outputs;
    TRY(network_outputs(network, &outputs));
    if (outputs != expected)
        FAIL(STATUS_INPUT, "%s:%d:%d: found %lld outputs, expected %lld: %s", network->name,
             last->line, last->column, (long long)outputs, (long long)expected, why);
    return STATUS_OK;
}

enum status recipe_check_loss(const struct network *network, const struct compile_options *options,
                              const char *recipe, enum loss_kind loss)
{
    if (network->loss != LOSS_AUTO && network->loss != loss)
        FAIL(STATUS_INPUT,
             "%s:%d:1: found the loss %s, expected none: what the recipe %s learns is not a matter "
             "of choice",
             network->name, network->said_on.loss, loss_name(network->loss), recipe);
    if (options->loss != LOSS_AUTO && options->loss != loss)
        FAIL(STATUS_INPUT,
             "--loss: found %s, expected none: what the recipe %s learns is not a matter of choice",
             loss_name(options->loss), recipe);
    return STATUS_OK;
}

enum status recipe_check_measure(const struct network *network,
                                 const struct compile_options *options, const char *recipe)
{
    static const char expected[] = "expected mse or binary_cross_entropy";
    if (options->loss == LOSS_CROSS_ENTROPY)
        FAIL(STATUS_INPUT, "--loss: found cross_entropy, %s: the recipe %s learns numbers",
             expected, recipe);
    if (options->loss == LOSS_AUTO && network->loss == LOSS_CROSS_ENTROPY)
        FAIL(STATUS_INPUT,
             "%s:%d:1: found the loss cross_entropy, %s: the recipe %s learns numbers",
             network->name, network->said_on.loss, expected, recipe);
    return STATUS_OK;
}

/* What is learnt without targets is compared with the input, or takes its place: that of all but
 * feed_forward is numbers. */
static enum status check_input(const struct network *network, const struct recipe_kind *kind)
{
    for (int32_t i = 0; i < network->part_count; i++)
        TRY(check_input(network->parts[i].network, kind));
    if (network->tokens && kind->id != RECIPE_feed_forward)
        FAIL(STATUS_INPUT,
             "%s:%d:1: found an input of tokens, expected numbers: the recipe %s learns no tokens",
             network->name, network->said_on.input, kind->name);
    return STATUS_OK;
}

/* "gan: generator", "dbn: stage 2 of 7", or where there is one program the network's name. */
static const char *name_turn(const struct recipe_emit *emit, const struct recipe_way *way,
                             char name[RECIPE_NAME])
{
    const char *network = emit->network->name;
    bool learns = emit->options->use == USE_TRAINING;
    if (learns && way->turns > 1)
        snprintf(name, RECIPE_NAME, "%s: %s", network, way->names[emit->turn]);
    else if (learns && emit->traits.stages > 1)
        snprintf(name, RECIPE_NAME, "%s: stage %d of %d", network, emit->options->stage + 1,
                 emit->traits.stages);
    else
        return network;
    return name;
}

static enum status compile_turn(struct recipe_emit *emit, const struct recipe_way *way,
                                struct params *params, struct program **out)
{
    struct draft draft;
    char name[RECIPE_NAME];
    TRY(program_begin(&draft, params, name_turn(emit, way, name), emit->options->batch,
                      params->real));
    emit->draft = &draft;
    way->emit(emit);
    enum status status = program_finish(&draft, out);
    if (status == STATUS_INPUT)
        emit_locate(emit->failed ? emit->failed : emit->network, draft.failed_in, status);
    return status;
}

/* In reals. */
static enum status compile_real(const struct network *network, struct params *params,
                                const struct compile_options *options, struct recipe_step *out)
{
    struct recipe_emit emit = {.network = network, .options = options};
    *out = (struct recipe_step){0};
    TRY(choose(network, options->recipe, &emit.recipe));
    TRY(recipe_traits(network, options, &emit.traits));
    assert(options->accumulate <= 1 || emit.recipe.kind->id == RECIPE_feed_forward);
    if (options->weight_bits && emit.recipe.kind->id != RECIPE_feed_forward)
        FAIL(STATUS_UNSUPPORTED,
             "%s: found the recipe %s, expected feed_forward to learn with weights of few bits",
             network->name, emit.recipe.kind->name);
    const struct recipe_way *way = ways[emit.recipe.kind->id];
    if (options->use == USE_GENERATION && !emit.traits.generates)
        FAIL(STATUS_INPUT, "%s: found the recipe %s, expected one that can generate: vae, gan, rbm",
             network->name, emit.recipe.kind->name);
    TRY(check_input(network, emit.recipe.kind));
    if (way->check)
        TRY(way->check(network, options));
    int32_t turns = options->use == USE_TRAINING ? way->turns : 1;
    for (; emit.turn < turns; emit.turn++) {
        enum status status = compile_turn(&emit, way, params, &out->programs[emit.turn]);
        if (status != STATUS_OK) {
            recipe_free(out);
            return status;
        }
        out->count++;
    }
    return STATUS_OK;
}

/* The parameters that came with a quantised network. */
static enum status give_raw(const struct network *network, struct params *params)
{
    for (int32_t g = 0; g < network->given_count; g++) {
        const struct given *given = &network->given[g];
        int32_t entry = params_find(params, given->name);
        if (entry < 0 || params->entries[entry].dtype != given->dtype ||
            shape_count(&params->entries[entry].shape) != given->count)
            FAIL(STATUS_INPUT, "%s: found '%s', which its quantised form does not have so",
                 network->name, given->name);
        params->entries[entry].raw = given->raw ? given->raw : given->values;
    }
    return STATUS_OK;
}

/* In 8 bits: the reals are compiled without values, for their program. */
static enum status compile_quantised(const struct network *network, struct params *params,
                                     const struct compile_options *options, struct recipe_step *out)
{
    struct params reals;
    struct program *small = NULL;
    if (options->use != USE_INFERENCE && options->use != USE_EVALUATION)
        FAIL(STATUS_INPUT,
             "%s: found a network in 8 bits, expected its fp32 form: train that, then quantise it",
             network->name);
    params_init(&reals, params->real);
    reals.bare = true;
    enum status status = compile_real(network, &reals, options, out);
    if (status == STATUS_OK)
        status = quantise(out->programs[0], network->quantised, NULL, params, NULL, &small);
    if (status == STATUS_OK)
        status = give_raw(network, params);
    recipe_free(out);
    params_free(&reals);
    if (status != STATUS_OK) {
        program_free(small);
        return status;
    }
    *out = (struct recipe_step){.count = 1, .programs = {small}};
    return STATUS_OK;
}

enum status recipe_compile(const struct network *network, struct params *params,
                           const struct compile_options *options, struct recipe_step *out)
{
    return (network->quantised ? compile_quantised : compile_real)(network, params, options, out);
}

enum status recipe_compile_stages(const struct network *network, struct params *params,
                                  const struct compile_options *options, struct recipe_step *out)
{
    struct compile_options each = *options;
    struct recipe_traits traits;
    enum status status = STATUS_OK;
    *out = (struct recipe_step){0};
    TRY(recipe_traits(network, options, &traits));
    if (traits.classes && !each.classes)
        each.classes = RECIPE_CLASSES;
    if (options->use != USE_TRAINING)
        each.stage = traits.stages - 1;
    for (; each.stage < traits.stages && status == STATUS_OK; each.stage++) {
        struct recipe_step step = {0};
        status = recipe_compile(network, params, &each, &step);
        assert(out->count + step.count <= RECIPE_TURNS); /* recipes with stages check it */
        for (int32_t i = 0; i < step.count; i++)
            out->programs[out->count++] = step.programs[i];
    }
    if (status != STATUS_OK)
        recipe_free(out);
    return status;
}

void recipe_free(struct recipe_step *step)
{
    for (int32_t i = 0; i < step->count; i++)
        program_free(step->programs[i]);
    *step = (struct recipe_step){0};
}

uint64_t recipe_hash(const struct recipe_step *step)
{
    uint64_t hash = step->programs[0]->hash;
    for (int32_t i = 1; i < step->count; i++)
        hash = (hash ^ step->programs[i]->hash) * 0x100000001B3u; /* FNV-1a */
    return hash;
}

int32_t recipe_network(struct recipe_emit *emit, const char *part, int32_t rows, int32_t x)
{
    const struct network *network = *part ? network_part(emit->network, part) : emit->network;
    enum phase phase = emit->options->use == USE_TRAINING ? PHASE_TRAINING : PHASE_INFERENCE;
    char prefix[80];
    if (emit->draft->status != STATUS_OK)
        return -1;
    snprintf(prefix, sizeof prefix, "%s%s", part, *part ? "." : "");
    int32_t y = network_emit(network, emit->draft, prefix, phase, rows, x, -1);
    if (emit->draft->status != STATUS_OK)
        emit->failed = network;
    return y;
}

/* [batch, …as the part's input] */
static struct shape input_of(const struct recipe_emit *emit, const char *part)
{
    const struct shape *input = &network_part(emit->network, part)->input;
    struct shape shape = {.rank = input->rank + 1, .dim = {emit->options->batch}};
    for (int32_t i = 0; i < input->rank; i++)
        shape.dim[i + 1] = input->dim[i];
    return shape;
}

int32_t recipe_noise(struct recipe_emit *emit, const char *part, int32_t rows)
{
    int32_t noise = draft_real(emit->draft, "noise", input_of(emit, part));
    struct op *op = draft_op(emit->draft, OP_random, IN(rows), OUT(noise));
    op->attr.random.distribution = DISTRIBUTION_NORMAL;
    op->attr.random.stream = op->id;
    return noise;
}

/* The tensor in another shape of as many numbers, which checks have seen to. */
static int32_t reshape(struct recipe_emit *emit, int32_t x, const struct shape *to)
{
    struct draft *draft = emit->draft;
    if (draft->status != STATUS_OK)
        return -1;
    return shape_equal(draft_shape(draft, x), to) ? x : draft_view(draft, x, *to);
}

int32_t recipe_fit(struct recipe_emit *emit, int32_t x, const char *part)
{
    struct shape shape = input_of(emit, part);
    return reshape(emit, x, &shape);
}

int32_t recipe_target(struct recipe_emit *emit, int32_t x, int32_t y)
{
    const struct shape shape = *draft_shape(emit->draft, y);
    return reshape(emit, x, &shape);
}
