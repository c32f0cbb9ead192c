/* predict.c: one lap of inference, some steps at a time, and from outputs to classes. */
#include "train/predict.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { PREDICT_BATCH = 256, VISIT_STEPS = 16 };

/* The class that the outputs of one place mean. */
static int32_t choose_class(const float *outputs, enum loss_kind loss, int32_t class_count)
{
    int32_t best = 0;
    if (loss == LOSS_BINARY_CROSS_ENTROPY)
        return outputs[0] > 0.5f;
    if (loss == LOSS_CROSS_ENTROPY) {
        for (int32_t i = 1; i < class_count; i++)
            if (outputs[i] > outputs[best])
                best = i;
        return best;
    }
    /* the nearest of the levels 0, 1 ÷ (C − 1), … 1 */
    float level = outputs[0] * (float)(class_count - 1) + 0.5f;
    if (!(level > 0))
        return 0;
    return level < (float)class_count ? (int32_t)level : class_count - 1;
}

/* What is needed while the rows are predicted. */
struct prophecy {
    struct model *model;
    struct recipe_traits traits;
    int32_t class_count; /* 0: it gives numbers */
    struct lap lap;
    const uint32_t *rows; /* of the data set that are predicted; NULL: all */
    int64_t row_count;
    float *outputs;  /* [all rows, width], of which those of the last steps are there */
    float *gathered; /* [a few batches, width]: of the rows that are predicted, or NULL */
    size_t outputs_bytes;
    int32_t width, places;
    int32_t *classes; /* [a few batches, places], or NULL */
};

/* Classes come from a file; so many of them must be what the outputs can mean. */
static enum status check_classes(const struct prophecy *prophecy)
{
    int32_t count = prophecy->class_count;
    const char *name = prophecy->model->network->name;
    if (prophecy->traits.loss == LOSS_CROSS_ENTROPY && count && prophecy->width % count)
        FAIL(STATUS_INPUT,
             "%s: found %d classes in its weights, expected one for each of its %d outputs", name,
             count, prophecy->width);
    if (prophecy->traits.loss == LOSS_BINARY_CROSS_ENTROPY && count && count != 2)
        FAIL(STATUS_INPUT, "%s: found %d classes in its weights, expected 2: its loss is binary",
             name, count);
    return STATUS_OK;
}

static enum status make_outputs(struct prophecy *prophecy, int64_t rows)
{
    const struct lap *lap = &prophecy->lap;
    const size_t visited = (size_t)VISIT_STEPS * (size_t)lap->legs[0].batch;
    const struct program *program = lap_program(lap);
    const struct tensor *y = &program->tensors[program_find(program, ROLE_OUTPUT, "y")];
    int32_t class_count = prophecy->class_count;
    bool chances = class_count && prophecy->traits.loss == LOSS_CROSS_ENTROPY;
    prophecy->width = (int32_t)(shape_count(&y->shape) / program->batch);
    TRY(check_classes(prophecy));
    prophecy->places = chances ? prophecy->width / class_count : prophecy->width;
    NEED(size_mul((size_t)rows, (size_t)(y->bytes / (uint64_t)program->batch),
                  &prophecy->outputs_bytes));
    NEED(prophecy->outputs = mem_reserve(prophecy->outputs_bytes));
    if (class_count)
        NEED(prophecy->classes =
                 mem_array(visited, (size_t)prophecy->places * sizeof *prophecy->classes));
    if (prophecy->rows)
        NEED(prophecy->gathered =
                 mem_array(visited, (size_t)prophecy->width * sizeof *prophecy->gathered));
    return STATUS_OK;
}

/* The outputs of the rows that were just predicted, one after the other. */
static float *gather(struct prophecy *prophecy, int64_t first, int64_t end)
{
    const int32_t width = prophecy->width;
    if (!prophecy->rows)
        return prophecy->outputs + first * width;
    for (int64_t i = first; i < end; i++)
        memcpy(prophecy->gathered + (i - first) * width,
               prophecy->outputs + (int64_t)prophecy->rows[i] * width,
               (size_t)width * sizeof *prophecy->gathered);
    return prophecy->gathered;
}

