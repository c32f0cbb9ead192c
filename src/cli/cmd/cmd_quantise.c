/* cmd_quantise.c: prony quantise NETWORK WEIGHTS DATA --out FILE: a trained network in 8 bits, and
 * what that costs, through the library (prony.h). */
#include "base/file.h"
#include "base/memory.h"
#include "base/plain.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/show/data_notes.h"
#include "library/prony_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { KEEP_MOST = 256, LAYERS_SHOWN = 12, NAME_SHOWN = 18 };

struct quantise_flags {
    const char *network, *weights, *data; /* positional; weights may be NULL */
    struct prony_options options;
    struct prony_data_options data_options;
    const char *out, *keep, *ranges, *unit, *shape;
    bool plain, uncorrected;
    int32_t weight_bits;
    int64_t rows;
    double memory;
};

/* How good the answers of one form are. */
struct answers {
    const struct prony_data *data;
    int64_t right, asked;    /* classes */
    double squares, numbers; /* of what numbers are off; how many */
};

static int count_answers(void *context, const struct prony_prediction *prediction)
{
    struct answers *answers = context;
    if (cli_interrupted())
        return (int)status_fail(STATUS_INTERRUPTED, __FILE__, __LINE__,
                                "interrupted; nothing written");
    for (int64_t i = 0; i < prediction->rows; i++) {
        int64_t row = prediction->list ? (int64_t)prediction->list[i] : prediction->first + i;
        const int32_t *classes = prony_data_classes(answers->data, row);
        const float *numbers = prony_data_numbers(answers->data, row);
        for (int32_t k = 0; classes && prediction->classes && k < prediction->places; k++) {
            answers->right += prediction->classes[i * prediction->places + k] == classes[k];
            answers->asked++;
        }
        for (int32_t k = 0; numbers && !prediction->classes && k < prediction->width; k++) {
            double off =
                (double)prediction->outputs[i * prediction->width + k] - (double)numbers[k];
            answers->squares += off * off;
            answers->numbers++;
        }
    }
    return PRONY_OK;
}

/* What was said of the layers, on its way to the screen. */
struct layer_report {
    int shown, hidden, kept, small;
    char noisiest[NAME_SHOWN * 4];
    double noise_db;
    bool outside, outlier;
};

static void show_remark(struct layer_report *list, const struct prony_layer *layer)
{
    static const double MANY_OUTSIDE = 0.01, OUTLIER = 20;
    if (layer->outside > MANY_OUTSIDE) {
        printf("  %.1f %% of its results beyond the range", 100 * layer->outside);
        list->outside = true;
    }
    if (layer->outlier > OUTLIER) {
        printf("  channel %" PRId64 " of its input is %.0f × the middle one", layer->outlier_at + 1,
               layer->outlier);
        list->outlier = true;
    }
}

static void show_layer(void *context, const struct prony_layer *layer)
{
    struct layer_report *list = context;
    char name[NAME_SHOWN + 1];
    plain_copy(name, sizeof name, layer->name);
    if (!list->shown && !list->hidden)
        printf("%-*s  %-4s  %s\n", NAME_SHOWN, "layer", "in", "signal to noise");
    if (layer->stays)
        list->kept++;
    else if (!list->small++) {
        snprintf(list->noisiest, sizeof list->noisiest, "%s", layer->name);
        list->noise_db = layer->noise_db;
    }
    if (list->shown == LAYERS_SHOWN) {
        list->hidden++;
        return;
    }
    list->shown++;
    printf("%-*s  %-4s  ", NAME_SHOWN, name, layer->stays ? "fp32" : "int8");
    if (isfinite(layer->noise_db))
        printf("%9.1f dB", layer->noise_db);
    else
        printf("%12s", "the same");
    show_remark(list, layer);
    printf("\n");
}

