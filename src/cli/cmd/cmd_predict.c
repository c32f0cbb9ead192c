/* cmd_predict.c: prony predict NETWORK [WEIGHTS] DATA: what a trained network says of each row,
 * through the library (prony.h). */
#include "base/file.h"
#include "base/memory.h"
#include "base/plain.h"
#include "cli/commands.h"
#include "prony.h"
#include "record/tables/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_SHOWN = 20, NAME_SHOWN = 14, PLACES_SHOWN = 8, VALUES_SHOWN = 10, CLASSES_SHOWN = 32 };

struct predict_flags {
    const char *network, *weights, *data; /* positional */
    struct prony_options options;
    struct prony_data_options data_options;
    const char *unit, *out, *shape;
    double memory;
};

static enum status read_words(struct cli *cli, struct predict_flags *flags)
{
    const struct args_found *found = &cli->found;
    flags->weights = found->count == 3 ? found->positional[1] : NULL;
    flags->data = found->positional[found->count - 1];
    if (!flags->weights && !cli_has_weights(found->positional[0]))
        FAIL(STATUS_INPUT, "found no weights, expected %s %s: only an ONNX file has its own",
             cli->args->command, cli->args->usage);
    TRY(cli_shape(cli, flags->shape));
    flags->network = found->positional[0];
    TRY(cli_keep_network(flags->out, flags->network));
    TRY(file_check_apart(flags->out, flags->weights));
    TRY(cli_keep_data(flags->out, flags->data));
    return file_check_apart(flags->out, flags->data_options.labels);
}

/* What is made of the predictions as they come. */
struct report {
    const struct prony *network;
    const struct prony_data *data;
    int32_t class_count;
    struct file_writer *writer; /* of all rows as CSV; or NULL: the first are printed */
    struct text text;           /* what is being written */
    int64_t *cells;             /* [classes, classes]: what it is, what was said; or NULL */
    int64_t right, answers;
    double squares;   /* of what the numbers are off … */
    int64_t compared; /* … and how many these are */
};

/* Outputs are named after the classes where there is one for each. */
static bool has_named_outputs(const struct report *report,
                              const struct prony_prediction *prediction)
{
    return prediction->classes && prediction->width == report->class_count;
}

/* "value", or "value3" where there are several. */
static void add_numbered(struct text *out, const char *name, int32_t number, int32_t count)
{
    text_add(out, name);
    if (count > 1)
        text_printf(out, "%d", number + 1);
}

static void add_header(struct report *report, const struct prony_prediction *prediction)
{
    struct text *out = &report->text;
    for (int32_t i = 0; prediction->classes && i < prediction->places; i++) {
        add_numbered(out, "class", i, prediction->places);
        text_add_char(out, ',');
    }
    for (int32_t i = 0; i < prediction->width; i++) {
        if (i)
            text_add_char(out, ',');
        if (has_named_outputs(report, prediction))
            table_csv_cell(prony_class(report->network, i), out);
        else
            add_numbered(out, "value", i, prediction->width);
    }
    text_add_char(out, '\n');
}

static enum status write_rows(struct report *report, const struct prony_prediction *prediction)
{
    struct text *out = &report->text;
    const int32_t *class = prediction->classes;
    const float *value = prediction->outputs;
    text_clear(out);
    if (!prediction->first)
        add_header(report, prediction);
    for (int64_t row = 0; row < prediction->rows; row++) {
        for (int32_t i = 0; class && i < prediction->places; i++) {
            table_csv_cell(prony_class(report->network, *class ++), out);
            text_add_char(out, ',');
        }
        for (int32_t i = 0; i < prediction->width; i++)
            text_printf(out, "%s%.9g", i ? "," : "", (double)*value++);
        text_add_char(out, '\n');
    }
    TRY(text_done(out));
    return file_append(report->writer, out->data, out->length);
}

