/* recipe_gan.c: a generative adversarial network (Goodfellow and others 2014). A step is two
 * programs on one instance: the discriminator learns to tell data from what the generator makes of
 * noise, then the generator, through the discriminator as it now is, to be taken for data. That is
 * the non-saturating loss: the generator's gradient is large where it is found out. */
#include "base/text.h"
#include "core/params.h"
#include "nn/emit.h"
#include "nn/grad.h"
#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

enum { TURN_DISCRIMINATOR, TURN_GENERATOR };

static bool belongs(void *context, int32_t entry)
{
    const struct recipe_emit *emit = context;
    const char *prefix = emit->turn == TURN_GENERATOR ? "generator." : "discriminator.";
    return text_starts(emit->draft->params->entries[entry].name, prefix);
}

/* How wrong the discriminator is when x should be taken for data (truth 1) or not (0): a loss and
 * where its gradient starts. */
static int32_t judge(struct recipe_emit *emit, int32_t rows, int32_t x, float truth,
                     struct grad_seed *seed)
{
    struct draft *draft = emit->draft;
    int32_t y = recipe_network(emit, "discriminator", rows, x);
    const struct shape shape = *draft_shape(draft, y);
    int32_t target = draft_real(draft, "truth", shape);
    int32_t loss = draft_real(draft, "judged", SHAPE(1));
    draft_op(draft, OP_fill, NOTHING, OUT(target))->attr.fill.value = truth;
    draft_op(draft, OP_binary_cross_entropy, IN(y, target), OUT(loss));
    if (emit->options->use == USE_TRAINING)
        *seed = loss_emit_seed(draft, LOSS_BINARY_CROSS_ENTROPY, y, target, NULL, 1);
    draft_part(draft, PART_FORWARD);
    return loss;
}

static int32_t generate(struct recipe_emit *emit, int32_t rows)
{
    int32_t noise = recipe_noise(emit, "generator", rows);
    return recipe_fit(emit, recipe_network(emit, "generator", rows, noise), "discriminator");
}

/* Its rate is to the discriminator's as their texts say. */
static double rate_of(const struct recipe_emit *emit, const struct network *side)
{
    if (emit->options->optimiser && *emit->options->optimiser)
        return 1;
    return optimiser_value(&side->optimiser, "rate") /
           optimiser_value(&emit->network->optimiser, "rate");
}

/* The discriminator's loss is that of the step: both halves, 2·ln 2 when it can only guess. */
static void emit_step(struct recipe_emit *emit, int32_t rows, int32_t x)
{
    struct draft *draft = emit->draft;
    struct grad_seed seeds[2];
    bool generator = emit->turn == TURN_GENERATOR;
    const char *name = generator ? "generator" : "discriminator";
    const char *prefix = generator ? "generator." : "discriminator.";
    int32_t found = judge(emit, rows, generate(emit, rows), generator ? 1 : 0, &seeds[0]);
    if (!generator) {
        int32_t missed = judge(emit, rows, x, 1, &seeds[1]);
        int32_t loss = draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "loss", SHAPE(1));
        draft_op(draft, OP_add, IN(found, missed), OUT(loss));
        draft_op(draft, OP_store, IN(loss, -1), NOTHING);
    }
    if (emit->options->use != USE_TRAINING)
        return;
    grad_emit(draft, &(struct grad_options){.seeds = seeds,
                                            .seed_count = generator ? 1 : 2,
                                            .wanted = belongs,
                                            .context = emit});
    const struct network *side = network_part(emit->network, name);
    emit_update(draft, side, emit->options, prefix, rate_of(emit, side));
}

static void emit_all(struct recipe_emit *emit)
{
    struct draft *draft = emit->draft;
    enum program_use use = emit->options->use;
    int32_t rows = emit_rows(draft), x = -1;
    if (use != USE_GENERATION && emit->turn == TURN_DISCRIMINATOR)
        x = emit_x(draft, emit->network, rows);
    draft_part(draft, PART_FORWARD);
    if (use == USE_GENERATION)
        emit_y(draft, generate(emit, rows), rows);
    else if (use == USE_INFERENCE)
        emit_y(draft, recipe_network(emit, "discriminator", rows, x), rows);
    else
        emit_step(emit, rows, x);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    (void)network, (void)recipe;
    out->loss = LOSS_BINARY_CROSS_ENTROPY;
    out->generates = true;
    out->rivals = true;
}

static enum status check(const struct network *network, const struct compile_options *options)
{
    const struct network *discriminator = network_part(network, "discriminator");
    for (int32_t i = 0; i < network->part_count; i++)
        TRY(recipe_check_loss(network->parts[i].network, options, "gan",
                              LOSS_BINARY_CROSS_ENTROPY));
    /* one number: the logarithm of the odds that a row is data */
    TRY(recipe_check_outputs(discriminator, 1, "the discriminator's, is it data? (dense 1)"));
    TRY(recipe_check_outputs(network_part(network, "generator"), shape_count(&discriminator->input),
                             "as many as the discriminator's inputs, which the generator makes"));
    return recipe_check_end(discriminator, LOSS_BINARY_CROSS_ENTROPY);
}

static void tell_part(const struct network *part, struct recipe_traits *out)
{
    bool generator = text_equal(part->part_of.name, "generator");
    out->loss = generator ? LOSS_MSE : LOSS_BINARY_CROSS_ENTROPY;
    out->inner = out->returns = generator;
}

const struct recipe_way recipe_gan = {.emit = emit_all,
                                      .tell = tell,
                                      .turns = 2,
                                      .names = {"discriminator", "generator"},
                                      .check = check,
                                      .tell_part = tell_part};
