/* recipe_rbm.c: a restricted Boltzmann machine: a dense layer and its sigmoid, read both ways. x·W
 * + b are the chances of the hidden units, h·Wᵀ + a those of the visible ones; both are on or off.
 *
 * It learns by contrastive divergence (Hinton 2002): the gradient is the difference of two outer
 * products that no autodiff made, of units and chances where the data puts them and where some
 * steps of Gibbs sampling do. These begin at the data, or (chains, Tieleman 2008) where they ended
 * before: the chains are state, saved with the training.
 *
 * It generates by the same steps from where the chains ended: what they begin with and end with are
 * bound to one block, so that each run goes on where the last one ended. */
#include "base/rng.h"
#include "nn/emit.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

#include <stdio.h>
#include <string.h>

/* One machine in a draft. */
struct rbm {
    struct draft *draft;
    const char *layer;
    int64_t units[2];              /* visible, hidden */
    int32_t weight, bias, visible; /* tensors; bias and visible are what is added to the sums */
    int32_t sweeps; /* counts runs that generate; declared by all, as files have it */
};

enum { VISIBLE, HIDDEN };

enum { STREAM_BEGIN = INT32_MAX }; /* no op of a program has that id */

static bool is_kind(const struct network *network, int32_t layer, const char *kind)
{
    return layer < network->layer_count && !strcmp(network->layers[layer].kind->name, kind);
}

static bool reads_last(const struct network *network, int32_t layer)
{
    return network->layers[layer].inputs[0] == layer - 1;
}

bool rbm_at(const struct network *network, int32_t layer)
{
    return is_kind(network, layer, "dense") && is_kind(network, layer + 1, "sigmoid") &&
           reads_last(network, layer + 1);
}

int32_t rbm_layers(const struct network *network)
{
    int32_t count = 0;
    while (rbm_at(network, 2 * count) && reads_last(network, 2 * count))
        count++;
    return network->input.rank == 1 ? count : 0;
}

/* Chances of the units on the other side, given those on one. */
static int32_t chances(const struct rbm *rbm, int from, int32_t units, const char *name)
{
    int to = from == VISIBLE ? HIDDEN : VISIBLE;
    int64_t batch = draft_shape(rbm->draft, units)->dim[0];
    int32_t sums = draft_real(rbm->draft, name, SHAPE(batch, rbm->units[to]));
    int32_t out = draft_real(rbm->draft, name, SHAPE(batch, rbm->units[to]));
    if (from == VISIBLE)
        draft_op(rbm->draft, OP_dense, IN(units, rbm->weight, rbm->bias), OUT(sums));
    else
        draft_op(rbm->draft, OP_dense_t, IN(units, rbm->weight, rbm->visible), OUT(sums));
    draft_op(rbm->draft, OP_activate, IN(sums), OUT(out))->attr.activate.function =
        ACTIVATION_SIGMOID;
    return out;
}

/* Units that are on by their chances. Of chains, which are no rows of the data, all are one sample
 * (rows has one element). */
static int32_t flip(const struct rbm *rbm, int32_t chance, int32_t rows)
{
    struct shape shape = *draft_shape(rbm->draft, chance);
    struct shape drawn = shape;
    if (draft_shape(rbm->draft, rows)->dim[0] != shape.dim[0])
        drawn = SHAPE(1, shape_count(&shape));
    int32_t out = draft_real(rbm->draft, "units", shape);
    bool same = shape_equal(&shape, &drawn);
    struct op *op = draft_op(rbm->draft, OP_bernoulli,
                             IN(same ? chance : draft_view(rbm->draft, chance, drawn), rows),
                             OUT(same ? out : draft_view(rbm->draft, out, drawn)));
    op->attr.bernoulli.stream = op->id;
    return out;
}

static int32_t keep(const struct rbm *rbm, const char *name, enum role role, enum dtype dtype,
                    struct shape shape)
{
    char full[200];
    int32_t entry;
    if (rbm->draft->status != STATUS_OK)
        return -1;
    snprintf(full, sizeof full, "%s.%s", rbm->layer, name);
    enum status status = params_declare(rbm->draft->params, full, role, dtype, shape,
                                        (struct init){.kind = INIT_ZERO}, &entry);
    if (status == STATUS_OK)
        return draft_kept(rbm->draft, entry);
    draft_fail(rbm->draft, status, "%s", status_message());
    return -1;
}

/* The tensor of a parameter that the dense layer has declared. */
static int32_t find(struct recipe_emit *emit, const struct rbm *rbm, const char *name)
{
    char full[200];
    if (emit->draft->status != STATUS_OK)
        return -1;
    snprintf(full, sizeof full, "%s.%s", rbm->layer, name);
    return draft_kept(emit->draft, params_find(emit->draft->params, full));
}

