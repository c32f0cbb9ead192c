/* recipe_autoencoder.c: a network that gives its input back. A narrow layer in its middle is a code
 * of what goes in; with convolutions, pooling and their transposes it is a deconvolutional network.
 */
#include "nn/emit.h"
#include "nn/grad.h"
#include "nn/loss.h"
#include "train/recipe.h"

static void emit_all(struct recipe_emit *emit)
{
    struct draft *draft = emit->draft;
    const struct network *network = emit->network;
    int32_t rows = emit_rows(draft), x = emit_x(draft, network, rows);
    enum loss_kind loss = emit->traits.loss;
    draft_part(draft, PART_FORWARD);
    int32_t y = recipe_network(emit, "", rows, x);
    if (emit->options->use != USE_INFERENCE) {
        int32_t target = recipe_target(emit, x, y);
        struct loss_tensors tensors = loss_emit(draft, loss, y, target, 0);
        if (emit->options->use == USE_TRAINING) {
            struct grad_seed seed = loss_emit_seed(draft, loss, y, target, &tensors, 1);
            grad_emit(draft, &(struct grad_options){.seeds = &seed, .seed_count = 1});
            emit_update(draft, network, emit->options, "", 1);
            return;
        }
    }
    emit_y(draft, y, rows);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    (void)network, (void)recipe;
    out->returns = true;
    out->unit = out->loss == LOSS_BINARY_CROSS_ENTROPY;
}

static enum status check(const struct network *network, const struct compile_options *options)
{
    TRY(recipe_check_measure(network, options, "autoencoder"));
    TRY(recipe_check_outputs(network, shape_count(&network->input),
                             "as many as inputs, which an autoencoder gives back"));
    return recipe_check_end(network, network_loss(network, options));
}

const struct recipe_way recipe_autoencoder = {.emit = emit_all,
                                              .tell = tell,
                                              .turns = 1,
                                              .check = check};
