/* recipe_dbn.c: a deep belief network (Hinton, Osindero and Teh 2006): its dense layers with a
 * sigmoid are learnt one after the other, each as a restricted Boltzmann machine over what those
 * before it make of the data; then all of it, with the layers that follow them, as any feed-forward
 * network, at a rate of its own: gentle times the machines'. Each machine is a stage of the
 * training. */
#include "nn/emit.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

static void emit_all(struct recipe_emit *emit)
{
    enum program_use use = emit->options->use;
    bool learns = use == USE_TRAINING || use == USE_EVALUATION;
    if (learns && emit->options->stage < emit->traits.stages - 1)
        rbm_emit(emit, emit->options->stage);
    else
        emit_feed_forward(emit->draft, emit->network, emit->options,
                          use == USE_TRAINING ? recipe_value(&emit->recipe, "gentle") : 1);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    out->stage_epochs = (int32_t)recipe_value(recipe, "pretrain");
    out->stages = out->stage_epochs ? rbm_layers(network) + 1 : 1;
    out->targets = true;
    out->unit = true;
}

/* There are machines, and no more than can be stages. */
static enum status check_machines(const struct network *network)
{
    int32_t machines = rbm_layers(network), beyond = 2 * (RECIPE_TURNS - 1);
    const struct layer *layer = &network->layers[machines < RECIPE_TURNS ? 0 : beyond];
    TRY(rbm_check_machines(network, "dbn"));
    if (!machines)
        FAIL(STATUS_INPUT,
             "%s:%d:%d: found %s as the first layer, expected 'dense UNITS' and 'sigmoid' behind "
             "it: one machine of a dbn or more",
             network->name, layer->line, layer->column, layer->kind->name);
    if (machines >= RECIPE_TURNS)
        FAIL(STATUS_INPUT, "%s:%d:%d: found machine %d of a dbn, expected at most %d of them",
             network->name, layer->line, layer->column, RECIPE_TURNS, RECIPE_TURNS - 1);
    return STATUS_OK;
}

/* Layer `first` is no machine of the stack, `next` looks like one. */
static enum status refuse_between(const struct network *network, int32_t first, int32_t next)
{
    const struct layer *layer = &network->layers[first];
    if (first == next)
        FAIL(STATUS_INPUT,
             "%s:%d:%d: found a layer with '<' in a dbn, expected 'dense UNITS': each machine "
             "reads the layer before it",
             network->name, layer->line, layer->column);
    FAIL(STATUS_INPUT,
         "%s:%d:%d: found %s in a dbn, expected 'dense UNITS' and 'sigmoid' in turn up to line %d: "
         "remove it, or put it behind them",
         network->name, layer->line, layer->column, layer->kind->name,
         network->layers[next + 1].line);
}

/* A machine that something else stands before is not learnt as one: whoever wrote it should know.
 * The last layer's sigmoid is that of the outputs. */
static enum status check(const struct network *network, const struct compile_options *options)
{
    int32_t first = 2 * rbm_layers(network); /* that is no machine's */
    TRY(check_machines(network));
    for (int32_t i = first; i + 2 < network->layer_count; i++)
        if (rbm_at(network, i))
            return refuse_between(network, first, i);
    return recipe_check_end(network, network_loss(network, options));
}

const struct recipe_way recipe_dbn = {.emit = emit_all, .tell = tell, .turns = 1, .check = check};