/* A class's name in a column of the screen. */
static void print_class(const char *name, bool left)
{
    char shown[NAME_SHOWN + 1];
    plain_copy(shown, sizeof shown, name);
    printf(left ? "%-*s" : "%*s", NAME_SHOWN, shown);
}

/* What stands above the columns on the screen. */
static void print_header(const struct report *report, const struct prony_prediction *prediction,
                         int32_t places, int32_t values)
{
    bool named = has_named_outputs(report, prediction);
    printf("%6s", "row");
    for (int32_t i = 0; i < places; i++)
        printf("  %-*s", NAME_SHOWN, "class");
    for (int32_t i = 0; i < values; i++) {
        printf(" ");
        print_class(named ? prony_class(report->network, i) : "value", false);
    }
    printf("\n");
}

static int32_t at_most(int32_t count, int32_t most)
{
    return count < most ? count : most;
}

/* The first rows, aligned, with as many values as there is room for: several classes have none. */
static void print_rows(const struct report *report, const struct prony_prediction *prediction)
{
    int64_t rows = prony_data_rows(report->data);
    int64_t shown = prediction->rows < ROWS_SHOWN ? prediction->rows : ROWS_SHOWN;
    int32_t places = prediction->classes ? at_most(prediction->places, PLACES_SHOWN) : 0;
    int32_t values = places > 1 ? 0 : at_most(prediction->width, VALUES_SHOWN);
    bool named = has_named_outputs(report, prediction);
    print_header(report, prediction, places, values);
    for (int64_t row = 0; row < shown; row++) {
        printf("%6" PRId64, row + 1);
        for (int32_t i = 0; i < places; i++) {
            printf("  ");
            print_class(
                prony_class(report->network, prediction->classes[row * prediction->places + i]),
                true);
        }
        for (int32_t i = 0; i < values; i++)
            printf(named ? " %*.4f" : " %*.4g", NAME_SHOWN,
                   (double)prediction->outputs[row * prediction->width + i]);
        printf("\n");
    }
    if (shown < rows)
        printf("     … %" PRId64 " more rows; --out FILE writes all rows and values\n",
               rows - shown);
    else if (values < prediction->width)
        printf("     … more values; --out FILE writes all of them\n");
}

/* Counts what was said, against what it is; the data has as many labels as there are places. */
static void compare_classes(struct report *report, const struct prony_prediction *prediction)
{
    const int32_t *is = prony_data_classes(report->data, prediction->first);
    int64_t count = prediction->rows * prediction->places;
    for (int64_t i = 0; i < count; i++) {
        report->cells[is[i] * report->class_count + prediction->classes[i]]++;
        report->right += is[i] == prediction->classes[i];
    }
    report->answers += count;
}

static void compare_numbers(struct report *report, const struct prony_prediction *prediction)
{
    const float *is = prony_data_numbers(report->data, prediction->first);
    int64_t count = prediction->rows * prediction->width;
    for (int64_t i = 0; i < count; i++) {
        double off = (double)prediction->outputs[i] - (double)is[i];
        report->squares += off * off;
    }
    report->compared += count;
}

static int take_rows(void *context, const struct prony_prediction *prediction)
{
    struct report *report = context;
    int64_t labels = prony_data_targets(report->data);
    if (cli_interrupted())
        return (int)status_fail(STATUS_INTERRUPTED, __FILE__, __LINE__,
                                "interrupted after row %" PRId64 "; nothing written",
                                prediction->first);
    if (report->writer) {
        enum status status = write_rows(report, prediction);
        if (status != STATUS_OK)
            return (int)status;
    } else if (!prediction->first) {
        print_rows(report, prediction);
    }
    if (report->cells && prediction->classes && labels == prediction->places)
        compare_classes(report, prediction);
    else if (prony_data_numbers(report->data, 0) && labels == prediction->width)
        compare_numbers(report, prediction);
    return 0;
}