static int64_t bytes_of(const char *path)
{
    struct stat info;
    return path && stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

/* Before and after, and what lies between. */
static void show_answers(const struct answers *real, const struct answers *small)
{
    if (real->asked) {
        double before = 100.0 * (double)real->right / (double)real->asked;
        double after = 100.0 * (double)small->right / (double)small->asked;
        printf("\naccuracy  %.2f %% in fp32, %.2f %% in int8: ", before, after);
        if (before > after)
            printf("%.2f %% lost", before - after);
        else
            printf("nothing lost");
        printf(" (%" PRId64 " rows)\n", real->asked);
    } else if (real->numbers > 0) {
        printf("\nRMSE  %.4g in fp32, %.4g in int8 (%.0f numbers)\n",
               sqrt(real->squares / real->numbers), sqrt(small->squares / small->numbers),
               real->numbers);
    } else {
        printf("\naccuracy unknown: the data has no labels\n");
    }
}

/* Rows of one class say nothing of what the others need. */
static void warn_one_class(const struct quantise_flags *flags, const struct prony *network,
                           const struct prony_data *data)
{
    int64_t rows = prony_data_rows(data);
    const int32_t *first = rows && prony_classes(network) > 1 ? prony_data_classes(data, 0) : NULL;
    for (int64_t row = 1; first && row < rows; row++)
        if (*prony_data_classes(data, row) != *first)
            return;
    if (first)
        fprintf(stderr,
                "prony: %s: all %" PRId64 " rows are of the class '%s': the ranges suit no other; "
                "expected rows of all classes\n",
                flags->data, rows, prony_class(network, *first));
}

static void advise(const struct cli *cli, const struct layer_report *list,
                   const struct answers *real, const struct answers *small)
{
    static const double NOISY = 15, LOST = 0.005;
    bool lost = real->asked && (double)(real->right - small->right) > LOST * (double)real->asked;
    if (list->outside)
        printf("Some ranges are too narrow: more --rows, or --ranges minmax, would widen them.\n");
    if (list->small && (lost || list->noise_db < NOISY))
        printf("To leave the noisiest layer in fp32, add --keep %s\n", list->noisiest);
    (void)cli;
}

static enum status read_keep(const struct quantise_flags *flags, struct arena *arena,
                             const char **keep, int32_t *count)
{
    *count = 0;
    if (!flags->keep)
        return STATUS_OK;
    for (const char *at = flags->keep; *at; at += strcspn(at, ","), at += *at == ',') {
        if (*count == KEEP_MOST)
            FAIL(STATUS_INPUT, "found more than %d layers in --keep", KEEP_MOST);
        NEED(keep[(*count)++] = arena_bytes(arena, at, strcspn(at, ",")));
    }
    return STATUS_OK;
}

static enum status quantise(struct cli *cli, const struct quantise_flags *flags,
                            struct prony *network, struct prony_data *data, struct prony **out)
{
    const char *keep[KEEP_MOST];
    struct layer_report list = {0};
    struct answers real = {.data = data}, small = {.data = data};
    struct prony_quantising how = {.ranges = flags->ranges,
                                   .plain = flags->plain,
                                   .weight_bits = flags->weight_bits,
                                   .rows = flags->rows,
                                   .uncorrected = flags->uncorrected,
                                   .keep = keep};
    TRY(read_keep(flags, &cli->arena, keep, &how.keep_count));
    warn_one_class(flags, network, data);
    TRY((enum status)prony_quantise(network, data, &how, show_layer, &list, out));
    if (list.hidden)
        printf("… and %d layers with less noise\n", list.hidden);
    if (!list.small)
        FAIL(STATUS_UNSUPPORTED,
             "%s: found no layer that can be computed in 8 bits, expected "
             "dense or conv layers",
             flags->network);
    TRY((enum status)prony_predict_test(network, data, count_answers, &real));
    TRY((enum status)prony_predict_test(*out, data, count_answers, &small));
    if (real.asked && (*out)->model.data && !strcmp((*out)->model.data, flags->data))
        (*out)->model.accuracy = (double)real.right / (double)real.asked;
    TRY((enum status)prony_save(*out, flags->out));
    show_answers(&real, &small);
    int64_t before = bytes_of(flags->weights ? flags->weights : flags->network);
    printf("size  %.1f kB", (double)bytes_of(flags->out) / 1e3);
    if (before)
        printf(", of %.1f kB", (double)before / 1e3);
    printf("\n");
    advise(cli, &list, &real, &small);
    printf("written to %s\n", flags->out);
    return STATUS_OK;
}

static enum status read_words(struct cli *cli, struct quantise_flags *flags)
{
    const struct args_found *found = &cli->found;
    flags->network = found->positional[0];
    flags->weights = found->count == 3 ? found->positional[1] : NULL;
    flags->data = found->positional[found->count - 1];
    if (!flags->out)
        FAIL(STATUS_INPUT, "found no --out, expected the file to write: %s %s", cli->args->command,
             cli->args->usage);
    if (!flags->weights && !file_exists(flags->network))
        FAIL(
            STATUS_INPUT,
            "found no file '%s' with weights, expected one that prony train --out wrote: %s FILE DATA "
            "--out FILE, or %s NETWORK WEIGHTS DATA --out FILE",
            flags->network, cli->args->command, cli->args->command);
    TRY(cli_keep_network(flags->out, flags->network));
    if (flags->weights)
        TRY(file_check_apart(flags->out, flags->weights));
    return cli_keep_data(flags->out, flags->data);
}

static enum status run_quantise(struct cli *cli, void *given)
{
    struct quantise_flags *flags = given;
    struct prony *network = NULL, *small = NULL;
    struct prony_data *data = NULL;
    enum status status;
    TRY(read_words(cli, flags));
    TRY(cli_unit(cli, flags->unit, &flags->options.backend));
    if (flags->weights) {
        TRY_OR(done, (enum status)prony_open(flags->network, &flags->options, &network));
        TRY_OR(done, (enum status)prony_load(network, flags->weights));
    } else {
        TRY_OR(done, (enum status)prony_open_saved(flags->network, &flags->options, &network));
    }
    flags->data_options.memory_bytes = (uint64_t)(flags->memory * 1e6);
    flags->data_options.network = network;
    TRY_OR(done, (enum status)prony_data_open(flags->data, &flags->data_options, &data));
    data_notes_print(flags->data, data);
    status = quantise(cli, flags, network, data, &small);
done:
    prony_close(small);
    prony_close(network);
    prony_data_close(data);
    return status;
}

static const struct arg rows[] = {
    {ARG(struct quantise_flags, out), "FILE", "where the network goes, with its weights"},
    {ARG(struct quantise_flags, keep), "LAYER,…", "layers that stay in fp32"},
    {ARG(struct quantise_flags, ranges), "NAME",
     "how ranges are chosen: mse, minmax or percentile (mse)"},
    {ARG(struct quantise_flags, rows), "N", "rows of the data that ranges come from (1024)",
     ARG_FROM(1, 1e7)},
    {ARG_NAMED("weight-bits", struct quantise_flags, weight_bits), "N", "8, 4 or 2 (8)",
     ARG_FROM(2, 8)},
    {ARG(struct quantise_flags, plain), "",
     "scales that are powers of two and activations of 7 bits, for kernels and circuits"},
    {ARG(struct quantise_flags, uncorrected), "",
     "biases do not make up for what rounding the weights moves"},
    {CLI_LABEL(struct quantise_flags)},
    {CLI_TARGET(struct quantise_flags)},
    {CLI_LABELS(struct quantise_flags)},
    {CLI_MEMORY(struct quantise_flags)},
    {CLI_BACKEND(struct quantise_flags)},
    {CLI_UNIT(struct quantise_flags)},
    {CLI_THREADS(struct quantise_flags)},
    ARG_END,
};

const struct command cmd_quantise = {
    .summary = "compute in 8 bits, and say what that costs",
    .run = run_quantise,
    .alone = true,
    .bytes = sizeof(struct quantise_flags),
    .args = {.command = "prony quantise",
             .usage = "FILE DATA --out FILE, or NETWORK WEIGHTS DATA --out FILE",
             .summary =
                 "Makes a network of 8 bits from one that prony train saved. DATA is what the "
                 "ranges of its\nactivations come from; its labels say how much accuracy is lost. "
                 "The noisiest layers come first.",
             .examples =
                 "prony quantise iris.safetensors iris --out iris-int8.safetensors\n"
                 "prony quantise lenet lenet.safetensors mnist --out lenet-int8.safetensors\n"
                 "prony quantise lenet.safetensors mnist --keep conv1 --out mixed.safetensors\n"
                 "prony predict iris-int8.safetensors iris\n"
                 "prony bench iris-int8.safetensors --phase inference\n",
             .lists = {{rows, 0}},
             .least = 2,
             .most = 3},
};
