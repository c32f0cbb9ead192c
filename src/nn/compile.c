/* compile.c: from a network to the programs everyone needs. */
#include "nn/emit.h"
#include "nn/grad.h"
#include "nn/layer.h"
#include "nn/loss.h"
#include "nn/optimiser.h"

#include <string.h>

/* [batch, …sample] */
static struct shape batched(int64_t batch, const struct shape *sample)
{
    struct shape shape = {.rank = sample->rank + 1, .dim = {batch}};
    for (int i = 0; i < sample->rank; i++)
        shape.dim[i + 1] = sample->dim[i];
    return shape;
}

/* The forward ops; tensors[] becomes the output of each layer. */
static void emit_layers(const struct network *network, struct draft *draft,
                        const struct layer_emit *common, int32_t x, int32_t *tensors)
{
    for (int32_t i = 0; i < network->layer_count && draft->status == STATUS_OK; i++) {
        const struct layer *layer = &network->layers[i];
        int32_t inputs[LAYER_INPUTS];
        for (int32_t k = 0; k < layer->input_count; k++)
            inputs[k] = layer->inputs[k] < 0 ? x : tensors[layer->inputs[k]];
        struct layer_emit emit = *common;
        emit.draft = draft;
        emit.layer = layer;
        emit.start = network->start;
        emit.tokens = network->tokens;
        emit.given = network->given;
        emit.given_count = network->given_count;
        emit.inputs = inputs;
        const char *name =
            arena_format(&draft->program->arena, "%s%s", common->prefix, layer->name);
        if (!name) {
            draft_fail(draft, STATUS_MEMORY, "out of memory");
            return;
        }
        draft->layer = name;
        tensors[i] = layer->kind->emit(&emit);
    }
    draft->layer = "";
}

static int32_t emit_network(const struct network *network, struct draft *draft,
                            const struct layer_emit *common, int32_t x)
{
    int32_t *tensors =
        arena_array(&draft->program->arena, (size_t)network->layer_count, sizeof *tensors);
    if (!tensors) {
        draft_fail(draft, STATUS_MEMORY, "out of memory");
        return -1;
    }
    if (common->phase == PHASE_TRAINING && network->untrainable) {
        draft_fail(draft, STATUS_UNSUPPORTED, "%s", network->untrainable);
        return -1;
    }
    emit_layers(network, draft, common, x, tensors);
    return draft->status == STATUS_OK ? tensors[network->layer_count - 1] : -1;
}

int32_t network_emit(const struct network *network, struct draft *draft, const char *prefix,
                     enum phase phase, int32_t rows, int32_t x, int32_t lengths)
{
    const struct layer_emit common = {
        .prefix = prefix, .phase = phase, .rows = rows, .lengths = lengths};
    return emit_network(network, draft, &common, x);
}

enum loss_kind network_loss(const struct network *network, const struct compile_options *options)
{
    if (options->loss != LOSS_AUTO)
        return options->loss;
    if (network->loss != LOSS_AUTO)
        return network->loss;
    return options->classes > 0 ? LOSS_CROSS_ENTROPY : LOSS_MSE;
}

int32_t emit_rows(struct draft *draft)
{
    int32_t rows =
        draft_tensor(draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(draft->program->batch));
    draft_op(draft, OP_rows, NOTHING, OUT(rows));
    return rows;
}

int32_t emit_load(struct draft *draft, enum dtype dtype, const char *name, struct shape shape,
                  int32_t rows)
{
    int32_t tensor = draft_tensor(draft, ROLE_INPUT, dtype, name, shape);
    draft_op(draft, OP_load, IN(rows), OUT(tensor));
    return tensor;
}

int32_t emit_x(struct draft *draft, const struct network *network, int32_t rows)
{
    enum dtype dtype = network->tokens ? DTYPE_I32 : draft->program->real;
    return emit_load(draft, dtype, "x", batched(draft->program->batch, &network->input), rows);
}

