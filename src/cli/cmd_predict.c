/* cmd_predict.c: prony predict NETWORK WEIGHTS DATA: what a trained network says of each row. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "train/predict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_SHOWN = 20, NAME_SHOWN = 14 };

struct predict_flags {
    const char *network, *weights, *data; /* positional */
    const char *backend, *label, *out;
    int64_t threads;
};

static enum status read_flags(struct cli *cli, struct predict_flags *flags, int argc,
                              const char *const *argv, bool *help)
{
    struct arg list[] = {
        {"out", ARG_TEXT, &flags->out, "FILE", "all rows as CSV, not the first on the screen", 0, 0,
         false},
        {"label", ARG_TEXT, &flags->label, "COLUMN", "its name or place from 1 (the last)", 0, 0,
         false},
        {"backend", ARG_TEXT, &flags->backend, "NAME", "where it runs (ref)", 0, 0, false},
        {"threads", ARG_INT, &flags->threads, "N", "(as many as there are cores)", 1, 64, false},
    };
    struct args args = {
        .command = "prony predict",
        .usage = "NETWORK WEIGHTS DATA [options]",
        .summary = "Applies a network that prony train saved to data, with or without labels.",
        .examples = "prony predict small iris.safetensors iris --out predictions.csv\n",
        .list = list,
        .count = sizeof list / sizeof *list,
        .least = 3,
        .most = 3,
        .positional = cli->positional,
    };
    TRY(cli_args(&args, argc, argv));
    *help = args.help;
    if (args.help)
        return STATUS_OK;
    flags->network = cli->positional[0];
    flags->weights = cli->positional[1];
    flags->data = cli->positional[2];
    return STATUS_OK;
}

/* As a CSV field: in quotes where it must be. */
static void add_field(struct text *out, const char *value)
{
    if (!value[strcspn(value, ",\"\r\n")]) {
        text_add(out, value);
        return;
    }
    text_add_char(out, '"');
    for (; *value; value++) {
        if (*value == '"')
            text_add_char(out, '"');
        text_add_char(out, *value);
    }
    text_add_char(out, '"');
}

/* Outputs are named after the classes where there is one for each. */
static void add_header(struct text *out, const struct model *model,
                       const struct prediction *prediction)
{
    bool named = prediction->width == model->class_count;
    if (prediction->classes)
        text_add(out, "class,");
    for (int32_t i = 0; i < prediction->width; i++) {
        if (i)
            text_add_char(out, ',');
        if (named)
            add_field(out, model->classes[i]);
        else if (prediction->width == 1)
            text_add(out, "value");
        else
            text_printf(out, "value%d", i + 1);
    }
    text_add_char(out, '\n');
}

static enum status write_csv(const char *path, const struct model *model,
                             const struct prediction *prediction)
{
    struct text text = {0};
    add_header(&text, model, prediction);
    for (int64_t row = 0; row < prediction->rows; row++) {
        if (prediction->classes) {
            add_field(&text, model->classes[prediction->classes[row]]);
            text_add_char(&text, ',');
        }
        for (int32_t i = 0; i < prediction->width; i++)
            text_printf(&text, "%s%.9g", i ? "," : "",
                        (double)prediction->outputs[row * prediction->width + i]);
        text_add_char(&text, '\n');
    }
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = file_write(path, text.data, text.length);
    text_free(&text);
    return status;
}

/* The first rows, aligned. */
static void print_rows(const struct model *model, const struct prediction *prediction)
{
    int64_t shown = prediction->rows < ROWS_SHOWN ? prediction->rows : ROWS_SHOWN;
    bool named = prediction->width == model->class_count;
    printf("%6s", "row");
    if (prediction->classes)
        printf("  %-*s", NAME_SHOWN, "class");
    for (int32_t i = 0; i < prediction->width; i++)
        printf(" %*.*s", NAME_SHOWN, NAME_SHOWN, named ? model->classes[i] : "value");
    printf("\n");
    for (int64_t row = 0; row < shown; row++) {
        printf("%6" PRId64, row + 1);
        if (prediction->classes)
            printf("  %-*.*s", NAME_SHOWN, NAME_SHOWN, model->classes[prediction->classes[row]]);
        for (int32_t i = 0; i < prediction->width; i++)
            printf(named ? " %*.4f" : " %*.4g", NAME_SHOWN,
                   (double)prediction->outputs[row * prediction->width + i]);
        printf("\n");
    }
    if (shown < prediction->rows)
        printf("     … %" PRId64 " more rows; --out FILE writes all\n", prediction->rows - shown);
}