/* Hands over the rows of the steps that were just run. */
static enum status hand_over(struct prophecy *prophecy, int64_t first, int64_t end,
                             prediction_visit *visit, void *context)
{
    float *outputs = gather(prophecy, first, end);
    int32_t class_count = prophecy->class_count;
    int32_t each = prophecy->width / prophecy->places; /* outputs of a place */
    struct prediction prediction = {.first = first,
                                    .rows = end - first,
                                    .list = prophecy->rows ? prophecy->rows + first : NULL,
                                    .width = prophecy->width,
                                    .places = prophecy->places,
                                    .outputs = outputs,
                                    .classes = prophecy->classes};
    if (prophecy->traits.loss == LOSS_BINARY_CROSS_ENTROPY)
        for (int64_t i = 0; i < prediction.rows * prophecy->width; i++)
            outputs[i] = 1 / (1 + expf(-outputs[i]));
    const struct scaling *scaling = model_returns(prophecy->model, &prophecy->traits);
    for (int64_t row = 0; scaling && row < prediction.rows; row++)
        scaling_undo_row(scaling, outputs + row * prophecy->width);
    for (int64_t i = 0; prophecy->classes && i < prediction.rows * prophecy->places; i++)
        prophecy->classes[i] = choose_class(outputs + i * each, prophecy->traits.loss, class_count);
    enum status status = visit(context, &prediction);
    mem_drop(prophecy->outputs, prophecy->outputs_bytes);
    return status;
}

static enum status predict(struct prophecy *prophecy, struct dataset *dataset,
                           prediction_visit *visit, void *context)
{
    struct model *model = prophecy->model;
    const struct model_form form = model_form(model);
    struct lap *lap = &prophecy->lap;
    struct compile_options options = model_compile_options(model, USE_INFERENCE, PREDICT_BATCH);
    TRY(model_check_data(model, dataset));
    TRY(lap_compile(lap, form.engine, form.network, form.params, &options, prophecy->row_count));
    TRY(model_traits(model, &prophecy->traits));
    prophecy->class_count = prophecy->traits.targets ? model->class_count : 0;
    if (prophecy->traits.classes && (!dataset->labels || dataset->label_columns != 1))
        FAIL(STATUS_INPUT, "%s: found %d label columns, expected one: %s learnt on a condition",
             dataset->name, dataset->labels ? dataset->label_columns : 0, model->network->name);
    TRY(make_outputs(prophecy, dataset->rows));
    TRY(scaling_apply(&model->scaling, dataset));
    TRY(engine_attach(form.engine, form.params));
    lap->answering = lap->steps == 1 ? ANSWER_CALLS : ANSWER_STEPS;
    TRY(lap_prepare(lap, form.engine, form.params));
    const struct lap_data data = {.dataset = dataset, .outputs = prophecy->outputs};
    TRY(lap_begin(lap, &data, prophecy->rows, 0));
    while (lap->step < lap->steps) {
        int64_t first = lap->step * lap->legs[0].batch;
        TRY(lap_run(lap, VISIT_STEPS, NULL));
        int64_t end = lap->step * lap->legs[0].batch;
        TRY(hand_over(prophecy, first, end < lap->rows ? end : lap->rows, visit, context));
    }
    return STATUS_OK;
}

enum status predict_some(struct model *model, struct dataset *dataset, const uint32_t *rows,
                         int64_t count, prediction_visit *visit, void *context)
{
    struct prophecy prophecy = {.model = model, .rows = rows, .row_count = count};
    enum status status = predict(&prophecy, dataset, visit, context);
    dataset_settle(dataset);
    lap_close(&prophecy.lap);
    mem_unreserve(prophecy.outputs, prophecy.outputs_bytes);
    mem_free(prophecy.gathered);
    mem_free(prophecy.classes);
    return status;
}

enum status predict_data(struct model *model, struct dataset *dataset, prediction_visit *visit,
                         void *context)
{
    return predict_some(model, dataset, NULL, dataset->rows, visit, context);
}
