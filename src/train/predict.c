/* predict.c: one lap of inference, and from outputs to classes. */
#include "train/predict.h"

#include "base/memory.h"

enum { PREDICT_BATCH = 256 };

enum status predictor_open(const struct network *network, const char *weights,
                           struct predictor *predictor)
{
    model_init(&predictor->model, network);
    TRY(safetensors_open(weights, &predictor->file));
    return model_read(&predictor->model, &predictor->file);
}

void predictor_close(struct predictor *predictor)
{
    safetensors_close(&predictor->file);
    model_free(&predictor->model);
}

void prediction_free(struct prediction *prediction)
{
    mem_free(prediction->outputs);
    mem_free(prediction->classes);
    *prediction = (struct prediction){0};
}

/* The class that one row of outputs means. */
static int32_t choose_class(const float *outputs, int32_t width, enum loss_kind loss,
                            int32_t class_count)
{
    int32_t best = 0;
    if (loss == LOSS_BINARY_CROSS_ENTROPY)
        return outputs[0] > 0;
    if (loss == LOSS_CROSS_ENTROPY) {
        for (int32_t i = 1; i < width; i++)
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

static enum status choose_classes(const struct model *model, enum loss_kind loss,
                                  struct prediction *out)
{
    NEED(out->classes = mem_array((size_t)out->rows, sizeof *out->classes));
    for (int64_t row = 0; row < out->rows; row++)
        out->classes[row] =
            choose_class(out->outputs + row * out->width, out->width, loss, model->class_count);
    return STATUS_OK;
}

static enum status make_outputs(const struct lap *lap, struct prediction *out)
{
    const struct program *program = lap->legs[0].program;
    int32_t y = program_find(program, ROLE_OUTPUT, "y");
    size_t count;
    out->rows = lap->rows;
    out->width = (int32_t)(shape_count(&program->tensors[y].shape) / program->batch);
    if (!size_mul((size_t)out->rows, (size_t)out->width, &count))
        FAIL(STATUS_MEMORY, "out of memory: %lld outputs of %lld rows", (long long)out->width,
             (long long)out->rows);
    NEED(out->outputs = mem_array(count, sizeof *out->outputs));
    return STATUS_OK;
}

static enum status predict(struct predictor *predictor, struct dataset *dataset,
                           const struct backend *backend, const struct device_options *device,
                           struct engine *engine, struct lap *lap, struct prediction *out)
{
    struct model *model = &predictor->model;
    struct compile_options options = model_compile_options(model, USE_INFERENCE, PREDICT_BATCH);
    TRY(model_check_data(model, dataset));
    TRY(lap_compile(lap, model->network, &model->params, &options, dataset->rows));
    TRY(safetensors_load(&predictor->file, SAFETENSORS_WEIGHTS, &model->params));
    TRY(make_outputs(lap, out));
    scaling_apply(&model->scaling, dataset);
    TRY(engine_open(engine, backend, device, &model->params));
    TRY(lap_prepare(lap, engine));
    const struct lap_data data = {.dataset = dataset, .outputs = out->outputs};
    TRY(lap_begin(lap, &data, NULL, 0));
    TRY(lap_run(lap, lap->steps, NULL));
    enum loss_kind loss = network_loss(model->network, &options);
    return model->class_count ? choose_classes(model, loss, out) : STATUS_OK;
}

enum status predictor_run(struct predictor *predictor, struct dataset *dataset,
                          const struct backend *backend, const struct device_options *device,
                          struct prediction *out)
{
    struct engine engine = {0};
    struct lap lap = {0};
    enum status status = predict(predictor, dataset, backend, device, &engine, &lap, out);
    lap_close(&lap);
    engine_close(&engine);
    if (status != STATUS_OK)
        prediction_free(out);
    return status;
}
