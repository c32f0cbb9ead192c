/* recipe_feed_forward.c: a network, a loss between what it gives and what it should give,
 * gradients, an update: what nn/compile.c writes. Multilayer perceptrons, convolutional and
 * recurrent networks all learn so. */
#include "nn/emit.h"
#include "train/recipe.h"

static void emit_all(struct recipe_emit *emit)
{
    emit_feed_forward(emit->draft, emit->network, emit->options, 1);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    (void)network, (void)recipe;
    out->targets = true;
}

static enum status check(const struct network *network, const struct compile_options *options)
{
    if (network->part_of.text && options->use == USE_INFERENCE)
        return STATUS_OK; /* its weights may be those it learnt with others, by another loss */
    return recipe_check_end(network, network_loss(network, options));
}

const struct recipe_way recipe_feed_forward = {.emit = emit_all,
                                               .tell = tell,
                                               .turns = 1,
                                               .check = check};