void emit_y(struct draft *draft, int32_t y, int32_t rows)
{
    struct program *program = draft->program;
    if (draft->status != STATUS_OK)
        return;
    if (program->tensors[y].role != ROLE_ACTIVATION) { /* the network gives its input as it is */
        int32_t copy = draft_real(draft, "y", program->tensors[y].shape);
        draft_op(draft, OP_activate, IN(y), OUT(copy));
        y = copy;
    }
    if (draft->status != STATUS_OK)
        return;
    program->tensors[y].name = "y";
    int32_t root = program_root(program, y);
    for (int32_t t = 0; t < program->tensor_count; t++) {
        if (program_root(program, t) != root)
            continue;
        program->tensors[t].role = ROLE_OUTPUT;
        if (t != y && !strcmp(program->tensors[t].name, "y")) /* a layer of that name */
            program->tensors[t].name = "y in another shape";
    }
    draft_op(draft, OP_store, IN(y, rows), NOTHING);
}

/* Labels beyond the outputs would be read from other memory. */
static void check_classes(struct draft *draft, int32_t y, int32_t classes)
{
    const struct shape *shape = draft_shape(draft, y);
    int64_t outputs = shape->rank ? shape->dim[shape->rank - 1] : 0;
    if (draft->status == STATUS_OK && classes > 0 && outputs != classes)
        draft_fail(draft, STATUS_INPUT, "found %lld outputs, expected one for each of %d classes",
                   (long long)outputs, classes);
}

void emit_update(struct draft *draft, const struct network *network,
                 const struct compile_options *options, const char *prefix, double rate)
{
    struct update_options update = {.optimiser = network->optimiser,
                                    .schedule = network->schedule,
                                    .prefix = prefix,
                                    .rate = rate,
                                    .accumulate = options->accumulate > 1};
    enum status status = optimiser_parse(options->optimiser, &update.optimiser);
    if (status == STATUS_OK)
        status = schedule_parse(options->schedule, &update.schedule);
    if (status != STATUS_OK)
        draft_fail(draft, status, "%s", status_message());
    update_emit(draft, &update);
}

enum status network_rate(const struct network *network, const char *optimiser, double *out)
{
    struct optimiser used = network->optimiser;
    TRY(optimiser_parse(optimiser, &used));
    *out = optimiser_value(&used, "rate");
    return STATUS_OK;
}

/* Loss, gradients and update after the forward ops. */
static void emit_learning(const struct network *network, struct draft *draft,
                          const struct compile_options *options, int32_t y, int32_t rows,
                          double rate)
{
    enum loss_kind loss = network_loss(network, options);
    enum dtype real = draft->program->real;
    if (loss == LOSS_CROSS_ENTROPY)
        check_classes(draft, y, options->classes);
    draft_part(draft, PART_PREPARE);
    struct shape shape = *draft_shape(draft, y);
    if (loss == LOSS_CROSS_ENTROPY)
        shape.rank--; /* a label for each row of the last dimension */
    int32_t target = loss == LOSS_CROSS_ENTROPY ? emit_load(draft, DTYPE_I32, "label", shape, rows)
                                                : emit_load(draft, real, "target", shape, rows);
    draft_part(draft, PART_FORWARD);
    struct loss_tensors tensors = loss_emit(draft, loss, y, target, options->classes);
    if (options->use == USE_EVALUATION) {
        emit_y(draft, tensors.probability >= 0 ? tensors.probability : y, rows);
        return;
    }
    int32_t batches = options->accumulate > 1 ? options->accumulate : 1;
    struct grad_seed seed = loss_emit_seed(draft, loss, y, target, &tensors, 1.0 / batches);
    grad_emit(draft,
              &(struct grad_options){.seeds = &seed, .seed_count = 1, .accumulate = batches > 1});
    emit_update(draft, network, options, "", rate);
}

