/* model_export.c: a model as an ONNX file. In 8 bits it says where the network rounds, and on which
 * scales: the pass that made it does, over the program in fp32. */
#include "train/model_export.h"

#include "core/pass/quantise.h"
#include "nn/formats/onnx.h"

#include <string.h>

/* The programs in fp32, and what became of it. */
struct both {
    struct arena *arena; /* of what was found */
    struct params reals, integers;
    struct recipe_step step;
    const struct program *program;
    struct program *small;
    struct quantised *map;
    struct quantisation *how;
};

static enum status open_both(const struct network *network, const struct compile_options *options,
                             struct both *both)
{
    struct network plain = *network;
    plain.quantised = NULL;
    plain.given_count = 0;
    both->how = network->quantised;
    both->reals.bare = both->integers.bare = true;
    TRY(recipe_compile(&plain, &both->reals, options, &both->step));
    both->program = both->step.programs[0];
    NEED(both->map =
             arena_array(both->arena, (size_t)both->program->tensor_count + 1, sizeof *both->map));
    return quantise(both->program, both->how, NULL, &both->integers, both->map, &both->small);
}

static void close_both(struct both *both)
{
    recipe_free(&both->step);
    program_free(both->small);
    params_free(&both->reals);
    params_free(&both->integers);
}

static const struct quantised *form_of(const struct both *both, int32_t tensor)
{
    return &both->map[program_root(both->program, tensor)];
}

static bool is_small(const struct both *both, const char *layer)
{
    for (int32_t o = 0; o < both->small->op_count; o++)
        if (!strcmp(both->small->ops[o].layer, layer) &&
            (both->small->ops[o].kind == OP_dense_int8 || both->small->ops[o].kind == OP_conv_int8))
            return true;
    return false;
}

/* Does the op only bound, or scale a channel? Then it is part of the product before. */
static bool belongs(const struct op *op)
{
    const int32_t function = op->kind == OP_activate ? op->attr.activate.function : -1;
    return op->kind == OP_batch_norm_fixed || op->kind == OP_bound || function == ACTIVATION_RELU ||
           function == ACTIVATION_NONE;
}

/* The op whose first input this is, where the tensor has no form of its own; or NULL. */
static const struct op *next_op(const struct both *both, int32_t tensor)
{
    for (int32_t o = 0; o < both->program->op_count; o++)
        if (both->program->ops[o].inputs &&
            op_input(both->program, &both->program->ops[o], 0) >= 0 &&
            program_root(both->program, op_input(both->program, &both->program->ops[o], 0)) ==
                program_root(both->program, tensor))
            return &both->program->ops[o];
    return NULL;
}

/* What the sums of a product are rounded to: its own result, or that in front of a table. */
static struct scale scale_of_sums(const struct both *both, const struct op *op, int32_t *tensor)
{
    *tensor = op_output(both->program, op, 0);
    for (;;) {
        const struct quantised *form = form_of(both, *tensor);
        if (form->tensor >= 0)
            return form->scale;
        const struct op *next = next_op(both, *tensor);
        if (!next || !belongs(next))
            return scale_of(&both->how->ranges[program_root(both->program, *tensor)],
                            both->how->plain);
        *tensor = op_output(both->program, next, 0);
    }
}

static enum status add_level(struct both *both, struct onnx_levels *levels, const char *layer,
                             const struct scale *scale)
{
    struct onnx_level *list = (struct onnx_level *)(uintptr_t)levels->levels;
    list[levels->level_count++] = (struct onnx_level){.layer = arena_text(both->arena, layer),
                                                      .scale = scale->scale,
                                                      .zero = scale->zero,
                                                      .most = scale->most};
    NEED(list[levels->level_count - 1].layer);
    return STATUS_OK;
}

static const char *writer_of(const struct both *both, int32_t tensor)
{
    const char *layer = "";
    for (int32_t o = 0; o < both->program->op_count; o++)
        for (int32_t i = 0; i < both->program->ops[o].outputs; i++) {
            int32_t written = op_output(both->program, &both->program->ops[o], i);
            if (written >= 0 && program_root(both->program, written) == tensor)
                layer = both->program->ops[o].layer;
        }
    return layer;
}

