/* cmd_predict.c: prony predict NETWORK [WEIGHTS] DATA: what a trained network says of each row,
 * through the library (prony.h). */
#include "base/file.h"
#include "base/plain.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "cli/show/data_notes.h"
#include "cli/show/quality.h"
#include "prony.h"
#include "record/tables/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_SHOWN = 20, ROW_SHOWN = 6, NAME_SHOWN = 14, CLASS_ROOM = NAME_SHOWN + 2 };

struct predict_flags {
    const char *network, *weights, *data; /* positional */
    bool saved;                           /* the network is the file of its weights */
    struct prony_options options;
    struct prony_data_options data_options;
    const char *unit, *out, *shape;
    double memory;
};

static enum status read_words(struct cli *cli, struct predict_flags *flags)
{
    const struct args_found *found = &cli->found;
    const char *first = found->positional[0];
    flags->weights = found->count == 3 ? found->positional[1] : NULL;
    flags->data = found->positional[found->count - 1];
    flags->saved = !flags->weights && !cli_has_weights(first);
    if (flags->saved && !file_exists(first))
        FAIL(STATUS_INPUT,
             "found no file '%s' with weights, expected %s FILE DATA or %s NETWORK WEIGHTS DATA; "
             "FILE comes from prony train --out, or is ONNX",
             first, cli->args->command, cli->args->command);
    TRY(cli_shape(cli, flags->shape));
    flags->network = found->positional[0];
    if (flags->saved)
        TRY(file_check_apart(flags->out, first));
    else
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
    struct quality quality;
};

/* Outputs are named after the classes where there is one for each. */
static bool has_named_outputs(const struct report *report,
                              const struct prony_prediction *prediction)
{
    return prediction->classes && prediction->width == report->class_count;
}

/* "class", or "class3" where there are several. */
static void add_numbered(struct text *out, const char *name, int32_t number, int32_t count)
{
    text_add(out, name);
    if (count > 1)
        text_printf(out, "%d", number + 1);
}

/* The name of a number that was learnt: the target's, "value", or "value3" where there are several.
 */
static void add_output(const struct report *report, struct text *out, int32_t number, int32_t count)
{
    const char *name = report->class_count ? NULL : prony_target(report->network, number);
    if (name)
        table_csv_cell(name, out);
    else
        add_numbered(out, "value", number, count);
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
            add_output(report, out, i, prediction->width);
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
    printf("%*s", ROW_SHOWN, "row");
    for (int32_t i = 0; i < places; i++)
        printf("  %-*s", NAME_SHOWN, "class");
    for (int32_t i = 0; i < values; i++) {
        printf(" ");
        const char *target = report->class_count ? NULL : prony_target(report->network, i);
        print_class(named ? prony_class(report->network, i) : target ? target : "value", false);
    }
    printf("\n");
}

/* How many columns the screen has room for behind others, at least one. */
static int32_t at_most(int32_t count, int taken, int each)
{
    const int room = (screen_width(stdout) - taken) / each, most = room < 1 ? 1 : room;
    return count < most ? count : most;
}

/* The first rows, aligned, with as many values as there is room for: several classes have none. */
static void print_rows(const struct report *report, const struct prony_prediction *prediction)
{
    int64_t rows = prony_data_rows(report->data);
    int64_t shown = prediction->rows < ROWS_SHOWN ? prediction->rows : ROWS_SHOWN;
    int32_t places = prediction->classes ? at_most(prediction->places, ROW_SHOWN, CLASS_ROOM) : 0;
    int taken = ROW_SHOWN + places * CLASS_ROOM;
    int32_t values = places > 1 ? 0 : at_most(prediction->width, taken, NAME_SHOWN + 1);
    bool named = has_named_outputs(report, prediction);
    print_header(report, prediction, places, values);
    for (int64_t row = 0; row < shown; row++) {
        printf("%*" PRId64, ROW_SHOWN, row + 1);
        for (int32_t i = 0; i < places; i++) {
            printf("  ");
            print_class(
                prony_class(report->network, prediction->classes[row * prediction->places + i]),
                true);
        }
        for (int32_t i = 0; i < values; i++)
            printf(named ? " %*.4f" : " %*.6g", NAME_SHOWN,
                   (double)prediction->outputs[row * prediction->width + i]);
        printf("\n");
    }
    if (shown < rows)
        printf("     … %" PRId64 " more rows; --out FILE writes all rows and values\n",
               rows - shown);
    else if (values < prediction->width)
        printf("     … more values; --out FILE writes all of them\n");
}

static int take_rows(void *context, const struct prony_prediction *prediction)
{
    struct report *report = context;
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
    return (int)quality_add(&report->quality, prediction);
}

static void print_report(const struct predict_flags *flags, const struct report *report)
{
    if (flags->out)
        printf("%" PRId64 " rows written to %s\n", prony_data_rows(report->data), flags->out);
    quality_print(&report->quality, "");
}

static enum status predict(const struct predict_flags *flags, struct prony *network,
                           struct prony_data *data, struct report *report)
{
    struct file_writer writer = {0};
    TRY(quality_open(&report->quality, network, data));
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
    if (flags->saved)
        TRY_OR(done, prony_open_saved(flags->network, &flags->options, &network));
    else
        TRY_OR(done, prony_open(flags->network, &flags->options, &network));
    if (flags->weights)
        TRY_OR(done, prony_load(network, flags->weights));
    flags->data_options.memory_bytes = (uint64_t)(flags->memory * 1e6);
    flags->data_options.network = network;
    TRY_OR(done, prony_data_open(flags->data, &flags->data_options, &data));
    data_notes_print(flags->data, data);
    report =
        (struct report){.network = network, .data = data, .class_count = prony_classes(network)};
    status = predict(flags, network, data, &report);
done:
    quality_close(&report.quality);
    text_free(&report.text);
    prony_close(network);
    prony_data_close(data);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct predict_flags, out), "FILE", "write all rows to this CSV file"},
    {CLI_LABEL(struct predict_flags)},
    {CLI_TARGET(struct predict_flags)},
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
    .alone = true,
    .bytes = sizeof(struct predict_flags),
    .args = {.command = "prony predict",
             .usage = "FILE DATA [options], or NETWORK [WEIGHTS] DATA [options]",
             .summary =
                 "Applies a network that prony train saved to data, with or without labels. FILE "
                 "comes\nfrom prony train --out, or is an ONNX file. A network that learnt "
                 "together with others is called\nFILE:NAME, as vae:encoder or gan:generator.",
             .examples = "prony predict house.safetensors new.csv --out prices.csv\n"
                         "prony predict small iris.safetensors iris --out predictions.csv\n"
                         "prony predict lenet lenet.safetensors images.idx --labels labels.idx\n"
                         "prony predict iris.onnx iris\n"
                         "prony predict vae:encoder vae.safetensors mnist --out codes.csv\n",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 3},
};