void emit_feed_forward(struct draft *draft, const struct network *network,
                       const struct compile_options *options, double rate)
{
    int32_t rows = emit_rows(draft), x = emit_x(draft, network, rows);
    int32_t lengths = -1;
    if (options->lengths)
        lengths = emit_load(draft, DTYPE_I32, "lengths", SHAPE(options->batch), rows);
    draft_part(draft, PART_FORWARD);
    enum phase phase = options->use == USE_TRAINING ? PHASE_TRAINING : PHASE_INFERENCE;
    const struct layer_emit common = {.prefix = "",
                                      .phase = phase,
                                      .rows = rows,
                                      .lengths = lengths,
                                      .weight_bits = options->weight_bits};
    int32_t y = emit_network(network, draft, &common, x);
    const bool classes = network_loss(network, options) == LOSS_CROSS_ENTROPY;
    if (classes ? options->use == USE_INFERENCE : network->ends_in_softmax) {
        int32_t logits = y;
        y = draft_real(draft, "y", *draft_shape(draft, logits));
        draft_op(draft, OP_softmax, IN(loss_rows(draft, logits)), OUT(loss_rows(draft, y)));
    }
    if (options->use == USE_INFERENCE)
        emit_y(draft, y, rows);
    else
        emit_learning(network, draft, options, y, rows, rate);
}

/* "encoder.dense1" is the layer dense1 of the network that is its file's encoder. */
static bool is_layer(const char *name, const struct layer *layer)
{
    return text_equal(name, layer->name) ||
           (text_ends(name, layer->name) && name[strlen(name) - strlen(layer->name) - 1] == '.');
}

void emit_locate(const struct network *network, const char *name, enum status status)
{
    for (int32_t i = 0; i < network->layer_count; i++) {
        const struct layer *layer = &network->layers[i];
        if (is_layer(name, layer)) {
            status_prefix(status, "%s:%d:%d", network->name, layer->line, layer->column);
            return;
        }
    }
    status_prefix(status, "%s", network->name);
}

enum status network_shapes(const struct network *network, struct shape *out)
{
    struct params params;
    struct draft draft;
    params_init(&params, DTYPE_F32);
    params.bare = true;
    enum status status = program_begin(&draft, &params, network->name, 1, DTYPE_F32);
    if (status == STATUS_OK) {
        int32_t rows = draft_tensor(&draft, ROLE_ACTIVATION, DTYPE_I32, "rows", SHAPE(1));
        int32_t x = draft_tensor(&draft, ROLE_INPUT, network->tokens ? DTYPE_I32 : DTYPE_F32, "x",
                                 batched(1, &network->input));
        int32_t *tensors =
            arena_array(&draft.program->arena, (size_t)network->layer_count, sizeof *tensors);
        const struct layer_emit common = {
            .prefix = "", .phase = PHASE_INFERENCE, .rows = rows, .lengths = -1};
        if (tensors)
            emit_layers(network, &draft, &common, x, tensors);
        else
            draft_fail(&draft, STATUS_MEMORY, "out of memory");
        for (int32_t i = 0; draft.status == STATUS_OK && i < network->layer_count; i++)
            out[i] = *draft_shape(&draft, tensors[i]);
        if (draft.status != STATUS_OK)
            status = status_fail(draft.status, __FILE__, __LINE__, "%s", draft.message);
        if (status == STATUS_INPUT)
            emit_locate(network, draft.failed_in, status);
        draft_drop(&draft);
    }
    params_free(&params);
    return status;
}

enum status network_outputs(const struct network *network, int64_t *out)
{
    struct arena arena = {0};
    struct shape *shapes;
    NEED(shapes = arena_array(&arena, (size_t)network->layer_count, sizeof *shapes));
    enum status status = network_shapes(network, shapes);
    if (status == STATUS_OK)
        *out = shape_count(&shapes[network->layer_count - 1]);
    arena_free(&arena);
    return status;
}

enum status network_compile(const struct network *network, struct params *params,
                            const struct compile_options *options, struct program **out)
{
    struct draft draft;
    TRY(program_begin(&draft, params, network->name, options->batch, params->real));
    emit_feed_forward(&draft, network, options, 1);
    enum status status = program_finish(&draft, out);
    if (status == STATUS_INPUT)
        emit_locate(network, draft.failed_in, status);
    return status;
}
