/* task_peer.c: see task_peer.h. */
#include "bench/peer/task_peer.h"

#include "bench/check/outcome.h"
#include "bench/job/task_files.h"
#include "nn/layer.h"
#include "nn/optimiser.h"
#include "nn/reader.h"
#include "train/model_export.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The layer's arguments under the names that layers.def has; a list (kernel 5x5) is an array, a
 * word its place among the words. */
static void peer_arguments(const struct layer *layer, struct json_writer *writer)
{
    char name[READER_WORD];
    for (int i = 0; arguments_name(layer->kind->arguments, i, name); i++) {
        const struct layer_list *list = &layer->lists[i];
        json_key(writer, name);
        if (!list->count) {
            json_add_real(writer, layer->values[i]);
            continue;
        }
        json_array(writer);
        for (int32_t j = 0; j < list->count; j++)
            json_add_int(writer, list->items[j]);
        json_end(writer);
    }
}

static void peer_optimiser(const struct optimiser *optimiser, struct json_writer *writer)
{
    char name[READER_WORD];
    json_put_text(writer, "optimiser", optimiser->kind->name);
    json_key(writer, "settings");
    json_object(writer);
    for (int i = 0; arguments_name(optimiser->kind->settings, i, name); i++) {
        json_put_real(writer, name, optimiser->values[i]);
    }
    json_end(writer);
}

static void peer_layers(const struct network *network, struct json_writer *writer)
{
    json_key(writer, "layers");
    json_array(writer);
    for (int32_t i = 0; i < network->layer_count; i++) {
        const struct layer *layer = &network->layers[i];
        json_object(writer);
        json_put_text(writer, "kind", layer->kind->name);
        json_put_text(writer, "name", layer->name);
        json_key(writer, "inputs");
        json_array(writer);
        for (int32_t j = 0; j < layer->input_count; j++)
            json_add_int(writer, layer->inputs[j]);
        json_end(writer);
        peer_arguments(layer, writer);
        json_end(writer);
    }
    json_end(writer);
}

/* An axis of the point, unless it is as usual. */
static int add_axis(const struct point *point, enum axis_index which, struct peer_axis *out)
{
    const struct axis *axis = &axes[which];
    char number[POINT_NUMBER];
    const char *value = point_get(point, axis, number);
    if (!value[0] || strcmp(value, axis->otherwise) == 0)
        return 0;
    out->key = axis->key;
    snprintf(out->value, sizeof out->value, "%s", value);
    return 1;
}

void task_peer_axes(const struct point *point, struct peer_axis out[PEER_AXES])
{
    static const enum axis_index ours[] = {AXIS_isa, AXIS_fusion, AXIS_pages, AXIS_precision,
                                           AXIS_recompute},
                                 shared[] = {AXIS_workers, AXIS_parallelism, AXIS_servers};
    int count = 0;
    for (size_t i = 0; point->fusion[0] && i < sizeof ours / sizeof *ours; i++)
        count += add_axis(point, ours[i], &out[count]);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        count += add_axis(point, shared[i], &out[count]);
}

static void peer_axes(const struct point *point, struct json_writer *writer)
{
    struct peer_axis asked[PEER_AXES] = {{NULL, ""}};
    task_peer_axes(point, asked);
    json_key(writer, "axes");
    json_object(writer);
    for (int i = 0; i < PEER_AXES && asked[i].key; i++)
        json_put_text(writer, asked[i].key, asked[i].value);
    json_end(writer);
}

/* Of an ONNX file what a peer opens it by: which dimensions count samples only where prony knows.
 */
static enum status peer_file(struct task *task, const char *end, struct json_writer *writer)
{
    const char *path = arena_bytes(&task->arena, task->model, (size_t)(end - task->model));
    NEED(path);
    json_key(writer, "onnx");
    json_object(writer);
    json_put_text(writer, "file", path);
    json_put_text(writer, "sizes", *end ? end + 1 : "");
    if (task->network) {
        json_key(writer, "batch");
        json_array(writer);
        json_add_int(writer, task->network->onnx_batch.input);
        json_add_int(writer, task->network->onnx_batch.output);
        json_end(writer);
    }
    json_end(writer);
    return STATUS_OK;
}

/* Can peers compute it? */
static enum status peer_check_network(const struct task *task)
{
    const struct network *network = task->network;
    /* what a single network predicts has nothing to do with how it learnt */
    bool plain = network->recipe.kind->id == RECIPE_feed_forward;
    if (network->part_count || (!plain && task->phase == PHASE_TRAINING))
        FAIL(STATUS_UNSUPPORTED, "%s learns by the recipe %s, which peers do not know",
             network->name, network->recipe.kind->name);
    for (int32_t i = 0; task->phase == PHASE_TRAINING && i < task->params.count; i++)
        if (task->params.entries[i].role == ROLE_PARAM && task->params.entries[i].fixed)
            FAIL(STATUS_UNSUPPORTED, "%s: '%s' stays as it is in training; peers would learn it",
                 network->name, task->params.entries[i].name);
    return STATUS_OK;
}

/* Of a network in 8 bits the scales of its products. */
static enum status peer_products(const struct task *task, struct json_writer *writer)
{
    const struct compile_options options = {.batch = 1, .use = USE_INFERENCE};
    struct arena arena = {0};
    struct onnx_levels levels;
    enum status status = export_levels(task->network, &options, &arena, &levels);
    json_key(writer, "products");
    json_array(writer);
    for (int32_t i = 0; i < levels.product_count && status == STATUS_OK; i++) {
        const struct onnx_product *product = &levels.products[i];
        json_object(writer);
        json_put_text(writer, "layer", product->layer);
        json_put_real(writer, "x_scale", (double)product->x_scale);
        json_put_int(writer, "x_zero", product->x_zero);
        json_put_real(writer, "y_scale", (double)product->y_scale);
        json_put_int(writer, "y_zero", product->y_zero);
        json_end(writer);
    }
    json_end(writer);
    arena_free(&arena);
    return status;
}