/* A layer that is read in 8 bits and in reals would be two values; only one has its name. */
static enum status check_readers(const struct both *both, int32_t small, const char *layer)
{
    const struct program *program = both->small;
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if (op->kind != OP_quantise || program_root(program, op_output(program, op, 0)) != small)
            continue;
        int32_t real = program_root(program, op_input(program, op, 0));
        for (int32_t k = 0; k < program->op_count; k++)
            for (int32_t i = 0; i < program->ops[k].inputs; i++) {
                int32_t read = op_input(program, &program->ops[k], i);
                if (k != o && read >= 0 && program_root(program, read) == real)
                    FAIL(STATUS_UNSUPPORTED,
                         "%s is read in 8 bits and in fp32, which is not exported", layer);
            }
    }
    return STATUS_OK;
}

static enum status find_levels(struct both *both, struct onnx_levels *out)
{
    const struct program *program = both->program;
    struct onnx_product *products;
    NEED(out->levels =
             arena_array(both->arena, (size_t)program->tensor_count + (size_t)program->op_count + 1,
                         sizeof *out->levels));
    NEED(products = arena_array(both->arena, (size_t)program->op_count + 1, sizeof *products));
    out->products = products;
    for (int32_t t = 0; t < program->tensor_count; t++) {
        if (program->tensors[t].view_of >= 0 || !both->map[t].is_u8 || both->map[t].tensor < 0)
            continue;
        const char *layer = writer_of(both, t);
        TRY(check_readers(both, program_root(both->small, both->map[t].tensor),
                          *layer ? layer : "the input"));
        TRY(add_level(both, out, layer, &both->map[t].scale));
    }
    for (int32_t o = 0; o < program->op_count; o++) {
        const struct op *op = &program->ops[o];
        if ((op->kind != OP_dense && op->kind != OP_conv) || !is_small(both, op->layer))
            continue;
        int32_t tensor;
        const struct scale y = scale_of_sums(both, op, &tensor);
        const struct quantised *x = form_of(both, op_input(program, op, 0));
        const char *name = arena_text(both->arena, op->layer);
        NEED(name);
        products[out->product_count++] = (struct onnx_product){.layer = name,
                                                               .x_scale = x->scale.scale,
                                                               .x_zero = x->scale.zero,
                                                               .y_scale = y.scale,
                                                               .y_zero = y.zero};
        if (form_of(both, tensor)->tensor < 0) /* in front of a table */
            TRY(add_level(both, out, writer_of(both, program_root(program, tensor)), &y));
    }
    return STATUS_OK;
}

static enum status write(struct model *model, const struct onnx_levels *levels, const char *path)
{
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    const struct scaling *returns = model_returns(model, &traits);
    const bool scales = scaling_changes(&model->scaling);
    const struct onnx_ends ends = {.loss = traits.loss,
                                   .mean = scales ? model->scaling.mean : NULL,
                                   .scale = scales ? model->scaling.scale : NULL,
                                   .unit = model->scaling.unit,
                                   .returns_mean = returns ? returns->mean : NULL,
                                   .returns_scale = returns ? returns->scale : NULL,
                                   .levels = levels};
    TRY(params_fill_new(&model->params));
    TRY(engine_download(&model->engine, &model->params));
    return onnx_write(path, model->network, &model->params, &ends);
}

enum status export_levels(const struct network *network, const struct compile_options *options,
                          struct arena *arena, struct onnx_levels *out)
{
    struct both both = {.arena = arena};
    *out = (struct onnx_levels){0};
    params_init(&both.reals, DTYPE_F32);
    params_init(&both.integers, DTYPE_F32);
    enum status status = open_both(network, options, &both);
    if (status == STATUS_OK)
        status = find_levels(&both, out);
    close_both(&both);
    return status;
}

enum status model_export(struct model *model, const char *path)
{
    const struct compile_options options = model_compile_options(model, USE_INFERENCE, 1);
    struct arena arena = {0};
    struct onnx_levels levels;
    if (!model->network->quantised)
        return write(model, NULL, path);
    enum status status = export_levels(model->network, &options, &arena, &levels);
    if (status == STATUS_OK)
        status = write(model, &levels, path);
    arena_free(&arena);
    return status;
}