/* What the layers before machine `which` make of x, the chances it gives them, and the machine. */
static int32_t open_machine(struct recipe_emit *emit, int32_t which, int32_t rows, int32_t x,
                            int32_t *given, struct rbm *rbm)
{
    const struct network *network = emit->network;
    struct network lower = *network, own = *network;
    int32_t first = -1, above = 0;
    struct layer layers[2] = {network->layers[2 * which], network->layers[2 * which + 1]};
    layers[0].inputs = &first;
    layers[1].inputs = &above;
    lower.layer_count = 2 * which;
    own.layers = layers;
    own.layer_count = 2;
    *given = which ? network_emit(&lower, emit->draft, "", PHASE_INFERENCE, rows, x, -1) : x;
    int32_t chance = network_emit(&own, emit->draft, "", PHASE_INFERENCE, rows, *given, -1);
    *rbm = (struct rbm){.draft = emit->draft, .layer = layers[0].name};
    rbm->units[VISIBLE] = draft_shape(emit->draft, *given)->dim[1];
    rbm->units[HIDDEN] = draft_shape(emit->draft, chance)->dim[1];
    rbm->weight = find(emit, rbm, "weight");
    rbm->bias = find(emit, rbm, "bias");
    rbm->visible =
        keep(rbm, "visible", ROLE_PARAM, emit->draft->params->real, SHAPE(rbm->units[VISIBLE]));
    rbm->sweeps = keep(rbm, "sweeps", ROLE_STATE, DTYPE_I32, SHAPE(1));
    return chance;
}

/* Steps of Gibbs sampling from the hidden units' chances at the data on, or of chains: the visible
 * units they end with. */
static int32_t wander(struct recipe_emit *emit, const struct rbm *rbm, int32_t rows, int32_t chance)
{
    int32_t steps = (int32_t)recipe_value(&emit->recipe, "steps"), units = -1;
    int64_t chains = (int64_t)recipe_value(&emit->recipe, "chains");
    if (!chains) { /* visible units as chances: less noise, and the data is chances too */
        for (int32_t i = 0; i < steps; i++) {
            units = chances(rbm, HIDDEN, flip(rbm, chance, rows), "visible");
            if (i + 1 < steps)
                chance = chances(rbm, VISIBLE, units, "hidden");
        }
        return units;
    }
    enum dtype real = emit->draft->program->real;
    int32_t kept = keep(rbm, "chains", ROLE_STATE, real, SHAPE(chains, rbm->units[VISIBLE]));
    int32_t sample = keep(rbm, "sample", ROLE_STATE, DTYPE_I32, SHAPE(1));
    units = kept;
    for (int32_t i = 0; i < steps; i++) {
        int32_t hidden = flip(rbm, chances(rbm, VISIBLE, units, "hidden"), sample);
        units = flip(rbm, chances(rbm, HIDDEN, hidden, "visible"), sample);
    }
    draft_op(emit->draft, OP_activate, IN(units), OUT(kept)); /* the identity: they stay there */
    return units;
}

/* Adds sign × the mean over rows of visible·hidden, visible and hidden to the gradients. */
static void contrast(const struct rbm *rbm, int32_t visible, int32_t hidden, float sign)
{
    struct draft *draft = rbm->draft;
    float scale = sign / (float)draft_shape(draft, visible)->dim[0];
    int32_t accumulate = sign > 0; /* the data comes first, with the minus sign */
    const int32_t biases[2][2] = {{visible, rbm->visible}, {hidden, rbm->bias}};
    struct op *op =
        draft_op(draft, OP_outer, IN(visible, hidden), OUT(draft_grad(draft, rbm->weight)));
    op->attr.outer.scale = scale;
    op->attr.outer.accumulate = accumulate;
    for (int i = 0; i < 2; i++) {
        op = draft_op(draft, OP_sum_rows, IN(biases[i][0]), OUT(draft_grad(draft, biases[i][1])));
        op->attr.sum_rows.scale = scale;
        op->attr.sum_rows.accumulate = accumulate;
    }
}

void rbm_emit(struct recipe_emit *emit, int32_t which)
{
    struct draft *draft = emit->draft;
    struct rbm rbm;
    int32_t given, rows = emit_rows(draft), x = emit_x(draft, emit->network, rows);
    draft_part(draft, PART_FORWARD);
    int32_t chance = open_machine(emit, which, rows, x, &given, &rbm);
    if (emit->options->use == USE_INFERENCE) {
        emit_y(draft, chance, rows);
        return;
    }
    bool learns = emit->options->use == USE_TRAINING;
    int32_t units = learns ? wander(emit, &rbm, rows, chance) : -1;
    /* how far what its hidden units say is from the data: no goal of this learning, but a sign */
    bool apart = !learns || recipe_value(&emit->recipe, "chains") > 0;
    int32_t again = apart ? chances(&rbm, HIDDEN, chance, "again") : units;
    int32_t loss = draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "loss", SHAPE(1));
    draft_op(draft, OP_mse, IN(again, given), OUT(loss));
    draft_op(draft, OP_store, IN(loss, -1), NOTHING);
    if (!learns)
        return;
    int32_t hidden = chances(&rbm, VISIBLE, units, "hidden");
    draft_part(draft, PART_BACKWARD);
    contrast(&rbm, given, chance, -1);
    contrast(&rbm, units, hidden, 1);
    char prefix[200];
    snprintf(prefix, sizeof prefix, "%s.", rbm.layer);
    emit_update(draft, emit->network, emit->options, prefix, 1);
}