/* The network as prony knows it: its layers, weights and data. */
static enum status peer_network(struct task *task, struct json_writer *writer)
{
    const struct compile_options options = {.batch = task->batch, .use = USE_TRAINING};
    TRY(peer_check_network(task));
    TRY(task_write_files(task));
    peer_layers(task->network, writer);
    if (task->network->quantised)
        TRY(peer_products(task, writer));
    json_put_text(writer, "loss", loss_name(network_loss(task->network, &options)));
    peer_optimiser(&task->optimiser, writer);
    json_put_text(writer, "weights", task->weights_path);
    json_put_text(writer, "data", task->data_path);
    return STATUS_OK;
}

enum status task_peer_prepare(struct task *task, const struct point *point, double search_s,
                              bool apart, struct text *out)
{
    const char *end = task_onnx_end(task->model);
    struct json_writer writer;

    json_begin(&writer, out);
    json_object(&writer);
    json_put_text(&writer, "do", "prepare");
    json_put_text(&writer, "model", task->model);
    json_put_text(&writer, "phase", task->phase == PHASE_TRAINING ? "training" : "inference");
    json_put_int(&writer, "batch", task->batch);
    json_put_int(&writer, "threads", point->threads);
    json_put_text(&writer, "backend", point->backend);
    json_put_text(&writer, "unit", point->unit);
    json_put_text(&writer, "precision", point->precision);
    json_put_text(&writer, "scenario", point->scenario);
    json_put_real(&writer, "search_s", search_s);
    if (apart)
        json_put_bool(&writer, "apart", true);
    peer_axes(point, &writer);
    if (task->network)
        TRY(peer_network(task, &writer));
    if (end)
        TRY(peer_file(task, end, &writer));
    else
        json_put_text(&writer, "export", task->onnx_path);
    json_end(&writer);
    return text_done(out);
}

enum status task_peer_export(void *context)
{
    struct task *task = context;
    return task_onnx_end(task->model) ? STATUS_OK : task_write_onnx(task);
}

enum status task_peer_check(const struct task *task, int32_t stage, struct text *out)
{
    struct json_writer writer;

    json_begin(&writer, out);
    json_object(&writer);
    json_put_text(&writer, "do", "check");
    json_put_int(&writer, "steps", task_steps(task, stage));
    json_put_int(&writer, "most", task->value_count);
    json_key(&writer, "samples");
    json_array(&writer);
    for (int64_t i = 0; task->places && i < task->value_count; i++) {
        json_array(&writer);
        json_add_text(&writer, task->params.entries[task->places[i].entry].name);
        json_add_int(&writer, task->places[i].element);
        json_end(&writer);
    }
    json_end(&writer);
    json_end(&writer);
    return text_done(out);
}

/* Are the outputs a sigmoid's or a softmax's? */
static bool gives_probabilities(const struct task *task)
{
    int32_t y;
    const struct program *program = task_find(task, ROLE_OUTPUT, "y", &y);
    for (int32_t i = 0; program && i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->outputs &&
            program_root(program, op_output(program, op, 0)) == program_root(program, y) &&
            (op->kind == OP_softmax ||
             (op->kind == OP_activate && op->attr.activate.function == ACTIVATION_SIGMOID)))
            return true;
    }
    return false;
}

/* Frameworks compute a probability to within a rounding of 1, not of itself: ONNX Runtime's sigmoid
 * is 0 where it should be 1e-10. What is that near the reference is right. */
static void forgive_tails(const struct task *task, struct outcome *found)
{
    if (!task->has_reference || !gives_probabilities(task))
        return;
    for (int64_t i = 0; i < task->value_count; i++)
        if (fabs(found->values[i] - task->reference.values[i]) <= (double)FLT_EPSILON)
            found->values[i] = task->reference.values[i];
}

static enum status peer_outcome(const struct task *task, int32_t stage, const struct json *answer,
                                struct outcome *out)
{
    const struct json *values = json_get(answer, "values");
    double *to = out->values + stage * task->value_count;

    if (!values || values->kind != JSON_ARRAY || (int64_t)values->count != task->value_count)
        FAIL(STATUS_DEVICE, "the peer's check has %zu values, expected %lld",
             values ? values->count : 0, (long long)task->value_count);
    out->loss[stage] = json_real(answer, "loss", (double)NAN);
    for (const struct json *value = values->first; value; value = value->next)
        *to++ = value->kind == JSON_NUMBER ? value->number : (double)NAN;
    return STATUS_OK;
}

enum status task_peer_compare(void *context, const struct json *const *answers, double *error)
{
    struct task *task = context;
    struct arena scratch = {0};
    struct outcome found;
    enum status status = outcome_make(task, &scratch, &found);

    for (int32_t stage = 0; stage < task_stages(task) && status == STATUS_OK; stage++)
        status = peer_outcome(task, stage, answers[stage], &found);
    if (status == STATUS_OK && task->phase == PHASE_INFERENCE)
        forgive_tails(task, &found);
    if (status == STATUS_OK)
        status = outcome_check_near(task, &found, error);
    arena_free(&scratch);
    return status;
}
