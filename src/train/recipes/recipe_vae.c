/* recipe_vae.c: a variational auto-encoder (Kingma and Welling 2013). The encoder gives, for each
 * number of the code, the mean and the logarithm of the variance of a normal distribution; the
 * decoder makes the input of a draw from it. Learnt is the negative ELBO: what the decoder is off
 * by, summed over the numbers of a sample, and beta times the code's divergence from a standard
 * normal; so that standard normal codes, decoded, are samples like the data.
 *
 * On a condition, what is decoded is the draw and a learnt code of the row's class together: the
 * draw is left with what the class does not say. */
#include "base/text.h"
#include "nn/emit.h"
#include "nn/grad.h"
#include "nn/loss.h"
#include "nn/optimiser.h"
#include "train/recipe.h"

/* What the encoder gives as [batch, mean and log variance, code]. */
static int32_t encode(struct recipe_emit *emit, int32_t rows, int32_t x)
{
    int64_t batch = emit->options->batch;
    int64_t code = shape_count(&network_part(emit->network, "decoder")->input);
    int32_t given = recipe_network(emit, "encoder", rows, x);
    return draft_view(emit->draft, given, SHAPE(batch, 2, code));
}

/* The code: drawn, or where nothing is learnt the mean. */
static int32_t draw(struct recipe_emit *emit, int32_t rows, int32_t moments)
{
    struct draft *draft = emit->draft;
    int64_t batch = emit->options->batch, code = draft_shape(draft, moments)->dim[2];
    int32_t z = draft_real(draft, "code", SHAPE(batch, code));
    if (emit->options->use == USE_INFERENCE) {
        draft_op(draft, OP_slice, IN(moments), OUT(draft_view(draft, z, SHAPE(batch, 1, code))));
        return z;
    }
    struct op *op = draft_op(draft, OP_draw_normal, IN(moments, rows), OUT(z));
    op->attr.draw_normal.stream = op->id;
    return z;
}

/* Adds the learnt code of each row's class, where there is a condition; the classes are known once
 * the data is. */
static int32_t add_condition(struct recipe_emit *emit, int32_t z, int32_t label)
{
    struct draft *draft = emit->draft;
    int64_t batch = emit->options->batch, classes = emit->options->classes;
    int64_t code = shape_count(draft_shape(draft, z)) / batch;
    int32_t entry;
    if (label < 0 || draft->status != STATUS_OK)
        return z;
    enum status status =
        params_declare(draft->params, "condition.weight", ROLE_PARAM, draft->params->real,
                       SHAPE(classes, code), (struct init){INIT_NORMAL, 1}, &entry);
    if (status != STATUS_OK) {
        draft_fail(draft, status, "%s", status_message());
        return -1;
    }
    int32_t table = draft_view(draft, draft_kept(draft, entry), SHAPE(1, classes, code));
    int32_t told = draft_real(draft, "condition", SHAPE(1, batch, code));
    int32_t sum = draft_real(draft, "told_code", SHAPE(batch, code));
    int32_t flat = draft_view(draft, z, SHAPE(batch, code));
    draft_op(draft, OP_gather, IN(table, draft_view(draft, label, SHAPE(1, batch))), OUT(told));
    draft_op(draft, OP_add, IN(flat, draft_view(draft, told, SHAPE(batch, code))), OUT(sum));
    return sum;
}

static int32_t decode(struct recipe_emit *emit, int32_t rows, int32_t z, int32_t label)
{
    int32_t code = recipe_fit(emit, add_condition(emit, z, label), "decoder");
    return recipe_network(emit, "decoder", rows, code);
}

/* A number of a loss, multiplied. */
static int32_t times(struct draft *draft, int32_t loss, double factor)
{
    int32_t by = draft_real(draft, "weight", SHAPE(1)),
            product = draft_real(draft, "part", SHAPE(1));
    draft_op(draft, OP_fill, NOTHING, OUT(by))->attr.fill.value = (float)factor;
    draft_op(draft, OP_multiply, IN(loss, by), OUT(product));
    return product;
}

