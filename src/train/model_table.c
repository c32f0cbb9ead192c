/* model_table.c: what a model keeps of the table it learnt from: how its columns became features,
 * and the scale of the numbers it learnt, so that it gives them back in their unit.
 *
 * Numbers of a table have any unit: prices in hundred thousands, shares below 1. They are learnt on
 * the scale that the network's last layer gives: with mean 0 and variance 1 or, behind a sigmoid or
 * tanh, between the ends of its range. */
#include "train/model.h"

#include "base/memory.h"
#include "base/text.h"
#include "nn/layer.h"

#include <math.h>
#include <string.h>

enum status model_keep_columns(struct model *model, const struct dataset *dataset)
{
    struct text text = {0};
    struct columns *columns = NULL;
    model->columns = NULL;
    if (!dataset->table || !columns_fit(dataset->table))
        return STATUS_OK;
    columns_write(dataset->table, &text);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = columns_read(&model->arena, dataset->name, text_of(&text), &columns);
    text_free(&text);
    model->columns = columns;
    return status;
}

/* The name of the network's last layer. */
static const char *last_layer(const struct network *network)
{
    return network->layer_count ? network->layers[network->layer_count - 1].kind->name : "";
}

/* What the rows have in one column of numbers. */
struct spread {
    double mean, deviation, least, most;
};

static struct spread measure(const struct dataset *dataset, int32_t column, const uint32_t *rows,
                             int64_t count)
{
    const float *numbers = dataset->numbers + column;
    const int32_t width = dataset->number_columns;
    struct spread spread = {.least = (double)INFINITY, .most = -(double)INFINITY};
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double number = (double)numbers[(int64_t)rows[i] * width];
        spread.mean += number / (double)count;
        spread.least = fmin(spread.least, number);
        spread.most = fmax(spread.most, number);
    }
    for (int64_t i = 0; i < count; i++) {
        double off = (double)numbers[(int64_t)rows[i] * width] - spread.mean;
        squares += off * off;
    }
    spread.deviation = sqrt(squares / (double)count);
    return spread;
}

enum status model_scale_targets(struct model *model, const struct dataset *dataset,
                                const uint32_t *rows, int64_t count)
{
    const char *last = last_layer(model->network);
    struct recipe_traits traits;
    TRY(model_traits(model, &traits));
    if (!dataset->table || !dataset->numbers || !traits.targets || traits.loss != LOSS_MSE)
        return STATUS_OK;
    scaling_free(&model->targets);
    TRY(scaling_alloc(dataset->number_columns, &model->targets));
    NEED(model->target_means = arena_array(&model->arena, (size_t)dataset->number_columns,
                                           sizeof *model->target_means));
    for (int32_t column = 0; column < dataset->number_columns; column++) {
        const struct spread spread = measure(dataset, column, rows, count);
        double from = spread.mean, unit = spread.deviation;
        if (text_equal(last, "sigmoid") || text_equal(last, "tanh")) {
            from = text_equal(last, "tanh") ? (spread.least + spread.most) / 2 : spread.least;
            unit = text_equal(last, "tanh") ? spread.most - from : spread.most - spread.least;
        } else if (text_equal(last, "relu")) {
            from = spread.least;
        }
        bool constant = unit <= 1e-7 * fabs(from) || !isfinite((float)(1 / unit));
        model->target_means[column] = (float)spread.mean;
        model->targets.mean[column] = (float)from;
        model->targets.scale[column] = constant ? 1 : (float)(1 / unit);
    }
    return STATUS_OK;
}

/* Class c of C as c ÷ (C − 1). */
static void make_class_levels(const struct model *model, const struct dataset *dataset, float *out)
{
    const float step = 1.0f / (float)(model->class_count > 1 ? model->class_count - 1 : 1);
    for (int64_t i = 0; i < dataset->rows * dataset->label_columns; i++)
        out[i] = (float)dataset->labels[i] * step;
}

static void scale_numbers(const struct scaling *scaling, const struct dataset *dataset, float *out)
{
    for (int64_t i = 0; i < dataset->rows * dataset->number_columns; i++) {
        const int64_t column = i % dataset->number_columns;
        out[i] = (dataset->numbers[i] - scaling->mean[column]) * scaling->scale[column];
    }
}

bool model_has_levels(const struct model *model, const struct dataset *dataset)
{
    struct compile_options options = model_compile_options(model, USE_TRAINING, 1);
    if (dataset->labels)
        return network_loss(model->network, &options) != LOSS_CROSS_ENTROPY;
    return dataset->numbers && model->targets.columns == dataset->number_columns;
}

enum status model_make_levels(const struct model *model, const struct dataset *dataset,
                              float **levels)
{
    const int32_t each = dataset->labels ? dataset->label_columns : dataset->number_columns;
    float *grown;
    if (!model_has_levels(model, dataset))
        return STATUS_OK;
    NEED(grown = mem_grow(*levels, (size_t)(dataset->rows * each), sizeof *grown));
    *levels = grown;
    if (dataset->labels)
        make_class_levels(model, dataset, grown);
    else
        scale_numbers(&model->targets, dataset, grown);
    return STATUS_OK;
}
