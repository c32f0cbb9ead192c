/* recipe_dbn.c: a deep belief network (Hinton, Osindero and Teh 2006): its dense layers with a
 * sigmoid are learnt one after the other, each as a restricted Boltzmann machine over what those
 * before it make of the data; then all of it, with the layers that follow them, as any feed-forward
 * network, at a lower rate that keeps what was found. Each machine is a stage of the training. */
#include "nn/emit.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

static void emit_all(struct recipe_emit *emit)
{
    int32_t machines = rbm_layers(emit->network);
    enum program_use use = emit->options->use;
    bool learns = use == USE_TRAINING || use == USE_EVALUATION;
    if (!machines)
        draft_fail(emit->draft, STATUS_INPUT,
                   "found no dense layer with a sigmoid behind 'input SIZE', expected one or more");
    else if (learns && emit->options->stage < machines)
        rbm_emit(emit, emit->options->stage);
    else
        emit_feed_forward(emit->draft, emit->network, emit->options,
                          use == USE_TRAINING ? recipe_value(&emit->recipe, "gentle") : 1);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    out->stages = rbm_layers(network) + 1;
    out->stage_epochs = (int32_t)recipe_value(recipe, "pretrain");
    out->targets = true;
    out->unit = true;
}

/* A machine that something else stands before is not learnt as one: whoever wrote it should know.
 * The last layer's sigmoid is that of the outputs. */
static enum status check(const struct network *network, const struct compile_options *options)
{
    int32_t first = 2 * rbm_layers(network); /* that is no machine's */
    for (int32_t i = first; first && i + 2 < network->layer_count; i++)
        if (rbm_at(network, i))
            FAIL(STATUS_INPUT,
                 "%s:%d:%d: found %s between the machines of a dbn, expected 'dense UNITS' and "
                 "'sigmoid' in turn up to line %d: what stands between them cannot be learnt as a "
                 "Boltzmann machine; leave it out, or put it behind the last",
                 network->name, network->layers[first].line, network->layers[first].column,
                 network->layers[first].kind->name, network->layers[i + 1].line);
    return recipe_check_end(network, network_loss(network, options));
}

const struct recipe_way recipe_dbn = {.emit = emit_all, .tell = tell, .turns = 1, .check = check};