/* Rows: what it is. Columns: what was said. Too many classes make no table. */
static void print_confusion(const struct report *report)
{
    int32_t count = report->class_count;
    if (count > CLASSES_SHOWN)
        return;
    printf("\n%-*s", NAME_SHOWN, "is \\ said");
    for (int32_t i = 0; i < count; i++) {
        printf(" ");
        print_class(prony_class(report->network, i), false);
    }
    printf("\n");
    for (int32_t i = 0; i < count; i++) {
        print_class(prony_class(report->network, i), true);
        for (int32_t k = 0; k < count; k++)
            printf(" %*" PRId64, NAME_SHOWN, report->cells[i * count + k]);
        printf("\n");
    }
}

static void print_report(const struct predict_flags *flags, const struct report *report)
{
    if (flags->out)
        printf("%" PRId64 " rows written to %s\n", prony_data_rows(report->data), flags->out);
    if (report->answers) {
        print_confusion(report);
        printf("accuracy %.1f %%\n", 100 * (double)report->right / (double)report->answers);
    } else if (report->compared)
        printf("mean squared error %.6g\n", report->squares / (double)report->compared);
}

static enum status predict(const struct predict_flags *flags, struct prony *network,
                           struct prony_data *data, struct report *report)
{
    struct file_writer writer = {0};
    size_t count = (size_t)report->class_count;
    if (prony_data_classes(data, 0))
        NEED(report->cells = mem_array(count * count, sizeof *report->cells));
    if (flags->out) {
        TRY(file_begin(&writer, flags->out));
        report->writer = &writer;
    }
    enum status status = prony_predict_data(network, data, take_rows, report);
    if (status == STATUS_OK && flags->out)
        status = file_commit(&writer);
    file_abort(&writer);
    if (status == STATUS_OK)
        print_report(flags, report);
    return status;
}

static enum status run_predict(struct cli *cli, void *given)
{
    struct predict_flags *flags = given;
    struct report report = {0};
    struct prony *network = NULL;
    struct prony_data *data = NULL;
    enum status status;
    TRY(read_words(cli, flags));
    TRY(cli_unit(cli, flags->unit, &flags->options.backend));
    TRY_OR(done, prony_open(flags->network, &flags->options, &network));
    if (flags->weights)
        TRY_OR(done, prony_load(network, flags->weights));
    flags->data_options.memory_bytes = (uint64_t)(flags->memory * 1e6);
    flags->data_options.network = network;
    TRY_OR(done, prony_data_open(flags->data, &flags->data_options, &data));
    report =
        (struct report){.network = network, .data = data, .class_count = prony_classes(network)};
    status = predict(flags, network, data, &report);
done:
    mem_free(report.cells);
    text_free(&report.text);
    prony_close(network);
    prony_data_close(data);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct predict_flags, out), "FILE", "all rows as CSV, not the first on the screen"},
    {CLI_LABEL(struct predict_flags)},
    {CLI_LABELS(struct predict_flags)},
    {CLI_MEMORY(struct predict_flags)},
    {CLI_BACKEND(struct predict_flags)},
    {CLI_UNIT(struct predict_flags)},
    {CLI_THREADS(struct predict_flags)},
    {CLI_PRECISION(struct predict_flags)},
    {CLI_SHAPE(struct predict_flags)},
    ARG_END,
};

const struct command cmd_predict = {
    .summary = "apply a trained network to data",
    .run = run_predict,
    .bytes = sizeof(struct predict_flags),
    .args = {.command = "prony predict",
             .usage = "NETWORK [WEIGHTS] DATA [options]",
             .summary =
                 "Applies a network that prony train saved to data, with or without labels. An "
                 "ONNX file has its\nown weights. Of networks that learnt together FILE:NAME is "
                 "one, as vae:encoder or gan:generator.",
             .examples = "prony predict small iris.safetensors iris --out predictions.csv\n"
                         "prony predict lenet lenet.safetensors images.idx --labels labels.idx\n"
                         "prony predict iris.onnx iris\n"
                         "prony predict vae:encoder vae.safetensors mnist --out codes.csv\n",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 3},
};