/* Rows: what it is. Columns: what was said. */
static enum status print_confusion(const struct model *model, const struct dataset *dataset,
                                   const struct prediction *prediction)
{
    int32_t count = model->class_count;
    int64_t right = 0, *cells;
    NEED(cells = mem_array((size_t)count * (size_t)count, sizeof *cells));
    for (int64_t row = 0; row < prediction->rows; row++) {
        cells[dataset->labels[row] * count + prediction->classes[row]]++;
        right += dataset->labels[row] == prediction->classes[row];
    }
    printf("\n%-*s", NAME_SHOWN, "is \\ said");
    for (int32_t i = 0; i < count; i++)
        printf(" %*.*s", NAME_SHOWN, NAME_SHOWN, model->classes[i]);
    printf("\n");
    for (int32_t i = 0; i < count; i++) {
        printf("%-*.*s", NAME_SHOWN, NAME_SHOWN, model->classes[i]);
        for (int32_t k = 0; k < count; k++)
            printf(" %*" PRId64, NAME_SHOWN, cells[i * count + k]);
        printf("\n");
    }
    printf("accuracy %.1f %%\n", 100 * (double)right / (double)prediction->rows);
    mem_free(cells);
    return STATUS_OK;
}

static void print_error(const struct dataset *dataset, const struct prediction *prediction)
{
    double sum = 0;
    for (int64_t row = 0; row < prediction->rows; row++) {
        double off = (double)prediction->outputs[row] - (double)dataset->numbers[row];
        sum += off * off;
    }
    printf("mean squared error %.6g\n", sum / (double)prediction->rows);
}

static enum status report(const struct predict_flags *flags, const struct model *model,
                          const struct dataset *dataset, const struct prediction *prediction)
{
    if (flags->out) {
        TRY(write_csv(flags->out, model, prediction));
        printf("%" PRId64 " rows written to %s\n", prediction->rows, flags->out);
    } else {
        print_rows(model, prediction);
    }
    if (dataset->labels && prediction->classes)
        TRY(print_confusion(model, dataset, prediction));
    else if (dataset->numbers && prediction->width == 1)
        print_error(dataset, prediction);
    return STATUS_OK;
}

static enum status predict(struct cli *cli, const struct predict_flags *flags,
                           struct predictor *predictor, struct dataset **dataset,
                           struct prediction *prediction)
{
    const struct backend *backend;
    const struct model *model = &predictor->model;
    const struct device_options device = {.threads = (int)flags->threads, .isa = ISA_AVX512};
    TRY(registry_find(cli->registry, flags->backend, &backend));
    const struct dataset_options options = {
        .label = flags->label,
        .inputs = (int32_t)shape_count(&model->network->input),
        .classes = model->classes,
        .class_count = model->class_count,
        .numbers = !model->class_count,
    };
    TRY(dataset_open(flags->data, &options, dataset));
    TRY(predictor_run(predictor, *dataset, backend, &device, prediction));
    return report(flags, model, *dataset, prediction);
}

enum status cmd_predict(struct cli *cli, int argc, const char *const *argv)
{
    struct predict_flags flags = {.backend = "ref"};
    struct network *network = NULL;
    struct dataset *dataset = NULL;
    struct predictor predictor = {0};
    struct prediction prediction = {0};
    enum status status;
    bool help = false;
    TRY(read_flags(cli, &flags, argc, argv, &help));
    if (help)
        return STATUS_OK;
    TRY_OR(done, network_open(flags.network, &network));
    TRY_OR(done, predictor_open(network, flags.weights, &predictor));
    status = predict(cli, &flags, &predictor, &dataset, &prediction);
done:
    prediction_free(&prediction);
    predictor_close(&predictor);
    dataset_free(dataset);
    network_free(network);
    return status;
}