/* The negative ELBO, and in training its gradients and the update. */
static void learn(struct recipe_emit *emit, int32_t x, int32_t y, int32_t moments)
{
    struct draft *draft = emit->draft;
    enum loss_kind kind = emit->traits.loss;
    double width = (double)shape_count(&emit->network->input);
    double beta = recipe_value(&emit->recipe, "beta");
    int32_t target = recipe_target(emit, x, y);
    int32_t off = draft_real(draft, "off", SHAPE(1)), far = draft_real(draft, "far", SHAPE(1));
    int32_t loss = draft_tensor(draft, ROLE_OUTPUT, draft->program->real, "loss", SHAPE(1));
    draft_op(draft, kind == LOSS_MSE ? OP_mse : OP_binary_cross_entropy, IN(y, target), OUT(off));
    draft_op(draft, OP_divergence, IN(moments), OUT(far));
    draft_op(draft, OP_add, IN(times(draft, off, width), times(draft, far, beta)), OUT(loss));
    draft_op(draft, OP_store, IN(loss, -1), NOTHING);
    if (emit->options->use != USE_TRAINING)
        return;
    struct grad_seed seeds[2] = {loss_emit_seed(draft, kind, y, target, NULL, width)};
    seeds[1].tensor = moments;
    seeds[1].grad = draft_real(draft, "d(far)", *draft_shape(draft, moments));
    draft_op(draft, OP_divergence_grad, IN(moments), OUT(seeds[1].grad))
        ->attr.divergence_grad.scale = (float)beta;
    grad_emit(draft, &(struct grad_options){.seeds = seeds, .seed_count = 2});
    emit_update(draft, emit->network, emit->options, "", 1);
}

static void emit_all(struct recipe_emit *emit)
{
    struct draft *draft = emit->draft;
    const struct compile_options *options = emit->options;
    bool told = recipe_value(&emit->recipe, "condition") > 0 && options->classes > 0;
    int32_t rows = emit_rows(draft), label = -1, x = -1, moments = -1, z;
    if (options->use != USE_GENERATION)
        x = emit_x(draft, emit->network, rows);
    if (told)
        label = emit_load(draft, DTYPE_I32, "label", SHAPE(options->batch), rows);
    draft_part(draft, PART_FORWARD);
    if (options->use == USE_GENERATION) {
        z = recipe_noise(emit, "decoder", rows);
    } else {
        moments = encode(emit, rows, x);
        z = draw(emit, rows, moments);
    }
    int32_t y = decode(emit, rows, z, label);
    if (options->use == USE_TRAINING || options->use == USE_EVALUATION)
        learn(emit, x, y, moments);
    if (options->use != USE_TRAINING)
        emit_y(draft, y, rows);
}

static void tell(const struct network *network, const struct recipe *recipe,
                 struct recipe_traits *out)
{
    (void)network;
    out->classes = recipe_value(recipe, "condition") > 0;
    out->returns = true;
    out->unit = out->loss == LOSS_BINARY_CROSS_ENTROPY;
    out->generates = true;
}

/* Both networks learn in one step: a line that one of them has alone would say nothing, or half. */
static enum status check_line(const struct network *network, const char *what, int32_t encoder,
                              int32_t decoder)
{
    if (encoder != decoder)
        FAIL(STATUS_INPUT,
             "%s:%d:1: found the %s of one network, expected it before the first line 'network': "
             "encoder and decoder of a vae learn as one",
             network->name, decoder ? decoder : encoder, what);
    return STATUS_OK;
}

static enum status check(const struct network *network, const struct compile_options *options)
{
    const struct network *encoder = network_part(network, "encoder");
    const struct network *decoder = network_part(network, "decoder");
    TRY(check_line(network, "optimiser", encoder->said_on.optimiser, decoder->said_on.optimiser));
    TRY(check_line(network, "schedule", encoder->said_on.schedule, decoder->said_on.schedule));
    TRY(check_line(network, "loss", encoder->said_on.loss, decoder->said_on.loss));
    TRY(recipe_check_measure(decoder, options, "vae"));
    TRY(recipe_check_outputs(encoder, 2 * shape_count(&decoder->input),
                             "two for each of the decoder's inputs, a mean and a variance"));
    TRY(recipe_check_outputs(decoder, shape_count(&encoder->input),
                             "as many as the encoder's inputs, which the decoder gives back"));
    return recipe_check_end(decoder, network_loss(decoder, options));
}

static void tell_part(const struct network *part, struct recipe_traits *out)
{
    bool decoder = text_equal(part->part_of.name, "decoder");
    out->unit = !decoder && out->loss == LOSS_BINARY_CROSS_ENTROPY;
    if (!decoder)
        out->loss = LOSS_MSE; /* means and logarithms of variances: numbers as they are */
    out->inner = out->returns = decoder;
}

const struct recipe_way recipe_vae = {.emit = emit_all,
                                      .tell = tell,
                                      .turns = 1,
                                      .check = check,
                                      .tell_part = tell_part};
