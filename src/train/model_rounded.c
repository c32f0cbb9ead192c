/* model_rounded.c: the weights of a network that got used to few bits, as it predicts with them. */
#include "train/model_rounded.h"

#include "core/pass/quantise_numbers.h"

#include <math.h>

/* The channel's weights, which follow each other `inner` at a time. */
static void round_channel(float *values, int64_t count, int64_t inner, int64_t stride, int32_t bits)
{
    double most = 0;
    for (int64_t at = 0; at < count; at += stride)
        for (int64_t i = at; i < at + inner; i++)
            most = fmax(most, fabs((double)values[i]));
    const double step = weight_step(most, 0, 1, bits, false);
    for (int64_t at = 0; at < count; at += stride)
        for (int64_t i = at; i < at + inner; i++)
            values[i] = (float)(step * weight_level((double)values[i], step, bits));
}

static void round_entry(struct params *params, int32_t entry, const struct op *op)
{
    const int64_t inner = op->attr.fake_quantise.inner;
    const int64_t channels = op->attr.fake_quantise.channels;
    const int64_t count = shape_count(&params->entries[entry].shape);
    float *values = params_data(params, entry);
    for (int64_t c = 0; c < channels; c++)
        round_channel(values + c * inner, count - c * inner, inner, inner * channels,
                      op->attr.fake_quantise.bits);
}

enum status model_round(struct model *model)
{
    struct compile_options options = model_compile_options(model, USE_INFERENCE, 1);
    struct recipe_step step;
    if (!model->used_to_bits)
        return STATUS_OK;
    options.weight_bits = model->used_to_bits;
    TRY(recipe_compile(model->network, &model->params, &options, &step));
    const struct program *program = step.programs[0];
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        const struct tensor *x = &program->tensors[op->inputs ? op_input(program, op, 0) : 0];
        if (op->kind == OP_fake_quantise && op->attr.fake_quantise.channels &&
            role_is_kept(x->role))
            round_entry(&model->params, x->entry, op);
    }
    recipe_free(&step);
    return STATUS_OK;
}
