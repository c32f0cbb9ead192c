/* recipe_dbn.c: a deep belief network (Hinton, Osindero and Teh 2006): its dense layers with a
 * sigmoid are learnt one after the other, each as a restricted Boltzmann machine over what those
 * before it make of the data; then all of it, with the layers that follow them, as any feed-forward
 * network, at a lower rate that keeps what was found. Each machine is a stage of the training. */
#include "nn/emit.h"
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

const struct recipe_way recipe_dbn = {emit_all, tell, 1, {0}};
