/* prony_quantise.c: from a network to its form in 8 bits, which is a network of its own. */
#include "base/memory.h"
#include "base/text.h"
#include "library/prony_inside.h"
#include "nn/formats/saved.h"
#include "train/quantiser.h"

#include <string.h>

static enum status read_options(const struct prony_quantising *how, struct quantiser_options *out)
{
    *out = (struct quantiser_options){.plain = how->plain,
                                      .weight_bits = how->weight_bits ? how->weight_bits : 8,
                                      .uncorrected = how->uncorrected,
                                      .rows = how->rows,
                                      .keep = how->keep,
                                      .keep_count = how->keep_count};
    if (how->ranges && !ranging_parse(how->ranges, &out->ranging))
        FAIL(STATUS_INPUT, "found ranges '%s', expected mse, minmax or percentile", how->ranges);
    if (out->weight_bits != 8 && out->weight_bits != 4 && out->weight_bits != 2)
        FAIL(STATUS_INPUT, "found weights of %d bits, expected 8, 4 or 2", out->weight_bits);
    if (how->rows < 0)
        FAIL(STATUS_INPUT, "found %lld rows, expected some to find ranges from",
             (long long)how->rows);
    return STATUS_OK;
}

/* Can the network be saved again, so that its file is all that is needed? */
static enum status check_network(const struct prony *network)
{
    if (network->network->quantised)
        FAIL(STATUS_INPUT, "%s: found a network in 8 bits, expected its fp32 form",
             network->network->name);
    struct recipe_traits traits;
    TRY(model_traits(&network->model, &traits));
    if (network->model.part || network->network->part_count || traits.stages > 1 || !traits.targets)
        FAIL(STATUS_UNSUPPORTED,
             "%s: found a recipe that learns more than one network from targets, which is not "
             "quantised",
             network->network->name);
    return STATUS_OK;
}

static enum status copy_scaling(const struct scaling *from, struct scaling *to)
{
    if (!from->columns)
        return STATUS_OK;
    TRY(scaling_alloc(from->columns, to));
    memcpy(to->mean, from->mean, (size_t)from->columns * sizeof *to->mean);
    memcpy(to->scale, from->scale, (size_t)from->columns * sizeof *to->scale);
    return STATUS_OK;
}

/* All that a file says beside the weights. The columns are read again: they lie in an arena. */
static enum status copy_notes(const struct model *from, struct model *to)
{
    struct text columns = {0};
    to->scaling.unit = from->scaling.unit;
    to->scaling.tokens = from->scaling.tokens;
    TRY(model_keep_classes(to, from->classes, from->class_count));
    if (from->data)
        NEED(to->data = arena_text(&to->arena, from->data));
    TRY(copy_scaling(&from->scaling, &to->scaling));
    TRY(copy_scaling(&from->targets, &to->targets));
    if (!from->columns)
        return STATUS_OK;
    struct columns *read = NULL;
    columns_write(from->columns, &columns);
    enum status status = text_done(&columns);
    if (status == STATUS_OK)
        status = columns_read(&to->arena, from->network->name, text_of(&columns), &read);
    text_free(&columns);
    to->columns = read;
    return status;
}

/* The values that were just made, for the parameters that the new model declares. */
static enum status copy_values(const struct params *from, struct params *to)
{
    TRY(params_fill_new(to));
    for (int32_t e = 0; e < to->count; e++) {
        int32_t of = params_find(from, to->entries[e].name);
        if (of < 0 || from->entries[of].bytes != to->entries[e].bytes)
            FAIL(STATUS_WRONG, "found no values for '%s', expected them of the quantised network",
                 to->entries[e].name);
        memcpy(params_data(to, e), params_data(from, of), (size_t)to->entries[e].bytes);
    }
    return STATUS_OK;
}

static enum status copy_quantisation(const struct quantisation *how, struct network *network)
{
    struct text text = {0};
    quantisation_write(how, &text);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status =
            quantisation_read(network->name, text_of(&text), &network->arena, &network->quantised);
    text_free(&text);
    return status;
}

/* A network of its own, on the same kind of device. */
static enum status make_network(const struct prony *from, const struct quantisation *how,
                                const struct params *params, struct prony *out)
{
    const struct model *model = &from->model;
    const struct backend *backend;
    const struct device_options device = {.isa = ISA_BEST};
    const struct model_options options = {
        .loss = model->loss, .recipe = model->recipe, .class_count = model->class_count};
    TRY(network_parse(from->network->name, from->network->text, strlen(from->network->text),
                      &out->network));
    TRY(copy_quantisation(how, out->network));
    TRY(inside_backend(out, model->engine.backend->name, &backend));
    TRY(model_open(&out->model, out->network, backend, &device, &options));
    TRY(copy_notes(model, &out->model));
    TRY(copy_values(params, &out->model.params));
    model_change(&out->model);
    out->outputs = from->outputs;
    return STATUS_OK;
}

static void show_layers(const struct quantiser_report *report, prony_layer_visit *visit,
                        void *context)
{
    for (int32_t i = 0; visit && i < report->layer_count; i++) {
        const struct quantised_layer *layer = &report->layers[i];
        visit(context, &(struct prony_layer){.name = layer->name,
                                             .stays = layer->stays,
                                             .noise_db = layer->noise_db,
                                             .outside = layer->outside,
                                             .outlier = layer->outlier,
                                             .outlier_at = layer->outlier_at});
    }
}

static enum status quantise_network(struct prony *network, struct prony_data *data,
                                    const struct prony_quantising *how, prony_layer_visit *visit,
                                    void *context, struct prony *out)
{
    struct quantiser_options options;
    struct quantisation quantisation = {0};
    struct quantiser_report report = {0};
    struct params params;
    struct arena arena = {0};
    TRY(read_options(how, &options));
    if (!how->weight_bits && network->model.used_to_bits)
        options.weight_bits = network->model.used_to_bits;
    if (options.weight_bits == network->model.used_to_bits)
        options.uncorrected = true; /* what rounding moves is what it learnt with */
    TRY(check_network(network));
    params_init(&params, DTYPE_F32);
    enum status status = model_quantise(&network->model, data->dataset, &options, &arena,
                                        &quantisation, &params, &report);
    if (status == STATUS_OK)
        status = make_network(network, &quantisation, &params, out);
    if (status == STATUS_OK)
        show_layers(&report, visit, context);
    quantiser_report_free(&report);
    params_free(&params);
    arena_free(&arena);
    return status;
}

int prony_quantise(struct prony *network, struct prony_data *data,
                   const struct prony_quantising *how, prony_layer_visit *visit, void *context,
                   struct prony **out)
{
    static const struct prony_quantising usual;
    locale_t theirs = inside_enter();
    enum status status = STATUS_OK;
    *out = NULL;
    struct prony *made = mem_alloc(sizeof *made);
    if (!made)
        status = status_fail(STATUS_MEMORY, __FILE__, __LINE__, "out of memory");
    if (status == STATUS_OK)
        status = quantise_network(network, data, how ? how : &usual, visit, context, made);
    if (status == STATUS_OK)
        *out = made;
    else
        prony_close(made);
    return inside_leave(theirs, status);
}
