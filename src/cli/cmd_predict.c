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
    const char *backend, *label, *labels, *out;
    int64_t threads;
    double memory;
};

static enum status read_flags(struct cli *cli, struct predict_flags *flags, int argc,
                              const char *const *argv, bool *help)
{
    struct arg list[] = {
        {"out", ARG_TEXT, &flags->out, "FILE", "all rows as CSV, not the first on the screen", 0, 0,
         false},
        {"label", ARG_TEXT, &flags->label, "COLUMN", "its name or place from 1 (the last)", 0, 0,
         false},
        {"labels", ARG_TEXT, &flags->labels, "FILE", "of IDX or NPY data", 0, 0, false},
        {"memory", ARG_REAL, &flags->memory, "MB", "data beyond it is streamed (half of all)", 1e-3,
         1e9, false},
        {"backend", ARG_TEXT, &flags->backend, "NAME", "where it runs (ref)", 0, 0, false},
        {"threads", ARG_INT, &flags->threads, "N", "(as many as there are cores)", 1, 64, false},
    };
    struct args args = {
        .command = "prony predict",
        .usage = "NETWORK WEIGHTS DATA [options]",
        .summary = "Applies a network that prony train saved to data, with or without labels.",
        .examples = "prony predict small iris.safetensors iris --out predictions.csv\n"
                    "prony predict lenet lenet.safetensors images.idx --labels labels.idx\n",
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

/* What is made of the predictions as they come. */
struct report {
    const struct model *model;
    const struct dataset *dataset;
    struct file_writer *writer; /* of all rows as CSV; or NULL: the first are printed */
    struct text text;           /* what is being written */
    int64_t *cells;             /* [classes, classes]: what it is, what was said; or NULL */
    int64_t right;
    double squares;   /* of what the numbers are off … */
    int64_t compared; /* … and how many these are */
};

/* Outputs are named after the classes where there is one for each. */
static bool has_named_outputs(const struct report *report, const struct prediction *prediction)
{
    return prediction->width == report->model->class_count;
}

static void add_header(struct report *report, const struct prediction *prediction)
{
    struct text *out = &report->text;
    if (prediction->classes)
        text_add(out, "class,");
    for (int32_t i = 0; i < prediction->width; i++) {
        if (i)
            text_add_char(out, ',');
        if (has_named_outputs(report, prediction))
            add_field(out, report->model->classes[i]);
        else if (prediction->width == 1)
            text_add(out, "value");
        else
            text_printf(out, "value%d", i + 1);
    }
    text_add_char(out, '\n');
}

static enum status write_rows(struct report *report, const struct prediction *prediction)
{
    struct text *out = &report->text;
    text_clear(out);
    if (!prediction->first)
        add_header(report, prediction);
    for (int64_t row = 0; row < prediction->rows; row++) {
        if (prediction->classes) {
            add_field(out, report->model->classes[prediction->classes[row]]);
            text_add_char(out, ',');
        }
        for (int32_t i = 0; i < prediction->width; i++)
            text_printf(out, "%s%.9g", i ? "," : "",
                        (double)prediction->outputs[row * prediction->width + i]);
        text_add_char(out, '\n');
    }
    TRY(text_done(out));
    return file_append(report->writer, out->data, out->length);
}

/* The first rows, aligned. */
static void print_rows(const struct report *report, const struct prediction *prediction)
{
    const struct model *model = report->model;
    int64_t shown = prediction->rows < ROWS_SHOWN ? prediction->rows : ROWS_SHOWN;
    bool named = has_named_outputs(report, prediction);
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
    if (shown < report->dataset->rows)
        printf("     … %" PRId64 " more rows; --out FILE writes all\n",
               report->dataset->rows - shown);
}

static enum status take_rows(void *context, const struct prediction *prediction)
{
    struct report *report = context;
    const struct dataset *dataset = report->dataset;
    if (cli_interrupted())
        FAIL(STATUS_INTERRUPTED, "interrupted after row %" PRId64 "; nothing written",
             prediction->first);
    if (report->writer)
        TRY(write_rows(report, prediction));
    else if (!prediction->first)
        print_rows(report, prediction);
    for (int64_t row = 0; report->cells && row < prediction->rows; row++) {
        int32_t is = dataset->labels[prediction->first + row], said = prediction->classes[row];
        report->cells[is * report->model->class_count + said]++;
        report->right += is == said;
    }
    if (dataset->number_columns != prediction->width)
        return STATUS_OK;
    for (int64_t i = 0; i < prediction->rows * prediction->width; i++) {
        double off = (double)prediction->outputs[i] -
                     (double)dataset->numbers[prediction->first * prediction->width + i];
        report->squares += off * off;
    }
    report->compared += prediction->rows * prediction->width;
    return STATUS_OK;
}

/* Rows: what it is. Columns: what was said. */
static void print_confusion(const struct report *report)
{
    const struct model *model = report->model;
    int32_t count = model->class_count;
    printf("\n%-*s", NAME_SHOWN, "is \\ said");
    for (int32_t i = 0; i < count; i++)
        printf(" %*.*s", NAME_SHOWN, NAME_SHOWN, model->classes[i]);
    printf("\n");
    for (int32_t i = 0; i < count; i++) {
        printf("%-*.*s", NAME_SHOWN, NAME_SHOWN, model->classes[i]);
        for (int32_t k = 0; k < count; k++)
            printf(" %*" PRId64, NAME_SHOWN, report->cells[i * count + k]);
        printf("\n");
    }
    printf("accuracy %.1f %%\n", 100 * (double)report->right / (double)report->dataset->rows);
}

static void print_report(const struct predict_flags *flags, const struct report *report)
{
    const struct dataset *dataset = report->dataset;
    if (flags->out)
        printf("%" PRId64 " rows written to %s\n", dataset->rows, flags->out);
    if (report->cells)
        print_confusion(report);
    else if (report->compared)
        printf("mean squared error %.6g\n", report->squares / (double)report->compared);
}

static enum status run(struct cli *cli, const struct predict_flags *flags,
                       struct predictor *predictor, struct report *report, struct dataset *dataset)
{
    const struct backend *backend;
    struct file_writer writer = {0};
    const struct device_options device = {.threads = (int)flags->threads, .isa = ISA_AVX512};
    size_t count = (size_t)predictor->model.class_count;
    TRY(registry_find(cli->registry, flags->backend, &backend));
    if (dataset->labels)
        NEED(report->cells = mem_array(count * count, sizeof *report->cells));
    if (flags->out) {
        TRY(file_begin(&writer, flags->out));
        report->writer = &writer;
    }
    enum status status = predictor_run(predictor, dataset, backend, &device, take_rows, report);
    if (status == STATUS_OK && flags->out)
        status = file_commit(&writer);
    file_abort(&writer);
    if (status == STATUS_OK)
        print_report(flags, report);
    return status;
}

static enum status predict(struct cli *cli, const struct predict_flags *flags,
                           struct predictor *predictor, struct dataset **dataset)
{
    const struct model *model = &predictor->model;
    const struct dataset_options options = {
        .label = flags->label,
        .labels = flags->labels,
        .inputs = (int32_t)shape_count(&model->network->input),
        .classes = model->classes,
        .class_count = model->class_count,
        .numbers = !model->class_count,
        .memory_bytes = (uint64_t)(flags->memory * 1e6),
    };
    TRY(dataset_open(flags->data, &options, dataset));
    struct report report = {.model = model, .dataset = *dataset};
    enum status status = run(cli, flags, predictor, &report, *dataset);
    mem_free(report.cells);
    text_free(&report.text);
    return status;
}

enum status cmd_predict(struct cli *cli, int argc, const char *const *argv)
{
    struct predict_flags flags = {.backend = "ref"};
    struct network *network = NULL;
    struct dataset *dataset = NULL;
    struct predictor predictor = {0};
    enum status status;
    bool help = false;
    TRY(read_flags(cli, &flags, argc, argv, &help));
    if (help)
        return STATUS_OK;
    TRY_OR(done, network_open(flags.network, &network));
    TRY_OR(done, predictor_open(network, flags.weights, &predictor));
    status = predict(cli, &flags, &predictor, &dataset);
done:
    predictor_close(&predictor);
    dataset_free(dataset);
    network_free(network);
    return status;
}