/* Some sweeps from the units in "x" on; "chain" are those it ends with, "y" their chances. */
static void emit_sweeps(struct recipe_emit *emit)
{
    struct draft *draft = emit->draft;
    struct rbm rbm;
    int32_t given, rows = emit_rows(draft), x = emit_x(draft, emit->network, rows), y = -1;
    draft_part(draft, PART_FORWARD);
    int32_t chance = open_machine(emit, 0, rows, x, &given, &rbm), units = -1;
    for (int i = 0; i < RECIPE_SWEEPS; i++) {
        y = chances(&rbm, HIDDEN, flip(&rbm, chance, rows), "visible");
        units = flip(&rbm, y, rows);
        if (i + 1 < RECIPE_SWEEPS)
            chance = chances(&rbm, VISIBLE, units, "hidden");
    }
    int32_t chain =
        draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "chain", *draft_shape(draft, units));
    draft_op(draft, OP_activate, IN(units), OUT(chain));
    draft_op(draft, OP_store, IN(chain, rows), NOTHING);
    emit_y(draft, y, rows);
    draft_part(draft, PART_UPDATE); /* each run draws other numbers */
    draft_op(draft, OP_tick, IN(rbm.sweeps), OUT(rbm.sweeps));
}

int32_t rbm_chains(const struct network *network, const struct params *params)
{
    char full[200];
    if (!network->layer_count)
        return -1;
    snprintf(full, sizeof full, "%s.chains", network->layers[0].name);
    return params_find(params, full);
}

/* Is one of so many units on? Chains start with all of them off, and so do those that a file of
 * weights does not have. */
static bool any_on(const float *units, int64_t count)
{
    int64_t i = 0;
    while (i < count && units[i] == 0)
        i++;
    return i < count;
}

void rbm_begin(const struct network *network, const struct params *params, int64_t rows, float *out)
{
    const struct rng_key key = {.seed = params->control.seed, .stream = STREAM_BEGIN};
    int64_t width = shape_count(&network->input);
    int32_t entry = rbm_chains(network, params);
    const float *chains = entry < 0 ? NULL : params_data(params, entry);
    int64_t count = entry < 0 ? 0 : params->entries[entry].shape.dim[0];
    bool go_on = any_on(chains, count * width);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++)
            if (go_on)
                out[row * width + i] = chains[row % count * width + i];
            else
                out[row * width + i] = rng_uniform(key, (uint32_t)row, (uint32_t)i) < 0.5f;
}

static void emit_all(struct recipe_emit *emit)
{
    if (emit->options->use == USE_GENERATION)
        emit_sweeps(emit);
    else
        rbm_emit(emit, 0);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    (void)network, (void)recipe;
    out->unit = true;
    out->generates = true;
}

enum status rbm_check_machines(const struct network *network, const char *recipe)
{
    if (network->input.rank != 1)
        FAIL(STATUS_INPUT,
             "%s:%d:1: found an input of %d sizes, expected one, as in 'input 784': the units of "
             "the recipe %s have no shape",
             network->name, network->said_on.input, network->input.rank, recipe);
    for (int32_t i = 0; i < rbm_layers(network); i++) {
        const struct layer *dense = &network->layers[2 * i];
        if (layer_value(&(struct layer_emit){.layer = dense}, "bias") == 0)
            FAIL(STATUS_INPUT,
                 "%s:%d:%d: found bias=0, expected a machine whose units have biases: leave it out",
                 network->name, dense->line, dense->column);
    }
    return STATUS_OK;
}

static enum status check(const struct network *network, const struct compile_options *options)
{
    const struct layer *other =
        &network->layers[rbm_layers(network) && network->layer_count > 2 ? 2 : 0];
    TRY(rbm_check_machines(network, "rbm"));
    if (!rbm_layers(network) || network->layer_count != 2)
        FAIL(STATUS_INPUT,
             "%s:%d:%d: found other layers, expected those of an rbm: 'input SIZE', 'dense UNITS' "
             "and 'sigmoid'",
             network->name, other->line, other->column);
    return recipe_check_loss(network, options, "rbm", LOSS_MSE); /* which is what is shown */
}

const struct recipe_way recipe_rbm = {.emit = emit_all, .tell = tell, .turns = 1, .check = check};
